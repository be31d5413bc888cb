//! Waiting for an email without polling: the call sleeps until something changes in its workspace.

use std::{pin::pin, time::Duration};

use model::{
    EmailId, MailboxId, Timestamp,
    emails::{ReadOptions, WaitAfter, WaitForEmail, WaitOutcome, WaitResult},
};
use serde::{Deserialize, Serialize};
use store::{
    emails::{self, EmailRecord},
    events,
    mailboxes::MailboxName,
};

use super::present;
use crate::{
    core::{app::App, call::Call, cursor, error::Result, state::arrivals::Arrivals},
    mailbox::mailboxes,
};

/// Matches that a response lists.
const MAX_MATCHES: usize = 50;

/// Pending emails that a cursor lists, so that it stays short.
const MAX_PENDING: usize = 20;

/// Where a wait starts, as its cursor stores it.
#[derive(Clone, Default, Serialize, Deserialize)]
struct WaitPosition {
    arrival: i64,
    /// Earlier matches that could not be shown yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pending: Vec<EmailId>,
}

/// Waits until a message arrives that matches.
#[crate::boxed]
pub async fn wait(app: &App, call: &Call, mailbox: &str, input: WaitForEmail) -> Result<WaitResult> {
    let named = mailboxes::name(call, mailbox);
    let key = app.data_key(&call.workspace).await?;
    let about = format!("waitForEmail {mailbox}");
    let (id, position) =
        begin(app, call, named.clone(), &input, |text| cursor::open(&key, &about, text)).await?;
    let arrivals = app.arrivals(&call.workspace, &id);
    let mut arrival_changes = arrivals.watch();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(u64::from(input.timeout_seconds));
    let mut search = WaitState::new(input, position);
    let mut revoked = pin!(app.revoked(call));
    // A cached result from before the call may be older than what the caller has already seen.
    let mut first = true;
    loop {
        let seen_changes = *arrival_changes.borrow_and_update();
        while search.update(app, call, &id, &arrivals, (!first).then_some(seen_changes)).await? {}
        first = false;
        let outcome = search.outcome(app.now());
        let is_over = match outcome {
            Some(WaitOutcome::Matched | WaitOutcome::Ambiguous) => true,
            // An email that is not scanned yet, or held, may still match.
            Some(WaitOutcome::Held) => !search.can_still_match(app.now()),
            _ => false,
        };
        // The end of a hold publishes no event, so the wait wakes up for it.
        let hold_end = search.until_hold_ends(app.now()).map(|left| tokio::time::Instant::now() + left);
        let wake = hold_end.map_or(deadline, |end| end.min(deadline));
        let is_over = is_over
            || tokio::select! {
                woken = tokio::time::timeout_at(wake, arrival_changes.changed()) => woken.is_err() && wake == deadline,
                () = app.ending() => true,
                refused = revoked.as_mut() => return Err(refused),
            };
        if is_over {
            let outcome = outcome.unwrap_or(WaitOutcome::Timeout);
            let cursor = cursor::seal(&key, &about, &search.next_position(outcome, app.now()))?;
            let result = search.answer(app, call, named, outcome, cursor).await?;
            return store_result(app, call, result).await;
        }
    }
}

/// Stores the response for the call's Idempotency-Key, if it has one.
async fn store_result(app: &App, call: &Call, result: WaitResult) -> Result<WaitResult> {
    if call.idempotency.is_none() {
        return Ok(result);
    }
    app.write(call, async move |_| Ok(result)).await
}

/// The mailbox, and the arrival after which the wait begins.
async fn begin(
    app: &App,
    call: &Call,
    named: MailboxName,
    input: &WaitForEmail,
    open: impl FnOnce(&str) -> Result<WaitPosition>,
) -> Result<(MailboxId, WaitPosition)> {
    let known = match &input.after {
        Some(WaitAfter::Cursor(text)) => Some(open(text)?),
        _ => None,
    };
    let time = match &input.after {
        Some(WaitAfter::Time(time)) => Some(*time),
        _ => None,
    };
    app.read(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        let arrival = match (known, time) {
            (Some(position), _) => return Ok((mailbox, position)),
            (None, Some(time)) => emails::arrival_before(tx, &mailbox, time).await?,
            (None, None) => events::last_sequence(tx).await?,
        };
        Ok((mailbox, WaitPosition { arrival, pending: Vec::new() }))
    })
    .await
}

struct WaitState {
    input: WaitForEmail,
    /// Where the wait began.
    after: i64,
    /// The last arrival that was checked.
    seen: i64,
    matching: Vec<EmailRecord>,
    /// Pending emails of an earlier wait, to be checked once.
    pending: Vec<EmailId>,
}

impl WaitState {
    fn new(input: WaitForEmail, position: WaitPosition) -> Self {
        let after = position.arrival;
        Self { input, after, seen: after, matching: Vec::new(), pending: position.pending }
    }

