//! Fills a mailbox with messages quickly: SQL generates them from a running number, many thousands at once.
//!
//! Lists and counts cost the same however many contents there are, so that a store of a million messages can share a
//! hundred and is filled in a minute or two. Where contents are read, each message has its own: any cache would win
//! otherwise.

use std::fmt::Write as _;

use model::{
    EmailId, MailboxId, Timestamp,
    emails::{InboundProvider, SenderAuthentication},
};
use store::{
    Error, Tx,
    blobs::BlobHash,
    contents::{self, ContentRecord, Part, StoredPart},
    mailboxes,
    search::IndexedText,
    threads,
    vault::DataKey,
};

use crate::{
    fill::{self, Rows, Value, next_random},
    service::Service,
};

/// Contents that messages share.
const SHARED_CONTENTS: usize = 100;
/// Messages per transaction; whole threads.
const BATCH: usize = 21_000;
/// Messages per statement.
const STATEMENT: usize = 600;
/// Words of a message, all of them searchable.
const WORDS: usize = 250;
/// Words of a shared content.
const SHARED_WORDS: usize = 800;
/// The vocabulary. The n-th word is in a share of the messages that falls with n, as in any language.
const VOCABULARY: f64 = 50_000.0;

/// The id of the thread of the n-th message.
pub(crate) fn thread_id(n: usize, thread_size: usize) -> String {
    format!("thr_{:026}", n - (n - 1) % thread_size)
}

/// The id of the n-th message, counted from 1.
pub(crate) fn email_id(n: usize) -> EmailId {
    EmailId::from(format!("eml_{n:026}"))
}

/// What a mailbox is filled with.
#[derive(Clone, Copy)]
pub(crate) struct Filling {
    pub(crate) messages: usize,
    /// Whether search finds them.
    pub(crate) indexed: bool,
    /// Whether each has a content of its own.
    pub(crate) distinct: bool,
    /// Messages of a thread: 1 or 3.
    pub(crate) thread_size: usize,
}

impl Filling {
    /// Messages with shared contents, each in a thread of its own.
    pub(crate) fn new(messages: usize) -> Self {
        Self { messages, indexed: false, distinct: false, thread_size: 1 }
    }

    fn content_id(self, n: usize) -> String {
        content_id(if self.distinct { n } else { n % SHARED_CONTENTS })
    }
}

/// Adds a mailbox with such messages in its Inbox, and returns its public id.
pub(crate) async fn fill(service: &Service, filling: Filling) -> String {
    let (db, workspace) = (service.app.db(), &service.workspace);
    let public_id = fill::add_mailboxes(db, workspace, 1).await.remove(0);
    let mailbox = MailboxId::from(format!("mbx_{:026}", 0));
    if !filling.distinct {
        add_contents(service, 0..SHARED_CONTENTS, SHARED_WORDS).await;
    }
    for first in (1..=filling.messages).step_by(BATCH) {
        let last = (first + BATCH - 1).min(filling.messages);
        if filling.distinct {
            add_contents(service, first..last + 1, WORDS).await;
        }
        let target = mailbox.clone();
        let add = async move |tx: &mut Tx| {
            for first in (first..=last).step_by(STATEMENT) {
                insert(tx, &target, filling, first, (first + STATEMENT - 1).min(last)).await?;
            }
            Ok::<_, Error>(())
        };
        db.write(workspace, add).await.expect("messages are added");
        if filling.indexed {
            index(service, &mailbox, first..=last).await;
        }
    }
    // What the program does as soon as no mail comes.
    let merge = async || db.system_write(async |tx| store::search::merge_some(tx).await).await;
    while filling.indexed && merge().await.expect("the index is merged") {}
    // What autovacuum would do within a minute; SQLite has no such thing.
    if !db.is_sole_node() {
        let analyse = db.system_write(async |tx| tx.run("ANALYZE", &[]).await);
        analyse.await.expect("statistics are gathered");
    }
    public_id
}

