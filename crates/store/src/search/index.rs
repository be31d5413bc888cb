//! What search finds mails by, on its way into the index.
//!
//! PostgreSQL indexes a mail with its row. SQLite does it for several mails at once, soon after their commits: until then a
//! mark stands for each, and who searches waits for them ([`crate::Db::index_texts`]).

use std::{collections::BTreeMap, fmt::Write as _};

use model::{EmailId, MailboxId, WorkspaceId, search::words::joined};

use super::scope::scope;
use crate::{
    Param, SystemTx, Tx,
    error::Result,
    sql::{Columns, columns},
};

/// Words of a body that are indexed; more than a long novel's chapter.
const BODY_WORDS: usize = 20_000;
/// Bytes of a body's words that are indexed: PostgreSQL refuses a vector of a megabyte.
const BODY_BYTES: usize = 512 * 1024;
/// What comes with every word there: quotation marks, a colon and a position.
const WORD_BYTES: usize = 16;
/// Words of a line that are indexed.
const LINE_WORDS: usize = 200;
/// PostgreSQL keeps no position beyond this one.
const LAST_POSITION: usize = 16_383;
/// PostgreSQL keeps no more positions of one word.
const POSITIONS: usize = 255;

/// What search finds an email by.
#[derive(Clone, Debug, Default)]
pub struct IndexedText {
    /// The words of the subject, the sender, the recipients and the body, with spaces between them.
    fields: [String; 4],
}

impl IndexedText {
    /// Takes the words of an email.
    pub fn new(subject: &str, sender: &str, recipients: &str, body: &str) -> Self {
        Self {
            fields: [
                joined(subject, LINE_WORDS, usize::MAX, 0),
                joined(sender, LINE_WORDS, usize::MAX, 0),
                joined(recipients, LINE_WORDS, usize::MAX, 0),
                joined(body, BODY_WORDS, BODY_BYTES, WORD_BYTES),
            ],
        }
    }

    /// What SQLite's index gets.
    fn row<'a>(&'a self, row: i64, email: &'a EmailId, scope: &'a String) -> [Param<'a>; 7] {
        let [subject, sender, recipient, body] = self.fields.each_ref().map(Param::from);
        [row.into(), email.into(), scope.into(), subject, sender, recipient, body]
    }

    /// The words with their positions, as PostgreSQL writes them. Fields are told apart by weight.
    fn vector(&self, scope: &str) -> String {
        let mut places: BTreeMap<&str, Vec<(usize, char)>> = BTreeMap::new();
        let mut position = 1;
        for (field, weight) in self.fields.iter().zip(['A', 'B', 'C', 'D']) {
            for word in field.split_terminator(' ') {
                let of_word = places.entry(word).or_default();
                if of_word.len() < POSITIONS {
                    of_word.push((position.min(LAST_POSITION), weight));
                }
                position += 1;
            }
            // A phrase must not begin in one field and end in the next.
            position += 2;
        }
        let mut text = format!("'{scope}'");
        for (word, places) in places {
            let _ = write!(text, " '{word}':");
            for (index, (position, weight)) in places.iter().enumerate() {
                let _ = write!(text, "{}{position}{weight}", if index == 0 { "" } else { "," });
            }
        }
        text
    }
}

/// Puts a text into SQLite's index. $1, the workspace, is not needed: the scope is unique on the whole server. Values and not a
/// query: before a statement that may add several rows the index would write itself out.
const INSERT_TEXT: &str = "INSERT INTO email_text (rowid, email_id, scope, subject, sender, recipient, body)
     VALUES ($2, $3, $4, $5, $6, $7, $8)";
/// Takes one out of it. A restored email tells its row in the index of the store that was saved, where another may lie by now.
const DELETE_TEXT: &str = "DELETE FROM email_text WHERE rowid = $2 AND email_id = $3 AND $1 <> ''";
/// Takes away the mark of a text that waits to be indexed.
const UNMARK: &str = "DELETE FROM email_text_pending WHERE workspace_id = $1 AND id = $2 AND email_id = $3";

/// Indexes an email where that comes before its row, and tells the row of the index.
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
    let scope = scope(mailbox);
    tx.put_off((UNMARK, &[row.into(), email.into()]), (INSERT_TEXT, &text.row(row, email, &scope)))?;
    Ok(Some(row))
}

/// Indexes an email where that comes after its row.
pub(crate) async fn insert_after(
    tx: &mut Tx,
    mailbox: &MailboxId,
    email: &EmailId,
    text: &IndexedText,
) -> Result<()> {
    if tx.is_postgres() {
        let vector = text.vector(&scope(mailbox));
        tx.later(
            "INSERT INTO email_text (workspace_id, mailbox_id, email_id, words)
             VALUES ($1, $2, $3, CAST(CAST($4 AS TEXT) AS tsvector))",
            &[mailbox.into(), email.into(), (&vector).into()],
        )
        .await?;
    }
    Ok(())
}

