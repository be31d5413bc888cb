//! The gate of send policies in the transaction that queues a message: it reads the policies and what the store knows of
//! the recipients, has them compared, and counts what counts towards caps.
//!
//! Locks come in one order: the workspace, mailboxes, caps, the event log.

use std::collections::BTreeSet;

use model::{
    MailboxId, Timestamp,
    reviews::ReviewFinding,
    send_policies::{
        PolicyFinding, PolicyReason, RecipientMode, RuleAction, SendPolicy,
        gate::{Clearance, GateMessage, GateRecipient, ReviewState, Verdict, decide},
    },
    suppressions::SuppressionReason,
};
use store::{
    Tx,
    correspondents::{self, Direction},
    send_policies::{self, CapScope, CapUse},
    suppressions,
};

use super::{
    outgoing_message::OutgoingMessage,
    routing::{Addressee, Route},
};
use crate::core::{
    app::App,
    error::{Detail, Error, ErrorKind, Result},
};

/// Seconds of an hour and of a day, the windows of caps.
const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// A recipient as the sender named it.
#[derive(Clone, Debug)]
pub(crate) struct NamedRecipient {
    /// Such as `to[0]`.
    pub(crate) path: String,
    /// In lower case.
    pub(crate) address: String,
    /// Whether it is a mailbox of this server, so that a bounce of former days says nothing.
    pub(crate) is_here: bool,
}

/// The recipients of a message, each once.
pub(crate) fn recipients(outgoing: &OutgoingMessage) -> Vec<NamedRecipient> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for (name, people) in [("to", &outgoing.to), ("cc", &outgoing.cc), ("bcc", &outgoing.bcc)] {
        for (index, person) in people.iter().enumerate() {
            let address = person.address().as_str().to_lowercase();
            if seen.insert(address.clone()) {
                all.push(NamedRecipient { path: format!("{name}[{index}]"), address, is_here: false });
            }
        }
    }
    all
}

/// The same, with what is known of their routes.
pub(super) fn routed_recipients(outgoing: &OutgoingMessage, addressees: &[Addressee]) -> Vec<NamedRecipient> {
    let here: BTreeSet<String> = addressees
        .iter()
        .filter(|one| matches!(one.route, Route::Mailbox(_)))
        .map(|one| one.address.to_lowercase())
        .collect();
    let mut all = recipients(outgoing);
    for one in &mut all {
        one.is_here = here.contains(&one.address);
    }
    all
}

/// The outcome of a search, for the message and the policies that it was made for.
#[derive(Clone, Debug)]
pub(crate) struct ContentScan {
    /// The policies: whether each is of the mailbox, and its version.
    pub(super) versions: Vec<(bool, i64)>,
    /// Names the message.
    pub(super) digest: String,
    /// What was found; nothing if the search failed or took too long.
    pub(super) findings: Option<Vec<ReviewFinding>>,
}

/// A message that comes to the gate.
#[derive(Clone, Copy)]
pub(crate) struct Candidate<'a> {
    /// Its name in the queue.
    pub(crate) id: &'a str,
    pub(crate) recipients: &'a [NamedRecipient],
    pub(crate) review: ReviewState,
    /// What its contents hold, as far as they were searched.
    pub(crate) content: Option<&'a ContentScan>,
    /// Names its contents.
    pub(crate) digest: &'a str,
    pub(crate) now: Timestamp,
}

/// A policy, and whose messages count towards its caps.
struct Layer {
    policy: SendPolicy,
    version: i64,
    /// All of the workspace, or those of the mailbox.
    of_mailbox: bool,
}

/// The policies that a message of a mailbox must satisfy.
pub(crate) struct Gate {
    mailbox: MailboxId,
    layers: Vec<Layer>,
}

impl Gate {
    /// Reads the policies of a mailbox.
    pub(crate) async fn load(tx: &mut Tx, app: &App, mailbox: &MailboxId) -> Result<Self> {
        let floor = &app.settings().send_policy.floor;
        let mut layers = vec![Layer { policy: floor.clone(), version: 0, of_mailbox: false }];
        for record in send_policies::find(tx, mailbox).await? {
            let of_mailbox = !record.mailbox_id.as_str().is_empty();
            layers.push(Layer { policy: record.policy.alone(), version: record.version, of_mailbox });
        }
        layers.retain(|layer| layer.policy != SendPolicy::default());
        Ok(Self { mailbox: mailbox.clone(), layers })
    }

    /// Whether every message can leave.
    pub(crate) fn is_open(&self) -> bool {
        self.layers.is_empty()
    }

    /// Whether contents are searched.
    pub(super) fn scans(&self) -> bool {
        self.layers.iter().any(|layer| layer.policy.scan.is_on())
    }

