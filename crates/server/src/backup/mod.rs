//! The format of a backup: what `backup` writes and `restore` reads.
//!
//! A backup is a folder with one sealed file of rows per table, the blobs as stored, a sealed index of the blobs,
//! and `manifest.json`, which is written last: without it a backup is incomplete. Every secret in it is sealed with
//! the master key, which is not part of it.

mod manifest;
mod sealed;

pub use self::{
    manifest::{BlobEntry, BlobLine, FORMAT, Manifest, TableEntry},
    sealed::{SealedReader, SealedWriter, sync_folder},
};

/// The folder of the rows.
pub const TABLES: &str = "tables";
/// The folder of the blobs.
pub const BLOBS: &str = "blobs";
/// The list of the blobs.
pub const BLOB_INDEX: &str = "blob-index";
