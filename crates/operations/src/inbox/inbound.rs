//! The common path of every arriving message: SMTP, LMTP, the signed hook, imports, and mail between mailboxes of this
//! server.
//!
//! A message is parsed and analysed once, on a blocking thread if it is long, and then delivered to all its mailboxes
//! in one transaction: it is durable for all of them, or it is deferred and nothing is stored.

mod arrival;
mod content;
mod deliver;
mod delivery;
mod filterable_email;
mod prepare;

use std::{collections::BTreeSet, fmt, sync::Arc};

use bytes::Bytes;
use mail::address::Address;
use model::{
    EmailId,
    emails::{ScanStatus, SenderAuthentication},
    mailboxes::SenderPolicy,
};
use store::{domains, system::Route};
use tracing::Instrument;

pub use self::arrival::{Arrival, Client};
pub(crate) use self::{
    content::Content,
    deliver::{prepare_and_seal, read},
    delivery::{Delivery, MailboxDelivery, store_all},
    filterable_email::FilterableEmail,
    prepare::{
        PreparedMessage, display_form, encoding_named, has_link, message_id_hash, people, received_data,
    },
};
pub use crate::core::arriving::Recipient;
use crate::{
    core::{
        app::App,
        error::{Error, Result},
    },
    inbox::postmaster,
    mailbox::mailboxes,
};

/// More Received lines mean that a message is looping.
pub(crate) const MAX_RECEIVED_LINES: usize = 50;

/// A message that was received.
#[derive(Clone, Debug)]
pub struct ReceivedMessage {
    /// The email for each recipient, in their order; some may refuse its author.
    pub emails: Vec<Result<EmailId, Refusal>>,
    /// Its Message-ID.
    pub message_id: Option<String>,
    /// The scan status; nothing while the external scanner is pending.
    pub scan: Option<ScanStatus>,
    /// Whether it looks like spam.
    pub spam: bool,
    /// What is known about its sender.
    pub authentication: SenderAuthentication,
}

impl ReceivedMessage {
    /// The verdict in one word.
    pub fn verdict(&self) -> &'static str {
        match self.scan {
            _ if self.spam => "spam",
            Some(status) => status.as_str(),
            None => "waiting",
        }
    }
}

/// Why a message or a recipient is refused, as an SMTP reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reply code: 4xx to retry, 5xx permanent.
    pub code: u16,
    /// The enhanced code of RFC 3463.
    pub enhanced: &'static str,
    /// For people.
    pub text: &'static str,
}

impl Refusal {
    const fn new(code: u16, enhanced: &'static str, text: &'static str) -> Self {
        Self { code, enhanced, text }
    }
    pub(crate) const UNKNOWN: Self = Self::new(550, "5.1.1", "There is no such mailbox here");
    /// The domain is not served here.
    pub(crate) const RELAY: Self = Self::new(550, "5.7.1", "This server does not take mail for that domain");
    const DISABLED: Self = Self::new(550, "5.2.1", "This mailbox takes no mail");
    const POLICY: Self = Self::new(550, "5.7.1", "This mailbox does not take mail from that sender");
    pub(crate) const FULL: Self = Self::new(452, "4.2.2", "This mailbox is full for now");
    pub(crate) const LOOP: Self =
        Self::new(554, "5.4.6", "Too many hops: this message goes round in circles");
    /// All recipients are refused, each for its own reason.
    pub const NO_RECIPIENTS: Self = Self::new(554, "5.5.1", "No valid recipients");
    /// The store is not available.
    pub const TRY_LATER: Self = Self::new(451, "4.3.0", "Try again later");
}

impl Refusal {
    /// The reason as a metrics label.
    pub fn reason(&self) -> &'static str {
        let words = [
            (Self::UNKNOWN, "unknown"),
            (Self::RELAY, "relay"),
            (Self::DISABLED, "disabled"),
            (Self::POLICY, "policy"),
            (Self::FULL, "full"),
            (Self::TRY_LATER, "later"),
        ];
        words.iter().find(|(refusal, _)| refusal == self).map_or("other", |(_, word)| word)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.code, self.enhanced, self.text)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        tracing::warn!(%error, "message deferred; the sender will retry");
        Self::TRY_LATER
    }
}

