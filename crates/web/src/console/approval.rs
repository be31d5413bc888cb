//! Drafts that a triager wrote and that a person must approve before they leave.

use std::collections::{BTreeSet, HashMap};

use model::{EmailId, ThreadId, emails::Email, folders::SystemFolder};
use operations::{Result, triagers};

use super::visit::Visit;

/// The drafts among these emails that need approval, and the names of the triagers that wrote them.
pub(super) async fn pending(
    visit: &Visit,
    mailbox: &str,
    emails: &[Email],
) -> Result<HashMap<EmailId, String>> {
    let drafts = emails.iter().filter(|email| email.folder_id == SystemFolder::Drafts);
    let threads: BTreeSet<ThreadId> = drafts.filter_map(|draft| draft.thread_id.clone()).collect();
    in_threads(visit, mailbox, threads.into_iter().collect()).await
}

/// The drafts of these threads that need approval; none for people who may not see what triagers did.
pub(super) async fn in_threads(
    visit: &Visit,
    mailbox: &str,
    threads: Vec<ThreadId>,
) -> Result<HashMap<EmailId, String>> {
    match visit.call(&triagers::RECENT) {
        Ok(call) if !threads.is_empty() => {
            triagers::drafts_to_approve(visit.app(), &call, mailbox, threads).await
        }
        _ => Ok(HashMap::new()),
    }
}
