//! Lists of emails: filters, threads, cursors and pages.

use model::{
    EmailId, Timestamp,
    emails::{Email, EmailPage, ListQuery, ReadOptions, SortColumn, SortDirection},
};
use store::{
    Tx,
    emails::{self, EmailFilter, EmailRecord, ListPosition, Sort},
    mailboxes::{MailboxFigure, MailboxName},
    threads::{self, ThreadFilter, ThreadPageStart},
};

use super::{
    present::{self, FetchedContent, FolderNames, Presenter},
    surroundings::{Surroundings, WantedContents},
};
use crate::{
    core::{
        app::App,
        call::Call,
        cursor,
        error::{Error, Result},
    },
    mailbox::{folders, mailboxes},
};

/// A page of records, before it is presented.
pub(crate) struct Page {
    pub(crate) records: Vec<(EmailRecord, Option<i64>, Option<FetchedContent>)>,
    pub(crate) names: FolderNames,
    pub(crate) total: i64,
    /// Where the next page begins, if there is one.
    pub(crate) next: Option<ListPosition>,
}

/// Lists the emails of a mailbox.
#[crate::boxed]
pub async fn list(app: &App, call: &Call, mailbox: &str, query: ListQuery) -> Result<EmailPage> {
    let named = mailboxes::name(call, mailbox);
    let key = app.data_key(&call.workspace).await?;
    let about = fingerprint(mailbox, &query);
    let after: Option<ListPosition> =
        query.cursor.as_deref().map(|text| cursor::open(&key, &about, text)).transpose()?;
    if after.is_some() && query.page.is_some() {
        return Err(Error::invalid("page", "cannot be combined with cursor"));
    }
    let (options, now) = (query.read_options(), call.now);
    let budget = query.max_total_chars.map(|most| most as usize);
    let page = app.read(call, async move |tx| read_page(tx, &named, &query, after, now).await).await?;
    let next_cursor = match &page.next {
        Some(position) => Some(cursor::seal(&key, &about, position)?),
        None => None,
    };
    let (total_count, has_more) = (page.total, page.next.is_some());
    let emails = show(app, call, page, &options, budget).await?;
    Ok(EmailPage { emails, total_count, has_more, next_cursor })
}

/// What a cursor is bound to: everything that decides which emails are listed, and in which order.
fn fingerprint(mailbox: &str, query: &ListQuery) -> String {
    format!(
        "listEmails {mailbox} {:?}",
        (
            &query.folder,
            &query.thread_id,
            query.category,
            &query.custom_label,
            query.is_read,
            query.is_starred,
            query.has_attachment,
            query.threaded,
            query.include_held,
            query.sort_column,
            query.sort_direction,
        )
    )
}

async fn read_page(
    tx: &mut Tx,
    named: &MailboxName,
    query: &ListQuery,
    after: Option<ListPosition>,
    now: Timestamp,
) -> Result<Page> {
    let filter = filter(query, now)?;
    let options = query.read_options();
    let with_bodies = query.max_body_chars.is_some() || query.max_total_chars.is_some();
    let skip = query.page.map_or(0, |page| (page - 1).saturating_mul(query.limit));
    let found = if query.threaded && filters_more(query) {
        matching_threaded(tx, named, &filter, after.as_ref(), skip, query.limit).await?
    } else if query.threaded {
        threaded(tx, named, &filter, after.as_ref(), skip, query.limit).await?
    } else {
        let sort = Sort { column: query.sort_column, direction: query.sort_direction };
        let mut records =
            emails::select_list(named.into(), &filter, sort, after.as_ref(), skip, query.limit + 1);
        let mut total = emails::select_total(named, &filter);
        tx.select(&mut [&mut total, &mut records]).await?;
        let total = folders::require(total.row())?;
        let mut records = records.rows();
        let more = truncate_page(&mut records, query.limit);
        let next = records.last().filter(|_| more).map(|last| sort.position(last));
        EmailListing { records, counts: None, total, next }
    };
    let wanted = WantedContents::bodies(&options, with_bodies);
    let surroundings = Surroundings::load(tx, &found.total.id, &found.records, &options, wanted).await?;
    let counts = found.counts.unwrap_or_default().into_iter().map(Some).chain(std::iter::repeat(None));
    let records = found.records.into_iter().zip(counts).map(|(mail, count)| {
        let fetched = surroundings.body(&mail, &options);
        (mail, count, fetched)
    });
    let records = records.collect();
    Ok(Page { records, names: surroundings.names, total: found.total.figure, next: found.next })
}

/// The records of a page.
struct EmailListing {
    records: Vec<EmailRecord>,
    /// The numbers of emails in their threads.
    counts: Option<Vec<i64>>,
    /// The mailbox, with how many there are.
    total: MailboxFigure,
    next: Option<ListPosition>,
}

