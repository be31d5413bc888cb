//! Scanners beside the built-in one: block lists from files, clamd.

use std::{
    collections::{HashMap, HashSet},
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
    task::{self, JoinSet},
};
use tracing::Instrument;

use crate::{App, Error, Result, emails::present, events::NewEvent, inbound, lock, turns::Turns};

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
                tracing::warn!(error = %model::causes(&error), "clamd gave no verdict");
                External::Unknown
            }
        }
    }
}

/// Messages that the external scanner looks at at the same time, and how many of them may be one workspace's: a flood of
/// messages, or some that take it long, leave room for those of others.
const AT_ONCE: usize = 12;
const AT_ONCE_IN_WORKSPACE: usize = 8;
/// Messages of one workspace that are passed over because they could not be read.
const MAX_PASSED_OVER: usize = 100;

/// Asks the external scanner about all messages that wait for its verdict, in turn over workspaces, and tells how many it
/// judged.
#[crate::boxed]
pub async fn judge_waiting(app: &App) -> Result<usize> {
    if !app.scanning().has_external() {
        return Ok(0);
    }
    let mut judging = Judging::default();
    let (mut judged, mut failed) = (0, None);
    loop {
        judging.take_up(app).await?;
        // As soon as one is done there is room for the next: a scanner that hangs over some keeps nobody waiting.
        let Some(done) = judging.running.join_next_with_id().await else { break };
        match judging.end(done) {
            Ok(done) => judged += usize::from(done),
            // One that is damaged must not keep the next ones waiting.
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if judged == 0 => Err(error),
        _ => Ok(judged),
    }
}

/// Messages that are with the external scanner.
#[derive(Default)]
struct Judging {
    turns: Turns,
    running: JoinSet<Result<bool>>,
    places: HashMap<task::Id, (WorkspaceId, EmailId)>,
    /// Those that nothing came of, which are tried another time.
    passed_over: HashMap<WorkspaceId, HashSet<EmailId>>,
}

impl Judging {
    /// Takes up messages that wait, as far as there is room.
    async fn take_up(&mut self, app: &App) -> Result<()> {
        let (now, room) = (app.now(), AT_ONCE.saturating_sub(self.running.len()));
        let (after, most) = (self.turns.after().to_owned(), self.turns.to_look_up(room));
        let find =
            app.db().system_read(async move |tx| system::unscanned_workspaces(tx, now, &after, most).await);
        let shares = self.turns.share(find.await?, room, AT_ONCE_IN_WORKSPACE);
        for (workspace, share) in shares {
            let passed_over = self.passed_over.get(&workspace).map_or(0, HashSet::len).min(MAX_PASSED_OVER);
            let (of, most) = (workspace.clone(), share + self.turns.holds(&workspace) + passed_over);
            let find = app.db().system_read(async move |tx| system::unscanned(tx, &of, most).await);
            let waiting: Vec<(MailboxId, EmailId)> = find.await?;
            let fresh = waiting.into_iter().filter(|(_, email)| !self.knows(&workspace, email));
            for (mailbox, email) in fresh.take(share).collect::<Vec<_>>() {
                self.begin(app, &workspace, mailbox, email);
            }
        }
        Ok(())
    }

    fn knows(&self, workspace: &WorkspaceId, email: &EmailId) -> bool {
        self.places.values().any(|(_, running)| running == email)
            || self.passed_over.get(workspace).is_some_and(|all| all.contains(email))
    }

    fn begin(&mut self, app: &App, workspace: &WorkspaceId, mailbox: MailboxId, email: EmailId) {
        let (app, of, id) = (app.clone(), workspace.clone(), email.clone());
        let span = tracing::error_span!("scan", email = %id, workspace = %of);
        let failed = |error: &Error| tracing::error!(%error, "a mail cannot be read to be scanned");
        let work = async move { judge(&app, &of, &mailbox, &id).await.inspect_err(failed) };
        let task = self.running.spawn(work.instrument(span));
        self.turns.take(workspace);
        self.places.insert(task.id(), (workspace.clone(), email));
    }

    /// Tells whether there is a verdict now.
    fn end(&mut self, done: Result<(task::Id, Result<bool>), task::JoinError>) -> Result<bool> {
        let (id, outcome) = match done {
            Ok((id, outcome)) => (id, outcome),
            Err(error) => (error.id(), Err(Error::internal(error))),
        };
        if let Some((workspace, email)) = self.places.remove(&id) {
            self.turns.release(&workspace);
            if !matches!(outcome, Ok(true)) {
                self.passed_over.entry(workspace).or_default().insert(email);
            }
        }
        outcome
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
