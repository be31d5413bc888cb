//! The gate that every message passes before it is queued: it compares the message with the policies, and does nothing
//! else.
//!
//! A [`Clearance`] is made here and nowhere else, and the queue takes messages only with one. So no way to send a message
//! can be added that leaves the gate out.

use super::{
    PolicyFinding, PolicyReason, RecipientMode, ReviewMode, RuleAction, ScanAction, SendPolicy,
    quiet_hours::QuietAction,
};
use crate::{Timestamp, findings::ReviewFinding, outbound::OutboundKind};

/// A recipient, and what the workspace knows of it.
#[derive(Clone, Debug)]
pub struct GateRecipient {
    /// What the sender named it by, such as `to[0]`.
    pub path: String,
    /// The address, in lower case.
    pub address: String,
    /// Whether this workspace has sent to it.
    pub was_sent_to: bool,
    /// Whether a received message was from it.
    pub was_received_from: bool,
    /// Whether it is suppressed: the message goes to the others only.
    pub is_suppressed: bool,
}

/// What a person has said about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewState {
    /// Nothing yet, and a person can be asked.
    Possible,
    /// Nobody can be asked: what would need a review is refused.
    Impossible,
    /// A person has approved it as it is.
    Approved,
}

/// A message at the gate.
#[derive(Clone, Copy, Debug)]
pub struct GateMessage<'a> {
    /// Its name in the queue.
    pub id: &'a str,
    /// Its recipients.
    pub recipients: &'a [GateRecipient],
    /// Until when a cap has no room for it.
    pub capped_until: Option<Timestamp>,
    /// What a person has said about it.
    pub review: ReviewState,
    /// What was found in its contents; nothing if they were not searched, or not in time.
    pub content: Option<&'a [ReviewFinding]>,
    /// When it is to be queued.
    pub now: Timestamp,
}

/// The decision about a message.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It can be queued.
    Send(Clearance),
    /// It leaves when the quiet hours end.
    Schedule(Timestamp),
    /// A person decides about it.
    Review(Vec<PolicyFinding>),
    /// It is refused.
    Block(Vec<PolicyFinding>),
    /// A cap has no room for it before this time.
    Capped(Timestamp),
    /// All its recipients are suppressed.
    Suppressed(Vec<PolicyFinding>),
}

/// The right to queue one message to certain recipients.
#[derive(Clone, Debug)]
pub struct Clearance {
    message: String,
    /// `None` for messages of the service itself.
    recipients: Option<Vec<String>>,
}

impl Clearance {
    /// The right to queue a message of the service itself, such as an invitation or a report. No policy is about these, and
    /// a message that a mailbox sends gets none.
    pub fn of_service(message: &str, kind: OutboundKind) -> Option<Self> {
        (kind == OutboundKind::System).then(|| Self { message: message.to_owned(), recipients: None })
    }

    /// The right to return a report about a forwarded message to the sender of that message.
    pub fn of_returned_report(message: &str, kind: OutboundKind, sender: Option<&str>) -> Option<Self> {
        let is_report = kind == OutboundKind::Forward && sender.is_none();
        is_report.then(|| Self { message: message.to_owned(), recipients: None })
    }

    /// Whether it is for this message to these recipients.
    pub fn is_for<'a>(&self, message: &str, mut recipients: impl Iterator<Item = &'a str>) -> bool {
        let cleared = self.recipients.as_ref();
        self.message == message
            && cleared.is_none_or(|cleared| {
                recipients.all(|one| cleared.iter().any(|own| own.eq_ignore_ascii_case(one)))
            })
    }
}

/// Decides about a message under all policies that it must satisfy.
pub fn decide(policies: &[SendPolicy], message: &GateMessage<'_>) -> Verdict {
    let recipients: Vec<&GateRecipient> =
        message.recipients.iter().filter(|one| !one.is_suppressed).collect();
    if recipients.is_empty() && !message.recipients.is_empty() {
        return Verdict::Suppressed(suppressed(message.recipients));
    }
    let mut blocked = blocked(policies, &recipients);
    blocked.extend(content_findings(policies, message, ScanAction::Block));
    if !blocked.is_empty() {
        return Verdict::Block(blocked);
    }
    if let Some(until) = message.capped_until {
        return Verdict::Capped(until);
    }
    if message.review != ReviewState::Approved {
        let reasons = review_reasons(policies, message, &recipients);
        if !reasons.is_empty() {
            return match message.review {
                ReviewState::Impossible => Verdict::Block(needs_review(reasons)),
                _ => Verdict::Review(reasons),
            };
        }
    }
    match quiet_until(policies, message) {
        Some(end) => Verdict::Schedule(end),
        None => Verdict::Send(Clearance {
            message: message.id.to_owned(),
            recipients: Some(recipients.iter().map(|one| one.address.clone()).collect()),
        }),
    }
}

