//! Sending limits of plans: recipients per request, recipients in rolling windows, messages per day and month.

use std::collections::BTreeMap;

use model::{MailboxId, Plan, Timestamp, plans::PlanLimits};
use store::{
    Tx, counters,
    send_limits::{self, SendRecord},
    workspaces,
};

use crate::core::{
    app::App,
    error::{Error, ErrorKind, Result},
};

/// Messages of one workspace that all nodes together can have in transactions that others do not see yet: far more than
/// they have connections. A month with room for more than these needs no lock.
const MAX_UNCOUNTED_MESSAGES: u64 = 100_000;

/// Why a message may not be sent now.
pub(crate) const PLAN_LIMIT_REACHED: &str = "The plan does not allow more messages at the moment.";

/// Refuses more recipients than one request may have.
pub(crate) fn check_request(app: &App, plan: Plan, recipients: usize) -> Result<()> {
    let limit = app.limits(plan).recipients_per_request;
    match limit.get() {
        Some(limit) if recipients as u64 > limit => {
            let fix = format!("Name at most {limit} To, Cc and Bcc addresses in one request.");
            Err(Error::new(ErrorKind::EmailSendRecipientLimitExceeded).with_fix(fix))
        }
        _ => Ok(()),
    }
}

/// The refusal of a message that may only be sent later.
pub(crate) fn not_before(now: Timestamp, earliest: Timestamp) -> Error {
    let fix = format!("{PLAN_LIMIT_REACHED} Send it again after {earliest}, or schedule it.");
    Error::new(ErrorKind::EmailSendRateLimitExceeded)
        .with_retry_after(now.seconds_until(earliest).max(1))
        .with_fix(fix)
}

/// A message of the workspace that is sent now.
pub(crate) struct CountedMessage<'a> {
    pub(crate) plan: Plan,
    pub(crate) mailbox: &'a MailboxId,
    /// Its recipients outside the workspace.
    pub(crate) external: i64,
    pub(crate) now: Timestamp,
}

