//! Writing messages: new ones, replies, forwards, drafts and scheduled sends.

use axum::{
    Router,
    extract::{DefaultBodyLimit, Path, RawQuery, Request},
    http::StatusCode,
    response::Response,
    routing::{get, post},
};
use mail::safe_text::SafeText;
use model::sending::{MAX_FILES_BYTES, SendStatus, SentMail};
use operations::{Result, drafts, scheduled_sends, sending};
use serde_json::{Value, json};

use super::{
    attachment_reminder,
    compose_start::{begin, original},
    compose_view::{FieldErrors, Notice, render, render_inline},
    confirm::{Question, confirmed},
    draft_form::{self, draft_json, forwarded_email, recipients, require_recipient, save},
    fields::{Fields, input},
    forward::draft_parts,
    links::{encoded, safe_next},
    message_form::{Form, parts, read_form},
    page, rewrite,
    undo::{Outcome, Undo},
    undo_send,
    visit::Visit,
};
use crate::{State, error};

/// The largest form with attachments: a message's limit, in base64 for images in the text.
const MAX_FORM_BYTES: usize = MAX_FILES_BYTES * 3 / 2 + (4 << 20);

const ON_ITS_WAY: &str = "Your message is on its way.";

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/m/{mailbox}/compose", get(show).post(submit))
        .route("/console/m/{mailbox}/drafts/{draft}/delete", post(delete_draft))
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
}

async fn show(visit: Visit, Path(mailbox): Path<String>, RawQuery(query): RawQuery) -> Response {
    visit
        .answer(async {
            let fields = Fields::parse(query.unwrap_or_default().as_bytes());
            let mut message = begin(&visit, &mailbox, &fields).await?;
            if message.in_review {
                let list = format!("/console/m/{}/f/review", encoded(&mailbox));
                return Ok(page::go_to(&visit.headers, &list));
            }
            let target = visit.headers.get("hx-target").and_then(|id| id.to_str().ok());
            if page::is_partial(&visit.headers) && target == Some("reply-form") {
                message.back = open_page(&visit);
                return render_inline(&visit, &mailbox, message).await;
            }
            render(&visit, &mailbox, message, Notice::default()).await
        })
        .await
}

/// The path of the page that is open in the browser, if the script says.
fn open_page(visit: &Visit) -> String {
    let url = visit.headers.get("hx-current-url").and_then(|url| url.to_str().ok()).unwrap_or_default();
    let path = url.find("/console/").and_then(|at| url.get(at..)).unwrap_or_default();
    if path.is_empty() { String::new() } else { safe_next(path).to_owned() }
}

