//! A conversation: its messages as a person sees them, and as an agent sees them.

use std::{collections::HashMap, fmt::Write as _};

use askama::Template;
use axum::{
    Router,
    extract::{Path, RawQuery},
    response::Response,
    routing::get,
};
use mail::html::escape;
use model::{
    EmailId,
    emails::{BodyFormat, Email, EmailQuery, ScanStatus},
    folders::SystemFolder,
};
use operations::{Error, Result, attachments, emails, labels, sending, threads};
use serde_json::json;

use super::{
    approval,
    compose_start::answered_email,
    fields::{Fields, input},
    links::encoded,
    message_badges::{Badge, badges, capital, threats},
    message_html::{frame_height, framed, pictures, sanitise},
    message_part,
    text::{initial, people, person, plain},
    time::{When, Zone, size},
    visit::Visit,
};
use crate::State;

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/m/{mailbox}/e/{email}/view", get(view))
        .route("/console/m/{mailbox}/e/{email}/frame", get(frame))
        .route("/console/m/{mailbox}/e/{email}/agent", get(agent))
        .route("/console/m/{mailbox}/e/{email}/details", get(details))
}

/// Messages of a conversation that are expanded at first.
const MAX_OPEN_MESSAGES: usize = 8;

/// An attachment.
pub(super) struct FileRow {
    url: String,
    name: String,
    size: String,
}

