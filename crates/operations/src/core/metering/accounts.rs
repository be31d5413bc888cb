//! The accounts of a node in memory, and the commits that settle them with the store.

use std::{
    collections::HashMap,
    ops::ControlFlow,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use model::{CreditClass, Timestamp, WorkspaceId};
use store::{
    Db, Topic, Tx,
    metering::{ALIVE_SECONDS, PoolKind},
    spend_log::{PeriodSpend, SpendLog},
};
use tokio::time::Instant;

use super::{
    account::{Account, PoolReply, Reservation},
    pool::{Attempt, Pool, Purpose, Terms},
};
use crate::core::{
    error::{Error, Result},
    lock::lock,
    ports::Clock,
    supervisor::{Exit, catch_item_panic},
};

/// The worker that commits usage.
pub(super) const WORKER: &str = "metering";
/// How often usage is looked at: an advance that runs out is renewed before it is needed.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// The delay after the store could not be written.
const COMMIT_RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long a node keeps an unused advance that other nodes may need.
const IDLE_ADVANCE_MICROS: i64 = 1_000_000;
/// How long a workspace without calls stays in memory.
const FORGET_AFTER_MICROS: i64 = 600_000_000;
/// How often idle workspaces are dropped from memory.
const FORGET_INTERVAL: Duration = Duration::from_mins(1);

/// The accounts of a node, and how they are settled with the store.
pub(super) struct Shared {
    pub(super) db: Db,
    pub(super) node: String,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) accounts: Mutex<HashMap<WorkspaceId, Arc<Account>>>,
    pub(super) dirty: Mutex<Vec<Arc<Account>>>,
    /// Locked during a commit: a second call waits for the one in progress.
    pub(super) committing: tokio::sync::Mutex<()>,
    pub(super) log: Option<Arc<SpendLog>>,
}

impl Shared {
    pub(super) fn account(&self, workspace: &WorkspaceId) -> Arc<Account> {
        let mut accounts = lock(&self.accounts);
        if let Some(account) = accounts.get(workspace) {
            return account.clone();
        }
        let requests = if self.db.is_sole_node() {
            Pool::window(PeriodSpend::NOTHING)
        } else {
            Pool::shared(PoolKind::Requests)
        };
        let account = self.new_account(workspace, requests);
        accounts.insert(workspace.clone(), account.clone());
        account
    }

    fn new_account(&self, workspace: &WorkspaceId, requests: Pool) -> Arc<Account> {
        let slot = self.log.as_ref().map(|log| log.slot(workspace));
        Arc::new(Account::new(workspace.clone(), requests, slot, self.clock.now()))
    }

    /// Continues the request window of an earlier process of a sole node. It is logged at once, since this process
    /// may be killed before the workspace calls.
    pub(super) fn continue_window(&self, workspace: &WorkspaceId, window: PeriodSpend) {
        let account = self.new_account(workspace, Pool::window(window));
        account.log_periods();
        lock(&self.accounts).insert(workspace.clone(), account);
    }

    pub(super) fn mark_dirty(&self, account: &Arc<Account>) {
        if account.set_dirty() {
            lock(&self.dirty).push(account.clone());
        }
    }

