//! An email and its attachments as they are stored: the record, its columns, and the encoding of some values.

use model::{
    EmailId, FolderId, ThreadId, Timestamp,
    emails::{Attachment, BodyFormat, BodySource, Category, ScanStatus, ScanThreat, SenderAuthentication},
    folders::SystemFolder,
    sending::DeliveryStatus,
};

use crate::{
    Row,
    error::Result,
    sql::{Columns, columns},
};

/// An email as it is stored.
#[derive(Clone, Debug)]
#[expect(
    missing_docs,
    reason = "each is the field of the email with this name, or explained in the migration"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column of its own")]
pub struct EmailRecord {
    pub id: EmailId,
    pub thread_id: ThreadId,
    pub folder_id: FolderId,
    pub content_id: String,
    pub outgoing: bool,
    pub arrival: i64,
    pub arrived_at: Timestamp,
    pub date: Timestamp,
    pub subject: String,
    pub sender: String,
    pub sender_address: String,
    pub recipient: String,
    pub to_line: String,
    pub cc: Option<String>,
    pub bcc: Option<String>,
    pub reply_to: Option<String>,
    pub read: bool,
    pub starred: bool,
    pub is_urgent: bool,
    pub category: Category,
    pub snippet: String,
    pub body_format: BodyFormat,
    pub safe_source: BodySource,
    pub safe_divergent: bool,
    pub size: i64,
    pub stored_objects: i64,
    pub message_id: Option<String>,
    pub in_reply_to: Option<String>,
    pub email_references: Option<String>,
    pub delivery_status: Option<DeliveryStatus>,
    pub automatic: Option<String>,
    pub scan_status: Option<ScanStatus>,
    pub scan_threats: Vec<ScanThreat>,
    pub sender_authentication: SenderAuthentication,
    pub attachments: Vec<Attachment>,
    pub held_until: Option<Timestamp>,
    /// The slugs of its labels; filled in on read.
    pub labels: Vec<String>,
}

columns!(EmailRecord in email {
    id, thread_id, folder_id, content_id, outgoing, arrival, arrived_at, date, subject, sender, sender_address,
    recipient, to_line, cc, bcc, reply_to, read, starred, is_urgent, category, snippet, body_format, safe_source,
    safe_divergent, size, stored_objects, message_id, in_reply_to, email_references, delivery_status, automatic,
    scan_status, scan_threats as json, sender_authentication as json, attachments as json, held_until,
} and labels = "CASE WHEN email.label_count > 0 THEN (SELECT string_agg(label.slug, ' ') FROM email_label
      JOIN label ON label.workspace_id = $1 AND label.mailbox_id = email.mailbox_id AND label.id = email_label.label_id
      WHERE email_label.workspace_id = $1 AND email_label.mailbox_id = email.mailbox_id
        AND email_label.email_id = email.id) END"
    => label_slugs);

/// What a query of emails selects, from the table called `email`.
pub(crate) const COLUMNS: &str = EmailRecord::COLUMNS;

fn label_slugs(row: &mut Row<'_>) -> Result<Vec<String>> {
    let slugs: Option<String> = row.next()?;
    Ok(slugs.map(|slugs| slugs.split(' ').map(ToOwned::to_owned).collect()).unwrap_or_default())
}

/// Whether lists without a folder show emails in this one.
pub fn is_listed(folder: &FolderId) -> bool {
    !matches!(SystemFolder::of(folder), Some(SystemFolder::Trash | SystemFolder::Spam))
}

/// An attachment of an email, with its position in the message.
#[derive(Clone, Debug)]
pub struct NewAttachment {
    /// The public fields.
    pub public: Attachment,
    /// The byte range of its encoded content.
    pub byte_range: (i64, i64),
    /// Its transfer encoding.
    pub encoding: &'static str,
}
