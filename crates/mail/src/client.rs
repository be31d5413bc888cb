//! The sending side of SMTP (RFC 5321): one connection to one server, and the messages sent over it.
//!
//! Routing, retries and trust are up to the caller. The server is not trusted: replies are bounded, every read and
//! write has a deadline however slowly bytes arrive, and an unsolicited reply is an error. The outcome is given for
//! each recipient and is never guessed: if the final reply is lost, it is [`Outcome::Uncertain`].

mod content;
mod credentials;
mod error;
mod pipelining;
mod reply;
#[cfg(test)]
mod tests;
mod tls;
mod transfer;
mod wire;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

pub use content::{InvalidMessage, check_content};
pub use credentials::Credentials;
pub use error::{Error, Phase};
pub use reply::Reply;
pub use tls::{Tls, TlsError};
pub use transfer::{MailObject, Outcome};

use self::wire::{Io, Wire};
use crate::Encryption;

/// How a connection is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// What we call ourselves: our host name.
    pub hello: String,
    /// The name of the server, which its certificate must match.
    pub server_name: String,
    /// Whether and how the connection is encrypted.
    pub security: Security,
    /// The account to authenticate with, if any. Never sent without encryption.
    pub credentials: Option<Credentials>,
    /// Timeouts for each step.
    pub timeouts: Timeouts,
}

/// Whether and how a connection is encrypted.
#[derive(Clone, Debug)]
pub enum Security {
    /// Not at all.
    None,
    /// Opportunistic STARTTLS without certificate verification. A failed handshake is [`Error::Tls`]; the caller
    /// decides whether to retry without encryption.
    Opportunistic(Tls),
    /// STARTTLS with a valid certificate, required.
    StartTls(Tls),
    /// Implicit TLS (port 465) with a valid certificate.
    Implicit(Tls),
}

/// Timeouts; the defaults are those of RFC 5321, section 4.5.3.2, where it has some.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For the connection.
    pub connect: Duration,
    /// For the server's greeting.
    pub greeting: Duration,
    /// For the answers to EHLO, STARTTLS, AUTH, MAIL and RSET.
    pub command: Duration,
    /// For the handshake of TLS.
    pub handshake: Duration,
    /// For the answer about one recipient.
    pub recipient: Duration,
    /// For the answer to DATA.
    pub data: Duration,
    /// For each 64 KiB of content to be written.
    pub block: Duration,
    /// For the answer to the end of the content.
    pub finish: Duration,
    /// For everything up to the first message, and then for each message as a whole.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            greeting: Duration::from_mins(5),
            command: Duration::from_mins(5),
            handshake: Duration::from_mins(1),
            recipient: Duration::from_mins(5),
            data: Duration::from_mins(2),
            block: Duration::from_mins(3),
            finish: Duration::from_mins(10),
            total: Duration::from_mins(30),
        }
    }
}

/// An SMTP extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extension {
    /// Content may have eight bits (RFC 6152).
    EightBit,
    /// Addresses may be internationalised (RFC 6531).
    Utf8,
    /// Commands may be sent together (RFC 2920).
    Pipelining,
    /// Content may be sent with BDAT (RFC 3030).
    Chunking,
    /// The connection can be encrypted (RFC 3207).
    StartTls,
}

impl Extension {
    fn from_keyword(keyword: &str) -> Option<Self> {
        match keyword {
            "8BITMIME" => Some(Self::EightBit),
            "SMTPUTF8" => Some(Self::Utf8),
            "PIPELINING" => Some(Self::Pipelining),
            "CHUNKING" => Some(Self::Chunking),
            "STARTTLS" => Some(Self::StartTls),
            _ => None,
        }
    }
}

/// The server's extensions, from its reply to EHLO.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// The largest message that it accepts, where it announces that.
    pub max_size: Option<u64>,
    /// Whether it announces SIZE.
    sizes: bool,
    offered: Vec<Extension>,
    /// The AUTH mechanisms, in upper case.
    auth: Vec<String>,
}

impl Extensions {
    /// Whether the server offers an extension.
    pub fn offers(&self, extension: Extension) -> bool {
        self.offered.contains(&extension)
    }

    /// Reads the lines of an answer to EHLO, the first of which is a greeting.
    fn read(reply: &Reply) -> Self {
        let mut found = Self::default();
        for line in reply.lines().skip(1) {
            let upper = line.to_ascii_uppercase();
            let mut words = upper.split([' ', '=']).filter(|word| !word.is_empty());
            match words.next().unwrap_or_default() {
                "SIZE" => {
                    let most = words.next().and_then(|size| size.parse().ok());
                    found.sizes = true;
                    found.max_size = most.filter(|size| *size > 0);
                }
                "AUTH" => found.auth.extend(words.map(str::to_owned)),
                keyword => found.offered.extend(Extension::from_keyword(keyword)),
            }
        }
        found
    }
}

/// A connection over which messages can be sent, one after the other.
pub struct Connection {
    wire: Wire,
    extensions: Extensions,
    timeouts: Timeouts,
    /// The name of the intended server.
    server_name: String,
    /// The remote address, if the connection was opened here.
    address: Option<SocketAddr>,
    encryption: Option<Encryption>,
    /// Whether its certificate was verified.
    verified: bool,
    /// Whether the server may still have an open transaction.
    unfinished: bool,
    /// Whether nothing more can be sent.
    broken: bool,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("extensions", &self.extensions)
            .field("encryption", &self.encryption)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects to a server and sends EHLO. The caller checks whether the address may be connected to: see
    /// [`crate::net::is_public`].
    pub async fn connect(address: SocketAddr, options: &Options) -> Result<Self, Error> {
        let deadline = Instant::now() + options.timeouts.connect.min(options.timeouts.total);
        let stream = timeout_at(deadline, TcpStream::connect(address))
            .await
            .map_err(|_| Error::Timeout(Phase::Connect))?
            .map_err(|error| Error::Network(Phase::Connect, error.kind().to_string()))?;
        // Commands are small and each waits for its reply.
        let _ = stream.set_nodelay(true);
        let connection = Self::start(stream, options).await?;
        Ok(Self { address: Some(address), ..connection })
    }

