//! The attachments of an outgoing message: uploaded ones, and those of the mailbox that are reused.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use mail::compose::{self, File};
use model::{
    AttachmentId, EmailId,
    emails::Attachment,
    sending::{
        Disposition, FileInput, MAX_FILE_BYTES, MAX_FILES, MAX_FILES_BYTES, bare_content_id, is_inline_type,
    },
};
use store::{attachments, contents, emails};

use super::origin::Origin;
use crate::{
    core::{
        app::App,
        error::{Detail, Error, ErrorKind, Result},
    },
    inbox::{
        attachments::{decode, missing},
        emails::{present, refuse_flagged},
    },
};

/// An attachment of a message that is being composed.
#[derive(Clone, Debug)]
pub(crate) struct OutgoingAttachment {
    /// Its id in the mailbox, if it has one.
    pub(crate) id: Option<AttachmentId>,
    /// Whether the email that had it is deleted in the same transaction, so that it can keep its id.
    pub(crate) keeps_id: bool,
    pub(crate) file: File,
}

/// The attachments that a request names. Those of a replaced draft keep their ids.
pub(crate) async fn resolve(
    app: &App,
    origin: &Origin,
    given: Vec<FileInput>,
    html: Option<&str>,
    replaced: Option<&EmailId>,
) -> Result<Vec<OutgoingAttachment>> {
    if given.len() > MAX_FILES {
        return Err(Error::new(ErrorKind::TooManyAttachments));
    }
    let mut attachments = Vec::with_capacity(given.len());
    require_sound(&given)?;
    for (index, input) in given.into_iter().enumerate() {
        let path = format!("attachments[{index}]");
        attachments.push(match &input.attachment_id {
            Some(id) => known(app, origin, id.clone(), &input, (html, replaced), &path).await?,
            None => OutgoingAttachment { id: None, keeps_id: false, file: new(input, html, &path)? },
        });
    }
    check(&attachments)?;
    Ok(attachments)
}

/// Refuses more than a message may carry, and two images with one content id.
pub(crate) fn check(attachments: &[OutgoingAttachment]) -> Result<()> {
    if attachments.len() > MAX_FILES {
        return Err(Error::new(ErrorKind::TooManyAttachments));
    }
    if attachments.iter().any(|source| source.file.bytes.len() > MAX_FILE_BYTES) {
        return Err(Error::new(ErrorKind::AttachmentTooLarge));
    }
    if attachments.iter().map(|source| source.file.bytes.len()).sum::<usize>() > MAX_FILES_BYTES {
        return Err(Error::new(ErrorKind::AttachmentsTooLarge));
    }
    let ids: Vec<&String> = attachments.iter().filter_map(|source| source.file.content_id.as_ref()).collect();
    for (index, id) in ids.iter().enumerate() {
        if ids[..index].contains(id) {
            return Err(Error::invalid("attachments", format!("two files have the contentId {id:?}")));
        }
    }
    Ok(())
}

/// Refuses invalid attachments, all of them in one error.
fn require_sound(given: &[FileInput]) -> Result<()> {
    let mut details = Vec::new();
    for (index, input) in given.iter().enumerate() {
        for (field, message) in input.faults() {
            let dot = if field.is_empty() { "" } else { "." };
            details.push(Detail::new(format!("attachments[{index}]{dot}{field}"), message));
        }
    }
    Error::refuse(details)
}

/// A checked attachment whose content came with the request.
fn new(input: FileInput, html: Option<&str>, path: &str) -> Result<File> {
    let media_type = input.media_type.unwrap_or_default();
    let bytes = read_base64(&input.content.unwrap_or_default(), path)?;
    let content_id = match input.content_id {
        Some(id) => Some(check_inline(&id, &media_type, html, path)?),
        None => None,
    };
    Ok(File { filename: input.filename.unwrap_or_default(), media_type, bytes, content_id })
}

fn check_inline(id: &str, media_type: &str, html: Option<&str>, path: &str) -> Result<String> {
    if !is_inline_type(media_type) {
        let message = "an inline image is PNG, JPEG, GIF or WebP";
        return Err(Error::invalid(format!("{path}.type"), message));
    }
    let bare = bare_content_id(id);
    if !html.is_some_and(|html| uses(html, bare)) {
        let message = format!("the HTML does not show cid:{bare}");
        return Err(Error::invalid(format!("{path}.contentId"), message));
    }
    Ok(bare.to_owned())
}

/// Whether the HTML refers to an inline image.
fn uses(html: &str, id: &str) -> bool {
    let wanted = format!("cid:{id}");
    html.match_indices(&wanted).any(|(at, _)| {
        // Not a prefix of a longer id.
        !html[at + wanted.len()..]
            .starts_with(|next: char| next.is_ascii_alphanumeric() || "-_.@+".contains(next))
    })
}

