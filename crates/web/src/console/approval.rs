//! Drafts that a triager wrote and that a person must approve before they leave.

use model::EmailId;
use operations::triagers;

use super::visit::Visit;

/// Runs of triagers that are looked through; older drafts have lost their mark.
const MAX_RUNS: i64 = 200;

/// The drafts of a mailbox that need approval; none for people who may not see what triagers did.
pub(super) async fn pending(visit: &Visit, mailbox: &str) -> Vec<EmailId> {
    let Ok(call) = visit.call(&triagers::RECENT) else { return Vec::new() };
    triagers::drafts_to_approve(visit.app(), &call, mailbox, MAX_RUNS).await.unwrap_or_default()
}
