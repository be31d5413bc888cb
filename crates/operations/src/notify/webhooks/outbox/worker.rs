//! The task that looks for what webhooks have to be told, and tells it.
//!
//! A mail that comes in is news for it, and most workspaces have no webhook: those are remembered, so that their mail
//! costs no look into the store.

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

use super::{Filled, WORKER, deliver, fill};
use crate::core::{
    app::App,
    error::{Error, Result},
    supervisor::isolate,
    turns::Turns,
};

/// Webhooks that one process works on at the same time, and how many of them may be one workspace's.
const MAX_CONCURRENT: usize = 64;
const MAX_CONCURRENT_IN_WORKSPACE: usize = 8;
/// The least time between two searches.
const GATHER: Duration = Duration::from_millis(50);
/// Workspaces that are looked at one by one; more are cheaper to search through.
const FEW: usize = 4;
/// Workspaces that one search for missed events finds.
const MAX_WORKSPACES: i64 = 1000;
/// Workspaces without a webhook that are remembered.
const MAX_QUIET: usize = 10_000;
/// How often work is looked for without being told of any.
const IDLE_POLL: Duration = Duration::from_secs(1);
/// How often events are looked for that nobody told of.
const SEARCH: Duration = Duration::from_secs(10);

/// Delivers until the task is ended. One such task is enough for a process.
#[crate::boxed]
pub async fn work(app: App) {
    if app.db().is_sole_node() {
        let freed = app.db().system_write(async |tx| webhooks::free_all(tx).await).await;
        if let Err(error) = freed.map_err(Error::from) {
            tracing::warn!(%error, "webhooks wait until they are free");
        }
    }
    let (mut events, mut changes) = (app.db().listen(Topic::Event), app.db().listen(Topic::Webhook));
    let mut worker = Worker::new(app);
    let (mut told, mut searched) = (HashSet::new(), None::<Instant>);
    loop {
        let search = told.len() > FEW || searched.is_none_or(|at| at.elapsed() >= SEARCH);
        if search {
            // Where much happens, a search now and then does for all of it.
            if searched.is_some_and(|at| at.elapsed() < GATHER) {
                tokio::time::sleep(GATHER).await;
            }
            searched = Some(Instant::now());
        }
        if let Err(error) = worker.round(std::mem::take(&mut told), search).await {
            tracing::warn!(%error, "webhooks wait");
            // News would not mend what is wrong, and may come without end.
            tokio::time::sleep(IDLE_POLL).await;
        }
        match worker.wait(&mut events, &mut changes, &mut told).await {
            Some(WakeReason::Some) => {}
            Some(WakeReason::Lost) => searched = None,
            None => return,
        }
    }
}

/// Does everything that is due now, and tells how many deliveries were tried: what a worker does, once.
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
            worker.leave(id);
            tried += outcome?;
        }
    }
}

/// What a worker was told while it waited.
enum WakeReason {
    /// What it needs to know.
    Some,
    /// More than could be kept.
    Lost,
}

/// Webhooks that this process works on.
struct Worker {
    app: App,
    running: JoinSet<Result<usize>>,
    places: HashMap<Id, (WorkspaceId, WebhookId)>,
    turns: Turns,
    /// Workspaces with events that were not looked through yet.
    behind: HashSet<WorkspaceId>,
    /// Workspaces without a webhook. Who makes one tells so; what is missed is found by the next search.
    quiet: HashSet<WorkspaceId>,
    /// Whether something may be due, and when that was last looked for.
    due: bool,
    took_up: Option<Instant>,
}

impl Worker {
    fn new(app: App) -> Self {
        Self {
            app,
            running: JoinSet::new(),
            places: HashMap::new(),
            turns: Turns::default(),
            behind: HashSet::new(),
            quiet: HashSet::new(),
            due: true,
            took_up: None,
        }
    }

