//! The nodes of the service: what is wrong with each of them, and with what they do together.

use operations::{
    nodes,
    ports::{Clock, SystemClock},
};
use store::{Db, system};

use super::report::Report;

/// Names what is wrong with the nodes, and otherwise says in one line that nothing is.
pub(super) async fn check(db: &Db, report: &mut Report) {
    // Before its first start the store has no tables.
    let is_current = db.schema_version().await.is_ok_and(|version| version >= Db::newest_schema());
    if db.is_sole_node() || !is_current {
        return;
    }
    // This machine's clock is another matter.
    let clock: store::Result<_> = db.system_read(async |tx| system::store_clock(tx).await).await;
    let now = clock.ok().flatten().unwrap_or_else(|| SystemClock.now());
    let overview = match nodes::overview(db, now).await {
        Ok(overview) => overview,
        Err(error) => return report.fail("nodes", error),
    };
    let mut faults = overview.all_faults().peekable();
    if faults.peek().is_none() {
        return match overview.running() {
            0 => report.ok("nodes", "none is running"),
            running => report.ok("nodes", format!("{running} running, and nothing is wrong")),
        };
    }
    for fault in faults {
        report.warn("nodes", fault);
    }
}
