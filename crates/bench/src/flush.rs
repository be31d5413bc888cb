//! How long this disk takes to flush, and a simulated slower disk.
//!
//! `scripts/bench` loads `slow_flush.c` into this program and into PostgreSQL. Before each flush it reads the file
//! that a variable names, so writing a number there makes the disk of both engines slow, and a zero makes it normal
//! again.

use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    os::unix::fs::FileExt as _,
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    measured_store::{Engine, FOLDER},
    stats::median,
};

/// The variable that names the file, as in `slow_flush.c`.
const VARIABLE: &str = "AGENT_MAILBOX_BENCH_FLUSH";
/// The flush time of the slow disk.
pub(crate) const SLOW_FLUSH: Duration = Duration::from_millis(4);
/// How often a flush is timed.
const FLUSHES: usize = 300;

/// The median time of a small write with its flush, on the disk of an engine's data.
pub(crate) fn time_flush(engine: Engine) -> Duration {
    let folder = match engine {
        Engine::Sqlite => Path::new(FOLDER),
        // Where scripts/postgres keeps the server's data.
        Engine::Postgres => Path::new("/tmp"),
    };
    let mut file = tempfile::tempfile_in(folder).expect("a file in the folder of the data");
    let times: Vec<f64> = (0..FLUSHES)
        .map(|_| {
            let before = Instant::now();
            file.write_all(&[0; 512]).and_then(|()| file.sync_data()).expect("the disk takes a few bytes");
            before.elapsed().as_secs_f64()
        })
        .collect();
    Duration::from_secs_f64(median(&times))
}

/// A slow disk, until this value is dropped.
pub(crate) struct SlowDisk {
    file: File,
}

impl SlowDisk {
    /// Makes each flush take at least this long; `None` when this program was not started by `scripts/bench`.
    pub(crate) fn start(flush: Duration) -> Option<Self> {
        let path = std::env::var_os(VARIABLE)?;
        // It must not be truncated: it is mapped, and a program that reads it would be killed.
        let file =
            OpenOptions::new().write(true).open(path).expect("the file for slow flushes can be written");
        let slow = Self { file };
        slow.set(u32::try_from(flush.as_micros()).expect("a flush is no matter of hours"));
        Some(slow)
    }

    fn set(&self, microseconds: u32) {
        self.file
            .write_all_at(&microseconds.to_ne_bytes(), 0)
            .expect("the file for slow flushes can be written");
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        self.set(0);
    }
}
