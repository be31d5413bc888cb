//! Who hears of a review: the event log, and the admins who want a mail about each.

use model::reviews::ReviewState;
use serde_json::{Value, json};
use store::{
    Tx,
    emails::EmailRecord,
    mailboxes::MailboxRecord,
    reviews::{self, ReviewRecord},
    vault::DataKey,
};

use crate::{
    core::{app::App, error::Result, secrets},
    outbox::sending::automatic::enqueue_system,
};

/// What events say of a review and its message.
pub(crate) fn event_data(review: &ReviewRecord, email: &EmailRecord) -> Value {
    json!({
        "review_id": review.id,
        "email_id": review.email_id,
        "state": review.state,
        "reasons": super::reason_codes(review),
        "thread_id": email.thread_id,
        "subject": email.subject,
        "recipient": email.to_line,
        "expires_at": (review.state == ReviewState::Pending).then_some(review.expires_at),
        "reason": review.reason,
    })
}

/// Sends a mail with a link to each admin who wants one about new reviews.
pub(crate) async fn mail_watchers(
    tx: &mut Tx,
    app: &App,
    key: &DataKey,
    mailbox: &MailboxRecord,
    (review, email): (&ReviewRecord, &EmailRecord),
) -> Result<()> {
    for watcher in reviews::watchers(tx).await? {
        let token = secrets::new_token(app);
        reviews::insert_link(tx, &review.id, &watcher.account, &secrets::hash(&token)).await?;
        let link = format!("{}/console/reviews/{}?token={token}", app.settings().public_url, review.id);
        let subject = format!("Review: {}", short(&email.subject));
        let text = format!(
            "{} wants to send a message from {}.\n\nTo: {}\nSubject: {}\n\nLook at it and decide:\n{link}\n\n\
             Without a decision it is rejected at {}. The link is for you alone: who has it can decide in your name, once.\n",
            review.request.name.as_deref().unwrap_or("A program"),
            mailbox.email,
            short(&email.to_line),
            short(&email.subject),
            review.expires_at,
        );
        enqueue_system(tx, app, key, &watcher.email, subject, text).await?;
    }
    Ok(())
}

/// A line that fits into any header.
fn short(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(150).collect()
}
