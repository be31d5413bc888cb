//! What the form for a message holds at first: nothing, a reply, a forward, or a draft.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mail::{
    compose::quote,
    display::{self, ImageSources},
    html::escape,
    safe_text::SafeText,
};
use model::{
    EmailId,
    drafts::DraftState,
    emails::{Attachment, BodyFormat, Email, EmailQuery},
};
use operations::{Result, attachments, drafts, emails};
use serde_json::json;

use super::{
    approval,
    compose_view::ComposedMessage,
    fields::{Fields, input},
    forward,
    text::{person, split_people},
    time::size,
    visit::Visit,
};
use crate::reply;

/// The form's initial content.
pub(super) async fn begin(visit: &Visit, mailbox: &str, fields: &Fields) -> Result<ComposedMessage> {
    if let Some(id) = fields.given("draft") {
        return from_draft(visit, mailbox, id).await;
    }
    if let Some(id) = fields.given("reply") {
        return answer_to(visit, mailbox, id, fields.ticked("all")).await;
    }
    if let Some(id) = fields.given("forward") {
        let mail = original(visit, mailbox, id).await?;
        return Ok(ComposedMessage {
            mode: "forward".to_owned(),
            source: id.to_owned(),
            subject: quote::forward_subject(&mail.subject),
            follows: mail.attachments.map_or(0, |files| files.len()),
            ..ComposedMessage::default()
        });
    }
    Ok(ComposedMessage {
        mode: "new".to_owned(),
        to: fields.get("to").to_owned(),
        ..ComposedMessage::default()
    })
}

/// The message that a reply answers: the newest received one, else the newest own one that was sent.
pub(super) fn answered_email(emails: &[Email]) -> Option<&Email> {
    let is_unsent = |mail: &&Email| matches!(mail.folder_id.as_str(), "draft" | "scheduled" | "review");
    let is_own = |mail: &&Email| mail.delivery_status.is_some() || mail.folder_id.as_str() == "sent";
    let sent_or_received = || emails.iter().rev().filter(|mail| !is_unsent(mail));
    sent_or_received().find(|mail| !is_own(mail)).or_else(|| sent_or_received().next())
}

/// An email of the mailbox, with its text.
pub(super) async fn original(visit: &Visit, mailbox: &str, id: &str) -> Result<Email> {
    let query: EmailQuery = input(&json!({ "include_held": true }))?;
    emails::get(visit.app(), &visit.call(&emails::GET)?, mailbox, id.into(), query).await
}

async fn answer_to(visit: &Visit, mailbox: &str, id: &str, all: bool) -> Result<ComposedMessage> {
    let mail = original(visit, mailbox, id).await?;
    if mail.folder_id.as_str() == "draft" {
        // Nobody replies to a draft of their own: it is written on.
        return from_draft(visit, mailbox, id).await;
    }
    let own =
        operations::mailboxes::get(visit.app(), &visit.call(&operations::mailboxes::GET)?, mailbox).await?;
    let is_own = |line: &str| {
        let address = person(line).1.to_ascii_lowercase();
        address == own.email || address == mail.recipient.to_ascii_lowercase()
    };
    let outgoing = mail.delivery_status.is_some() || person(&mail.sender).1.eq_ignore_ascii_case(&own.email);
    let reply_to = mail.provider_metadata.as_ref().and_then(|facts| facts.reply_to.clone());
    let to = if outgoing { mail.to.clone() } else { reply_to.unwrap_or_else(|| mail.sender.clone()) };
    let mut cc = Vec::new();
    if all {
        let lines = if outgoing {
            mail.cc.clone().unwrap_or_default()
        } else {
            format!("{}, {}", mail.to, mail.cc.clone().unwrap_or_default())
        };
        for one in split_people(&lines) {
            let one = one.trim().to_owned();
            if !is_own(&one) && person(&one).1 != person(&to).1 && !cc.contains(&one) {
                cc.push(one);
            }
        }
    }
    let zone = visit.zone().await?;
    let original_text = match mail.body_format {
        Some(BodyFormat::Html) => SafeText::from_html(mail.body.as_deref().unwrap_or_default()).into_string(),
        _ => mail.body.clone().unwrap_or_default(),
    };
    let original_text: String = original_text.chars().take(20_000).collect();
    let opening = format!("On {}, {} wrote:", zone.when(mail.date).full, person(&mail.sender).0);
    let quoted: String = original_text.lines().fold(String::new(), |all, line| format!("{all}> {line}\n"));
    Ok(ComposedMessage {
        mode: "reply".to_owned(),
        source: id.to_owned(),
        in_reply_to: mail.message_id.clone().unwrap_or_default(),
        thread: mail.thread_id.as_ref().map(|id| id.as_str().to_owned()).unwrap_or_default(),
        subject: quote::reply_subject(&mail.subject),
        body: format!(
            "<div><br></div><div><br></div><div>{}</div><blockquote>{}</blockquote>",
            escape(&opening),
            escape(original_text.trim()).replace('\n', "<br>")
        ),
        text: format!("\n\n{opening}\n{quoted}"),
        to,
        cc: cc.join(", "),
        ..ComposedMessage::default()
    })
}

