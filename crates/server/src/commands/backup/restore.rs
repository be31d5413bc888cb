//! `restore`: everything is checked before anything is written; blobs first, then all rows in one transaction.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use futures_util::{StreamExt, TryStreamExt, stream};
use operations::ports::{Clock, SystemClock};
use serde_json::json;
use sha2::{Digest, Sha256};
use store::{
    Db, blob_names,
    blobs::{BlobLocation, BlobName, Blobs},
    dump::{self, Piece},
    vault::{MasterKey, hex},
};
use tokio::sync::mpsc;

use super::{super::search, MAX_CONCURRENT_BLOBS, PIECE_CAPACITY};
use crate::{
    backup::{BLOB_INDEX, BLOBS, BlobLine, Manifest, SealedReader},
    config::Config,
    failure::{Failure, Result},
    open, output,
    serve::lock::ServeLock,
};

/// Fills an empty store from a backup.
pub async fn restore(config: Config, dir: PathBuf) -> Result<ExitCode> {
    let started = Instant::now();
    let manifest = Manifest::read(&dir)?;
    let key = open::existing_master_key(&config.master_key).await?;
    manifest.verify(&key)?;
    if manifest.schema_version > Db::newest_schema() {
        return Err(Failure::new("This backup was made by a newer version of Agent Mailbox")
            .with_fix("Restore it with that version or a newer one."));
    }
    check_files(&dir, &manifest).await?;
    open::make_private_folder(&config.data_dir)?;
    let _lock = ServeLock::take(&config)?;
    let db = Db::open(&config.database).await?;
    require_empty(&db, &manifest).await?;
    db.migrate_to(manifest.schema_version, SystemClock.now()).await?;
    let to = Blobs::open(&config.blobs).await?;
    if manifest.schema_version >= blob_names::SCHEMA {
        // It may name blobs that older programs would not find.
        let now = SystemClock.now();
        db.system_write(async move |tx| blob_names::begin_restored(tx, now).await).await?;
    }
    // Blobs first, so that no row names a missing one.
    let blobs = restore_blobs(&dir, &manifest, &key, &to).await?;
    restore_rows(&db, &dir, &manifest, &key).await?;
    db.migrate(SystemClock.now()).await?;
    // The search index is not in the backup: it is rebuilt from the messages, and differs between engines.
    search::rebuild(&open::attach(&config).await?).await?;
    let rows = manifest.tables.iter().map(|table| table.rows).sum();
    let seconds = started.elapsed().as_secs_f64();
    let value = json!({
        "dir": dir, "rows": rows, "tables": manifest.tables.len(), "blobs": blobs, "engine": db.engine_name(),
        "made_at": manifest.made_at, "seconds": seconds,
    });
    output::result(&value, || {
        format!(
            "Restored {} of {} and {} from {} into {} in {seconds:.1} s.",
            output::plural(rows, "row"),
            output::plural(manifest.tables.len() as u64, "table"),
            output::plural(blobs, "blob"),
            manifest.made_at,
            db.engine_name(),
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn check_files(dir: &Path, manifest: &Manifest) -> Result<()> {
    let (dir, manifest) = (dir.to_owned(), manifest.clone());
    open::blocking(move || {
        let tables = manifest.tables.iter().map(|table| &table.file);
        tables.chain([&manifest.blobs.file]).try_for_each(|file| file.verify(&dir))
    })
    .await
}

async fn require_empty(db: &Db, manifest: &Manifest) -> Result<()> {
    if let Some(table) = dump::first_filled_table(db).await? {
        return Err(Failure::new(format!("The store is not empty: its table {table} has rows"))
            .with_fix("Restore into an empty store, such as a new --data-dir with the master key in it."));
    }
    let version = db.schema_version().await?;
    if version > manifest.schema_version {
        return Err(Failure::new(format!(
            "The store has schema version {version} already, the backup has {}",
            manifest.schema_version
        ))
        .with_fix("Restore into a store that no server has been started on yet."));
    }
    Ok(())
}

async fn restore_blobs(dir: &Path, manifest: &Manifest, key: &MasterKey, to: &Blobs) -> Result<u64> {
    let from = Blobs::open(&BlobLocation::Directory(dir.join(BLOBS))).await?;
    let mut index = SealedReader::open(dir, &manifest.blobs.file, BLOB_INDEX, key)?;
    let mut count = 0;
    loop {
        let read;
        (index, read) = open::blocking(move || {
            let read = index.next()?;
            Ok((index, read))
        })
        .await?;
        let Some(lines) = read else { break };
        let lines = blob_lines(&lines)?;
        count += lines.len() as u64;
        stream::iter(lines)
            .map(|line| copy(&from, to, line))
            .buffer_unordered(MAX_CONCURRENT_BLOBS)
            .try_collect::<()>()
            .await?;
    }
    if count == manifest.blobs.count {
        return Ok(count);
    }
    Err(Failure::new(format!("The index lists {count} blobs, the manifest {}", manifest.blobs.count)))
}

fn blob_lines(lines: &[u8]) -> Result<Vec<BlobLine>> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let parsed =
        lines.map(|line| serde_json::from_slice(line).map_err(|error| Failure::new(error.to_string())));
    parsed.collect()
}

async fn copy(from: &Blobs, to: &Blobs, line: BlobLine) -> Result<()> {
    let name = BlobName::parse(&line.name)?;
    let stored = from.read_stored(&line.space, &name).await?;
    if hex(&Sha256::digest(&stored)) != line.sha256 {
        return Err(Failure::new(format!("Blob {name} of space {} is damaged in the backup", line.space)));
    }
    Ok(to.write_stored(&line.space, &name, stored).await?)
}

async fn restore_rows(db: &Db, dir: &Path, manifest: &Manifest, key: &MasterKey) -> Result<()> {
    let (sender, receiver) = mpsc::channel(PIECE_CAPACITY);
    let (dir, manifest, key) = (dir.to_owned(), manifest.clone(), key.clone());
    let reading = tokio::spawn(open::blocking(move || read_tables(&dir, &manifest, &key, &sender)));
    let restored = dump::restore(db, receiver).await;
    let read = reading.await.map_err(|error| Failure::new(error.to_string()))?;
    match restored {
        Ok(()) => read,
        // If the files cannot be read, the rows end too early; the reader has the reason.
        Err(error) => read.and(Err(error.into())),
    }
}

fn read_tables(dir: &Path, manifest: &Manifest, key: &MasterKey, pieces: &mpsc::Sender<Piece>) -> Result<()> {
    for table in &manifest.tables {
        let (name, columns) = (table.name.clone(), table.columns.clone());
        if pieces.blocking_send(Piece::Table { name, columns }).is_err() {
            // The store has failed and reports the reason itself.
            return Ok(());
        }
        let mut reader = SealedReader::open(dir, &table.file, &table.name, key)?;
        let mut rows = 0;
        while let Some(lines) = reader.next()? {
            let count = lines.split_inclusive(|byte| *byte == b'\n').count() as u64;
            rows += count;
            if pieces.blocking_send(Piece::Rows { count, lines }).is_err() {
                return Ok(());
            }
        }
        if rows != table.rows {
            let message =
                format!("Table {} has {rows} rows in the backup, {} in the manifest", table.name, table.rows);
            return Err(Failure::new(message));
        }
    }
    // The store has failed and reports the reason itself.
    let _ = pieces.blocking_send(Piece::End);
    Ok(())
}
