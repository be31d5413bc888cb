//! Credits and request limits: exact under concurrency and across nodes, without a database write per read.
//!
//! Each node leases blocks of a workspace's pools from the store and spends them in memory. What reads spent is
//! settled in batches; what a write spent is stored in the transaction of its effect. A pool that is nearly empty is
//! handed out in small pieces, and a node that needs what another holds unused asks for it back.

mod account;

use std::{
    collections::HashMap,
    ops::ControlFlow,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use model::{CreditClass, Limit, Timestamp, WorkspaceId};
use store::{
    Db, Topic, Tx, Wake,
    metering::{LEASE_SECONDS, PoolKind},
};
use tokio::time::Instant;

pub use self::account::Reservation;
use self::account::{Account, Attempt, Terms, Told};
use crate::{Error, ErrorKind, Result, lock};

/// How often spent amounts are settled; a crash forgets at most the reads of this long.
const SETTLE_EVERY: Duration = Duration::from_millis(50);
/// How long a node keeps an unused lease that others may need.
const IDLE_LEASE: Duration = Duration::from_secs(1);
/// How long a workspace without calls is remembered.
const FORGET_AFTER: Duration = Duration::from_mins(10);

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
    accounts: Mutex<HashMap<WorkspaceId, Arc<Account>>>,
    dirty: Mutex<Vec<Arc<Account>>>,
}

impl Meter {
    /// The meter of a serving node, which settles in the background for as long as it lives.
    pub async fn start(db: Db, node: String) -> Result<Self> {
        if db.is_sole_node() {
            db.system_write(async |tx| store::metering::forget_leases(tx).await).await?;
        }
        Ok(Self::attach(db, node))
    }

    /// A meter beside that of a serving node, whose leases it leaves alone.
    pub fn attach(db: Db, node: String) -> Self {
        let shared = Arc::new(Shared {
            db,
            node,
            accounts: Mutex::new(HashMap::new()),
            dirty: Mutex::new(Vec::new()),
        });
        tokio::spawn(settle_loop(Arc::downgrade(&shared)));
        // A sole node has nobody to give anything back to.
        if !shared.db.is_sole_node() {
            tokio::spawn(recall_loop(Arc::downgrade(&shared), shared.db.listen(Topic::Recall)));
        }
        Self(shared)
    }

    /// Counts a request. `Err` when the window is full; the rate is told either way.
    pub async fn count_request(
        &self,
        workspace: &WorkspaceId,
        limit: Limit,
        now: Timestamp,
    ) -> Result<(Option<Rate>, bool)> {
        let Some(size) = limit_of(limit) else { return Ok((None, true)) };
        let account = self.0.account(workspace);
        let terms = Terms { kind: PoolKind::Requests, period_start: now.minute(), limit: Some(size) };
        let allowed = match self.0.take(&account, terms, 1, None).await? {
            Some(reservation) => {
                reservation.keep();
                true
            }
            None => false,
        };
        let used = account.used(PoolKind::Requests, now.minute());
        let reset = now.seconds_until(now.minute().plus_seconds(60)).max(1);
        Ok((Some(Rate { limit: size, remaining: (size - used).max(0), reset }), allowed))
    }

    /// Sets credits aside for a call. They go back unless the reservation is kept or written to the ledger.
    pub async fn reserve(
        &self,
        workspace: &WorkspaceId,
        limit: Limit,
        class: CreditClass,
        now: Timestamp,
        what_is_left: bool,
    ) -> Result<Reservation> {
        let account = self.0.account(workspace);
        let terms =
            Terms { kind: PoolKind::Credits, period_start: now.month_start(), limit: limit_of(limit) };
        let price = i64::try_from(class.credits()).map_err(Error::internal)?;
        if let Some(reservation) = self.0.take(&account, terms, price, Some((class, now))).await? {
            return Ok(reservation);
        }
        if what_is_left {
            return Ok(Reservation::nothing(account, class, now));
        }
        let fix = "Wait for the next period or move the workspace to a larger plan.";
        let used = account.used(PoolKind::Credits, terms.period_start);
        let left = terms.limit.map_or(0, |limit| limit - used);
        // What is left on another node is not known here, so only what is surely too little is told.
        let error = if (1..price).contains(&left) {
            let message = format!("This call costs {price} credits; {left} are left in this period.");
            Error::with_message(ErrorKind::CreditsExhausted, message)
        } else {
            Error::new(ErrorKind::CreditsExhausted)
        };
        Err(error.with_fix(fix))
    }

