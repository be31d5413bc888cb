//! `backup`: rows from one snapshot, then the blobs, then the manifest that marks it as complete.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use futures_util::{StreamExt, TryStreamExt, stream};
use model::WorkspaceId;
use operations::ports::{Clock, SystemClock};
use serde_json::json;
use sha2::{Digest, Sha256};
use store::{
    Db,
    blobs::{BlobError, BlobLocation, BlobName, Blobs, ListedBlob, MAX_PAGE},
    dump::{self, Piece},
    vault::{MasterKey, hex},
};
use tokio::sync::mpsc;

use super::{MAX_CONCURRENT_BLOBS, PIECE_CAPACITY};
use crate::{
    backup::{
        BLOB_INDEX, BLOBS, BlobEntry, BlobLine, FORMAT, Manifest, SealedWriter, TABLES, TableEntry,
        sync_folder,
    },
    config::Config,
    failure::{Failure, Result},
    open, output,
};

/// Saves everything to a folder.
pub async fn save(config: Config, dir: PathBuf) -> Result<ExitCode> {
    let started = Instant::now();
    // An empty backup would be noticed too late.
    open::require_store(&config)?;
    let key = open::existing_master_key(&config.master_key).await?;
    let db = Db::open(&config.database).await?;
    let from = Blobs::open(&config.blobs).await?;
    prepare(&dir)?;
    let made_at = SystemClock.now();
    let (schema_version, tables) = save_tables(&db, &dir, &key).await?;
    // After the rows: every blob that they name was stored before them and is kept for a while.
    let blobs = save_blobs(&db, &from, &dir, &key).await?;
    let mut manifest = Manifest {
        format: FORMAT,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        made_at,
        engine: db.engine_name().to_owned(),
        schema_version,
        tables,
        blobs,
        seal: String::new(),
    };
    manifest.seal(&key)?;
    let (described, folder) = (manifest.clone(), dir.clone());
    open::blocking(move || {
        sync_folder(&folder.join(TABLES))?;
        described.write(&folder)
    })
    .await?;
    report(&manifest, &dir, started)?;
    Ok(ExitCode::SUCCESS)
}

fn report(manifest: &Manifest, dir: &Path, started: Instant) -> Result<()> {
    let rows = manifest.tables.iter().map(|table| table.rows).sum();
    let seconds = started.elapsed().as_secs_f64();
    let value = json!({
        "dir": dir, "rows": rows, "tables": manifest.tables.len(), "blobs": manifest.blobs.count,
        "blob_bytes": manifest.blobs.total_bytes, "engine": manifest.engine, "made_at": manifest.made_at,
        "schema_version": manifest.schema_version, "seconds": seconds,
    });
    output::result(&value, || {
        format!(
            "Saved {} of {} and {} ({}) to {} in {seconds:.1} s.\n\
             The master key is not part of the backup, and the backup cannot be read without it: keep a copy of the \
             key in another safe place.",
            output::plural(rows, "row"),
            output::plural(manifest.tables.len() as u64, "table"),
            output::plural(manifest.blobs.count, "blob"),
            output::bytes(manifest.blobs.total_bytes),
            dir.display(),
        )
    })
}

fn prepare(dir: &Path) -> Result<()> {
    if fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Failure::new(format!("{} is not empty", dir.display()))
            .with_fix("Choose a new folder for each backup."));
    }
    open::make_private_folder(&dir.join(TABLES))?;
    open::make_private_folder(&dir.join(BLOBS))
}

async fn save_tables(db: &Db, dir: &Path, key: &MasterKey) -> Result<(i64, Vec<TableEntry>)> {
    let (sender, receiver) = mpsc::channel(PIECE_CAPACITY);
    let (folder, key) = (dir.to_owned(), key.clone());
    let writing = tokio::spawn(open::blocking(move || write_tables(&folder, &key, receiver)));
    let dumped = dump::dump(db, sender).await;
    let written = writing.await.map_err(|error| Failure::new(error.to_string()))?;
    // If writing fails, the dump fails too, with a less useful error.
    let tables = written?;
    Ok((dumped?, tables))
}

