//! The checks, from the bottom up: disk, key, database, blobs, network, clock.

use std::{
    fs,
    net::SocketAddr,
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

use super::{super::probe, report::Report};
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
    }
    blobs(config, folder, report).await;
    listeners(config, report).await;
    public_url(config, report);
    language_model(config, report).await;
    clock(db.as_ref(), report).await;
}

/// Whether the language model responds.
async fn language_model(config: &Config, report: &mut Report) {
    let Some(settings) = &config.ai else {
        report.ok("language model: none is configured; what needs one answers 503");
        return;
    };
    let model = &settings.model;
    match adapters::language_model::HttpAssistant::new(settings.clone()).probe().await {
        Ok(()) => report.ok(format!("language model: {model} answers")),
        Err(reason) => report.fail(format!("language model: {model}: {reason}")),
    }
}

/// Whether the data folder exists and is usable.
fn data_dir(config: &Config, report: &mut Report) -> bool {
    let path = &config.data_dir;
    let shown = path.display();
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            report.ok(format!("data folder: {shown} is not there yet; the first start makes it"));
            return false;
        }
        Err(error) => {
            report.fail(format!("data folder: {shown} cannot be looked at: {error}"));
            return false;
        }
    };
    if !about.is_dir() {
        report.fail(format!("data folder: {shown} is not a folder"));
        return false;
    }
    match try_to_write(path) {
        Ok(()) => report.ok(format!("data folder: {shown} can be written to")),
        Err(error) => report.fail(format!("data folder: {shown} cannot be written to: {error}")),
    }
    if about.mode() & 0o077 != 0 {
        report.warn(format!("data folder: other users of this machine may enter it; run chmod 700 {shown}"));
    }
    match rustix::fs::statvfs(path) {
        Ok(space) => free_space(space.f_bavail.saturating_mul(space.f_frsize), report),
        Err(error) => report.warn(format!("free space: cannot be told: {error}")),
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
        report.fail(format!("free space: only {shown} left"));
    } else if free < LOW_SPACE_BYTES {
        report.warn(format!("free space: only {shown} left"));
    } else {
        report.ok(format!("free space: {shown}"));
    }
}

