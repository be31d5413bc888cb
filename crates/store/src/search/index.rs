//! Writing the full-text index.
//!
//! Both engines index several emails at once, soon after their commits. On PostgreSQL the words are stored with the email
//! and [marked](super::marked). On SQLite each email has a marker row until then, and a search flushes them first
//! ([`crate::Db::index_texts`]).

use std::collections::BTreeMap;

use bytes::BufMut;
use model::{EmailId, MailboxId, WorkspaceId, search::words::joined};

use super::scope::{prefix, scope};
use crate::{
    Param, SystemTx, Tx,
    error::Result,
    sql::{Columns, columns},
};

/// Indexed words of a body; more than a long chapter of a novel.
const MAX_BODY_WORDS: usize = 20_000;
/// Indexed bytes of a body's words: PostgreSQL rejects a tsvector of one megabyte.
const MAX_BODY_BYTES: usize = 512 * 1024;
/// Overhead of each word in a tsvector: quotes, a colon and a position.
const WORD_OVERHEAD_BYTES: usize = 16;
/// Indexed words of a header line.
const MAX_LINE_WORDS: usize = 200;
/// PostgreSQL stores no position beyond this one; the bits above it are the weight.
const MAX_POSITION: u16 = 16_383;
const WEIGHT_SHIFT: u32 = 14;
/// PostgreSQL stores no more positions per word.
const MAX_POSITIONS_PER_WORD: usize = 255;

/// The text of an email for the search index.
#[derive(Clone, Debug, Default)]
pub struct IndexedText {
    /// The words of the subject, the sender, the recipients and the body, with spaces between them.
    fields: [String; 4],
}

impl IndexedText {
    /// Splits the texts of an email into words.
    pub fn new(subject: &str, sender: &str, recipients: &str, body: &str) -> Self {
        Self {
            fields: [
                joined(subject, MAX_LINE_WORDS, usize::MAX, 0),
                joined(sender, MAX_LINE_WORDS, usize::MAX, 0),
                joined(recipients, MAX_LINE_WORDS, usize::MAX, 0),
                joined(body, MAX_BODY_WORDS, MAX_BODY_BYTES, WORD_OVERHEAD_BYTES),
            ],
        }
    }

    /// The columns of SQLite's index: the mailbox's prefix, and before every word.
    pub fn scoped(&self, mailbox: &MailboxId) -> [String; 5] {
        let prefix = prefix(mailbox);
        let [subject, sender, recipient, body] = self.fields.each_ref().map(|field| prefixed(field, &prefix));
        [prefix, subject, sender, recipient, body]
    }

    /// The words with their positions, in the binary form of a tsvector, which PostgreSQL need not parse and sort.
    /// Fields differ by weight.
    fn vector(&self, scope: &str) -> Vec<u8> {
        let mut places: BTreeMap<&str, Vec<u16>> = BTreeMap::from([(scope, Vec::new())]);
        let mut position = 1;
        for (field, weight) in self.fields.iter().zip([3, 2, 1, 0]) {
            for word in field.split_terminator(' ') {
                let of_word = places.entry(word).or_default();
                let place = weight << WEIGHT_SHIFT | position;
                // Positions rise: those beyond the last one are the last one.
                let is_beyond = of_word.last().is_some_and(|last| last & MAX_POSITION == MAX_POSITION);
                if of_word.len() < MAX_POSITIONS_PER_WORD && !is_beyond {
                    of_word.push(place);
                }
                position = (position + 1).min(MAX_POSITION);
            }
            // A phrase must not span two fields.
            position = (position + 2).min(MAX_POSITION);
        }
        let mut bytes = Vec::with_capacity(places.len() * WORD_OVERHEAD_BYTES);
        bytes.put_u32(u32::try_from(places.len()).unwrap_or(u32::MAX));
        for (word, places) in places {
            bytes.put_slice(word.as_bytes());
            bytes.put_u8(0);
            bytes.put_u16(u16::try_from(places.len()).unwrap_or(u16::MAX));
            for place in places {
                bytes.put_u16(place);
            }
        }
        bytes
    }
}

