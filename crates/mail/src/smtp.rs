//! The receiving side of SMTP and LMTP.
//!
//! [`Session`] is the protocol without a network: bytes go in, replies and [`Step`]s come out, and nothing in it waits.
//! [`Conversation`] drives one over a stream, keeps the time, and asks a [`Reception`] what may come in. Whether a
//! recipient is known, where mail is kept and what happens to it is no business of this module.
//!
//! What is strict, and why: only CRLF ends a line and only CRLF, dot, CRLF ends a message. Whoever sends a bare CR or
//! LF is refused and disconnected, because two servers that disagree about where a message ends can be made to see
//! two messages where one was sent. What a client sends ahead of a reply that it must wait for is refused for the same
//! reason. A text line may be as long as the message may be large: lines over 998 bytes are common and harmless.

mod budget;
mod command;
mod content;
mod conversation;
mod path;
mod play;
mod record;
mod reply;
mod session;
#[cfg(test)]
pub(crate) mod tests;

use std::{future::Future, net::SocketAddr, time::Duration};

use bytes::Bytes;

pub use self::{
    budget::Budget,
    conversation::{Conversation, Ended},
    path::{ForwardPath, ReversePath},
    play::{Played, cut, play},
    record::{End, Named, Record},
    reply::Reply,
    session::{Envelope, Session, Step},
};
use crate::Encryption;

/// Recipients of one message; more get 452 and can be sent in a second go.
pub const MAX_RECIPIENTS: usize = 1000;

/// What all connections of a listener have in common.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name that we greet with.
    pub hostname: String,
    /// The largest message, in bytes as it is stored.
    pub max_message_bytes: usize,
    /// Whether STARTTLS is offered.
    pub starttls: bool,
    /// The memory for messages that are just coming in, of the whole process.
    pub budget: Budget,
}

/// The way a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// It has said HELO, or nothing yet.
    Smtp,
    /// It has said EHLO.
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

/// The other end of a connection, as far as it is known.
#[derive(Clone, Debug)]
pub struct Client {
    /// Where it comes from.
    pub address: SocketAddr,
    /// What it calls itself, in visible ASCII; nothing before EHLO, HELO or LHLO. Nobody has checked it.
    pub helo: Option<String>,
    /// How the connection is encrypted, if it is.
    pub tls: Option<Encryption>,
    /// How it speaks.
    pub protocol: Protocol,
    /// What the connection is called in logs.
    pub session: String,
}

impl Client {
    /// One that has just connected.
    pub const fn new(address: SocketAddr, protocol: Protocol) -> Self {
        Self { address, helo: None, tls: None, protocol, session: String::new() }
    }
}

/// Decides what is received, and stores it.
pub trait Reception: Send + Sync + 'static {
    /// What is remembered of a recipient from RCPT until the message has come.
    type Recipient: Send + Sync + 'static;
    /// What is remembered of a message until its transaction is told of.
    type Note: Send;

    /// Whether a message of this sender (and of this size, where the client told it) may come now.
    fn mail(
        &self,
        client: &Client,
        from: &ReversePath,
        size: Option<u64>,
    ) -> impl Future<Output = Result<(), Reply>> + Send;

    /// Whether this recipient takes it. Whoever is refused should be refused here: see [`Reception::data`]. The same
    /// recipient may be named twice.
    fn rcpt(
        &self,
        client: &Client,
        from: &ReversePath,
        to: &ForwardPath,
    ) -> impl Future<Output = Result<Self::Recipient, Reply>> + Send;

    /// Stores a message for the recipients and gives one answer for each, in their order.
    ///
    /// `Ok` is a promise: the message is on disk for that recipient, and will not be lost. The bytes are exactly what
    /// was sent, without the dots that SMTP adds. A client that hangs up does not stop this call.
    ///
    /// LMTP passes every answer on. SMTP has one reply for all of them, so that:
    /// - all accepted: 250;
    /// - any refused for now (4xx): that refusal, although others may have accepted. The client comes again with all
    ///   of them, so nothing is lost; those who accepted would get it twice, unless it is recognised. Storing for all
    ///   in one transaction makes this case impossible.
    /// - some accepted, the others refused for good (5xx): 250, and those others never get it, which is their wish;
    /// - all refused for good: the first refusal.
    ///
    /// A missing answer counts as a refusal for now.
    ///
    /// The note is for [`Reception::ended`].
    fn data(
        &self,
        client: &Client,
        from: ReversePath,
        recipients: Vec<Self::Recipient>,
        message: Bytes,
    ) -> impl Future<Output = (Vec<Result<String, Reply>>, Self::Note)> + Send;

    /// Hears of a transaction that has ended, however it did, and how long it took; with the note where a whole message
    /// came.
    fn ended(&self, client: &Client, record: Record, note: Option<Self::Note>, took: Duration);
}
