//! Attachments of emails: where each one is in its message.

use model::{AttachmentId, EmailId, MailboxId};

use crate::{FromRow, Param, Row, Tx, emails::record::NewAttachment, error::Result};

/// An attachment as it is stored.
#[derive(Clone, Debug)]
pub struct AttachmentRecord {
    /// Its id.
    pub id: AttachmentId,
    /// The email it belongs to.
    pub email_id: EmailId,
    /// Its name.
    pub filename: String,
    /// Its declared media type.
    pub media_type: String,
    /// Its size.
    pub size: i64,
    /// The byte range of its encoded content in the message.
    pub byte_range: (i64, i64),
    /// How they are encoded.
    pub encoding: String,
}

impl FromRow for AttachmentRecord {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.next()?,
            email_id: row.next()?,
            filename: row.next()?,
            media_type: row.next()?,
            size: row.next()?,
            byte_range: (row.next()?, row.next()?),
            encoding: row.next()?,
        })
    }
}

/// Adds attachments, each with its mailbox and its email.
pub(crate) async fn insert_all<'a>(
    tx: &mut Tx,
    attachments: Vec<(&'a MailboxId, &'a EmailId, &'a NewAttachment)>,
) -> Result<()> {
    let rows = attachments.into_iter().map(insert_params).collect();
    tx.pipeline_rows(
        "INSERT INTO attachment (workspace_id, mailbox_id, id, email_id, filename, media_type, size, content_id,
           disposition, place_start, place_end, encoding)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        rows,
    )
    .await
}

fn insert_params<'a>(
    (mailbox, email, attachment): (&'a MailboxId, &'a EmailId, &'a NewAttachment),
) -> Vec<Param<'a>> {
    let public = &attachment.public;
    vec![
        mailbox.into(),
        (&public.id).into(),
        email.into(),
        (&public.filename).into(),
        (&public.mimetype).into(),
        public.size.into(),
        public.content_id.as_ref().into(),
        public.disposition.as_ref().into(),
        attachment.byte_range.0.into(),
        attachment.byte_range.1.into(),
        attachment.encoding.into(),
    ]
}

/// Finds an attachment of a mailbox.
pub async fn find(tx: &mut Tx, mailbox: &MailboxId, id: &AttachmentId) -> Result<Option<AttachmentRecord>> {
    tx.one(
        "SELECT id, email_id, filename, media_type, size, place_start, place_end, encoding FROM attachment
         WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
        &[mailbox.into(), id.into()],
    )
    .await
}

/// The attachments of an email.
pub async fn list(tx: &mut Tx, mailbox: &MailboxId, email: &EmailId) -> Result<Vec<AttachmentRecord>> {
    tx.all(
        "SELECT id, email_id, filename, media_type, size, place_start, place_end, encoding FROM attachment
         WHERE workspace_id = $1 AND mailbox_id = $2 AND email_id = $3 ORDER BY place_start",
        &[mailbox.into(), email.into()],
    )
    .await
}
