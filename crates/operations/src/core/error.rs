//! The error type of all operations.
//!
//! `message`, `details` and `fix` may be shown to callers; `source` may not. The HTTP door maps the kind to a status
//! in one `match`.

use std::{borrow::Cow, error::Error as StdError, fmt};

use model::drafts::DraftState;

/// The result of an operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, by the code that callers see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each name is the code that callers see; `code` and `message` spell it out")]
pub enum ErrorKind {
    ValidationFailed,
    InvalidCursor,
    InvalidIdempotencyKey,
    FolderProtected,
    FolderUnknown,
    ConversationProtected,
    EmailSendRecipientLimitExceeded,
    Unauthorized,
    CreditsExhausted,
    PaymentRequired,
    SettlementFailed,
    PaymentCredentials,
    PaymentReused,
    PaymentInProgress,
    WorkspaceScopeDenied,
    PlanRequired,
    RoleRequired,
    CrossSiteRequest,
    ConfirmationInvalid,
    ContentWithheld,
    SenderNotAllowed,
    QuotaExceeded,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    UnsupportedMediaType,
    RangeNotSatisfiable,
    MailboxExists,
    FolderExists,
    LabelExists,
    DomainExists,
    DomainInUse,
    WebhookPaused,
    LastAdmin,
    AccountExists,
    AffiliateExists,
    DraftLocked,
    MessageExists,
    ConversationBusy,
    TriagerProtected,
    IdempotencyInProgress,
    IdempotencyPayloadTooLarge,
    PayloadTooLarge,
    AttachmentTooLarge,
    AttachmentsTooLarge,
    TooManyAttachments,
    MessageTooLarge,
    IdempotencyKeyReused,
    RecipientsRefused,
    OutboundNotConfigured,
    RateLimited,
    EmailSendRateLimitExceeded,
    AiUnavailable,
    MemoryUnavailable,
    TelegramUnavailable,
    Overloaded,
    StorageUnavailable,
    SettlementPending,
    FacilitatorUnavailable,
    Internal,
    /// Internal: a dry run would have succeeded.
    Rehearsed,
    /// Internal: another request with the same idempotency key finished first.
    AlreadyAnswered,
}

impl ErrorKind {
    /// All kinds.
    pub const ALL: [Self; Self::AlreadyAnswered as usize + 1] = [
        Self::ValidationFailed,
        Self::InvalidCursor,
        Self::InvalidIdempotencyKey,
        Self::FolderProtected,
        Self::FolderUnknown,
        Self::ConversationProtected,
        Self::EmailSendRecipientLimitExceeded,
        Self::Unauthorized,
        Self::CreditsExhausted,
        Self::PaymentRequired,
        Self::SettlementFailed,
        Self::PaymentCredentials,
        Self::PaymentReused,
        Self::PaymentInProgress,
        Self::WorkspaceScopeDenied,
        Self::PlanRequired,
        Self::RoleRequired,
        Self::CrossSiteRequest,
        Self::ConfirmationInvalid,
        Self::ContentWithheld,
        Self::SenderNotAllowed,
        Self::QuotaExceeded,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::NotAcceptable,
        Self::UnsupportedMediaType,
        Self::RangeNotSatisfiable,
        Self::MailboxExists,
        Self::FolderExists,
        Self::LabelExists,
        Self::DomainExists,
        Self::DomainInUse,
        Self::WebhookPaused,
        Self::LastAdmin,
        Self::AccountExists,
        Self::AffiliateExists,
        Self::DraftLocked,
        Self::MessageExists,
        Self::ConversationBusy,
        Self::TriagerProtected,
        Self::IdempotencyInProgress,
        Self::IdempotencyPayloadTooLarge,
        Self::PayloadTooLarge,
        Self::AttachmentTooLarge,
        Self::AttachmentsTooLarge,
        Self::TooManyAttachments,
        Self::MessageTooLarge,
        Self::IdempotencyKeyReused,
        Self::RecipientsRefused,
        Self::OutboundNotConfigured,
        Self::RateLimited,
        Self::EmailSendRateLimitExceeded,
        Self::AiUnavailable,
        Self::MemoryUnavailable,
        Self::TelegramUnavailable,
        Self::Overloaded,
        Self::StorageUnavailable,
        Self::SettlementPending,
        Self::FacilitatorUnavailable,
        Self::Internal,
        Self::Rehearsed,
        Self::AlreadyAnswered,
    ];

