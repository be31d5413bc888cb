//! Scanners beside the built-in one: block lists from files, clamd.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use mail::scan::{Blocklist, clamd};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::core::lock::lock;

/// Messages that are read and judged at the same time.
const TURNS: usize = 4;
/// How long clamd may take for one message.
const CLAMD_LIMIT: Duration = Duration::from_secs(20);

/// What judges mail beside the built-in scanner.
pub struct Scanning {
    files: Vec<PathBuf>,
    blocklist: Mutex<Lists>,
    clamd: Option<clamd::ClamdAddress>,
    turns: Semaphore,
}

/// Block lists as they were read.
#[derive(Default)]
struct Lists {
    /// How each file was then: when it was changed, and its size.
    state: Vec<Option<(SystemTime, u64)>>,
    list: Arc<Blocklist>,
    /// Whether it was said already that a file cannot be read.
    complained: bool,
}

/// What an external scanner said.
pub(crate) enum External {
    Clean,
    Infected(String),
    Unknown,
}

impl Scanning {
    /// Scanners as configured. Block lists are read at once, and again when their files change.
    pub fn new(files: Vec<PathBuf>, clamd: Option<clamd::ClamdAddress>) -> Self {
        let scanning = Self { files, blocklist: Mutex::default(), clamd, turns: Semaphore::new(TURNS) };
        scanning.reload();
        scanning
    }

    /// Reads block lists again if their files changed. Blocks: call it from a thread that may.
    pub fn reload(&self) {
        let state_of = |path: &PathBuf| {
            let about = std::fs::metadata(path).ok()?;
            Some((about.modified().ok()?, about.len()))
        };
        let state: Vec<_> = self.files.iter().map(state_of).collect();
        if lock(&self.blocklist).state == state {
            return;
        }
        let mut text = String::new();
        for path in &self.files {
            match std::fs::read_to_string(path) {
                Ok(lines) => {
                    text.push_str(&lines);
                    text.push('\n');
                }
                Err(error) => {
                    // The old list is better than none.
                    if !std::mem::replace(&mut lock(&self.blocklist).complained, true) {
                        tracing::warn!(path = %path.display(), %error, "cannot read a block list; keeping the old one");
                    }
                    return;
                }
            }
        }
        *lock(&self.blocklist) = Lists { state, list: Arc::new(Blocklist::parse(&text)), complained: false };
    }

    pub(crate) fn blocklist(&self) -> Arc<Blocklist> {
        lock(&self.blocklist).list.clone()
    }

    /// Whether mail has to pass more than the built-in scanner.
    pub fn has_external(&self) -> bool {
        self.clamd.is_some()
    }

    /// Waits for a turn to read a message, so that a flood of them does not take all threads and memory.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }

    /// Asks the external scanner about a message.
    pub(crate) async fn ask(&self, raw: &[u8]) -> External {
        let Some(address) = &self.clamd else { return External::Clean };
        match clamd::scan(address, raw, CLAMD_LIMIT).await {
            Ok(clamd::ClamVerdict::Clean) => External::Clean,
            Ok(clamd::ClamVerdict::Found(name)) => External::Infected(name),
            Err(error) => {
                tracing::warn!(error = %model::causes(&error), "clamd gave no verdict");
                External::Unknown
            }
        }
    }
}
