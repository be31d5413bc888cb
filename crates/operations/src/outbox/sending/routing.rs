//! The routes of a message's recipients: to mailboxes of this server, to other servers, or nowhere.
//!
//! Found before the submission's transaction; the worker finds them again for messages that are deferred.

use std::collections::BTreeSet;

use model::{
    Timestamp, WorkspaceId,
    sending::{OutboundMode, RecipientLine, RecipientState},
};
use store::outbound::DeliveryRecord;

use super::{bounces, origin::Origin, outgoing_message::OutgoingMessage};
use crate::{
    core::{
        app::App,
        error::{Error, ErrorKind, Result},
        state::outbox::RELAY,
    },
    inbox::inbound::{self, Recipient, Refusal},
};

/// Mailboxes of this server that one transaction delivers to; the queue delivers to further ones.
const MAX_LOCAL_MAILBOXES: usize = 50;

/// The route of one recipient.
#[derive(Clone)]
pub(super) enum Route {
    /// To a mailbox of this server.
    Mailbox(Box<Recipient>),
    /// To this server, but later.
    Deferred(String),
    /// Refused.
    Refused(String),
    /// To another server.
    Out(String),
    /// To the sandbox.
    Sandbox,
    /// Nowhere: the address is suppressed.
    Suppressed,
}

/// What stands in place of a reply where an address is suppressed.
pub(super) const SUPPRESSED_REPLY: &str = "Not sent: this address is suppressed";

/// A recipient of a message.
#[derive(Clone)]
pub(super) struct Addressee {
    pub(super) address: String,
    line: RecipientLine,
    pub(super) route: Route,
}

impl Addressee {
    /// Its first delivery record.
    pub(super) fn record(&self, position: i64, now: Timestamp) -> DeliveryRecord {
        use RecipientState as State;
        let (state, reply, destination) = match &self.route {
            Route::Mailbox(_) => (State::Sent, Some("250 2.1.5 Delivered to a mailbox of this server"), ""),
            Route::Refused(reply) => (State::Bounced, Some(reply.as_str()), ""),
            Route::Deferred(reply) => (State::Queued, Some(reply.as_str()), ""),
            Route::Out(destination) => (State::Queued, None, destination.as_str()),
            Route::Sandbox => (State::Sandboxed, Some("250 2.1.5 Kept in the sandbox"), ""),
            Route::Suppressed => (State::Bounced, Some(SUPPRESSED_REPLY), ""),
        };
        let suppressed = matches!(self.route, Route::Suppressed);
        let tried = state != State::Queued;
        DeliveryRecord {
            position,
            recipient: self.address.clone(),
            line: self.line,
            destination: destination.to_owned(),
            state,
            attempts: i64::from(tried && !suppressed),
            next_attempt_at: (!tried).then_some(now),
            last_attempt_at: (tried && !suppressed).then_some(now),
            finished_at: tried.then_some(now),
            reply: reply.map(ToOwned::to_owned),
            class: match (&self.route, reply) {
                (Route::Refused(_) | Route::Deferred(_), Some(reply)) => Some(bounces::class_of(reply)),
                _ => None,
            },
            suppressed,
        }
    }
}

/// Every recipient once, with its route.
pub(super) async fn addressees(
    app: &App,
    origin: &Origin,
    outgoing: &OutgoingMessage,
) -> Result<Vec<Addressee>> {
    let lines = [
        (&outgoing.to, RecipientLine::To),
        (&outgoing.cc, RecipientLine::Cc),
        (&outgoing.bcc, RecipientLine::Bcc),
    ];
    let mut seen = BTreeSet::new();
    let (mut all, mut here) = (Vec::new(), 0);
    for (people, line) in lines {
        for person in people {
            let address = person.address();
            if !seen.insert(address.as_str().to_owned()) {
                continue;
            }
            let mut route = find_route(app, &origin.mailbox.email, address).await?;
            here += usize::from(matches!(route, Route::Mailbox(_)));
            if here > MAX_LOCAL_MAILBOXES && matches!(route, Route::Mailbox(_)) {
                route = Route::Deferred("The mail waits for its turn".to_owned());
            }
            all.push(Addressee { address: address.to_string(), line, route });
        }
    }
    Ok(all)
}

async fn find_route(app: &App, sender: &str, address: &mail::address::Address) -> Result<Route> {
    let found = if is_foreign(app, address).await? {
        Err(Refusal::RELAY)
    } else {
        inbound::route(app, Some(sender), &address.to_string()).await
    };
    Ok(match found {
        Ok(recipient) => Route::Mailbox(Box::new(recipient)),
        Err(refusal) if refusal == Refusal::RELAY => match app.settings().outbound.mode {
            OutboundMode::Local => {
                let fix = format!(
                    "{address} is not hosted here. To send to other servers, set outbound.mode to relay or direct."
                );
                return Err(Error::new(ErrorKind::OutboundNotConfigured).with_fix(fix));
            }
            OutboundMode::Relay => Route::Out(RELAY.to_owned()),
            OutboundMode::Direct => Route::Out(address.domain().to_owned()),
            OutboundMode::Sandbox => Route::Sandbox,
        },
        // If the store cannot answer now, it could not queue the message either.
        Err(refusal) if refusal == Refusal::TRY_LATER => {
            return Err(Error::new(ErrorKind::StorageUnavailable).with_retry_after(2));
        }
        Err(refusal) if refusal.code < 500 => Route::Deferred(refusal.to_string()),
        Err(refusal) => Route::Refused(refusal.to_string()),
    })
}

/// Whether an address certainly belongs to another server: one read instead of the two that look for its mailbox.
async fn is_foreign(app: &App, address: &mail::address::Address) -> Result<bool> {
    if app.settings().hosted_domains.iter().any(|hosted| hosted == address.domain()) {
        return Ok(false);
    }
    app.routes().is_foreign(app.db(), address.without_tag().as_str(), address.domain()).await
}

/// Refuses recipients that this server has no route to.
pub(crate) async fn check_routes(app: &App, origin: &Origin, outgoing: &OutgoingMessage) -> Result<()> {
    addressees(app, origin, outgoing).await.map(|_| ())
}

/// The recipients outside the workspace.
pub(super) fn count_external(workspace: &WorkspaceId, addressees: &[Addressee]) -> i64 {
    let inside = |one: &&Addressee| matches!(&one.route, Route::Mailbox(to) if to.workspace == *workspace);
    i64::try_from(addressees.len() - addressees.iter().filter(inside).count()).unwrap_or(i64::MAX)
}