async fn add_contents(service: &Service, numbers: std::ops::Range<usize>, words: usize) {
    let key = service.app.data_key(&service.workspace).await.expect("the workspace has a key");
    let sealed: Vec<ContentRecord> = numbers.map(|n| content(&key, n, words)).collect();
    let add = async move |tx: &mut Tx| {
        for content in &sealed {
            contents::insert(tx, content, Timestamp::from_micros(0)).await?;
        }
        Ok::<_, Error>(())
    };
    service.app.db().write(&service.workspace, add).await.expect("contents are added");
}

fn content_id(n: usize) -> String {
    BlobHash::of(&n.to_le_bytes()).as_str().to_owned()
}

/// The text of the n-th content.
pub(crate) fn body(n: usize, words: usize) -> String {
    text(&mut (n as u64).wrapping_mul(0x9e37_79b9), words)
}

/// The text of the n-th message, where each has its own.
pub(crate) fn own_body(n: usize) -> String {
    body(n, WORDS)
}

/// The header block of the n-th content.
pub(crate) fn headers(n: usize) -> String {
    format!(
        "Received: from mx.remote.test (mx.remote.test [192.0.2.1]) by mx.agents.test with ESMTP id {n};\r\n \
         Mon, 13 Jul 2026 10:00:00 +0000\r\nFrom: Customer <customer@remote.test>\r\nTo: bench-0@agents.test\r\n\
         Subject: Invoice {n}\r\nMessage-ID: <{n}@remote.test>\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\n"
    )
}

fn content(key: &DataKey, n: usize, words: usize) -> ContentRecord {
    let text = body(n, words);
    let raw = format!("{}\r\n{text}\r\n", headers(n));
    let id = content_id(n);
    let seal = |part, bytes: &str| {
        StoredPart::InRow(contents::seal(key, &id, part, bytes.as_bytes()).expect("a content is sealed"))
    };
    let size = i64::try_from(raw.len()).unwrap_or_default();
    let (raw, body) = (seal(Part::Raw, &raw), seal(Part::Body, &text));
    let headers = contents::seal(key, &id, Part::Headers, headers(n).as_bytes()).expect("headers are sealed");
    ContentRecord { id, size, raw, headers: Some(headers), body, safe: None }
}

