//! Errors of the blob store, on either backend.

use std::io;
use std::path::PathBuf;

use super::blob_name::BlobName;
use super::frames::MAX_CONTENT_BYTES;
use crate::vault::VaultError;

/// Errors of the blob store; no text holds content or credentials.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The store works and does not have the blob.
    #[error("blob {name} of space {space} is missing")]
    Missing {
        /// The requested space.
        space: String,
        /// The requested blob.
        name: BlobName,
    },
    /// The stored bytes are not those that were written, or were sealed with another key.
    #[error("blob {name} of space {space} is damaged or was sealed with another key")]
    Corrupt {
        /// The requested space.
        space: String,
        /// The requested blob.
        name: BlobName,
    },
    /// The name of a space or a hash must not become part of a path.
    #[error("{0:?} cannot name a blob or a space of blobs")]
    InvalidName(String),
    /// The content is larger than [`MAX_CONTENT_BYTES`].
    #[error("a blob may have at most {MAX_CONTENT_BYTES} bytes")]
    TooLarge,
    /// The configured location is not valid.
    #[error("the place for blobs is not usable: {0}")]
    Location(String),
    /// The folder failed: full, read-only, broken.
    #[error("cannot {action} {}: {cause}", .path.display())]
    Folder {
        /// The action that failed, as a verb.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// The object store failed, also after retries.
    #[error("the blob store did not {action}: {reason}")]
    Service {
        /// The action that failed, as a verb.
        action: &'static str,
        /// The response or the network error.
        reason: String,
    },
    /// The content could not be sealed.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The program is shutting down.
    #[error("the work on a blob was interrupted")]
    Interrupted,
}

impl BlobError {
    /// The reason without paths or addresses of this machine or network: safe to show to users of a workspace.
    pub fn public_reason(&self) -> String {
        match self {
            Self::Folder { action, cause, .. } => format!("cannot {action} a blob: {}", cause.kind()),
            Self::Service { action, .. } => format!("the blob store did not {action}"),
            Self::Location(_) => "the place for blobs is not usable".to_owned(),
            other => other.to_string(),
        }
    }
}
