//! Large contents outside the database: raw messages, bodies, attachments.
//!
//! A blob is named by the SHA-256 of its content inside a *space* (one per workspace), in a bucket also by a suffix
//! ([`BlobName`]), compressed when that helps, and sealed with the data key of the workspace. It is stored in a folder
//! ([`local`]) or in an S3 bucket ([`s3`]); everything they have in common is done here, so that the two only move sealed
//! bytes. Which blobs are still in use is recorded in the database and not known here.
//!
//! When [`Blobs::put`] returns, the content is durable. A row that references a blob is written after that.

mod blob_name;
mod blocking;
pub(crate) mod durable;
mod error;
mod frames;
mod hash;
mod listing;
mod local;
mod names;
mod raw;
mod s3;
mod sealed;
mod settings;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

pub use self::blob_name::{BlobName, BlobSuffix};
use self::blocking::blocking;
pub use self::error::BlobError;
pub use self::frames::MAX_CONTENT_BYTES;
pub(crate) use self::frames::{frame, frame_text, unframe, unframe_start};
pub use self::hash::BlobHash;
pub use self::listing::{BlobPage, ListedBlob, MAX_PAGE};
use self::local::Folder;
use self::names::{check_space, object_name, probe_name};
use self::s3::Bucket;
pub use self::sealed::SealedBlob;
use self::sealed::purpose;
pub use self::settings::{BlobLocation, S3Settings};
use crate::vault::{DataKey, random};

/// What must fit on the disk for the store to be usable.
const MIN_FREE_BYTES: usize = 256 * 1024;

/// A row's reference to a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobRef {
    /// The hash of its content, which is its name too unless it was given a suffix.
    pub hash: BlobHash,
    /// Bytes of content.
    pub size: u64,
    /// Bytes it takes in the store.
    pub stored_size: u64,
}

/// A store of blobs; clones share it.
#[derive(Clone, Debug)]
pub struct Blobs {
    place: Backend,
}

/// The two backends, which only move sealed bytes under checked names.
#[derive(Clone, Debug)]
enum Backend {
    Folder(Arc<Folder>),
    Bucket(Arc<Bucket>),
}

impl Blobs {
    /// Opens a store; a missing folder is created, a bucket must exist. [`Blobs::probe`] tells whether it works.
    pub async fn open(location: &BlobLocation) -> Result<Self, BlobError> {
        let place = match location {
            BlobLocation::Directory(path) => {
                let path = path.clone();
                Backend::Folder(Arc::new(blocking(move || Folder::open(path)).await?))
            }
            BlobLocation::S3(settings) => Backend::Bucket(Arc::new(Bucket::open(settings)?)),
        };
        Ok(Self { place })
    }

    /// Whether the blobs are objects of a bucket.
    pub fn is_bucket(&self) -> bool {
        matches!(self.place, Backend::Bucket(_))
    }

    /// Stores a content durably under its hash and returns its reference.
    pub async fn put(&self, space: &str, key: &DataKey, content: &[u8]) -> Result<BlobRef, BlobError> {
        self.put_with(space, key, content, None).await
    }

    /// The same under its hash and a suffix, if there is one.
    pub async fn put_with(
        &self,
        space: &str,
        key: &DataKey,
        content: &[u8],
        suffix: Option<&BlobSuffix>,
    ) -> Result<BlobRef, BlobError> {
        check_space(space)?;
        let sealed = {
            let (space, key, content) = (space.to_owned(), key.clone(), Bytes::copy_from_slice(content));
            blocking(move || SealedBlob::new(&space, &key, &content)).await?
        };
        self.put_sealed(key, sealed, suffix).await
    }

    /// The same for one that is sealed already.
    ///
    /// For a name that exists only the time is renewed (see [`ListedBlob::modified`]), so that a sweeper does not
    /// delete it before its new row is committed. A damaged copy is replaced.
    pub async fn put_sealed(
        &self,
        key: &DataKey,
        blob: SealedBlob,
        suffix: Option<&BlobSuffix>,
    ) -> Result<BlobRef, BlobError> {
        let SealedBlob { space, hash, size, sealed } = blob;
        let name = BlobName { hash, suffix: suffix.cloned() };
        let (path, stored_size) = (object_name(&space, &name)?, sealed.len() as u64);
        match &self.place {
            Backend::Folder(folder) => {
                if let Some(there) = self.renewed(folder, &space, key, &name).await? {
                    return Ok(there);
                }
                folder.write(path, sealed).await?;
            }
            // Checking first would cost one more round trip for new content and save nothing for known content:
            // renewing an object's time means writing it again.
            Backend::Bucket(bucket) => bucket.write(&path, sealed).await?,
        }
        Ok(BlobRef { hash: name.hash, size, stored_size })
    }

    /// Reads a content; what is returned has the requested hash.
    pub async fn get(
        &self,
        space: &str,
        key: &DataKey,
        name: impl Into<BlobName>,
    ) -> Result<Bytes, BlobError> {
        let name = name.into();
        let sealed = self.sealed(space, &name).await?;
        unseal(space, key, &name, sealed).await
    }

    /// Reads a blob and verifies all of it, without returning the content: for a scrubber.
    pub async fn verify(
        &self,
        space: &str,
        key: &DataKey,
        name: impl Into<BlobName>,
    ) -> Result<BlobRef, BlobError> {
        let name = name.into();
        let sealed = self.sealed(space, &name).await?;
        let stored_size = sealed.len() as u64;
        let content = unseal(space, key, &name, sealed).await?;
        Ok(BlobRef { hash: name.hash, size: content.len() as u64, stored_size })
    }