/// The database, opened, if it exists and has our tables.
async fn database(config: &Config, report: &mut Report) -> Option<Db> {
    if let DatabaseLocation::Sqlite(path) = &config.database
        && !path.exists()
    {
        report.ok(format!("database: {} is not there yet; the first start makes it", path.display()));
        return None;
    }
    let db = match Db::open(&config.database).await {
        Ok(db) => db,
        Err(error) => {
            report.fail(format!("database: {error}"));
            return None;
        }
    };
    let engine = db.engine_name();
    let newest = Db::newest_schema();
    let has_tables = match db.schema_version().await {
        Ok(0) => {
            report
                .ok(format!("database: {engine} answers; it is empty, and the first start makes the tables"));
            false
        }
        Ok(version) if version > newest => {
            report.fail(format!(
                "database: {engine} has schema version {version}, this program knows up to {newest}: run a newer one"
            ));
            false
        }
        Ok(version) if version < newest => {
            report.warn(format!(
                "database: {engine} has schema version {version}; the next start brings it to {newest}"
            ));
            true
        }
        Ok(version) => {
            report.ok(format!("database: {engine} answers, schema version {version}"));
            true
        }
        Err(error) => {
            report.fail(format!("database: {error}"));
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
        Ok(false) => report.ok("database role: row-level security applies to it"),
        Ok(true) => report.fail(
            "database role: a superuser or one with BYPASSRLS, to which row-level security does not apply; \
             use an ordinary role that owns the database",
        ),
        Err(error) => report.fail(format!("database role: {error}")),
    }
}

async fn count_workspaces(db: &Db, report: &mut Report) -> i64 {
    match read(db, async |tx| system::counts(tx).await).await {
        Ok((accounts, workspaces)) => {
            report.ok(format!("accounts: {accounts}, workspaces: {workspaces}"));
            workspaces
        }
        Err(error) => {
            report.fail(format!("accounts: {error}"));
            0
        }
    }
}

/// The master key, if it is usable.
async fn master_key(config: &Config, workspaces: i64, report: &mut Report) -> Option<MasterKey> {
    let KeySource::File(path) = &config.master_key else {
        report.ok("master key: given by the configuration");
        return open::master_key(&config.master_key).await.ok();
    };
    let shown = path.display();
    if !path.exists() {
        if workspaces > 0 {
            report.fail(format!("master key: {shown} is missing, and without it no stored data can be read"));
        } else {
            report.ok(format!("master key: {shown} is not there yet; the first start makes it"));
        }
        return None;
    }
    match open::master_key(&config.master_key).await {
        Ok(key) => {
            let mode = fs::metadata(path).map_or(0, |about| about.permissions().mode() & 0o777);
            report.ok(format!("master key: {shown}, mode {mode:04o}; keep a copy of it in a safe place"));
            Some(key)
        }
        Err(failure) => {
            report.fail(format!("master key: {failure}"));
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
        Err(error) => return report.fail(format!("data keys: {error}")),
    };
    let closed: Vec<&WrappedKey> =
        wrapped.iter().filter(|row| key.unwrap_key(row.workspace.as_str(), &row.wrapped).is_err()).collect();
    match closed.first() {
        None => report.ok(format!("data keys: {} of {} open with the master key", wrapped.len(), wrapped.len())),
        Some(first) => report.fail(format!(
            "data keys: {} of {} do not open (first: {}); this is not the master key that the data was made with",
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
            report.ok(format!("search: all of {messages} mails are indexed"));
        }
        Ok((messages, indexed)) => report.fail(format!(
            "search: {indexed} of {messages} mails are indexed; run agent-mailbox reindex to make the index anew"
        )),
        Err(error) => report.fail(format!("search: {error}")),
    }
}

async fn blobs(config: &Config, folder: bool, report: &mut Report) {
    if let BlobLocation::Directory(path) = &config.blobs
        && !path.exists()
    {
        if folder || !path.starts_with(&config.data_dir) {
            let shown = path.display();
            report.ok(format!("blob store: {shown} is not there yet; the first start makes it"));
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
        Ok(()) => report.ok(format!("blob store: {place} was written to and read from")),
        Err(error) => report.fail(format!("blob store: {error}")),
    }
}

async fn listeners(config: &Config, report: &mut Report) {
    let places = [
        ("HTTP", Some(config.http.listen)),
        ("metrics", config.http.metrics_listen),
        ("SMTP", Some(config.smtp.listen)),
        ("LMTP", config.smtp.lmtp_listen),
    ];
    for (name, address) in places {
        let Some(address) = address else { continue };
        match probe::identify(address).await {
            probe::Listener::Free => report.ok(format!("{name}: {address} is free")),
            probe::Listener::Us(version) => {
                report.ok(format!("{name}: {address} is served by Agent Mailbox {version}"));
                workers(address, report).await;
            }
            // The other listeners serve nothing that identifies the program.
            probe::Listener::Other if name != "HTTP" => report.ok(format!("{name}: {address} is in use")),
            probe::Listener::Other => report.fail(format!("{name}: {address} is used by another program")),
            probe::Listener::Unusable(error) => {
                report.fail(format!("{name}: nobody can listen on {address}: {error}"));
            }
        }
    }
}

/// The state of the running service's workers.
async fn workers(address: SocketAddr, report: &mut Report) {
    let Some(readiness) = probe::readiness(address).await else {
        return report
            .fail("workers: unknown, since the service is not ready; see the failures above and its log");
    };
    let workers = readiness["workers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut running = 0_u64;
    for worker in workers {
        let name = worker["name"].as_str().unwrap_or("?");
        let restarts = worker["restarts"].as_u64().unwrap_or_default();
        let failures = output::plural(worker["failures"].as_u64().unwrap_or_default(), "failure");
        match worker["state"].as_str() {
            Some("running") if restarts == 0 => running += 1,
            Some("running") => {
                running += 1;
                let times = output::plural(restarts, "time");
                report
                    .warn(format!("workers: {name} was restarted {times} since the start; the log says why"));
            }
            Some("restarting") => {
                report
                    .warn(format!("workers: {name} is down after {failures} in a row and will be restarted"));
            }
            _ => report.fail(format!("workers: {name} could not be restarted; the service is stopping")),
        }
    }
    report.ok(format!("workers: {running} of {} running", workers.len()));
}

fn public_url(config: &Config, report: &mut Report) {
    let url = config.public_url(config.http.listen);
    let loopback = config.http.listen.ip().is_loopback();
    let local =
        ["http://127.", "http://localhost", "http://[::1]"].iter().any(|start| url.starts_with(start));
    match (&config.http.public_url, loopback) {
        (None, true) => report.ok(format!("public address: {url}, for this machine only")),
        (None, false) => report.warn(format!(
            "public address: links will show {url}, which others cannot follow; set http.public_url"
        )),
        (Some(_), _) if url.starts_with("https://") => report.ok(format!("public address: {url}")),
        (Some(_), _) if local => report.ok(format!("public address: {url}, for this machine only")),
        (Some(_), _) => report.warn(format!(
            "public address: {url} is not encrypted, so keys and cookies can be read on the way; put https in front"
        )),
    }
}

/// Whether the machine's clock is plausible, by the database's clock and the newest rows.
async fn clock(db: Option<&Db>, report: &mut Report) {
    let now = SystemClock.now();
    if now < EARLIEST_TIME {
        return report.fail(format!("clock: it shows {now}, which is long ago"));
    }
    let Some(db) = db else { return report.ok(format!("clock: {now}")) };
    let found =
        read(db, async |tx| Ok((system::store_clock(tx).await?, system::newest_time(tx).await?))).await;
    match found {
        Ok((Some(theirs), _)) if !is_near(now, theirs) => {
            report.warn(format!("clock: it shows {now}, that of the database {theirs}"));
        }
        Ok((_, Some(newest))) if newest > now.plus_seconds(MAX_CLOCK_SKEW_SECONDS) => {
            report.warn(format!("clock: it shows {now}, but something was stored at {newest}"));
        }
        Ok(_) => report.ok(format!("clock: {now}")),
        Err(error) => report.fail(format!("clock: {error}")),
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
