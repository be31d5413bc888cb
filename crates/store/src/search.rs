//! Full-text search: FTS5 in SQLite, `tsvector` in PostgreSQL, the same words in both.
//!
//! Texts are cut into words before an engine sees them ([`model::search::words`]), and every text also carries its
//! mailbox as a word of its own: the index spans mailboxes, and no query leaves its own. Matches come newest first,
//! since the best among many would cost reading all of them.

mod queries;

use std::{collections::BTreeMap, fmt::Write as _};

use model::{
    EmailId, MailboxId,
    search::{query::Clause, words::joined},
};

use self::queries::{postgres_query, sqlite_query};
use crate::{
    FromRow, Param, Row, SystemTx, Tx,
    emails::{COLUMNS, EmailFilter, EmailRecord},
    error::Result,
    sql::{LIST, list_places, listed},
};

/// Words of a body that are indexed; more than a long novel's chapter.
const BODY_WORDS: usize = 20_000;
/// Bytes of a body's words that are indexed: PostgreSQL refuses a vector of a megabyte.
const BODY_BYTES: usize = 512 * 1024;
/// What comes with every word there: quotation marks, a colon and a position.
const WORD_BYTES: usize = 16;
/// Words of a line that are indexed.
const LINE_WORDS: usize = 200;
/// Matches that are counted; more are told as this many.
pub const MOST_COUNTED: i64 = 100;
/// Texts that PostgreSQL looks at from the newest on before it asks its index.
const NEWEST: i64 = 200;
/// Texts that it looks at when enough of those matched to expect a page among so many.
const NEWER: i64 = 5_000;
/// Matches that PostgreSQL finds and sorts all of them. Where there are more, the newest are found soon enough in order.
const FEW: i64 = 10_000;
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

/// The word that stands for a mailbox: letters and digits, so that no engine cuts it.
fn scope(mailbox: &MailboxId) -> String {
    mailbox.as_str().chars().filter(char::is_ascii_alphanumeric).collect()
}

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
    let [subject, sender, recipient, body] = &text.fields;
    let scope = scope(mailbox);
    let row = tx.next_number("SELECT coalesce(max(id), 0) FROM email_text_docsize")?;
    // $1, the workspace, is not needed: the scope is unique on the whole server. Values and not a query: before a
    // statement that may add several rows the index would write itself out.
    tx.at_end(
        "INSERT INTO email_text (rowid, email_id, scope, subject, sender, recipient, body)
         VALUES ($2, $3, $4, $5, $6, $7, $8)",
        &[
            row.into(),
            email.into(),
            (&scope).into(),
            subject.into(),
            sender.into(),
            recipient.into(),
            body.into(),
        ],
    )
    .await?;
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
pub(crate) async fn delete(tx: &mut Tx, text_row: Option<i64>) -> Result<()> {
    if let Some(row) = text_row
        && !tx.is_postgres()
    {
        tx.at_end("DELETE FROM email_text WHERE rowid = $2 AND $1 <> ''", &[row.into()]).await?;
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

impl FromRow for Indexable {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            mailbox_id: row.next()?,
            id: row.next()?,
            content_id: row.next()?,
            subject: row.next()?,
            sender: row.next()?,
            to_line: row.next()?,
            cc: row.next()?,
        })
    }
}

/// Emails of the workspace behind the given one, by mailbox and then by age, which is the order to index them in.
pub async fn list_after(
    tx: &mut Tx,
    mailbox: &MailboxId,
    email: &EmailId,
    most: i64,
) -> Result<Vec<Indexable>> {
    tx.all(
        "SELECT mailbox_id, id, content_id, subject, sender, to_line, cc FROM email
         WHERE workspace_id = $1 AND (mailbox_id, id) > ($2, $3) ORDER BY mailbox_id, id LIMIT $4",
        &[mailbox.into(), email.into(), most.into()],
    )
    .await
}

