//! The usage of a workspace: credits, messages, history.

use model::{
    Day, MailboxId,
    usage::{CreditUsage, EmailUsage, HistoryQuery, MailboxEmailUsage, UsageHistory},
};
use store::{mailboxes, usage};

use crate::{
    core::{app::App, call::Call, error::Result, operation::Operation},
    mailbox::mailboxes::list_visible,
};

/// Reads the credits left.
pub const CREDITS: Operation = Operation::read(
    "getCreditUsage",
    "Returns the credits of the current period; works even when none are left.",
)
.visible()
.always_answers();
/// Reads the messages sent and received.
pub const EMAIL: Operation = Operation::read(
    "getEmailUsage",
    "Returns the emails sent and received in the current period, in total and per mailbox.",
)
.visible();
/// Reads the daily figures.
pub const HISTORY: Operation =
    Operation::read("getUsageHistory", "Returns daily usage for up to 90 days.").workspace();

pub(crate) const OPERATIONS: &[&Operation] = &[&CREDITS, &EMAIL, &HISTORY];

/// Reads the credits of the current period.
#[crate::boxed]
pub async fn credits(app: &App, call: &Call) -> Result<CreditUsage> {
    let limit = app.limits(call.plan).credits_per_period;
    let credits = app.meter().credits(&call.workspace, limit, call.now, true).await?;
    Ok(CreditUsage {
        plan: call.plan,
        plan_name: call.plan.display_name().to_owned(),
        period_start: call.now.month_start(),
        period_end: call.now.next_month_start(),
        limit: as_signed(limit.get()),
        used: credits.used,
        remaining: credits.remaining,
    })
}

/// Reads the messages of the current period. The quota is the workspace's for every caller.
#[crate::boxed]
pub async fn email(app: &App, call: &Call) -> Result<EmailUsage> {
    let quota = as_signed(app.limits(call.plan).mails_per_month.get());
    // Message counters are kept per month.
    let month = call.now.month();
    let visible = call.mailbox_ids().cloned();
    let figures = app
        .read(call, async move |tx| {
            let sent = mailboxes::counters(tx, &format!("sent.{month}")).await?;
            let received = mailboxes::counters(tx, &format!("received.{month}")).await?;
            Ok((list_visible(tx, visible.as_deref()).await?, sent, received))
        })
        .await?;
    let (mailboxes, sent, received) = figures;
    let used: i64 = sent.iter().map(|(_, value)| value).sum();
    Ok(EmailUsage {
        workspace_id: call.workspace.clone(),
        plan: call.plan,
        plan_name: call.plan.display_name().to_owned(),
        period_start: call.now.month_start(),
        period_end: call.now.next_month_start(),
        quota,
        used,
        remaining: quota.map(|quota| (quota - used).max(0)),
        mailboxes: mailboxes
            .into_iter()
            .map(|mailbox| MailboxEmailUsage {
                sent: counter(&sent, &mailbox.id),
                received: counter(&received, &mailbox.id),
                id: mailbox.id,
                name: mailbox.name,
                email: mailbox.email,
            })
            .collect(),
    })
}

/// Reads the daily figures, today last.
#[crate::boxed]
pub async fn history(app: &App, call: &Call, query: HistoryQuery) -> Result<UsageHistory> {
    let last = call.now.day();
    let first = Day::from_number(last.number() - query.days + 1);
    // What cannot be committed yet is missing from the figures until it is.
    app.meter().commit_workspace(&call.workspace).await;
    app.read(call, async move |tx| Ok(UsageHistory { days: usage::history(tx, first, last).await? })).await
}

fn counter(counters: &[(MailboxId, i64)], id: &MailboxId) -> i64 {
    counters.iter().find(|(mailbox, _)| mailbox == id).map_or(0, |(_, value)| *value)
}

fn as_signed(number: Option<u64>) -> Option<i64> {
    number.map(|number| i64::try_from(number).unwrap_or(i64::MAX))
}
