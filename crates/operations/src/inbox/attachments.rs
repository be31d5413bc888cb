//! Attachments of emails: download by email and by id.

use bytes::Bytes;
use mail::message::{self, File};
use model::{AttachmentId, EmailId};
use store::{
    attachments::{self, AttachmentRecord},
    contents, emails,
};

use crate::{
    core::{
        app::App,
        call::Call,
        error::{Error, ErrorKind, Result},
        operation::Operation,
    },
    inbox::{
        emails::{present, refuse_flagged},
        inbound,
    },
    mailbox::mailboxes,
};

/// Downloads a file of an email.
pub const GET_OF_EMAIL: Operation =
    Operation::read("getEmailAttachment", "Downloads an attachment of an email. Untrusted.")
        .errors(&[ErrorKind::NotFound, ErrorKind::ContentWithheld]);
/// Downloads a file.
pub const GET: Operation =
    Operation::read("getAttachment", "Downloads an attachment by its id alone. Untrusted.")
        .errors(&[ErrorKind::NotFound, ErrorKind::ContentWithheld]);

pub(crate) const OPERATIONS: &[&Operation] = &[&GET_OF_EMAIL, &GET];

/// A file with its bytes.
#[derive(Clone, Debug)]
pub struct Download {
    /// Its name, cleaned.
    pub filename: String,
    /// Its declared media type.
    pub media_type: String,
    /// Its bytes.
    pub bytes: Bytes,
}

/// Downloads a file; of the given email, if one is given.
#[crate::boxed]
pub async fn get(
    app: &App,
    call: &Call,
    mailbox: &str,
    email: Option<EmailId>,
    id: AttachmentId,
) -> Result<Download> {
    let named = mailboxes::name(call, mailbox);
    let (record, content) = app
        .read(call, async move |tx| {
            let mailbox = mailboxes::find_id(tx, &named).await?;
            if let Some(email) = &email {
                emails::find_brief(tx, &mailbox, email).await?.ok_or_else(present::missing)?;
            }
            let record = attachments::find(tx, &mailbox, &id).await?.ok_or_else(missing)?;
            if email.is_some_and(|email| email != record.email_id) {
                return Err(missing());
            }
            let mail = emails::find(tx, &mailbox, &record.email_id).await?.ok_or_else(missing)?;
            refuse_flagged(&mail)?;
            let content = contents::find(tx, &mail.content_id).await?.ok_or_else(missing)?;
            Ok((record, content))
        })
        .await?;
    let raw = present::open_raw(app, &call.workspace, &content).await?;
    let (filename, media_type) = (record.filename.clone(), record.media_type.clone());
    let decoded = tokio::task::spawn_blocking(move || decode(&raw, &record)).await;
    Ok(Download { filename, media_type, bytes: decoded.map_err(Error::internal)? })
}

/// The bytes of a file of the message `raw`.
pub(crate) fn decode(raw: &[u8], record: &AttachmentRecord) -> Bytes {
    let unsigned = |number: i64| usize::try_from(number).unwrap_or_default();
    let file = File {
        name: record.filename.clone(),
        media_type: record.media_type.clone(),
        content_id: None,
        disposition: None,
        size: u64::try_from(record.size).unwrap_or_default(),
        range: unsigned(record.byte_range.0)..unsigned(record.byte_range.1),
        encoding: inbound::encoding_named(&record.encoding),
        declared_names: Vec::new(),
    };
    Bytes::from(message::decode(raw, &file))
}

/// The error for an attachment that does not exist.
pub(crate) fn missing() -> Error {
    Error::not_found("Attachment not found")
}
