//! Full-text search: FTS5 in SQLite, `tsvector` in PostgreSQL, with the same tokens in both.
//!
//! Text is split into words before an engine sees it ([`model::search::words`]), and every text also carries its
//! mailbox as a word: the index spans mailboxes, and no query leaves its own. Matches come newest first, since
//! ranking would read all of them.

pub(crate) mod index;
mod marked;
mod merges;
mod postings;
mod queries;
mod scope;
mod terms;

use std::fmt::Write as _;

use model::EmailId;

pub use self::index::{
    IndexMarker, IndexableEmail, IndexedText, coverage, find_indexable, index_pending, list_after,
    list_pending, newest_pending, reindex,
};
pub use self::marked::{count_marked, index_marked};
pub use self::merges::merge_some;
pub use self::terms::{MAX_COUNTED, SearchHit, SearchTerms};
use self::{
    queries::{postgres_query, sqlite_query},
    terms::MATCHING_SQLITE,
};
use crate::{
    Param, Tx,
    emails::record::{COLUMNS, EmailRecord},
    error::Result,
    sql::{LIST_LENGTH, list_params, list_placeholders},
};

/// How many of the newest texts PostgreSQL scans before it uses its index.
const NEWEST_SCAN: i64 = 200;
/// How many it scans when the first scan matched often enough to expect a full page.
const EXTENDED_SCAN: i64 = 5_000;
/// Up to this many matches PostgreSQL finds and sorts all of them. With more, scanning from the newest on is fast
/// enough.
const RANK_LIMIT: i64 = 10_000;

/// The emails that match all clauses and the filter, the latest arrival first, after a position or from the first on;
/// and how many match, counted up to [`MAX_COUNTED`].
pub async fn find(
    tx: &mut Tx,
    terms: &SearchTerms<'_>,
    after: Option<&str>,
    most: i64,
) -> Result<(Vec<SearchHit>, i64)> {
    if !tx.is_postgres() {
        let after = after.map(|after| after.parse().unwrap_or(0));
        return postings::find(tx, terms, after, most).await;
    }
    let total = count_matches(tx, terms).await?;
    let matches = list_matches(tx, terms, after, most).await?;
    Ok((with_records(tx, terms, matches).await?, total))
}

/// How many emails match on PostgreSQL, counted up to [`MAX_COUNTED`]. The GIN index finds matches fast and in no order,
/// so any of them are counted; only where most are left out by the filter, they are looked for from the newest on.
async fn count_matches(tx: &mut Tx, terms: &SearchTerms<'_>) -> Result<i64> {
    let query = postgres_query(terms.mailbox, terms.clauses);
    let mut params: Vec<Param<'_>> =
        vec![terms.mailbox.into(), (&query).into(), RANK_LIMIT.into(), MAX_COUNTED.into()];
    let mut counted = String::from(
        "SELECT 1 FROM hits JOIN email ON email.workspace_id = $1 AND email.mailbox_id = $2
           AND email.id = hits.email_id WHERE true",
    );
    terms.filter.conditions(&mut counted, &mut params);
    let sql = format!(
        "{HITS}
         SELECT (SELECT count(*) FROM hits), (SELECT count(*) FROM ({counted} LIMIT $5) AS counted)"
    );
    let (hits, counted): (i64, i64) = tx.one(&sql, &params).await?.unwrap_or_default();
    if hits < RANK_LIMIT || counted >= MAX_COUNTED {
        return Ok(counted);
    }
    let all = list_matches(tx, terms, None, MAX_COUNTED).await?.len();
    Ok(i64::try_from(all).unwrap_or(MAX_COUNTED))
}

/// The hits with their emails, in one statement: each is a round trip.
async fn with_records(
    tx: &mut Tx,
    terms: &SearchTerms<'_>,
    matches: Vec<(EmailId, String)>,
) -> Result<Vec<SearchHit>> {
    let mut found = Vec::with_capacity(matches.len());
    let ids: Vec<EmailId> = matches.iter().map(|(id, _)| id.clone()).collect();
    let mut records = among(tx, &SearchTerms { clauses: &[], ..*terms }, &ids).await?;
    for (id, position) in matches {
        if let Some(index) = records.iter().position(|email| email.id == id) {
            found.push(SearchHit { email: records.swap_remove(index), position });
        }
    }
    Ok(found)
}

/// The ids and positions of matching emails on PostgreSQL, the latest arrival first.
async fn list_matches(
    tx: &mut Tx,
    terms: &SearchTerms<'_>,
    after: Option<&str>,
    most: i64,
) -> Result<Vec<(EmailId, String)>> {
    if let Some(newest) = list_newest(tx, terms, after, most).await? {
        return Ok(newest);
    }
    if let Some(few) = list_rare(tx, terms, after, most).await? {
        return Ok(few);
    }
    let query = postgres_query(terms.mailbox, terms.clauses);
    let mut sql = format!("SELECT email_text.email_id, email_text.email_id {MATCHING_POSTGRES}");
    let mut params: Vec<Param<'_>> = vec![terms.mailbox.into(), (&query).into()];
    terms.filter.conditions(&mut sql, &mut params);
    if let Some(after) = after {
        params.push(after.into());
        let _ = write!(sql, " AND email_text.email_id < ${}", params.len() + 1);
    }
    params.push(most.into());
    let _ = write!(sql, " ORDER BY email_text.email_id DESC LIMIT ${}", params.len() + 1);
    tx.all(&sql, &params).await
}

