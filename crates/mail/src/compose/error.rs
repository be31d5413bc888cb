//! Why a message cannot be composed.
//!
//! Each error names the offending value, so that the sender can correct it.

use crate::address::AddressError;

/// Why a message cannot be composed; each text is one sentence for the sender.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ComposeError {
    /// A control character where none may be.
    #[error("The {field} must not contain {character:?}.")]
    Control {
        /// Which value.
        field: String,
        /// The first such character.
        character: char,
    },
    /// An invalid address.
    #[error("The {field} is not a mail address: {source}")]
    Address {
        /// Which value.
        field: String,
        /// What is wrong with it.
        source: AddressError,
    },
    /// An invalid id.
    #[error(
        "The {field} must be one word of visible ASCII without angle brackets, of at most 500 characters."
    )]
    Id {
        /// Which value.
        field: String,
    },
    /// Two files with one Content-ID.
    #[error("Two files have the content id {0:?}.")]
    RepeatedContentId(String),
    /// A subject over [`MAX_SUBJECT_BYTES`](super::MAX_SUBJECT_BYTES).
    #[error("The subject must be at most 998 bytes long once it is encoded.")]
    SubjectTooLong,
    /// A header that the sender may not set, or whose name is none.
    #[error("The header {0:?} cannot be set: only names that begin with X- or List- are allowed.")]
    HeaderName(String),
    /// A header value that cannot be written without changing it.
    #[error("The header {0:?} has a value that is too long or not plain ASCII.")]
    HeaderValue(String),
    /// More than [`MAX_HEADERS`](super::MAX_HEADERS).
    #[error("At most 20 headers can be set.")]
    TooManyHeaders,
    /// An invalid media type.
    #[error("{0:?} is not a media type such as image/png.")]
    MediaType(String),
    /// A time that a Date header cannot express.
    #[error("The date must lie between the years 1970 and 9999.")]
    Date,
}