/// The beginning of every message, as lists show it.
pub(crate) fn snippet() -> String {
    text(&mut 7, 30)
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

/// Lines of words, about this many bytes: 1,500 words in 10 KB. Every other word is one that came before, as in what people
/// write: of 1,500 words 480 are different ones, as on average in the public messages of `scripts/corpora`.
pub(crate) fn prose(seed: usize, bytes: usize) -> String {
    const AGAIN_PERCENT: u64 = 51;
    const WORDS_OF_A_LINE: usize = 10;
    let (mut state, mut ranks) = (seed as u64, Vec::new());
    let mut prose = String::with_capacity(bytes + 100);
    while prose.len() < bytes || !ranks.len().is_multiple_of(WORDS_OF_A_LINE) {
        let chance = next_random(&mut state) >> 32;
        let rank = match usize::try_from(chance / 100) {
            Ok(place) if !ranks.is_empty() && chance % 100 < AGAIN_PERCENT => ranks[place % ranks.len()],
            _ => rank(&mut state),
        };
        ranks.push(rank);
        prose.push_str(&word(rank));
        prose.push(if ranks.len().is_multiple_of(WORDS_OF_A_LINE) { '\n' } else { ' ' });
    }
    prose
}

/// The word with this rank; the first is the most common. Words begin with all kinds of letters, as in a language: one
/// that is looked for is told from most others by its first letter.
pub(crate) fn word(rank: usize) -> String {
    const CONSONANTS: &[u8] = b"bcdfghjklmnprstvwz";
    const VOWELS: &[u8] = b"aeiou";
    let mut word = String::with_capacity(8);
    let mut rest = rank;
    loop {
        let syllable = rest % (CONSONANTS.len() * VOWELS.len());
        word.push(char::from(CONSONANTS[syllable % CONSONANTS.len()]));
        word.push(char::from(VOWELS[syllable / CONSONANTS.len()]));
        rest /= CONSONANTS.len() * VOWELS.len();
        if rest == 0 {
            word.push_str("nt");
            return word;
        }
    }
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

async fn insert(
    tx: &mut Tx,
    mailbox: &MailboxId,
    filling: Filling,
    first: usize,
    last: usize,
) -> Result<(), Error> {
    let number = |number: usize| i64::try_from(number).unwrap_or_default();
    let authentication = SenderAuthentication::unknown(Some(InboundProvider::EdgeRouting));
    let authentication = serde_json::to_string(&authentication).expect("a verdict is JSON");
    let snippet = snippet();
    // The contents' ids in a row, from which each message takes its own.
    let contents: String = (first..=last).map(|n| filling.content_id(n)).collect();
    let params = [
        mailbox.into(),
        number(first).into(),
        number(last).into(),
        authentication.as_str().into(),
        snippet.as_str().into(),
        contents.as_str().into(),
        number(filling.thread_size).into(),
    ];
    tx.run(&insert_statement(), &params).await?;
    let range = [mailbox.into(), number(first).into(), number(last).into()];
    for statement in thread_statements() {
        tx.run(&statement, &range).await?;
    }
    let (total, read) = (number(last - first + 1), number(last / 2) - number((first - 1) / 2));
    for folder in ["inbox", threads::LISTED] {
        let threads = (total + number(filling.thread_size) - 1) / number(filling.thread_size);
        mailboxes::add_to_counter(tx, mailbox, &threads::counter(folder), threads).await?;
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

/// The threads of the messages, in their folder and in the list of all.
fn thread_statements() -> [String; 2] {
    let chosen = "WHERE workspace_id = $1 AND mailbox_id = $2 AND arrival BETWEEN $3 AND $4";
    [
        format!(
            "INSERT INTO {THREAD} SELECT workspace_id, mailbox_id, thread_id, max(date), count(*) FROM {EMAIL_TABLE} {chosen}
  GROUP BY workspace_id, mailbox_id, thread_id"
        ),
        format!(
            "INSERT INTO {THREAD_FOLDER}
  SELECT workspace_id, mailbox_id, place.folder_id, thread_id, max(date), max(id), count(*), sum(1 - read)
  FROM {EMAIL_TABLE} CROSS JOIN (SELECT 'inbox' AS folder_id UNION ALL SELECT '') AS place {chosen}
  GROUP BY workspace_id, mailbox_id, place.folder_id, thread_id"
        ),
    ]
}

/// Messages one second apart; every other one is read.
fn insert_statement() -> String {
    format!(
        "WITH RECURSIVE numbers (n) AS (
    SELECT CAST($3 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < CAST($4 AS BIGINT)),
  made AS (SELECT n, '0000000000000000' || substr(CAST(10000000000 + n AS TEXT), 2) AS id,
    '0000000000000000' || substr(CAST(10000000000 + n - (n - 1) % CAST($8 AS BIGINT) AS TEXT), 2) AS thread,
    1750000000000000 + n * 1000000 AS at, 'Invoice ' || n || ' of your order' AS subject,
    'customer-' || (n % 500) || '@remote.test' AS address FROM numbers)
  INSERT INTO {TABLE}
  SELECT $1, $2, 'eml_' || id, 'thr_' || thread, 'inbox',
    substr(CAST($7 AS TEXT), CAST((n - CAST($3 AS BIGINT)) * 64 + 1 AS INTEGER), 64),
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
            let body = own_body(n);
            let id = Value::Text(email_id(n).to_string());
            if of_text {
                let row = Value::Integer(i64::try_from(n).unwrap_or_default());
                let subject = format!("invoice {n} of your order");
                let sender = "customer customer remote test";
                let text = IndexedText::new(&subject, sender, "bench 0 agents test", &body);
                let [scope, subject, sender, recipient, body] = text.scoped(&mailbox).map(Value::Text);
                rows.add([row, id, scope, subject, sender, recipient, body]);
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
    service.app.db().system_write(add).await.expect("messages are stored for the index");
    operations::storage::index_marked(&service.app).await.expect("messages are indexed");
}