    /// Sends EHLO over an existing stream.
    pub async fn start(stream: impl Io + 'static, options: &Options) -> Result<Self, Error> {
        let wire = Wire::new(Box::new(stream), options.timeouts.total);
        let mut connection = Self {
            wire,
            extensions: Extensions::default(),
            timeouts: options.timeouts,
            server_name: options.server_name.clone(),
            address: None,
            encryption: None,
            verified: false,
            unfinished: false,
            broken: false,
        };
        connection.prepare(options).await?;
        Ok(connection)
    }

    /// What the server can do.
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// Whether the connection is encrypted.
    pub fn is_secured(&self) -> bool {
        self.encryption.is_some()
    }

    /// How it is encrypted, if it is.
    pub fn encryption(&self) -> Option<Encryption> {
        self.encryption
    }

    /// Whether the server's certificate was verified.
    pub fn is_verified(&self) -> bool {
        self.verified
    }

    /// The name of the intended server.
    pub fn server_name(&self) -> &str {
        &self.server_name
    }

    /// The remote address, if the connection was opened by [`Connection::connect`].
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Whether another message can be sent over it.
    pub fn is_usable(&self) -> bool {
        !self.broken
    }

    /// Sends QUIT; errors are ignored.
    pub async fn quit(mut self) {
        if !self.broken {
            let timeout = Duration::from_secs(5);
            self.wire.set_total(timeout);
            if self.wire.command(Phase::Reset, timeout, "QUIT").await.is_ok() {
                self.wire.shut_down(timeout).await;
            }
        }
    }

    async fn prepare(&mut self, options: &Options) -> Result<(), Error> {
        if let Security::Implicit(tls) = &options.security {
            self.encrypt(tls, &options.server_name, true).await?;
        }
        let greeting = self.wire.reply(Phase::Greeting, self.timeouts.greeting).await?;
        expect(Phase::Greeting, 220, greeting)?;
        self.hello(&options.hello).await?;
        let offered = self.extensions.offers(Extension::StartTls);
        match &options.security {
            Security::Opportunistic(tls) if offered => self.start_tls(tls, options, false).await?,
            Security::StartTls(tls) if offered => self.start_tls(tls, options, true).await?,
            Security::StartTls(_) => return Err(Error::NoTls),
            Security::None | Security::Implicit(_) | Security::Opportunistic(_) => {}
        }
        match &options.credentials {
            Some(credentials) => self.log_in(credentials).await,
            None => Ok(()),
        }
    }

    /// Authenticates, over TLS only.
    async fn log_in(&mut self, credentials: &Credentials) -> Result<(), Error> {
        if !self.is_secured() {
            return Err(Error::NoAuth);
        }
        credentials.log_in(&mut self.wire, &self.extensions.auth, self.timeouts.command).await
    }

    async fn hello(&mut self, name: &str) -> Result<(), Error> {
        // A configured name must not inject a second command.
        let name: String = name.chars().filter(char::is_ascii_graphic).collect();
        let timeout = self.timeouts.command;
        let reply = self.wire.command(Phase::Hello, timeout, &format!("EHLO {name}")).await?;
        if reply.code() == 250 {
            self.extensions = Extensions::read(&reply);
            return Ok(());
        }
        self.extensions = Extensions::default();
        if !reply.is_permanent() {
            return Err(Error::Refused(Phase::Hello, reply));
        }
        let reply = self.wire.command(Phase::Hello, timeout, &format!("HELO {name}")).await?;
        expect(Phase::Hello, 250, reply)
    }

    /// Upgrades the connection with STARTTLS and sends EHLO again: earlier announcements no longer count.
    async fn start_tls(&mut self, tls: &Tls, options: &Options, verified: bool) -> Result<(), Error> {
        let reply = self.wire.command(Phase::Tls, self.timeouts.command, "STARTTLS").await?;
        match (reply.code(), verified) {
            (220, _) => {}
            (421, _) | (_, true) => return Err(Error::Refused(Phase::Tls, reply)),
            (_, false) => return Ok(()),
        }
        self.encrypt(tls, &options.server_name, verified).await?;
        self.hello(&options.hello).await
    }

    async fn encrypt(&mut self, tls: &Tls, server_name: &str, verified: bool) -> Result<(), Error> {
        let deadline = self.wire.deadline(self.timeouts.handshake);
        let plain = self.wire.take_for_tls()?;
        let (secured, encryption) = timeout_at(deadline, tls.connect(plain, server_name, verified))
            .await
            .map_err(|_| Error::Timeout(Phase::Tls))??;
        self.wire.replace_stream(secured);
        (self.encryption, self.verified) = (Some(encryption), verified);
        Ok(())
    }
}

/// Refuses every answer but the expected one.
fn expect(phase: Phase, code: u16, reply: Reply) -> Result<(), Error> {
    if reply.code() == code { Ok(()) } else { Err(Error::Refused(phase, reply)) }
}