    /// Whether the store has a blob, without reading it.
    pub async fn exists(&self, space: &str, name: impl Into<BlobName>) -> Result<bool, BlobError> {
        let path = object_name(space, &name.into())?;
        match &self.place {
            Backend::Folder(folder) => folder.exists(path).await,
            Backend::Bucket(bucket) => bucket.exists(&path).await,
        }
    }

    /// Deletes a blob; a missing one is no error.
    ///
    /// The caller makes sure that no row references it: a row without its blob is lost mail, a blob without a row is
    /// swept.
    pub async fn delete(&self, space: &str, name: impl Into<BlobName>) -> Result<(), BlobError> {
        self.remove(object_name(space, &name.into())?).await
    }

    /// Deletes a blob that was last written before a time (microseconds UTC), and returns whether it did: for a
    /// sweeper.
    ///
    /// In a folder, a blob that is written again at the same moment cannot be lost. The servers of buckets have no step
    /// for this that all of them know: there the caller makes sure that nobody puts anything under this name.
    pub async fn delete_older(
        &self,
        space: &str,
        name: impl Into<BlobName>,
        before: i64,
    ) -> Result<bool, BlobError> {
        let path = object_name(space, &name.into())?;
        match &self.place {
            Backend::Folder(folder) => folder.delete_older(path, before).await,
            Backend::Bucket(bucket) => bucket.delete(&path).await.map(|()| true),
        }
    }

    /// Lists the blobs of a space by ascending name, at most `limit` (and [`MAX_PAGE`]) after the given one.
    pub async fn list(
        &self,
        space: &str,
        after: Option<&BlobName>,
        limit: usize,
    ) -> Result<BlobPage, BlobError> {
        check_space(space)?;
        let limit = limit.clamp(1, MAX_PAGE);
        match &self.place {
            Backend::Folder(folder) => folder.list(space.to_owned(), after.cloned(), limit).await,
            Backend::Bucket(bucket) => bucket.list(space, after, limit).await,
        }
    }

    /// Writes, reads and deletes a small object: no error means that the store works.
    pub async fn probe(&self) -> Result<(), BlobError> {
        let content: [u8; 32] = random()?;
        let name = probe_name()?;
        let content = Bytes::copy_from_slice(&content);
        match &self.place {
            Backend::Folder(folder) => folder.write(name.clone(), content.clone()).await?,
            Backend::Bucket(bucket) => bucket.write(&name, content.clone()).await?,
        }
        let read = self.read(name.clone()).await;
        self.remove(name).await?;
        if read? == Some(content) {
            return Ok(());
        }
        let reason = "the bytes are missing or differ".to_owned();
        Err(BlobError::Service { action: "give back what was just written", reason })
    }

    /// Checks that a folder has room for a medium-sized message: on a nearly full disk, small writes still work. A
    /// bucket always has room.
    pub async fn require_room(&self) -> Result<(), BlobError> {
        let Backend::Folder(folder) = &self.place else { return Ok(()) };
        let name = probe_name()?;
        folder.write(name.clone(), Bytes::from(vec![0; MIN_FREE_BYTES])).await?;
        folder.delete(name).await
    }

    /// Deletes what interrupted writes left behind, if it is older than the given time; returns the number of files.
    pub async fn sweep_temporary(&self, older_than: Duration) -> Result<u64, BlobError> {
        match &self.place {
            Backend::Folder(folder) => folder.sweep_temporary(older_than).await,
            // An object appears complete or not at all.
            Backend::Bucket(_) => Ok(0),
        }
    }

    /// Finds an intact copy in the folder, renews and syncs it, and returns its reference.
    async fn renewed(
        &self,
        folder: &Arc<Folder>,
        space: &str,
        key: &DataKey,
        name: &BlobName,
    ) -> Result<Option<BlobRef>, BlobError> {
        // A damaged copy is written again, which either repairs it or fails with the better error.
        let Ok(there) = self.verify(space, key, name).await else { return Ok(None) };
        Ok(folder.renew(object_name(space, name)?).await?.then_some(there))
    }

    async fn sealed(&self, space: &str, name: &BlobName) -> Result<Bytes, BlobError> {
        let found = self.read(object_name(space, name)?).await?;
        found.ok_or_else(|| BlobError::Missing { space: space.to_owned(), name: name.clone() })
    }

    async fn read(&self, name: String) -> Result<Option<Bytes>, BlobError> {
        match &self.place {
            Backend::Folder(folder) => folder.read(name).await,
            Backend::Bucket(bucket) => bucket.read(&name).await,
        }
    }

    async fn remove(&self, name: String) -> Result<(), BlobError> {
        match &self.place {
            Backend::Folder(folder) => folder.delete(name).await,
            Backend::Bucket(bucket) => bucket.delete(&name).await,
        }
    }
}

async fn unseal(space: &str, key: &DataKey, name: &BlobName, sealed: Bytes) -> Result<Bytes, BlobError> {
    let (space, key, name) = (space.to_owned(), key.clone(), name.clone());
    blocking(move || {
        let content = key.open(&purpose(&space, &name.hash), &sealed).ok().and_then(unframe);
        match content {
            Some(content) if BlobHash::of(&content) == name.hash => Ok(content),
            _ => Err(BlobError::Corrupt { space, name }),
        }
    })
    .await
}
