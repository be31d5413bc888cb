//! The form of a message as a draft: how it is saved, and how it comes back to the page.

use mail::{
    address::Mailbox,
    display::{self, ImageSources},
    html::escape,
};
use model::{
    EmailId,
    emails::{Attachment, BodyFormat},
};
use operations::{Detail, Error, ErrorKind, Result, drafts};
use serde_json::{Value, json};

use super::{
    compose_start::original,
    compose_view::ComposedMessage,
    fields::{Fields, input},
    forward::{self, draft_parts},
    message_form::Form,
    text::split_people,
    time::size,
    visit::Visit,
};

const RECIPIENT_FIELDS: [&str; 3] = ["to", "cc", "bcc"];

/// The recipients of a field, as operations take them.
pub(super) fn recipients(fields: &Fields, name: &str) -> Value {
    fields.given(name).map_or(Value::Null, |text| json!(text))
}

/// Refuses addresses that cannot be read, and names them: operations say only what is wrong with one.
pub(super) fn check_recipients(fields: &Fields) -> Result<()> {
    let faults = RECIPIENT_FIELDS.iter().flat_map(|name| {
        let all = split_people(fields.get(name));
        let wrong = all.into_iter().filter(|one| Mailbox::parse(one.trim()).is_err());
        wrong.map(|one| Detail::new(*name, format!("“{}” is not an email address", one.trim())))
    });
    Error::refuse(faults.collect())
}

/// The email that the first draft of a form forwards; later drafts store it.
pub(super) fn forwarded_email(fields: &Fields) -> Option<EmailId> {
    let is_first = fields.get("mode") == "forward" && fields.given("draft_id").is_none();
    is_first.then(|| fields.get("source").into())
}

/// The JSON of a draft or a scheduled send.
pub(super) async fn draft_json(visit: &Visit, mailbox: &str, form: &Form) -> Result<Value> {
    let (fields, parts) = (&form.fields, draft_parts(visit, mailbox, form).await?);
    Ok(json!({
        "to": recipients(fields, "to"), "cc": recipients(fields, "cc"), "bcc": recipients(fields, "bcc"),
        "subject": fields.get("subject"), "body": parts.body, "body_format": parts.format,
        "in_reply_to": fields.given("in_reply_to"), "thread_id": fields.given("thread_id"),
        "draft_id": fields.given("draft_id"), "attachments": parts.files,
    }))
}

/// A form that was saved as a draft.
pub(super) struct SavedForm {
    pub(super) id: EmailId,
    pub(super) body: String,
    pub(super) format: BodyFormat,
    /// Whether the original of a forward stands below the text.
    pub(super) below: bool,
    /// Its attachments: id, name, size.
    pub(super) files: Vec<(String, String, String)>,
}

/// Saves a form as a draft.
pub(super) async fn save(visit: &Visit, mailbox: &str, form: &Form) -> Result<SavedForm> {
    check_recipients(&form.fields)?;
    let request = draft_json(visit, mailbox, form).await?;
    save_json(visit, mailbox, form, &request).await
}

async fn save_json(visit: &Visit, mailbox: &str, form: &Form, request: &Value) -> Result<SavedForm> {
    let call = visit.call(&drafts::SAVE)?;
    let forwarded = forwarded_email(&form.fields);
    let saved = drafts::save_forward(visit.app(), &call, mailbox, input(request)?, forwarded).await?;
    let draft = drafts::get(visit.app(), &visit.call(&drafts::GET)?, mailbox, saved.id).await?;
    let pictures = forward::pictures_below(&draft.body, draft.body_format, &draft.attachments);
    let in_text = |file: &Attachment| file.content_id.as_deref().unwrap_or_default().contains(".console");
    let own = draft.attachments.iter().filter(|file| !pictures.contains(&file.id.as_str()) && !in_text(file));
    Ok(SavedForm {
        files: own.map(file_row).collect(),
        below: forward::own_text(&draft.body, draft.body_format).is_some(),
        id: draft.id,
        body: draft.body,
        format: draft.body_format,
    })
}

fn file_row(file: &Attachment) -> (String, String, String) {
    (file.id.as_str().to_owned(), file.filename.clone(), size(file.size))
}