async fn from_draft(visit: &Visit, mailbox: &str, id: &str) -> Result<ComposedMessage> {
    let draft = drafts::get(visit.app(), &visit.call(&drafts::GET)?, mailbox, id.into()).await?;
    let drafted_by =
        approval::in_threads(visit, mailbox, vec![draft.thread_id.clone()]).await?.remove(&draft.id);
    let own_text = forward::own_text(&draft.body, draft.body_format);
    let below = forward::pictures_below(&draft.body, draft.body_format, &draft.attachments);
    let (mut inline_pictures, mut files) = (HashMap::new(), Vec::new());
    for file in draft.attachments.iter().filter(|file| !below.contains(&file.id.as_str())) {
        match data_of(visit, mailbox, &draft.id, file).await? {
            Some((id, data)) if draft.body.contains(&format!("cid:{id}")) => {
                inline_pictures.insert(id, data);
            }
            _ => files.push((file.id.as_str().to_owned(), file.filename.clone(), size(file.size))),
        }
    }
    let (is_forward, text_part) = (own_text.is_some(), own_text.unwrap_or(draft.body));
    let body = match draft.body_format {
        BodyFormat::Html => {
            let inline = |id: &str| inline_pictures.get(id).cloned();
            display::sanitize(&text_part, &ImageSources { remote: false, inline: &inline }).html
        }
        BodyFormat::Text => escape(&text_part).replace("\r\n", "\n").replace('\n', "<br>"),
    };
    let text = match draft.body_format {
        BodyFormat::Html => SafeText::from_html(&text_part).into_string(),
        BodyFormat::Text => text_part,
    };
    let zone = visit.zone().await?;
    Ok(ComposedMessage {
        mode: "new".to_owned(),
        draft: draft.id.as_str().to_owned(),
        in_reply_to: draft.in_reply_to.unwrap_or_default(),
        thread: draft.thread_id.as_str().to_owned(),
        to: draft.to.join(", "),
        cc: draft.cc.join(", "),
        bcc: draft.bcc.join(", "),
        subject: draft.subject,
        at: draft.scheduled_send_at.map(|at| zone.field(at)).unwrap_or_default(),
        body,
        text,
        files,
        below: is_forward,
        in_review: draft.status == DraftState::InReview,
        drafted_by,
        ..ComposedMessage::default()
    })
}

/// A draft's picture as a `data:` URL, with its content id.
async fn data_of(
    visit: &Visit,
    mailbox: &str,
    draft: &EmailId,
    file: &Attachment,
) -> Result<Option<(String, String)>> {
    let Some(id) = file.content_id.clone().filter(|_| file.size < 3_000_000) else { return Ok(None) };
    let call = visit.call(&attachments::GET_OF_EMAIL)?;
    let found = attachments::get(visit.app(), &call, mailbox, Some(draft.clone()), file.id.clone()).await?;
    let Some(kind) = reply::image_type(&found.bytes) else { return Ok(None) };
    let id = id.trim_matches(['<', '>']).to_owned();
    Ok(Some((id, format!("data:{kind};base64,{}", STANDARD.encode(&found.bytes)))))
}