fn write_tables(dir: &Path, key: &MasterKey, mut pieces: mpsc::Receiver<Piece>) -> Result<Vec<TableEntry>> {
    let mut done = Vec::new();
    let mut current: Option<TableWriter> = None;
    while let Some(piece) = pieces.blocking_recv() {
        match piece {
            Piece::Table { name, columns } => {
                done.extend(current.take().map(TableWriter::finish).transpose()?);
                let writer = SealedWriter::create(dir, format!("{TABLES}/{name}"), &name, key)?;
                current = Some(TableWriter { writer, name, columns, rows: 0 });
            }
            Piece::Rows { count, lines } => {
                let table = current.as_mut().ok_or_else(|| Failure::new("Rows that belong to no table"))?;
                table.writer.write(&lines)?;
                table.rows += count;
            }
            Piece::End => done.extend(current.take().map(TableWriter::finish).transpose()?),
        }
    }
    Ok(done)
}

/// A table being written.
struct TableWriter {
    writer: SealedWriter,
    name: String,
    columns: Vec<String>,
    rows: u64,
}

impl TableWriter {
    fn finish(self) -> Result<TableEntry> {
        let file = self.writer.finish()?;
        Ok(TableEntry { name: self.name, columns: self.columns, rows: self.rows, file })
    }
}

async fn save_blobs(db: &Db, from: &Blobs, dir: &Path, key: &MasterKey) -> Result<BlobEntry> {
    let to = Blobs::open(&BlobLocation::Directory(dir.join(BLOBS))).await?;
    let (folder, key) = (dir.to_owned(), key.clone());
    let create = move || SealedWriter::create(&folder, BLOB_INDEX.to_owned(), BLOB_INDEX, &key);
    let mut saving =
        BlobBackup { from: from.clone(), to, index: open::blocking(create).await?, count: 0, total_bytes: 0 };
    let mut after = WorkspaceId::from("");
    loop {
        let next = after.clone();
        let page: Result<_, store::Error> =
            db.system_read(async move |tx| store::workspaces::list_all(tx, &next, 500).await).await;
        let page = page?;
        let Some(last) = page.last() else { break };
        after = last.id.clone();
        for workspace in &page {
            saving = saving.space(workspace.id.as_str()).await?;
        }
    }
    let BlobBackup { index, count, total_bytes, .. } = saving;
    let file = open::blocking(move || index.finish()).await?;
    Ok(BlobEntry { count, total_bytes, file })
}

/// Blobs being copied into a backup.
struct BlobBackup {
    from: Blobs,
    to: Blobs,
    index: SealedWriter,
    count: u64,
    total_bytes: u64,
}

impl BlobBackup {
    /// Copies the blobs of one space, a page at a time.
    async fn space(mut self, space: &str) -> Result<Self> {
        let mut after = None;
        loop {
            let page = self.from.list(space, after.as_ref(), MAX_PAGE).await?;
            let copied: Vec<Option<(BlobLine, u64)>> = stream::iter(page.blobs)
                .map(|blob| copy(&self.from, &self.to, space, blob))
                .buffer_unordered(MAX_CONCURRENT_BLOBS)
                .try_collect()
                .await?;
            self = self.note(copied.into_iter().flatten().collect()).await?;
            after = page.next;
            if after.is_none() {
                return Ok(self);
            }
        }
    }

    /// Adds copied blobs to the index.
    async fn note(mut self, copied: Vec<(BlobLine, u64)>) -> Result<Self> {
        if copied.is_empty() {
            return Ok(self);
        }
        open::blocking(move || {
            let mut lines = Vec::new();
            for (line, bytes) in copied {
                serde_json::to_writer(&mut lines, &line).map_err(|error| Failure::new(error.to_string()))?;
                lines.push(b'\n');
                self.count += 1;
                self.total_bytes += bytes;
            }
            self.index.write(&lines)?;
            Ok(self)
        })
        .await
    }
}

/// Copies one blob; `None` if it was deleted since it was listed.
async fn copy(from: &Blobs, to: &Blobs, space: &str, blob: ListedBlob) -> Result<Option<(BlobLine, u64)>> {
    let name: BlobName = blob.name;
    let stored = match from.read_stored(space, &name).await {
        Err(BlobError::Missing { .. }) => return Ok(None),
        outcome => outcome?,
    };
    let sha256 = hex(&Sha256::digest(&stored));
    let bytes = stored.len() as u64;
    to.write_stored(space, &name, stored).await?;
    Ok(Some((BlobLine { space: space.to_owned(), name: name.to_string(), sha256 }, bytes)))
}
