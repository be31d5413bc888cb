//! Errors on the wire: one shape, and the one table of statuses.

use std::any::Any;

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use operations::{Error, ErrorKind};
use schemars::JsonSchema;
use serde::Serialize;

/// The shape of every error.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub(crate) struct ErrorBody<'a> {
    /// What went wrong, for people.
    pub(crate) error: &'a str,
    /// What went wrong, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<&'a str>,
    /// The faulty fields.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) details: Vec<DetailBody<'a>>,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<&'a str>,
}

/// One faulty field.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ErrorDetail")]
pub(crate) struct DetailBody<'a> {
    /// Where, such as `attachments[0].content`.
    pub(crate) path: &'a str,
    /// What is wrong with it.
    pub(crate) message: &'a str,
}

/// The status of an error: the specification's table.
#[expect(clippy::too_many_lines, reason = "a line for each kind, and nothing else")]
pub(crate) const fn status(kind: ErrorKind) -> StatusCode {
    use ErrorKind as Kind;
    match kind {
        Kind::ValidationFailed
        | Kind::InvalidCursor
        | Kind::InvalidIdempotencyKey
        | Kind::FolderProtected
        | Kind::FolderUnknown
        | Kind::ConversationProtected
        | Kind::PaymentCredentials
        | Kind::EmailSendRecipientLimitExceeded => StatusCode::BAD_REQUEST,
        Kind::Unauthorized => StatusCode::UNAUTHORIZED,
        Kind::CreditsExhausted | Kind::PaymentRequired | Kind::SettlementFailed => {
            StatusCode::PAYMENT_REQUIRED
        }
        Kind::WorkspaceScopeDenied
        | Kind::PlanRequired
        | Kind::RoleRequired
        | Kind::ScopeRequired
        | Kind::CrossSiteRequest
        | Kind::ConfirmationInvalid
        | Kind::ContentWithheld
        | Kind::SenderNotAllowed
        | Kind::SendBlocked
        | Kind::DecisionForbidden
        | Kind::PaymentReused
        | Kind::QuotaExceeded => StatusCode::FORBIDDEN,
        Kind::NotFound => StatusCode::NOT_FOUND,
        Kind::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        Kind::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
        Kind::MailboxExists
        | Kind::FolderExists
        | Kind::LabelExists
        | Kind::DomainExists
        | Kind::DomainInUse
        | Kind::WebhookPaused
        | Kind::LastAdmin
        | Kind::AccountExists
        | Kind::AffiliateExists
        | Kind::DraftLocked
        | Kind::ReviewChanged
        | Kind::ReviewDecided
        | Kind::ReviewBlocked
        | Kind::MessageExists
        | Kind::ConversationBusy
        | Kind::TriagerProtected
        | Kind::PaymentInProgress
        | Kind::IdempotencyInProgress => StatusCode::CONFLICT,
        Kind::IdempotencyPayloadTooLarge
        | Kind::PayloadTooLarge
        | Kind::AttachmentTooLarge
        | Kind::AttachmentsTooLarge
        | Kind::TooManyAttachments
        | Kind::MessageTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Kind::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Kind::RangeNotSatisfiable => StatusCode::RANGE_NOT_SATISFIABLE,
        Kind::IdempotencyKeyReused
        | Kind::RecipientsRefused
        | Kind::RecipientSuppressed
        | Kind::OutboundNotConfigured => StatusCode::UNPROCESSABLE_ENTITY,
        Kind::RateLimited | Kind::EmailSendRateLimitExceeded | Kind::SendCapExceeded => {
            StatusCode::TOO_MANY_REQUESTS
        }
        Kind::AiUnavailable
        | Kind::MemoryUnavailable
        | Kind::TelegramUnavailable
        | Kind::Overloaded
        | Kind::StorageUnavailable
        | Kind::SettlementPending
        | Kind::FacilitatorUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        Kind::Internal | Kind::AlreadyAnswered | Kind::Rehearsed => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// An error as a response.
pub(crate) fn response(error: &Error) -> Response {
    let status = status(error.kind());
    if status.is_server_error() {
        tracing::error!(code = error.kind().code(), %error, "call failed");
    }
    let body = ErrorBody {
        error: error.message(),
        code: Some(error.kind().code()),
        details: error
            .details()
            .iter()
            .map(|detail| DetailBody { path: &detail.path, message: &detail.message })
            .collect(),
        fix: error.fix_or_default(),
    };
    let mut response = json(status, serde_json::to_vec(&body).unwrap_or_default());
    if let Some(seconds) = error.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(size) = error.size()
        && let Ok(range) = HeaderValue::from_str(&format!("bytes */{size}"))
    {
        response.headers_mut().insert(header::CONTENT_RANGE, range);
    }
    response
}

/// A response from JSON bytes.
pub(crate) fn json(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// A response from a value as JSON.
pub(crate) fn json_of<T: Serialize>(status: StatusCode, value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => json(status, body),
        Err(error) => response(&Error::internal(error)),
    }
}

pub(crate) async fn unknown_route() -> Response {
    response(&no_route())
}

/// The refusal of a path that this server does not have.
pub(crate) fn no_route() -> Error {
    Error::not_found("Not found").with_fix("Check the path: /docs and /openapi.json list every path.")
}

pub(crate) async fn wrong_method() -> Response {
    response(&Error::new(ErrorKind::MethodNotAllowed))
}

/// The response for a handler that panicked, in the shape of all errors.
#[expect(clippy::needless_pass_by_value, reason = "this is how a panic is handed over")]
pub(crate) fn panicked(payload: Box<dyn Any + Send>) -> Response {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
    response(&Error::internal(format!("panicked: {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rules: ERR-10
    #[test]
    fn whoever_is_refused_or_finds_nothing_is_told_what_to_do() {
        let mut seen = std::collections::HashSet::new();
        for kind in ErrorKind::ALL {
            assert!(seen.insert(kind), "{kind:?} is listed twice");
            if matches!(status(kind).as_u16(), 401 | 403 | 404) {
                let fix = Error::new(kind).fix_or_default().unwrap_or_default().to_owned();
                assert!(fix.ends_with('.'), "{kind:?} has no fix: {fix:?}");
            }
        }
    }
}
