//! A mailbox's messages as a list: folders, labels, search.

use std::collections::HashMap;

use askama::Template;
use axum::{
    Router,
    extract::{Path, RawQuery},
    response::Response,
    routing::get,
};
use mail::html::escape;
use model::{
    EmailId,
    emails::{Email, ListQuery, ScanStatus},
    labels::Label,
    search::{
        SearchQuery,
        query::{QueryFault, forgive},
    },
    threads::{ThreadListQuery, ThreadSummary},
};
use operations::{Error, ErrorKind, Result, drafts, emails, labels, mailboxes, search, threads};
use serde_json::json;

use super::{
    approval,
    fields::{Fields, input},
    links::encoded,
    page::{self, html},
    reader::{self, Reader},
    shell::{Shell, SideFolder},
    sidebar::fill_sidebar,
    text::{counted, marked, people, person},
    time::{When, Zone, number},
    visit::Visit,
};
use crate::State;

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/m/{mailbox}/inbox", get(to_inbox))
        .route("/console/m/{mailbox}/f/{folder}", get(folder_page))
        .route("/console/m/{mailbox}/f/{folder}/{thread}", get(folder_thread))
        .route("/console/m/{mailbox}/l/{label}", get(label_page))
        .route("/console/m/{mailbox}/l/{label}/{thread}", get(label_thread))
        .route("/console/m/{mailbox}/search", get(search_page))
        .route("/console/m/{mailbox}/search/{thread}", get(search_thread))
}

async fn to_inbox(visit: Visit, Path(mailbox): Path<String>) -> Response {
    page::go_to(&visit.headers, &format!("/console/m/{}/f/inbox", encoded(&mailbox)))
}

/// Which messages a list shows.
#[derive(Clone)]
pub(super) enum View {
    Folder(String),
    Label(String),
    Search(String),
}

impl View {
    /// The URL of the list, without its query.
    fn base(&self, mailbox: &str) -> String {
        let mailbox = encoded(mailbox);
        match self {
            Self::Folder(id) => format!("/console/m/{mailbox}/f/{}", encoded(id)),
            Self::Label(slug) => format!("/console/m/{mailbox}/l/{}", encoded(slug)),
            Self::Search(_) => format!("/console/m/{mailbox}/search"),
        }
    }

    /// The query of the URL.
    fn query(&self, cursor: Option<&str>) -> String {
        let mut pairs = form_urlencoded::Serializer::new(String::new());
        if let Self::Search(query) = self {
            pairs.append_pair("q", query);
        }
        if let Some(cursor) = cursor {
            pairs.append_pair("cursor", cursor);
        }
        let text = pairs.finish();
        if text.is_empty() { text } else { format!("?{text}") }
    }

    /// The part of the sidebar it belongs to.
    fn active(&self) -> String {
        match self {
            Self::Folder(id) => id.clone(),
            Self::Label(slug) => format!("label-{slug}"),
            Self::Search(_) => "search".to_owned(),
        }
    }

    fn is(&self, folder: &str) -> bool {
        matches!(self, Self::Folder(id) if id == folder)
    }
}

/// A conversation in the list.
#[expect(clippy::struct_excessive_bools, reason = "each is a mark of its own beside the subject")]
struct Row {
    thread: String,
    url: String,
    /// Whether it is opened in the reader beside the list.
    inside: bool,
    who: String,
    subject: String,
    snippet: String,
    at: When,
    unread: bool,
    count: i64,
    starred: bool,
    files: bool,
    flagged: bool,
    failed: bool,
    urgent: bool,
    /// Whether it is a draft that a person must approve.
    needs_approval: bool,
    labels: Vec<(String, String)>,
}

/// A page of conversations.
#[derive(Default)]
struct Listing {
    rows: Vec<Row>,
    /// How many there are, with their noun.
    total: String,
    next: Option<String>,
    first: Option<String>,
    /// The URL that shows the same rows again.
    url: String,
}

#[derive(Template)]
#[template(path = "console/mail.html")]
struct MailPage {
    shell: Shell,
    title: String,
    query: String,
    listing: Listing,
    folder: String,
    list_url: String,
    mailbox: String,
    address: String,
    /// The mistake in the search.
    mistake: Option<Mistake>,
    reader: Option<Reader>,
    fresh: bool,
}

