//! One server at a time on a SQLite store: a second one would meter credits and requests separately.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Write},
    os::unix::fs::OpenOptionsExt,
    time::{Duration, Instant},
};

use store::DatabaseLocation;

use crate::{
    config::Config,
    failure::{Failure, Result},
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
        let path = config.data_dir.join("serve.lock");
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

fn already_locked(config: &Config, file: File) -> Failure {
    let mut text = String::new();
    let read = file.take(20).read_to_string(&mut text);
    let who = match read {
        Ok(_) if !text.trim().is_empty() => format!("process {}", text.trim()),
        _ => "another process".to_owned(),
    };
    Failure::new(format!("{} is already served by {who}", config.data_dir.display())).with_fix(
        "Stop it first, choose another --data-dir, or use PostgreSQL, which several servers can share.",
    )
}
