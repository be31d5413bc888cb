//! Asking the external scanner about messages that wait for its verdict.

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
        state::scanning::External,
        turns::Turns,
    },
    inbox::{emails::present, inbound},
};

/// Messages that the external scanner looks at at the same time, and how many of them may be one workspace's: a flood of
/// messages, or some that take it long, leave room for those of others.
const MAX_CONCURRENT: usize = 12;
const MAX_CONCURRENT_IN_WORKSPACE: usize = 8;
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
        let (now, room) = (app.now(), MAX_CONCURRENT.saturating_sub(self.running.len()));
        let (after, most) = (self.turns.after().to_owned(), self.turns.to_look_up(room));
        let find =
            app.db().system_read(async move |tx| system::unscanned_workspaces(tx, now, &after, most).await);
        let shares = self.turns.share(find.await?, room, MAX_CONCURRENT_IN_WORKSPACE);
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