/// Truncates the result to a page, and returns whether there is more.
fn truncate_page<T>(found: &mut Vec<T>, limit: i64) -> bool {
    let wanted = usize::try_from(limit).unwrap_or_default();
    let more = found.len() > wanted;
    found.truncate(wanted);
    more
}

/// Presents a page. With a budget the newest emails keep their text; the rest is cut and marked as such.
pub(crate) async fn show(
    app: &App,
    call: &Call,
    page: Page,
    options: &ReadOptions,
    budget: Option<usize>,
) -> Result<Vec<Email>> {
    let mut left = budget;
    let mut records: Vec<_> = page.records.into_iter().enumerate().collect();
    if budget.is_some() {
        records.sort_by(|(_, (one, _, _)), (_, (other, _, _))| {
            (other.date, &other.id).cmp(&(one.date, &one.id))
        });
    }
    let mut emails = Vec::with_capacity(records.len());
    for (index, (mail, count, fetched)) in records {
        let bounded = present::within(options, left);
        let presenter = Presenter { folders: &page.names, options: &bounded };
        let mut email = presenter.open_and_show(app, &call.workspace, mail, fetched).await?;
        email.thread_count = count;
        // A list does not include header blocks.
        email.raw_headers = None;
        if let (Some(left), Some(body)) = (&mut left, &email.body) {
            *left = left.saturating_sub(body.chars().count());
        }
        emails.push((index, email));
    }
    emails.sort_by_key(|(index, _)| *index);
    Ok(emails.into_iter().map(|(_, email)| email).collect())
}

/// The newest email of each thread, with the number of its emails.
async fn threaded(
    tx: &mut Tx,
    named: &MailboxName,
    filter: &EmailFilter,
    after: Option<&ListPosition>,
    skip: i64,
    limit: i64,
) -> Result<EmailListing> {
    let chosen = ThreadFilter { folder: filter.folder.clone(), held_after: filter.held_after };
    let start = ThreadPageStart { after: after.and_then(date_and_id), skip };
    let (mut found, total) =
        threads::page(tx, named, &chosen, &start, limit + 1).await?.ok_or_else(mailboxes::missing)?;
    let total = folders::require(Some(total))?;
    let more = truncate_page(&mut found, limit);
    let next = found.last().filter(|_| more).map(|last| ListPosition {
        numbers: vec![last.position.0.as_micros()],
        text: None,
        id: last.position.1.clone(),
    });
    let shown = found.into_iter().filter(|thread| thread.mail_count > 0);
    let (records, counts) = shown.map(|thread| (thread.newest, thread.mail_count)).unzip();
    Ok(EmailListing { records, counts: Some(counts), total, next })
}

/// The same with further filters; the number counts all visible emails of the thread.
async fn matching_threaded(
    tx: &mut Tx,
    named: &MailboxName,
    filter: &EmailFilter,
    after: Option<&ListPosition>,
    skip: i64,
    limit: i64,
) -> Result<EmailListing> {
    let after = after.and_then(date_and_id);
    let mut found = emails::select_newest(named.into(), filter, after.as_ref(), skip, limit + 1);
    let mut total = emails::select_newest_total(named, filter);
    tx.select(&mut [&mut total, &mut found]).await?;
    let total = folders::require(total.row())?;
    let mut found = found.rows();
    let more = truncate_page(&mut found, limit);
    let sort = Sort { column: SortColumn::Date, direction: SortDirection::Descending };
    let next = found.last().filter(|_| more).map(|last| sort.position(&last.email));
    let (records, counts) = found.into_iter().map(|thread| (thread.email, thread.count)).unzip();
    Ok(EmailListing { records, counts: Some(counts), total, next })
}

/// The position in a list by date.
fn date_and_id(position: &ListPosition) -> Option<(Timestamp, EmailId)> {
    position.numbers.first().map(|date| (Timestamp::from_micros(*date), position.id.clone()))
}

/// Whether a list filters by more than a folder.
fn filters_more(query: &ListQuery) -> bool {
    query.category.is_some()
        || query.custom_label.is_some()
        || query.is_read.is_some()
        || query.is_starred.is_some()
        || query.has_attachment.is_some()
        || query.thread_id.is_some()
}

fn filter(query: &ListQuery, now: Timestamp) -> Result<EmailFilter> {
    let sorted = query.sort_column != SortColumn::Date || query.sort_direction != SortDirection::Descending;
    if query.threaded && sorted {
        return Err(Error::invalid("threaded", "is always newest first: omit sortColumn and sortDirection"));
    }
    Ok(EmailFilter {
        folder: query.folder.clone(),
        thread: query.thread_id.clone(),
        category: query.category,
        labels: query.custom_label.iter().cloned().collect(),
        is_read: query.is_read,
        is_starred: query.is_starred,
        has_attachment: query.has_attachment,
        date_start: None,
        date_end: None,
        held_after: (!query.include_held).then_some(now),
    })
}