/// Counts messages that are sent now. When a limit does not allow one of them, the earliest time is returned; then a single
/// message is not counted, and a transaction with several has to be rolled back.
///
/// The workspace stays locked until the end of the transaction, so that two messages cannot both use the last slot.
pub(crate) async fn count_sends(
    tx: &mut Tx,
    app: &App,
    messages: &[CountedMessage<'_>],
) -> Result<Option<Timestamp>> {
    let counts_uses = messages.iter().any(|one| counts_uses(app.limits(one.plan)));
    if counts_uses {
        workspaces::lock(tx).await?;
    }
    let mut in_months: BTreeMap<(String, u64), (u64, Timestamp)> = BTreeMap::new();
    for one in messages {
        if let Some(limit) = app.limits(one.plan).mails_per_month.get() {
            in_months.entry((one.now.month(), limit)).or_insert((0, one.now)).0 += 1;
        }
    }
    let mut earliest = None;
    for ((month, limit), (count, now)) in in_months {
        if exceeds_month(tx, &month, (count, limit), counts_uses).await? {
            earliest = earliest.max(Some(now.next_month_start()));
        }
    }
    for one in messages {
        earliest = earliest.max(count_use(tx, app, one, earliest.is_some()).await?);
    }
    if earliest.is_none() {
        let months: Vec<String> = messages.iter().map(|one| one.now.month()).collect();
        let sent = messages.iter().zip(&months).map(|(one, month)| counters::Sent {
            mailbox: one.mailbox,
            day: one.now.day(),
            month,
        });
        counters::count_sent(tx, &sent.collect::<Vec<_>>()).await?;
    }
    Ok(earliest)
}

/// Whether single messages are recorded for the limits of a plan.
fn counts_uses(limits: &PlanLimits) -> bool {
    !windows(limits).is_empty() || limits.mails_per_day_and_mailbox.get().is_some()
}

/// Records a message for the limits of windows and days, unless it is refused anyway; or returns when they allow it.
async fn count_use(
    tx: &mut Tx,
    app: &App,
    message: &CountedMessage<'_>,
    is_refused: bool,
) -> Result<Option<Timestamp>> {
    let CountedMessage { plan, mailbox, external, now } = *message;
    let limits = app.limits(plan);
    if !counts_uses(limits) {
        return Ok(None);
    }
    let uses = send_limits::list_after(tx, now.plus_seconds(-86_400)).await?;
    let mut earliest = after_windows(&windows(limits), &uses, external, now)?;
    let today = now.day().start();
    let sent = uses.iter().filter(|sent| sent.mailbox_id == *mailbox && sent.at >= today).count();
    if !limits.mails_per_day_and_mailbox.has_room(sent as u64) {
        earliest = earliest.max(Some(today.plus_seconds(86_400)));
    }
    if earliest.is_none() && !is_refused {
        let id = app.new_uuid().simple().to_string();
        let sent = SendRecord { id, mailbox_id: mailbox.clone(), at: now, recipients: external };
        send_limits::insert(tx, &sent).await?;
    }
    Ok(earliest)
}

/// Whether a month has no room for so many more messages. Close to the limit the workspace is locked before they are
/// counted.
async fn exceeds_month(
    tx: &mut Tx,
    month: &str,
    (count, limit): (u64, u64),
    is_locked: bool,
) -> Result<bool> {
    let sent = send_limits::count_month(tx, month).await?.unsigned_abs();
    if is_locked || sent.saturating_add(MAX_UNCOUNTED_MESSAGES) < limit {
        return Ok(sent.saturating_add(count) > limit);
    }
    workspaces::lock(tx).await?;
    Ok(send_limits::count_month(tx, month).await?.unsigned_abs().saturating_add(count) > limit)
}

/// When an automatic message may be sent; `None` means now. The mailbox is locked already, so the workspace is not:
/// two such messages at once may both use the last slot.
pub(crate) async fn automatic_not_before(
    tx: &mut Tx,
    app: &App,
    plan: Plan,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    let windows = windows(app.limits(plan));
    if windows.is_empty() {
        return Ok(None);
    }
    let uses = send_limits::list_after(tx, now.plus_seconds(-86_400)).await?;
    after_windows(&windows, &uses, 1, now)
}

/// Counts one recipient of an automatic message, at the time it is sent. It does not count against the mailbox's day:
/// strangers decide how many there are.
pub(crate) async fn count_automatic(tx: &mut Tx, app: &App, plan: Plan, at: Timestamp) -> Result<()> {
    if windows(app.limits(plan)).is_empty() {
        return Ok(());
    }
    let id = app.new_uuid().simple().to_string();
    let sent = SendRecord { id, mailbox_id: MailboxId::from(""), at, recipients: 1 };
    Ok(send_limits::insert(tx, &sent).await?)
}

/// The rolling windows that a plan limits: seconds, and how many recipients fit.
fn windows(limits: &PlanLimits) -> Vec<(i64, i64)> {
    let all = [
        (60, limits.recipients_per_minute),
        (3600, limits.recipients_per_hour),
        (86_400, limits.recipients_per_day),
    ];
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    all.into_iter().filter_map(|(seconds, limit)| Some((seconds, signed(limit.get()?)))).collect()
}

/// The earliest time at which this many recipients fit into all windows; `None` means now.
fn after_windows(
    windows: &[(i64, i64)],
    uses: &[SendRecord],
    wanted: i64,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    let mut earliest = None;
    for (seconds, limit) in windows {
        if wanted > *limit {
            let fix = format!("At most {limit} recipients outside the workspace fit into {seconds} seconds.");
            return Err(Error::new(ErrorKind::EmailSendRecipientLimitExceeded).with_fix(fix));
        }
        let inside: Vec<&SendRecord> =
            uses.iter().filter(|sent| sent.at > now.plus_seconds(-seconds)).collect();
        let mut present: i64 = inside.iter().map(|sent| sent.recipients).sum();
        for sent in inside {
            if present + wanted <= *limit {
                break;
            }
            present -= sent.recipients;
            // A use in the future, after the clock was set back or for a deferred message, counts as of now.
            earliest = earliest.max(Some(sent.at.min(now).plus_seconds(*seconds)));
        }
    }
    // These windows do not limit messages without external recipients.
    Ok(earliest.filter(|_| wanted > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(at: i64, recipients: i64) -> SendRecord {
        let at = Timestamp::from_micros(at * 1_000_000);
        SendRecord { id: String::new(), mailbox_id: MailboxId::from("mbx_1"), at, recipients }
    }

    // rules: SEND-24, DRAFT-12
    #[test]
    fn windows_give_the_earliest_time_that_fits() {
        let at = |second: i64| Timestamp::from_micros(second * 1_000_000);
        let windows = [(60, 10), (3600, 50), (86_400, 200)];
        let earliest =
            |uses: &[SendRecord], wanted| after_windows(&windows, uses, wanted, at(10_000)).unwrap();
        assert_eq!(earliest(&[], 10), None);
        assert_eq!(earliest(&[sent(9_950, 4), sent(9_990, 6)], 0), None);
        assert_eq!(earliest(&[sent(9_950, 4), sent(9_990, 6)], 4), Some(at(10_010)));
        assert_eq!(earliest(&[sent(9_950, 4), sent(9_990, 6)], 5), Some(at(10_050)));
        assert_eq!(earliest(&[sent(9_940, 10)], 10), None, "just out of the window");
        let hour: Vec<SendRecord> = (0..5).map(|index| sent(7_000 + index * 100, 10)).collect();
        assert_eq!(earliest(&hour, 1), Some(at(10_600)));
        assert!(after_windows(&windows, &[], 11, at(0)).is_err());
    }
}