/// The words of a text, each behind a prefix.
fn prefixed(words: &str, prefix: &str) -> String {
    let count = words.bytes().filter(|byte| *byte == b' ').count() + 1;
    let mut all = String::with_capacity(words.len() + count * prefix.len());
    for word in words.split_terminator(' ') {
        if !all.is_empty() {
            all.push(' ');
        }
        all.push_str(prefix);
        all.push_str(word);
    }
    all
}

/// A row of SQLite's index.
fn index_row<'a>(row: i64, email: &'a EmailId, columns: &'a [String; 5]) -> [Param<'a>; 7] {
    let [scope, subject, sender, recipient, body] = columns.each_ref().map(Param::from);
    [row.into(), email.into(), scope, subject, sender, recipient, body]
}

/// Inserts a text into SQLite's index. $1, the workspace, is not needed: the prefix is the mailbox's.
/// VALUES, not a query: before a statement that may insert several rows FTS5 would flush.
const INSERT_TEXT: &str = "INSERT INTO email_text (rowid, email_id, scope, subject, sender, recipient, body)
     VALUES ($2, $3, $4, $5, $6, $7, $8)";
/// Deletes a text. A restored email has its row number from the index of the original store, where another email may
/// be by now.
const DELETE_TEXT: &str = "DELETE FROM email_text WHERE rowid = $2 AND email_id = $3 AND $1 <> ''";
/// Deletes the marker of an email that is pending indexing.
const DELETE_MARKER: &str =
    "DELETE FROM email_text_pending WHERE workspace_id = $1 AND id = $2 AND email_id = $3";

/// Indexes an email where that comes before its row, and returns its row in the index.
pub(crate) async fn insert_before(
    tx: &mut Tx,
    mailbox: &MailboxId,
    email: &EmailId,
    text: &IndexedText,
) -> Result<Option<i64>> {
    if tx.is_postgres() {
        return Ok(None);
    }
    let row = tx.next_number(
        "SELECT max(coalesce((SELECT max(id) FROM email_text_docsize), 0),
           coalesce((SELECT max(id) FROM email_text_pending), 0))",
    )?;
    tx.run(
        "INSERT INTO email_text_pending (workspace_id, id, mailbox_id, email_id) VALUES ($1, $2, $3, $4)",
        &[row.into(), mailbox.into(), email.into()],
    )
    .await?;
    let columns = text.scoped(mailbox);
    tx.defer((DELETE_MARKER, &[row.into(), email.into()]), (INSERT_TEXT, &index_row(row, email, &columns)))?;
    Ok(Some(row))
}

/// Indexes emails where that comes after their rows.
pub(crate) async fn insert_after(tx: &mut Tx, emails: &[(&MailboxId, &EmailId, &IndexedText)]) -> Result<()> {
    if !tx.is_postgres() {
        return Ok(());
    }
    let vectors: Vec<Vec<u8>> =
        emails.iter().map(|(mailbox, _, text)| text.vector(&scope(mailbox))).collect();
    let with_vectors = emails.iter().zip(&vectors);
    let rows = with_vectors
        .map(|((mailbox, email, _), vector)| vec![(*mailbox).into(), (*email).into(), vector.into()])
        .collect();
    tx.pipeline_rows(
        "INSERT INTO email_text (workspace_id, mailbox_id, email_id, words)
         VALUES ($1, $2, $3, $4)",
        rows,
    )
    .await
}

/// Removes an email from the index. PostgreSQL does that with the row itself.
pub(crate) async fn delete(tx: &mut Tx, email: &EmailId, text_row: Option<i64>) -> Result<()> {
    if let Some(row) = text_row
        && !tx.is_postgres()
    {
        tx.run(DELETE_MARKER, &[row.into(), email.into()]).await?;
        tx.at_commit(DELETE_TEXT, &[row.into(), email.into()]).await?;
    }
    Ok(())
}

