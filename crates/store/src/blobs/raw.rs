//! Blobs as they are stored, sealed, for carrying them from one place to another without their keys.

use bytes::Bytes;

use super::{Backend, BlobError, BlobHash, Blobs, object_name};

impl Blobs {
    /// Reads the stored bytes of a blob, which say nothing without the workspace's data key.
    pub async fn read_stored(&self, space: &str, hash: &BlobHash) -> Result<Bytes, BlobError> {
        self.sealed(space, hash).await
    }

    /// Puts bytes that were read with [`Blobs::read_stored`] under the same name, durably.
    ///
    /// Whether they are those that were read is for the caller to know: here they cannot be opened.
    pub async fn write_stored(&self, space: &str, hash: &BlobHash, stored: Bytes) -> Result<(), BlobError> {
        let name = object_name(space, hash)?;
        match &self.place {
            Backend::Folder(folder) => folder.write(name, stored).await,
            Backend::Bucket(bucket) => bucket.write(&name, stored).await,
        }
    }
}
