//! A content that is ready to be written: named, packed and sealed. This takes CPU time in proportion to its size, and
//! is done where such work belongs; writing it is all that is left.

use bytes::Bytes;

use super::{
    error::BlobError,
    frames::{MAX_CONTENT_BYTES, frame},
    hash::BlobHash,
};
use crate::vault::DataKey;

/// A sealed content of one space.
pub struct SealedBlob {
    pub(super) space: String,
    pub(super) hash: BlobHash,
    pub(super) size: u64,
    pub(super) sealed: Bytes,
}

impl SealedBlob {
    /// Packs and seals a content.
    pub fn new(space: &str, key: &DataKey, content: &[u8]) -> Result<Self, BlobError> {
        Self::of_frame(space, key, BlobHash::of(content), content.len(), &frame(content))
    }

    /// Seals a content whose name is known, and that is packed already.
    pub(crate) fn of_frame(
        space: &str,
        key: &DataKey,
        hash: BlobHash,
        size: usize,
        framed: &[u8],
    ) -> Result<Self, BlobError> {
        if size > MAX_CONTENT_BYTES {
            return Err(BlobError::TooLarge);
        }
        let sealed = Bytes::from(key.seal(&purpose(space, &hash), framed)?);
        Ok(Self { space: space.to_owned(), hash, size: size as u64, sealed })
    }
}

/// What a seal is bound to, so that a blob copied under another name or into another space does not open.
pub(super) fn purpose(space: &str, hash: &BlobHash) -> String {
    format!("blob {space} {hash}")
}
