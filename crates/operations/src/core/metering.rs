//! Credits and request limits: exact under concurrency, across nodes and crashes, without a database write per read.
//!
//! Each node charges small advances to a workspace's pools in the store and spends them in memory: at most what a
//! second needs, and a hundredth of the pool. A read's spending is in a local log before it is answered, so that the
//! next process can refund what a killed one had not spent; a write's is stored in the transaction of its effect. A
//! node that finds a pool empty asks the others to return their unused advances.

mod account;
mod pool;
mod recovery;

use std::{
    collections::HashMap,
    ops::ControlFlow,
    path::Path,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use model::{CreditClass, Limit, Timestamp, WorkspaceId};
use store::{
    Db, Topic, Tx,
    metering::{ALIVE_SECONDS, PoolKind},
    spend_log::{OrphanedLog, PeriodSpend, SpendLog},
};
use tokio::time::Instant;

pub use self::account::Reservation;
use self::{
    account::{Account, PoolReply},
    pool::{Attempt, Pool, Purpose, Terms},
    recovery::{is_present, recover},
};
use crate::core::{
    error::{Error, ErrorKind, Result},
    lock::lock,
    ports::Clock,
    supervisor::{Exit, Supervisor, catch_item_panic},
};

/// The worker that commits usage.
const WORKER: &str = "metering";
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

/// The state of the request limit after a call.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Requests in a window.
    pub limit: i64,
    /// Requests left in this one.
    pub remaining: i64,
    /// Seconds until the next.
    pub reset: u64,
}

/// The state of the credits after a call.
#[derive(Clone, Copy, Debug)]
pub struct Credits {
    /// Used in the period, calls in flight included.
    pub used: i64,
    /// Left; `None` when soft-unlimited.
    pub remaining: Option<i64>,
}

/// Counts what workspaces use.
#[derive(Clone)]
pub struct Meter(Arc<Shared>);

struct Shared {
    db: Db,
    node: String,
    clock: Arc<dyn Clock>,
    accounts: Mutex<HashMap<WorkspaceId, Arc<Account>>>,
    dirty: Mutex<Vec<Arc<Account>>>,
    /// Locked during a commit: a second call waits for the one in progress.
    committing: tokio::sync::Mutex<()>,
    log: Option<Arc<SpendLog>>,
}

impl Meter {
    /// The meter of a serving node. It logs its spending in the folder, where it also finds what earlier processes
    /// had not spent.
    #[crate::boxed]
    pub async fn start(db: Db, node: String, clock: Arc<dyn Clock>, folder: &Path) -> Result<Self> {
        let (before, now) = (folder.to_owned(), clock.now());
        let remains = blocking(move || SpendLog::orphaned(&before)).await?;
        recover(&db, &remains, now).await?;
        let log = {
            let (folder, node) = (folder.to_owned(), node.clone());
            blocking(move || SpendLog::create(&folder, &node)).await?
        };
        let meter = Self::open(db, node, clock, Some(log));
        for (workspace, figures) in remains.iter().flat_map(|left| &left.figures) {
            if meter.0.db.is_sole_node() && is_present(figures.requests, now) {
                meter.0.continue_window(workspace, figures.requests);
            }
        }
        blocking(move || remains.into_iter().try_for_each(OrphanedLog::delete)).await?;
        Ok(meter)
    }

    /// A meter beside a serving node, whose advances it leaves alone.
    pub fn attach(db: Db, node: String, clock: Arc<dyn Clock>) -> Self {
        Self::open(db, node, clock, None)
    }

    fn open(db: Db, node: String, clock: Arc<dyn Clock>, log: Option<Arc<SpendLog>>) -> Self {
        let (accounts, dirty, committing) = Default::default();
        Self(Arc::new(Shared { db, node, clock, accounts, dirty, committing, log }))
    }

    /// Commits usage in the background while the meter lives, and returns advances that other nodes ask for.
    pub(crate) fn run(&self, supervisor: &Arc<Supervisor>) {
        let shared = Arc::downgrade(&self.0);
        supervisor.start(WORKER, move || commit_loop(shared.clone()));
        // A sole node has no other node to return anything to.
        if !self.0.db.is_sole_node() {
            let shared = Arc::downgrade(&self.0);
            supervisor.start("recalls", move || return_loop(shared.clone()));
        }
    }

    /// Counts a request. False when the window is full; the rate is returned either way. If the store has to be asked,
    /// it is asked for the credits of the call as well, so that an isolated call costs one commit.
    #[crate::boxed]
    pub async fn count_request(
        &self,
        workspace: &WorkspaceId,
        limit: Limit,
        expected: Option<(Limit, CreditClass)>,
        now: Timestamp,
    ) -> Result<(Option<Rate>, bool)> {
        let Some(size) = limit_of(limit) else { return Ok((None, true)) };
        let account = self.0.account(workspace);
        let terms = Terms::at(now, PoolKind::Requests, Some(size));
        let expected = expected.map(|(credits, class)| {
            let price = i64::try_from(class.credits()).unwrap_or(i64::MAX);
            (Terms::at(now, PoolKind::Credits, limit_of(credits)), price)
        });
        let allowed = match self.0.take(&account, (terms, 1), expected, None, now).await? {
            Some(reservation) => {
                reservation.commit();
                true
            }
            None => false,
        };
        let used = account.used(PoolKind::Requests, terms.period_start);
        let reset = now.seconds_until(now.minute().plus_seconds(60)).max(1);
        Ok((Some(Rate { limit: size, remaining: (size - used).max(0), reset }), allowed))
    }

