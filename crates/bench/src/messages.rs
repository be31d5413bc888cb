//! Fills a mailbox with messages quickly: SQL generates them from a running number, many thousands at once.
//!
//! Messages share a hundred contents, sealed as the service seals them. Lists, single reads and searches cost the
//! same as with a content for each, and a store of a million messages is filled in a minute or two.

use std::fmt::Write as _;

use model::{
    EmailId, MailboxId, Timestamp,
    emails::{InboundProvider, SenderAuthentication},
};
use store::{
    Error, Tx,
    blobs::BlobHash,
    contents::{self, ContentRecord, Part, StoredPart},
    mailboxes, threads,
    vault::DataKey,
};

use crate::{
    fill::{self, Rows, Value, next_random},
    service::Service,
};

/// Contents that the messages share.
const CONTENTS: usize = 100;
/// Messages per transaction.
const BATCH: usize = 20_000;
/// Searchable words per message.
const WORDS: usize = 120;
/// The vocabulary. The n-th word is in a share of the messages that falls with n, as in any language.
const VOCABULARY: f64 = 50_000.0;

/// The id of the n-th message, counted from 1.
pub(crate) fn email_id(n: usize) -> EmailId {
    EmailId::from(format!("eml_{n:026}"))
}

/// Adds a mailbox with so many messages in its Inbox, indexed if search should find them. Returns its public id.
pub(crate) async fn fill(service: &Service, count: usize, indexed: bool) -> String {
    let (db, workspace) = (service.app.db(), &service.workspace);
    let public_id = fill::add_mailboxes(db, workspace, 1).await.remove(0);
    let mailbox = MailboxId::from(format!("mbx_{:026}", 0));
    let key = service.app.data_key(workspace).await.expect("the workspace has a key");
    let sealed: Vec<ContentRecord> = (0..CONTENTS).map(|n| content(&key, n)).collect();
    let add_contents = async move |tx: &mut Tx| {
        for content in &sealed {
            contents::insert(tx, content, Timestamp::from_micros(0)).await?;
        }
        Ok::<_, Error>(())
    };
    db.write(workspace, add_contents).await.expect("contents are added");
    for first in (1..=count).step_by(BATCH) {
        let last = (first + BATCH - 1).min(count);
        let target = mailbox.clone();
        let add = async move |tx: &mut Tx| insert(tx, &target, first, last).await;
        db.write(workspace, add).await.expect("messages are added");
        if indexed {
            index(service, &mailbox, first..=last).await;
        }
    }
    // What autovacuum would do within a minute; SQLite has no such thing.
    if !db.is_sole_node() {
        let analyse = db.system_write(async |tx| tx.run("ANALYZE", &[]).await);
        analyse.await.expect("statistics are gathered");
    }
    public_id
}

fn content_id(n: usize) -> String {
    BlobHash::of(&n.to_le_bytes()).as_str().to_owned()
}

/// A message of about 4 KB.
fn content(key: &DataKey, n: usize) -> ContentRecord {
    let mut state = n as u64;
    let text = text(&mut state, 800);
    let raw = format!(
        "Received: from mx.remote.test (mx.remote.test [192.0.2.1]) by mx.agents.test with ESMTP id {n};\r\n \
         Mon, 13 Jul 2026 10:00:00 +0000\r\nFrom: Customer <customer@remote.test>\r\nTo: bench-0@agents.test\r\n\
         Subject: Invoice {n}\r\nMessage-ID: <{n}@remote.test>\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\n\r\n{text}\r\n"
    );
    let id = content_id(n);
    let seal = |part, bytes: &str| {
        StoredPart::InRow(contents::seal(key, &id, part, bytes.as_bytes()).expect("a content is sealed"))
    };
    let size = i64::try_from(raw.len()).unwrap_or_default();
    let (raw, body) = (seal(Part::Raw, &raw), seal(Part::Body, &text));
    ContentRecord { id, size, raw, headers: None, body, safe: None }
}

/// Random words, common ones more often.
fn text(state: &mut u64, words: usize) -> String {
    let mut text = String::with_capacity(words * 6);
    for index in 0..words {
        let space = if index == 0 { "" } else { " " };
        let _ = write!(text, "{space}{}", word(rank(state)));
    }
    text
}

/// Lines of words, about this many bytes.
pub(crate) fn prose(seed: usize, bytes: usize) -> String {
    let mut state = seed as u64;
    let mut prose = String::with_capacity(bytes + 100);
    while prose.len() < bytes {
        prose.push_str(&text(&mut state, 10));
        prose.push('\n');
    }
    prose
}

/// The word with this rank; the first is the most common.
pub(crate) fn word(rank: usize) -> String {
    format!("word{rank}")
}

fn rank(state: &mut u64) -> usize {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a random share, and a rank below the size of the vocabulary"
    )]
    let rank = VOCABULARY.powf((next_random(state) >> 11) as f64 / (1_u64 << 53) as f64) as usize;
    rank
}