/// How many emails there are, and how many the index knows.
pub async fn coverage(tx: &mut SystemTx) -> Result<(i64, i64)> {
    let found = tx.one("SELECT (SELECT count(*) FROM email), (SELECT count(*) FROM email_text)", &[]).await?;
    Ok(found.unwrap_or_default())
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
    // A restored email still tells its row in the index of the store that was saved, where another lies by now.
    tx.at_end(
        "DELETE FROM email_text WHERE rowid = $2 AND email_id = $3 AND $1 <> ''",
        &[text_row.into(), email.into()],
    )
    .await?;
    let row = insert_before(tx, mailbox, email, text).await?;
    tx.run(
        "UPDATE email SET text_row = $4 WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3",
        &[mailbox.into(), email.into(), row.into()],
    )
    .await?;
    Ok(())
}

/// A mail that was found, and its place in the order of the answer.
#[derive(Clone, Debug)]
pub struct Found {
    /// The mail.
    pub email: EmailRecord,
    /// Its place, which the next page goes on behind.
    pub place: String,
}

/// What is looked for, and where.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The mailbox.
    pub mailbox: &'a MailboxId,
    /// What the texts say.
    pub clauses: &'a [Clause],
    /// What the mails are like.
    pub filter: &'a EmailFilter,
}

/// The emails that match all clauses and the filter, the last that arrived first, behind a place or from the first on;
/// and how many match, counted up to [`MOST_COUNTED`].
pub async fn find(
    tx: &mut Tx,
    wanted: &Wanted<'_>,
    after: Option<&str>,
    most: i64,
) -> Result<(Vec<Found>, i64)> {
    let (mut matches, total) = if after.is_some() {
        let all = list_matches(tx, wanted, None, MOST_COUNTED).await?.len();
        (list_matches(tx, wanted, after, most).await?, all)
    } else {
        // The first page and the count are one look into the index.
        let matches = list_matches(tx, wanted, None, most.max(MOST_COUNTED)).await?;
        let total = matches.len();
        (matches, total)
    };
    matches.truncate(usize::try_from(most).unwrap_or_default());
    Ok((with_records(tx, wanted, matches).await?, i64::try_from(total).unwrap_or(i64::MAX).min(MOST_COUNTED)))
}

/// What was found, with the emails themselves.
async fn with_records(
    tx: &mut Tx,
    wanted: &Wanted<'_>,
    matches: Vec<(EmailId, String)>,
) -> Result<Vec<Found>> {
    let mut found = Vec::with_capacity(matches.len());
    if tx.is_postgres() {
        // Each statement is a way there and back, so one asks for all.
        let ids: Vec<EmailId> = matches.iter().map(|(id, _)| id.clone()).collect();
        let mut records = among(tx, &Wanted { clauses: &[], ..*wanted }, &ids).await?;
        for (id, place) in matches {
            if let Some(index) = records.iter().position(|email| email.id == id) {
                found.push(Found { email: records.swap_remove(index), place });
            }
        }
    } else {
        for (id, place) in matches {
            let email = crate::emails::find(tx, wanted.mailbox, &id).await?;
            found.extend(email.map(|email| Found { email, place }));
        }
    }
    Ok(found)
}

