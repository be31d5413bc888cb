//! A measured store: a SQLite file under `bench-results/`, which is on a real disk, or a new PostgreSQL database on
//! the server named by `AGENT_MAILBOX_TEST_POSTGRES`, which must be durable.

use std::{
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use store::{DatabaseLocation, PostgresLocation, vault::MasterKey};
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// The folder for results and for stores while they are measured.
pub(crate) const FOLDER: &str = "bench-results";

/// The measured engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

impl Engine {
    pub(crate) const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }
}

/// A store while it is measured, with its folder.
pub(crate) struct MeasuredStore {
    folder: tempfile::TempDir,
    pub(crate) location: DatabaseLocation,
    database: Option<String>,
}

impl MeasuredStore {
    pub(crate) async fn new(engine: Engine) -> Self {
        std::fs::create_dir_all(FOLDER).expect("the folder for results can be made");
        let folder =
            tempfile::Builder::new().prefix("store-").tempdir_in(FOLDER).expect("a folder for the store");
        match engine {
            Engine::Sqlite => {
                let location = DatabaseLocation::Sqlite(folder.path().join("agent-mailbox.db"));
                Self { folder, location, database: None }
            }
            Engine::Postgres => {
                require_durable_server().await;
                let name = new_database_name();
                query(&format!("CREATE DATABASE {name} TEMPLATE template0")).await;
                let mut url: url::Url = server_url().parse().expect("the server's address is a URL");
                url.set_path(&name);
                url.set_query(Some("sslmode=disable"));
                Self {
                    folder,
                    location: DatabaseLocation::Postgres(PostgresLocation::new(url)),
                    database: Some(name),
                }
            }
        }
    }

    /// The folder for everything except the relational store.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The master key of its data; a new one if there is none.
    pub(crate) fn master_key(&self) -> MasterKey {
        MasterKey::load_or_create(&self.folder().join("master.key")).expect("a master key")
    }

    /// The PostgreSQL processes that serve this store.
    pub(crate) async fn server_processes(&self) -> Vec<u32> {
        let Some(name) = &self.database else { return Vec::new() };
        let sql = format!("SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE datname = '{name}'");
        let found = query(&sql).await.unwrap_or_default();
        found.split(' ').filter_map(|process| process.parse().ok()).collect()
    }

    /// Removes everything. A measurement that fails leaves its store behind for inspection.
    pub(crate) async fn remove(self) {
        if let Some(name) = &self.database {
            // Autovacuum may be at work there, and cannot be terminated.
            for _ in 0..20 {
                if try_query(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await.is_ok() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            eprintln!("the database {name} stays behind");
        }
    }
}

fn server_url() -> String {
    std::env::var("AGENT_MAILBOX_TEST_POSTGRES")
        .expect("AGENT_MAILBOX_TEST_POSTGRES names the server: run scripts/bench, or choose --engine sqlite")
}

fn new_database_name() -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    format!("bench_{}_{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed))
}

/// Refuses a server without fsync, which would make writes look faster than they are.
async fn require_durable_server() {
    for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
        let value = query(&format!("SHOW {setting}")).await;
        assert_eq!(value.as_deref(), Some("on"), "{setting} must be on: set AGENT_MAILBOX_PG_DURABLE=1");
    }
}

/// Runs a statement on the server and returns the first column of its first row.
async fn query(sql: &str) -> Option<String> {
    try_query(sql).await.expect("the server does as told")
}

async fn try_query(sql: &str) -> Result<Option<String>, tokio_postgres::Error> {
    try_query_at(&server_url(), sql).await
}

/// Runs a statement on the server as its administrator, and returns the first column of its first row.
pub(crate) async fn administer(sql: &str) -> Result<Option<String>, tokio_postgres::Error> {
    let url = std::env::var("AGENT_MAILBOX_TEST_POSTGRES_SUPERUSER")
        .expect("AGENT_MAILBOX_TEST_POSTGRES_SUPERUSER names the server: run scripts/bench");
    try_query_at(&url, sql).await
}

async fn try_query_at(url: &str, sql: &str) -> Result<Option<String>, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    let messages = client.simple_query(sql).await?;
    drop(client);
    let _ = connection.await;
    Ok(messages.into_iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(ToOwned::to_owned),
        _ => None,
    }))
}
