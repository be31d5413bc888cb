//! Incoming delivery reports and complaints about messages sent from here.

use mail::{
    address::Address,
    reports::{Action, Report},
};
use model::{MailboxId, outbound::ReportState, sending::RecipientState};
use store::{
    Tx,
    outbound::{self, DeliveryRecord, OutboundRecord, ReportedState},
};

use super::{
    bounces,
    outcomes::{Change, conclude},
};
use crate::core::{
    app::{App, ArrivalHook, HookFuture},
    arriving::Arriving,
    error::Result,
};

/// Records what an arriving report says.
pub(crate) struct IncomingReports;

impl ArrivalHook for IncomingReports {
    fn lock_reported<'a>(
        &'a self,
        tx: &'a mut Tx,
        mailbox: &'a MailboxId,
        report: &'a Report,
    ) -> HookFuture<'a> {
        Box::pin(async move { lock_reported(tx, mailbox, report).await.map(|_| ()) })
    }

    fn record_report<'a>(
        &'a self,
        tx: &'a mut Tx,
        app: &'a App,
        arriving: &'a Arriving<'a>,
        report: &'a Report,
    ) -> HookFuture<'a> {
        Box::pin(record(tx, app, arriving, report))
    }
}

/// The message of a mailbox that a report is about, locked until the transaction ends.
async fn lock_reported(tx: &mut Tx, mailbox: &MailboxId, report: &Report) -> Result<Option<OutboundRecord>> {
    let message_id = match report {
        Report::Delivery(report) => report.message_id.as_deref(),
        Report::Complaint(report) => report.message_id.as_deref(),
    };
    let Some(message_id) = message_id else { return Ok(None) };
    let Some(found) = outbound::find_by_message_id(tx, mailbox, message_id).await? else { return Ok(None) };
    Ok(outbound::lock(tx, &found.id).await?)
}

/// Records what a report says about one of our messages, for each recipient that the message really has.
async fn record(tx: &mut Tx, app: &App, arriving: &Arriving<'_>, report: &Report) -> Result<()> {
    let (key, now) = (arriving.key, arriving.now);
    let Some(mail) = lock_reported(tx, &arriving.recipient.mailbox, report).await? else { return Ok(()) };
    let before = outbound::recipients(tx, &mail.id).await?;
    let mut changes: Vec<ReportedState> = Vec::new();
    let matching = |address: &str| before.iter().find(|one| same_address(&one.recipient, address));
    match report {
        Report::Delivery(report) => {
            for one in &report.recipients {
                let state = match one.action {
                    Action::Failed => RecipientState::Bounced,
                    Action::Delivered => RecipientState::Delivered,
                    Action::Delayed | Action::Relayed | Action::Expanded => continue,
                };
                let original = one.original_recipient.as_deref().and_then(matching);
                if let Some(known) = original.or_else(|| matching(&one.final_recipient))
                    && may_follow(known.state, state)
                {
                    let reply = one.diagnostic.clone().or_else(|| one.status.clone());
                    let said = one.diagnostic.as_deref().unwrap_or_default();
                    let class = (state == RecipientState::Bounced)
                        .then(|| bounces::class_of_status(one.status.as_deref(), said));
                    changes.push(ReportedState { position: known.position, state, reply, class });
                }
            }
        }
        Report::Complaint(report) if report.is_complaint() => {
            let named: Vec<&DeliveryRecord> =
                report.original_recipients.iter().filter_map(|address| matching(address)).collect();
            // Many providers leave the recipient out; with a single recipient there is no doubt.
            let about = if named.is_empty() && before.len() == 1 { before.iter().collect() } else { named };
            for known in about {
                if may_follow(known.state, RecipientState::Complained) {
                    let (position, state) = (known.position, RecipientState::Complained);
                    changes.push(ReportedState { position, state, reply: None, class: None });
                }
            }
        }
        Report::Complaint(_) => {}
    }
    if changes.is_empty() {
        return Ok(());
    }
    for reported in &changes {
        outbound::set_state(tx, &mail.id, reported, now).await?;
    }
    // If nothing is queued any more, the incoming report is already in the mailbox: no further one is written.
    let mut mail = mail;
    let waits = before.iter().any(|one| one.state == RecipientState::Queued);
    if mail.report == ReportState::None && !waits {
        outbound::set_report(tx, &mail.id, ReportState::Done).await?;
        mail.report = ReportState::Done;
    }
    let after = outbound::recipients(tx, &mail.id).await?;
    conclude(tx, app, &[Change { key, mail: &mail, before: &before, after: &after, now }]).await
}

/// Whether a report may change a state: only a sent message can be delivered, bounce or be complained about.
const fn may_follow(present: RecipientState, next: RecipientState) -> bool {
    use RecipientState as State;
    matches!(
        (present, next),
        (State::Sent, State::Delivered | State::Bounced | State::Complained)
            | (State::Delivered, State::Complained | State::Bounced)
    )
}

fn same_address(one: &str, other: &str) -> bool {
    let parse = |text: &str| Address::parse(text).ok();
    match (parse(one), parse(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one.eq_ignore_ascii_case(other),
    }
}
