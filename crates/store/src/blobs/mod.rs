//! Large contents outside the database: raw mail, bodies, attachments.
//!
//! A blob is named by the SHA-256 of its content inside a *space* (one per workspace), compressed when that helps, and
//! sealed with the data key of the workspace. It lies in a folder ([`local`]) or in an S3 bucket ([`s3`]); this file
//! holds what both have in common, so that the two only move sealed bytes. Which blobs are still wanted is written
//! in the database and not known here.
//!
//! When [`Blobs::put`] returns, the content is durable. A row that names a blob is written after that.

pub(crate) mod durable;
mod local;
mod raw;
mod s3;
mod settings;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use self::local::Folder;
use self::s3::Bucket;
pub use self::settings::{BlobLocation, S3Settings};
use crate::vault::{DataKey, VaultError, hex, random};

/// The largest content that is taken (1 GiB), and so the most that reading a blob may unpack.
pub const MAX_CONTENT: usize = 1 << 30;

/// What a stored blob may measure: the largest content, its frame and its seal.
const MAX_STORED: usize = MAX_CONTENT + 1024;

/// The most blobs in one page of a listing.
pub const MAX_PAGE: usize = 1000;

const COMPRESSION_LEVEL: i32 = 1;
const FRAME_HEADER: usize = 1 + size_of::<u64>();
const FRAME_PLAIN: u8 = 0;
const FRAME_ZSTD: u8 = 1;

/// Files under this name are trials of [`Blobs::probe`]; no space can have the name.
const PROBES: &str = ".probe";
/// What must fit on the disk for the store to be called usable.
const ROOM: usize = 256 * 1024;

/// What can go wrong with blobs; no text holds content or credentials.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The store works and does not have the blob.
    #[error("blob {hash} of space {space} is missing")]
    Missing {
        /// The space that was asked for.
        space: String,
        /// The blob that was asked for.
        hash: BlobHash,
    },
    /// The stored bytes are not those that were put, or were sealed with another key.
    #[error("blob {hash} of space {space} is damaged or was sealed with another key")]
    Corrupt {
        /// The space that was asked for.
        space: String,
        /// The blob that was asked for.
        hash: BlobHash,
    },
    /// The name of a space or a hash is not one that may become part of a path.
    #[error("{0:?} cannot name a blob or a space of blobs")]
    InvalidName(String),
    /// The content is larger than [`MAX_CONTENT`].
    #[error("a blob may have at most {MAX_CONTENT} bytes")]
    TooLarge,
    /// The configured place for blobs makes no sense.
    #[error("the place for blobs is not usable: {0}")]
    Location(String),
    /// The folder did not do what was asked: full, read-only, broken.
    #[error("cannot {action} {}: {cause}", .path.display())]
    Folder {
        /// What was tried, as a verb.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        cause: io::Error,
    },
    /// The store did not do what was asked, also after trying again.
    #[error("the blob store did not {action}: {reason}")]
    Service {
        /// What was asked, as a verb.
        action: &'static str,
        /// What it or the network answered.
        reason: String,
    },
    /// The content could not be sealed.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The work was given up because the program is stopping.
    #[error("the work on a blob was interrupted")]
    Interrupted,
}

impl BlobError {
    /// What went wrong, without telling where on this machine or network: fit for the users of a workspace.
    pub fn public_reason(&self) -> String {
        match self {
            Self::Folder { action, cause, .. } => format!("cannot {action} a blob: {}", cause.kind()),
            Self::Service { action, .. } => format!("the blob store did not {action}"),
            Self::Location(_) => "the place for blobs is not usable".to_owned(),
            other => other.to_string(),
        }
    }
}

/// The SHA-256 of a content, as 64 lower-case hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobHash(String);

impl BlobHash {
    /// Computes the hash of a content.
    pub fn of(content: &[u8]) -> Self {
        Self(hex(&Sha256::digest(content)))
    }

