//! Imports: messages uploaded by a caller, stored like arriving mail but without a trusted transport.

use std::sync::Arc;

use bytes::Bytes;
use model::{
    EmailId, Plan, WorkspaceId,
    emails::{Imported, SenderAuthentication},
};
use store::mailboxes::MailboxRecord;

use crate::{
    core::{
        app::App,
        call::Call,
        error::{Error, ErrorKind, Result},
    },
    inbox::inbound::{self, Content, Delivery, MailboxDelivery, PreparedMessage, Recipient},
    mailbox::mailboxes,
};

/// Ids that a response lists.
const MAX_LISTED_IDS: usize = 1000;
/// Messages of one file by the API; larger archives are for `agent-mailbox import`.
const MAX_MESSAGES: usize = 10_000;

/// Messages of one file that are stored with the same statements.
const MAX_STORED_TOGETHER: usize = 64;

/// Imports one message.
#[crate::boxed]
pub async fn import_message(app: &App, call: &Call, mailbox: &str, raw: Bytes) -> Result<Imported> {
    import(app, call, mailbox, vec![raw]).await
}

/// Imports an mbox file, all of it or nothing.
#[crate::boxed]
pub async fn import_mbox(app: &App, call: &Call, mailbox: &str, file: Bytes) -> Result<Imported> {
    let messages = split_mbox(&file);
    if messages.is_empty() {
        return Err(Error::invalid("", "an mbox file begins with a line that begins with \"From \""));
    }
    if messages.len() > MAX_MESSAGES {
        let fix = "Split the file, or use the command agent-mailbox import.";
        return Err(Error::new(ErrorKind::PayloadTooLarge).with_fix(fix));
    }
    import(app, call, mailbox, messages).await
}

async fn import(app: &App, call: &Call, mailbox: &str, messages: Vec<Bytes>) -> Result<Imported> {
    let named = mailboxes::name(call, mailbox);
    let record: MailboxRecord = app.read(call, async move |tx| mailboxes::find(tx, &named).await).await?;
    let recipient = Recipient {
        workspace: call.workspace.clone(),
        plan: call.plan,
        mailbox: record.id,
        address: record.email,
        policy: None,
    };
    require_room(app, &recipient.workspace, recipient.plan, messages.iter().map(Bytes::len).sum()).await?;
    let mut ready: Vec<(EmailId, Arc<PreparedMessage>, Content)> = Vec::with_capacity(messages.len());
    for raw in messages {
        if raw.is_empty() {
            return Err(Error::invalid("", "the message is empty"));
        }
        let (prepared, contents) =
            inbound::prepare_and_seal(app, &raw, std::iter::once(&call.workspace)).await?;
        let content = contents.into_values().next().ok_or_else(|| Error::internal("nothing was sealed"))?;
        ready.push((app.new_id(), prepared, content));
    }
    let app_ = app.clone();
    app.write(call, async move |tx| {
        tx.audit().in_mailbox(&recipient.mailbox);
        let authentication = SenderAuthentication::unknown(None);
        for some in ready.chunks(MAX_STORED_TOGETHER) {
            let deliveries: Vec<Delivery<'_>> =
                some.iter().map(|(_, prepared, _)| delivery(&app_, prepared, &authentication)).collect();
            let with_places = some.iter().zip(&deliveries);
            let placed: Vec<MailboxDelivery<'_>> = with_places
                .map(|((id, _, content), delivery)| MailboxDelivery {
                    delivery,
                    recipient: &recipient,
                    id,
                    content,
                })
                .collect();
            inbound::store_all(tx, &app_, &placed).await?;
        }
        let imported = i64::try_from(ready.len()).unwrap_or(i64::MAX);
        Ok(Imported { imported, ids: ready.into_iter().take(MAX_LISTED_IDS).map(|(id, _, _)| id).collect() })
    })
    .await
}

