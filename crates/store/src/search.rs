//! Full-text search: FTS5 in SQLite, `tsvector` in PostgreSQL, the same words in both.
//!
//! Texts are cut into words before an engine sees them ([`model::search::words`]), and every text also carries its
//! mailbox as a word of its own: the index spans mailboxes, and no query leaves its own. Matches come newest first,
//! since the best among many would cost reading all of them.

pub(crate) mod index;
mod queries;
mod scope;

use std::fmt::Write as _;

use model::{EmailId, MailboxId, search::query::Clause};

pub use self::index::{
    Indexable, IndexedText, Pending, coverage, find_indexable, index_marked, list_after, list_pending,
    newest_pending, reindex,
};
use self::queries::{postgres_query, sqlite_query};
use crate::{
    Param, Tx,
    emails::{
        list::EmailFilter,
        record::{COLUMNS, EmailRecord},
    },
    error::Result,
    sql::{LIST, list_places, listed},
};

/// Matches that are counted; more are told as this many.
pub const MAX_COUNTED: i64 = 100;
/// Texts that PostgreSQL looks at from the newest on before it asks its index.
const NEWEST: i64 = 200;
/// Texts that it looks at when enough of those matched to expect a page among so many.
const NEWER: i64 = 5_000;
/// Matches that PostgreSQL finds and sorts all of them. Where there are more, the newest are found soon enough in order.
const RANK_LIMIT: i64 = 10_000;

/// A mail that was found, and its place in the order of the answer.
#[derive(Clone, Debug)]
pub struct SearchHit {
    /// The mail.
    pub email: EmailRecord,
    /// Its place, which the next page goes on behind.
    pub place: String,
}

/// What is looked for, and where.
#[derive(Clone, Copy, Debug)]
pub struct SearchTerms<'a> {
    /// The mailbox.
    pub mailbox: &'a MailboxId,
    /// What the texts say.
    pub clauses: &'a [Clause],
    /// What the mails are like.
    pub filter: &'a EmailFilter,
}

/// The emails that match all clauses and the filter, the last that arrived first, behind a place or from the first on;
/// and how many match, counted up to [`MAX_COUNTED`].
pub async fn find(
    tx: &mut Tx,
    wanted: &SearchTerms<'_>,
    after: Option<&str>,
    most: i64,
) -> Result<(Vec<SearchHit>, i64)> {
    let (mut matches, total) = if after.is_some() {
        let all = list_matches(tx, wanted, None, MAX_COUNTED).await?.len();
        (list_matches(tx, wanted, after, most).await?, all)
    } else {
        // The first page and the count are one look into the index.
        let matches = list_matches(tx, wanted, None, most.max(MAX_COUNTED)).await?;
        let total = matches.len();
        (matches, total)
    };
    matches.truncate(usize::try_from(most).unwrap_or_default());
    Ok((with_records(tx, wanted, matches).await?, i64::try_from(total).unwrap_or(i64::MAX).min(MAX_COUNTED)))
}

/// What was found, with the emails themselves.
async fn with_records(
    tx: &mut Tx,
    wanted: &SearchTerms<'_>,
    matches: Vec<(EmailId, String)>,
) -> Result<Vec<SearchHit>> {
    let mut found = Vec::with_capacity(matches.len());
    if tx.is_postgres() {
        // Each statement is a way there and back, so one asks for all.
        let ids: Vec<EmailId> = matches.iter().map(|(id, _)| id.clone()).collect();
        let mut records = among(tx, &SearchTerms { clauses: &[], ..*wanted }, &ids).await?;
        for (id, place) in matches {
            if let Some(index) = records.iter().position(|email| email.id == id) {
                found.push(SearchHit { email: records.swap_remove(index), place });
            }
        }
    } else {
        for (id, place) in matches {
            let email = crate::emails::find(tx, wanted.mailbox, &id).await?;
            found.extend(email.map(|email| SearchHit { email, place }));
        }
    }
    Ok(found)
}

/// The ids and places of matching emails, the last that arrived first.
async fn list_matches(
    tx: &mut Tx,
    wanted: &SearchTerms<'_>,
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
pub async fn among(tx: &mut Tx, wanted: &SearchTerms<'_>, ids: &[EmailId]) -> Result<Vec<EmailRecord>> {
    let postgres = tx.is_postgres();
    let SearchTerms { mailbox, clauses, filter } = *wanted;
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
    wanted: &SearchTerms<'_>,
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
    wanted: &SearchTerms<'_>,
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
    wanted: &SearchTerms<'_>,
    after: Option<&str>,
    most: i64,
) -> Result<Option<Vec<(EmailId, String)>>> {
    let query = postgres_query(wanted.mailbox, wanted.clauses);
    let mut page = String::from(
        "SELECT email.id AS id FROM (SELECT email_id FROM hits ORDER BY email_id DESC) AS sorted
         JOIN email ON email.workspace_id = $1 AND email.mailbox_id = $2 AND email.id = sorted.email_id
         WHERE (SELECT count(*) FROM hits) < $4",
    );
    let mut params: Vec<Param<'_>> = vec![wanted.mailbox.into(), (&query).into(), RANK_LIMIT.into()];
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
    if rows.first().is_none_or(|(hits, _)| *hits >= RANK_LIMIT) {
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