/// The fields of an email that its search text is built from.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns of the table")]
pub struct IndexableEmail {
    pub mailbox_id: MailboxId,
    pub id: EmailId,
    pub content_id: String,
    pub subject: String,
    pub sender: String,
    pub to_line: String,
    pub cc: Option<String>,
}

columns!(IndexableEmail { mailbox_id, id, content_id, subject, sender, to_line, cc });

/// One email of the workspace.
pub async fn find_indexable(
    tx: &mut Tx,
    mailbox: &MailboxId,
    email: &EmailId,
) -> Result<Option<IndexableEmail>> {
    tx.one(
        &format!(
            "SELECT {} FROM email
         WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
            IndexableEmail::COLUMNS
        ),
        &[mailbox.into(), email.into()],
    )
    .await
}

/// Emails of the workspace after the given one, by mailbox and age, the order in which they are indexed.
pub async fn list_after(
    tx: &mut Tx,
    mailbox: &MailboxId,
    email: &EmailId,
    most: i64,
) -> Result<Vec<IndexableEmail>> {
    tx.all(
        &format!(
            "SELECT {} FROM email
         WHERE workspace_id = $1 AND (mailbox_id, id) > ($2, $3) ORDER BY mailbox_id, id LIMIT $4",
            IndexableEmail::COLUMNS
        ),
        &[mailbox.into(), email.into(), most.into()],
    )
    .await
}

/// How many emails there are, and how many are indexed or about to be.
pub async fn coverage(tx: &mut SystemTx) -> Result<(i64, i64)> {
    let sql = if tx.is_postgres() {
        "SELECT (SELECT count(*) FROM email), (SELECT count(*) FROM email_text)"
    } else {
        "SELECT (SELECT count(*) FROM email),
           (SELECT count(*) FROM email_text) + (SELECT count(*) FROM email_text_pending)"
    };
    Ok(tx.one(sql, &[]).await?.unwrap_or_default())
}

/// The marker of an email that is pending indexing.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns of the table")]
pub struct IndexMarker {
    pub id: i64,
    pub workspace_id: WorkspaceId,
    pub mailbox_id: MailboxId,
    pub email_id: EmailId,
}

columns!(IndexMarker { id, workspace_id, mailbox_id, email_id });

/// The markers after one number up to another, in order. Those that remain were left by a process that ended before
/// it indexed their emails.
pub async fn list_pending(tx: &mut SystemTx, after: i64, up_to: i64, most: i64) -> Result<Vec<IndexMarker>> {
    if tx.is_postgres() {
        return Ok(Vec::new());
    }
    tx.all(
        &format!(
            "SELECT {} FROM email_text_pending
         WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3",
            IndexMarker::COLUMNS
        ),
        &[after.into(), up_to.into(), most.into()],
    )
    .await
}

/// The number of the newest marker; 0 when there is none.
pub async fn newest_pending(tx: &mut SystemTx) -> Result<i64> {
    if tx.is_postgres() {
        return Ok(0);
    }
    let found = tx.one("SELECT coalesce(max(id), 0) FROM email_text_pending", &[]).await?;
    Ok(found.map_or(0, |(newest,)| newest))
}

