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
    mailboxes::{self as stored_mailboxes, MailboxFigure, MailboxName},
    search::{self, Matching},
};

use super::{
    hits::{Hit, fetch, filter, fingerprint, full_query, show},
    rank::Rank,
};
use crate::{
    core::{app::App, call::Call, cursor, error::Result},
    inbox::emails::present::FolderNames,
    mailbox::{folders, mailboxes},
};

/// Where a page ended.
#[derive(Serialize, Deserialize)]
struct SearchPosition {
    place: String,
    date: i64,
}

/// Searches by terms, the newest arrival first.
pub(super) async fn search(app: &App, call: &Call, mailbox: &str, input: SearchQuery) -> Result<EmailPage> {
    let named = mailboxes::name(call, mailbox);
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
    let filter = filter(input, query, now);
    let limit = input.limit + 1;
    // Without terms the index is not needed: the list answers it.
    let by_terms = !query.clauses.is_empty();
    let (mut found, about) = if query.impossible {
        let mut about = stored_mailboxes::select_with_folder(named, filter.folder.as_ref());
        tx.select(&mut [&mut about]).await?;
        (Vec::new(), about.row())
    } else if by_terms {
        let place = after.as_ref().map(|position| position.place.as_str());
        let wanted = Matching { clauses: &query.clauses, filter: &filter };
        let page = search::find(tx, named, wanted, place, limit).await?.ok_or_else(mailboxes::missing)?;
        let found = page.hits.into_iter().map(|found| (found.email, found.position));
        let about = MailboxFigure { id: page.mailbox, has_requested: page.has_folder, figure: page.total };
        (found.collect::<Vec<_>>(), Some(about))
    } else {
        let sort = Sort { column: SortColumn::Date, direction: SortDirection::Descending };
        let after = after.map(|position| ListPosition {
            numbers: vec![position.date],
            text: None,
            id: position.place.into(),
        });
        let mut found = emails::select_list(named.into(), &filter, sort, after.as_ref(), 0, limit);
        let mut about = emails::select_total(named, &filter);
        tx.select(&mut [&mut about, &mut found]).await?;
        let found = found.rows().into_iter().map(|email| (email.clone(), email.id.to_string()));
        (found.collect(), about.row())
    };
    let about = folders::require(about)?;
    let more = cursor::truncate(&mut found, input.limit);
    let next = found
        .last()
        .map(|(email, place)| SearchPosition { place: place.clone(), date: email.date.as_micros() });
    let (hits, names) =
        fetch(tx, &about.id, input, found.into_iter().map(|(email, _)| email).collect(), by_terms).await?;
    Ok(SearchResult { hits, names, total: about.figure, more, next })
}