    /// The versions of the policies.
    pub(super) fn versions(&self) -> Vec<(bool, i64)> {
        self.layers.iter().map(|layer| (layer.of_mailbox, layer.version)).collect()
    }

    /// What was found in a message, if the search was about these contents under these policies.
    fn findings<'a>(&self, candidate: Candidate<'a>) -> Option<&'a [ReviewFinding]> {
        let scan = candidate
            .content
            .filter(|scan| scan.digest == candidate.digest && scan.versions == self.versions())?;
        scan.findings.as_deref()
    }

    /// How long a message waits for a decision.
    pub(crate) fn hold_seconds(&self, app: &App) -> i64 {
        let shortest = self.layers.iter().map(|layer| layer.policy.hold.hours * HOUR).min();
        let own = shortest.unwrap_or(SendPolicy::default().hold.hours * HOUR);
        app.settings().send_policy.hold_seconds.unwrap_or(own)
    }

    /// Decides about a message. The mailbox must be locked if it is to be counted.
    pub(crate) async fn decide(&self, tx: &mut Tx, candidate: Candidate<'_>) -> Result<Decision> {
        let suppressed = self.suppressed(tx, candidate.recipients).await?;
        let known = if self.asks_who_is_known() {
            let addresses: Vec<String> = candidate.recipients.iter().map(|one| one.address.clone()).collect();
            correspondents::find(tx, &addresses).await?
        } else {
            BTreeSet::new()
        };
        let is_known = |direction, address: &String| known.contains(&(direction, address.clone()));
        let recipients: Vec<GateRecipient> = candidate
            .recipients
            .iter()
            .map(|one| GateRecipient {
                path: one.path.clone(),
                address: one.address.clone(),
                was_sent_to: is_known(Direction::Sent, &one.address),
                was_received_from: is_known(Direction::Received, &one.address),
                is_suppressed: suppressed.contains(&one.address),
            })
            .collect();
        let capped_until = self.capped_until(tx, candidate, &recipients).await?;
        let Candidate { id, review, now, .. } = candidate;
        let content = self.findings(candidate);
        let message = GateMessage { id, recipients: &recipients, capped_until, review, content, now };
        let policies: Vec<SendPolicy> = self.layers.iter().map(|layer| layer.policy.clone()).collect();
        let uses = if self.counts() { self.uses(id, &recipients, now) } else { Vec::new() };
        Ok(Decision { verdict: decide(&policies, &message), uses, suppressed })
    }

    /// The recipients that the mailbox must not write to.
    async fn suppressed(&self, tx: &mut Tx, recipients: &[NamedRecipient]) -> Result<BTreeSet<String>> {
        let addresses: Vec<String> = recipients.iter().map(|one| one.address.clone()).collect();
        let mut all = BTreeSet::new();
        for (address, reason) in suppressions::among(tx, &self.mailbox, &addresses).await? {
            let is_here = recipients.iter().any(|one| one.is_here && one.address == address);
            if !is_here || reason != SuppressionReason::HardBounce {
                all.insert(address);
            }
        }
        Ok(all)
    }

    fn asks_who_is_known(&self) -> bool {
        self.layers.iter().any(|Layer { policy, .. }| {
            matches!(policy.recipients.mode, RecipientMode::Known | RecipientMode::Correspondents)
                || policy.new_recipient != RuleAction::Allow
                || policy.caps.new_recipients_per_day.is_some()
        })
    }

    fn counts(&self) -> bool {
        self.layers.iter().any(|layer| !layer.policy.caps.is_none())
    }

    fn is_new(&self, recipient: &GateRecipient) -> bool {
        let is_added = |layer: &Layer| {
            layer.policy.recipients.allow.iter().any(|pattern| pattern.matches(&recipient.address))
        };
        !recipient.was_sent_to && !self.layers.iter().any(is_added)
    }

    fn uses(&self, id: &str, recipients: &[GateRecipient], at: Timestamp) -> Vec<CapUse> {
        let uses = recipients.iter().filter(|one| !one.is_suppressed).map(|one| CapUse {
            message_id: id.to_owned(),
            recipient: one.address.clone(),
            mailbox_id: self.mailbox.clone(),
            is_new: self.is_new(one),
            at,
        });
        uses.collect()
    }

    /// Until when a cap has no room for a message. Nobody else counts until the transaction ends.
    async fn capped_until(
        &self,
        tx: &mut Tx,
        candidate: Candidate<'_>,
        recipients: &[GateRecipient],
    ) -> Result<Option<Timestamp>> {
        if !self.counts() {
            return Ok(None);
        }
        send_policies::lock_caps(tx).await?;
        let recipients: Vec<&GateRecipient> = recipients.iter().filter(|one| !one.is_suppressed).collect();
        let count = |recipients: usize| i64::try_from(recipients).unwrap_or(i64::MAX);
        let all = count(recipients.len());
        let new = count(recipients.iter().filter(|one| self.is_new(one)).count());
        let mut until = None;
        for Layer { policy, of_mailbox, .. } in &self.layers {
            let caps = &policy.caps;
            let scope = CapScope {
                mailbox: of_mailbox.then_some(&self.mailbox),
                recipient: None,
                only_new: false,
                except: candidate.id,
            };
            let mut limits = vec![
                (scope, HOUR, caps.per_hour, all),
                (scope, DAY, caps.per_day, all),
                (CapScope { only_new: true, ..scope }, DAY, caps.new_recipients_per_day, new),
            ];
            limits.extend(recipients.iter().map(|one| {
                (CapScope { recipient: Some(&one.address), ..scope }, DAY, caps.per_recipient_per_day, 1)
            }));
            for (scope, window, cap, wanted) in limits {
                until = until.max(room_at(tx, scope, window, cap, wanted, candidate.now).await?);
            }
        }
        Ok(until)
    }
}

