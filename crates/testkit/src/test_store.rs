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

/// A store and its folder, gone when dropped.
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

    /// A PostgreSQL database, with a folder for everything beside it.
    pub(crate) fn in_database(folder: tempfile::TempDir, name: String) -> Self {
        let mut url: url::Url = postgres::server_url().parse().unwrap();
        url.set_path(&name);
        url.set_query(Some("sslmode=disable"));
        let location = DatabaseLocation::Postgres(url.to_string());
        Self { folder, location, database: Some(name), starts: AtomicU64::new(0) }
    }

    /// What the random numbers of the next node begin from: no two nodes of a store may have the same.
    pub(crate) fn seed(&self, base: u64) -> u64 {
        base.wrapping_add(self.starts.fetch_add(1, Ordering::SeqCst) << 40)
    }

    /// Waits until nobody has the store's file open: the last connection takes its log away when it goes.
    pub(crate) async fn closed(&self) {
        while self.folder.path().join(DATABASE_FILE).with_extension("db-wal").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Leaves the database where it is, and gives its name.
    pub(crate) fn keep_database(mut self) -> Option<String> {
        self.database.take()
    }
}

impl Drop for TestStore {
    fn drop(&mut self) {
        let Some(name) = self.database.take() else { return };
        // The runtime of the test is going away, so the clean-up brings its own.
        let cleanup = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(postgres::drop_database(&name));
        });
        let _ = cleanup.join();
    }
}
