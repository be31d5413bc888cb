//! What can go wrong with blobs, wherever they lie.

use std::io;
use std::path::PathBuf;

use super::frames::MAX_CONTENT;
use super::hash::BlobHash;
use crate::vault::VaultError;

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
