//! What a person must approve before it leaves: drafts that a triager wrote, and messages in review.

use std::collections::{BTreeSet, HashMap};

use model::{
    EmailId, ReviewId, ThreadId,
    emails::Email,
    folders::SystemFolder,
    reviews::{ReviewQuery, ReviewState},
};
use operations::{Result, reviews, triagers};
use serde_json::json;

use super::{fields::input, visit::Visit};

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

/// The reviews of these emails that the person can decide about; none for people who cannot.
pub(super) async fn reviews(
    visit: &Visit,
    mailbox: &str,
    emails: &[Email],
) -> Result<HashMap<EmailId, ReviewId>> {
    let is_any = emails.iter().any(|email| email.folder_id == SystemFolder::Review);
    if !is_any || !visit.may(&reviews::APPROVE) {
        return Ok(HashMap::new());
    }
    let query: ReviewQuery =
        input(&json!({ "state": ReviewState::Pending, "mailbox_id": mailbox, "limit": 100 }))?;
    let page = reviews::list(visit.app(), &visit.call(&reviews::LIST)?, query).await?;
    Ok(page.reviews.into_iter().map(|review| (review.email_id, review.id)).collect())
}
