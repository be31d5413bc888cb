//! Rewriting the author's text with the language model: a preview first, then accept, discard and undo.
//!
//! The form carries all of it, so that it works without a script; the script takes the same steps on the open page.

use axum::{http::StatusCode, response::Response};
use mail::{
    compose::{
        quote::{self, BodyText},
        reply_text::ReplyText,
    },
    html::escape,
    safe_text::SafeText,
};
use model::{drafts::DraftPrompt, emails::BodyFormat};
use operations::{Error, Result, drafts};
use serde_json::json;
use tracing::Instrument;

use super::{
    compose_view::{self, FieldErrors, Notice, Rewrite},
    draft_form::{self, SavedForm, again, put_saved, text_as_html},
    fields::{Fields, input},
    message_form::{Form, body_text},
    page,
    visit::Visit,
};
use crate::error;

/// Answers one of the buttons of the panel.
pub(super) async fn act(visit: &Visit, mailbox: &str, form: &Form) -> Response {
    let fields = &form.fields;
    match fields.get("action") {
        "rewrite" => preview(visit, mailbox, form).await,
        "rewrite-accept" => {
            let previous = previous_text(fields);
            change(visit, mailbox, form, &replace_own(fields, fields.get("rewritten")), previous).await
        }
        "rewrite-undo" => {
            let (text, html) = (fields.get("previous").to_owned(), text_as_html(fields.get("previous")));
            change(visit, mailbox, form, &(html, text), String::new()).await
        }
        _ => visit.answer(show(visit, mailbox, form, Notice::default())).await,
    }
}

async fn show(visit: &Visit, mailbox: &str, form: &Form, notice: Notice) -> Result<Response> {
    let message = again(visit, mailbox, form).await;
    compose_view::render(visit, mailbox, message, notice).await
}

/// The page with another text: HTML for the editor, and the same as plain text.
async fn change(
    visit: &Visit,
    mailbox: &str,
    form: &Form,
    (html, text): &(String, String),
    previous: String,
) -> Response {
    let page = async {
        let mut message = again(visit, mailbox, form).await;
        message.body.clone_from(html);
        message.text.clone_from(text);
        let rewrite = Rewrite { previous, ..Rewrite::default() };
        compose_view::render(visit, mailbox, message, Notice { rewrite, ..Notice::default() }).await
    };
    visit.answer(page).await
}

fn previous_text(fields: &Fields) -> String {
    match fields.given("html") {
        Some(_) => SafeText::from_html(&draft_form::editor_html(fields)).into_string(),
        None => fields.get("text").to_owned(),
    }
}

/// Shows what the model wrote: on the page, or to its script.
async fn preview(visit: &Visit, mailbox: &str, form: &Form) -> Response {
    let for_script = visit.headers.get("accept").is_some_and(|kind| kind == "application/json");
    let written = write(visit, mailbox, form).await;
    if for_script {
        let answer = async {
            let (saved, rewritten) = written?;
            let mut answer = draft_form::told(visit, &saved).await?;
            answer["body"] = json!(replace_own(&form.fields, &rewritten).0);
            answer["rewritten"] = json!(rewritten);
            Ok(answer)
        };
        return match answer.await {
            Ok(answer) => error::json_of(StatusCode::OK, &answer),
            Err(refused) => refuse(&refused),
        };
    }
    let page = async {
        let mut message = again(visit, mailbox, form).await;
        let mut notice = Notice::default();
        form.fields.get("instructions").clone_into(&mut notice.rewrite.instructions);
        let status = match written {
            Ok((saved, rewritten)) => {
                put_saved(&mut message, saved);
                notice.rewrite.rewritten = rewritten;
                StatusCode::OK
            }
            Err(refused) => {
                notice.errors = FieldErrors::of(&refused);
                error::status(refused.kind())
            }
        };
        let mut response = compose_view::render(visit, mailbox, message, notice).await?;
        *response.status_mut() = status;
        Ok(response)
    };
    visit.answer(page).await
}

/// An error for the page's script, by field.
pub(super) fn refuse(refused: &Error) -> Response {
    let errors = FieldErrors::of(refused);
    let fields = json!({
        "to": errors.to, "cc": errors.cc, "bcc": errors.bcc, "subject": errors.subject, "message": errors.message,
        "attachments": errors.attachments, "at": errors.at, "instructions": errors.instructions,
    });
    let answer = json!({ "error": page::explain(refused), "fields": fields });
    error::json_of(error::status(refused.kind()), &answer)
}

