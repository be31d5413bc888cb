//! Delivery reports to our own senders about failed or delayed messages (RFC 3464).
//!
//! A report has the null sender, and goes only to the local sender who submitted the message, never to an unverified
//! envelope address.

use std::fmt::Write as _;

use mail_builder::headers::HeaderType;
use mail_builder::headers::content_type::ContentType;
use mail_builder::headers::date::Date;
use mail_builder::mime::MimePart;
use memchr::memmem;

use super::{Action, Recipient};
use crate::compose::body::{Boundaries, encode_text, leaf, multipart, text_part};
use crate::compose::{AutoSubmitted, ComposeError, Person, UnencodedMessage, compose_with, is_id};
use crate::message::{self, cut, one_line};

/// Bytes of the original's headers that are returned.
const MAX_RETURNED_BYTES: usize = 32 * 1024;

/// Characters of the original's subject that are repeated.
const MAX_SUBJECT_CHARS: usize = 200;

/// The longest diagnostic text, in characters.
const MAX_DIAGNOSTIC_CHARS: usize = 500;

/// What a report says.
#[derive(Clone, Debug)]
pub struct Notice<'a> {
    /// The Message-ID of the report, without its angle brackets.
    pub message_id: String,
    /// The time of the report in microseconds since 1970, UTC.
    pub date: i64,
    /// The reporting server: this one.
    pub reporting_server: &'a str,
    /// The sender of the report, such as `mailer-daemon@` our host.
    pub from: Person,
    /// Who sent the message.
    pub to: Person,
    /// When the message was submitted, in microseconds since 1970, UTC.
    pub arrived: Option<i64>,
    /// The reported recipients; all with the same action.
    pub recipients: &'a [Recipient],
    /// The message; only its headers are returned.
    pub original: &'a [u8],
}

/// Writes a report.
pub fn write(notice: &Notice<'_>) -> Result<Vec<u8>, ComposeError> {
    let returned = header_block(notice.original);
    let original = message::read(returned);
    let delayed = notice.recipients.iter().all(|recipient| recipient.action == Action::Delayed);
    let subject = if delayed { "Delayed mail" } else { "Undelivered mail" };
    let id = original.message_id.filter(|id| is_id(id));
    let mail = UnencodedMessage {
        message_id: notice.message_id.clone(),
        date: notice.date,
        from: notice.from.clone(),
        to: vec![notice.to.clone()],
        subject: match cut(original.subject, MAX_SUBJECT_CHARS).as_str() {
            "" => subject.to_owned(),
            about => format!("{subject}: {about}"),
        },
        in_reply_to: id.clone(),
        references: id.into_iter().collect(),
        text: Some(explanation(notice, delayed)),
        auto_submitted: Some(AutoSubmitted::Replied),
        ..UnencodedMessage::default()
    };
    compose_with(&mail, |mail| body(mail, notice, returned))
}

/// The three parts of a report (RFC 6522).
fn body(
    mail: &UnencodedMessage,
    notice: &Notice<'_>,
    returned: &[u8],
) -> Result<MimePart<'static>, ComposeError> {
    let boundaries = Boundaries::of(&mail.message_id);
    let text = mail.text.as_deref().unwrap_or_default();
    let status = status_fields(notice);
    // Addresses that are not ASCII need a type of their own (RFC 6533).
    let (status_type, status_encoding) = if status.is_ascii() {
        ("message/delivery-status", "7bit")
    } else {
        ("message/global-delivery-status", "8bit")
    };
    let (encoding, headers) = encode_text(returned.to_vec(), &boundaries);
    let parts = vec![
        text_part("text", "text/plain", text, &boundaries)?,
        leaf(ContentType::new(status_type), status_encoding, status.into_bytes()),
        leaf(ContentType::new("text/rfc822-headers"), encoding, headers),
    ];
    let mut report = multipart("report", parts, boundaries.name(0));
    if let Some((_, HeaderType::ContentType(value))) = report.headers.first_mut() {
        value.attributes.push(("report-type".into(), "delivery-status".into()));
    }
    Ok(report)
}

/// The text part.
fn explanation(notice: &Notice<'_>, delayed: bool) -> String {
    let beginning = if delayed {
        "Your mail has not been delivered yet to the following recipients.\n\
         You need not send it again: it is still being tried.\n"
    } else {
        "Your mail could not be delivered to the following recipients.\nIt will not be tried again.\n"
    };
    let mut text = beginning.to_owned();
    for recipient in notice.recipients {
        let _ = write!(text, "\n<{}>\n", one_line(&recipient.final_recipient));
        if let Some(diagnostic) = &recipient.diagnostic {
            let _ = writeln!(text, "    {}", cut(one_line(diagnostic), MAX_DIAGNOSTIC_CHARS));
        }
    }
    let _ = write!(text, "\n{}\n", one_line(notice.reporting_server));
    text
}

/// The delivery-status part: per-message fields, then the fields of each recipient.
fn status_fields(notice: &Notice<'_>) -> String {
    let mut fields = format!("Reporting-MTA: dns; {}\r\n", one_line(notice.reporting_server));
    if let Some(arrived) = notice.arrived {
        let _ = write!(fields, "Arrival-Date: {}\r\n", Date::new(arrived.div_euclid(1_000_000)).to_rfc822());
    }
    for recipient in notice.recipients {
        fields.push_str("\r\n");
        if let Some(original) = &recipient.original_recipient {
            let _ = write!(fields, "Original-Recipient: {}\r\n", typed(original));
        }
        let _ = write!(fields, "Final-Recipient: {}\r\n", typed(&recipient.final_recipient));
        let (action, default_status) = match recipient.action {
            Action::Failed => ("failed", "5.0.0"),
            Action::Delayed => ("delayed", "4.0.0"),
            Action::Delivered => ("delivered", "2.0.0"),
            Action::Relayed => ("relayed", "2.0.0"),
            Action::Expanded => ("expanded", "2.0.0"),
        };
        let status = recipient.status.as_deref().unwrap_or(default_status);
        let _ = write!(fields, "Action: {action}\r\nStatus: {}\r\n", ascii(status));
        if let Some(diagnostic) = &recipient.diagnostic {
            let _ =
                write!(fields, "Diagnostic-Code: smtp; {}\r\n", cut(ascii(diagnostic), MAX_DIAGNOSTIC_CHARS));
        }
    }
    fields
}

/// An address with its type.
fn typed(address: &str) -> String {
    let kind = if address.is_ascii() { "rfc822" } else { "utf-8" };
    format!("{kind}; {}", one_line(address))
}

/// The headers of a message, whole lines of them, with proper line ends.
fn header_block(raw: &[u8]) -> &[u8] {
    let end = memmem::find(raw, b"\r\n\r\n").map_or(raw.len(), |end| end + 2);
    let block = raw.get(..end).unwrap_or_default();
    match block.get(..MAX_RETURNED_BYTES) {
        None => block,
        Some(most) => most.get(..memmem::rfind(most, b"\r\n").map_or(0, |end| end + 2)).unwrap_or_default(),
    }
}

/// ASCII text on one line.
fn ascii(text: &str) -> String {
    one_line(text).chars().map(|c| if c.is_ascii() { c } else { '?' }).collect()
}