fn delivery<'a>(
    app: &'a App,
    prepared: &'a PreparedMessage,
    authentication: &'a SenderAuthentication,
) -> Delivery<'a> {
    Delivery { app, prepared, authentication, sender: None, now: app.now(), imported: true }
}

/// Refuses what the plan's storage has no room for.
pub(crate) async fn require_room(app: &App, workspace: &WorkspaceId, plan: Plan, bytes: usize) -> Result<()> {
    let stored = app
        .db()
        .read(workspace, async |tx| store::mailboxes::stored_bytes(tx).await)
        .await
        .map_err(Error::from)?;
    require_room_beside(app, plan, stored, bytes)
}

/// The same where the stored bytes are known.
pub(crate) fn require_room_beside(app: &App, plan: Plan, stored: i64, bytes: usize) -> Result<()> {
    let limit = app.limits(plan).storage_bytes;
    let after = u64::try_from(stored).unwrap_or_default().saturating_add(bytes as u64);
    if limit.get().is_some_and(|most| after > most) {
        return Err(Error::quota("bytes of storage", limit));
    }
    Ok(())
}

/// The messages of an mbox file. A line that begins with "From " after an empty line begins a message; ">From " is
/// one that was quoted.
pub fn split_mbox(file: &Bytes) -> Vec<Bytes> {
    let mut starts = Vec::new();
    let mut at = 0;
    let mut after_empty = true;
    while at < file.len() {
        let end =
            file[at..].iter().position(|byte| *byte == b'\n').map_or(file.len(), |found| at + found + 1);
        let line = &file[at..end];
        if after_empty && line.starts_with(b"From ") {
            starts.push((at, end));
        }
        after_empty = matches!(line, b"\n" | b"\r\n");
        at = end;
    }
    let ends = starts.iter().skip(1).map(|(start, _)| *start).chain([file.len()]);
    starts.iter().zip(ends).map(|((_, begin), end)| unquoted(file, *begin, end)).collect()
}

/// A message without the empty line that separates it from the next, and without the quotation of "From " lines.
fn unquoted(file: &Bytes, begin: usize, end: usize) -> Bytes {
    let whole = file.slice(begin..end);
    // Every message is followed by an empty line, also the last one unless its writer left it out.
    let separator = if whole.ends_with(b"\n\r\n") || whole == "\r\n" {
        2
    } else {
        usize::from(whole.ends_with(b"\n\n") || whole == "\n")
    };
    let message = whole.slice(..whole.len() - separator);
    let is_quoted = |line: &[u8]| {
        line.first() == Some(&b'>')
            && line.iter().skip_while(|byte| **byte == b'>').copied().take(5).eq(*b"From ")
    };
    if !message.split(|byte| *byte == b'\n').any(is_quoted) {
        return message;
    }
    let mut plain = Vec::with_capacity(message.len());
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        plain.extend_from_slice(if is_quoted(line) { &line[1..] } else { line });
    }
    Bytes::from(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    // rules: RECV-25
    #[test]
    fn an_mbox_file_is_split_at_its_from_lines() {
        let file = b"From a@x Mon\nSubject: one\n\nText\n>From here\n>>From there\nFrom inside\n\nFrom b@x Tue\nSubject: two\n\nmore\n";
        let messages = split_mbox(&Bytes::from_static(file));
        assert_eq!(
            messages,
            [&b"Subject: one\n\nText\nFrom here\n>From there\nFrom inside\n"[..], b"Subject: two\n\nmore\n"]
        );
        assert!(split_mbox(&Bytes::from_static(b"Subject: none\n\n")).is_empty());
        assert_eq!(
            split_mbox(&Bytes::from_static(
                b"From x\r\nA: b\r\n\r\nc\r\n\r\nFrom y\r\nD: e\r\n\r\nf\r\n\r\n"
            )),
            ["A: b\r\n\r\nc\r\n", "D: e\r\n\r\nf\r\n"]
        );
        assert_eq!(split_mbox(&Bytes::from_static(b"From x\n\nFrom y\n\n\n")), ["", "\n"]);
    }
}