    /// Reads a hash as it is kept in the database; anything else than 64 lower-case digits is refused.
    pub fn parse(text: &str) -> Result<Self, BlobError> {
        if text.len() == 64 && is_hex(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(BlobError::InvalidName(text.chars().take(80).collect()))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Debug for BlobHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "BlobHash({})", self.0)
    }
}

/// What a row remembers about a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobRef {
    /// The name of the blob in its space.
    pub hash: BlobHash,
    /// Bytes of content.
    pub size: u64,
    /// Bytes it takes in the store.
    pub stored_size: u64,
}

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

/// A store of blobs; clones share it.
#[derive(Clone, Debug)]
pub struct Blobs {
    place: Place,
}

/// The two places, which only move sealed bytes under checked names.
#[derive(Clone, Debug)]
enum Place {
    Folder(Arc<Folder>),
    Bucket(Arc<Bucket>),
}

impl Blobs {
    /// Opens a store; a missing folder is made, a bucket must exist. Whether it works is for [`Blobs::probe`] to say.
    pub async fn open(location: &BlobLocation) -> Result<Self, BlobError> {
        let place = match location {
            BlobLocation::Directory(path) => {
                let path = path.clone();
                Place::Folder(Arc::new(blocking(move || Folder::open(path)).await?))
            }
            BlobLocation::S3(settings) => Place::Bucket(Arc::new(Bucket::open(settings)?)),
        };
        Ok(Self { place })
    }

    /// Stores a content durably and says how to find it again.
    ///
    /// Content that is there already only becomes young again (see [`ListedBlob::modified`]), so that a sweeper does
    /// not take it while its new row is on the way. A damaged copy is replaced.
    pub async fn put(&self, space: &str, key: &DataKey, content: &[u8]) -> Result<BlobRef, BlobError> {
        check_space(space)?;
        if content.len() > MAX_CONTENT {
            return Err(BlobError::TooLarge);
        }
        let (hash, sealed) = {
            let (space, key, content) = (space.to_owned(), key.clone(), Bytes::copy_from_slice(content));
            blocking(move || {
                let hash = BlobHash::of(&content);
                let sealed = key.seal(&purpose(&space, &hash), &frame(&content))?;
                Ok((hash, Bytes::from(sealed)))
            })
            .await?
        };
        let name = object_name(space, &hash)?;
        match &self.place {
            Place::Folder(folder) => {
                if let Some(there) = self.renewed(folder, space, key, &hash).await? {
                    return Ok(there);
                }
                folder.write(name, sealed.clone()).await?;
            }
            // Looking first would cost a round trip more for new content and save nothing for known content: to make
            // it young again, an object has to be written again.
            Place::Bucket(bucket) => bucket.write(&name, sealed.clone()).await?,
        }
        Ok(BlobRef { hash, size: content.len() as u64, stored_size: sealed.len() as u64 })
    }

    /// Reads a content; what comes back has the hash that was asked for.
    pub async fn get(&self, space: &str, key: &DataKey, hash: &BlobHash) -> Result<Bytes, BlobError> {
        let sealed = self.sealed(space, hash).await?;
        unseal(space, key, hash, sealed).await
    }

    /// Reads a blob back and checks all of it, without giving out the content: for a scrubber.
    pub async fn verify(&self, space: &str, key: &DataKey, hash: &BlobHash) -> Result<BlobRef, BlobError> {
        let sealed = self.sealed(space, hash).await?;
        let stored_size = sealed.len() as u64;
        let content = unseal(space, key, hash, sealed).await?;
        Ok(BlobRef { hash: hash.clone(), size: content.len() as u64, stored_size })
    }

    /// Says whether the store has a blob, without reading it.
    pub async fn exists(&self, space: &str, hash: &BlobHash) -> Result<bool, BlobError> {
        let name = object_name(space, hash)?;
        match &self.place {
            Place::Folder(folder) => folder.exists(name).await,
            Place::Bucket(bucket) => bucket.exists(&name).await,
        }
    }

