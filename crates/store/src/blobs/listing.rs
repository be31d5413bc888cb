//! Listings of the blobs of a space, page by page.

use super::blob_name::BlobName;

/// The most blobs in one page of a listing.
pub const MAX_PAGE: usize = 1000;

/// A blob in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedBlob {
    /// Its name in its space.
    pub name: BlobName,
    /// Bytes it takes in the store.
    pub stored_size: u64,
    /// When it was last written, in microseconds UTC; a sweeper spares blobs whose rows may not be committed yet, and
    /// those without a time.
    pub modified: Option<i64>,
}

/// One page of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobPage {
    /// The blobs, by ascending name.
    pub blobs: Vec<ListedBlob>,
    /// The last blob of this page, if there are more.
    pub next: Option<BlobName>,
}