/// The ids and places of matching emails, the last that arrived first.
async fn list_matches(
    tx: &mut Tx,
    wanted: &Wanted<'_>,
    after: Option<&str>,
    most: i64,
) -> Result<Vec<(EmailId, String)>> {
    if tx.is_postgres() {
        if let Some(newest) = list_newest(tx, wanted, after, most).await? {
            return Ok(newest);
        }
        if let Some(few) = list_few(tx, wanted, after, most).await? {
            return Ok(few);
        }
    }
    let postgres = tx.is_postgres();
    let (place, order, from) = if postgres {
        ("email_text.email_id", "email_text.email_id", MATCHING_POSTGRES)
    } else {
        ("CAST(email_text.rowid AS TEXT)", "email_text.rowid", MATCHING_SQLITE)
    };
    let query = if postgres {
        postgres_query(wanted.mailbox, wanted.clauses)
    } else {
        sqlite_query(wanted.mailbox, wanted.clauses)
    };
    let mut sql = format!("SELECT email_text.email_id, {place} {from}");
    let mut params: Vec<Param<'_>> = vec![wanted.mailbox.into(), (&query).into()];
    wanted.filter.conditions(&mut sql, &mut params);
    if let Some(after) = after {
        params.push(if postgres { after.into() } else { after.parse::<i64>().unwrap_or(0).into() });
        let _ = write!(sql, " AND {order} < ${}", params.len() + 1);
    }
    params.push(most.into());
    let _ = write!(sql, " ORDER BY {order} DESC LIMIT ${}", params.len() + 1);
    tx.all(&sql, &params).await
}

/// Those of the given emails that match all clauses and the filter, in no order.
pub async fn among(tx: &mut Tx, wanted: &Wanted<'_>, ids: &[EmailId]) -> Result<Vec<EmailRecord>> {
    let postgres = tx.is_postgres();
    let Wanted { mailbox, clauses, filter } = *wanted;
    let (query, from) = if postgres {
        (postgres_query(mailbox, clauses), MATCHING_POSTGRES)
    } else {
        (sqlite_query(mailbox, clauses), MATCHING_SQLITE)
    };
    let nothing = EmailId::from("");
    let mut found = Vec::new();
    for some in ids.chunks(LIST) {
        let mut params: Vec<Param<'_>> = vec![mailbox.into()];
        if !clauses.is_empty() {
            params.push((&query).into());
        }
        let places = list_places(params.len() + 2);
        params.extend(listed(some.iter(), &nothing));
        let mut sql = if clauses.is_empty() {
            // The limit keeps the ids apart from the filter, for which SQLite would rather go through the mailbox.
            format!(
                "SELECT {COLUMNS} FROM (SELECT * FROM email WHERE workspace_id = $1 AND mailbox_id = $2
                   AND id IN ({places}) LIMIT {LIST}) AS email WHERE email.id <> ''"
            )
        } else {
            format!("SELECT {COLUMNS} {from} AND email.id IN ({places})")
        };
        filter.conditions(&mut sql, &mut params);
        found.extend(tx.all::<EmailRecord>(&sql, &params).await?);
    }
    Ok(found)
}

/// A page from among the newest texts, for PostgreSQL: where many match, enough do here, and its index of words knows no
/// order. Nothing when too few match.
async fn list_newest(
    tx: &mut Tx,
    wanted: &Wanted<'_>,
    after: Option<&str>,
    most: i64,
) -> Result<Option<Vec<(EmailId, String)>>> {
    let count = |found: &[(EmailId, String)]| i64::try_from(found.len()).unwrap_or(i64::MAX);
    let mut found = look_at_newest(tx, wanted, after, NEWEST, most).await?;
    if count(&found) < most && count(&found) * NEWER >= most * NEWEST {
        let last = found.last().map(|(_, place)| place.clone());
        let missing = most - count(&found);
        found.extend(look_at_newest(tx, wanted, last.as_deref(), NEWER, missing).await?);
    }
    Ok((count(&found) >= most).then_some(found))
}