/// Takes an email out of the index. PostgreSQL does that with the row itself.
pub(crate) async fn delete(tx: &mut Tx, email: &EmailId, text_row: Option<i64>) -> Result<()> {
    if let Some(row) = text_row
        && !tx.is_postgres()
    {
        tx.run(UNMARK, &[row.into(), email.into()]).await?;
        tx.at_end(DELETE_TEXT, &[row.into(), email.into()]).await?;
    }
    Ok(())
}

/// An email as far as its row tells what search finds it by.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns of the table")]
pub struct Indexable {
    pub mailbox_id: MailboxId,
    pub id: EmailId,
    pub content_id: String,
    pub subject: String,
    pub sender: String,
    pub to_line: String,
    pub cc: Option<String>,
}

columns!(Indexable { mailbox_id, id, content_id, subject, sender, to_line, cc });

/// One email of the workspace.
pub async fn find_indexable(tx: &mut Tx, mailbox: &MailboxId, email: &EmailId) -> Result<Option<Indexable>> {
    tx.one(
        &format!(
            "SELECT {} FROM email
         WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
            Indexable::COLUMNS
        ),
        &[mailbox.into(), email.into()],
    )
    .await
}

/// Emails of the workspace behind the given one, by mailbox and then by age, which is the order to index them in.
pub async fn list_after(
    tx: &mut Tx,
    mailbox: &MailboxId,
    email: &EmailId,
    most: i64,
) -> Result<Vec<Indexable>> {
    tx.all(
        &format!(
            "SELECT {} FROM email
         WHERE workspace_id = $1 AND (mailbox_id, id) > ($2, $3) ORDER BY mailbox_id, id LIMIT $4",
            Indexable::COLUMNS
        ),
        &[mailbox.into(), email.into(), most.into()],
    )
    .await
}

/// How many emails there are, and how many the index knows or will know in a moment.
pub async fn coverage(tx: &mut SystemTx) -> Result<(i64, i64)> {
    let sql = if tx.is_postgres() {
        "SELECT (SELECT count(*) FROM email), (SELECT count(*) FROM email_text)"
    } else {
        "SELECT (SELECT count(*) FROM email),
           (SELECT count(*) FROM email_text) + (SELECT count(*) FROM email_text_pending)"
    };
    Ok(tx.one(sql, &[]).await?.unwrap_or_default())
}

/// A mark of an email that waits to be indexed.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns of the table")]
pub struct Pending {
    pub id: i64,
    pub workspace_id: WorkspaceId,
    pub mailbox_id: MailboxId,
    pub email_id: EmailId,
}

columns!(Pending { id, workspace_id, mailbox_id, email_id });

/// The marks behind one number up to another, in their order. Those that stay were left by a process that ended before it
/// indexed what they are about.
pub async fn list_pending(tx: &mut SystemTx, after: i64, up_to: i64, most: i64) -> Result<Vec<Pending>> {
    if tx.is_postgres() {
        return Ok(Vec::new());
    }
    tx.all(
        &format!(
            "SELECT {} FROM email_text_pending
         WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3",
            Pending::COLUMNS
        ),
        &[after.into(), up_to.into(), most.into()],
    )
    .await
}

/// The number of the newest mark; 0 when there is none.
pub async fn newest_pending(tx: &mut SystemTx) -> Result<i64> {
    if tx.is_postgres() {
        return Ok(0);
    }
    let found = tx.one("SELECT coalesce(max(id), 0) FROM email_text_pending", &[]).await?;
    Ok(found.map_or(0, |(newest,)| newest))
}

/// Indexes what a mark is about, unless somebody else did or it is gone or about another text by now. The mark goes.
pub async fn index_marked(tx: &mut Tx, mark: &Pending, text: Option<&IndexedText>) -> Result<()> {
    let about: [Param<'_>; 2] = [mark.id.into(), (&mark.email_id).into()];
    let marked = tx.run(UNMARK, &about).await? > 0;
    let row: Option<(Option<i64>,)> = tx
        .one(
            "SELECT text_row FROM email WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
            &[(&mark.mailbox_id).into(), (&mark.email_id).into()],
        )
        .await?;
    if marked
        && row == Some((Some(mark.id),))
        && let Some(text) = text
    {
        let scope = scope(&mark.mailbox_id);
        // At once: between its mark and its text the number would belong to nobody.
        tx.run(INSERT_TEXT, &text.row(mark.id, &mark.email_id, &scope)).await?;
    }
    Ok(())
}

/// Indexes an email anew, for a store whose index was lost or never restored. One that is gone by now stays gone.
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
        return insert_after(tx, mailbox, email, text).await;
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
    use super::*;

    #[test]
    fn positions_of_fields_do_not_touch() {
        let text = IndexedText::new("Hello world", "Bob", "", "hello again");
        assert_eq!(text.vector("m"), "'m' 'again':11D 'bob':5B 'hello':1A,10D 'world':2A");
    }
}