/// A mistake in a search, with the text before it, the text itself and the text behind it.
struct Mistake {
    said: String,
    before: String,
    token: String,
    behind: String,
}

impl Mistake {
    fn new(text: &str, fault: &QueryFault) -> Self {
        let mut rest = text.chars();
        let column = fault.column.saturating_sub(1);
        // The place of a missing value is behind its field.
        let at = text.char_indices().nth(column).map_or(text.len(), |(at, _)| at);
        let start = if text.get(at..).is_some_and(|rest| rest.starts_with(&fault.token)) {
            column
        } else {
            column.saturating_sub(fault.token.chars().count())
        };
        let before: String = rest.by_ref().take(start).collect();
        let token: String = rest.by_ref().take(fault.token.chars().count()).collect();
        Self {
            said: format!("Character {}: {}.", fault.column, fault.message),
            before,
            token,
            behind: rest.collect(),
        }
    }

    /// A query that is refused for something else, such as its length.
    fn whole(text: &str, refused: &Error) -> Self {
        let (before, behind) = (String::new(), String::new());
        Self { said: page::explain(refused), before, token: text.to_owned(), behind }
    }
}

#[derive(Template)]
#[template(path = "console/rows.html")]
struct Rows {
    listing: Listing,
    folder: String,
    query: String,
    mailbox: String,
    address: String,
    fresh: bool,
}

/// Turns emails into rows.
struct RowMaker<'a> {
    mailbox: &'a str,
    view: &'a View,
    zone: &'a Zone,
    labels: &'a [Label],
    /// The drafts that a person must approve, and who wrote them.
    approvals: HashMap<EmailId, String>,
    suffix: String,
}

impl RowMaker<'_> {
    async fn of_emails(mut self, visit: &Visit, emails: Vec<Email>) -> Result<Vec<Row>> {
        self.approvals = approval::pending(visit, self.mailbox, &emails).await?;
        Ok(emails.into_iter().map(|email| self.of_email(email)).collect())
    }

    fn of_thread(&self, thread: ThreadSummary) -> Row {
        let mut row = self.of_email(thread.newest_email);
        row.count = thread.mail_count;
        row.unread = thread.unread_count > 0;
        row
    }

    fn of_email(&self, email: Email) -> Row {
        let thread = email.thread_id.as_ref().map(|id| id.as_str().to_owned()).unwrap_or_default();
        let folder = email.folder_id.as_str();
        let outgoing =
            matches!(folder, "sent" | "draft" | "scheduled" | "review") || email.delivery_status.is_some();
        let place = encoded(self.mailbox);
        let (url, inside) = match folder {
            "draft" => (format!("/console/m/{place}/compose?draft={}", email.id), false),
            "scheduled" => (format!("/console/m/{place}/scheduled"), false),
            _ => (format!("{}/{}{}", self.view.base(self.mailbox), encoded(&thread), self.suffix), true),
        };
        let snippet = match email.highlights.as_deref() {
            Some([first, ..]) => marked(first),
            _ => escape(email.snippet.as_deref().unwrap_or_default()),
        };
        let to = if email.to.is_empty() { &email.recipient } else { &email.to };
        let named = |slug: &String| {
            let label = self.labels.iter().find(|label| label.slug == *slug)?;
            Some((label.name.clone(), label.color.clone()))
        };
        Row {
            who: if outgoing { format!("To: {}", people(to)) } else { person(&email.sender).0 },
            subject: if email.subject.is_empty() { "(no subject)".to_owned() } else { email.subject },
            snippet,
            at: self.zone.when(email.date),
            unread: !email.read,
            count: email.thread_count.unwrap_or(1),
            starred: email.starred,
            files: email.attachment_count > 0,
            flagged: email.scan_status == Some(ScanStatus::Flagged),
            urgent: email.is_urgent && !outgoing,
            needs_approval: self.approvals.contains_key(&email.id),
            failed: matches!(email.delivery_status.as_deref(), Some("bounced" | "partial" | "complained")),
            labels: email.custom_labels.iter().filter_map(named).collect(),
            thread,
            url,
            inside,
        }
    }
}

