//! A page of matches and their number on PostgreSQL, in one statement: each may be a network round trip.
//!
//! A rare term is found by the GIN index, which has no order, and its matches are sorted. A common one matches often
//! enough among the newest texts. The planner would choose the wrong one of them, so the statement decides when it runs:
//! a part whose condition on the counts is false is not executed.

use std::fmt::Write as _;

use model::MailboxId;

use super::{
    queries::postgres_query,
    scope::scope_of,
    terms::{MAX_COUNTED, Matching, SearchHit, SearchPage},
};
use crate::{
    FromRow, Param, Row, Tx,
    emails::record::{COLUMNS, EmailRecord},
    error::Result,
    mailboxes::{MailboxKey, MailboxName},
};

/// How many of the newest texts are scanned before the index is used.
const NEWEST_SCAN: i64 = 200;
/// Up to this many matches all of them are found and sorted. With more, scanning from the newest on is fast enough.
const RANK_LIMIT: i64 = 10_000;

/// What `super::find` gives, with ids of emails as positions.
pub(super) async fn find(
    tx: &mut Tx,
    named: &MailboxName,
    matching: Matching<'_>,
    after: Option<&str>,
    most: i64,
) -> Result<Option<SearchPage>> {
    let rows = page(tx, named, matching, after, most).await?;
    let Some(first) = rows.first() else { return Ok(None) };
    let (mailbox, has_folder, mut total) = (first.mailbox.clone(), first.has_folder, first.total);
    if first.hits >= RANK_LIMIT && total < MAX_COUNTED {
        // The filter leaves out most of the matches that were counted, which are any of them.
        let all = page(tx, named, matching, None, MAX_COUNTED).await?;
        total = i64::try_from(all.iter().filter(|row| row.email.is_some()).count()).unwrap_or(MAX_COUNTED);
    }
    let emails = rows.into_iter().filter_map(|row| row.email);
    let hits = emails.map(|email| SearchHit { position: email.id.to_string(), email }).collect();
    Ok(Some(SearchPage { mailbox, has_folder, hits, total }))
}

/// A match, with the same figures in every row; without an email if nothing matches.
struct SearchRow {
    mailbox: MailboxId,
    has_folder: bool,
    hits: i64,
    total: i64,
    email: Option<EmailRecord>,
}

impl FromRow for SearchRow {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        let (mailbox, has_folder, hits, total) = (row.next()?, row.next()?, row.next()?, row.next()?);
        let is_empty: bool = row.next()?;
        let email = if is_empty { None } else { Some(EmailRecord::from_row(row)?) };
        Ok(Self { mailbox, has_folder, hits, total, email })
    }
}

async fn page(
    tx: &mut Tx,
    named: &MailboxName,
    matching: Matching<'_>,
    after: Option<&str>,
    most: i64,
) -> Result<Vec<SearchRow>> {
    let query = postgres_query(matching.clauses);
    let mut params: Vec<Param<'_>> = vec![
        named.value().into(),
        (&query).into(),
        RANK_LIMIT.into(),
        MAX_COUNTED.into(),
        NEWEST_SCAN.into(),
        most.into(),
    ];
    let mut has_folder = "1".to_owned();
    if let Some(folder) = &matching.filter.folder {
        params.push(folder.into());
        has_folder = format!(
            "SELECT count(*) FROM folder WHERE folder.workspace_id = $1 AND folder.mailbox_id = box.id
             AND folder.id = ${}",
            params.len() + 1
        );
    }
    let mut after_email = String::new();
    if let Some(after) = after {
        params.push(after.into());
        let _ = write!(after_email, " AND email_id < ${}", params.len() + 1);
    }
    let mut filter = String::new();
    matching.filter.conditions(BOX, &mut filter, &mut params);
    let sql = statement(MailboxKey::Name(named).id(), &has_folder, &after_email, &filter);
    tx.all(&sql, &params).await
}

/// The mailbox, found once.
const BOX: &str = "(SELECT id FROM box)";

fn statement(mailbox: &str, has_folder: &str, after: &str, filter: &str) -> String {
    let scope = scope_of("box.id");
    // LIMIT and OFFSET keep the planner from joining and sorting everything: one email is looked up for each text.
    let email = format!(
        "JOIN LATERAL (SELECT * FROM email AS one WHERE one.workspace_id = $1 AND one.mailbox_id = {BOX}
           AND one.id = texts.email_id LIMIT 1) AS email ON true"
    );
    format!(
        "WITH box AS MATERIALIZED (SELECT {mailbox} AS id),
         query AS MATERIALIZED (SELECT CAST('''' || {scope} || '''' || CAST($3 AS TEXT) AS tsquery) AS terms FROM box),
         hits AS MATERIALIZED (
           (SELECT email_id FROM email_text WHERE workspace_id = $1 AND mailbox_id = {BOX} AND indexed
             AND words @@ (SELECT terms FROM query) LIMIT $4)
           UNION ALL (SELECT email_id FROM email_text WHERE workspace_id = $1 AND mailbox_id = {BOX} AND NOT indexed
             AND words @@ (SELECT terms FROM query))),
         newest AS MATERIALIZED (
           SELECT texts.email_id FROM (SELECT email_id, words FROM email_text WHERE workspace_id = $1 AND mailbox_id = {BOX}{after}
             ORDER BY email_id DESC LIMIT $6) AS texts {email}
           WHERE texts.words @@ (SELECT terms FROM query){filter} ORDER BY texts.email_id DESC LIMIT $7),
         sorted AS (
           SELECT texts.email_id FROM (SELECT email_id FROM hits WHERE true{after} ORDER BY email_id DESC OFFSET 0)
             AS texts {email}
           WHERE (SELECT count(*) FROM newest) < $7 AND (SELECT count(*) FROM hits) < $4{filter}
           ORDER BY texts.email_id DESC LIMIT $7),
         scanned AS (
           SELECT texts.email_id FROM (SELECT email_id, words FROM email_text WHERE workspace_id = $1 AND mailbox_id = {BOX}{after}
             ORDER BY email_id DESC OFFSET 0) AS texts {email}
           WHERE (SELECT count(*) FROM newest) < $7 AND (SELECT count(*) FROM hits) >= $4
             AND texts.words @@ (SELECT terms FROM query){filter}
           ORDER BY texts.email_id DESC LIMIT $7),
         texts AS (
           SELECT email_id FROM newest WHERE (SELECT count(*) FROM newest) >= $7
           UNION ALL SELECT email_id FROM sorted UNION ALL SELECT email_id FROM scanned)
         SELECT box.id, ({has_folder}), (SELECT count(*) FROM hits),
           (SELECT count(*) FROM (SELECT 1 FROM hits JOIN email ON email.workspace_id = $1
             AND email.mailbox_id = {BOX} AND email.id = hits.email_id WHERE true{filter} LIMIT $5) AS counted),
           email.id IS NULL, {COLUMNS}
         FROM box LEFT JOIN (texts {email}) ON true WHERE box.id IS NOT NULL ORDER BY email.id DESC"
    )
}
