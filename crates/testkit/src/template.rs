//! A store with the schema, created once per build of the tests and copied for every test: running all migrations
//! takes longer than most tests do.
//!
//! Tests are separate processes, so the first one creates it while the others wait for a lock.

use std::{
    fs::{self, File},
    path::PathBuf,
    time::UNIX_EPOCH,
};

use store::Db;
use tokio_postgres::SimpleQueryMessage;

use crate::{
    clock::Clock,
    engine::Engine,
    postgres::{self, copy_database},
    test_store::{DATABASE_FILE, TestStore},
};

/// A store with the schema and nothing else.
/// rules: STORE-8
pub(crate) async fn new_store(engine: Engine) -> TestStore {
    let folder = tempfile::tempdir().unwrap();
    match engine {
        Engine::Sqlite => {
            let template = file().await;
            tokio::fs::copy(template, folder.path().join(DATABASE_FILE)).await.unwrap();
            TestStore::in_file(folder)
        }
        Engine::Postgres => {
            let template = database().await;
            TestStore::in_database(folder, copy_database(&template).await)
        }
    }
}

/// The SQLite file with the schema.
async fn file() -> PathBuf {
    let folder = folder();
    let file = folder.join(format!("{}.db", build()));
    if file.exists() {
        return file;
    }
    let _lock = lock().await;
    if !file.exists() {
        forget_former_builds();
        let store = migrated(Engine::Sqlite).await;
        store.closed().await;
        // Renamed only when it is complete.
        let unfinished = file.with_extension("unfinished");
        fs::copy(store.folder.path().join(DATABASE_FILE), &unfinished).unwrap();
        fs::rename(&unfinished, &file).unwrap();
    }
    file
}

/// The name of the PostgreSQL database with the schema.
async fn database() -> String {
    let name = format!("template_{}", build());
    if !database_exists(&name).await {
        let _lock = lock().await;
        if !database_exists(&name).await {
            let made = migrated(Engine::Postgres).await.keep_database().unwrap();
            let rename = format!("ALTER DATABASE {made} RENAME TO {name}");
            // The migration's connections take a moment to close.
            while let Err(error) = postgres::execute(&rename).await {
                let in_use = error.code() == Some(&tokio_postgres::error::SqlState::OBJECT_IN_USE);
                assert!(in_use, "{rename}: {error}");
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        }
    }
    name
}

async fn migrated(engine: Engine) -> TestStore {
    let store = TestStore::empty(engine).await;
    let db = Db::open(&store.location).await.unwrap();
    db.migrate(Clock::start().now()).await.unwrap();
    store
}

async fn database_exists(name: &str) -> bool {
    let rows =
        postgres::execute(&format!("SELECT 1 FROM pg_database WHERE datname = '{name}'")).await.unwrap();
    rows.iter().any(|message| matches!(message, SimpleQueryMessage::Row(_)))
}

/// A name for this build of the tests: another one may have other migrations.
fn build() -> String {
    let program = std::env::current_exe().unwrap();
    let built = fs::metadata(&program).unwrap().modified().unwrap().duration_since(UNIX_EPOCH).unwrap();
    format!("{}_{}", program_name(), built.as_nanos())
}

/// The test program's name, valid as a database name.
fn program_name() -> String {
    let program = std::env::current_exe().unwrap();
    program.file_name().unwrap().to_string_lossy().replace(|one: char| !one.is_ascii_alphanumeric(), "_")
}

/// Next to the programs, where `cargo clean` finds it.
fn folder() -> PathBuf {
    let folder = std::env::current_exe().unwrap().with_file_name("test-templates");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Locked until dropped.
async fn lock() -> File {
    let file = File::create(folder().join("lock")).unwrap();
    tokio::task::spawn_blocking(move || {
        file.lock().unwrap();
        file
    })
    .await
    .unwrap()
}

fn forget_former_builds() {
    let own = format!("{}_", program_name());
    for entry in fs::read_dir(folder()).unwrap().filter_map(Result::ok) {
        if entry.file_name().to_string_lossy().starts_with(&own) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
