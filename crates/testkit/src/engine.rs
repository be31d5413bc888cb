//! The two engines as tests meet them: a SQLite file in a temporary folder, or a PostgreSQL database, with the schema in
//! it.

use std::{
    path::Path,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::Duration,
};

use store::DatabaseLocation;

use crate::template;

/// Which engine a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

/// The name of a SQLite file in its folder.
pub(crate) const FILE: &str = "test.db";

/// A place for the relational store, gone when dropped.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) location: DatabaseLocation,
    database: Option<String>,
    starts: AtomicU64,
}

impl Place {
    /// A store with the schema and nothing else.
    /// rules: STORE-8
    pub(crate) async fn new(engine: Engine) -> Self {
        let folder = tempfile::tempdir().unwrap();
        match engine {
            Engine::Sqlite => {
                let template = template::file().await;
                tokio::fs::copy(template, folder.path().join(FILE)).await.unwrap();
                Self::in_file(folder)
            }
            Engine::Postgres => {
                let template = template::database().await;
                Self::in_database(folder, copy_database(&template).await)
            }
        }
    }

    /// A store without a schema.
    pub(crate) async fn empty(engine: Engine) -> Self {
        let folder = tempfile::tempdir().unwrap();
        match engine {
            Engine::Sqlite => Self::in_file(folder),
            Engine::Postgres => Self::in_database(folder, copy_database("template0").await),
        }
    }

    /// A copy of a store that nobody has open any more.
    pub(crate) async fn copy(&self) -> Self {
        // In memory where that can be had: copies are made by the thousand, and die with their process.
        let memory = Path::new("/dev/shm");
        let folder =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let copy =
            |name: &str| std::fs::copy(self.folder.path().join(name), folder.path().join(name)).unwrap();
        copy("master.key");
        if let Some(original) = &self.database {
            Self::in_database(folder, copy_database(original).await)
        } else {
            self.closed().await;
            copy(FILE);
            Self::in_file(folder)
        }
    }

    fn in_file(folder: tempfile::TempDir) -> Self {
        let location = DatabaseLocation::Sqlite(folder.path().join(FILE));
        Self { folder, location, database: None, starts: AtomicU64::new(0) }
    }

    fn in_database(folder: tempfile::TempDir, name: String) -> Self {
        let mut url: url::Url = server_url().parse().unwrap();
        url.set_path(&name);
        url.set_query(Some("sslmode=disable"));
        let location = DatabaseLocation::Postgres(url.to_string());
        Self { folder, location, database: Some(name), starts: AtomicU64::new(0) }
    }

    /// What the random numbers of the next node begin from: no two nodes of a store may have the same.
    pub(crate) fn seed(&self, wanted: u64) -> u64 {
        wanted.wrapping_add(self.starts.fetch_add(1, Ordering::SeqCst) << 40)
    }

    /// Waits until nobody has the store's file open: the last connection takes its log away when it goes.
    pub(crate) async fn closed(&self) {
        while self.folder.path().join(FILE).with_extension("db-wal").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Leaves the database where it is, and gives its name.
    pub(crate) fn keep_database(mut self) -> Option<String> {
        self.database.take()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(name) = self.database.take() else { return };
        // The runtime of the test is going away, so the clean-up brings its own.
        let cleanup = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(drop_database(&name));
        });
        let _ = cleanup.join();
    }
}

fn server_url() -> String {
    std::env::var("AGENT_MAILBOX_TEST_POSTGRES")
        .expect("AGENT_MAILBOX_TEST_POSTGRES is not set: run the tests with ./scripts/test or `scripts/postgres cargo nextest run`")
}

/// Makes a database like another one that nobody works in, and gives its name.
async fn copy_database(original: &str) -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let name = format!("test_{}_{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
    let sql = format!("CREATE DATABASE {name} TEMPLATE {original} STRATEGY FILE_COPY");
    // Connections that were dropped take a moment to end.
    while let Err(error) = execute(&sql).await {
        let in_use = error.code() == Some(&tokio_postgres::error::SqlState::OBJECT_IN_USE);
        assert!(in_use, "{sql}: {error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    name
}

/// Drops a database, if that can be done at once.
///
/// PostgreSQL waits with it for every connection that is still being opened. One of the test's own may be: its runtime
/// stands still by now, so only the time limit would end that. What is left goes with the server.
async fn drop_database(name: &str) {
    // In statements of their own: a database is not dropped within a transaction.
    let (client, connection) = tokio_postgres::connect(&server_url(), tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute("SET statement_timeout = '1s'").await.unwrap();
    let _ = client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
    drop(client);
    let _ = connection.await;
}

/// Runs a statement as the administrator of the test databases.
pub(crate) async fn execute(
    sql: &str,
) -> Result<Vec<tokio_postgres::SimpleQueryMessage>, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(&server_url(), tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let outcome = client.simple_query(sql).await;
    drop(client);
    let _ = connection.await;
    outcome
}
