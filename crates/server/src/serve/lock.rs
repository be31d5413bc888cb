//! One server at a time on a SQLite store: a second one would meter credits and requests separately.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{ErrorKind, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    time::{Duration, Instant},
};

use store::DatabaseLocation;

use crate::{
    config::Config,
    failure::{Failure, Result},
    port_owner::LOCK_FILE,
};

/// How long to wait for a server that is shutting down, and the interval between attempts.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// The lock on a store, until it is dropped or the process ends.
#[derive(Debug)]
pub struct ServeLock {
    /// `None` for PostgreSQL, which several nodes share.
    _file: Option<File>,
}

impl ServeLock {
    /// Takes the lock, or says which process has it.
    pub fn take(config: &Config) -> Result<Self> {
        if matches!(config.database, DatabaseLocation::Postgres(_)) {
            return Ok(Self { _file: None });
        }
        let path = config.data_dir.join(LOCK_FILE);
        let lock_failure = |error| Failure::new(format!("Cannot lock {}: {error}", path.display()));
        let opened =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let mut file = opened.map_err(lock_failure)?;
        let begun = Instant::now();
        while let Err(refused) = file.try_lock() {
            match refused {
                // A server that was killed a moment ago may still be exiting.
                TryLockError::WouldBlock if begun.elapsed() < LOCK_TIMEOUT => {
                    std::thread::sleep(LOCK_RETRY_INTERVAL);
                }
                TryLockError::WouldBlock => return Err(already_locked(config, file)),
                TryLockError::Error(error) => return Err(lock_failure(error)),
            }
        }
        // Only for the message above; a process id that could not be written is no reason to fail.
        let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Self { _file: Some(file) })
    }
}

/// The process that serves a data folder on SQLite, if there is one. Fails where this user may not look.
pub fn serving_process(data_dir: &Path) -> std::io::Result<Option<String>> {
    let file = match OpenOptions::new().read(true).write(true).open(data_dir.join(LOCK_FILE)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    // A lock that is taken here is released at once: a server that starts meanwhile waits for it.
    match file.try_lock() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(owner(file))),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn already_locked(config: &Config, file: File) -> Failure {
    let folder = config.data_dir.display();
    Failure::new(format!("{folder} is already served by {}", owner(file))).with_fix(
        "Stop it first, choose another --data-dir, or use PostgreSQL, which several servers can share.",
    )
}

/// The process that a lock's file names.
fn owner(file: File) -> String {
    let mut text = String::new();
    match file.take(20).read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => format!("process {}", text.trim()),
        _ => "another process".to_owned(),
    }
}
