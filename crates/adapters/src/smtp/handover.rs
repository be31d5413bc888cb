//! A message sent over an open connection: its timeouts, the outcome for each recipient, and the peer.

use std::{net::SocketAddr, time::Duration};

use mail::client::{Connection, Error, InvalidMessage, MailObject, Outcome, Timeouts};
use operations::ports::{Handover, HandoverOutcome, HandoverResult, Peer};

/// Idle servers time out soon; one that has the whole message gets the time that the standard asks for, because
/// giving up then would deliver it twice.
pub(super) const fn timeouts() -> Timeouts {
    Timeouts {
        connect: Duration::from_secs(15),
        greeting: Duration::from_mins(1),
        command: Duration::from_mins(1),
        handshake: Duration::from_secs(20),
        recipient: Duration::from_mins(1),
        data: Duration::from_mins(1),
        block: Duration::from_mins(1),
        finish: Duration::from_mins(10),
        total: Duration::from_mins(30),
    }
}

/// The outcome of sending a message.
pub(super) struct SendOutcome {
    pub(super) handed: HandoverResult,
    /// Whether the connection failed before the server could accept the message.
    pub(super) connection_failed: bool,
}

/// Sends a message over a connection.
pub(super) async fn send(connection: &mut Connection, handover: &Handover) -> SendOutcome {
    let message = MailObject {
        from: handover.sender.as_deref(),
        recipients: &handover.recipients,
        content: &handover.message,
    };
    let (connection_failed, outcomes) = match connection.send(&message).await {
        Ok(outcomes) => (
            outcomes.iter().all(|one| matches!(one, Outcome::Failed(Error::Closed(_) | Error::Network(..)))),
            outcomes.into_iter().map(outcome).collect(),
        ),
        Err(unsendable) => (false, vec![unsendable_outcome(&unsendable); handover.recipients.len()]),
    };
    let peer = Some(peer_of(connection));
    SendOutcome { handed: HandoverResult { outcomes, peer }, connection_failed }
}

/// The peer of a connection.
fn peer_of(connection: &Connection) -> Peer {
    Peer {
        host: connection.server_name().to_owned(),
        address: connection.address(),
        tls: connection.encryption(),
        verified: connection.is_verified(),
    }
}

/// A peer that could not be connected to.
pub(super) fn tried_peer(host: &str, address: SocketAddr) -> Peer {
    Peer { host: host.to_owned(), address: Some(address), tls: None, verified: false }
}

fn outcome(outcome: Outcome) -> HandoverOutcome {
    match outcome {
        Outcome::Accepted(reply) => HandoverOutcome::Accepted(reply.to_string()),
        Outcome::Refused(reply) if reply.is_permanent() => HandoverOutcome::Refused(reply.to_string()),
        Outcome::Refused(reply) => HandoverOutcome::Deferred(reply.to_string()),
        Outcome::Failed(error) => HandoverOutcome::Deferred(error.to_string()),
        // The Message-ID stays the same, so a duplicate can be told from a second message.
        Outcome::Uncertain(error) => {
            HandoverOutcome::Deferred(format!("Nobody knows whether the mail was taken. {error}"))
        }
    }
}

fn unsendable_outcome(unsendable: &InvalidMessage) -> HandoverOutcome {
    HandoverOutcome::Refused(format!("554 5.6.0 {unsendable}"))
}