/// Those of the given emails that match all clauses and the filter, in no order.
pub async fn among(tx: &mut Tx, terms: &SearchTerms<'_>, ids: &[EmailId]) -> Result<Vec<EmailRecord>> {
    let postgres = tx.is_postgres();
    let SearchTerms { mailbox, clauses, filter } = *terms;
    let (query, from) = if postgres {
        (postgres_query(mailbox, clauses), MATCHING_POSTGRES)
    } else {
        (sqlite_query(mailbox, clauses), MATCHING_SQLITE)
    };
    let nothing = EmailId::from("");
    let mut found = Vec::new();
    for some in ids.chunks(LIST_LENGTH) {
        let mut params: Vec<Param<'_>> = vec![mailbox.into()];
        if !clauses.is_empty() {
            params.push((&query).into());
        }
        let placeholders = list_placeholders(params.len() + 2);
        params.extend(list_params(some.iter(), &nothing));
        let mut sql = if clauses.is_empty() {
            // The limit keeps the ids apart from the filter; otherwise SQLite would scan the mailbox for it.
            format!(
                "SELECT {COLUMNS} FROM (SELECT * FROM email WHERE workspace_id = $1 AND mailbox_id = $2
                   AND id IN ({placeholders}) LIMIT {LIST_LENGTH}) AS email WHERE email.id <> ''"
            )
        } else {
            format!("SELECT {COLUMNS} {from} AND email.id IN ({placeholders})")
        };
        filter.conditions(&mut sql, &mut params);
        found.extend(tx.all::<EmailRecord>(&sql, &params).await?);
    }
    Ok(found)
}

/// A page from the newest texts, for PostgreSQL: a common term matches often enough here, and the GIN index has no
/// order. `None` when too few match.
async fn list_newest(
    tx: &mut Tx,
    terms: &SearchTerms<'_>,
    after: Option<&str>,
    most: i64,
) -> Result<Option<Vec<(EmailId, String)>>> {
    let count = |found: &[(EmailId, String)]| i64::try_from(found.len()).unwrap_or(i64::MAX);
    let mut found = scan_newest(tx, terms, after, NEWEST_SCAN, most).await?;
    if count(&found) < most && count(&found) * EXTENDED_SCAN >= most * NEWEST_SCAN {
        let last = found.last().map(|(_, position)| position.clone());
        let missing = most - count(&found);
        found.extend(scan_newest(tx, terms, last.as_deref(), EXTENDED_SCAN, missing).await?);
    }
    Ok((count(&found) >= most).then_some(found))
}

/// The matches among so many of the newest texts.
async fn scan_newest(
    tx: &mut Tx,
    terms: &SearchTerms<'_>,
    after: Option<&str>,
    texts: i64,
    most: i64,
) -> Result<Vec<(EmailId, String)>> {
    let query = postgres_query(terms.mailbox, terms.clauses);
    let mut params: Vec<Param<'_>> = vec![terms.mailbox.into(), (&query).into(), texts.into()];
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
    terms.filter.conditions(&mut sql, &mut params);
    params.push(most.into());
    let _ = write!(sql, " ORDER BY email.id DESC LIMIT ${}", params.len() + 1);
    tx.all(&sql, &params).await
}

/// The same for a rare term on PostgreSQL: all matches by the GIN index, then sorted. The planner would rather scan
/// from the newest text on, which is slow when few match. `None` when many match.
async fn list_rare(
    tx: &mut Tx,
    terms: &SearchTerms<'_>,
    after: Option<&str>,
    most: i64,
) -> Result<Option<Vec<(EmailId, String)>>> {
    let query = postgres_query(terms.mailbox, terms.clauses);
    let mut page = String::from(
        "SELECT email.id AS id FROM (SELECT email_id FROM hits ORDER BY email_id DESC) AS sorted
         JOIN email ON email.workspace_id = $1 AND email.mailbox_id = $2 AND email.id = sorted.email_id
         WHERE (SELECT count(*) FROM hits) < $4",
    );
    let mut params: Vec<Param<'_>> = vec![terms.mailbox.into(), (&query).into(), RANK_LIMIT.into()];
    terms.filter.conditions(&mut page, &mut params);
    if let Some(after) = after {
        params.push(after.into());
        let _ = write!(page, " AND email.id < ${}", params.len() + 1);
    }
    params.push(most.into());
    let sql = format!(
        "{HITS}
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

/// The matches for PostgreSQL, in no order: so many by the GIN index, and those that [wait](marked) to be in it.
const HITS: &str = "WITH query AS MATERIALIZED (SELECT CAST(CAST($3 AS TEXT) AS tsquery) AS terms),
  hits AS MATERIALIZED ((SELECT email_id FROM email_text WHERE workspace_id = $1 AND mailbox_id = $2 AND indexed
      AND words @@ (SELECT terms FROM query) LIMIT $4)
    UNION ALL (SELECT email_id FROM email_text WHERE workspace_id = $1 AND mailbox_id = $2 AND NOT indexed
      AND words @@ (SELECT terms FROM query)))";

/// The same for PostgreSQL, from the newest text on until there are enough. The subquery is evaluated once; a plain
/// value would be parsed for every text.
const MATCHING_POSTGRES: &str =
    "FROM email_text JOIN email ON email.workspace_id = $1 AND email.mailbox_id = $2
    AND email.id = email_text.email_id WHERE email_text.workspace_id = $1 AND email_text.mailbox_id = $2
    AND email_text.words @@ (SELECT CAST(CAST($3 AS TEXT) AS tsquery))";
