//! Full-text search: FTS5 in SQLite, `tsvector` in PostgreSQL, with the same tokens in both.
//!
//! Text is split into words before an engine sees it ([`model::search::words`]), and every text also carries its
//! mailbox as a word: the index spans mailboxes, and no query leaves its own. Matches come newest first, since
//! ranking would read all of them.

pub(crate) mod index;
mod marked;
mod merges;
mod pages;
mod postings;
mod queries;
mod scope;
mod terms;

use model::EmailId;

pub use self::index::{
    IndexMarker, IndexableEmail, IndexedText, coverage, find_indexable, index_pending, list_after,
    list_pending, newest_pending, reindex,
};
pub use self::marked::{count_marked, index_marked};
pub use self::merges::merge_some;
pub use self::terms::{MAX_COUNTED, Matching, SearchHit, SearchPage, SearchTerms};
use self::{
    queries::{postgres_query, sqlite_query},
    scope::scope,
    terms::MATCHING_SQLITE,
};
use crate::{
    Param, Tx,
    emails::record::{COLUMNS, EmailRecord},
    error::Result,
    mailboxes::{self, MailboxName},
    sql::{LIST_LENGTH, list_params, list_placeholders},
};

/// The emails of a mailbox that match all clauses and the filter, the latest arrival first, after a position or from
/// the first on. `None` if there is no such mailbox.
pub async fn find(
    tx: &mut Tx,
    named: &MailboxName,
    matching: Matching<'_>,
    after: Option<&str>,
    most: i64,
) -> Result<Option<SearchPage>> {
    if tx.is_postgres() {
        return pages::find(tx, named, matching, after, most).await;
    }
    let mut about = mailboxes::select_with_folder(named, matching.filter.folder.as_ref());
    tx.select(&mut [&mut about]).await?;
    let Some(about) = about.row() else { return Ok(None) };
    let Matching { clauses, filter } = matching;
    let terms = SearchTerms { mailbox: &about.id, clauses, filter };
    let after = after.map(|after| after.parse().unwrap_or(0));
    let (hits, total) = postings::find(tx, &terms, after, most).await?;
    Ok(Some(SearchPage { mailbox: about.id, has_folder: about.has_requested, hits, total }))
}

/// Those of the given emails that match all clauses and the filter, in no order.
pub async fn among(tx: &mut Tx, terms: &SearchTerms<'_>, ids: &[EmailId]) -> Result<Vec<EmailRecord>> {
    let postgres = tx.is_postgres();
    let SearchTerms { mailbox, clauses, filter } = *terms;
    let (query, from) = if postgres {
        (format!("'{}'{}", scope(mailbox), postgres_query(clauses)), MATCHING_POSTGRES)
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
        filter.conditions("$2", &mut sql, &mut params);
        found.extend(tx.all::<EmailRecord>(&sql, &params).await?);
    }
    Ok(found)
}

/// From the texts to the emails, for PostgreSQL. The subquery is evaluated once; a plain value would be parsed for every
/// text.
const MATCHING_POSTGRES: &str =
    "FROM email_text JOIN email ON email.workspace_id = $1 AND email.mailbox_id = $2
    AND email.id = email_text.email_id WHERE email_text.workspace_id = $1 AND email_text.mailbox_id = $2
    AND email_text.words @@ (SELECT CAST(CAST($3 AS TEXT) AS tsquery))";