    /// The credits of a workspace as this node knows them.
    pub async fn credits(
        &self,
        workspace: &WorkspaceId,
        limit: Limit,
        now: Timestamp,
        fresh: bool,
    ) -> Result<Credits> {
        let account = self.0.account(workspace);
        let terms =
            Terms { kind: PoolKind::Credits, period_start: now.month_start(), limit: limit_of(limit) };
        if fresh || !account.knows(&terms) {
            let _turn = account.asking.lock().await;
            account.adopt(&terms);
            self.0.settle(&account, Some((terms, 0)), false).await?;
        }
        let used = account.used(PoolKind::Credits, terms.period_start);
        Ok(Credits { used, remaining: terms.limit.map(|limit| (limit - used).max(0)) })
    }

    /// Counts a call for the history.
    pub fn count_call(&self, workspace: &WorkspaceId, now: Timestamp, failed: bool) {
        let account = self.0.account(workspace);
        account.count_usage(now.day(), "calls", 1);
        if failed {
            account.count_usage(now.day(), "errors", 1);
        }
        self.0.mark_dirty(&account);
    }

    /// Settles everything and gives all leases back, at the end of the process.
    pub async fn close(&self) {
        let accounts: Vec<_> = lock(&self.0.accounts).values().cloned().collect();
        for account in accounts {
            let _turn = account.asking.lock().await;
            if let Err(error) = self.0.settle(&account, None, true).await {
                tracing::warn!(%error, "could not settle at the end");
            }
        }
    }
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
        let account = Arc::new(Account::new(workspace.clone()));
        accounts.insert(workspace.clone(), account.clone());
        account
    }

    fn mark_dirty(&self, account: &Arc<Account>) {
        if account.become_dirty() {
            lock(&self.dirty).push(account.clone());
        }
    }

    /// Takes `amount` of a pool, or `None` when all nodes together have not that much left.
    async fn take(
        self: &Arc<Self>,
        account: &Arc<Account>,
        terms: Terms,
        amount: i64,
        class: Option<(CreditClass, Timestamp)>,
    ) -> Result<Option<Reservation>> {
        // Others give back what they do not use when asked; one that crashed does so when its lease lapses.
        let deadline = Instant::now() + Duration::from_secs(u64::try_from(LEASE_SECONDS).unwrap_or(3) + 1);
        loop {
            if let ControlFlow::Break(answer) = self.attempt(account, terms, amount, class) {
                return Ok(answer);
            }
            let turn = account.asking.lock().await;
            if let ControlFlow::Break(answer) = self.attempt(account, terms, amount, class) {
                return Ok(answer);
            }
            let told = self.settle(account, Some((terms, amount)), false).await?;
            if let ControlFlow::Break(answer) = self.attempt(account, terms, amount, class) {
                return Ok(answer);
            }
            if !told.short && Instant::now() < deadline {
                continue;
            }
            if told.held_by_others == 0 || Instant::now() >= deadline {
                account.refuse(terms.kind, amount);
                return Ok(None);
            }
            let recall = async |tx: &mut Tx| Ok::<_, Error>(tx.wake(Topic::Recall, None).await?);
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
    ) -> ControlFlow<Option<Reservation>> {
        match account.attempt(terms, amount) {
            Attempt::Taken(generation) => {
                self.mark_dirty(account);
                let taken = Reservation::new(account.clone(), terms, amount, generation, class, &self.node);
                ControlFlow::Break(Some(taken))
            }
            Attempt::Refused => ControlFlow::Break(None),
            Attempt::MustAsk => ControlFlow::Continue(()),
        }
    }

    /// Settles both pools of a workspace in one transaction, asking for more of one of them, and tells what the
    /// store said about that one. The account's `asking` lock must be held.
    async fn settle(&self, account: &Account, need: Option<(Terms, i64)>, give_back: bool) -> Result<Told> {
        let asked_at = Instant::now();
        let plan = account.plan_settlement(need, give_back);
        if plan.is_empty() {
            return Ok(Told::default());
        }
        let (node, sole) = (self.node.clone(), self.db.is_sole_node());
        let work = plan.clone();
        let outcome = self
            .db
            .write(&account.workspace, async move |tx| {
                let mut adjusted = Vec::with_capacity(work.adjustments.len());
                for ask in &work.adjustments {
                    adjusted.push(store::metering::adjust(tx, &node, sole, ask).await?);
                }
                for ((day, metric), amount) in &work.usage {
                    store::metering::add_usage(tx, *day, metric, *amount).await?;
                }
                Ok::<_, Error>(adjusted)
            })
            .await;
        match outcome {
            Ok(adjusted) => {
                let expiry = if sole { None } else { Some(asked_at + lease_time()) };
                Ok(account.apply(&plan, &adjusted, expiry, need.map(|(terms, _)| terms.kind)))
            }
            Err(error) => {
                account.undo(plan);
                Err(error)
            }
        }
    }
}