async fn submit(visit: Visit, Path(mailbox): Path<String>, request: Request) -> Response {
    let form = match read_form(&visit, request).await {
        Ok(form) => form,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let reminder = match form.fields.get("action") {
        "autosave" => {
            let saved = async { draft_form::told(&visit, &save(&visit, &mailbox, &form).await?).await };
            return match saved.await {
                Ok(answer) => error::json_of(StatusCode::OK, &answer),
                Err(refused) => rewrite::refuse(&refused),
            };
        }
        action if action.starts_with("rewrite") => return rewrite::act(&visit, &mailbox, &form).await,
        "send" => Some("send"),
        "schedule" => Some("schedule"),
        _ => None,
    };
    if reminder.is_some() && attachment_reminder::is_due(&form) {
        let notice = Notice { reminder, ..Notice::default() };
        return visit.answer(show_again(&visit, &mailbox, &form, notice)).await;
    }
    let performed = async {
        if form.fields.get("action") != "save" {
            require_recipient(&form.fields)?;
        }
        perform(&visit, &mailbox, &form).await
    };
    match performed.await {
        Ok(outcome) => visit.leave("/console", Ok(outcome)),
        Err(refused) => {
            let notice = Notice { errors: FieldErrors::of(&refused), ..Notice::default() };
            let mut response = visit.answer(show_again(&visit, &mailbox, &form, notice)).await;
            if response.status() == StatusCode::OK {
                *response.status_mut() = error::status(refused.kind());
            }
            response
        }
    }
}

/// The form again, with everything that was typed.
async fn show_again(visit: &Visit, mailbox: &str, form: &Form, notice: Notice) -> Result<Response> {
    let message = draft_form::again(visit, mailbox, form).await;
    render(visit, mailbox, message, notice).await
}

/// Does what the pressed button says.
async fn perform(visit: &Visit, mailbox: &str, form: &Form) -> Result<Outcome> {
    let base = format!("/console/m/{}", encoded(mailbox));
    match form.fields.get("action") {
        "save" => {
            save(visit, mailbox, form).await?;
            let back = form.fields.given("back").map(|back| safe_next(back).to_owned());
            Ok((back.unwrap_or_else(|| format!("{base}/f/draft")), "Draft saved.".to_owned()).into())
        }
        "schedule" | "schedule-anyway" => {
            let said = schedule(visit, mailbox, form).await?;
            Ok((format!("{base}/scheduled"), said).into())
        }
        _ => {
            let (said, undo) = send_undoably(visit, mailbox, form).await?;
            let back = match form.fields.given("thread_id") {
                _ if form.fields.given("back").is_some() => safe_next(form.fields.get("back")).to_owned(),
                Some(thread) if form.fields.get("mode") == "reply" => {
                    format!("{base}/f/inbox/{}", encoded(thread))
                }
                _ => format!("{base}/f/inbox"),
            };
            Ok(Outcome { target: back, said, undo })
        }
    }
}

/// Sends a message in a few seconds, so that this can be undone; at once where that is not possible, or where the send
/// policy does not simply let it leave, so that the person is told at once.
async fn send_undoably(visit: &Visit, mailbox: &str, form: &Form) -> Result<(String, Option<Undo>)> {
    let message = draft_json(visit, mailbox, form).await?;
    if let Some(seconds) = undo_send::delay_seconds(visit, &message)
        && undo_send::would_leave(visit, mailbox, &message).await?
    {
        let of = forwarded_email(&form.fields);
        let undo = undo_send::schedule(visit, mailbox, message, of, seconds).await?;
        return Ok((ON_ITS_WAY.to_owned(), Some(undo)));
    }
    let sent = send(visit, mailbox, form).await?;
    let said = match (sent.status, sent.scheduled_send_at) {
        (SendStatus::InReview, _) => {
            "Your message is in review. A person decides whether it is sent.".to_owned()
        }
        (SendStatus::Scheduled, Some(at)) => {
            format!("These are quiet hours. Your message leaves {}.", visit.zone().await?.when(at).full)
        }
        _ => ON_ITS_WAY.to_owned(),
    };
    Ok((said, None))
}

async fn send(visit: &Visit, mailbox: &str, form: &Form) -> Result<SentMail> {
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
    let (app, source) = (visit.app(), fields.get("source"));
    match (fields.get("mode"), fields.given("draft_id")) {
        ("forward", None) => {
            if !parts.files.is_empty() {
                mail["attachments"] =
                    json!(forwarded_attachments(visit, mailbox, source, parts.files).await?);
            }
            let call = visit.call(&sending::FORWARD)?;
            sending::forward(app, &call, mailbox, source.into(), input(&mail)?, false).await
        }
        ("reply", None) => {
            mail["attachments"] = json!(parts.files);
            let call = visit.call(&sending::REPLY)?;
            sending::reply(app, &call, mailbox, source.into(), input(&mail)?, false).await
        }
        (_, draft) => {
            mail["attachments"] = json!(parts.files);
            mail["source_draft_id"] = json!(draft);
            sending::send(app, &visit.call(&sending::SEND)?, mailbox, input(&mail)?, false).await
        }
    }
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

async fn schedule(visit: &Visit, mailbox: &str, form: &Form) -> Result<String> {
    let zone = visit.zone().await?;
    let at = zone.parse(form.fields.get("at"))?;
    let mut request = draft_json(visit, mailbox, form).await?;
    request["scheduled_send_at"] = json!(at.to_string());
    let call = visit.call(&scheduled_sends::CREATE)?;
    let of = forwarded_email(&form.fields);
    scheduled_sends::create_forward(visit.app(), &call, mailbox, input(&request)?, of).await?;
    Ok(format!("Scheduled for {}.", zone.when(at).full))
}

async fn delete_draft(
    visit: Visit,
    Path((mailbox, draft)): Path<(String, String)>,
    request: Request,
) -> Response {
    let back = format!("/console/m/{}/f/draft", encoded(&mailbox));
    let cancel = format!("/console/m/{}/compose?draft={}", encoded(&mailbox), encoded(&draft));
    let question = Question {
        title: "Delete this draft?",
        text: "This cannot be undone.",
        button: "Delete draft",
        cancel: &cancel,
        typed: "",
    };
    let delete = async |_| {
        let work = async {
            drafts::delete(visit.app(), &visit.call(&drafts::DELETE)?, &mailbox, draft.into()).await?;
            Ok((back.clone(), "Draft deleted.".to_owned()))
        };
        visit.act(&back, work).await
    };
    confirmed(&visit, request, &question, delete).await
}
