//! Scanners beside the built-in one: block lists from files, clamd.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use mail::scan::{Blocklist, clamd};
use model::{
    EmailId, MailboxId, WorkspaceId,
    emails::{ScanStatus, ScanThreat, ThreatSource},
    events::EventType,
};
use store::{
    contents,
    emails::{self, EmailRecord},
    system,
};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::JoinSet,
};

use crate::{App, Error, Result, emails::present, events::NewEvent, inbound, lock};

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

    /// Reads block lists anew if their files changed. Blocks: call it from a thread that may.
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
                tracing::warn!(%error, "clamd gave no verdict");
                External::Unknown
            }
        }
    }
}

/// Mails that one round of the external scanner takes.
const ROUND: i64 = 50;
/// Messages that the external scanner looks at together.
const AT_ONCE: usize = 8;

/// Asks the external scanner about mail that waits for its verdict, and tells how many it judged.
pub async fn judge_waiting(app: &App) -> Result<usize> {
    if !app.scanning().has_external() {
        return Ok(0);
    }
    let waiting = app.db().system_read(async |tx| system::unscanned(tx, ROUND).await).await?;
    let (mut judged, mut failed) = (0, None);
    // Several at once: a scanner that hangs must not keep everybody's mail waiting for one after the other.
    for some in waiting.chunks(AT_ONCE) {
        let mut running = JoinSet::new();
        for (workspace, mailbox, email) in some {
            let (app, workspace) = (app.clone(), workspace.clone());
            let (mailbox, email) = (mailbox.clone(), email.clone());
            running.spawn(async move { judge(&app, &workspace, &mailbox, &email).await });
        }
        while let Some(done) = running.join_next().await {
            match done.map_err(Error::internal).flatten() {
                Ok(done) => judged += usize::from(done),
                // One that is damaged must not keep the next ones waiting.
                Err(error) => failed = Some(error),
            }
        }
    }
    match failed {
        Some(error) if judged == 0 => Err(error),
        Some(error) => {
            tracing::error!(%error, "a mail cannot be read to be scanned");
            Ok(judged)
        }
        None => Ok(judged),
    }
}

async fn judge(app: &App, workspace: &WorkspaceId, mailbox: &MailboxId, email: &EmailId) -> Result<bool> {
    let (owner, id) = (mailbox.clone(), email.clone());
    let found = app
        .db()
        .read(workspace, async move |tx| {
            let Some(mail) = emails::find(tx, &owner, &id).await? else { return Ok(None) };
            let content = contents::find(tx, &mail.content_id).await?;
            Ok::<_, store::Error>(content.map(|content| (mail, content)))
        })
        .await?;
    let Some((mail, content)) = found else { return Ok(false) };
    let raw = present::open_raw(app, workspace, &content).await?;
    let mut threats = mail.scan_threats.clone();
    let status = match app.scanning().ask(&raw).await {
        External::Clean => ScanStatus::Clean,
        External::Unknown => ScanStatus::Skipped,
        External::Infected(name) => {
            threats.push(ScanThreat {
                url: Some(String::new()),
                threat_type: format!("malware:{name}"),
                source: ThreatSource::Attachment,
                attachment_filename: String::new(),
            });
            ScanStatus::Flagged
        }
    };
    let key = app.data_key(workspace).await?;
    let (app_, mailbox) = (app.clone(), mailbox.clone());
    app.db()
        .write(workspace, async move |tx| {
            if !emails::set_scan(tx, &mailbox, &mail.id, status, &threats).await? {
                return Ok(false);
            }
            let judged = EmailRecord { scan_status: Some(status), scan_threats: threats, ..mail };
            let event = NewEvent {
                kind: EventType::MessageScanned,
                mailbox: Some(mailbox),
                data: inbound::received_data(&judged),
            };
            event.append(tx, &app_, &key, app_.now()).await?;
            Ok(true)
        })
        .await
}
