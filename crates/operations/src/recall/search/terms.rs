//! Search by the terms of a message, and by its fields.

use model::{
    Timestamp,
    emails::{EmailPage, SortColumn, SortDirection},
    search::{SearchQuery, query::Query},
};
use serde::{Deserialize, Serialize};
use store::{
    Tx,
    emails::{self, ListPosition, Sort},
    mailboxes::MailboxName,
    search,
};

use super::{
    hits::{Hit, fetch, filter, fingerprint, full_query, show},
    rank::Rank,
};
use crate::{
    core::{app::App, call::Call, cursor, error::Result},
    inbox::emails::present::FolderNames,
    mailbox::mailboxes,
};

/// Where a page ended.
#[derive(Serialize, Deserialize)]
struct SearchPosition {
    place: String,
    date: i64,
}

/// Searches by terms, the newest arrival first.
pub(super) async fn search(app: &App, call: &Call, mailbox: &str, input: SearchQuery) -> Result<EmailPage> {
    let named = mailboxes::name(mailbox);
    let key = app.data_key(&call.workspace).await?;
    let about = fingerprint(mailbox, &input);
    let after: Option<SearchPosition> =
        input.cursor.as_deref().map(|text| cursor::open(&key, &about, text)).transpose()?;
    let (options, now) = (input.read_options(), call.now);
    let query = full_query(&input)?;
    let clauses = query.clauses.clone();
    let found = app.read(call, async move |tx| find(tx, &named, &input, &query, after, now).await).await?;
    let next_cursor = match (&found.next, found.more) {
        (Some(position), true) => Some(cursor::seal(&key, &about, position)?),
        _ => None,
    };
    let rank = Rank::new(&clauses);
    let mut emails = Vec::with_capacity(found.hits.len());
    for hit in found.hits {
        emails.push(show(app, call, hit, &found.names, &options, &rank).await?);
    }
    Ok(EmailPage { emails, total_count: found.total, has_more: found.more, next_cursor })
}

struct SearchResult {
    hits: Vec<Hit>,
    names: FolderNames,
    total: i64,
    more: bool,
    next: Option<SearchPosition>,
}

async fn find(
    tx: &mut Tx,
    named: &MailboxName,
    input: &SearchQuery,
    query: &Query,
    after: Option<SearchPosition>,
    now: Timestamp,
) -> Result<SearchResult> {
    let mailbox = mailboxes::find_id(tx, named).await?;
    let filter = filter(tx, &mailbox, input, query, now).await?;
    let limit = input.limit + 1;
    // Without terms the index is not needed: the list answers it.
    let by_terms = !query.clauses.is_empty();
    let (mut found, total) = if query.impossible {
        (Vec::new(), 0)
    } else if by_terms {
        let place = after.as_ref().map(|position| position.place.as_str());
        let wanted = search::SearchTerms { mailbox: &mailbox, clauses: &query.clauses, filter: &filter };
        let (found, total) = search::find(tx, &wanted, place, limit).await?;
        (found.into_iter().map(|found| (found.email, found.position)).collect::<Vec<_>>(), total)
    } else {
        let sort = Sort { column: SortColumn::Date, direction: SortDirection::Descending };
        let after = after.map(|position| ListPosition {
            numbers: vec![position.date],
            text: None,
            id: position.place.into(),
        });
        let found = emails::list(tx, &mailbox, &filter, sort, after.as_ref(), 0, limit).await?;
        let total = emails::count(tx, &mailbox, &filter).await?;
        (found.into_iter().map(|email| (email.clone(), email.id.to_string())).collect(), total)
    };
    let more = cursor::truncate(&mut found, input.limit);
    let next = found
        .last()
        .map(|(email, place)| SearchPosition { place: place.clone(), date: email.date.as_micros() });
    let (hits, names) =
        fetch(tx, &mailbox, input, found.into_iter().map(|(email, _)| email).collect(), by_terms).await?;
    Ok(SearchResult { hits, names, total, more, next })
}