    /// Waits until there may be something to do. Nothing when the store is closed.
    async fn wait(
        &mut self,
        events: &mut Receiver<Wake>,
        changes: &mut Receiver<Wake>,
        told: &mut HashSet<WorkspaceId>,
    ) -> Option<WakeReason> {
        if !self.behind.is_empty() {
            // There is enough to do; what has ended makes room.
            while let Some(done) = self.running.try_join_next_with_id() {
                self.end(done);
                self.due = true;
            }
            return Some(WakeReason::Some);
        }
        let patience = tokio::time::sleep(IDLE_POLL);
        tokio::pin!(patience);
        loop {
            tokio::select! {
                // First what makes a workspace one that is looked at, then what happens there.
                biased;
                change = changes.recv() => match change {
                    Ok(wake) => {
                        self.due = true;
                        self.hear(wake.workspace, told);
                        return Some(self.gather_changes(changes, told));
                    }
                    Err(RecvError::Lagged(_)) => return Some(self.lose_changes()),
                    Err(RecvError::Closed) => return None,
                },
                Some(done) = self.running.join_next_with_id() => {
                    self.end(done);
                    self.due = true;
                    return Some(WakeReason::Some);
                }
                () = &mut patience => {
                    self.due = true;
                    return Some(WakeReason::Some);
                }
                event = events.recv() => match event {
                    Ok(wake) if self.quiet.contains(&wake.workspace) => {}
                    Ok(wake) => {
                        told.insert(wake.workspace);
                        return Some(self.gather_events(events, told));
                    }
                    Err(RecvError::Lagged(_)) => return Some(WakeReason::Lost),
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }

    /// Looks at a workspace that was thought to have no webhook: what happened there may have been heard before this.
    fn hear(&mut self, workspace: WorkspaceId, told: &mut HashSet<WorkspaceId>) {
        if self.quiet.remove(&workspace) {
            told.insert(workspace);
        }
    }

    /// Any workspace may have a webhook now.
    fn lose_changes(&mut self) -> WakeReason {
        self.due = true;
        self.quiet.clear();
        WakeReason::Lost
    }

    /// Takes all other changes that have come: a round does for all of them, many of which this worker made itself.
    fn gather_changes(
        &mut self,
        changes: &mut Receiver<Wake>,
        told: &mut HashSet<WorkspaceId>,
    ) -> WakeReason {
        loop {
            match changes.try_recv() {
                Ok(wake) => self.hear(wake.workspace, told),
                Err(TryRecvError::Lagged(_)) => return self.lose_changes(),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return WakeReason::Some,
            }
        }
    }

    /// Takes all other events that have come, to be done in one go.
    fn gather_events(&self, events: &mut Receiver<Wake>, told: &mut HashSet<WorkspaceId>) -> WakeReason {
        loop {
            match events.try_recv() {
                Ok(wake) => told.extend((!self.quiet.contains(&wake.workspace)).then_some(wake.workspace)),
                Err(TryRecvError::Lagged(_)) => return WakeReason::Lost,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return WakeReason::Some,
            }
        }
    }

    /// Makes deliveries of new events, and takes up what is due as far as there is room.
    async fn round(&mut self, told: HashSet<WorkspaceId>, search: bool) -> Result<()> {
        let mut workspaces = told;
        if search {
            let most = MAX_WORKSPACES;
            let found: Result<Vec<WorkspaceId>, store::Error> =
                self.app.db().system_read(async move |tx| webhooks::lagging_workspaces(tx, most).await).await;
            workspaces = found?.into_iter().collect();
            self.behind.clear();
            for workspace in &workspaces {
                self.quiet.remove(workspace);
            }
        }
        workspaces.extend(self.behind.drain());
        // Who was only told of events that no webhook wants has nothing new to take up.
        self.due |= search || self.took_up.is_none_or(|at| at.elapsed() >= IDLE_POLL);
        for workspace in workspaces {
            match isolate(WORKER, fill(&self.app, &workspace)).await {
                Ok(Filled::Quiet) => self.remember_quiet(workspace),
                Ok(Filled::Nothing) => {}
                Ok(Filled::Some { more }) => {
                    self.due = true;
                    self.behind.extend(more.then_some(workspace));
                }
                // One that cannot be read must not keep the others waiting.
                Err(error) => tracing::warn!(%workspace, %error, "events wait for being told"),
            }
        }
        if std::mem::take(&mut self.due) { self.take_up().await } else { Ok(()) }
    }

    fn remember_quiet(&mut self, workspace: WorkspaceId) {
        if self.quiet.len() >= MAX_QUIET {
            self.quiet.clear();
        }
        self.quiet.insert(workspace);
    }

    async fn take_up(&mut self) -> Result<()> {
        let room = MAX_CONCURRENT.saturating_sub(self.running.len());
        if room == 0 {
            return Ok(());
        }
        self.took_up = Some(Instant::now());
        let now = self.app.now();
        let (after, most) = (self.turns.after().to_owned(), self.turns.to_look_up(room));
        let find =
            self.app.db().system_read(async move |tx| webhooks::due_workspaces(tx, now, &after, most).await);
        let waiting: Vec<WorkspaceId> = find.await?;
        for (workspace, share) in self.turns.share(waiting, room, MAX_CONCURRENT_IN_WORKSPACE) {
            // One that was just taken up may still look as if nobody worked on it.
            let (of, most) = (workspace.clone(), share + self.turns.holds(&workspace));
            let find = self.app.db().system_read(async move |tx| webhooks::due(tx, &of, now, most).await);
            let due: Vec<WebhookId> = find.await?;
            let fresh = due.into_iter().filter(|id| !self.places.values().any(|(_, running)| running == id));
            for id in fresh.take(share).collect::<Vec<_>>() {
                self.begin(&workspace, id);
            }
        }
        Ok(())
    }

    fn begin(&mut self, workspace: &WorkspaceId, id: WebhookId) {
        let (app, place, webhook) = (self.app.clone(), workspace.clone(), id.clone());
        // Whatever is logged on the way stands under the webhook's id.
        let span = tracing::error_span!("webhook", %webhook, workspace = %place);
        let lost =
            |error: &Error| tracing::warn!(%error, "what came of a webhook's deliveries could not be stored");
        let work = async move { deliver(&app, &place, &webhook).await.inspect_err(lost) };
        let task = self.running.spawn(work.instrument(span));
        self.turns.take(workspace);
        self.places.insert(task.id(), (workspace.clone(), id));
    }

    fn leave(&mut self, id: Id) {
        if let Some((workspace, _)) = self.places.remove(&id) {
            self.turns.release(&workspace);
        }
    }

    fn end(&mut self, done: Result<(Id, Result<usize>), tokio::task::JoinError>) {
        match done {
            Ok((id, _)) => self.leave(id),
            Err(error) => {
                self.leave(error.id());
                tracing::error!(%error, "deliveries of a webhook broke off; they will be tried again");
            }
        }
    }
}
