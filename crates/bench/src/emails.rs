//! Lists and single reads in a large mailbox: against a bare handler with the same queries, and against a small mailbox.
//!
//! The bare handler runs the same store functions, opens the same sealed content, returns the same fields and sends
//! the same bytes. It has no key, no plan, no credits, no scan gate and no options.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use model::{
    EmailId, Timestamp, WorkspaceId,
    emails::{Email, EmailPage, SortColumn, SortDirection},
    folders::Folder,
};
use store::{
    Db, Tx,
    contents::{self, ContentRecord, Part, StoredPart},
    emails::{self, EmailFilter, EmailRecord, Sort},
    folders,
    mailboxes::{self, MailboxName},
    vault::DataKey,
};

use crate::{
    load::{Connection, End, Load},
    machine,
    measured_store::{Engine, MeasuredStore},
    messages,
    options::Options,
    report::{Figure, Target},
    service::{self, Service},
    stats::{median, spread},
    turns::{Comparison, Side},
};

const CONNECTIONS: usize = 32;
const PAGE_SIZE: usize = 50;
const BARE_HANDLER_TARGET: Target = Target::AtLeast(0.60);
const SMALL_MAILBOX_TARGET: Target = Target::AtMost(1.3);
/// Messages of the small mailbox.
const SMALL_MAILBOX_MESSAGES: usize = 10_000;

pub(crate) async fn measure(options: &Options) -> Vec<Figure> {
    let mut figures = Vec::new();
    for engine in &options.engines {
        figures.extend(compare_with_bare(*engine, options).await);
        figures.push(compare_sizes(*engine, options).await);
    }
    figures
}

/// A service with a filled mailbox.
struct Mailbox {
    service: Service,
    public_id: String,
    address: SocketAddr,
}

impl Mailbox {
    async fn new(store: &MeasuredStore, messages: usize) -> Self {
        let service = Service::open(store).await;
        let public_id = messages::fill(&service, messages, false).await;
        let address = service.listen().await;
        Self { service, public_id, address }
    }

    fn path(&self) -> String {
        format!("/api/v1/mailboxes/{}/emails", self.public_id)
    }

    fn request(&self, address: SocketAddr, path: &str) -> String {
        let key = &self.service.key;
        format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: application/json\r\nX-API-Key: {key}\r\n\r\n"
        )
    }

    async fn ask(&self, address: SocketAddr, path: &str) -> Vec<u8> {
        let (status, body) = Connection::open(address).await.ask(&self.request(address, path)).await;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        body
    }

    fn page(&self) -> Load {
        let request = self.request(self.address, &format!("{}?limit={PAGE_SIZE}", self.path()));
        Load::of_one(self.address, CONNECTIONS, request)
    }
}

async fn compare_with_bare(engine: Engine, options: &Options) -> [Figure; 2] {
    let store = MeasuredStore::new(engine).await;
    let count = options.many_messages();
    let mailbox = Mailbox::new(&store, count).await;
    let list = format!("{}?limit={PAGE_SIZE}", mailbox.path());
    let one = format!("{}/{}", mailbox.path(), messages::email_id(count / 2));
    let listed = mailbox.ask(mailbox.address, &list).await;
    let page: serde_json::Value = serde_json::from_slice(&listed).expect("a page is JSON");
    assert_eq!(page["emails"].as_array().map(Vec::len), Some(PAGE_SIZE));
    let workspace = mailbox.service.workspace.clone();
    let bare = BareHandler {
        db: mailbox.service.app.db().clone(),
        key: mailbox.service.app.data_key(&workspace).await.expect("the workspace has a key"),
        workspace,
        cursor: page["next_cursor"].as_str().expect("more messages follow").to_owned(),
    };
    let bare = service::listen(bare.router()).await;
    // Cursors are sealed and never repeat; the bare handler gets the one of this response.
    assert_eq!(mailbox.ask(bare, &list).await, listed, "both sides send the same page");
    assert_eq!(
        mailbox.ask(bare, &one).await,
        mailbox.ask(mailbox.address, &one).await,
        "and the same message"
    );
    let load = |address, path: &str| Load::of_one(address, CONNECTIONS, mailbox.request(address, path));
    let mut figures = Vec::new();
    for (what, path) in [("page of 50 messages : bare handler", &list), ("message : bare handler", &one)] {
        let (ours, bare) = (load(mailbox.address, path), load(bare, path));
        let comparison = Comparison {
            what,
            engine,
            target: Some(BARE_HANDLER_TARGET),
            measured: Side { name: "service", load: &ours },
            yardstick: Side { name: "bare", load: &bare },
        };
        let mut figure = comparison.run(options).await;
        figure.notes.push(format!("{count} messages in the mailbox"));
        figures.push(figure);
    }
    store.remove().await;
    figures.try_into().unwrap_or_else(|_| unreachable!("two comparisons"))
}