/// How a message's text is shown.
pub(super) enum BodyView {
    /// Collapsed.
    Collapsed,
    /// As plain text, converted to HTML.
    Plain(String),
    /// In a frame: its URL, its height, whether remote pictures were blocked, and whether they are shown.
    Frame { url: String, height: &'static str, blocked: bool, with_images: bool },
    /// Only after confirmation: it is dangerous.
    Withheld,
}

/// A message of a conversation.
pub(super) struct Message {
    id: String,
    name: String,
    address: String,
    initial: String,
    to: String,
    snippet: String,
    at: When,
    open: bool,
    /// Where a draft, or a message that waits for its time, can be edited or cancelled.
    edit: String,
    in_review: bool,
    /// Where a person decides about it, for those who may.
    review: String,
    badges: Vec<Badge>,
    threats: Vec<String>,
    files: Vec<FileRow>,
    body_view: BodyView,
    base: String,
    flagged: bool,
}

/// The conversation.
#[derive(Template)]
#[template(path = "console/reader.html")]
pub(super) struct Reader {
    subject: String,
    thread: String,
    mailbox: String,
    folder: String,
    list_url: String,
    messages: Vec<Message>,
    /// The message that Reply and Forward are about; `None` where there are only drafts.
    answered: Option<String>,
    unread: bool,
    starred: bool,
    older: bool,
    labels: Vec<(String, String, String, bool)>,
    targets: Vec<(String, String)>,
}

pub(super) async fn load(
    visit: &Visit,
    mailbox: &str,
    folder: &str,
    thread: &str,
    list_url: String,
) -> Result<Reader> {
    let query = input(&json!({ "metadata_only": true }))?;
    let call = visit.call(&threads::GET)?;
    let emails = threads::get(visit.app(), &call, mailbox, thread.into(), query).await?;
    let newest = emails.last().ok_or_else(|| Error::not_found("Conversation not found"))?;
    let known = labels::list(visit.app(), &visit.call(&labels::LIST)?, mailbox).await?;
    let has = |slug: &String| newest.custom_labels.contains(slug);
    let labels = known.into_iter().map(|one| (has(&one.slug), one));
    let labels = labels.map(|(has, one)| (one.slug, one.name, one.color, has)).collect();
    let subject = emails.first().map(|mail| mail.subject.clone()).unwrap_or_default();
    let folders =
        operations::folders::list(visit.app(), &visit.call(&operations::folders::LIST)?, mailbox).await?;
    let zone = visit.zone().await?;
    let approvals = approval::pending(visit, mailbox, &emails).await?;
    let reviews = approval::reviews(visit, mailbox, &emails).await?;
    let mut reader = Reader {
        subject: if subject.is_empty() { "(no subject)".to_owned() } else { subject },
        thread: thread.to_owned(),
        mailbox: mailbox.to_owned(),
        folder: folder.to_owned(),
        list_url,
        answered: answered_email(&emails).map(|mail| mail.id.as_str().to_owned()),
        unread: emails.iter().any(|mail| !mail.read),
        starred: newest.starred,
        older: newest.thread_count.unwrap_or(0) > i64::try_from(emails.len()).unwrap_or(i64::MAX),
        labels,
        targets: folders
            .into_iter()
            .map(|one| (one.id.as_str().to_owned(), one.name))
            .filter(|(id, _)| {
                id != folder && !matches!(id.as_str(), "draft" | "scheduled" | "review" | "sent")
            })
            .collect(),
        messages: Vec::with_capacity(emails.len()),
    };
    let (count, mut open) = (emails.len(), 0);
    for (index, mail) in emails.into_iter().enumerate() {
        let opened = index + 1 == count || (!mail.read && open < MAX_OPEN_MESSAGES);
        open += usize::from(opened);
        let needs_approval = approvals.contains_key(&mail.id);
        let review = reviews.get(&mail.id).map(|id| format!("/console/reviews/{}", encoded(id.as_str())));
        let mut shown = message(visit, mailbox, mail, opened, &zone).await?;
        shown.review = review.unwrap_or_default();
        if needs_approval {
            let why = "A triager wrote this draft. Check it, then send or delete it.".to_owned();
            shown.badges.insert(0, ("warn", "Needs approval".to_owned(), why));
        }
        reader.messages.push(shown);
    }
    Ok(reader)
}

/// A message, with its text when it is expanded.
async fn message(visit: &Visit, mailbox: &str, mail: Email, open: bool, zone: &Zone) -> Result<Message> {
    let base = format!("/console/m/{}/e/{}", encoded(mailbox), encoded(mail.id.as_str()));
    let mail = if open { read(visit, mailbox, mail.id.clone(), false).await? } else { mail };
    let flagged = mail.scan_status == Some(ScanStatus::Flagged);
    let body_view = match (open, flagged) {
        (false, _) => BodyView::Collapsed,
        (_, true) => BodyView::Withheld,
        _ => body_view(&mail, &base, false).await?,
    };
    let (name, address) = person(&mail.sender);
    let mut to = if mail.to.is_empty() { String::new() } else { format!("to {}", people(&mail.to)) };
    if let Some(cc) = mail.cc.as_deref().filter(|cc| !cc.is_empty()) {
        let _ = write!(to, "{}cc {}", if to.is_empty() { "" } else { ", " }, people(cc));
    }
    Ok(Message {
        initial: initial(&name),
        badges: badges(&mail),
        threats: threats(&mail),
        files: files(&mail, &base),
        snippet: mail.snippet.clone().unwrap_or_default(),
        at: zone.when(mail.date),
        in_review: mail.folder_id == SystemFolder::Review,
        review: String::new(),
        edit: match mail.folder_id.as_str() {
            "draft" => format!("/console/m/{}/compose?draft={}", encoded(mailbox), encoded(mail.id.as_str())),
            "scheduled" => format!("/console/m/{}/scheduled", encoded(mailbox)),
            _ => String::new(),
        },
        id: mail.id.as_str().to_owned(),
        name,
        address,
        to,
        open,
        body_view,
        base,
        flagged,
    })
}

async fn read(visit: &Visit, mailbox: &str, id: EmailId, safe: bool) -> Result<Email> {
    let query: EmailQuery = input(&json!({ "agent_safe_content": safe, "include_held": true }))?;
    emails::get(visit.app(), &visit.call(&emails::GET)?, mailbox, id, query).await
}

fn files(mail: &Email, base: &str) -> Vec<FileRow> {
    let all = mail.attachments.as_deref().unwrap_or_default();
    all.iter()
        .map(|file| FileRow {
            url: format!("{base}/a/{}", encoded(file.id.as_str())),
            name: file.filename.clone(),
            size: size(file.size),
        })
        .collect()
}

/// How a message's text is shown.
async fn body_view(mail: &Email, base: &str, with_images: bool) -> Result<BodyView> {
    let body = mail.body.clone().unwrap_or_default();
    if mail.body_format != Some(BodyFormat::Html) {
        return Ok(BodyView::Plain(plain(&body)));
    }
    let sanitised = sanitise(body, HashMap::new(), with_images).await?;
    let height = frame_height(sanitised.lines);
    let url = if with_images { format!("{base}/frame?images=1") } else { format!("{base}/frame") };
    Ok(BodyView::Frame { url, height, blocked: sanitised.blocked_images, with_images })
}

#[derive(Template)]
#[template(path = "console/message_view.html")]
struct ViewPart {
    body_view: BodyView,
    base: String,
    id: String,
}

/// A message's text, for an open conversation.
async fn view(
    visit: Visit,
    Path((mailbox, email)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    visit
        .answer(async {
            let images = Fields::parse(query.unwrap_or_default().as_bytes()).ticked("images");
            let mail = read(&visit, &mailbox, email.clone().into(), false).await?;
            let base = format!("/console/m/{}/e/{}", encoded(&mailbox), encoded(&email));
            let part = ViewPart { body_view: body_view(&mail, &base, images).await?, base, id: email };
            message_part::respond(&visit, &mailbox, &part.id, "Message", &part).await
        })
        .await
}

/// A message's HTML as a document of its own, for a sandboxed frame.
async fn frame(
    visit: Visit,
    Path((mailbox, email)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    visit
        .answer(async {
            let images = Fields::parse(query.unwrap_or_default().as_bytes()).ticked("images");
            let mail = read(&visit, &mailbox, email.into(), false).await?;
            let body = mail.body.clone().unwrap_or_default();
            let call = visit.call(&attachments::GET_OF_EMAIL)?;
            let parts = pictures(visit.app(), &call, &mailbox, &mail, &body).await?;
            let sanitised = match mail.body_format {
                Some(BodyFormat::Html) => sanitise(body, parts, images).await?.html,
                _ => format!("<pre>{}</pre>", escape(&body)),
            };
            Ok(framed(&sanitised, images))
        })
        .await
}

#[derive(Template)]
#[template(path = "console/message_agent.html")]
struct AgentPart {
    body_view: BodyView,
    id: String,
    text: String,
    facts: Vec<Badge>,
    withheld: bool,
}

/// What an agent sees, next to what a person sees.
async fn agent(visit: Visit, Path((mailbox, email)): Path<(String, String)>) -> Response {
    visit
        .answer(async {
            let base = format!("/console/m/{}/e/{}", encoded(&mailbox), encoded(&email));
            let mail = read(&visit, &mailbox, email.clone().into(), false).await?;
            let safe = read(&visit, &mailbox, email.clone().into(), true).await?;
            let flagged = mail.scan_status == Some(ScanStatus::Flagged);
            let body_view = if flagged { BodyView::Withheld } else { body_view(&mail, &base, false).await? };
            let mut facts: Vec<Badge> = Vec::new();
            if let Some(from) = safe.body_source {
                facts.push((
                    "",
                    format!("From {from}"),
                    "The part of the message that this text comes from.".to_owned(),
                ));
            }
            if safe.body_divergent == Some(true) {
                let said =
                    "The plain text and the HTML of this message differ, or it hides content.".to_owned();
                facts.push(("warn", "Parts differ".to_owned(), said));
            }
            if safe.content_truncated {
                facts.push(("", "Shortened".to_owned(), "Agents get only the beginning.".to_owned()));
            }
            let withheld = safe.content_omitted;
            let text = safe.body.unwrap_or_default();
            let part = AgentPart { body_view, id: email, text, facts, withheld };
            message_part::respond(&visit, &mailbox, &part.id, "Agent view", &part).await
        })
        .await
}

#[derive(Template)]
#[template(path = "console/message_details.html")]
struct DetailsPart {
    base: String,
    id: String,
    facts: Vec<(&'static str, String)>,
    recipients: Vec<(String, String, &'static str, String)>,
    headers: String,
}

/// Facts about a message, and its headers.
async fn details(visit: Visit, Path((mailbox, email)): Path<(String, String)>) -> Response {
    visit
        .answer(async {
            let zone = visit.zone().await?;
            let mail = read(&visit, &mailbox, email.clone().into(), false).await?;
            let checks = &mail.sender_authentication;
            let mut facts = vec![
                ("From", mail.sender.clone()),
                ("To", mail.to.clone()),
                ("Cc", mail.cc.clone().unwrap_or_default()),
                ("Bcc", mail.bcc.clone().unwrap_or_default()),
                ("Delivered to", mail.recipient.clone()),
                ("Date", zone.when(mail.date).full),
                ("Received", zone.when(mail.received_at).full),
                ("Message-ID", mail.message_id.clone().unwrap_or_default()),
                ("Folder", mail.folder_name.clone()),
                ("Size", mail.provider_metadata.as_ref().map(|facts| size(facts.size)).unwrap_or_default()),
                ("Stored", mail.body_storage_message.clone().unwrap_or_default()),
            ];
            if mail.delivery_status.is_none() {
                facts.push(("SPF", checks.spf.to_string()));
                facts.push(("DKIM", checks.dkim.to_string()));
                facts.push(("DMARC", checks.dmarc.to_string()));
                facts.push(("Scan", mail.scan_status.map_or("not yet".to_owned(), |scan| scan.to_string())));
            }
            facts.retain(|(_, value)| !value.is_empty());
            let recipients = recipients(&visit, &mailbox, &mail, &zone).await?;
            let base = format!("/console/m/{}/e/{}", encoded(&mailbox), encoded(&email));
            let headers = mail.raw_headers.unwrap_or_default();
            let part = DetailsPart { base, id: email, facts, recipients, headers };
            message_part::respond(&visit, &mailbox, &part.id, "Details", &part).await
        })
        .await
}

/// The delivery status of an outgoing message, by recipient.
async fn recipients(
    visit: &Visit,
    mailbox: &str,
    mail: &Email,
    zone: &Zone,
) -> Result<Vec<(String, String, &'static str, String)>> {
    if mail.delivery_status.is_none() {
        return Ok(Vec::new());
    }
    let call = visit.call(&sending::DELIVERY)?;
    let delivery = sending::delivery(visit.app(), &call, mailbox, mail.id.clone()).await?;
    let kind = |state: &str| match state {
        "sent" | "delivered" => "ok",
        "queued" => "info",
        "sandboxed" => "warn",
        _ => "bad",
    };
    let row = |one: model::sending::RecipientDelivery| {
        let state = one.state.as_str();
        let mut said = one.last_reply.unwrap_or_default();
        if let Some(next) = one.next_attempt_at {
            let _ = write!(said, " Next attempt: {}.", zone.when(next).full);
        }
        (one.recipient, capital(state), kind(state), said)
    };
    Ok(delivery.recipients.into_iter().map(row).collect())
}