fn read_base64(content: &str, path: &str) -> Result<Bytes> {
    // Four characters are three bytes; there may be line breaks between them.
    if content.len() / 4 * 3 > MAX_FILE_BYTES * 2 {
        return Err(Error::new(ErrorKind::AttachmentTooLarge));
    }
    let decoded = if content.bytes().any(|byte| byte.is_ascii_whitespace()) {
        let dense: Vec<u8> = content.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        STANDARD.decode(dense)
    } else {
        STANDARD.decode(content)
    };
    let message = "expected the bytes of the file in base64, not a path, a URL or a data: URL";
    let bytes = decoded.map_err(|_| Error::invalid(format!("{path}.content"), message))?;
    if bytes.len() > MAX_FILE_BYTES {
        return Err(Error::new(ErrorKind::AttachmentTooLarge));
    }
    Ok(Bytes::from(bytes))
}

/// An attachment of the mailbox that is reused.
async fn known(
    app: &App,
    origin: &Origin,
    id: AttachmentId,
    input: &FileInput,
    (html, replaced): (Option<&str>, Option<&EmailId>),
    path: &str,
) -> Result<OutgoingAttachment> {
    let (mailbox, wanted) = (origin.mailbox.id.clone(), id.clone());
    let email = app
        .db()
        .read(&origin.workspace, async move |tx| {
            let found = attachments::find(tx, &mailbox, &wanted).await?;
            Ok::<_, Error>(found.ok_or_else(missing)?.email_id)
        })
        .await?;
    let all = of_email(app, origin, &email, BodyContext::Unchanged).await?;
    let mut source = all.into_iter().find(|source| source.id.as_ref() == Some(&id)).ok_or_else(missing)?;
    if let Some(filename) = &input.filename {
        source.file.filename.clone_from(filename);
    }
    source.file.media_type = input.media_type.clone().unwrap_or(source.file.media_type);
    match (input.disposition, &input.content_id) {
        (Some(Disposition::Attachment), _) => source.file.content_id = None,
        (Some(Disposition::Inline), Some(content_id)) => {
            let checked = check_inline(content_id, &source.file.media_type, html, path)?;
            source.file.content_id = Some(checked);
        }
        _ => {}
    }
    keep_inline(&mut source.file, html);
    source.keeps_id = replaced == Some(&email);
    Ok(source)
}

/// An image stays inline only if the new HTML still refers to it.
fn keep_inline(file: &mut File, html: Option<&str>) {
    let shown = |id: &String| html.is_some_and(|html| uses(html, id));
    file.content_id = file.content_id.take().filter(shown);
}

/// The body that the attachments of an email will accompany.
#[derive(Clone, Copy)]
pub(crate) enum BodyContext<'a> {
    /// The email's own.
    Unchanged,
    /// Another one, with this HTML if it has some.
    Html(Option<&'a str>),
}

/// All attachments of an email, as they would go with the given body.
pub(crate) async fn of_email(
    app: &App,
    origin: &Origin,
    email: &EmailId,
    shown: BodyContext<'_>,
) -> Result<Vec<OutgoingAttachment>> {
    let (mailbox, email) = (origin.mailbox.id.clone(), email.clone());
    let (records, about, content) = app
        .db()
        .read(&origin.workspace, async move |tx| {
            let mail = emails::find(tx, &mailbox, &email).await?.ok_or_else(present::missing)?;
            let records = attachments::list(tx, &mailbox, &email).await?;
            if !records.is_empty() {
                refuse_flagged(&mail)?;
            }
            let content = contents::find(tx, &mail.content_id).await?.ok_or_else(present::missing)?;
            Ok::<_, Error>((records, mail.attachments, content))
        })
        .await?;
    if records.is_empty() {
        return Ok(Vec::new());
    }
    let raw = present::open_raw(app, &origin.workspace, &content).await?;
    let decoded = tokio::task::spawn_blocking(move || {
        records.into_iter().map(|record| (decode(&raw, &record), record)).collect::<Vec<_>>()
    });
    let mut attachments = Vec::new();
    for (bytes, record) in decoded.await.map_err(Error::internal)? {
        let known: Option<&Attachment> = about.iter().find(|one| one.id == record.id);
        let content_id = known.and_then(|known| known.content_id.clone());
        let mut file = File {
            filename: record.filename,
            media_type: record.media_type,
            bytes,
            content_id: content_id.filter(|id| compose::is_id(id)),
        };
        if let BodyContext::Html(html) = shown {
            keep_inline(&mut file, html);
        }
        attachments.push(OutgoingAttachment { id: Some(record.id), keeps_id: false, file });
    }
    Ok(attachments)
}
