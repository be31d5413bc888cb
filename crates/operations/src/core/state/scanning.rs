//! External scanners: block lists from files, clamd.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use mail::scan::{Blocklist, clamd};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::core::lock::lock;

/// Messages that are parsed and scanned at the same time.
const MAX_CONCURRENT: usize = 4;
/// The timeout of clamd for one message.
const CLAMD_TIMEOUT: Duration = Duration::from_secs(20);

/// The external scanners.
pub struct Scanning {
    files: Vec<PathBuf>,
    blocklist: Mutex<Lists>,
    clamd: Option<clamd::ClamdAddress>,
    turns: Semaphore,
}

/// The block lists as last read.
#[derive(Default)]
struct Lists {
    /// The modification time and size of each file then.
    state: Vec<Option<(SystemTime, u64)>>,
    list: Arc<Blocklist>,
    /// Whether an unreadable file was already logged.
    warned: bool,
}

/// The verdict of an external scanner.
pub(crate) enum ExternalVerdict {
    Clean,
    Infected(String),
    Unknown,
}

impl Scanning {
    /// Scanners as configured. Block lists are read at once, and again when their files change.
    pub fn new(files: Vec<PathBuf>, clamd: Option<clamd::ClamdAddress>) -> Self {
        let scanning =
            Self { files, blocklist: Mutex::default(), clamd, turns: Semaphore::new(MAX_CONCURRENT) };
        scanning.reload();
        scanning
    }

    /// Re-reads block lists whose files changed. Blocks: call it from a blocking thread.
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
                    if !std::mem::replace(&mut lock(&self.blocklist).warned, true) {
                        tracing::warn!(path = %path.display(), %error, "block list unreadable; keeping the previous one");
                    }
                    return;
                }
            }
        }
        *lock(&self.blocklist) = Lists { state, list: Arc::new(Blocklist::parse(&text)), warned: false };
    }

    pub(crate) fn blocklist(&self) -> Arc<Blocklist> {
        lock(&self.blocklist).list.clone()
    }

    /// Whether a scanner beside the built-in one is configured.
    pub fn has_external(&self) -> bool {
        self.clamd.is_some()
    }

    /// Waits for a slot to parse a message, so that a flood of messages does not take all threads and memory.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }

    /// Asks the external scanner about a message.
    pub(crate) async fn ask(&self, raw: &[u8]) -> ExternalVerdict {
        let Some(address) = &self.clamd else { return ExternalVerdict::Clean };
        match clamd::scan(address, raw, CLAMD_TIMEOUT).await {
            Ok(clamd::ClamVerdict::Clean) => ExternalVerdict::Clean,
            Ok(clamd::ClamVerdict::Found(name)) => ExternalVerdict::Infected(name),
            Err(error) => {
                tracing::warn!(error = %model::causes(&error), "clamd scan failed; verdict unknown");
                ExternalVerdict::Unknown
            }
        }
    }
}
