//! Writing messages: new ones, replies, forwards, drafts and scheduled sends.

use std::collections::HashMap;

use askama::Template;
use axum::{
    Router,
    extract::{DefaultBodyLimit, Path, RawQuery, Request},
    http::StatusCode,
    response::Response,
    routing::{get, post},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use mail::{
    compose::quote,
    display::{self, ImageSources},
    html::escape,
    safe_text::SafeText,
};
use model::{
    EmailId,
    emails::{Attachment, BodyFormat, EmailQuery},
    sending::MAX_FILES_BYTES,
};
use operations::{Error, Result, assistant, attachments, drafts, emails, scheduled_sends, sending};
use serde_json::{Value, json};

use super::{
    fields::{Fields, input},
    forward::{self, draft_parts},
    links::encoded,
    message_form::{Form, parts, read_form},
    page::{self, html},
    shell::Shell,
    sidebar::fill_sidebar,
    text::person,
    time::size,
    visit::Visit,
};
use crate::{State, error, reply};

/// The largest form with attachments: a message's limit, in base64 for pictures in the text.
const MAX_FORM_BYTES: usize = MAX_FILES_BYTES * 3 / 2 + (4 << 20);

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/m/{mailbox}/compose", get(show).post(submit))
        .route("/console/m/{mailbox}/drafts/{draft}/delete", post(delete_draft))
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
}

/// The message being written.
#[derive(Default)]
struct ComposedMessage {
    /// `new`, `reply` or `forward`.
    mode: String,
    /// The email that is answered or forwarded.
    source: String,
    draft: String,
    in_reply_to: String,
    thread: String,
    to: String,
    cc: String,
    bcc: String,
    subject: String,
    /// The text as sanitised HTML.
    body: String,
    text: String,
    files: Vec<(String, String, String)>,
    /// What is added by itself: the attachments of a forwarded email.
    follows: usize,
    /// Whether the draft has an original below the text, which is not edited here.
    below: bool,
    /// When it is to be sent, as the input's value.
    at: String,
}

#[derive(Template)]
#[template(path = "console/compose.html")]
struct ComposePage {
    shell: Shell,
    heading: &'static str,
    from: String,
    message: ComposedMessage,
    said: String,
    /// Whether there is a language model to write with.
    model: bool,
    /// The price of that in credits.
    price: u64,
    suggestions: Vec<(String, String)>,
    zone: String,
    earliest: String,
}

async fn show(visit: Visit, Path(mailbox): Path<String>, RawQuery(query): RawQuery) -> Response {
    visit
        .answer(async {
            let fields = Fields::parse(query.unwrap_or_default().as_bytes());
            let message = begin(&visit, &mailbox, &fields).await?;
            render(&visit, &mailbox, message, String::new()).await
        })
        .await
}

async fn render(visit: &Visit, mailbox: &str, message: ComposedMessage, said: String) -> Result<Response> {
    let mut shell = visit.shell("Compose", "compose").await?;
    fill_sidebar(visit, &mut shell, mailbox).await?;
    let from = shell.mailboxes.iter().find(|one| one.id == mailbox).map(|one| one.email.clone());
    let heading = match message.mode.as_str() {
        "reply" => "Reply",
        "forward" => "Forward",
        _ if message.draft.is_empty() => "New mail",
        _ => "Draft",
    };
    heading.clone_into(&mut shell.head.title);
    html(&ComposePage {
        heading,
        from: from.unwrap_or_default(),
        suggestions: shell.zone.suggestions(),
        zone: shell.zone.name.clone(),
        earliest: shell.zone.field(visit.app().now()),
        model: assistant::is_configured(visit.app()),
        price: drafts::REGENERATE.class.credits(),
        message,
        said,
        shell,
    })
}