/// When a cap has room for so many more; `None` if it has now.
async fn room_at(
    tx: &mut Tx,
    scope: CapScope<'_>,
    window: i64,
    cap: Option<i64>,
    wanted: i64,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    let Some(cap) = cap.filter(|_| wanted > 0) else { return Ok(None) };
    if wanted > cap {
        return Ok(Some(now.plus_seconds(window)));
    }
    let last = send_policies::nth_newest(tx, scope, now.plus_seconds(-window), cap - wanted).await?;
    // One in the future, after the clock was set back, counts as of now.
    Ok(last.map(|at| at.min(now).plus_seconds(window)))
}

/// What the gate has decided about a message, and what to count if that is carried out.
pub(crate) struct Decision {
    pub(crate) verdict: Verdict,
    /// The recipients that it is not sent to, in lower case.
    pub(super) suppressed: BTreeSet<String>,
    uses: Vec<CapUse>,
}

impl Decision {
    /// Takes the suppressed recipients out of those that the message is sent to.
    pub(super) fn leave_out_suppressed(&self, addressees: &mut [Addressee]) {
        if self.suppressed.is_empty() {
            return;
        }
        for one in addressees {
            if self.suppressed.contains(&one.address.to_lowercase()) {
                one.route = Route::Suppressed;
            }
        }
    }

    /// Counts the message towards caps.
    pub(crate) async fn count(&self, tx: &mut Tx) -> Result<()> {
        Ok(send_policies::count(tx, &self.uses).await?)
    }
}

/// The right to queue a message of a mailbox without policies.
pub(crate) fn clear_without_policies(candidate: Candidate<'_>) -> Result<Clearance> {
    let unknown = |one: &NamedRecipient| GateRecipient {
        path: String::new(),
        address: one.address.clone(),
        was_sent_to: false,
        was_received_from: false,
        is_suppressed: false,
    };
    let recipients: Vec<GateRecipient> = candidate.recipients.iter().map(unknown).collect();
    let Candidate { id, review, now, .. } = candidate;
    let message = GateMessage { id, recipients: &recipients, capped_until: None, review, content: None, now };
    match decide(&[], &message) {
        Verdict::Send(clearance) => Ok(clearance),
        _ => Err(Error::internal("a message without policies is held back")),
    }
}

/// The refusal of a message, with the reasons that a sender may know.
pub(crate) fn blocked(findings: &[PolicyFinding]) -> Error {
    let details = findings.iter().map(|finding| {
        let path = finding.path.clone().unwrap_or_else(|| "policy".to_owned());
        Detail::new(path, finding.code.as_str())
    });
    let error = Error::new(ErrorKind::SendBlocked).with_details(details.collect());
    if findings.iter().all(|finding| finding.code == PolicyReason::ReviewNeeded) {
        return error.with_fix("The send policy asks for a review, which this way of sending does not have.");
    }
    error
}

/// The refusal of a message whose recipients are all suppressed.
pub(crate) fn all_suppressed(findings: &[PolicyFinding]) -> Error {
    let details = findings
        .iter()
        .map(|finding| Detail::new(finding.path.clone().unwrap_or_default(), finding.code.as_str()));
    Error::new(ErrorKind::RecipientSuppressed).with_details(details.collect())
}

/// The refusal of a message that a cap has no room for.
pub(crate) fn capped(now: Timestamp, until: Timestamp) -> Error {
    let fix = format!("A cap of the send policy has room for this message at {until}. Send it again then.");
    Error::new(ErrorKind::SendCapExceeded).with_retry_after(now.seconds_until(until).max(1)).with_fix(fix)
}