/// The recipients that a policy forbids.
fn blocked(policies: &[SendPolicy], recipients: &[&GateRecipient]) -> Vec<PolicyFinding> {
    let found = recipients.iter().filter_map(|one| {
        let reason = policies.iter().find_map(|policy| forbids(policy, one))?;
        Some(PolicyFinding { code: reason, path: Some(one.path.clone()) })
    });
    found.collect()
}

/// Where something was found in the contents for which a policy says this.
fn content_findings(
    policies: &[SendPolicy],
    message: &GateMessage<'_>,
    action: ScanAction,
) -> Vec<PolicyFinding> {
    let found = message.content.unwrap_or_default().iter();
    let meant = found.filter(|one| policies.iter().any(|policy| policy.scan.action(one.kind) == action));
    let mut findings: Vec<PolicyFinding> = meant
        .map(|one| PolicyFinding { code: PolicyReason::Content, path: Some(one.place.clone()) })
        .collect();
    findings.dedup();
    findings
}

fn suppressed(recipients: &[GateRecipient]) -> Vec<PolicyFinding> {
    let finding = |one: &GateRecipient| PolicyFinding {
        code: PolicyReason::RecipientSuppressed,
        path: Some(one.path.clone()),
    };
    recipients.iter().map(finding).collect()
}

fn forbids(policy: &SendPolicy, recipient: &GateRecipient) -> Option<PolicyReason> {
    let rules = &policy.recipients;
    if rules.block.iter().any(|pattern| pattern.matches(&recipient.address)) {
        return Some(PolicyReason::RecipientBlocked);
    }
    let is_allowed = rules.allow.iter().any(|pattern| pattern.matches(&recipient.address));
    let is_in_mode = match rules.mode {
        RecipientMode::Open => true,
        RecipientMode::Correspondents => recipient.was_sent_to || recipient.was_received_from,
        RecipientMode::Known => recipient.was_sent_to,
        RecipientMode::List => false,
    };
    if !is_allowed && !is_in_mode {
        return Some(PolicyReason::RecipientBlocked);
    }
    let is_new = !is_allowed && !recipient.was_sent_to;
    (policy.new_recipient == RuleAction::Block && is_new).then_some(PolicyReason::NewRecipient)
}

/// Whether a policy asks for a person because an address is new.
fn is_new_for_review(policy: &SendPolicy, recipient: &GateRecipient) -> bool {
    policy.new_recipient == RuleAction::Review
        && !recipient.was_sent_to
        && !policy.recipients.allow.iter().any(|pattern| pattern.matches(&recipient.address))
}

fn review_reasons(
    policies: &[SendPolicy],
    message: &GateMessage<'_>,
    recipients: &[&GateRecipient],
) -> Vec<PolicyFinding> {
    let whole = |code: PolicyReason| PolicyFinding { code, path: None };
    let mut reasons = Vec::new();
    for recipient in recipients {
        if policies.iter().any(|policy| is_new_for_review(policy, recipient)) {
            reasons
                .push(PolicyFinding { code: PolicyReason::NewRecipient, path: Some(recipient.path.clone()) });
        }
    }
    reasons.extend(content_findings(policies, message, ScanAction::Review));
    if message.content.is_none() && policies.iter().any(|policy| policy.scan.is_on()) {
        reasons.push(whole(PolicyReason::ScanFailed));
    }
    let mut quiet = policies.iter().filter_map(|policy| policy.quiet_hours.as_ref());
    if quiet.any(|quiet| quiet.then == QuietAction::Review && quiet.end_of(message.now).is_some()) {
        reasons.push(whole(PolicyReason::QuietHours));
    }
    if policies.iter().any(|policy| policy.review == ReviewMode::All) {
        reasons.push(whole(PolicyReason::ReviewAll));
    }
    reasons
}

/// What a sender is told whose message would need a review that nobody can be asked for.
fn needs_review(reasons: Vec<PolicyFinding>) -> Vec<PolicyFinding> {
    let refused = |reason: PolicyFinding| PolicyFinding {
        code: if reason.path.is_some() { reason.code } else { PolicyReason::ReviewNeeded },
        ..reason
    };
    let mut refused: Vec<PolicyFinding> = reasons.into_iter().map(refused).collect();
    refused.dedup();
    refused
}

/// When the quiet hours end that the message waits for.
fn quiet_until(policies: &[SendPolicy], message: &GateMessage<'_>) -> Option<Timestamp> {
    let waits_for = |quiet: &&super::QuietHours| {
        // Where a person is asked and has approved, there is nothing to wait for.
        quiet.then == QuietAction::Schedule
    };
    let all: Vec<_> =
        policies.iter().filter_map(|policy| policy.quiet_hours.as_ref()).filter(waits_for).collect();
    let mut end = None;
    // One may begin when another ends. Two of them can leave no time of the day at all.
    for _ in 0..=all.len() {
        let at = end.unwrap_or(message.now);
        match all.iter().filter_map(|quiet| quiet.end_of(at)).max() {
            Some(later) => end = Some(later),
            None => break,
        }
    }
    end
}

#[cfg(test)]
mod tests;