/// The form's initial content.
async fn begin(visit: &Visit, mailbox: &str, fields: &Fields) -> Result<ComposedMessage> {
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

async fn original(visit: &Visit, mailbox: &str, id: &str) -> Result<model::emails::Email> {
    let query: EmailQuery = input(&json!({ "include_held": true }))?;
    emails::get(visit.app(), &visit.call(&emails::GET)?, mailbox, id.into(), query).await
}

async fn answer_to(visit: &Visit, mailbox: &str, id: &str, all: bool) -> Result<ComposedMessage> {
    let mail = original(visit, mailbox, id).await?;
    let own =
        operations::mailboxes::get(visit.app(), &visit.call(&operations::mailboxes::GET)?, mailbox).await?;
    let is_own = |line: &str| {
        let address = person(line).1.to_ascii_lowercase();
        address == own.email || address == mail.recipient.to_ascii_lowercase()
    };
    let outgoing = mail.delivery_status.is_some();
    let reply_to = mail.provider_metadata.as_ref().and_then(|facts| facts.reply_to.clone());
    let to = if outgoing { mail.to.clone() } else { reply_to.unwrap_or_else(|| mail.sender.clone()) };
    let mut cc = Vec::new();
    if all {
        let lines = if outgoing {
            mail.cc.clone().unwrap_or_default()
        } else {
            format!("{}, {}", mail.to, mail.cc.clone().unwrap_or_default())
        };
        for one in super::text::split_people(&lines) {
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
            "<div><br></div><div>{}</div><blockquote>{}</blockquote>",
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

fn recipients(fields: &Fields, name: &str) -> Value {
    fields.given(name).map_or(Value::Null, |text| json!(text))
}

async fn submit(visit: Visit, Path(mailbox): Path<String>, request: Request) -> Response {
    let form = match read_form(&visit, request).await {
        Ok(form) => form,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    if form.fields.get("action") == "autosave" {
        return match save(&visit, &mailbox, &form).await {
            Ok(saved) => error::json_of(StatusCode::OK, &saved),
            Err(refused) => {
                error::json_of(error::status(refused.kind()), &json!({ "error": page::explain(&refused) }))
            }
        };
    }
    match perform(&visit, &mailbox, &form).await {
        Ok((target, said)) => visit.act("/console", async { Ok((target, said)) }).await,
        Err(refused) => visit.answer(again(&visit, &mailbox, &form, &refused)).await,
    }
}

/// The form again, with the error. Chosen files have to be chosen again.
async fn again(visit: &Visit, mailbox: &str, form: &Form, refused: &Error) -> Result<Response> {
    let fields = &form.fields;
    let text = |name: &str| fields.get(name).to_owned();
    let inline = |_: &str| None;
    let message = ComposedMessage {
        mode: text("mode"),
        source: text("source"),
        draft: text("draft_id"),
        in_reply_to: text("in_reply_to"),
        thread: text("thread_id"),
        to: text("to"),
        cc: text("cc"),
        bcc: text("bcc"),
        subject: text("subject"),
        body: match fields.given("html") {
            Some(editor) => display::sanitize(editor, &ImageSources { remote: false, inline: &inline }).html,
            None => escape(fields.get("text")).replace('\n', "<br>"),
        },
        text: text("text"),
        at: text("at"),
        files: kept_files(visit, mailbox, fields).await,
        follows: 0,
        below: fields.ticked("below"),
    };
    let mut said = page::explain(refused);
    if !form.files.is_empty() {
        said.push_str(" Please choose the files again.");
    }
    let mut response = render(visit, mailbox, message, said).await?;
    *response.status_mut() = error::status(refused.kind());
    Ok(response)
}

async fn kept_files(visit: &Visit, mailbox: &str, fields: &Fields) -> Vec<(String, String, String)> {
    let Some(id) = fields.given("draft_id") else { return Vec::new() };
    let Ok(call) = visit.call(&drafts::GET) else { return Vec::new() };
    let Ok(draft) = drafts::get(visit.app(), &call, mailbox, id.into()).await else { return Vec::new() };
    let kept = fields.all("keep");
    let fits = |file: &&Attachment| kept.contains(&file.id.as_str());
    let row = |file: &Attachment| (file.id.as_str().to_owned(), file.filename.clone(), size(file.size));
    draft.attachments.iter().filter(fits).map(row).collect()
}

/// Does what the pressed button says.
async fn perform(visit: &Visit, mailbox: &str, form: &Form) -> Result<(String, String)> {
    let base = format!("/console/m/{}", encoded(mailbox));
    match form.fields.get("action") {
        "save" => {
            save(visit, mailbox, form).await?;
            Ok((format!("{base}/f/draft"), "Draft saved.".to_owned()))
        }
        "schedule" => {
            let said = schedule(visit, mailbox, form).await?;
            Ok((format!("{base}/scheduled"), said))
        }
        _ => {
            send(visit, mailbox, form).await?;
            let back = match form.fields.given("thread_id") {
                Some(thread) if form.fields.get("mode") == "reply" => {
                    format!("{base}/f/inbox/{}", encoded(thread))
                }
                _ => format!("{base}/f/inbox"),
            };
            Ok((back, "Your mail is on its way.".to_owned()))
        }
    }
}

async fn send(visit: &Visit, mailbox: &str, form: &Form) -> Result<()> {
    let fields = &form.fields;
    let is_forward = fields.get("mode") == "forward" && fields.given("draft_id").is_none();
    let parts = if is_forward { parts(form) } else { draft_parts(visit, mailbox, form).await? };
    let (html, text) = match parts.format {
        "html" => (json!(parts.body), json!(SafeText::from_html(&parts.body).into_string())),
        _ => (Value::Null, json!(parts.body)),
    };
    let mut mail = json!({
        "to": recipients(fields, "to"), "cc": recipients(fields, "cc"), "bcc": recipients(fields, "bcc"),
        "subject": fields.get("subject"), "html": html, "text": text,
    });
    if fields.given("to").is_none() {
        return Err(Error::invalid("to", "add at least one recipient"));
    }
    let (app, source) = (visit.app(), fields.get("source"));
    match (fields.get("mode"), fields.given("draft_id")) {
        ("forward", None) => {
            if !parts.files.is_empty() {
                mail["attachments"] =
                    json!(forwarded_attachments(visit, mailbox, source, parts.files).await?);
            }
            let call = visit.call(&sending::FORWARD)?;
            sending::forward(app, &call, mailbox, source.into(), input(&mail)?, false).await?;
        }
        ("reply", None) => {
            mail["attachments"] = json!(parts.files);
            let call = visit.call(&sending::REPLY)?;
            sending::reply(app, &call, mailbox, source.into(), input(&mail)?, false).await?;
        }
        (_, draft) => {
            mail["attachments"] = json!(parts.files);
            mail["source_draft_id"] = json!(draft);
            sending::send(app, &visit.call(&sending::SEND)?, mailbox, input(&mail)?, false).await?;
        }
    }
    Ok(())
}

/// The attachments of a forwarded email, and new ones.
async fn forwarded_attachments(
    visit: &Visit,
    mailbox: &str,
    source: &str,
    new: Vec<Value>,
) -> Result<Vec<Value>> {
    let mail = original(visit, mailbox, source).await?;
    let own =
        mail.attachments.unwrap_or_default().into_iter().map(|file| json!({ "attachment_id": file.id }));
    Ok(own.chain(new).collect())
}

/// The email that the first draft of a form forwards; later drafts store it.
fn forwarded_email(fields: &Fields) -> Option<EmailId> {
    let is_first = fields.get("mode") == "forward" && fields.given("draft_id").is_none();
    is_first.then(|| fields.get("source").into())
}

/// The JSON of a draft or a scheduled send.
async fn draft_json(visit: &Visit, mailbox: &str, form: &Form) -> Result<Value> {
    let (fields, parts) = (&form.fields, draft_parts(visit, mailbox, form).await?);
    Ok(json!({
        "to": recipients(fields, "to"), "cc": recipients(fields, "cc"), "bcc": recipients(fields, "bcc"),
        "subject": fields.get("subject"), "body": parts.body, "body_format": parts.format,
        "in_reply_to": fields.given("in_reply_to"), "thread_id": fields.given("thread_id"),
        "draft_id": fields.given("draft_id"), "attachments": parts.files,
    }))
}

/// Saves a draft, and returns its id and attachments.
async fn save(visit: &Visit, mailbox: &str, form: &Form) -> Result<Value> {
    let request = input(&draft_json(visit, mailbox, form).await?)?;
    let call = visit.call(&drafts::SAVE)?;
    let saved =
        drafts::save_forward(visit.app(), &call, mailbox, request, forwarded_email(&form.fields)).await?;
    let draft = drafts::get(visit.app(), &visit.call(&drafts::GET)?, mailbox, saved.id.clone()).await?;
    let below = forward::pictures_below(&draft.body, draft.body_format, &draft.attachments);
    let files: Vec<Value> = draft
        .attachments
        .iter()
        .filter(|file| !below.contains(&file.id.as_str()))
        .filter(|file| !file.content_id.as_deref().unwrap_or_default().contains(".console"))
        .map(|file| json!({ "id": file.id, "name": file.filename, "size": size(file.size) }))
        .collect();
    let at = visit.zone().await?.when(visit.app().now()).short;
    let is_forward = forward::own_text(&draft.body, draft.body_format).is_some();
    Ok(json!({
        "draft_id": saved.id, "thread_id": draft.thread_id, "files": files, "saved": at, "below": is_forward,
        "html": draft.body_format == BodyFormat::Html,
    }))
}

async fn schedule(visit: &Visit, mailbox: &str, form: &Form) -> Result<String> {
    let zone = visit.zone().await?;
    let at = zone.parse(form.fields.get("at"))?;
    let mut request = draft_json(visit, mailbox, form).await?;
    request["scheduled_send_at"] = json!(at.to_string());
    let call = visit.call(&scheduled_sends::CREATE)?;
    let of = forwarded_email(&form.fields);
    scheduled_sends::create_forward(visit.app(), &call, mailbox, input(&request)?, of).await?;
    Ok(format!("It will be sent {}.", zone.when(at).full))
}

async fn delete_draft(visit: Visit, Path((mailbox, draft)): Path<(String, String)>) -> Response {
    let back = format!("/console/m/{}/f/draft", encoded(&mailbox));
    visit
        .act(&back, async {
            drafts::delete(visit.app(), &visit.call(&drafts::DELETE)?, &mailbox, draft.into()).await?;
            Ok((back.clone(), "Draft deleted.".to_owned()))
        })
        .await
}
