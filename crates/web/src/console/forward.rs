//! Drafts of forwards: the writer's text is edited, the original below it stays as received.
//!
//! The original is never taken from the browser, whose editor shows sanitised HTML only: it is read from the email
//! at first, and from the draft afterwards.

use mail::compose::quote::{self, BodyText};
use model::{
    AttachmentId,
    emails::{Attachment, BodyFormat},
};
use operations::{Result, drafts, sending};
use serde_json::{Value, json};

use super::{
    fields::Fields,
    message_form::{Form, Parts, parts},
    visit::Visit,
};

fn references(files: impl Iterator<Item = AttachmentId>) -> Vec<Value> {
    files.map(|id| json!({ "attachment_id": id })).collect()
}

/// Text or HTML by the name of its format.
fn written<'a>(body: &'a str, format: &str) -> BodyText<'a> {
    if format == "html" { BodyText::Html(body) } else { BodyText::Text(body) }
}

fn typed(body: &str, format: BodyFormat) -> BodyText<'_> {
    match format {
        BodyFormat::Html => BodyText::Html(body),
        BodyFormat::Text => BodyText::Text(body),
    }
}

/// The writer's text of a draft that has an original below it.
pub(super) fn own_text(body: &str, format: BodyFormat) -> Option<String> {
    Some(match quote::split(typed(body, format))?.0 {
        BodyText::Text(own) => own.to_owned(),
        BodyText::Html(own) => quote::unstyled(own),
    })
}

/// Whether a picture belongs to the original in a draft.
fn belongs_to_original(below: BodyText<'_>, file: &Attachment) -> bool {
    let BodyText::Html(html) = below else { return false };
    let id = file.content_id.as_deref().unwrap_or_default().trim_matches(['<', '>']);
    !id.is_empty() && html.contains(&format!("cid:{id}"))
}

/// The pictures of a draft that belong to its original.
pub(super) fn pictures_below<'a>(body: &str, format: BodyFormat, files: &'a [Attachment]) -> Vec<&'a str> {
    let Some((_, below)) = quote::split(typed(body, format)) else { return Vec::new() };
    files.iter().filter(|file| belongs_to_original(below, file)).map(|file| file.id.as_str()).collect()
}

/// The JSON of the form's draft, with the original of a forward.
pub(super) async fn draft_parts(visit: &Visit, mailbox: &str, form: &Form) -> Result<Parts> {
    let (fields, parts) = (&form.fields, parts(form));
    let words = written(&parts.body, parts.format);
    let forwarded = match (fields.get("mode"), fields.given("draft_id")) {
        ("forward", None) => Some(first_draft(visit, mailbox, fields.get("source"), words).await?),
        _ => continue_draft(visit, mailbox, fields, words).await?,
    };
    Ok(match forwarded {
        Some(mut forwarded) => {
            forwarded.files.extend(parts.files);
            forwarded
        }
        None => parts,
    })
}

/// The first draft of a forward.
async fn first_draft(visit: &Visit, mailbox: &str, source: &str, words: BodyText<'_>) -> Result<Parts> {
    let call = visit.call(&drafts::SAVE)?;
    let forward_content = sending::compose_forward(visit.app(), &call, mailbox, source.into(), words).await?;
    let format = if forward_content.format == BodyFormat::Html { "html" } else { "text" };
    Ok(Parts {
        body: forward_content.body,
        format,
        files: references(forward_content.attachments.into_iter()),
    })
}

/// A draft that is edited again, with its original; `None` if it has none.
async fn continue_draft(
    visit: &Visit,
    mailbox: &str,
    fields: &Fields,
    words: BodyText<'_>,
) -> Result<Option<Parts>> {
    let Some(id) = fields.given("draft_id").filter(|_| fields.ticked("below")) else { return Ok(None) };
    let draft = drafts::get(visit.app(), &visit.call(&drafts::GET)?, mailbox, id.into()).await?;
    let Some((_, below)) = quote::split(typed(&draft.body, draft.body_format)) else { return Ok(None) };
    let (body, is_html) = quote::join(words, below);
    let kept_ids = fields.all("keep");
    let files = draft.attachments.iter().filter(|file| belongs_to_original(below, file));
    let files = files.filter(|file| !kept_ids.contains(&file.id.as_str())).map(|file| file.id.clone());
    Ok(Some(Parts { body, format: if is_html { "html" } else { "text" }, files: references(files) }))
}
