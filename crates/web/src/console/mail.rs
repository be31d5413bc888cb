//! A mailbox's messages as a list: folders, labels, search, and actions on conversations.

use askama::Template;
use axum::{
    Router,
    extract::{Path, RawQuery, Request},
    response::Response,
    routing::{get, post},
};
use mail::html::escape;
use model::{
    EmailId,
    emails::{BulkDelete, BulkMove, BulkRead, Email, ListQuery, ScanStatus},
    labels::Label,
    search::SearchQuery,
    threads::{ThreadListQuery, ThreadSummary},
};
use operations::{Error, Result, drafts, emails, labels, search, threads};
use serde_json::json;

use super::{
    confirm::{Question, ask, confirmed},
    fields::{Fields, input},
    links::{encoded, safe_next},
    page::{self, html, nothing, with_header},
    reader::{self, Reader},
    shell::{Shell, SideFolder},
    sidebar::fill_sidebar,
    text::{counted, marked, people, person, plural},
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
        .route("/console/m/{mailbox}/act", post(act))
        .route("/console/m/{mailbox}/empty-trash", post(empty_trash))
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
    labels: Vec<(String, String)>,
}

/// A page of conversations.
struct Listing {
    rows: Vec<Row>,
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
    reader: Option<Reader>,
    fresh: bool,
}

#[derive(Template)]
#[template(path = "console/rows.html")]
struct Rows {
    listing: Listing,
    folder: String,
    query: String,
    fresh: bool,
}

/// Turns emails into rows.
struct RowMaker<'a> {
    mailbox: &'a str,
    view: &'a View,
    zone: &'a Zone,
    labels: &'a [Label],
    suffix: String,
}