/// Decides whether a recipient is accepted.
#[crate::boxed]
pub async fn route(app: &App, from: Option<&str>, to: &str) -> Result<Recipient, Refusal> {
    let address = Address::parse(to).map_err(|_| Refusal::UNKNOWN)?;
    let bare = address.without_tag();
    let storage_limit = |route: &Route| app.limits(route.plan).storage_bytes.get();
    let route = match app.routes().find(app.db(), bare.as_str(), storage_limit).await? {
        Some(route) => route,
        None if !is_served(app, address.domain()).await? => return Err(Refusal::RELAY),
        // Case-insensitive, as the standard requires.
        None if ["postmaster", "abuse"].iter().any(|name| bare.local().eq_ignore_ascii_case(name)) => {
            Arc::new(postmaster::route(app).await?.ok_or(Refusal::TRY_LATER)?)
        }
        None => return Err(Refusal::UNKNOWN),
    };
    if !mailboxes::is_reachable(route.domain.as_ref()) {
        return Err(Refusal::RELAY);
    }
    if route.disabled_at.is_some() {
        return Err(Refusal::DISABLED);
    }
    let policy = &route.settings.sender_policy;
    if !allows(policy, from) {
        return Err(Refusal::POLICY);
    }
    let stored = u64::try_from(route.stored_bytes).unwrap_or_default();
    if !app.limits(route.plan).storage_bytes.has_room(stored) {
        return Err(Refusal::FULL);
    }
    Ok(Recipient {
        workspace: route.workspace_id.clone(),
        plan: route.plan,
        mailbox: route.mailbox_id.clone(),
        address: address.as_str().to_owned(),
        policy: (*policy != SenderPolicy::default()).then(|| Box::new(policy.clone())),
    })
}

/// Whether mail for a domain is accepted here: hosted domains, and verified custom domains.
async fn is_served(app: &App, domain: &str) -> Result<bool> {
    if app.settings().hosted_domains.iter().any(|hosted| hosted == domain) {
        return Ok(true);
    }
    let domain = domain.to_owned();
    Ok(app.db().system_read(async move |tx| domains::owner(tx, &domain).await).await?.is_some())
}

/// Whether a policy allows a sender. Reports have no sender and are allowed unless everything is blocked.
fn allows(policy: &SenderPolicy, from: Option<&str>) -> bool {
    let Some(from) = from else { return !policy.block.iter().any(|pattern| pattern == "*") };
    !matches_any(&policy.block, from) && (policy.allow.is_empty() || matches_any(&policy.allow, from))
}

fn matches_any(patterns: &[String], sender: &str) -> bool {
    let sender =
        Address::parse(sender).map_or_else(|_| sender.to_lowercase(), |address| address.as_str().to_owned());
    let domain = sender.rsplit_once('@').map(|(_, domain)| domain);
    patterns.iter().any(|pattern| {
        pattern == "*"
            || match pattern.strip_prefix('@') {
                Some(wanted) => domain.is_some_and(|domain| domain.eq_ignore_ascii_case(wanted)),
                None => pattern.eq_ignore_ascii_case(&sender),
            }
    })
}

/// Receives a message. When this returns ids, it is durable in their mailboxes.
#[crate::boxed]
pub async fn receive(app: &App, arrival: Arrival) -> Result<ReceivedMessage, Refusal> {
    receive_counted(app, arrival, None).await
}

/// Receives a message with an idempotency key: within a day, on any node, the same key is delivered to a recipient only
/// once, and returns the same ids.
#[crate::boxed]
pub async fn receive_once(app: &App, arrival: Arrival, name: String) -> Result<ReceivedMessage, Refusal> {
    receive_counted(app, arrival, Some(name)).await
}

/// Receives a message, counts the outcome, and adds the workspaces to log lines on the way.
async fn receive_counted(
    app: &App,
    arrival: Arrival,
    name: Option<String>,
) -> Result<ReceivedMessage, Refusal> {
    let workspaces: BTreeSet<&str> =
        arrival.recipients.iter().map(|recipient| recipient.workspace.as_str()).collect();
    let workspaces = workspaces.into_iter().collect::<Vec<_>>().join(" ");
    let span = tracing::error_span!("receive", workspace = %workspaces);
    let outcome = store_for_all(app, arrival, name).instrument(span).await;
    match &outcome {
        Ok(received) => {
            let stored = received.emails.iter().filter(|outcome| outcome.is_ok()).count();
            metrics::counter!("messages_received_total").increment(stored as u64);
        }
        Err(_) => metrics::counter!("messages_refused_total").increment(1),
    }
    outcome
}

