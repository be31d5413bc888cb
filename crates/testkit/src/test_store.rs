//! The relational store of one test: a SQLite file in a temporary folder, or a PostgreSQL database.

use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use store::DatabaseLocation;

use crate::{engine::Engine, postgres};

/// The name of a SQLite file in its folder.
pub(crate) const DATABASE_FILE: &str = "test.db";

/// A store and its folder, removed when dropped.
pub(crate) struct TestStore {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) location: DatabaseLocation,
    database: Option<String>,
    starts: AtomicU64,
}

impl TestStore {
    /// A store without a schema.
    pub(crate) async fn empty(engine: Engine) -> Self {
        let folder = tempfile::tempdir().unwrap();
        match engine {
            Engine::Sqlite => Self::in_file(folder),
            Engine::Postgres => Self::in_database(folder, postgres::copy_database("template0").await),
        }
    }

    /// A copy of a store that is not open.
    pub(crate) async fn copy(&self) -> Self {
        // In memory where possible: copies are made by the thousand, and end with their process.
        let memory = Path::new("/dev/shm");
        let folder =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let copy =
            |name: &str| std::fs::copy(self.folder.path().join(name), folder.path().join(name)).unwrap();
        copy("master.key");
        if let Some(original) = &self.database {
            Self::in_database(folder, postgres::copy_database(original).await)
        } else {
            self.closed().await;
            copy(DATABASE_FILE);
            Self::in_file(folder)
        }
    }

    /// The SQLite file of a folder.
    pub(crate) fn in_file(folder: tempfile::TempDir) -> Self {
        let location = DatabaseLocation::Sqlite(folder.path().join(DATABASE_FILE));
        Self { folder, location, database: None, starts: AtomicU64::new(0) }
    }

    /// A PostgreSQL database, with a folder for everything else.
    pub(crate) fn in_database(folder: tempfile::TempDir, name: String) -> Self {
        let location = DatabaseLocation::Postgres(postgres::location(&name));
        Self { folder, location, database: Some(name), starts: AtomicU64::new(0) }
    }

    /// Its database behind the pooler of `scripts/pgbouncer`.
    pub(crate) fn behind_pooler(&self) -> store::PostgresLocation {
        postgres::location_behind_pooler(self.database.as_deref().expect("it is on PostgreSQL"))
    }

    /// The seed of the next node's random numbers: no two nodes of a store may share one.
    pub(crate) fn seed(&self, base: u64) -> u64 {
        base.wrapping_add(self.starts.fetch_add(1, Ordering::SeqCst) << 40)
    }

    /// Waits until the store's file is closed: the last connection removes its log.
    pub(crate) async fn closed(&self) {
        while self.folder.path().join(DATABASE_FILE).with_extension("db-wal").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Keeps the database, and returns its name.
    pub(crate) fn keep_database(mut self) -> Option<String> {
        self.database.take()
    }
}

impl Drop for TestStore {
    fn drop(&mut self) {
        let Some(name) = self.database.take() else { return };
        // The test's runtime is shutting down, so the clean-up brings its own.
        let cleanup = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(postgres::drop_database(&name));
        });
        let _ = cleanup.join();
    }
}