async fn insert(tx: &mut Tx, mailbox: &MailboxId, first: usize, last: usize) -> Result<(), Error> {
    let number = |number: usize| i64::try_from(number).unwrap_or_default();
    let authentication = SenderAuthentication::unknown(Some(InboundProvider::EdgeRouting));
    let authentication = serde_json::to_string(&authentication).expect("a verdict is JSON");
    let snippet = text(&mut 7, 30);
    // The contents' ids in a row, from which each message takes its own.
    let contents: String = (0..CONTENTS).map(content_id).collect();
    let params = [
        mailbox.into(),
        number(first).into(),
        number(last).into(),
        authentication.as_str().into(),
        snippet.as_str().into(),
        contents.as_str().into(),
    ];
    tx.run(&insert_statement(), &params).await?;
    let range = [mailbox.into(), number(first).into(), number(last).into()];
    for statement in thread_statements() {
        tx.run(&statement, &range).await?;
    }
    let (total, read) = (number(last - first + 1), number(last / 2) - number((first - 1) / 2));
    for folder in ["inbox", threads::LISTED] {
        mailboxes::add_to_counter(tx, mailbox, &threads::counter(folder), total).await?;
    }
    let figures = "folder SET total_count = total_count + $3, unread_count = unread_count + $4";
    tx.run(
        &format!("UPDATE {figures} WHERE workspace_id = $1 AND mailbox_id = $2 AND id = 'inbox'"),
        &[mailbox.into(), total.into(), (total - read).into()],
    )
    .await?;
    Ok(())
}

/// The table of messages with the columns that are set.
const TABLE: &str = "email (workspace_id, mailbox_id, id, thread_id, folder_id, content_id, outgoing, listed,
    arrival, arrived_at, date, subject, sender, sender_address, recipient, to_line, subject_order,
    sender_order, recipient_order, read, starred, is_urgent, category, snippet, body_format, safe_source,
    safe_divergent, size, stored_objects, message_id, scan_status, scan_threats, sender_authentication, attachments,
    attachment_count, label_count, text_row)";

const THREAD: &str = "thread (workspace_id, mailbox_id, id, newest_at, mail_count)";
const THREAD_FOLDER: &str =
    "thread_folder (workspace_id, mailbox_id, folder_id, thread_id, newest_at, newest_email,
    mail_count, unread_count)";
const EMAIL_TABLE: &str = "email";

/// A thread for each message, in its folder and in the list of all.
fn thread_statements() -> [String; 2] {
    let chosen = "WHERE workspace_id = $1 AND mailbox_id = $2 AND arrival BETWEEN $3 AND $4";
    [
        format!(
            "INSERT INTO {THREAD} SELECT workspace_id, mailbox_id, thread_id, date, 1 FROM {EMAIL_TABLE} {chosen}"
        ),
        format!(
            "INSERT INTO {THREAD_FOLDER}
  SELECT workspace_id, mailbox_id, place.folder_id, thread_id, date, id, 1, 1 - read FROM {EMAIL_TABLE}
  CROSS JOIN (SELECT 'inbox' AS folder_id UNION ALL SELECT '') AS place {chosen}"
        ),
    ]
}

/// Messages one second apart; every other one is read.
fn insert_statement() -> String {
    format!(
        "WITH RECURSIVE numbers (n) AS (
    SELECT CAST($3 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < CAST($4 AS BIGINT)),
  made AS (SELECT n, '0000000000000000' || substr(CAST(10000000000 + n AS TEXT), 2) AS id,
    1750000000000000 + n * 1000000 AS at, 'Invoice ' || n || ' of your order' AS subject,
    'customer-' || (n % 500) || '@remote.test' AS address FROM numbers)
  INSERT INTO {TABLE}
  SELECT $1, $2, 'eml_' || id, 'thr_' || id, 'inbox', substr(CAST($7 AS TEXT), CAST((n % 100) * 64 + 1 AS INTEGER), 64),
    0, 1, n, at, at, subject, 'Customer <' || address || '>', address, 'bench-0@agents.test', 'bench-0@agents.test',
    lower(subject), 'customer <' || address || '>', 'bench-0@agents.test', (n + 1) % 2, 0, 0, 'other',
    CAST($6 AS TEXT), 'text', 'text', 0, 10240, 1, '<' || n || '@remote.test>', 'clean', '[]', CAST($5 AS TEXT),
    '[]', 0, 0, n FROM made"
    )
}

/// Indexes messages as the service does, each with words of its own.
async fn index(service: &Service, mailbox: &MailboxId, numbers: std::ops::RangeInclusive<usize>) {
    let (workspace, mailbox) = (service.workspace.clone(), mailbox.clone());
    let scope: String = mailbox.as_str().chars().filter(char::is_ascii_alphanumeric).collect();
    let of_text = service.app.db().is_sole_node();
    let add = async move |tx: &mut store::SystemTx| {
        let mut rows = if of_text {
            Rows::new("email_text (rowid, email_id, scope, subject, sender, recipient, body)")
        } else {
            let last = |place: usize| format!("CAST(CAST(${place} AS TEXT) AS tsvector)");
            Rows::new("email_text (workspace_id, mailbox_id, email_id, words)").with_last(last)
        };
        for n in numbers {
            let body = text(&mut (n as u64).wrapping_mul(0x9e37_79b9), WORDS);
            let id = Value::Text(email_id(n).to_string());
            if of_text {
                let row = Value::Integer(i64::try_from(n).unwrap_or_default());
                let subject = Value::Text(format!("invoice {n} of your order"));
                let sender = Value::text("customer customer remote test");
                let recipient = Value::text("bench 0 agents test");
                rows.add([row, id, Value::text(&scope), subject, sender, recipient, Value::Text(body)]);
            } else {
                let mut vector = format!("'{scope}' 'invoice':1A '{n}':2A");
                for (place, word) in (20..).zip(body.split(' ')) {
                    let _ = write!(vector, " '{word}':{place}D");
                }
                let (workspace, mailbox) = (Value::text(workspace.as_str()), Value::text(mailbox.as_str()));
                rows.add([workspace, mailbox, id, Value::Text(vector)]);
            }
        }
        rows.insert(tx).await
    };
    service.app.db().system_write(add).await.expect("messages are indexed");
}
