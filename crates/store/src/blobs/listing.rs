//! Listings of the blobs of a space, page by page.

use super::hash::BlobHash;

/// The most blobs in one page of a listing.
pub const MAX_PAGE: usize = 1000;

/// A blob as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedBlob {
    /// The name of the blob in its space.
    pub hash: BlobHash,
    /// Bytes it takes in the store.
    pub stored_size: u64,
    /// When it was last put, in microseconds UTC; a sweeper spares the blobs whose rows may still be on their way,
    /// and those without an age.
    pub modified: Option<i64>,
}

/// One page of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobPage {
    /// The blobs, by rising hash.
    pub blobs: Vec<ListedBlob>,
    /// Where the next page begins (after this one), if there is more.
    pub next: Option<BlobHash>,
}
