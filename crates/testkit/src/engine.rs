//! The two engines as tests meet them: a SQLite file in a temporary folder, or a fresh PostgreSQL database.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use store::DatabaseLocation;

/// Which engine a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

/// Runs a test on both engines, one after the other.
/// rules: STORE-8
pub async fn both_engines<F: AsyncFn(Engine)>(test: F) {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        // Shown only when the test fails: tells on which engine.
        println!("on {engine:?}");
        Box::pin(test(engine)).await;
    }
}

/// A place for the relational store, gone when dropped.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) location: DatabaseLocation,
    database: Option<(String, String)>,
    starts: AtomicU64,
}

impl Place {
    /// What the random numbers of the next node begin from: no two nodes of a store may have the same.
    pub(crate) fn seed(&self, wanted: u64) -> u64 {
        wanted.wrapping_add(self.starts.fetch_add(1, Ordering::SeqCst) << 40)
    }

    pub(crate) async fn new(engine: Engine) -> Self {
        let folder = tempfile::tempdir().unwrap();
        match engine {
            Engine::Sqlite => {
                let location = DatabaseLocation::Sqlite(folder.path().join("test.db"));
                Self { folder, location, database: None, starts: AtomicU64::new(0) }
            }
            Engine::Postgres => {
                let (admin, name) = (server_url(), database_name());
                execute(&admin, &format!("CREATE DATABASE {name} TEMPLATE template0")).await;
                let mut url: url::Url = admin.parse().unwrap();
                url.set_path(&name);
                url.set_query(Some("sslmode=disable"));
                let location = DatabaseLocation::Postgres(url.to_string());
                Self { folder, location, database: Some((admin, name)), starts: AtomicU64::new(0) }
            }
        }
    }
}

impl Place {
    /// A copy of a store that nobody has open any more.
    pub(crate) async fn copy(&self) -> Self {
        // In memory where that can be had: copies are made by the thousand, and die with their process.
        let memory = std::path::Path::new("/dev/shm");
        let folder =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let copy =
            |name: &str| std::fs::copy(self.folder.path().join(name), folder.path().join(name)).unwrap();
        copy("master.key");
        match &self.location {
            DatabaseLocation::Sqlite(path) => {
                // The last connection takes its log away when it goes.
                while path.with_extension("db-wal").exists() {
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
                copy("test.db");
                let location = DatabaseLocation::Sqlite(folder.path().join("test.db"));
                Self { folder, location, database: None, starts: AtomicU64::new(0) }
            }
            DatabaseLocation::Postgres(url) => {
                let (admin, name) = (server_url(), database_name());
                let (_, original) = self.database.as_ref().unwrap();
                let sql = format!("CREATE DATABASE {name} TEMPLATE {original}");
                // Connections that were dropped take a moment to end.
                while !try_execute(&admin, &sql).await {
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                }
                let mut url: url::Url = url.parse().unwrap();
                url.set_path(&name);
                let location = DatabaseLocation::Postgres(url.to_string());
                Self { folder, location, database: Some((admin, name)), starts: AtomicU64::new(0) }
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some((admin, name)) = self.database.take() else { return };
        // The runtime of the test is going away, so the clean-up brings its own.
        let cleanup = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(drop_database(&admin, &name));
        });
        let _ = cleanup.join();
    }
}

fn server_url() -> String {
    std::env::var("AGENT_MAILBOX_TEST_POSTGRES")
        .expect("AGENT_MAILBOX_TEST_POSTGRES is not set: run the tests with ./scripts/test or `scripts/postgres cargo nextest run`")
}

fn database_name() -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    format!("test_{}_{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed))
}

/// Drops a database, if that can be done at once.
///
/// PostgreSQL waits with it for every connection that is still being opened. One of the test's own may be: its runtime
/// stands still by now, so only the time limit would end that. What is left goes with the server.
async fn drop_database(url: &str, name: &str) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute("SET statement_timeout = '1s'").await.unwrap();
    let _ = client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
    drop(client);
    let _ = connection.await;
}

async fn execute(url: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute(sql).await.unwrap();
    drop(client);
    let _ = connection.await;
}

/// Whether a statement could be run. One that only others keep from running may be tried again.
async fn try_execute(url: &str, sql: &str) -> bool {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let outcome = client.batch_execute(sql).await;
    drop(client);
    let _ = connection.await;
    match outcome {
        Ok(()) => true,
        Err(error) if error.code() == Some(&tokio_postgres::error::SqlState::OBJECT_IN_USE) => false,
        Err(error) => panic!("{sql}: {error}"),
    }
}
