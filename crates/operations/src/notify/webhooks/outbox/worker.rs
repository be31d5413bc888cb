//! The webhook worker: finds new events and due deliveries, and delivers them.
//!
//! Every incoming message is an event, and most workspaces have no webhook: those are remembered, so that their
//! events cost no read of the store.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use model::{WebhookId, WorkspaceId};
use store::{Topic, Wake, webhooks};
use tokio::{
    sync::broadcast::{
        Receiver,
        error::{RecvError, TryRecvError},
    },
    task::{Id, JoinSet},
};
use tracing::Instrument;

use super::{FanOut, WORKER, deliver, fan_out};
use crate::core::{
    app::App,
    error::{Error, Result},
    supervisor::isolate,
    turns::Turns,
};

/// Webhooks that one process works on at the same time, and how many of them may belong to one workspace.
const MAX_CONCURRENT: usize = 64;
const MAX_CONCURRENT_IN_WORKSPACE: usize = 8;
/// The minimum time between two searches.
const MIN_SEARCH_INTERVAL: Duration = Duration::from_millis(50);
/// Workspaces that are checked one by one; for more, a search is cheaper.
const MAX_SINGLE_CHECKS: usize = 4;
/// Workspaces per search for missed events.
const MAX_WORKSPACES: i64 = 1000;
/// Workspaces without a webhook that are remembered.
const MAX_QUIET: usize = 10_000;
/// How often due deliveries are polled without a notification.
const IDLE_POLL: Duration = Duration::from_secs(1);
/// How often missed events are searched for, such as those of a node that died before it told of them.
const SEARCH_INTERVAL: Duration = Duration::from_secs(4);

/// Delivers until the task is aborted. One such task per process is enough.
#[crate::boxed]
pub async fn work(app: App) {
    if app.db().is_sole_node() {
        let freed = app.db().system_write(async |tx| webhooks::release_all(tx).await).await;
        if let Err(error) = freed.map_err(Error::from) {
            tracing::warn!(%error, "webhook claims of the last run not released; they will expire");
        }
    }
    let (mut events, mut changes) = (app.db().listen_for_work(Topic::Event), app.db().listen(Topic::Webhook));
    let mut worker = Worker::new(app);
    let (mut notified, mut searched) = (HashSet::new(), None::<Instant>);
    loop {
        let search =
            notified.len() > MAX_SINGLE_CHECKS || searched.is_none_or(|at| at.elapsed() >= SEARCH_INTERVAL);
        if search {
            // Under load, a search now and then covers all events.
            if searched.is_some_and(|at| at.elapsed() < MIN_SEARCH_INTERVAL) {
                tokio::time::sleep(MIN_SEARCH_INTERVAL).await;
            }
            searched = Some(Instant::now());
        }
        if let Err(error) = worker.round(std::mem::take(&mut notified), search).await {
            tracing::warn!(%error, "webhook delivery failed; retrying");
            // A notification would not help, and may come in a tight loop.
            tokio::time::sleep(IDLE_POLL).await;
        }
        match worker.wait(&mut events, &mut changes, &mut notified).await {
            Some(WakeReason::Some) => {}
            Some(WakeReason::Lost) => searched = None,
            None => return,
        }
    }
}

/// Does everything that is due now, and returns how many deliveries were tried.
#[crate::boxed]
pub async fn run_due(app: &App) -> Result<usize> {
    let mut worker = Worker::new(app.clone());
    let mut tried = 0;
    loop {
        worker.round(HashSet::new(), true).await?;
        if worker.running.is_empty() && worker.behind.is_empty() {
            return Ok(tried);
        }
        while let Some(done) = worker.running.join_next_with_id().await {
            let (id, outcome) = done.map_err(Error::internal)?;
            worker.remove(id);
            tried += outcome?;
        }
    }
}

/// Why a waiting worker was woken.
enum WakeReason {
    /// It has all notifications.
    Some,
    /// Some notifications were lost.
    Lost,
}