    /// Checks new arrivals, and rechecks matches that could not be shown yet. True when there are more.
    async fn update(
        &mut self,
        app: &App,
        call: &Call,
        mailbox: &MailboxId,
        arrivals: &Arrivals,
        arrival_changes: Option<u64>,
    ) -> Result<bool> {
        let mut known: Vec<EmailId> = self.matching.iter().map(|mail| mail.id.clone()).collect();
        known.append(&mut self.pending);
        if !known.is_empty() {
            let id = mailbox.clone();
            let again = app.read(call, async move |tx| Ok(emails::select(tx, &id, &known).await?)).await?;
            self.matching = again.into_iter().filter(|mail| self.matches_criteria(mail)).collect();
        }
        let arrived = arrivals.load(app.db(), &call.workspace, mailbox, arrival_changes, self.seen).await?;
        for mail in arrived.emails() {
            self.seen = mail.arrival;
            if self.matching.len() < MAX_MATCHES && self.matches_criteria(mail) {
                self.matching.push(mail.clone());
            }
        }
        self.matching.sort_by_key(|mail| mail.arrival);
        Ok(arrived.is_full())
    }

    fn matches_criteria(&self, mail: &EmailRecord) -> bool {
        let same = |wanted: &Option<mail::address::Address>, address: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted.as_str().eq_ignore_ascii_case(address))
        };
        let in_subject = |part: &String| mail.subject.to_lowercase().contains(&part.to_lowercase());
        same(&self.input.from, &mail.sender_address)
            && same(&self.input.to, &mail.recipient)
            && self.input.subject.as_ref().is_none_or(in_subject)
    }

    /// How the wait ends, if it ends now.
    fn outcome(&self, now: Timestamp) -> Option<WaitOutcome> {
        let shown = self.matching.iter().filter(|mail| self.is_visible(mail, now)).count();
        match (shown, self.matching.len()) {
            (0, 0) => None,
            (0, _) => Some(WaitOutcome::Held),
            (1, _) => Some(WaitOutcome::Matched),
            (_, _) => Some(WaitOutcome::Ambiguous),
        }
    }

    fn is_visible(&self, mail: &EmailRecord, now: Timestamp) -> bool {
        !present::is_held(mail, now) && mail.scan_status == Some(self.input.require_scan_status)
    }

    /// How long until the first hold of a match runs out.
    fn until_hold_ends(&self, now: Timestamp) -> Option<Duration> {
        let holds = self.matching.iter().filter_map(|mail| mail.held_until);
        let micros = holds.map(|end| end.as_micros() - now.as_micros()).filter(|left| *left > 0).min()?;
        // Slightly later, since clocks are not exact: waking up early would mean checking twice.
        Some(Duration::from_micros(micros.unsigned_abs()) + Duration::from_millis(20))
    }

    fn can_still_match(&self, now: Timestamp) -> bool {
        self.matching.iter().any(|mail| may_still_match(mail, now))
    }

    /// Where the next wait should start: after everything that this one has handled. Emails that may still match are
    /// kept as pending, so that a chain of waits misses none.
    fn next_position(&self, outcome: WaitOutcome, now: Timestamp) -> WaitPosition {
        let arrival = match outcome {
            WaitOutcome::Timeout => self.seen,
            _ => self.matching.last().map_or(self.after, |mail| mail.arrival.max(self.after)),
        };
        let open = self.matching.iter().filter(|mail| may_still_match(mail, now));
        WaitPosition { arrival, pending: open.take(MAX_PENDING).map(|mail| mail.id.clone()).collect() }
    }

    async fn answer(
        self,
        app: &App,
        call: &Call,
        named: MailboxName,
        outcome: WaitOutcome,
        cursor: String,
    ) -> Result<WaitResult> {
        let now = app.now();
        let matches: Vec<EmailId> = match outcome {
            WaitOutcome::Held => self.matching.iter().map(|mail| mail.id.clone()).collect(),
            _ => self
                .matching
                .iter()
                .filter(|mail| self.is_visible(mail, now))
                .map(|mail| mail.id.clone())
                .collect(),
        };
        let email = match (outcome, matches.first()) {
            (WaitOutcome::Matched, Some(id)) => {
                let required = self.input.require_scan_status;
                let options = ReadOptions {
                    agent_safe_content: true,
                    // A hold may have run out since the call began.
                    include_held: true,
                    require_scan_status: Some(required),
                    ..ReadOptions::default()
                };
                Some(super::read_one(app, call, named, id.clone(), options).await?)
            }
            _ => None,
        };
        Ok(WaitResult { outcome, email, matches, cursor })
    }
}

/// Whether an email that cannot be shown now may be later: when it is scanned, or when its hold ends.
fn may_still_match(mail: &EmailRecord, now: Timestamp) -> bool {
    mail.scan_status.is_none() || present::is_held(mail, now)
}
