//! The receiving side of SMTP and LMTP.
//!
//! [`Session`] is the protocol without I/O: bytes go in, replies and [`Step`]s come out, and nothing in it waits.
//! [`Conversation`] drives one over a stream, enforces timeouts, and asks a [`Reception`] what is accepted. Recipients,
//! storage and delivery are not known here.
//!
//! What is strict, and why: only CRLF ends a line and only CRLF, dot, CRLF ends a message. A client that sends a bare
//! CR or LF is refused and disconnected, because servers that disagree about where a message ends can be made to see
//! two messages where one was sent (SMTP smuggling). Input pipelined where the client must wait for a reply is refused
//! for the same reason. A text line may be as long as the message may be large: lines over 998 bytes are common and
//! harmless.

mod budget;
mod command;
mod content;
mod conversation;
mod path;
mod reply;
mod session;
mod session_driver;
#[cfg(test)]
pub(crate) mod tests;
mod transaction_record;

use std::{future::Future, net::SocketAddr, time::Duration};

use bytes::Bytes;

pub use self::{
    budget::Budget,
    conversation::{Conversation, RunEnd},
    path::{ForwardPath, ReversePath},
    reply::Reply,
    session::{IncomingMessage, Session, Step},
    session_driver::{DrivenSession, drive_session, split_into_pieces},
    transaction_record::{RecipientRecord, TransactionEnd, TransactionRecord},
};
use crate::Encryption;

/// Recipients of one message; further ones get 452 and can be sent in another transaction.
pub const MAX_RECIPIENTS: usize = 1000;

/// Settings of a listener.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name that we greet with.
    pub hostname: String,
    /// The largest message, in bytes as it is stored.
    pub max_message_bytes: usize,
    /// Whether STARTTLS is offered.
    pub starttls: bool,
    /// The memory for messages in transfer, for the whole process.
    pub budget: Budget,
}

/// The protocol of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// SMTP: HELO, or no greeting yet.
    Smtp,
    /// ESMTP: EHLO.
    Esmtp,
    /// LMTP: a reply for each recipient (RFC 2033).
    Lmtp,
}

impl Protocol {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Smtp => "SMTP",
            Self::Esmtp => "ESMTP",
            Self::Lmtp => "LMTP",
        }
    }
}

/// The client of a connection.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its address.
    pub address: SocketAddr,
    /// The name it gave in EHLO, HELO or LHLO, in visible ASCII; not verified.
    pub helo: Option<String>,
    /// How the connection is encrypted, if it is.
    pub tls: Option<Encryption>,
    /// Its protocol.
    pub protocol: Protocol,
    /// The session id in logs.
    pub session: String,
}

impl Client {
    /// One that has just connected.
    pub const fn new(address: SocketAddr, protocol: Protocol) -> Self {
        Self { address, helo: None, tls: None, protocol, session: String::new() }
    }
}

/// Decides what is accepted, and stores it.
pub trait Reception: Send + Sync + 'static {
    /// State of an accepted recipient, from RCPT until the message is complete.
    type Recipient: Send + Sync + 'static;
    /// State of a message until its transaction is reported.
    type Note: Send;

    /// Whether a message of this sender (and of this size, where announced) is accepted.
    fn mail(
        &self,
        client: &Client,
        from: &ReversePath,
        size: Option<u64>,
    ) -> impl Future<Output = Result<(), Reply>> + Send;

    /// Whether this recipient is accepted. Refuse here rather than after DATA: see [`Reception::data`]. The same
    /// recipient may be named twice.
    fn rcpt(
        &self,
        client: &Client,
        from: &ReversePath,
        to: &ForwardPath,
    ) -> impl Future<Output = Result<Self::Recipient, Reply>> + Send;

    /// Stores a message for the recipients and returns one answer for each, in their order.
    ///
    /// `Ok` is a promise: the message is on disk for that recipient, and will not be lost. The bytes are exactly what
    /// was sent, without the dots that SMTP adds. A client that hangs up does not stop this call.
    ///
    /// LMTP sends every answer. SMTP has one reply for all of them:
    /// - all accepted: 250;
    /// - any deferred (4xx): that reply, although others may have accepted. The client retries for all of them, so
    ///   nothing is lost; those who accepted would get it twice, unless it is deduplicated. Storing for all in one
    ///   transaction makes this case impossible.
    /// - some accepted, the others refused for good (5xx): 250, and those others never get it;
    /// - all refused for good: the first refusal.
    ///
    /// A missing answer counts as a deferral.
    ///
    /// The note is for [`Reception::ended`].
    fn data(
        &self,
        client: &Client,
        from: ReversePath,
        recipients: Vec<Self::Recipient>,
        message: Bytes,
    ) -> impl Future<Output = (Vec<Result<String, Reply>>, Self::Note)> + Send;

    /// Called when a transaction has ended in any way, with its duration, and with the note where a message was
    /// complete.
    fn ended(&self, client: &Client, record: TransactionRecord, note: Option<Self::Note>, took: Duration);
}
