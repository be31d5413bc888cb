//! Drafts that a triager wrote and that a person must approve before they leave.

use model::{EmailId, triagers::RecentRunsQuery};
use operations::triagers;

use super::visit::Visit;

/// Runs of triagers that are looked through; older drafts have lost their mark.
const MAX_RUNS: i64 = 200;

/// The drafts of a mailbox that need approval; none for people who may not see what triagers did.
pub(super) async fn pending(visit: &Visit, mailbox: &str) -> Vec<EmailId> {
    let Ok(call) = visit.call(&triagers::RECENT) else { return Vec::new() };
    let Ok(recent) = triagers::recent(visit.app(), &call, mailbox, RecentRunsQuery { limit: MAX_RUNS }).await
    else {
        return Vec::new();
    };
    let tasks = recent.runs.into_iter().flat_map(|run| run.tasks);
    tasks.filter(|task| task.requires_approval == Some(true)).filter_map(|task| task.draft_id).collect()
}