/// A little less than the store counts, so that this node stops first.
fn lease_time() -> Duration {
    Duration::from_secs(u64::try_from(LEASE_SECONDS).unwrap_or(3)).saturating_sub(Duration::from_millis(500))
}

async fn settle_loop(shared: Weak<Shared>) {
    let mut last_forget = Instant::now();
    loop {
        tokio::time::sleep(SETTLE_EVERY).await;
        let Some(shared) = shared.upgrade() else { return };
        let dirty = std::mem::take(&mut *lock(&shared.dirty));
        let mut tasks = tokio::task::JoinSet::new();
        for account in dirty {
            let shared = shared.clone();
            tasks.spawn(async move {
                let _turn = account.asking.lock().await;
                account.become_clean();
                let give_back = !shared.db.is_sole_node() && account.idle_for() > IDLE_LEASE;
                if let Err(error) = shared.settle(&account, None, give_back).await {
                    tracing::warn!(%error, workspace = %account.workspace, "could not settle usage");
                }
                // A lease that is still held must be looked at again, so that it is given back in time.
                if account.has_more_to_do(shared.db.is_sole_node()) {
                    shared.mark_dirty(&account);
                }
            });
        }
        while tasks.join_next().await.is_some() {}
        if last_forget.elapsed() > Duration::from_mins(1) {
            last_forget = Instant::now();
            lock(&shared.accounts).retain(|_, account| {
                Arc::strong_count(account) > 1 || account.idle_for() < FORGET_AFTER || account.is_in_use()
            });
        }
    }
}

async fn recall_loop(shared: Weak<Shared>, mut wakes: tokio::sync::broadcast::Receiver<Wake>) {
    use tokio::sync::broadcast::error::RecvError;
    loop {
        let wake = match wakes.recv().await {
            Ok(wake) => wake,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        let Some(shared) = shared.upgrade() else { return };
        let held = lock(&shared.accounts).get(&wake.workspace).cloned();
        if let Some(account) = held {
            tokio::spawn(async move {
                let _turn = account.asking.lock().await;
                if let Err(error) = shared.settle(&account, None, true).await {
                    tracing::warn!(%error, "could not give a lease back");
                }
            });
        }
    }
}
