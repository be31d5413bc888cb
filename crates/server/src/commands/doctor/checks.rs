//! The checks, from the bottom up: disk, key, database, blobs, network, clock.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use model::{Timestamp, WorkspaceId};
use operations::ports::{Clock, SystemClock};
use store::{
    DatabaseLocation, Db, FromRow,
    blobs::{BlobLocation, Blobs},
    search, system,
    vault::MasterKey,
};

use super::{listeners, nodes, report::Report};
use crate::{
    config::{Config, KeySource},
    open, output,
};

/// Free space that gives a warning, and free space that gives a failure.
const LOW_SPACE_BYTES: u64 = 1 << 30;
const MIN_SPACE_BYTES: u64 = 100 << 20;
/// Maximum workspaces whose keys are tried.
const MAX_SAMPLED_WORKSPACES: i64 = 1000;
/// Maximum clock difference between this machine and the database.
const MAX_CLOCK_SKEW_SECONDS: i64 = 5;
/// No correct clock shows an earlier time: 1 January 2025.
const EARLIEST_TIME: Timestamp = Timestamp::from_micros(1_735_689_600_000_000);

/// Runs all checks in order.
pub(super) async fn all(config: &Config, report: &mut Report) {
    let folder = data_dir(config, report);
    let db = database(config, report).await;
    let workspaces = match &db {
        Some(db) => count_workspaces(db, report).await,
        None => 0,
    };
    if let Some(key) = master_key(config, workspaces, report).await
        && let Some(db) = &db
        && workspaces > 0
    {
        data_keys(db, &key, report).await;
    }
    if let Some(db) = &db {
        search_index(db, report).await;
        nodes::check(db, report).await;
    }
    blobs(config, folder, report).await;
    listeners::check(config, report).await;
    public_url(config, report);
    language_model(config, report).await;
    clock(db.as_ref(), report).await;
}

/// Whether the language model responds.
async fn language_model(config: &Config, report: &mut Report) {
    let Some(settings) = &config.ai else {
        report.ok("language model", "not configured; what needs one answers 503 ai_unavailable");
        return;
    };
    let model = &settings.model;
    match adapters::language_model::HttpAssistant::new(settings.clone()).probe().await {
        Ok(()) => report.ok("language model", format!("{model} answers")),
        Err(reason) => report.fail("language model", format!("{model} does not answer: {reason}")),
    }
}

/// Whether the data folder exists and is usable.
fn data_dir(config: &Config, report: &mut Report) -> bool {
    let path = &config.data_dir;
    let shown = path.display();
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            report.ok("data folder", format!("{shown} does not exist yet; the first start creates it"));
            return false;
        }
        Err(error) => {
            report.fail("data folder", format!("{shown} cannot be read: {error}"));
            return false;
        }
    };
    if !about.is_dir() {
        report.fail("data folder", format!("{shown} is not a folder"));
        return false;
    }
    match try_to_write(path) {
        Ok(()) => report.ok("data folder", format!("{shown} is writable")),
        Err(error) => report.fail("data folder", format!("{shown} is not writable: {error}")),
    }
    if about.mode() & 0o077 != 0 {
        report
            .warn("data folder", format!("other users of this machine can read it; run `chmod 700 {shown}`"));
    }
    match rustix::fs::statvfs(path) {
        Ok(space) => free_space(space.f_bavail.saturating_mul(space.f_frsize), report),
        Err(error) => report.warn("free space", format!("unknown: {error}")),
    }
    true
}

fn try_to_write(folder: &Path) -> std::io::Result<()> {
    let path = folder.join(format!(".doctor-{}", std::process::id()));
    let written = fs::write(&path, b"can this be written?");
    let removed = fs::remove_file(&path);
    written.and(removed)
}

fn free_space(free: u64, report: &mut Report) {
    let shown = output::bytes(free);
    if free < MIN_SPACE_BYTES {
        report.fail("free space", format!("only {shown} left; make room"));
    } else if free < LOW_SPACE_BYTES {
        report.warn("free space", format!("only {shown} left; make room"));
    } else {
        report.ok("free space", &shown);
    }
}

