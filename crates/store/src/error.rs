//! What can go wrong in the store, reduced to what callers can act on.

use std::error::Error as _;

/// A failure of the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine cannot be reached or cannot write now; trying again later can help.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// More work is waiting than the store accepts.
    #[error("the store has too much to do")]
    Overloaded,
    /// A unique or foreign key was violated.
    #[error("a constraint was violated: {0}")]
    Conflict(String),
    /// What is stored cannot be read back as what it should be.
    #[error("stored data is not as expected: {0}")]
    Corrupt(String),
    /// A fault in our own code, such as a statement that does not compile.
    #[error("store fault: {0}")]
    Internal(String),
    /// The encryption at rest failed.
    #[error(transparent)]
    Vault(#[from] crate::vault::VaultError),
    /// The blob store failed.
    #[error(transparent)]
    Blob(#[from] crate::blobs::BlobError),
}

/// The result of a store call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        match error.sqlite_error_code() {
            Some(Code::ConstraintViolation) => Self::Conflict(error.to_string()),
            Some(
                Code::DatabaseBusy
                | Code::DatabaseLocked
                | Code::DiskFull
                | Code::ReadOnly
                | Code::SystemIoFailure
                | Code::CannotOpen
                | Code::OutOfMemory,
            ) => Self::Unavailable(error.to_string()),
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => Self::Corrupt(error.to_string()),
            _ => Self::Internal(error.to_string()),
        }
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(db) = error.as_db_error() else {
            // The cause ("connection refused") is what an operator needs to read.
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            return Self::Unavailable(format!("{error}{cause}"));
        };
        let text = format!("{} ({})", db.message(), db.code().code());
        // The first two characters are the class: 23 integrity, 08/53/57/58 the server is in trouble, 28/3D it does not
        // know us or our database.
        match db.code().code().get(..2) {
            Some("23") => Self::Conflict(text),
            Some("08" | "53" | "57" | "58" | "40" | "55" | "25" | "28" | "3D") => Self::Unavailable(text),
            Some("XX") => Self::Corrupt(text),
            _ => Self::Internal(text),
        }
    }
}

impl From<deadpool_postgres::PoolError> for Error {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        match error {
            deadpool_postgres::PoolError::Backend(error) => error.into(),
            deadpool_postgres::PoolError::Timeout(deadpool_postgres::TimeoutType::Wait) => Self::Overloaded,
            other => Self::Unavailable(other.to_string()),
        }
    }
}