    /// What to do next, for a caller of the API, unless the error has a better hint. Every kind that refuses access or
    /// finds nothing has one (a test of `web` goes through all).
    pub const fn fix(self) -> Option<&'static str> {
        Some(match self {
            Self::Unauthorized => {
                "Send an API key in the x-api-key header, or the cookie of a console session. If you do, it is wrong, \
                 expired or revoked: create a new key in the console."
            }
            Self::WorkspaceScopeDenied => {
                "Use the id of the workspace that your key or session belongs to: GET /api/v1/workspaces lists it."
            }
            Self::PlanRequired => "Move the workspace to a plan that includes this; x-plans in /openapi.json names them.",
            Self::RoleRequired => "Use a key or an account with the admin role.",
            Self::CrossSiteRequest => {
                "Send the Origin header with this server's own URL, as browsers do, or use an API key instead of a cookie."
            }
            Self::ConfirmationInvalid => "Make the call without a confirmation, then confirm exactly that call with the new token.",
            Self::ContentWithheld => {
                "Read the email in safe mode, which leaves out what is unsafe; a person can look at the original in the console."
            }
            Self::SenderNotAllowed => {
                "Leave out `from`, or use the mailbox's own address; GET /api/v1/mailboxes/{mailboxId} shows it."
            }
            Self::PaymentReused => "Sign a new payment for this request.",
            Self::QuotaExceeded => "Delete something you no longer need, or move the workspace to a larger plan.",
            Self::NotFound => {
                "Check the id: it may be misspelt or deleted, or belong to another workspace or mailbox. The list operation \
                 of the same resource shows the ids that exist."
            }
            _ => return None,
        })
    }

    /// The stable code.
    #[expect(clippy::too_many_lines, reason = "a line for each, and nothing else")]
    pub const fn code(self) -> &'static str {
        match self {
            Self::ValidationFailed => "validation_failed",
            Self::InvalidCursor => "invalid_cursor",
            Self::InvalidIdempotencyKey => "invalid_idempotency_key",
            Self::FolderProtected => "folder_protected",
            Self::FolderUnknown => "folder_unknown",
            Self::ConversationProtected => "conversation_protected",
            Self::EmailSendRecipientLimitExceeded => "email_send_recipient_limit_exceeded",
            Self::Unauthorized => "unauthorized",
            Self::CreditsExhausted => "credits_exhausted",
            Self::PaymentRequired => "payment_required",
            Self::SettlementFailed => "settlement_failed",
            Self::PaymentCredentials => "multiple_payment_credentials",
            Self::PaymentReused => "payment_reused",
            Self::PaymentInProgress => "payment_in_progress",
            Self::WorkspaceScopeDenied => "workspace_scope_denied",
            Self::PlanRequired => "plan_required",
            Self::RoleRequired => "role_required",
            Self::CrossSiteRequest => "cross_site_request",
            Self::ConfirmationInvalid => "confirmation_invalid",
            Self::ContentWithheld => "content_withheld",
            Self::SenderNotAllowed => "sender_not_allowed",
            Self::QuotaExceeded => "quota_exceeded",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::NotAcceptable => "not_acceptable",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::RangeNotSatisfiable => "range_not_satisfiable",
            Self::MailboxExists => "mailbox_exists",
            Self::FolderExists => "folder_exists",
            Self::LabelExists => "label_exists",
            Self::DomainExists => "domain_exists",
            Self::DomainInUse => "domain_in_use",
            Self::WebhookPaused => "webhook_paused",
            Self::LastAdmin => "last_admin",
            Self::AccountExists => "account_exists",
            Self::AffiliateExists => "affiliate_exists",
            Self::DraftLocked => "draft_locked",
            Self::MessageExists => "message_exists",
            Self::ConversationBusy => "conversation_busy",
            Self::TriagerProtected => "triager_protected",
            Self::IdempotencyInProgress => "idempotency_in_progress",
            Self::IdempotencyPayloadTooLarge => "idempotency_payload_too_large",
            Self::PayloadTooLarge => "payload_too_large",
            Self::AttachmentTooLarge => "attachment_too_large",
            Self::AttachmentsTooLarge => "attachments_too_large",
            Self::TooManyAttachments => "too_many_attachments",
            Self::MessageTooLarge => "message_too_large",
            Self::IdempotencyKeyReused => "idempotency_key_reused",
            Self::RecipientsRefused => "recipients_refused",
            Self::OutboundNotConfigured => "outbound_not_configured",
            Self::RateLimited => "rate_limited",
            Self::EmailSendRateLimitExceeded => "email_send_rate_limit_exceeded",
            Self::AiUnavailable => "ai_unavailable",
            Self::MemoryUnavailable => "memory_unavailable",
            Self::TelegramUnavailable => "telegram_unavailable",
            Self::Overloaded => "overloaded",
            Self::StorageUnavailable => "storage_unavailable",
            Self::SettlementPending => "settlement_pending",
            Self::FacilitatorUnavailable => "facilitator_unavailable",
            Self::Internal | Self::AlreadyAnswered | Self::Rehearsed => "internal_error",
        }
    }

    /// The message, unless the error has a better one.
    #[expect(clippy::too_many_lines, reason = "a table that is read by name")]
    pub const fn message(self) -> &'static str {
        match self {
            Self::ValidationFailed => "Invalid request",
            Self::InvalidCursor => "Invalid cursor",
            Self::InvalidIdempotencyKey => "Invalid Idempotency-Key",
            Self::FolderProtected => "This folder cannot be changed.",
            Self::FolderUnknown => "There is no such folder.",
            Self::ConversationProtected => "This conversation cannot be changed.",
            Self::EmailSendRecipientLimitExceeded => {
                "The plan does not allow so many recipients in one request."
            }
            Self::Unauthorized => "Unauthorized",
            Self::CreditsExhausted => "The credits of this period are used up.",
            Self::PaymentRequired => "Payment required",
            Self::SettlementFailed => "The payment could not be settled.",
            Self::PaymentCredentials => "A request takes one payment credential.",
            Self::PaymentReused => "This payment was used for another request.",
            Self::PaymentInProgress => "A request with this payment is still running.",
            Self::WorkspaceScopeDenied | Self::PlanRequired | Self::RoleRequired | Self::CrossSiteRequest => {
                "Forbidden"
            }
            Self::ConfirmationInvalid => "The confirmation does not hold for this call.",
            Self::ContentWithheld => "This content is withheld because it is unsafe.",
            Self::SenderNotAllowed => "The mailbox may not send from this address.",
            Self::QuotaExceeded => "A limit of the workspace's plan is reached.",
            Self::NotFound => "Not found",
            Self::MethodNotAllowed => "Method not allowed",
            Self::NotAcceptable => "Not acceptable",
            Self::UnsupportedMediaType => "Unsupported media type",
            Self::RangeNotSatisfiable => "The file has no such range.",
            Self::MailboxExists => "This address is already in use.",
            Self::FolderExists => "A folder with this id exists.",
            Self::LabelExists => "A label with this slug exists.",
            Self::DomainExists => "This domain is already in use.",
            Self::DomainInUse => "Remove mailboxes from this domain before deleting it.",
            Self::WebhookPaused => "The webhook is paused.",
            Self::LastAdmin => "A workspace needs at least one admin.",
            Self::AccountExists => "An account with this address exists.",
            Self::AffiliateExists => "This affiliate account or code exists.",
            Self::DraftLocked => "The draft is being sent or was changed meanwhile.",
            Self::MessageExists => "A message with this id exists.",
            Self::ConversationBusy => "The agent is still answering another message of this conversation.",
            Self::TriagerProtected => "The default triager cannot be deleted.",
            Self::IdempotencyInProgress => "A request with this Idempotency-Key is still running.",
            Self::IdempotencyPayloadTooLarge => {
                "The body is too large for a request with an Idempotency-Key."
            }
            Self::PayloadTooLarge => "The body is too large.",
            Self::AttachmentTooLarge => "A file has more than 10 MiB.",
            Self::AttachmentsTooLarge => "The files together have more than 25 MiB.",
            Self::TooManyAttachments => "A mail has at most 20 files.",
            Self::MessageTooLarge => "The encoded message is too large for the sender's address.",
            Self::IdempotencyKeyReused => "This Idempotency-Key was used for a different request.",
            Self::RecipientsRefused => "No recipient is taken here.",
            Self::OutboundNotConfigured => "This server has no way to send mail to other servers.",
            Self::RateLimited | Self::EmailSendRateLimitExceeded => "Too many requests",
            Self::AiUnavailable => "No language model is available.",
            Self::MemoryUnavailable => "The memory store is not available.",
            Self::TelegramUnavailable => "No Telegram bot is available.",
            Self::Overloaded => "The server is busy.",
            Self::StorageUnavailable => "The storage is not available.",
            Self::SettlementPending => "The payment is not settled yet; repeat the same request.",
            Self::FacilitatorUnavailable => "Payments cannot be settled at the moment.",
            Self::Internal | Self::AlreadyAnswered | Self::Rehearsed => "Internal error",
        }
    }
}

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
            format!("The plan's limit of {limit} {what} is reached."),
        )
        .with_fix(format!("Remove some of the {what} or move the workspace to a larger plan."))
    }

    /// The refusal to change a draft that is being sent or was sent.
    pub(crate) fn draft_locked(state: DraftState) -> Self {
        let fix = match state {
            DraftState::Sent => "It has left already.",
            DraftState::Failed => "Cancel it, mend the draft and schedule it anew.",
            _ => "It is leaving right now; read it again in a moment.",
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