async fn list(
    visit: &Visit,
    mailbox: &str,
    view: &View,
    zone: &Zone,
    known: &[Label],
    cursor: Option<&str>,
) -> Result<Listing> {
    let (app, limit) = (visit.app(), visit.limits().conversations_per_page);
    let (approvals, suffix) = (HashMap::new(), view.query(cursor));
    let maker = RowMaker { mailbox, view, zone, labels: known, approvals, suffix };
    let (rows, total, next, max_count) = match view {
        View::Folder(folder) if folder == "draft" => {
            let query = input(&json!({ "folder": folder, "limit": limit, "cursor": cursor }))?;
            let page = emails::list(app, &visit.call(&drafts::LIST)?, mailbox, query).await?;
            let rows = maker.of_emails(visit, page.emails).await?;
            (rows, page.total_count, page.next_cursor, i64::MAX)
        }
        View::Folder(folder) => {
            let query: ThreadListQuery =
                input(&json!({ "folder": folder, "limit": limit, "cursor": cursor }))?;
            let page = threads::list(app, &visit.call(&threads::LIST)?, mailbox, query).await?;
            let rows: Vec<Row> = page.threads.into_iter().map(|thread| maker.of_thread(thread)).collect();
            (rows, page.total_count, page.next_cursor, i64::MAX)
        }
        View::Label(slug) => {
            let query: ListQuery = input(&json!({ "custom_label": slug, "limit": limit, "cursor": cursor }))?;
            let page = emails::list(app, &visit.call(&emails::LIST)?, mailbox, query).await?;
            let rows = maker.of_emails(visit, page.emails).await?;
            (rows, page.total_count, page.next_cursor, i64::MAX)
        }
        View::Search(text) => {
            let text = forgive(text).unwrap_or_else(|_| text.clone());
            let query: SearchQuery = input(&json!({ "query": text, "limit": limit, "cursor": cursor }))?;
            let page = search::search(app, &visit.call(&search::SEARCH)?, mailbox, query).await?;
            let rows = maker.of_emails(visit, page.emails).await?;
            (rows, page.total_count, page.next_cursor, search::MAX_COUNTED)
        }
    };
    let base = view.base(mailbox);
    let noun = if matches!(view, View::Folder(id) if id == "draft") { "draft" } else { "conversation" };
    let total = match view {
        View::Search(_) if total >= max_count => format!("{}+ results", number(total)),
        View::Search(_) => counted(total, "result"),
        View::Label(_) => counted(total, "message"),
        View::Folder(_) => counted(total, noun),
    };
    Ok(Listing {
        rows,
        total,
        next: next.map(|next| format!("{base}{}", view.query(Some(&next)))),
        first: cursor.map(|_| format!("{base}{}", view.query(None))),
        url: format!("{base}{}", view.query(cursor)),
    })
}

