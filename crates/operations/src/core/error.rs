//! The error type of all operations.
//!
//! `message`, `details` and `fix` may be shown to callers; `source` may not. The HTTP door maps the kind to a status
//! in one `match`.

use std::{borrow::Cow, error::Error as StdError, fmt};

use model::drafts::DraftState;

pub use super::error_kind::ErrorKind;

/// The result of an operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// One faulty field of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    /// Where, such as `attachments[0].content`.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl Detail {
    /// What is wrong with a field.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

/// Why an operation failed.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    details: Vec<Detail>,
    fix: Option<Cow<'static, str>>,
    retry_after: Option<u64>,
    size: Option<usize>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// The refusal for a plan's limit.
    pub(crate) fn quota(what: &str, limit: model::Limit) -> Self {
        Self::with_message(
            ErrorKind::QuotaExceeded,
            format!("The workspace reached its plan's limit of {limit} {what}."),
        )
        .with_fix(format!("Delete some {what}, or move the workspace to a larger plan."))
    }

    /// The refusal to change a draft that is being sent or was sent.
    pub(crate) fn draft_locked(state: DraftState) -> Self {
        let fix = match state {
            DraftState::Sent => "It was already sent.",
            DraftState::Failed => "Cancel it, fix the draft and schedule it again.",
            DraftState::Scheduled | DraftState::Deferred => "Cancel its schedule first.",
            DraftState::InReview => "A person decides about it. Withdraw the review to change it.",
            _ => "It is being sent; read it again in a moment.",
        };
        Self::new(ErrorKind::DraftLocked).with_fix(fix)
    }

    /// An error with the message of its kind.
    pub fn new(kind: ErrorKind) -> Self {
        Self::with_message(kind, kind.message())
    }

    /// An error with a message of its own.
    pub fn with_message(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            details: Vec::new(),
            fix: None,
            retry_after: None,
            size: None,
            source: None,
        }))
    }

    /// Something that does not exist, or belongs to another workspace.
    pub fn not_found(message: &'static str) -> Self {
        Self::with_message(ErrorKind::NotFound, message)
    }

    /// One faulty field.
    pub fn invalid(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::ValidationFailed).with_details(vec![Detail::new(path, message)])
    }

    /// Several faulty fields; none is no error.
    pub fn refuse(details: Vec<Detail>) -> Result<()> {
        if details.is_empty() {
            Ok(())
        } else {
            Err(Self::new(ErrorKind::ValidationFailed).with_details(details))
        }
    }

    /// A range outside of a file of this size.
    pub fn range_not_satisfiable(size: usize) -> Self {
        let mut error = Self::new(ErrorKind::RangeNotSatisfiable);
        error.0.size = Some(size);
        error
    }

    /// An internal fault; the cause goes to the log only.
    pub fn internal(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let mut error = Self::new(ErrorKind::Internal);
        error.0.source = Some(source.into());
        error
    }

    /// The same error as another kind, with the message of that kind.
    pub(crate) fn of_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self.0.message = kind.message().into();
        self
    }

    /// Adds the faulty fields.
    pub fn with_details(mut self, details: Vec<Detail>) -> Self {
        self.0.details = details;
        self
    }

    /// Adds a sentence that says what to do next.
    pub fn with_fix(mut self, fix: impl Into<Cow<'static, str>>) -> Self {
        self.0.fix = Some(fix.into());
        self
    }

    /// Adds when to retry.
    pub fn with_retry_after(mut self, seconds: u64) -> Self {
        self.0.retry_after = Some(seconds);
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }
    /// The message for the caller.
    pub fn message(&self) -> &str {
        &self.0.message
    }
    /// The faulty fields.
    pub fn details(&self) -> &[Detail] {
        &self.0.details
    }
    /// What to do next, if this error knows better than its kind.
    pub fn fix(&self) -> Option<&str> {
        self.0.fix.as_deref()
    }
    /// What a caller of the API is to do next: the error's own hint, or that of its kind.
    pub fn fix_or_default(&self) -> Option<&str> {
        self.fix().or(self.0.kind.fix())
    }
    /// The size of the file for an unsatisfiable range.
    pub fn size(&self) -> Option<usize> {
        self.0.size
    }
    /// When to retry, in seconds.
    pub fn retry_after(&self) -> Option<u64> {
        self.0.retry_after
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = &*self.0.message;
        let goes_on = self.0.details.is_empty() && self.0.source.is_some();
        f.write_str(if goes_on { message.strip_suffix('.').unwrap_or(message) } else { message })?;
        for detail in &self.0.details {
            write!(f, "; {}: {}", detail.path, detail.message)?;
        }
        // Only logs and operators read this text, so it includes all causes; callers get the message.
        if let Some(source) = &self.0.source {
            write!(f, ": {}", model::causes(source.as_ref()))?;
        }
        Ok(())
    }
}
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.0.kind.code())
    }
}
impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        let (kind, retry_after) = match &error {
            store::Error::Unavailable(_) | store::Error::Blob(_) => (ErrorKind::StorageUnavailable, Some(2)),
            store::Error::Overloaded => (ErrorKind::Overloaded, Some(1)),
            _ => (ErrorKind::Internal, None),
        };
        let mut converted = Self::new(kind);
        converted.0.retry_after = retry_after;
        converted.0.source = Some(Box::new(error));
        converted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_every_cause_once() {
        let io = std::io::Error::other("connection refused");
        let error = Error::from(store::Error::Unavailable(io.into()));
        let whole = "The storage is not available: the store is not available: connection refused";
        assert_eq!(error.to_string(), whole);
        assert_eq!(model::causes(&error), whole);
        let deepest = error.source().and_then(StdError::source).map(ToString::to_string);
        assert_eq!(deepest.as_deref(), Some("connection refused"));
        // Callers read the message, which has no cause.
        assert_eq!(error.message(), "The storage is not available.");
        let error = Error::internal(Error::internal("deep"));
        assert_eq!(model::causes(&error), "Internal error: Internal error: deep");
        let error = Error::invalid("name", "is too long.");
        assert_eq!(error.to_string(), "Invalid request; name: is too long.");
    }
}