async fn store_for_all(
    app: &App,
    mut arrival: Arrival,
    name: Option<String>,
) -> Result<ReceivedMessage, Refusal> {
    if mail::message::count_received(&arrival.raw) > MAX_RECEIVED_LINES {
        return Err(Refusal::LOOP);
    }
    let allowed = allowing_recipients(&arrival);
    let mut each = allowed.iter();
    arrival.recipients.retain(|_| each.next() == Some(&true));
    if arrival.recipients.is_empty() {
        return Err(Refusal::POLICY);
    }
    let authentication = authenticate(app, &arrival).await;
    let (ids, prepared) = deliver::deliver(app, arrival, authentication.clone(), name).await?;
    let mut ids = ids.into_iter();
    let outcome = |allowed| if allowed { ids.next() } else { None };
    Ok(ReceivedMessage {
        emails: allowed.into_iter().map(outcome).map(|id| id.ok_or(Refusal::POLICY)).collect(),
        message_id: prepared.message.message_id.clone(),
        scan: prepared.scan_status(app.scanning().has_external()),
        spam: prepared.is_spam(&authentication),
        authentication,
    })
}

/// Which recipients' policies allow the author in the From line. The envelope sender was checked at RCPT and may be a
/// different one.
fn allowing_recipients(arrival: &Arrival) -> Vec<bool> {
    let has_policy = arrival.recipients.iter().any(|recipient| recipient.policy.is_some());
    let author = if has_policy { mail::message::author(&arrival.raw) } else { None };
    let is_report = arrival.from.is_none();
    let allows = |recipient: &Recipient| match (&recipient.policy, &author) {
        // Reports come from any server, so the allow list does not apply to them.
        (Some(policy), Some(author)) if is_report => !matches_any(&policy.block, author),
        (Some(policy), Some(author)) => allows(policy, Some(author)),
        _ => true,
    };
    arrival.recipients.iter().map(allows).collect()
}

/// Stores an uploaded message, without a trusted transport.
pub(crate) async fn import(app: &App, recipient: Recipient, raw: Bytes) -> Result<Vec<EmailId>> {
    let arrival = Arrival { provider: None, from: None, recipients: vec![recipient], raw, client: None };
    let (ids, _) = deliver::deliver(app, arrival, SenderAuthentication::unknown(None), None).await?;
    Ok(ids)
}

async fn authenticate(app: &App, arrival: &Arrival) -> SenderAuthentication {
    let unknown = SenderAuthentication::unknown(arrival.provider);
    let (Some(authenticator), Some(client)) = (app.authenticator(), &arrival.client) else { return unknown };
    let host = &app.settings().hostname;
    let checked =
        authenticator.check(client.address, &client.helo, host, arrival.from.as_deref(), &arrival.raw).await;
    SenderAuthentication {
        status: prepare::verdict(checked.status),
        spf: prepare::verdict(checked.spf),
        dkim: prepare::verdict(checked.dkim),
        dmarc: prepare::verdict(checked.dmarc),
        inbound_provider: arrival.provider,
        reason: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rules: RECV-8
    #[test]
    fn a_block_wins_over_an_allowance() {
        let policy = |allow: &[&str], block: &[&str]| SenderPolicy {
            allow: allow.iter().map(ToString::to_string).collect(),
            block: block.iter().map(ToString::to_string).collect(),
        };
        assert!(allows(&policy(&[], &[]), Some("a@x.test")));
        assert!(allows(&policy(&["@x.test"], &[]), Some("A@X.test")));
        assert!(!allows(&policy(&["@x.test"], &[]), Some("a@y.test")));
        assert!(!allows(&policy(&["@x.test"], &["a@x.test"]), Some("a@x.test")));
        assert!(!allows(&policy(&["*"], &["*"]), Some("a@x.test")));
        assert!(!allows(&policy(&["*"], &["@x.test"]), Some("a@x.test")));
        assert!(allows(&policy(&["a@x.test"], &[]), None), "reports about our own mail");
        assert!(!allows(&policy(&[], &["*"]), None));
    }
}