    /// Reserves `amount` from a pool, or `None` when all nodes together have not that much left. What is expected to be
    /// taken next, from another pool, is asked for in the same commit.
    pub(super) async fn take(
        self: &Arc<Self>,
        account: &Arc<Account>,
        (terms, amount): (Terms, i64),
        expected: Option<(Terms, i64)>,
        class: Option<(CreditClass, Timestamp)>,
        now: Timestamp,
    ) -> Result<Option<Reservation>> {
        // Live nodes return unused advances when asked. Those of a dead node stay charged until recovery.
        let deadline = Instant::now() + Duration::from_secs(u64::try_from(ALIVE_SECONDS).unwrap_or(3) + 1);
        loop {
            if let ControlFlow::Break(answer) = self.attempt(account, terms, amount, class, now) {
                return Ok(answer);
            }
            let turn = account.asking.lock().await;
            if let ControlFlow::Break(answer) = self.attempt(account, terms, amount, class, now) {
                return Ok(answer);
            }
            if let Some((terms, amount)) = &expected {
                account.expect(terms, *amount, now);
            }
            let reply = self.commit(account, Some((terms, amount)), Purpose::Commit).await?;
            if let ControlFlow::Break(answer) = self.attempt(account, terms, amount, class, now) {
                return Ok(answer);
            }
            if !reply.short && Instant::now() < deadline {
                continue;
            }
            if reply.unspent_by_others == 0 || Instant::now() >= deadline {
                account.refuse(terms.kind, amount, now);
                return Ok(None);
            }
            let recall = async |tx: &mut Tx| {
                tx.wake(Topic::Recall, None);
                Ok::<_, Error>(())
            };
            self.db.write(&account.workspace, recall).await?;
            drop(turn);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn attempt(
        self: &Arc<Self>,
        account: &Arc<Account>,
        terms: Terms,
        amount: i64,
        class: Option<(CreditClass, Timestamp)>,
        now: Timestamp,
    ) -> ControlFlow<Option<Reservation>> {
        match account.attempt(terms, amount, now) {
            Attempt::Reserved(period_start) => {
                self.mark_dirty(account);
                let terms = Terms { period_start, ..terms };
                ControlFlow::Break(Some(Reservation::new(account.clone(), terms, amount, class, &self.node)))
            }
            Attempt::Refused => ControlFlow::Break(None),
            Attempt::AskStore => ControlFlow::Continue(()),
        }
    }

    /// Commits both pools of a workspace in one transaction, asking for more of one of them, and returns the store's
    /// reply about that one. The account's `asking` lock must be held.
    pub(super) async fn commit(
        &self,
        account: &Account,
        need: Option<(Terms, i64)>,
        purpose: Purpose,
    ) -> Result<PoolReply> {
        let plan = account.plan_commit(need, purpose, self.clock.now());
        if plan.is_empty() {
            return Ok(PoolReply::default());
        }
        // After a crash an advance is only refunded if the log knows its period.
        account.log_periods();
        let (node, work, charges) = (self.node.clone(), plan.clone(), plan.charges);
        let body = async move |tx: &mut Tx| {
            let mut adjusted = Vec::with_capacity(work.adjustments.len());
            for ask in &work.adjustments {
                adjusted.push(store::metering::adjust(tx, &node, ask).await?);
            }
            for ((day, metric), amount) in &work.usage {
                store::metering::add_usage(tx, *day, metric, *amount).await?;
            }
            Ok::<_, Error>(adjusted)
        };
        // What is charged must be on disk before it is spent. The rest is repeated if the store loses it in a crash, but
        // for the usage history, which then lacks at most half a second.
        let outcome = if charges {
            self.db.write(&account.workspace, body).await
        } else {
            self.db.asynchronous_write(&account.workspace, body).await
        };
        match outcome {
            Ok(adjusted) => {
                let reply = account.apply(&plan, &adjusted, need.map(|(terms, _)| terms.kind));
                account.log_periods();
                Ok(reply)
            }
            Err(error) => {
                account.undo(plan);
                Err(error)
            }
        }
    }

    /// Commits the usage of those accounts that changed and that the function chooses. False when the store could not
    /// be written.
    pub(super) async fn commit_dirty(self: &Arc<Self>, choose: impl Fn(&Account) -> bool) -> bool {
        let _turn = self.committing.lock().await;
        let dirty: Vec<_> = lock(&self.dirty).extract_if(.., |account| choose(account)).collect();
        // Detached tasks, so that none is cut off half-way when its caller is cancelled.
        let begin = |account: Arc<Account>| {
            let shared = self.clone();
            tokio::spawn(async move {
                let committed = catch_item_panic(WORKER, shared.commit_account(&account)).await;
                committed.unwrap_or_else(|_| {
                    shared.mark_dirty_again(&account);
                    false
                })
            })
        };
        let tasks: Vec<_> = dirty.into_iter().map(begin).collect();
        let mut all_stored = true;
        for task in tasks {
            all_stored &= task.await.unwrap_or(false);
        }
        all_stored
    }

    /// Marks an account again whose commit may have been lost.
    fn mark_dirty_again(&self, account: &Arc<Account>) {
        account.set_clean();
        self.mark_dirty(account);
    }

    async fn commit_account(self: &Arc<Self>, account: &Arc<Account>) -> bool {
        let _turn = account.asking.lock().await;
        account.set_clean();
        let (sole, now) = (self.db.is_sole_node(), self.clock.now());
        let is_idle = !sole && account.idle_micros(now) > IDLE_ADVANCE_MICROS;
        let purpose = if is_idle { Purpose::Close } else { Purpose::Commit };
        let outcome = self.commit(account, None, purpose).await;
        if let Err(error) = &outcome {
            tracing::warn!(%error, workspace = %account.workspace, "usage commit failed; retrying");
        }
        // An advance that other nodes may need is checked again, so that it is returned in time.
        if outcome.is_err() || (!sole && account.has_unspent()) {
            self.mark_dirty(account);
        }
        outcome.is_ok()
    }

    pub(super) async fn forget_idle(self: &Arc<Self>) {
        let now = self.clock.now();
        let is_idle = |account: &Arc<Account>| account.idle_micros(now) > FORGET_AFTER_MICROS;
        let idle: Vec<_> =
            lock(&self.accounts).values().filter(|account| is_idle(account)).cloned().collect();
        for account in idle {
            let _turn = account.asking.lock().await;
            let closed = match self.commit(&account, None, Purpose::Close).await {
                Ok(_) => self.verify_close(&account).await,
                Err(error) => Err(error),
            };
            if let Err(error) = closed {
                tracing::warn!(%error, workspace = %account.workspace, "usage commit failed; retrying");
                continue;
            }
            let mut accounts = lock(&self.accounts);
            // Only the map and this function have it: no call can begin with it.
            if Arc::strong_count(&account) == 2 && account.is_closed() {
                accounts.remove(&account.workspace);
                account.release_log_slot();
            }
        }
    }

    /// Finds out whether the store still has a return of advances that was acknowledged before it was on disk. If not,
    /// the account is kept, and returns them again: its figures are needed for that.
    async fn verify_close(&self, account: &Account) -> Result<()> {
        if self.db.is_sole_node() || account.is_durable() {
            return Ok(());
        }
        let node = self.node.clone();
        let read = async move |tx: &mut Tx| store::metering::has_advance(tx, &node).await;
        let is_lost = self.db.read(&account.workspace, read).await?;
        account.set_durable(is_lost);
        Ok(())
    }

    /// Returns what this node has in advance of a workspace and does not use.
    pub(super) async fn return_unspent(&self, workspace: &WorkspaceId) {
        let known = lock(&self.accounts).get(workspace).cloned();
        let Some(account) = known else { return };
        let _turn = account.asking.lock().await;
        if let Err(error) = self.commit(&account, None, Purpose::Return).await {
            tracing::warn!(%error, "advance not returned; other nodes retry");
        }
    }
}

pub(super) async fn commit_loop(shared: Weak<Shared>) -> Exit {
    if let Some(shared) = shared.upgrade() {
        // After a restart it is unknown which accounts the last run was committing.
        let all: Vec<_> = lock(&shared.accounts).values().cloned().collect();
        for account in &all {
            shared.mark_dirty_again(account);
        }
    }
    let mut last_forget = Instant::now();
    let mut pause = CHECK_INTERVAL;
    loop {
        tokio::time::sleep(pause).await;
        let Some(shared) = shared.upgrade() else { return Exit::Finished };
        let now = shared.clock.now();
        let is_sole_node = shared.db.is_sole_node();
        let committed = shared.commit_dirty(|account| account.is_due(now, is_sole_node)).await;
        pause = if committed { CHECK_INTERVAL } else { COMMIT_RETRY_DELAY };
        if last_forget.elapsed() > FORGET_INTERVAL {
            last_forget = Instant::now();
            shared.forget_idle().await;
        }
    }
}

pub(super) async fn return_loop(shared: Weak<Shared>) -> Exit {
    use tokio::sync::broadcast::error::RecvError;
    let Some(mut wakes) = shared.upgrade().map(|shared| shared.db.listen(Topic::Recall)) else {
        return Exit::Finished;
    };
    loop {
        let wake = match wakes.recv().await {
            Ok(wake) => wake,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return Exit::Finished,
        };
        let Some(shared) = shared.upgrade() else { return Exit::Finished };
        tokio::spawn(async move { shared.return_unspent(&wake.workspace).await });
    }
}
