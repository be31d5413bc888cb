//! Authentication (RFC 4954): the account, and the mechanisms that both sides support.
//!
//! The connection makes sure that credentials are sent over TLS only.

use std::fmt;
use std::time::Duration;

use mail_builder::encoders::Base64Encoder;
use zeroize::Zeroizing;

use super::error::{Error, Phase};
use super::reply::Reply;
use super::wire::Wire;

/// An account to send with.
#[derive(Clone)]
pub struct Credentials {
    user: String,
    password: Zeroizing<String>,
}

impl Credentials {
    /// A name and a password.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: user.into(), password: Zeroizing::new(password.into()) }
    }

    /// Authenticates by one of the mechanisms that the server offers; `timeout` is for each reply.
    pub(super) async fn log_in(
        &self,
        wire: &mut Wire,
        mechanisms: &[String],
        timeout: Duration,
    ) -> Result<(), Error> {
        let offered = |name: &str| mechanisms.iter().any(|other| other == name);
        let reply = if offered("PLAIN") {
            self.log_in_plain(wire, timeout).await?
        } else if offered("LOGIN") {
            self.log_in_by_question(wire, timeout).await?
        } else {
            return Err(Error::NoAuth);
        };
        if reply.code() == 235 { Ok(()) } else { Err(Error::Refused(Phase::Auth, reply)) }
    }

    async fn log_in_plain(&self, wire: &mut Wire, timeout: Duration) -> Result<Reply, Error> {
        let secret = Zeroizing::new(format!("\0{}\0{}", self.user, *self.password));
        let command = Zeroizing::new(format!("AUTH PLAIN {}", *base64(&secret)));
        wire.command(Phase::Auth, timeout, &command).await
    }

    /// The server asks for the name, then for the password.
    async fn log_in_by_question(&self, wire: &mut Wire, timeout: Duration) -> Result<Reply, Error> {
        let mut reply = wire.command(Phase::Auth, timeout, "AUTH LOGIN").await?;
        for answer in [self.user.as_str(), &self.password] {
            if reply.code() != 334 {
                return Ok(reply);
            }
            reply = wire.command(Phase::Auth, timeout, &base64(answer)).await?;
        }
        Ok(reply)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

fn base64(text: &str) -> Zeroizing<String> {
    let mut encoded = Vec::new();
    Base64Encoder::new().encode_into(text.as_bytes(), &mut encoded);
    Zeroizing::new(String::from_utf8(encoded).unwrap_or_default())
}