    /// Removes a blob; one that is not there is no error.
    ///
    /// The caller makes sure that no row names it: a row without its blob is lost mail, a blob without a row is swept.
    pub async fn delete(&self, space: &str, hash: &BlobHash) -> Result<(), BlobError> {
        self.remove(object_name(space, hash)?).await
    }

    /// Removes a blob that was last put before a time (microseconds UTC), and says whether it did: for a sweeper.
    ///
    /// In a folder no blob can be lost that is put again at the same moment. A bucket has no such step: there the
    /// time of grace has to be longer than any mail takes from its blob to its row.
    pub async fn delete_older(&self, space: &str, hash: &BlobHash, before: i64) -> Result<bool, BlobError> {
        let name = object_name(space, hash)?;
        match &self.place {
            Place::Folder(folder) => folder.delete_older(name, before).await,
            Place::Bucket(bucket) => bucket.delete(&name).await.map(|()| true),
        }
    }

    /// Lists the blobs of a space by rising hash, at most `limit` (and [`MAX_PAGE`]) after the given one.
    pub async fn list(
        &self,
        space: &str,
        after: Option<&BlobHash>,
        limit: usize,
    ) -> Result<BlobPage, BlobError> {
        check_space(space)?;
        let limit = limit.clamp(1, MAX_PAGE);
        match &self.place {
            Place::Folder(folder) => folder.list(space.to_owned(), after.cloned(), limit).await,
            Place::Bucket(bucket) => bucket.list(space, after, limit).await,
        }
    }

    /// Writes, reads and deletes a small object: no error means that the store works.
    pub async fn probe(&self) -> Result<(), BlobError> {
        let content: [u8; 32] = random()?;
        let name = trial_name()?;
        let content = Bytes::copy_from_slice(&content);
        match &self.place {
            Place::Folder(folder) => folder.write(name.clone(), content.clone()).await?,
            Place::Bucket(bucket) => bucket.write(&name, content.clone()).await?,
        }
        let read = self.read(name.clone()).await;
        self.remove(name).await?;
        if read? == Some(content) {
            return Ok(());
        }
        let reason = "the bytes are missing or differ".to_owned();
        Err(BlobError::Service { action: "give back what was just written", reason })
    }

    /// Checks that a folder takes a mail of some size: when a disk is all but full, small writes still work. A bucket
    /// has room.
    pub async fn require_room(&self) -> Result<(), BlobError> {
        let Place::Folder(folder) = &self.place else { return Ok(()) };
        let name = trial_name()?;
        folder.write(name.clone(), Bytes::from(vec![0; ROOM])).await?;
        folder.delete(name).await
    }

    /// Removes what interrupted writes left behind, if it is older than the given time; says how many files went.
    pub async fn sweep_temporary(&self, older_than: Duration) -> Result<u64, BlobError> {
        match &self.place {
            Place::Folder(folder) => folder.sweep_temporary(older_than).await,
            // An object appears whole or not at all.
            Place::Bucket(_) => Ok(0),
        }
    }

    /// Finds an intact copy in the folder, makes it young and durable, and describes it.
    async fn renewed(
        &self,
        folder: &Arc<Folder>,
        space: &str,
        key: &DataKey,
        hash: &BlobHash,
    ) -> Result<Option<BlobRef>, BlobError> {
        // Whatever is wrong with the copy, writing it again is the cure, or fails with the better error.
        let Ok(there) = self.verify(space, key, hash).await else { return Ok(None) };
        Ok(folder.renew(object_name(space, hash)?).await?.then_some(there))
    }

    async fn sealed(&self, space: &str, hash: &BlobHash) -> Result<Bytes, BlobError> {
        let found = self.read(object_name(space, hash)?).await?;
        found.ok_or_else(|| BlobError::Missing { space: space.to_owned(), hash: hash.clone() })
    }

    async fn read(&self, name: String) -> Result<Option<Bytes>, BlobError> {
        match &self.place {
            Place::Folder(folder) => folder.read(name).await,
            Place::Bucket(bucket) => bucket.read(&name).await,
        }
    }

