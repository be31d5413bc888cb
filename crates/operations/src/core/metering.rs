//! Credits and request limits: exact under concurrency, across nodes and crashes, without a database write per read.
//!
//! Each node charges small advances to a workspace's pools in the store and spends them in memory: at most what a
//! second needs, and a hundredth of the pool. A read's spending is in a local log before it is answered, so that the
//! next process can refund what a killed one had not spent; a write's is stored in the transaction of its effect. A
//! node that finds a pool empty asks the others to return their unused advances.

mod account;
mod accounts;
mod pool;
mod recovery;

use std::{path::Path, sync::Arc};

use model::{CreditClass, Limit, Timestamp, WorkspaceId};
use store::{
    Db,
    metering::PoolKind,
    spend_log::{OrphanedLog, SpendLog},
};

pub use self::account::Reservation;
use self::{
    accounts::{Shared, WORKER, commit_loop, return_loop},
    pool::{Purpose, Terms},
    recovery::{is_present, recover},
};
use crate::core::{
    error::{Error, ErrorKind, Result},
    lock::lock,
    ports::Clock,
    supervisor::Supervisor,
};

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
        self.0.return_unspent(workspace).await;
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