    /// Reserves credits for a call. Dropping the reservation refunds them.
    #[crate::boxed]
    pub async fn reserve(
        &self,
        workspace: &WorkspaceId,
        limit: Limit,
        class: CreditClass,
        now: Timestamp,
        allow_empty: bool,
    ) -> Result<Reservation> {
        let account = self.0.account(workspace);
        let terms = Terms::at(now, PoolKind::Credits, limit_of(limit));
        let price = i64::try_from(class.credits()).map_err(Error::internal)?;
        if let Some(reservation) =
            self.0.take(&account, (terms, price), None, Some((class, now)), now).await?
        {
            return Ok(reservation);
        }
        if allow_empty {
            return Ok(Reservation::nothing(account, class, now));
        }
        metrics::counter!("credits_refused_total").increment(1);
        let fix = "Wait for the next period or move the workspace to a larger plan.";
        let used = account.used(PoolKind::Credits, terms.period_start);
        let left = terms.limit.map_or(0, |limit| limit - used);
        // Other nodes' remaining advances are unknown here, so the remainder is only reported when it is surely too
        // small.
        let error = if (1..price).contains(&left) {
            let message = format!("This call costs {price} credits; {left} are left in this period.");
            Error::with_message(ErrorKind::CreditsExhausted, message)
        } else {
            Error::new(ErrorKind::CreditsExhausted)
        };
        Err(error.with_fix(fix))
    }

    /// The credits of a workspace as this node knows them.
    #[crate::boxed]
    pub async fn credits(
        &self,
        workspace: &WorkspaceId,
        limit: Limit,
        now: Timestamp,
        fresh: bool,
    ) -> Result<Credits> {
        let account = self.0.account(workspace);
        let terms = Terms::at(now, PoolKind::Credits, limit_of(limit));
        if fresh || !account.knows(&terms) {
            let _turn = account.asking.lock().await;
            account.adopt(&terms);
            self.0.commit(&account, Some((terms, 0)), Purpose::Commit).await?;
        }
        let used = account.used(PoolKind::Credits, terms.period_start);
        Ok(Credits { used, remaining: terms.limit.map(|limit| (limit - used).max(0)) })
    }

    /// Counts a call for the usage history, and logs its request before it is answered.
    pub fn count_call(&self, workspace: &WorkspaceId, now: Timestamp, failed: bool) {
        let account = self.0.account(workspace);
        account.count_usage(now.day(), "calls", 1);
        if failed {
            account.count_usage(now.day(), "errors", 1);
        }
        account.write_log();
        self.0.mark_dirty(&account);
    }

    /// Commits what was spent since the last time. False when the store could not be written.
    #[crate::boxed]
    pub async fn commit(&self) -> bool {
        self.0.commit_dirty(|_| true).await
    }

    /// The same for one workspace, before its usage is read.
    #[crate::boxed]
    pub async fn commit_workspace(&self, workspace: &WorkspaceId) -> bool {
        self.0.commit_dirty(|account| account.workspace == *workspace).await
    }

    /// Drops workspaces from memory that have had no calls for a while.
    #[crate::boxed]
    pub async fn forget_idle(&self) {
        self.0.forget_idle().await;
    }

    /// Commits everything and returns all advances, when the process stops.
    #[crate::boxed]
    pub async fn close(&self) {
        let accounts: Vec<_> = lock(&self.0.accounts).values().cloned().collect();
        // The log stays: the next start of a sole node reads the current windows from it.
        for account in accounts {
            let _turn = account.asking.lock().await;
            if let Err(error) = self.0.commit(&account, None, Purpose::Close).await {
                tracing::warn!(%error, "usage not committed at shutdown; the next start recovers it");
            }
        }
    }

    /// Returns the unused advance of a workspace, as another node asked.
    #[crate::boxed]
    pub async fn return_unspent(&self, workspace: &WorkspaceId) {
        let known = lock(&self.0.accounts).get(workspace).cloned();
        let Some(account) = known else { return };
        let _turn = account.asking.lock().await;
        if let Err(error) = self.0.commit(&account, None, Purpose::Return).await {
            tracing::warn!(%error, "advance not returned; other nodes retry");
        }
    }
}

/// File I/O, on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)?.map_err(Error::internal)
}

fn limit_of(limit: Limit) -> Option<i64> {
    limit.get().map(|number| i64::try_from(number).unwrap_or(i64::MAX))
}

impl Shared {
    fn account(&self, workspace: &WorkspaceId) -> Arc<Account> {
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
    fn continue_window(&self, workspace: &WorkspaceId, window: PeriodSpend) {
        let account = self.new_account(workspace, Pool::window(window));
        account.log_periods();
        lock(&self.accounts).insert(workspace.clone(), account);
    }

    fn mark_dirty(&self, account: &Arc<Account>) {
        if account.set_dirty() {
            lock(&self.dirty).push(account.clone());
        }
    }

    /// Reserves `amount` from a pool, or `None` when all nodes together have not that much left. What is expected to be
    /// taken next, from another pool, is asked for in the same commit.
    async fn take(
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
    async fn commit(
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
    async fn commit_dirty(self: &Arc<Self>, choose: impl Fn(&Account) -> bool) -> bool {
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

    async fn forget_idle(self: &Arc<Self>) {
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
}

async fn commit_loop(shared: Weak<Shared>) -> Exit {
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

async fn return_loop(shared: Weak<Shared>) -> Exit {
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
        tokio::spawn(async move { Meter(shared).return_unspent(&wake.workspace).await });
    }
}