/// The webhooks that this process works on.
struct Worker {
    app: App,
    running: JoinSet<Result<usize>>,
    running_webhooks: HashMap<Id, (WorkspaceId, WebhookId)>,
    turns: Turns,
    /// Workspaces with events that were not processed yet.
    behind: HashSet<WorkspaceId>,
    /// Workspaces without a webhook. A new webhook sends a notification; a missed one is found by the next search.
    quiet: HashSet<WorkspaceId>,
    /// Whether deliveries may be due, and when that was last checked.
    due: bool,
    checked_due_at: Option<Instant>,
}

impl Worker {
    fn new(app: App) -> Self {
        Self {
            app,
            running: JoinSet::new(),
            running_webhooks: HashMap::new(),
            turns: Turns::default(),
            behind: HashSet::new(),
            quiet: HashSet::new(),
            due: true,
            checked_due_at: None,
        }
    }

    /// Waits until there may be something to do. `None` when the store is closed.
    async fn wait(
        &mut self,
        events: &mut Receiver<Wake>,
        changes: &mut Receiver<Wake>,
        notified: &mut HashSet<WorkspaceId>,
    ) -> Option<WakeReason> {
        if !self.behind.is_empty() {
            // There is enough to do; finished tasks free their slots.
            while let Some(done) = self.running.try_join_next_with_id() {
                self.finish(done);
                self.due = true;
            }
            return Some(WakeReason::Some);
        }
        let timeout = tokio::time::sleep(IDLE_POLL);
        tokio::pin!(timeout);
        loop {
            tokio::select! {
                // First the changes of webhooks, then the events.
                biased;
                change = changes.recv() => match change {
                    Ok(wake) => {
                        self.due = true;
                        self.notice_change(wake.workspace, notified);
                        return Some(self.gather_changes(changes, notified));
                    }
                    Err(RecvError::Lagged(_)) => return Some(self.lose_changes()),
                    Err(RecvError::Closed) => return None,
                },
                Some(done) = self.running.join_next_with_id() => {
                    self.finish(done);
                    self.due = true;
                    return Some(WakeReason::Some);
                }
                () = &mut timeout => {
                    self.due = true;
                    return Some(WakeReason::Some);
                }
                event = events.recv() => match event {
                    Ok(wake) if self.quiet.contains(&wake.workspace) => {}
                    Ok(wake) => {
                        notified.insert(wake.workspace);
                        return Some(self.gather_events(events, notified));
                    }
                    Err(RecvError::Lagged(_)) => return Some(WakeReason::Lost),
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }

    /// Checks a workspace that had no webhook: its events may have arrived before this notification.
    fn notice_change(&mut self, workspace: WorkspaceId, notified: &mut HashSet<WorkspaceId>) {
        if self.quiet.remove(&workspace) {
            notified.insert(workspace);
        }
    }

    /// Any workspace may have a webhook now.
    fn lose_changes(&mut self) -> WakeReason {
        self.due = true;
        self.quiet.clear();
        WakeReason::Lost
    }

    /// Drains all other changes: one round covers all of them, many of which this worker made itself.
    fn gather_changes(
        &mut self,
        changes: &mut Receiver<Wake>,
        notified: &mut HashSet<WorkspaceId>,
    ) -> WakeReason {
        loop {
            match changes.try_recv() {
                Ok(wake) => self.notice_change(wake.workspace, notified),
                Err(TryRecvError::Lagged(_)) => return self.lose_changes(),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return WakeReason::Some,
            }
        }
    }

    /// Drains all other events, to be processed together.
    fn gather_events(&self, events: &mut Receiver<Wake>, notified: &mut HashSet<WorkspaceId>) -> WakeReason {
        loop {
            match events.try_recv() {
                Ok(wake) => {
                    notified.extend((!self.quiet.contains(&wake.workspace)).then_some(wake.workspace));
                }
                Err(TryRecvError::Lagged(_)) => return WakeReason::Lost,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return WakeReason::Some,
            }
        }
    }

    /// Creates deliveries for new events, and starts what is due as far as there are slots.
    async fn round(&mut self, notified: HashSet<WorkspaceId>, search: bool) -> Result<()> {
        let mut workspaces = notified;
        if search {
            let limit = MAX_WORKSPACES;
            let found: Result<Vec<WorkspaceId>, store::Error> = self
                .app
                .db()
                .system_read(async move |tx| webhooks::lagging_workspaces(tx, limit).await)
                .await;
            workspaces = found?.into_iter().collect();
            self.behind.clear();
            for workspace in &workspaces {
                self.quiet.remove(workspace);
            }
        }
        workspaces.extend(self.behind.drain());
        // Events that no webhook wants make nothing due.
        self.due |= search || self.checked_due_at.is_none_or(|at| at.elapsed() >= IDLE_POLL);
        for workspace in workspaces {
            match isolate(WORKER, fan_out(&self.app, &workspace)).await {
                Ok(FanOut::Quiet) => self.remember_quiet(workspace),
                Ok(FanOut::Nothing) => {}
                Ok(FanOut::Some { more }) => {
                    self.due = true;
                    self.behind.extend(more.then_some(workspace));
                }
                // One that fails must not block the others.
                Err(error) => tracing::warn!(%workspace, %error, "webhook fan-out failed; retrying"),
            }
        }
        if std::mem::take(&mut self.due) { self.start_due().await } else { Ok(()) }
    }

    fn remember_quiet(&mut self, workspace: WorkspaceId) {
        if self.quiet.len() >= MAX_QUIET {
            self.quiet.clear();
        }
        self.quiet.insert(workspace);
    }

    async fn start_due(&mut self) -> Result<()> {
        let slots = MAX_CONCURRENT.saturating_sub(self.running.len());
        if slots == 0 {
            return Ok(());
        }
        self.checked_due_at = Some(Instant::now());
        let now = self.app.now();
        let (after, limit) = (self.turns.after().to_owned(), self.turns.candidate_limit(slots));
        let find =
            self.app.db().system_read(async move |tx| webhooks::due_workspaces(tx, now, &after, limit).await);
        let waiting: Vec<WorkspaceId> = find.await?;
        for (workspace, share) in self.turns.share(waiting, slots, MAX_CONCURRENT_IN_WORKSPACE) {
            // One that was just started may still look unclaimed.
            let (of, limit) = (workspace.clone(), share + self.turns.count(&workspace));
            let find = self.app.db().system_read(async move |tx| webhooks::due(tx, &of, now, limit).await);
            let due: Vec<WebhookId> = find.await?;
            let fresh = due
                .into_iter()
                .filter(|id| !self.running_webhooks.values().any(|(_, running)| running == id));
            for id in fresh.take(share).collect::<Vec<_>>() {
                self.begin(&workspace, id);
            }
        }
        Ok(())
    }

    fn begin(&mut self, workspace: &WorkspaceId, id: WebhookId) {
        let (app, owner, webhook) = (self.app.clone(), workspace.clone(), id.clone());
        // Everything logged here carries the webhook's id.
        let span = tracing::error_span!("webhook", %webhook, workspace = %owner);
        let lost = |error: &Error| tracing::warn!(%error, "webhook deliveries not recorded; retrying");
        let work = async move { deliver(&app, &owner, &webhook).await.inspect_err(lost) };
        let task = self.running.spawn(work.instrument(span));
        self.turns.claim(workspace);
        self.running_webhooks.insert(task.id(), (workspace.clone(), id));
    }

    fn remove(&mut self, id: Id) {
        if let Some((workspace, _)) = self.running_webhooks.remove(&id) {
            self.turns.release(&workspace);
        }
    }

    fn finish(&mut self, done: Result<(Id, Result<usize>), tokio::task::JoinError>) {
        match done {
            Ok((id, _)) => self.remove(id),
            Err(error) => {
                self.remove(error.id());
                tracing::error!(%error, "webhook deliveries aborted; retrying");
            }
        }
    }
}
