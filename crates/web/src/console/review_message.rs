//! A message in review as it will leave: its recipients, text and files, why a person is asked, and what changed since the
//! draft.

use std::collections::HashMap;

use axum::response::Response;
use mail::{html::escape, safe_text::SafeText};
use model::{
    ReviewId,
    emails::{Email, EmailQuery},
    reviews::{FindingKind, Review},
    send_policies::PolicyReason,
};
use operations::{
    App, Call, Result, emails,
    reviews::decide::{self, ReviewMessage},
};
use serde_json::json;

use super::{
    fields::input,
    line_diff::{self, DiffLine},
    links::encoded,
    message_badges::Badge,
    message_html::{frame_height, framed, pictures, sanitise},
    review_words::{place, reason_badge, requester},
    text::{person, plain, split_people},
    time::{When, Zone, size},
};

/// A message that expires within so many seconds is marked.
const SOON_SECONDS: u64 = 6 * 3600;

/// A recipient, and whether the workspace has never written to the address.
pub(super) struct Recipient {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) is_new: bool,
}

/// An attachment.
pub(super) struct File {
    /// Where it can be downloaded; empty if it cannot.
    pub(super) url: String,
    pub(super) name: String,
    pub(super) size: String,
}

/// How the text of the message is shown.
pub(super) enum Body {
    /// As plain text, converted to HTML.
    Plain(String),
    /// In a frame: its URL and its height.
    Frame(String, &'static str),
}

/// A message in review.
pub(super) struct PendingMessage {
    pub(super) id: String,
    pub(super) digest: String,
    pub(super) email: Email,
    pub(super) from: (String, String),
    pub(super) lines: Vec<(&'static str, Vec<Recipient>)>,
    pub(super) subject: String,
    /// The text as a person can edit it.
    pub(super) text: String,
    pub(super) is_html: bool,
    pub(super) body: Body,
    pub(super) files: Vec<File>,
    pub(super) reasons: Vec<Badge>,
    /// What was found in the contents: where, and what it looks like without its value.
    pub(super) findings: Vec<(String, String)>,
    /// The subject of the draft, if it was another one.
    pub(super) drafted_subject: Option<String>,
    pub(super) changes: Vec<DiffLine>,
    pub(super) requester: String,
    pub(super) asked: When,
    pub(super) expires: When,
    pub(super) is_urgent: bool,
    pub(super) scheduled: Option<When>,
}

/// Whether nobody has much time left to decide.
pub(super) fn expires_soon(review: &Review, now: model::Timestamp) -> bool {
    now.seconds_until(review.expires_at) < SOON_SECONDS
}

/// Reads a pending message: with a call that may see reviews, and one that may read emails.
pub(super) async fn load(
    app: &App,
    (reading, opening): (&Call, &Call),
    id: ReviewId,
    (zone, frame): (&Zone, String),
) -> Result<PendingMessage> {
    let message = decide::message(app, reading, id).await?;
    let email = read(app, opening, &message.review).await?;
    let review = &message.review;
    let body = match &message.html {
        Some(html) => {
            let sanitised = sanitise(html.clone(), HashMap::new(), false).await?;
            Body::Frame(frame, frame_height(sanitised.lines))
        }
        None => Body::Plain(plain(message.text.as_deref().unwrap_or_default())),
    };
    let text = plain_text(&message);
    let base = format!("/console/m/{}/e/{}", encoded(review.mailbox_id.as_str()), encoded(email.id.as_str()));
    let drafted = message.drafted.as_ref();
    Ok(PendingMessage {
        lines: recipient_lines(&message),
        digest: review.digest.clone(),
        from: person(&email.sender),
        files: files(&email, &base),
        drafted_subject: drafted.map(|(subject, _)| subject.clone()).filter(|text| *text != message.subject),
        changes: drafted.map(|(_, body)| line_diff::compare(&as_text(body), &text)).unwrap_or_default(),
        reasons: review.reasons.iter().map(|reason| reason_badge(*reason)).collect(),
        findings: findings(review),
        requester: requester(review),
        asked: zone.when(review.created_at),
        expires: zone.when(review.expires_at),
        is_urgent: expires_soon(review, reading.now),
        scheduled: review.scheduled_send_at.map(|at| zone.when(at)),
        id: review.id.as_str().to_owned(),
        is_html: message.html.is_some(),
        subject: message.subject,
        body,
        text,
        email,
    })
}

/// What was found in the contents, in the order of the message. A file is no finding beside what was found in it.
fn findings(review: &Review) -> Vec<(String, String)> {
    let shown = review.findings.iter().filter(|one| one.kind != FindingKind::Attachment);
    shown.map(|one| (place(&one.place).to_owned(), one.masked.clone())).collect()
}

/// The recipients by line, those marked that are in review since they are new.
fn recipient_lines(message: &ReviewMessage) -> Vec<(&'static str, Vec<Recipient>)> {
    let is_new = |path: &str| {
        let mut findings = message.findings.iter();
        findings.any(|one| one.code == PolicyReason::NewRecipient && one.path.as_deref() == Some(path))
    };
    let line = |(label, line): &(&'static str, String)| {
        let people = split_people(line).into_iter().enumerate().map(|(index, one)| {
            let (name, address) = person(&one);
            let is_new = is_new(&format!("{}[{index}]", label.to_ascii_lowercase()));
            Recipient { name, address, is_new }
        });
        (*label, people.collect())
    };
    message.recipients.iter().map(line).collect()
}

/// The text of a message as a person can edit it.
fn plain_text(message: &ReviewMessage) -> String {
    match (&message.text, &message.html) {
        (Some(text), _) => text.clone(),
        (None, Some(html)) => SafeText::from_html(html).into_string(),
        (None, None) => String::new(),
    }
}

/// The text of a draft, which may be HTML.
fn as_text(body: &str) -> String {
    if body.trim_start().starts_with('<') { SafeText::from_html(body).into_string() } else { body.to_owned() }
}

fn files(email: &Email, base: &str) -> Vec<File> {
    let all = email.attachments.as_deref().unwrap_or_default().iter();
    all.map(|file| File {
        url: format!("{base}/a/{}", encoded(file.id.as_str())),
        name: file.filename.clone(),
        size: size(file.size),
    })
    .collect()
}

/// The email of a review.
async fn read(app: &App, call: &Call, review: &Review) -> Result<Email> {
    let query: EmailQuery = input(&json!({ "include_held": true }))?;
    emails::get(app, call, review.mailbox_id.as_str(), review.email_id.clone(), query).await
}

/// The HTML of a pending message as a document of its own, for a sandboxed frame. Remote pictures are never loaded: what
/// the recipients get to see there is not known before.
pub(super) async fn frame(
    app: &App,
    (reading, opening, fetching): (&Call, &Call, &Call),
    id: ReviewId,
) -> Result<Response> {
    let message = decide::message(app, reading, id).await?;
    let Some(html) = message.html else {
        let text = message.text.unwrap_or_default();
        return Ok(framed(&format!("<pre>{}</pre>", escape(&text)), false));
    };
    let email = read(app, opening, &message.review).await?;
    let parts = pictures(app, fetching, message.review.mailbox_id.as_str(), &email, &html).await?;
    Ok(framed(&sanitise(html, parts, false).await?.html, false))
}
