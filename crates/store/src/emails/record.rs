//! An email and its files as they are stored: the record, the columns that it is read from, and how some of its values
//! are written.

use model::{
    EmailId, FolderId, ThreadId, Timestamp,
    emails::{Attachment, BodyFormat, BodySource, Category, ScanStatus, ScanThreat, SenderAuthentication},
};
use serde::Serialize;

use crate::{
    FromRow, Row,
    error::{Error, Result},
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
    pub delivery_status: Option<String>,
    pub automatic: Option<String>,
    pub scan_status: Option<ScanStatus>,
    pub scan_threats: Vec<ScanThreat>,
    pub sender_authentication: SenderAuthentication,
    pub attachments: Vec<Attachment>,
    pub held_until: Option<Timestamp>,
    /// The slugs of its labels; filled in on reading.
    pub labels: Vec<String>,
}

/// The columns of a record, in its order, from the table called `email`.
pub(crate) const COLUMNS: &str = "email.id, email.thread_id, email.folder_id, email.content_id, email.outgoing,
    email.arrival, email.arrived_at, email.date, email.subject, email.sender, email.sender_address, email.recipient,
    email.to_line, email.cc, email.bcc, email.reply_to, email.read, email.starred, email.is_urgent, email.category,
    email.snippet, email.body_format, email.safe_source, email.safe_divergent, email.size,
    email.stored_objects, email.message_id, email.in_reply_to, email.email_references, email.delivery_status,
    email.automatic, email.scan_status, email.scan_threats, email.sender_authentication, email.attachments,
    email.held_until, CASE WHEN email.label_count > 0 THEN (SELECT string_agg(label.slug, ' ') FROM email_label
      JOIN label ON label.workspace_id = $1 AND label.mailbox_id = $2 AND label.id = email_label.label_id
      WHERE email_label.workspace_id = $1 AND email_label.mailbox_id = $2 AND email_label.email_id = email.id) END";

impl FromRow for EmailRecord {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.next()?,
            thread_id: row.next()?,
            folder_id: row.next()?,
            content_id: row.next()?,
            outgoing: row.next()?,
            arrival: row.next()?,
            arrived_at: row.next()?,
            date: row.next()?,
            subject: row.next()?,
            sender: row.next()?,
            sender_address: row.next()?,
            recipient: row.next()?,
            to_line: row.next()?,
            cc: row.next()?,
            bcc: row.next()?,
            reply_to: row.next()?,
            read: row.next()?,
            starred: row.next()?,
            is_urgent: row.next()?,
            category: row.next_named()?,
            snippet: row.next()?,
            body_format: row.next_named()?,
            safe_source: row.next_named()?,
            safe_divergent: row.next()?,
            size: row.next()?,
            stored_objects: row.next()?,
            message_id: row.next()?,
            in_reply_to: row.next()?,
            email_references: row.next()?,
            delivery_status: row.next()?,
            automatic: row.next()?,
            scan_status: scan_status(row)?,
            scan_threats: row.next_json()?,
            sender_authentication: row.next_json()?,
            attachments: row.next_json()?,
            held_until: row.next()?,
            labels: row
                .next::<Option<String>>()?
                .map(|slugs| slugs.split(' ').map(ToOwned::to_owned).collect())
                .unwrap_or_default(),
        })
    }
}

fn scan_status(row: &mut Row<'_>) -> Result<Option<ScanStatus>> {
    let text: Option<String> = row.next()?;
    text.map(|text| text.parse().map_err(|error: String| Error::Corrupt(error.into()))).transpose()
}

/// Whether lists without a folder show what lies in this one.
pub fn is_listed(folder: &FolderId) -> bool {
    !matches!(folder.as_str(), "trash" | "spam")
}

/// A file of an email, with where it lies in the message.
#[derive(Clone, Debug)]
pub struct NewAttachment {
    /// What is shown of it.
    pub shown: Attachment,
    /// Where its encoded bytes begin and end.
    pub place: (i64, i64),
    /// How they are encoded.
    pub encoding: &'static str,
}

/// A value as its column holds it.
pub(super) fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Internal(error.into()))
}
