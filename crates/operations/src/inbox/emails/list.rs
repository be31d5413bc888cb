//! Lists of emails: filters, threads, cursors and pages.

use model::{
    EmailId, LabelId, MailboxId, Timestamp,
    emails::{Email, EmailPage, ListQuery, ReadOptions, SortColumn, SortDirection},
};
use store::{
    Tx,
    emails::{self, EmailFilter, EmailRecord, ListPosition, Sort},
    labels,
    mailboxes::MailboxName,
    threads::{self, ThreadFilter},
};

use super::present::{self, FetchedContent, FolderNames, Presenter};
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
    let named = mailboxes::name(mailbox);
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
    let mailbox = mailboxes::find_id(tx, named).await?;
    let filter = filter(tx, &mailbox, query, now).await?;
    let options = query.read_options();
    let with_bodies = query.max_body_chars.is_some() || query.max_total_chars.is_some();
    let skip = query.page.map_or(0, |page| (page - 1).saturating_mul(query.limit));
    let found = if query.threaded && filters_more(query) {
        matching_threaded(tx, &mailbox, &filter, after.as_ref(), skip, query.limit).await?
    } else if query.threaded {
        threaded(tx, &mailbox, &filter, after.as_ref(), skip, query.limit).await?
    } else {
        let sort = Sort { column: query.sort_column, direction: query.sort_direction };
        let mut records =
            emails::list(tx, &mailbox, &filter, sort, after.as_ref(), skip, query.limit + 1).await?;
        let more = truncate_page(&mut records, query.limit);
        let next = records.last().filter(|_| more).map(|last| sort.position(last));
        let total = emails::count(tx, &mailbox, &filter).await?;
        EmailListing { records: records.into_iter().map(|mail| (mail, None)).collect(), total, next }
    };
    let names = FolderNames::load(tx, &mailbox, found.records.iter().map(|(mail, _)| mail)).await?;
    let records = fetch(tx, found.records, &names, &options, with_bodies).await?;
    Ok(Page { records, names, total: found.total, next: found.next })
}

/// The records of a page.
struct EmailListing {
    records: Vec<(EmailRecord, Option<i64>)>,
    total: i64,
    next: Option<ListPosition>,
}

/// Truncates the result to a page, and returns whether there is more.
fn truncate_page<T>(found: &mut Vec<T>, limit: i64) -> bool {
    let wanted = usize::try_from(limit).unwrap_or_default();
    let more = found.len() > wanted;
    found.truncate(wanted);
    more
}

/// Fetches the contents of emails that are presented with their bodies.
pub(crate) async fn fetch(
    tx: &mut Tx,
    records: Vec<(EmailRecord, Option<i64>)>,
    names: &FolderNames,
    options: &ReadOptions,
    with_bodies: bool,
) -> Result<Vec<(EmailRecord, Option<i64>, Option<FetchedContent>)>> {
    let presenter = Presenter { folders: names, options };
    let (records, counts): (Vec<_>, Vec<_>) = records.into_iter().unzip();
    let records: Vec<_> = if with_bodies {
        presenter.fetch_all(tx, records).await?
    } else {
        records.into_iter().map(|mail| (mail, None)).collect()
    };
    Ok(records.into_iter().zip(counts).map(|((mail, fetched), count)| (mail, count, fetched)).collect())
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
    mailbox: &MailboxId,
    filter: &EmailFilter,
    after: Option<&ListPosition>,
    skip: i64,
    limit: i64,
) -> Result<EmailListing> {
    let chosen = ThreadFilter { folder: filter.folder.clone(), held_after: filter.held_after };
    let mut found = threads::list(tx, mailbox, &chosen, after.and_then(date_and_id), skip, limit + 1).await?;
    let more = truncate_page(&mut found, limit);
    let next = found.last().filter(|_| more).map(|last| ListPosition {
        numbers: vec![last.position.0.as_micros()],
        text: None,
        id: last.position.1.clone(),
    });
    found.retain(|thread| thread.mail_count > 0);
    let ids: Vec<EmailId> = found.iter().map(|thread| thread.newest_email.clone()).collect();
    let mut newest = emails::select(tx, mailbox, &ids).await?;
    let total = threads::count(tx, mailbox, &chosen).await?;
    let mut records = Vec::with_capacity(found.len());
    for thread in found {
        if let Some(at) = newest.iter().position(|mail| mail.id == thread.newest_email) {
            records.push((newest.swap_remove(at), Some(thread.mail_count)));
        }
    }
    Ok(EmailListing { records, total, next })
}

/// The same with further filters; the number counts all visible emails of the thread.
async fn matching_threaded(
    tx: &mut Tx,
    mailbox: &MailboxId,
    filter: &EmailFilter,
    after: Option<&ListPosition>,
    skip: i64,
    limit: i64,
) -> Result<EmailListing> {
    let after = after.and_then(date_and_id);
    let mut found = emails::list_threaded(tx, mailbox, filter, after, skip, limit + 1).await?;
    let more = truncate_page(&mut found, limit);
    let sort = Sort { column: SortColumn::Date, direction: SortDirection::Descending };
    let next = found.last().filter(|_| more).map(|last| sort.position(last));
    let total = emails::count_threaded(tx, mailbox, filter).await?;
    let chosen = ThreadFilter { folder: filter.folder.clone(), held_after: filter.held_after };
    let mut records = Vec::with_capacity(found.len());
    for mail in found {
        let count = threads::count_emails(tx, mailbox, &chosen, &mail.thread_id).await?;
        records.push((mail, Some(count)));
    }
    Ok(EmailListing { records, total, next })
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

async fn filter(tx: &mut Tx, mailbox: &MailboxId, query: &ListQuery, now: Timestamp) -> Result<EmailFilter> {
    let sorted = query.sort_column != SortColumn::Date || query.sort_direction != SortDirection::Descending;
    if query.threaded && sorted {
        return Err(Error::invalid("threaded", "is always newest first: omit sortColumn and sortDirection"));
    }
    folders::require(tx, mailbox, query.folder.as_ref()).await?;
    Ok(EmailFilter {
        folder: query.folder.clone(),
        thread: query.thread_id.clone(),
        category: query.category,
        labels: match &query.custom_label {
            Some(slug) => vec![label_id(tx, mailbox, slug).await?],
            None => Vec::new(),
        },
        is_read: query.is_read,
        is_starred: query.is_starred,
        has_attachment: query.has_attachment,
        date_start: None,
        date_end: None,
        held_after: (!query.include_held).then_some(now),
    })
}

/// The label with a slug; an unknown slug matches nothing.
pub(crate) async fn label_id(tx: &mut Tx, mailbox: &MailboxId, slug: &str) -> Result<LabelId> {
    let found = labels::list(tx, mailbox).await?.into_iter().find(|label| label.slug == slug);
    Ok(found.map_or_else(|| LabelId::from(""), |label| label.id))
}
