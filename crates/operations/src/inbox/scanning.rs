//! Sends messages with a pending verdict to the external scanner.
//!
//! Workspaces take turns, so that a flood of messages to one does not delay the others.

use std::collections::{HashMap, HashSet};

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
use tokio::task::{self, JoinSet};
use tracing::Instrument;

use crate::{
    core::{
        app::App,
        error::{Error, Result},
        events::NewEvent,
        state::scanning::ExternalVerdict,
        turns::Turns,
    },
    inbox::{emails::present, inbound},
};

/// Maximum concurrent scans, in total and per workspace.
const MAX_CONCURRENT: usize = 12;
const MAX_CONCURRENT_IN_WORKSPACE: usize = 8;
/// Messages of one workspace that are skipped because they could not be read.
const MAX_SKIPPED_PER_WORKSPACE: usize = 100;

/// Scans all pending messages, in turn over workspaces, and returns how many got a verdict.
#[crate::boxed]
pub async fn scan_pending(app: &App) -> Result<usize> {
    if !app.scanning().has_external() {
        return Ok(0);
    }
    let mut scans = RunningScans::default();
    let (mut scanned, mut failed) = (0, None);
    loop {
        scans.start_pending(app).await?;
        // Each finished scan frees a slot, so that a few slow scans do not block the others.
        let Some(done) = scans.running.join_next_with_id().await else { break };
        match scans.finish(done) {
            Ok(done) => scanned += usize::from(done),
            // A damaged message must not block the next ones.
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if scanned == 0 => Err(error),
        _ => Ok(scanned),
    }
}

/// Scans in progress.
#[derive(Default)]
struct RunningScans {
    turns: Turns,
    running: JoinSet<Result<bool>>,
    tasks: HashMap<task::Id, (WorkspaceId, EmailId)>,
    /// Messages without a verdict, which are retried in a later round.
    skipped: HashMap<WorkspaceId, HashSet<EmailId>>,
}

impl RunningScans {
    /// Starts pending scans in free slots.
    async fn start_pending(&mut self, app: &App) -> Result<()> {
        let (now, free_slots) = (app.now(), MAX_CONCURRENT.saturating_sub(self.running.len()));
        let (after, limit) = (self.turns.after().to_owned(), self.turns.candidate_limit(free_slots));
        let find =
            app.db().system_read(async move |tx| system::unscanned_workspaces(tx, now, &after, limit).await);
        let shares = self.turns.share(find.await?, free_slots, MAX_CONCURRENT_IN_WORKSPACE);
        for (workspace, share) in shares {
            let skipped = self.skipped.get(&workspace).map_or(0, HashSet::len).min(MAX_SKIPPED_PER_WORKSPACE);
            let (of, limit) = (workspace.clone(), share + self.turns.count(&workspace) + skipped);
            let find = app.db().system_read(async move |tx| system::unscanned(tx, &of, limit).await);
            let pending: Vec<(MailboxId, EmailId)> = find.await?;
            let fresh = pending.into_iter().filter(|(_, email)| !self.is_known(&workspace, email));
            for (mailbox, email) in fresh.take(share).collect::<Vec<_>>() {
                self.start(app, &workspace, mailbox, email);
            }
        }
        Ok(())
    }

    fn is_known(&self, workspace: &WorkspaceId, email: &EmailId) -> bool {
        self.tasks.values().any(|(_, running)| running == email)
            || self.skipped.get(workspace).is_some_and(|all| all.contains(email))
    }

    fn start(&mut self, app: &App, workspace: &WorkspaceId, mailbox: MailboxId, email: EmailId) {
        let (app, of, id) = (app.clone(), workspace.clone(), email.clone());
        let span = tracing::error_span!("scan", email = %id, workspace = %of);
        let failed =
            |error: &Error| tracing::error!(%error, "message could not be read for scanning; retrying");
        let work = async move { scan(&app, &of, &mailbox, &id).await.inspect_err(failed) };
        let task = self.running.spawn(work.instrument(span));
        self.turns.claim(workspace);
        self.tasks.insert(task.id(), (workspace.clone(), email));
    }

    /// Finishes a scan, and returns whether there is a verdict.
    fn finish(&mut self, done: Result<(task::Id, Result<bool>), task::JoinError>) -> Result<bool> {
        let (id, outcome) = match done {
            Ok((id, outcome)) => (id, outcome),
            Err(error) => (error.id(), Err(Error::internal(error))),
        };
        if let Some((workspace, email)) = self.tasks.remove(&id) {
            self.turns.release(&workspace);
            if !matches!(outcome, Ok(true)) {
                self.skipped.entry(workspace).or_default().insert(email);
            }
        }
        outcome
    }
}

async fn scan(app: &App, workspace: &WorkspaceId, mailbox: &MailboxId, email: &EmailId) -> Result<bool> {
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
        ExternalVerdict::Clean => ScanStatus::Clean,
        ExternalVerdict::Unknown => ScanStatus::Skipped,
        ExternalVerdict::Infected(name) => {
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
            let scanned = EmailRecord { scan_status: Some(status), scan_threats: threats, ..mail };
            let event = NewEvent {
                kind: EventType::MessageScanned,
                mailbox: Some(mailbox),
                data: inbound::received_data(&scanned),
            };
            event.append(tx, &app_, &key, app_.now()).await?;
            Ok(true)
        })
        .await
}