impl RowMaker<'_> {
    fn of_thread(&self, thread: ThreadSummary) -> Row {
        let mut row = self.of_email(thread.newest_email);
        row.count = thread.mail_count;
        row.unread = thread.unread_count > 0;
        row
    }

    fn of_email(&self, email: Email) -> Row {
        let thread = email.thread_id.as_ref().map(|id| id.as_str().to_owned()).unwrap_or_default();
        let folder = email.folder_id.as_str();
        let outgoing = matches!(folder, "sent" | "draft" | "scheduled") || email.delivery_status.is_some();
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
    let maker = RowMaker { mailbox, view, zone, labels: known, suffix: view.query(cursor) };
    let (rows, total, next, counted_up_to) = match view {
        View::Folder(folder) if folder == "draft" => {
            let query = input(&json!({ "folder": folder, "limit": limit, "cursor": cursor }))?;
            let page = emails::list(app, &visit.call(&drafts::LIST)?, mailbox, query).await?;
            let rows: Vec<Row> = page.emails.into_iter().map(|email| maker.of_email(email)).collect();
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
            let rows: Vec<Row> = page.emails.into_iter().map(|email| maker.of_email(email)).collect();
            (rows, page.total_count, page.next_cursor, i64::MAX)
        }
        View::Search(text) => {
            let query: SearchQuery = input(&json!({ "query": text, "limit": limit, "cursor": cursor }))?;
            let page = search::search(app, &visit.call(&search::SEARCH)?, mailbox, query).await?;
            let rows: Vec<Row> = page.emails.into_iter().map(|email| maker.of_email(email)).collect();
            (rows, page.total_count, page.next_cursor, 100)
        }
    };
    let base = view.base(mailbox);
    let more = if total >= counted_up_to { "+" } else { "" };
    Ok(Listing {
        rows,
        total: format!("{}{more}", number(total)),
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
        let thread = thread.ok_or_else(|| Error::not_found("Thread not found"))?;
        return html(&reader::load(visit, mailbox, &folder, &thread, list_url).await?);
    }
    if page::is_partial(&visit.headers) && target == "rows" {
        let zone = visit.zone().await?;
        let known = labels::list(visit.app(), &visit.call(&labels::LIST)?, mailbox).await?;
        let listing = list(visit, mailbox, &view, &zone, &known, cursor).await?;
        return html(&Rows { listing, folder, query: text, fresh: true });
    }
    let mut shell = visit.shell("", &view.active()).await?;
    let known = fill_sidebar(visit, &mut shell, mailbox).await?;
    let listing = list(visit, mailbox, &view, &shell.zone, &known, cursor).await?;
    let title = title(&view, &shell);
    shell.head.title = format!("{title} – {}", mailbox_name(&shell));
    let reader = match thread {
        Some(thread) => Some(reader::load(visit, mailbox, &folder, &thread, list_url.clone()).await?),
        None => None,
    };
    html(&MailPage { shell, title, query: text, listing, folder, list_url, reader, fresh: false })
}

fn mailbox_name(shell: &Shell) -> String {
    let found = shell.mailboxes.iter().find(|one| one.id == shell.mailbox);
    found.map(|one| one.name.clone()).unwrap_or_default()
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

/// Applies an action to conversations.
async fn act(visit: Visit, Path(mailbox): Path<String>, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let inbox = format!("/console/m/{}/f/inbox", encoded(&mailbox));
    let back = fields.given("back").map_or(inbox.as_str(), safe_next);
    if fields.get("action") == "delete"
        && let Some(asked) = ask_deletion(&visit, &fields, back)
    {
        return asked;
    }
    match change(&visit, &mailbox, &fields).await {
        Ok(said) if page::is_partial(&visit.headers) => {
            let toast = json!({ "toast": { "kind": "done", "text": said }, "mail-news": {} });
            let quiet = json!({ "mail-news": {} });
            let trigger = if said.is_empty() { quiet } else { toast };
            with_header(nothing(), "hx-trigger", &page::ascii_json(&trigger))
        }
        outcome => visit.act(back, async { outcome.map(|said| (back.to_owned(), said)) }).await,
    }
}

/// Asks before conversations are deleted for good.
fn ask_deletion(visit: &Visit, fields: &Fields, back: &str) -> Option<Response> {
    let count = i64::try_from(fields.all("thread").len()).unwrap_or(i64::MAX);
    let what = if count == 1 { "this conversation".to_owned() } else { counted(count, "conversation") };
    let question = Question {
        title: &format!("Delete {what}?"),
        text: "This cannot be undone.",
        button: &format!("Delete {}", plural(count, "conversation")),
        cancel: back,
        typed: "",
    };
    ask(visit, fields, &question)
}

async fn change(visit: &Visit, mailbox: &str, fields: &Fields) -> Result<String> {
    let chosen = fields.all("thread");
    if chosen.is_empty() {
        return Err(Error::invalid("thread", "choose a conversation first"));
    }
    let folder = fields.get("folder");
    let mut emails: Vec<Email> = Vec::new();
    for thread in chosen.iter().take(100) {
        let query = input(&json!({ "metadata_only": true }))?;
        let call = visit.call(&threads::GET)?;
        emails.extend(threads::get(visit.app(), &call, mailbox, (*thread).into(), query).await?);
    }
    let word =
        if chosen.len() == 1 { "Conversation".to_owned() } else { format!("{} conversations", chosen.len()) };
    let action = fields.get("action");
    let ids = |fits: &dyn Fn(&Email) -> bool| -> Vec<EmailId> {
        emails.iter().filter(|mail| fits(mail)).map(|mail| mail.id.clone()).collect()
    };
    // In a folder only its own messages are moved; elsewhere everything except sent messages and drafts.
    let here = |mail: &Email| {
        let at = mail.folder_id.as_str();
        if folder.is_empty() { !matches!(at, "sent" | "draft" | "scheduled") } else { at == folder }
    };
    match action {
        "read" | "unread" => {
            let read = action == "read";
            let newest = emails.iter().rev().find(|mail| mail.delivery_status.is_none()).or(emails.last());
            let newest = newest.map(|mail| mail.id.clone());
            let ids = if read { ids(&|mail| !mail.read) } else { newest.into_iter().collect() };
            set_read(visit, mailbox, ids, read).await?;
            Ok(if read { String::new() } else { format!("{word} marked unread.") })
        }
        "trash" => {
            discard(visit, mailbox, ids(&here), false).await?;
            Ok(format!("{word} moved to Trash."))
        }
        "delete" => {
            discard(visit, mailbox, ids(&here), true).await?;
            Ok(format!("{word} deleted for good."))
        }
        "star" | "unstar" => {
            alter(visit, mailbox, &emails, &json!({ "starred": action == "star" })).await?;
            Ok(String::new())
        }
        "label" => {
            alter(visit, mailbox, &emails, &json!({ "custom_labels": fields.all("label") })).await?;
            Ok("Labels saved.".to_owned())
        }
        "archive" => relocate(visit, mailbox, ids(&here), "archive", &format!("{word} archived.")).await,
        "move" => {
            let target = fields.get("target");
            relocate(visit, mailbox, ids(&here), target, &format!("{word} moved.")).await
        }
        _ => Err(Error::invalid("action", "unknown action")),
    }
}

/// Changes the newest email of a conversation.
async fn alter(visit: &Visit, mailbox: &str, emails: &[Email], change: &serde_json::Value) -> Result<()> {
    let newest = emails.last().ok_or_else(|| Error::not_found("Email not found"))?;
    let call = visit.call(&emails::UPDATE)?;
    emails::update(visit.app(), &call, mailbox, newest.id.clone(), input(change)?).await.map(|_| ())
}

async fn set_read(visit: &Visit, mailbox: &str, ids: Vec<EmailId>, read: bool) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let call = visit.call(&emails::BULK_READ)?;
    emails::bulk_read(visit.app(), &call, mailbox, BulkRead { ids, read }).await.map(|_| ())
}

async fn discard(visit: &Visit, mailbox: &str, ids: Vec<EmailId>, permanent: bool) -> Result<()> {
    let call = visit.call(&emails::BULK_DELETE)?;
    emails::bulk_delete(visit.app(), &call, mailbox, BulkDelete { ids, permanent }).await.map(|_| ())
}

async fn relocate(
    visit: &Visit,
    mailbox: &str,
    ids: Vec<EmailId>,
    target: &str,
    said: &str,
) -> Result<String> {
    let call = visit.call(&emails::BULK_MOVE)?;
    let wanted = BulkMove { ids, folder_id: target.into() };
    emails::bulk_move(visit.app(), &call, mailbox, wanted).await?;
    Ok(said.to_owned())
}

async fn empty_trash(visit: Visit, Path(mailbox): Path<String>, request: Request) -> Response {
    let back = format!("/console/m/{}/f/trash", encoded(&mailbox));
    let question = Question {
        title: "Empty Trash?",
        text: "Everything in Trash is deleted. This cannot be undone.",
        button: "Empty Trash",
        cancel: &back,
        typed: "",
    };
    let empty = async |_| {
        let work = async {
            let call = visit.call(&emails::EMPTY_TRASH)?;
            let deleted = emails::empty_trash(visit.app(), &call, &mailbox).await?;
            Ok((back.clone(), format!("{} deleted.", counted(deleted.deleted_count, "message"))))
        };
        visit.act(&back, work).await
    };
    confirmed(&visit, request, &question, empty).await
}