async fn folder_page(
    visit: Visit,
    Path((mailbox, folder)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    visit.answer(Box::pin(show(&visit, &mailbox, View::Folder(folder), None, query))).await
}

async fn folder_thread(
    visit: Visit,
    Path((mailbox, folder, thread)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    visit.answer(Box::pin(show(&visit, &mailbox, View::Folder(folder), Some(thread), query))).await
}

async fn label_page(
    visit: Visit,
    Path((mailbox, label)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    visit.answer(Box::pin(show(&visit, &mailbox, View::Label(label), None, query))).await
}

async fn label_thread(
    visit: Visit,
    Path((mailbox, label, thread)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    visit.answer(Box::pin(show(&visit, &mailbox, View::Label(label), Some(thread), query))).await
}

async fn search_page(visit: Visit, Path(mailbox): Path<String>, RawQuery(query): RawQuery) -> Response {
    visit.answer(Box::pin(show(&visit, &mailbox, View::Search(String::new()), None, query))).await
}

async fn search_thread(
    visit: Visit,
    Path((mailbox, thread)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    visit.answer(Box::pin(show(&visit, &mailbox, View::Search(String::new()), Some(thread), query))).await
}

/// The list of a search whose query has a mistake: what the mistake is, above the list that was searched in.
async fn list_or_mistake(
    visit: &Visit,
    mailbox: &str,
    view: &View,
    shell: &Shell,
    known: &[Label],
    fields: &Fields,
) -> Result<(Listing, Option<Mistake>)> {
    let cursor = fields.given("cursor");
    let View::Search(text) = view else {
        return Ok((list(visit, mailbox, view, &shell.zone, known, cursor).await?, None));
    };
    let mistake = match forgive(text) {
        Err(fault) => Mistake::new(text, &fault),
        Ok(_) => match list(visit, mailbox, view, &shell.zone, known, cursor).await {
            Err(refused) if refused.kind() == ErrorKind::ValidationFailed => Mistake::whole(text, &refused),
            found => return Ok((found?, None)),
        },
    };
    let searched_in = View::Folder(fields.given("in").unwrap_or("inbox").to_owned());
    let listing = match list(visit, mailbox, &searched_in, &shell.zone, known, None).await {
        Err(refused) if refused.kind() != ErrorKind::Internal => Listing::default(),
        found => found?,
    };
    Ok((listing, Some(mistake)))
}

/// The whole page, or the requested part of it.
async fn show(
    visit: &Visit,
    mailbox: &str,
    view: View,
    thread: Option<String>,
    query: Option<String>,
) -> Result<Response> {
    let fields = Fields::parse(query.unwrap_or_default().as_bytes());
    let view = match view {
        View::Search(_) => View::Search(fields.get("q").chars().take(500).collect()),
        other => other,
    };
    if view.is("scheduled") {
        return Ok(page::go_to(&visit.headers, &format!("/console/m/{}/scheduled", encoded(mailbox))));
    }
    let cursor = fields.given("cursor");
    let list_url = format!("{}{}", view.base(mailbox), view.query(cursor));
    let target = visit.headers.get("hx-target").and_then(|id| id.to_str().ok()).unwrap_or_default();
    let folder = if let View::Folder(folder) = &view { folder.clone() } else { String::new() };
    let text = if let View::Search(text) = &view { text.clone() } else { String::new() };
    if page::is_partial(&visit.headers) && target == "reader" {
        let thread = thread.ok_or_else(|| Error::not_found("Conversation not found"))?;
        return html(&reader::load(visit, mailbox, &folder, &thread, list_url).await?);
    }
    if page::is_partial(&visit.headers) && target == "rows" {
        let zone = visit.zone().await?;
        let known = labels::list(visit.app(), &visit.call(&labels::LIST)?, mailbox).await?;
        let listing = list(visit, mailbox, &view, &zone, &known, cursor).await?;
        let found = mailboxes::get(visit.app(), &visit.call(&mailboxes::GET)?, mailbox).await?;
        let (mailbox, address) = (mailbox.to_owned(), found.email);
        return html(&Rows { listing, folder, query: text, mailbox, address, fresh: true });
    }
    let mut shell = visit.shell("", &view.active()).await?;
    let known = fill_sidebar(visit, &mut shell, mailbox).await?;
    let (listing, mistake) = list_or_mistake(visit, mailbox, &view, &shell, &known, &fields).await?;
    let title = title(&view, &shell);
    shell.head.title = format!("{title} – {}", shell.open_mailbox().map_or("", |one| one.name.as_str()));
    let reader = match thread {
        Some(thread) => Some(reader::load(visit, mailbox, &folder, &thread, list_url.clone()).await?),
        None => None,
    };
    let address = shell.open_mailbox().map(|one| one.email.clone()).unwrap_or_default();
    let mailbox = mailbox.to_owned();
    html(&MailPage {
        shell,
        title,
        query: text,
        listing,
        folder,
        list_url,
        mailbox,
        address,
        mistake,
        reader,
        fresh: false,
    })
}

fn title(view: &View, shell: &Shell) -> String {
    let named =
        |id: &str, all: &[SideFolder]| all.iter().find(|one| one.id == id).map(|one| one.name.clone());
    match view {
        View::Folder(id) if id == "inbox" => "Inbox".to_owned(),
        View::Folder(id) => named(id, &shell.folders).unwrap_or_else(|| id.clone()),
        View::Label(slug) => named(&format!("label-{slug}"), &shell.labels).unwrap_or_else(|| slug.clone()),
        View::Search(_) => "Search".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rules: SEARCH-8
    #[test]
    fn a_mistake_is_marked_where_it_stands() {
        for (text, parts) in [
            ("Re: é before:soon x", ("Re: é before:", "soon", " x")),
            ("lunch from:", ("lunch ", "from:", "")),
            ("lunch from: ann", ("lunch ", "from:", " ann")),
            ("a \"open end", ("a ", "\"open end", "")),
        ] {
            let mistake = Mistake::new(text, &forgive(text).unwrap_err());
            assert_eq!((mistake.before.as_str(), mistake.token.as_str(), mistake.behind.as_str()), parts);
        }
    }
}