    async fn remove(&self, name: String) -> Result<(), BlobError> {
        match &self.place {
            Place::Folder(folder) => folder.delete(name).await,
            Place::Bucket(bucket) => bucket.delete(&name).await,
        }
    }
}

/// A new name for a trial.
fn trial_name() -> Result<String, BlobError> {
    Ok(format!("{PROBES}/{}", hex(&random::<16>()?)))
}

/// Runs work that blocks or computes for long on a thread that may.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BlobError> + Send + 'static,
) -> Result<T, BlobError> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(BlobError::Interrupted))
}

/// Names what is sealed, so that a blob copied under another name or into another space does not open.
fn purpose(space: &str, hash: &BlobHash) -> String {
    format!("blob {space} {hash}")
}

/// Contents up to this size are packed with a compressor that the thread keeps; a larger one would keep its memory too.
const SMALL: usize = 256 * 1024;

thread_local! {
    // Making these costs more than packing a small mail with them.
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

fn pack(content: &[u8]) -> Option<Vec<u8>> {
    if content.len() > SMALL {
        return zstd::bulk::compress(content, COMPRESSION_LEVEL).ok();
    }
    COMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = zstd::bulk::Compressor::new(COMPRESSION_LEVEL).ok();
        }
        kept.as_mut()?.compress(content).ok()
    })
}

fn unpack(packed: &[u8], size: usize) -> Option<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = zstd::bulk::Decompressor::new().ok();
        }
        kept.as_mut()?.decompress(packed, size).ok()
    })
}

/// Lays a content out for sealing: how it is packed, its size, its bytes.
pub(crate) fn frame(content: &[u8]) -> Vec<u8> {
    let packed = pack(content).filter(|packed| packed.len() < content.len());
    let (kind, bytes) = match &packed {
        Some(packed) => (FRAME_ZSTD, packed.as_slice()),
        None => (FRAME_PLAIN, content),
    };
    let mut frame = Vec::with_capacity(FRAME_HEADER + bytes.len());
    frame.push(kind);
    frame.extend_from_slice(&(content.len() as u64).to_le_bytes());
    frame.extend_from_slice(bytes);
    frame
}

/// Takes a frame apart; nothing if it is not one.
pub(crate) fn unframe(frame: Vec<u8>) -> Option<Bytes> {
    let (&kind, rest) = frame.split_first()?;
    let (size, packed) = rest.split_first_chunk()?;
    let size = usize::try_from(u64::from_le_bytes(*size)).ok().filter(|size| *size <= MAX_CONTENT)?;
    let content = match kind {
        FRAME_PLAIN => Bytes::from(frame).slice(FRAME_HEADER..),
        // The recorded size bounds what is unpacked, whatever the packed bytes claim.
        FRAME_ZSTD => Bytes::from(unpack(packed, size)?),
        _ => return None,
    };
    (content.len() == size).then_some(content)
}

async fn unseal(space: &str, key: &DataKey, hash: &BlobHash, sealed: Bytes) -> Result<Bytes, BlobError> {
    let (space, key, hash) = (space.to_owned(), key.clone(), hash.clone());
    blocking(move || {
        let content = key.open(&purpose(&space, &hash), &sealed).ok().and_then(unframe);
        match content {
            Some(content) if BlobHash::of(&content) == hash => Ok(content),
            _ => Err(BlobError::Corrupt { space, hash }),
        }
    })
    .await
}

/// The path of a blob below the root of its store; the only way from names that callers give to a path.
fn object_name(space: &str, hash: &BlobHash) -> Result<String, BlobError> {
    check_space(space)?;
    let (first, rest) = hash.as_str().split_at(2);
    let (second, rest) = rest.split_at(2);
    Ok(format!("{space}/{first}/{second}/{rest}"))
}

fn check_space(space: &str) -> Result<(), BlobError> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if (1..=64).contains(&space.len()) && space.bytes().all(allowed) {
        return Ok(());
    }
    Err(BlobError::InvalidName(space.chars().take(80).collect()))
}

/// Whether a text consists of lower-case hexadecimal digits only.
fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}
