//! Recovery at start: unspent advances of earlier processes are returned to their pools.

use model::Timestamp;
use store::{
    Db,
    metering::PoolKind,
    spend_log::{OrphanedLog, PeriodSpend},
};

use crate::core::error::{Error, Result};

/// Workspaces whose advances are returned in one transaction.
const MAX_WORKSPACES_PER_TRANSACTION: usize = 500;

/// Returns to the pools what killed processes had charged and not spent.
pub(super) async fn recover(db: &Db, remains: &[OrphanedLog], now: Timestamp) -> Result<()> {
    for left in remains {
        for some in left.figures.chunks(MAX_WORKSPACES_PER_TRANSACTION) {
            let (node, some) = (left.node.clone(), some.to_vec());
            db.system_write(async move |tx| {
                for (workspace, figures) in &some {
                    let tx = tx.enter(workspace);
                    let pools =
                        [(PoolKind::Credits, figures.credits), (PoolKind::Requests, figures.requests)];
                    for (kind, PeriodSpend { period_start, reads }) in pools {
                        store::metering::recover(tx, &node, kind, period_start, reads, now.day()).await?;
                    }
                }
                Ok::<_, Error>(())
            })
            .await?;
        }
    }
    if db.is_sole_node() {
        db.system_write(async |tx| store::metering::forget_advances(tx).await).await?;
    }
    Ok(())
}

/// Whether an earlier process's window is still the current one.
pub(super) fn is_present(window: PeriodSpend, now: Timestamp) -> bool {
    window.reads > 0 && PoolKind::Requests.joins(now.minute(), window.period_start)
}