/// The database, opened, if it exists and has our tables.
async fn database(config: &Config, report: &mut Report) -> Option<Db> {
    if let DatabaseLocation::Sqlite(path) = &config.database
        && !path.exists()
    {
        report.ok("database", format!("{} does not exist yet; the first start creates it", path.display()));
        return None;
    }
    let db = match Db::open(&config.database).await {
        Ok(db) => db,
        Err(error) => {
            report.fail("database", &error);
            return None;
        }
    };
    let engine = db.engine_name();
    let newest = Db::newest_schema();
    let has_tables = match db.schema_version().await {
        Ok(0) => {
            report
                .ok("database", format!("{engine} answers and is empty; the first start creates the tables"));
            false
        }
        Ok(version) if version > newest => {
            report.fail("database", format!("{engine} has schema version {version}, this program knows up to {newest}; run a newer version"
            ));
            false
        }
        Ok(version) if version < newest => {
            report.warn(
                "database",
                format!("{engine} has schema version {version}; the next start migrates it to {newest}"),
            );
            true
        }
        Ok(version) => {
            report.ok("database", format!("{engine} answers, schema version {version}"));
            true
        }
        Err(error) => {
            report.fail("database", &error);
            false
        }
    };
    role(&db, report).await;
    has_tables.then_some(db)
}

/// Row-level security, PostgreSQL's second wall between workspaces.
async fn role(db: &Db, report: &mut Report) {
    if db.is_sole_node() {
        return;
    }
    match read(db, async |tx| system::bypasses_row_security(tx).await).await {
        Ok(false) => report.ok("database role", "row-level security applies"),
        Ok(true) => report.fail(
            "database role",
            "it is a superuser or has BYPASSRLS, so row-level security does not apply; \
             use an ordinary role that owns the database",
        ),
        Err(error) => report.fail("database role", &error),
    }
}

async fn count_workspaces(db: &Db, report: &mut Report) -> i64 {
    match read(db, async |tx| system::counts(tx).await).await {
        Ok((accounts, workspaces)) => {
            report.ok("accounts", format!("{accounts}, workspaces: {workspaces}"));
            workspaces
        }
        Err(error) => {
            report.fail("accounts", &error);
            0
        }
    }
}

/// The master key, if it is usable.
async fn master_key(config: &Config, workspaces: i64, report: &mut Report) -> Option<MasterKey> {
    let KeySource::File(path) = &config.master_key else {
        report.ok("master key", "set in the configuration");
        return open::master_key(&config.master_key).await.ok();
    };
    let shown = path.display();
    if !path.exists() {
        if workspaces > 0 {
            report.fail(
                "master key",
                format!("{shown} is missing, and stored data cannot be read without it; put the key back"),
            );
        } else {
            report.ok("master key", format!("{shown} does not exist yet; the first start creates it"));
        }
        return None;
    }
    match open::master_key(&config.master_key).await {
        Ok(key) => {
            let mode = fs::metadata(path).map_or(0, |about| about.permissions().mode() & 0o777);
            report.ok("master key", format!("{shown}, mode {mode:04o}; keep a copy of it in a safe place"));
            Some(key)
        }
        Err(failure) => {
            report.fail("master key", &failure);
            None
        }
    }
}

struct WrappedKey {
    workspace: WorkspaceId,
    wrapped: Vec<u8>,
}

impl FromRow for WrappedKey {
    fn from_row(row: &mut store::Row<'_>) -> store::Result<Self> {
        Ok(Self { workspace: row.next()?, wrapped: row.next()? })
    }
}

/// Whether the workspaces' keys open with the master key.
async fn data_keys(db: &Db, key: &MasterKey, report: &mut Report) {
    let sql = "SELECT id, data_key FROM workspace ORDER BY id DESC LIMIT $1";
    let found =
        read(db, async move |tx| tx.all::<WrappedKey>(sql, &[MAX_SAMPLED_WORKSPACES.into()]).await).await;
    let wrapped = match found {
        Ok(wrapped) => wrapped,
        Err(error) => return report.fail("data keys", &error),
    };
    let closed: Vec<&WrappedKey> =
        wrapped.iter().filter(|row| key.unwrap_key(row.workspace.as_str(), &row.wrapped).is_err()).collect();
    match closed.first() {
        None => report.ok("data keys", format!("{} of {} open with the master key", wrapped.len(), wrapped.len())),
        Some(first) => report.fail("data keys", format!("{} of {} do not open (first: {}); this is not the master key that the data was made with; put the right one back",
            closed.len(),
            wrapped.len(),
            first.workspace
        )),
    }
}