/// Saves the form and has the model rewrite the author's text. The call costs what it costs over the API.
async fn write(visit: &Visit, mailbox: &str, form: &Form) -> Result<(SavedForm, String)> {
    if form.fields.given("instructions").is_none() {
        return Err(Error::invalid("prompt", "say what to change"));
    }
    let saved = draft_form::save(visit, mailbox, form).await?;
    let (body, format, _) = body_text(&form.fields);
    let current = typed(&body, format);
    let reply_text = ReplyText::of(current);
    let (own, quoted) = if saved.below {
        (current, original_below(&saved))
    } else {
        (typed(reply_text.own, format), typed(reply_text.quoted(), format))
    };
    let request: DraftPrompt = input(&json!({
        "draftId": saved.id, "prompt": form.fields.get("instructions"),
        "body": in_format(own, saved.format), "quoted": in_format(quoted, saved.format),
    }))?;
    let call = visit.metered(&drafts::REGENERATE).await?;
    let (app, mailbox) = (visit.app().clone(), mailbox.to_owned());
    // It is finished even when the browser goes away, so that what was charged was done.
    let work = async move {
        let outcome = drafts::regenerate(&app, &call, &mailbox, request).await;
        app.commit_or_refund(&call, outcome.is_ok());
        outcome
    };
    let answer = tokio::spawn(work.in_current_span()).await.map_err(Error::internal)??;
    let rewritten = match saved.format {
        BodyFormat::Html => SafeText::from_html(&answer.body).into_string(),
        BodyFormat::Text => answer.body,
    };
    Ok((saved, rewritten))
}

fn typed<'a>(body: &'a str, format: &str) -> BodyText<'a> {
    if format == "html" { BodyText::Html(body) } else { BodyText::Text(body) }
}

/// The original in the draft of a forward.
fn original_below(saved: &SavedForm) -> BodyText<'_> {
    let body = match saved.format {
        BodyFormat::Html => BodyText::Html(&saved.body),
        BodyFormat::Text => BodyText::Text(&saved.body),
    };
    quote::split(body).map_or(BodyText::Text(""), |(_, below)| below)
}

/// A text in the format of a draft, as long as operations take it.
fn in_format(text: BodyText<'_>, format: BodyFormat) -> String {
    const MAX_CHARS: usize = 90_000;
    let text = match (text, format) {
        (BodyText::Text(text), BodyFormat::Html) => text_as_html(text),
        (BodyText::Html(html), BodyFormat::Text) => SafeText::from_html(html).into_string(),
        (BodyText::Text(text) | BodyText::Html(text), _) => text.to_owned(),
    };
    text.chars().take(MAX_CHARS).collect()
}

/// The form's text with another text of the author's: as HTML for the editor, and as plain text.
fn replace_own(fields: &Fields, rewritten: &str) -> (String, String) {
    let (body, format, _) = body_text(fields);
    if format == "html" {
        let editor = draft_form::editor_html(fields);
        let html = ReplyText::of(BodyText::Html(&editor)).with_own(&lines_as_html(rewritten), true);
        let text = SafeText::from_html(&html).into_string();
        return (html, text);
    }
    let text = ReplyText::of(BodyText::Text(&body)).with_own(rewritten, false);
    (text_as_html(&text), text)
}

/// Plain text as the editor writes it: a block for every line.
fn lines_as_html(text: &str) -> String {
    let line = |line: &str| if line.trim().is_empty() { "<br>".to_owned() } else { escape(line) };
    let lines = text.trim().lines().map(|text| format!("<div>{}</div>", line(text)));
    lines.chain(["<div><br></div>".to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_authors_text_is_replaced() {
        let mut fields = Fields::default();
        fields.push("text".into(), "Yes\r\n\r\nOn Monday, Ann wrote:\r\n> Why?\r\n".into());
        let (html, text) = replace_own(&fields, "No.\n\nAda");
        assert_eq!(text, "No.\n\nAda\n\nOn Monday, Ann wrote:\n> Why?\n");
        assert!(html.starts_with("No.<br><br>Ada<br>"), "{html}");
        let mut fields = Fields::default();
        let editor = "<div>Yes</div><div>Ann wrote:</div><blockquote>Why?</blockquote>";
        fields.push("html".into(), editor.into());
        let (html, text) = replace_own(&fields, "No <b>");
        assert!(html.starts_with("<div>No &lt;b&gt;</div>") && html.ends_with("Why?</blockquote>"), "{html}");
        assert!(text.contains("> Why?"), "{text}");
    }
}
