//! The yardstick over plain rows: an axum handler that checks the key and runs the same kind of query on a SQLite file
//! as somebody would make it at home, and sends the same kind of answer. Nothing is sealed, metered or highlighted.
//!
//! Queries run on the thread that serves the connection: the cheapest way there is, and one that stalls all connections
//! of the thread while the disk is slow.

use std::{cell::RefCell, path::PathBuf};

use axum::{
    Router,
    extract::{Path, RawQuery, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use data_encoding::HEXLOWER;
use rusqlite::{Connection, Params, Row, params};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::messages;

/// Where the home-made tables are.
#[derive(Clone)]
pub(super) struct PlainFile(pub(super) PathBuf);

/// A message as the list shows it.
#[derive(Serialize)]
struct Listed {
    id: String,
    thread_id: String,
    folder: String,
    date: i64,
    subject: String,
    sender: String,
    recipient: String,
    read: bool,
    starred: bool,
    snippet: String,
}

/// A whole message.
#[derive(Serialize)]
struct Whole {
    #[serde(flatten)]
    listed: Listed,
    headers: String,
    body: String,
}

const SCHEMA: &str = "
CREATE TABLE plain_key (hash TEXT PRIMARY KEY, workspace TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE plain_folder (mailbox TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, unread INTEGER NOT NULL,
  total INTEGER NOT NULL, system INTEGER NOT NULL, PRIMARY KEY (mailbox, id)) WITHOUT ROWID;
CREATE TABLE message (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, mailbox TEXT NOT NULL, thread_id TEXT NOT NULL,
  folder TEXT NOT NULL, date INTEGER NOT NULL, subject TEXT NOT NULL, sender TEXT NOT NULL, recipient TEXT NOT NULL,
  read INTEGER NOT NULL, starred INTEGER NOT NULL, snippet TEXT NOT NULL, headers TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX message_date ON message (mailbox, date);
CREATE INDEX message_thread ON message (mailbox, thread_id, date);
CREATE VIRTUAL TABLE message_text USING fts5 (subject, sender, body, content = 'message', content_rowid = 'number');
";

const LISTED: &str =
    "message.id, thread_id, folder, date, message.subject, message.sender, recipient, read, starred, snippet";

impl PlainFile {
    /// Writes the same mailbox as [`messages::fill`] does.
    pub(super) fn fill(&self, key: &str, mailbox: &str, count: usize, thread_size: usize) {
        let mut connection = Connection::open(&self.0).expect("the plain file opens");
        connection.pragma_update(None, "journal_mode", "WAL").expect("a write-ahead log");
        connection.execute_batch(SCHEMA).expect("the plain tables are made");
        let tx = connection.transaction().expect("a transaction");
        tx.execute("INSERT INTO plain_key VALUES (?, 'workspace')", params![hash(key)])
            .expect("a key is added");
        for (id, name) in [
            ("inbox", "Inbox"),
            ("archive", "Archive"),
            ("draft", "Drafts"),
            ("scheduled", "Scheduled"),
            ("sent", "Sent"),
            ("spam", "Spam"),
            ("trash", "Trash"),
        ] {
            tx.execute("INSERT INTO plain_folder VALUES (?, ?, ?, 0, 0, 1)", params![mailbox, id, name])
                .expect("a folder");
        }
        let insert =
            "INSERT INTO message VALUES (?, ?, ?, ?, 'inbox', ?, ?, ?, 'bench-0@agents.test', ?, 0, ?, ?, ?)";
        let mut insert = tx.prepare(insert).expect("a statement");
        for n in 1..=count {
            let number = i64::try_from(n).unwrap_or_default();
            let values = params![
                number,
                messages::email_id(n).to_string(),
                mailbox,
                messages::thread_id(n, thread_size),
                1_750_000_000_000_000 + number * 1_000_000,
                format!("Invoice {n} of your order"),
                format!("Customer <customer-{}@remote.test>", n % 500),
                n % 2 == 0,
                messages::snippet(),
                messages::headers(n),
                messages::own_body(n),
            ];
            insert.execute(values).expect("a message is added");
        }
        drop(insert);
        tx.execute_batch("INSERT INTO message_text (message_text) VALUES ('rebuild')")
            .expect("texts are indexed");
        tx.commit().expect("the plain file is written");
    }

    pub(super) fn router(self) -> Router {
        Router::new()
            .route("/api/v1/mailboxes/{mailbox}/folders", get(folders))
            .route("/api/v1/mailboxes/{mailbox}/emails", get(list))
            .route("/api/v1/mailboxes/{mailbox}/emails/{email}", get(find))
            .route("/api/v1/mailboxes/{mailbox}/threads/{thread}", get(thread))
            .route("/api/v1/mailboxes/{mailbox}/search", get(search))
            .with_state(self)
    }

    /// Checks the key, and runs a query with this thread's connection.
    fn answer<T: Serialize>(
        &self,
        headers: &HeaderMap,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Response {
        thread_local!(static OPEN: RefCell<Option<(PathBuf, Connection)>> = const { RefCell::new(None) });
        OPEN.with_borrow_mut(|open| {
            if open.as_ref().is_none_or(|(path, _)| *path != self.0) {
                *open = Some((self.0.clone(), connect(&self.0)));
            }
            let Some((_, connection)) = open else {
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            };
            if !is_key(connection, headers) {
                return StatusCode::UNAUTHORIZED.into_response();
            }
            match query(connection).map(|found| serde_json::to_vec(&found)) {
                Ok(Ok(body)) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
                _ => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            }
        })
    }
}

fn connect(path: &PathBuf) -> Connection {
    let connection = Connection::open(path).expect("the plain file opens");
    connection.pragma_update(None, "mmap_size", 1_i64 << 30).expect("a memory map");
    connection.set_prepared_statement_cache_capacity(64);
    connection
}

/// In hexadecimal digits: not every client can look up bytes.
fn hash(key: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(key.as_bytes()))
}

/// All rows of a query.
fn rows<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(values, read)?.collect()
}

fn is_key(connection: &Connection, headers: &HeaderMap) -> bool {
    let given = headers.get("x-api-key").and_then(|key| key.to_str().ok()).unwrap_or_default();
    let statement = connection.prepare_cached("SELECT workspace FROM plain_key WHERE hash = ?");
    statement.and_then(|mut found| found.exists(params![hash(given)])).unwrap_or(false)
}

fn listed(row: &Row<'_>) -> rusqlite::Result<Listed> {
    Ok(Listed {
        id: row.get(0)?,
        thread_id: row.get(1)?,
        folder: row.get(2)?,
        date: row.get(3)?,
        subject: row.get(4)?,
        sender: row.get(5)?,
        recipient: row.get(6)?,
        read: row.get(7)?,
        starred: row.get(8)?,
        snippet: row.get(9)?,
    })
}

fn whole(row: &Row<'_>) -> rusqlite::Result<Whole> {
    Ok(Whole { listed: listed(row)?, headers: row.get(10)?, body: row.get(11)? })
}

#[derive(Serialize)]
struct PlainFolder {
    id: String,
    name: String,
    unread: i64,
    total: i64,
    system: bool,
}

async fn folders(State(file): State<PlainFile>, Path(mailbox): Path<String>, headers: HeaderMap) -> Response {
    file.answer(&headers, |connection| {
        let sql = "SELECT id, name, unread, total, system FROM plain_folder WHERE mailbox = ?";
        let folder = |row: &Row<'_>| {
            Ok(PlainFolder {
                id: row.get(0)?,
                name: row.get(1)?,
                unread: row.get(2)?,
                total: row.get(3)?,
                system: row.get(4)?,
            })
        };
        rows(connection, sql, params![mailbox], folder)
    })
}

/// The parameters of a page.
struct Page {
    limit: i64,
    query: String,
}

impl Page {
    /// Values of this benchmark need no decoding.
    fn new(query: Option<String>) -> Self {
        let query = query.unwrap_or_default();
        let value = |name: &str| {
            let found = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
            found.unwrap_or_default().to_owned()
        };
        Self { limit: value("limit").parse().unwrap_or(1), query: value("query") }
    }
}

async fn list(
    State(file): State<PlainFile>,
    Path(mailbox): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let page = Page::new(query);
    file.answer(&headers, |connection| {
        let sql = format!("SELECT {LISTED} FROM message WHERE mailbox = ? ORDER BY date DESC LIMIT ?");
        let values = params![mailbox, page.limit];
        rows(connection, &sql, values, listed)
    })
}

async fn find(
    State(file): State<PlainFile>,
    Path((mailbox, email)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    file.answer(&headers, |connection| {
        let sql = format!("SELECT {LISTED}, headers, body FROM message WHERE id = ? AND mailbox = ?");
        connection.prepare_cached(&sql)?.query_row(params![email, mailbox], whole)
    })
}

async fn thread(
    State(file): State<PlainFile>,
    Path((mailbox, thread)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    file.answer(&headers, |connection| {
        let sql = format!(
            "SELECT {LISTED}, headers, body FROM message WHERE mailbox = ? AND thread_id = ? ORDER BY date"
        );
        let values = params![mailbox, thread];
        rows(connection, &sql, values, whole)
    })
}

async fn search(
    State(file): State<PlainFile>,
    Path(mailbox): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let page = Page::new(query);
    file.answer(&headers, |connection| {
        let sql = format!(
            "SELECT {LISTED} FROM message_text JOIN message ON message.number = message_text.rowid
             WHERE message_text MATCH ? AND mailbox = ? ORDER BY message_text.rowid DESC LIMIT ?"
        );
        let values = params![page.query, mailbox, page.limit];
        rows(connection, &sql, values, listed)
    })
}
