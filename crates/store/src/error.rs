//! Errors of the store, reduced to what callers can act on.

use std::error::Error as StdError;

use model::causes;

/// The cause of an error.
pub type Cause = Box<dyn StdError + Send + Sync>;

/// An error of the store. Its text includes all causes, since only operators read it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine cannot be reached or cannot write now; retrying later can help.
    #[error("the store is not available: {}", causes(.0.as_ref()))]
    Unavailable(#[source] Cause),
    /// The store's queue is full.
    #[error("the store has too much to do")]
    Overloaded,
    /// A unique or foreign key was violated.
    #[error("a constraint was violated: {}", causes(.0.as_ref()))]
    Conflict(#[source] Cause),
    /// Stored data cannot be decoded.
    #[error("stored data is not as expected: {}", causes(.0.as_ref()))]
    Corrupt(#[source] Cause),
    /// A bug in our own code, such as an invalid statement.
    #[error("store fault: {}", causes(.0.as_ref()))]
    Internal(#[source] Cause),
    /// The encryption at rest failed.
    #[error(transparent)]
    Vault(#[from] crate::vault::VaultError),
    /// The blob store failed.
    #[error(transparent)]
    Blob(#[from] crate::blobs::BlobError),
}

/// Ends the text of the error by which PostgreSQL resolves a deadlock.
const DEADLOCK: &str = "(40P01)";

/// The result of a store call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The error of a whole group, for one of its members.
    pub(crate) fn of_group(&self) -> Self {
        Self::Unavailable(match self {
            Self::Unavailable(cause) => causes(cause.as_ref()).into(),
            other => other.to_string().into(),
        })
    }

    /// Whether PostgreSQL ended the transaction because others waited for it while it waited for them.
    pub(crate) fn is_deadlock(&self) -> bool {
        matches!(self, Self::Unavailable(cause) if cause.to_string().ends_with(DEADLOCK))
    }

    /// Stored JSON that cannot be parsed. The content is not quoted: it may be a user's mail.
    pub(crate) fn not_json(error: &serde_json::Error) -> Self {
        let place = (error.line(), error.column());
        Self::Corrupt(format!("JSON that does not fit at line {}, column {}", place.0, place.1).into())
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        match error.sqlite_error_code() {
            Some(Code::ConstraintViolation) => Self::Conflict(error.into()),
            Some(
                Code::DatabaseBusy
                | Code::DatabaseLocked
                | Code::DiskFull
                | Code::ReadOnly
                | Code::SystemIoFailure
                | Code::CannotOpen
                | Code::OutOfMemory,
            ) => Self::Unavailable(error.into()),
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => Self::Corrupt(error.into()),
            _ => Self::Internal(error.into()),
        }
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(db) = error.as_db_error() else {
            return Self::Unavailable(error.into());
        };
        // Not the error itself: its details quote the values that were to be stored.
        let text = format!("{} ({})", db.message(), db.code().code()).into();
        // The first two characters are the class: 23 integrity, 08/53/57/58 server trouble, 28/3D unknown role or
        // database.
        match db.code().code().get(..2) {
            Some("23") => Self::Conflict(text),
            Some("08" | "53" | "57" | "58" | "40" | "55" | "25" | "28" | "3D") => Self::Unavailable(text),
            Some("XX") => Self::Corrupt(text),
            _ => Self::Internal(text),
        }
    }
}

impl<E: Into<Self> + std::error::Error + Send + Sync + 'static> From<deadpool::managed::PoolError<E>>
    for Error
{
    fn from(error: deadpool::managed::PoolError<E>) -> Self {
        use deadpool::managed::{PoolError, TimeoutType};
        match error {
            PoolError::Backend(error) => error.into(),
            PoolError::Timeout(TimeoutType::Wait) => Self::Overloaded,
            other => Self::Unavailable(other.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_there_once() {
        let io = std::io::Error::other("no such route");
        let error = Error::Unavailable(io.into());
        assert_eq!(error.to_string(), "the store is not available: no such route");
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("no such route"));
        assert_eq!(causes(&error), error.to_string());
        assert_eq!(error.of_group().to_string(), error.to_string());
        let sqlite = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(13), None);
        let error = Error::from(sqlite);
        assert!(matches!(error, Error::Unavailable(_)));
        assert!(causes(&error).starts_with("the store is not available: "), "{error}");
        assert_eq!(causes(&error), error.to_string());
        let folder = crate::blobs::BlobError::Folder {
            action: "write",
            path: "/blobs/a".into(),
            cause: std::io::Error::other("disk full"),
        };
        let error = Error::from(folder);
        assert_eq!(causes(&error), "cannot write /blobs/a: disk full");
        assert!(error.source().is_some());
    }

    #[test]
    fn what_is_stored_is_not_quoted() {
        let error = serde_json::from_str::<Vec<u8>>("\"Unspeakable subject\"").unwrap_err();
        assert!(error.to_string().contains("Unspeakable"));
        assert!(!causes(&Error::not_json(&error)).contains("Unspeakable"));
    }
}