/// What the page's script is told about a saved draft.
pub(super) async fn told(visit: &Visit, saved: &SavedForm) -> Result<Value> {
    let file = |(id, name, size): &(String, String, String)| json!({ "id": id, "name": name, "size": size });
    let files: Vec<Value> = saved.files.iter().map(file).collect();
    let at = visit.zone().await?.when(visit.app().now()).short;
    Ok(json!({ "draft_id": saved.id, "files": files, "saved": at, "below": saved.below }))
}

/// The form as it was sent, for showing it again. Files that were chosen are kept in a draft.
pub(super) async fn again(visit: &Visit, mailbox: &str, form: &Form) -> ComposedMessage {
    let fields = &form.fields;
    let text = |name: &str| fields.get(name).to_owned();
    let mut message = ComposedMessage {
        mode: text("mode"),
        source: text("source"),
        draft: text("draft_id"),
        in_reply_to: text("in_reply_to"),
        thread: text("thread_id"),
        to: text("to"),
        cc: text("cc"),
        bcc: text("bcc"),
        subject: text("subject"),
        body: editor_html(fields),
        text: text("text"),
        at: text("at"),
        back: text("back"),
        below: fields.ticked("below"),
        ..ComposedMessage::default()
    };
    if form.files.is_empty() {
        message.files = kept_files(visit, mailbox, fields).await;
        if forwarded_email(fields).is_some()
            && let Ok(email) = original(visit, mailbox, fields.get("source")).await
        {
            message.follows = email.attachments.map_or(0, |files| files.len());
        }
    } else if let Ok(saved) = save_with_valid_recipients(visit, mailbox, form).await {
        put_saved(&mut message, saved);
    }
    message
}

/// Notes on the form that it was saved.
pub(super) fn put_saved(message: &mut ComposedMessage, saved: SavedForm) {
    // A forward has become a draft, which holds the original and its files.
    if saved.below {
        "new".clone_into(&mut message.mode);
    }
    message.draft = saved.id.as_str().to_owned();
    message.below = saved.below;
    message.files = saved.files;
}

/// The editor's content as the page shows it.
pub(super) fn editor_html(fields: &Fields) -> String {
    match fields.given("html") {
        Some(editor) => display::sanitize(editor, &ImageSources { remote: false, inline: &|_| None }).html,
        None => text_as_html(fields.get("text")),
    }
}

/// Plain text for the editor.
pub(super) fn text_as_html(text: &str) -> String {
    escape(text).replace("\r\n", "\n").replace('\n', "<br>")
}

/// Saves a form whose fields may be wrong, so that its files are not lost.
async fn save_with_valid_recipients(visit: &Visit, mailbox: &str, form: &Form) -> Result<SavedForm> {
    let mut request = draft_json(visit, mailbox, form).await?;
    for name in RECIPIENT_FIELDS {
        let valid: Vec<String> = split_people(form.fields.get(name))
            .into_iter()
            .filter(|one| Mailbox::parse(one.trim()).is_ok())
            .map(|one| one.trim().to_owned())
            .collect();
        request[name] = json!(valid);
    }
    save_json(visit, mailbox, form, &request).await
}

async fn kept_files(visit: &Visit, mailbox: &str, fields: &Fields) -> Vec<(String, String, String)> {
    let Some(id) = fields.given("draft_id") else { return Vec::new() };
    let Ok(call) = visit.call(&drafts::GET) else { return Vec::new() };
    let Ok(draft) = drafts::get(visit.app(), &call, mailbox, id.into()).await else { return Vec::new() };
    let kept = fields.all("keep");
    draft.attachments.iter().filter(|file| kept.contains(&file.id.as_str())).map(file_row).collect()
}

/// The error for a form without recipients.
pub(super) fn require_recipient(fields: &Fields) -> Result<()> {
    if fields.given("to").is_some() {
        return check_recipients(fields);
    }
    let mut details = vec![Detail::new("to", "add at least one recipient")];
    if let Err(refused) = check_recipients(fields) {
        details.extend(refused.details().iter().cloned());
    }
    Err(Error::new(ErrorKind::ValidationFailed).with_details(details))
}
