//! Automatic messages: reports, auto-replies, notifications and lists.
//!
//! Read from headers that anyone can set, so it may only make us more careful, never more trusting.

use super::header::Block;
use super::structure::Structure;

/// Kinds of automatic messages, which get no automatic reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Automatic {
    /// A delivery status notification (RFC 3464).
    DeliveryReport,
    /// A feedback report (RFC 5965).
    Complaint,
    /// An auto-reply (RFC 3834).
    Reply,
    /// Sent by a program: notices, receipts, codes.
    Generated,
    /// From a mailing list, or bulk mail.
    List,
}

/// Which kind of automatic mail a message is.
pub(super) fn detect(structure: &Structure<'_>) -> Option<Automatic> {
    report(structure).or_else(|| declared(&structure.header)).or_else(|| list(&structure.header))
}

/// Reports have a form of their own (RFC 6522).
fn report(structure: &Structure<'_>) -> Option<Automatic> {
    let root = structure.parts.first()?;
    let has_part = |media_type: &str| {
        structure.parts.iter().any(|part| part.parent == Some(0) && part.media_type == media_type)
    };
    let is_report = root.media_type == "multipart/report";
    let kind = root.parameters.keyword("report-type").unwrap_or_default();
    if is_report && (kind == "feedback-report" || has_part("message/feedback-report")) {
        return Some(Automatic::Complaint);
    }
    let from_daemon = structure.header.lower("From").is_some_and(|from| from.contains("mailer-daemon@"));
    let has_status = has_part("message/delivery-status") || has_part("message/global-delivery-status");
    if (is_report && (kind == "delivery-status" || has_status)) || (from_daemon && has_status) {
        return Some(Automatic::DeliveryReport);
    }
    (is_report && kind == "disposition-notification").then_some(Automatic::Reply)
}

/// What the headers declare (RFC 3834 and older conventions).
fn declared(header: &Block<'_>) -> Option<Automatic> {
    let submitted = header.lower("Auto-Submitted").unwrap_or_default();
    let submitted = submitted.split(';').next().unwrap_or_default().trim();
    let precedence = header.lower("Precedence").unwrap_or_default();
    let answers = ["X-Autoreply", "X-Autorespond", "X-Auto-Reply-From", "X-Mail-Autoreply", "X-Vacation"];
    let says_reply = submitted.starts_with("auto-replied")
        || matches!(precedence.as_str(), "auto_reply" | "auto-reply")
        || answers.iter().any(|name| header.lower(name).is_some_and(|value| value != "no"))
        || header.lower("X-Loop").is_some_and(|value| value.contains("vacation"));
    if says_reply {
        return Some(Automatic::Reply);
    }
    let is_list = header.has("List-Id") || header.has("List-Unsubscribe");
    let says_generated = (!submitted.is_empty() && submitted != "no")
        || header.has("X-Auto-Response-Suppress")
        || header.has("Feedback-ID");
    (says_generated && !is_list).then_some(Automatic::Generated)
}

/// Lists and bulk mail (RFC 2369, RFC 2919).
fn list(header: &Block<'_>) -> Option<Automatic> {
    let names = ["List-Id", "List-Unsubscribe", "List-Post", "List-Help"];
    let precedence = header.lower("Precedence").unwrap_or_default();
    let is_list =
        names.iter().any(|name| header.has(name)) || matches!(precedence.as_str(), "bulk" | "list" | "junk");
    is_list.then_some(Automatic::List)
}