/// Indexes the email of a marker and deletes the marker, unless that was done, or the marker is gone or of another
/// email by now.
pub async fn index_pending(tx: &mut Tx, marker: &IndexMarker, text: Option<&IndexedText>) -> Result<()> {
    let about: [Param<'_>; 2] = [marker.id.into(), (&marker.email_id).into()];
    let marked = tx.run(DELETE_MARKER, &about).await? > 0;
    let row: Option<(Option<i64>,)> = tx
        .one(
            "SELECT text_row FROM email WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
            &[(&marker.mailbox_id).into(), (&marker.email_id).into()],
        )
        .await?;
    if marked
        && row == Some((Some(marker.id),))
        && let Some(text) = text
    {
        let columns = text.scoped(&marker.mailbox_id);
        // Immediately: otherwise the number would be unused between the marker and the text.
        tx.run(INSERT_TEXT, &index_row(marker.id, &marker.email_id, &columns)).await?;
    }
    Ok(())
}

/// Re-indexes an email, for a store whose index was lost or never restored. A deleted email is skipped.
pub async fn reindex(tx: &mut Tx, mailbox: &MailboxId, email: &EmailId, text: &IndexedText) -> Result<()> {
    let sql = format!(
        "SELECT text_row FROM email WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3{}",
        tx.for_key_share()
    );
    let found: Option<(Option<i64>,)> = tx.one(&sql, &[mailbox.into(), email.into()]).await?;
    let Some((text_row,)) = found else { return Ok(()) };
    if tx.is_postgres() {
        tx.run(
            "DELETE FROM email_text WHERE workspace_id = $1 AND mailbox_id = $2 AND email_id = $3",
            &[mailbox.into(), email.into()],
        )
        .await?;
        return insert_after(tx, &[(mailbox, email, text)]).await;
    }
    delete(tx, email, text_row).await?;
    let row = insert_before(tx, mailbox, email, text).await?;
    tx.run(
        "UPDATE email SET text_row = $4 WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
        &[mailbox.into(), email.into(), row.into()],
    )
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::Buf;

    use super::*;

    #[test]
    fn every_word_begins_with_its_mailbox() {
        let columns = IndexedText::new("Hello world", "", "a", "b").scoped(&MailboxId::from("mbx_1"));
        let own = prefix(&MailboxId::from("mbx_1"));
        assert_eq!(own.len(), 10);
        let expected = ["", "~hello ~world", "", "~a", "~b"].map(|text| text.replace('~', &own));
        assert_eq!((&columns[0], &columns[1..]), (&own, &expected[1..]));
    }

    #[test]
    fn positions_of_fields_do_not_touch() {
        let text = IndexedText::new("Hello world", "Bob", "", "hello again");
        let (a, b, d) = (3 << 14, 2 << 14, 0);
        let expected: [(&str, &[u16]); 5] = [
            ("again", &[d | 0xb]),
            ("bob", &[b | 5]),
            ("hello", &[a | 1, d | 0xa]),
            ("m", &[]),
            ("world", &[a | 2]),
        ];
        assert_eq!(
            decoded(&text.vector("m")),
            expected.map(|(word, places)| (word.to_owned(), places.to_vec()))
        );
    }

    /// The words of a binary tsvector with their positions.
    fn decoded(mut bytes: &[u8]) -> Vec<(String, Vec<u16>)> {
        let count = bytes.get_u32();
        let words = (0..count).map(|_| {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap();
            let word = String::from_utf8(bytes[..end].to_vec()).unwrap();
            bytes.advance(end + 1);
            let places = bytes.get_u16();
            (word, (0..places).map(|_| bytes.get_u16()).collect())
        });
        let words = words.collect();
        assert!(bytes.is_empty());
        words
    }

    #[test]
    fn positions_of_a_word_rise_and_are_bounded() {
        let body = ["same ".repeat(300), "other ".repeat(20_000), "late late".to_owned()].concat();
        let words = decoded(&IndexedText::new("", "", "", &body).vector("m"));
        let of = |wanted: &str| &words.iter().find(|(word, _)| word == wanted).unwrap().1;
        assert_eq!(of("same").len(), MAX_POSITIONS_PER_WORD);
        assert!(words.iter().all(|(_, places)| places.is_sorted_by(|one, next| one < next)));
        assert!(words.iter().all(|(word, _)| word != "late"), "beyond the last indexed word");
        let body = ["w ".repeat(17_000), "late late".to_owned()].concat();
        let words = decoded(&IndexedText::new("", "", "", &body).vector("m"));
        assert_eq!(words[0], ("late".to_owned(), vec![MAX_POSITION]));
    }
}