/// Whether every message is indexed for search.
async fn search_index(db: &Db, report: &mut Report) {
    // A store with an older schema has no messages yet.
    if db.schema_version().await.is_ok_and(|version| version < Db::newest_schema()) {
        return;
    }
    match read(db, async |tx| search::coverage(tx).await).await {
        Ok((messages, indexed)) if messages == indexed => {
            report.ok("search", format!("{} indexed", output::plural(messages.unsigned_abs(), "message")));
        }
        Ok((messages, indexed)) => report.fail(
            "search",
            format!("{indexed} of {messages} messages are indexed; run `agent-mailbox reindex`"),
        ),
        Err(error) => report.fail("search", &error),
    }
}

async fn blobs(config: &Config, folder: bool, report: &mut Report) {
    if let BlobLocation::Directory(path) = &config.blobs
        && !path.exists()
    {
        if folder || !path.starts_with(&config.data_dir) {
            let shown = path.display();
            report.ok("blob store", format!("{shown} does not exist yet; the first start creates it"));
        }
        return;
    }
    let place = match &config.blobs {
        BlobLocation::Directory(path) => path.display().to_string(),
        BlobLocation::S3(settings) => format!("bucket {}", settings.bucket_name()),
    };
    let tried = match Blobs::open(&config.blobs).await {
        Ok(blobs) => blobs.probe().await,
        Err(error) => Err(error),
    };
    match tried {
        Ok(()) => report.ok("blob store", format!("{place} is readable and writable")),
        Err(error) => report.fail("blob store", &error),
    }
}

fn public_url(config: &Config, report: &mut Report) {
    let url = config.public_url(config.http.listen);
    let loopback = config.http.listen.ip().is_loopback();
    let local =
        ["http://127.", "http://localhost", "http://[::1]"].iter().any(|start| url.starts_with(start));
    match (&config.http.public_url, loopback) {
        (None, true) => report.ok("public URL", format!("{url}, for this machine only")),
        (None, false) => report.warn("public URL", format!("links will show {url}, which other machines cannot open; set http.public_url"
        )),
        (Some(_), _) if url.starts_with("https://") => report.ok("public URL", &url),
        (Some(_), _) if local => report.ok("public URL", format!("{url}, for this machine only")),
        (Some(_), _) => report.warn("public URL", format!("{url} is not encrypted, so others on the network can read keys and cookies; put a proxy with HTTPS in front"
        )),
    }
}

/// Whether the machine's clock is plausible, by the database's clock and the newest rows.
async fn clock(db: Option<&Db>, report: &mut Report) {
    let now = SystemClock.now();
    if now < EARLIEST_TIME {
        return report
            .fail("clock", format!("it shows {now}, which is in the past; set the time of this machine"));
    }
    let Some(db) = db else { return report.ok("clock", now) };
    let found =
        read(db, async |tx| Ok((system::store_clock(tx).await?, system::newest_time(tx).await?))).await;
    match found {
        Ok((Some(theirs), _)) if !is_near(now, theirs) => {
            report.warn(
                "clock",
                format!("this machine says {now}, the database {theirs}; synchronise them with NTP"),
            );
        }
        Ok((_, Some(newest))) if newest > now.plus_seconds(MAX_CLOCK_SKEW_SECONDS) => {
            report.warn(
                "clock",
                format!(
                    "it shows {now}, but something was stored at {newest}; check the time of this machine"
                ),
            );
        }
        Ok(_) => report.ok("clock", now),
        Err(error) => report.fail("clock", &error),
    }
}

fn is_near(one: Timestamp, other: Timestamp) -> bool {
    (one.as_micros() - other.as_micros()).abs() <= MAX_CLOCK_SKEW_SECONDS * 1_000_000
}

async fn read<T: Send + 'static>(
    db: &Db,
    body: impl AsyncFnOnce(&mut store::SystemTx) -> store::Result<T>
    + for<'tx> store::Body<'tx, store::SystemTx, T, store::Error>,
) -> store::Result<T> {
    db.system_read(body).await
}
