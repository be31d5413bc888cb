//! The kinds of errors: each has a stable code, a message, and where it helps what to do next.
//!
//! The HTTP door maps each to a status.

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
    ScopeRequired,
    CrossSiteRequest,
    ConfirmationInvalid,
    ContentWithheld,
    SenderNotAllowed,
    SendBlocked,
    RecipientSuppressed,
    DecisionForbidden,
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
    ReviewChanged,
    ReviewDecided,
    ReviewBlocked,
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
    SendCapExceeded,
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
        Self::ScopeRequired,
        Self::CrossSiteRequest,
        Self::ConfirmationInvalid,
        Self::ContentWithheld,
        Self::SenderNotAllowed,
        Self::SendBlocked,
        Self::RecipientSuppressed,
        Self::DecisionForbidden,
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
        Self::ReviewChanged,
        Self::ReviewDecided,
        Self::ReviewBlocked,
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
        Self::SendCapExceeded,
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
            Self::PlanRequired => {
                "Move the workspace to a plan that includes this; x-plans in /openapi.json names them."
            }
            Self::RoleRequired => "Use a key or an account with the admin role.",
            Self::ScopeRequired => {
                "Use a key with the scope that x-scope in /openapi.json names; GET /api/v1/me shows the scopes of yours."
            }
            Self::CrossSiteRequest => {
                "Send the Origin header with this server's own URL, as browsers do, or use an API key instead of a cookie."
            }
            Self::ConfirmationInvalid => {
                "Make the call without a confirmation, then confirm exactly that call with the new token."
            }
            Self::ContentWithheld => {
                "Read the email in safe mode, which leaves out what is unsafe; a person can look at the original in the console."
            }
            Self::SenderNotAllowed => {
                "Leave out `from`, or use the mailbox's own address; GET /api/v1/mailboxes/{mailboxId} shows it."
            }
            Self::SendBlocked => {
                "The send policy does not allow this message. Do not send it in another way; ask a person if it is needed."
            }
            Self::RecipientSuppressed => {
                "These addresses bounced, complained, unsubscribed or were added by hand. Do not write to them; GET /api/v1/workspaces/{workspaceId}/suppressions says why."
            }
            Self::DecisionForbidden => {
                "Another person or key decides about this message. Wait for the event review.approved or review.rejected."
            }
            Self::PaymentReused => "Sign a new payment for this request.",
            Self::QuotaExceeded => {
                "Delete something you no longer need, or move the workspace to a larger plan."
            }
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
            Self::ScopeRequired => "scope_required",
            Self::CrossSiteRequest => "cross_site_request",
            Self::ConfirmationInvalid => "confirmation_invalid",
            Self::ContentWithheld => "content_withheld",
            Self::SenderNotAllowed => "sender_not_allowed",
            Self::SendBlocked => "send_blocked",
            Self::RecipientSuppressed => "recipient_suppressed",
            Self::DecisionForbidden => "decision_forbidden",
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
            Self::ReviewChanged => "review_changed",
            Self::ReviewDecided => "review_decided",
            Self::ReviewBlocked => "review_blocked",
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
            Self::SendCapExceeded => "send_cap_exceeded",
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
                "The plan does not allow this many recipients in one request."
            }
            Self::Unauthorized => "Unauthorized",
            Self::CreditsExhausted => "All credits of this period are used.",
            Self::PaymentRequired => "Payment required",
            Self::SettlementFailed => "The payment could not be settled.",
            Self::PaymentCredentials => "A request can carry only one payment credential.",
            Self::PaymentReused => "This payment was used for another request.",
            Self::PaymentInProgress => "A request with this payment is still running.",
            Self::WorkspaceScopeDenied
            | Self::PlanRequired
            | Self::RoleRequired
            | Self::ScopeRequired
            | Self::CrossSiteRequest => "Forbidden",
            Self::ConfirmationInvalid => "The confirmation is not valid for this call.",
            Self::ContentWithheld => "This content is withheld because it is unsafe.",
            Self::SenderNotAllowed => "The mailbox cannot send from this address.",
            Self::SendBlocked => "The send policy does not allow this message.",
            Self::RecipientSuppressed => "All recipients of this message are suppressed.",
            Self::DecisionForbidden => "The requester of a message cannot decide about it.",
            Self::QuotaExceeded => "The workspace reached a limit of its plan.",
            Self::NotFound => "Not found",
            Self::MethodNotAllowed => "Method not allowed",
            Self::NotAcceptable => "Not acceptable",
            Self::UnsupportedMediaType => "Unsupported media type",
            Self::RangeNotSatisfiable => "The file does not have this range.",
            Self::MailboxExists => "This address is already in use.",
            Self::FolderExists => "A folder with this name already exists.",
            Self::LabelExists => "A label with this name already exists.",
            Self::DomainExists => "This domain is already in use.",
            Self::DomainInUse => "Remove mailboxes from this domain before deleting it.",
            Self::WebhookPaused => "The webhook is paused.",
            Self::LastAdmin => "A workspace needs at least one admin.",
            Self::AccountExists => "An account with this address already exists.",
            Self::AffiliateExists => "This affiliate account or code already exists.",
            Self::DraftLocked => "The draft is being sent, or was changed in the meantime.",
            Self::ReviewChanged => "The message changed since it was looked at.",
            Self::ReviewDecided => "A decision about this message was made already.",
            Self::ReviewBlocked => "The send policy forbids this message by now.",
            Self::MessageExists => "A message with this id already exists.",
            Self::ConversationBusy => "The agent is still replying to another message in this conversation.",
            Self::TriagerProtected => "The default triager cannot be deleted.",
            Self::IdempotencyInProgress => "A request with this Idempotency-Key is still running.",
            Self::IdempotencyPayloadTooLarge => {
                "The body is too large for a request with an Idempotency-Key."
            }
            Self::PayloadTooLarge => "The body is too large.",
            Self::AttachmentTooLarge => "An attachment is larger than 10 MiB.",
            Self::AttachmentsTooLarge => "The attachments together are larger than 25 MiB.",
            Self::TooManyAttachments => "An email can have at most 20 attachments.",
            Self::MessageTooLarge => "The encoded message is too large for the sender's address.",
            Self::IdempotencyKeyReused => "This Idempotency-Key was used for a different request.",
            Self::RecipientsRefused => "All recipients were refused.",
            Self::OutboundNotConfigured => "This server is not configured to send mail to other servers.",
            Self::RateLimited | Self::EmailSendRateLimitExceeded | Self::SendCapExceeded => {
                "Too many requests"
            }
            Self::AiUnavailable => "No language model is available.",
            Self::MemoryUnavailable => "The memory store is not available.",
            Self::TelegramUnavailable => "No Telegram bot is available.",
            Self::Overloaded => "The server is busy.",
            Self::StorageUnavailable => "The storage is not available.",
            Self::SettlementPending => "The payment is not settled yet. Repeat the same request.",
            Self::FacilitatorUnavailable => "Payments cannot be settled at the moment.",
            Self::Internal | Self::AlreadyAnswered | Self::Rehearsed => "Internal error",
        }
    }
}
