//! How deliveries fail: the class of a reply, and the suppressions that a hard bounce or a complaint leads to.

use mail::bounce_class::{BounceClass, classify};
use model::{
    EmailId, MailboxId, Timestamp,
    outbound::OutboundKind,
    sending::{FailureClass, RecipientState},
    suppressions::SuppressionReason,
};
use store::{
    Tx,
    outbound::{DeliveryRecord, OutboundRecord},
    suppressions::{self, SuppressionRecord},
};

use crate::core::{app::App, error::Result};

/// The class of a failure, from what the other server said: `550 5.1.1 No such user`.
pub(super) fn class_of(reply: &str) -> FailureClass {
    class_of_status(None, reply)
}

/// The same for a delivery report, which may tell the status apart.
pub(super) fn class_of_status(status: Option<&str>, reply: &str) -> FailureClass {
    match classify(None, status, reply) {
        BounceClass::Hard => FailureClass::Hard,
        BounceClass::Soft => FailureClass::Soft,
        BounceClass::Block => FailureClass::Block,
        BounceClass::Policy => FailureClass::Policy,
        BounceClass::Full => FailureClass::Full,
        BounceClass::Unknown => FailureClass::Unknown,
    }
}

/// Suppresses the addresses that a message of a mailbox bounced for once and for all, or whose owners complained about it:
/// those of these recipients whose state is new.
pub(super) async fn suppress(
    tx: &mut Tx,
    app: &App,
    mail: &OutboundRecord,
    (before, after): (&[DeliveryRecord], &[DeliveryRecord]),
    now: Timestamp,
) -> Result<()> {
    if mail.kind != OutboundKind::Email || mail.mailbox_id.is_none() {
        return Ok(());
    }
    let is_news = |one: &&DeliveryRecord| {
        let old = before.iter().find(|old| old.position == one.position);
        old.is_none_or(|old| old.state != one.state)
    };
    let records: Vec<SuppressionRecord> = after
        .iter()
        .filter(is_news)
        .filter_map(|one| Some(record(app, one, reason(one)?, mail.email_id.as_ref(), now)))
        .collect();
    if !records.is_empty() {
        suppressions::insert_all(tx, &records).await?;
    }
    Ok(())
}

/// Why the address of a recipient is suppressed, if it is.
fn reason(one: &DeliveryRecord) -> Option<SuppressionReason> {
    if one.state == RecipientState::Complained {
        return Some(SuppressionReason::Complaint);
    }
    (one.is_failed() && one.class == Some(FailureClass::Hard)).then_some(SuppressionReason::HardBounce)
}

fn record(
    app: &App,
    one: &DeliveryRecord,
    reason: SuppressionReason,
    email: Option<&EmailId>,
    now: Timestamp,
) -> SuppressionRecord {
    SuppressionRecord {
        id: app.new_id(),
        address: one.recipient.to_lowercase(),
        mailbox_id: MailboxId::from(""),
        reason,
        email_id: email.cloned(),
        note: one.reply.clone().filter(|_| reason == SuppressionReason::HardBounce),
        created_at: now,
    }
}
