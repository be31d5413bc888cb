//! Blobs as they are stored, sealed, to copy them from one place to another without their keys.

use bytes::Bytes;

use super::{Backend, BlobError, BlobName, Blobs, object_name};

impl Blobs {
    /// Reads the stored bytes of a blob, which are unreadable without the workspace's data key.
    pub async fn read_stored(&self, space: &str, name: &BlobName) -> Result<Bytes, BlobError> {
        self.sealed(space, name).await
    }

    /// Writes bytes that were read with [`Blobs::read_stored`] under the same name, durably.
    ///
    /// The caller makes sure that they are those bytes: they cannot be opened here.
    pub async fn write_stored(&self, space: &str, name: &BlobName, stored: Bytes) -> Result<(), BlobError> {
        let path = object_name(space, name)?;
        match &self.place {
            Backend::Folder(folder) => folder.write(path, stored).await,
            Backend::Bucket(bucket) => bucket.write(&path, stored).await,
        }
    }
}