/// The matches among so many of the newest texts.
async fn look_at_newest(
    tx: &mut Tx,
    wanted: &Wanted<'_>,
    after: Option<&str>,
    texts: i64,
    most: i64,
) -> Result<Vec<(EmailId, String)>> {
    let query = postgres_query(wanted.mailbox, wanted.clauses);
    let mut params: Vec<Param<'_>> = vec![wanted.mailbox.into(), (&query).into(), texts.into()];
    let behind = if let Some(after) = after {
        params.push(after.into());
        "AND email_id < $5"
    } else {
        ""
    };
    let mut sql = format!(
        "SELECT email.id, email.id FROM (SELECT email_id, words FROM email_text WHERE workspace_id = $1
           AND mailbox_id = $2 {behind} ORDER BY email_id DESC LIMIT $4) AS newest
         JOIN email ON email.workspace_id = $1 AND email.mailbox_id = $2 AND email.id = newest.email_id
         WHERE newest.words @@ (SELECT CAST(CAST($3 AS TEXT) AS tsquery))"
    );
    wanted.filter.conditions(&mut sql, &mut params);
    params.push(most.into());
    let _ = write!(sql, " ORDER BY email.id DESC LIMIT ${}", params.len() + 1);
    tx.all(&sql, &params).await
}

/// The same for PostgreSQL where few texts match: all of them by way of the index of words, then sorted. It would rather
/// read texts from the newest on until enough of them match, which takes long when few do. Nothing when many match.
async fn list_few(
    tx: &mut Tx,
    wanted: &Wanted<'_>,
    after: Option<&str>,
    most: i64,
) -> Result<Option<Vec<(EmailId, String)>>> {
    let query = postgres_query(wanted.mailbox, wanted.clauses);
    let mut page = String::from(
        "SELECT email.id AS id FROM (SELECT email_id FROM hits ORDER BY email_id DESC) AS sorted
         JOIN email ON email.workspace_id = $1 AND email.mailbox_id = $2 AND email.id = sorted.email_id
         WHERE (SELECT count(*) FROM hits) < $4",
    );
    let mut params: Vec<Param<'_>> = vec![wanted.mailbox.into(), (&query).into(), FEW.into()];
    wanted.filter.conditions(&mut page, &mut params);
    if let Some(after) = after {
        params.push(after.into());
        let _ = write!(page, " AND email.id < ${}", params.len() + 1);
    }
    params.push(most.into());
    let sql = format!(
        "WITH hits AS MATERIALIZED (SELECT email_id FROM email_text WHERE workspace_id = $1 AND mailbox_id = $2
           AND words @@ (SELECT CAST(CAST($3 AS TEXT) AS tsquery)) LIMIT $4)
         SELECT (SELECT count(*) FROM hits), page.id FROM (SELECT 1 AS one) AS always
         LEFT JOIN ({page} ORDER BY sorted.email_id DESC LIMIT ${}) AS page ON always.one = 1 ORDER BY page.id DESC",
        params.len() + 1
    );
    let rows: Vec<(i64, Option<EmailId>)> = tx.all(&sql, &params).await?;
    if rows.first().is_none_or(|(hits, _)| *hits >= FEW) {
        return Ok(None);
    }
    let ids = rows.into_iter().filter_map(|(_, id)| id);
    Ok(Some(ids.map(|id| (id.clone(), id.to_string())).collect()))
}

/// From the index to the emails. SQLite keeps the order of a CROSS JOIN, and must begin with the index.
const MATCHING_SQLITE: &str =
    "FROM email_text CROSS JOIN email ON email.workspace_id = $1 AND email.mailbox_id = $2
    AND email.id = email_text.email_id WHERE email_text MATCH $3";
/// The same for PostgreSQL, from the newest text on until there are enough. A query within the query is read once; as a
/// mere value it would be for every text.
const MATCHING_POSTGRES: &str =
    "FROM email_text JOIN email ON email.workspace_id = $1 AND email.mailbox_id = $2
    AND email.id = email_text.email_id WHERE email_text.workspace_id = $1 AND email_text.mailbox_id = $2
    AND email_text.words @@ (SELECT CAST(CAST($3 AS TEXT) AS tsquery))";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_fields_do_not_touch() {
        let text = IndexedText::new("Hello world", "Bob", "", "hello again");
        assert_eq!(text.vector("m"), "'m' 'again':11D 'bob':5B 'hello':1A,10D 'world':2A");
    }
}