/// The CPU time of a page in a large mailbox against that in a small one.
async fn compare_sizes(engine: Engine, options: &Options) -> Figure {
    let (small_store, large_store) = (MeasuredStore::new(engine).await, MeasuredStore::new(engine).await);
    let small = Mailbox::new(&small_store, SMALL_MAILBOX_MESSAGES).await;
    let large = Mailbox::new(&large_store, options.largest_mailbox_messages()).await;
    let (few, many) = (small.page(), large.page());
    let (mut of_few, mut of_many) = (Vec::new(), Vec::new());
    // The first turn warms the caches and does not count.
    for round in 0..=options.rounds() {
        let one = cpu_of(&few, &small_store, options).await;
        let other = cpu_of(&many, &large_store, options).await;
        if round > 0 {
            of_few.push(one);
            of_many.push(other);
        }
    }
    drop((small, large));
    small_store.remove().await;
    large_store.remove().await;
    let ratios: Vec<f64> = of_many.iter().zip(&of_few).map(|(many, few)| many / few).collect();
    Figure {
        what: "CPU time of a page, many : 10,000 messages",
        engine: engine.name(),
        unit: "µs",
        value: median(&of_many),
        yardstick: median(&of_few),
        ratio: median(&ratios),
        spread: spread(&ratios),
        target: Some(SMALL_MAILBOX_TARGET),
        notes: vec![format!("{} messages in the large mailbox", options.largest_mailbox_messages())],
    }
}

/// The CPU time of one request in microseconds, including PostgreSQL's processes for this store.
async fn cpu_of(load: &Load, store: &MeasuredStore, options: &Options) -> f64 {
    let processes = store.server_processes().await;
    let cpu = || processes.iter().map(|process| machine::cpu_of(*process).as_secs_f64()).sum::<f64>();
    let before = cpu();
    let outcome = load.run(End::After(options.turn())).await;
    outcome.server_cpu + (cpu() - before) / outcome.requests * 1e6
}

/// The baseline.
#[derive(Clone)]
struct BareHandler {
    db: Db,
    workspace: WorkspaceId,
    key: Arc<DataKey>,
    cursor: String,
}

impl BareHandler {
    fn router(self) -> Router {
        Router::new()
            .route("/api/v1/mailboxes/{mailbox}/emails", get(list))
            .route("/api/v1/mailboxes/{mailbox}/emails/{email}", get(find))
            .with_state(self)
    }

    fn open(&self, content: &ContentRecord) -> Option<(String, String)> {
        let (StoredPart::InRow(raw), StoredPart::InRow(body)) = (&content.raw, &content.body) else {
            return None;
        };
        let raw = contents::open(&self.key, &content.id, Part::Raw, raw).ok()?;
        let body = contents::open(&self.key, &content.id, Part::Body, body).ok()?;
        let end = raw.windows(4).position(|four| four == b"\r\n\r\n")? + 2;
        Some((String::from_utf8(body).ok()?, String::from_utf8(raw[..end].to_vec()).ok()?))
    }
}

async fn list(State(bare): State<BareHandler>, Path(mailbox): Path<String>) -> Response {
    let read = async move |tx: &mut Tx| {
        let Some(id) = mailboxes::find_id(tx, &MailboxName::PublicId(mailbox)).await? else {
            return Ok(None);
        };
        let filter = EmailFilter { held_after: Some(now()), ..EmailFilter::default() };
        let sort = Sort { column: SortColumn::Date, direction: SortDirection::Descending };
        let limit = i64::try_from(PAGE_SIZE + 1).unwrap_or_default();
        let records = emails::list(tx, &id, &filter, sort, None, 0, limit).await?;
        let total = emails::count(tx, &id, &filter).await?;
        Ok::<_, store::Error>(Some((records, total, folders::list(tx, &id).await?)))
    };
    let Ok(Some((mut records, total_count, folders))) = bare.db.read(&bare.workspace, read).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let has_more = records.len() > PAGE_SIZE;
    records.truncate(PAGE_SIZE);
    let emails = records.into_iter().map(|record| {
        let mut email = to_email(record, &folders);
        email.body.clone_from(&email.snippet);
        email
    });
    answer(&EmailPage { emails: emails.collect(), total_count, has_more, next_cursor: Some(bare.cursor) })
}

async fn find(State(bare): State<BareHandler>, Path((mailbox, email)): Path<(String, EmailId)>) -> Response {
    let read = async move |tx: &mut Tx| {
        let Some(id) = mailboxes::find_id(tx, &MailboxName::PublicId(mailbox)).await? else {
            return Ok(None);
        };
        let Some(record) = emails::find(tx, &id, &email).await? else { return Ok(None) };
        let folders = folders::list(tx, &id).await?;
        let content = contents::find(tx, &record.content_id).await?;
        Ok::<_, store::Error>(content.map(|content| (record, folders, content)))
    };
    let Ok(Some((record, folders, content))) = bare.db.read(&bare.workspace, read).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let Some((body, headers)) = bare.open(&content) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    answer(&Email { body: Some(body), raw_headers: Some(headers), ..to_email(record, &folders) })
}

#[expect(clippy::disallowed_methods, reason = "the bare handler has no service to ask for the time")]
fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or_default())
}

fn answer(body: &impl serde::Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// A clean email without its body, through the service's own presenter: what is measured is everything around it.
fn to_email(record: EmailRecord, folders: &[Folder]) -> Email {
    let folder = folders.iter().find(|folder| folder.id == record.folder_id);
    let folder_name = folder.map(|folder| folder.name.clone()).unwrap_or_default();
    operations::emails::metadata(record, folder_name, false, false)
}
