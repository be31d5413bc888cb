//! Logging in (RFC 4954), only where nobody can listen.

use std::fmt;

use mail_builder::encoders::Base64Encoder;
use zeroize::Zeroizing;

use super::{Connection, Error, Phase, Reply};

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
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Connection {
    pub(super) async fn log_in(&mut self, credentials: &Credentials) -> Result<(), Error> {
        if !self.is_secured() {
            return Err(Error::NoAuth);
        }
        let offered = |name: &str| self.extensions.auth.iter().any(|other| other == name);
        let reply = if offered("PLAIN") {
            self.log_in_plain(credentials).await?
        } else if offered("LOGIN") {
            self.log_in_by_question(credentials).await?
        } else {
            return Err(Error::NoAuth);
        };
        if reply.code() == 235 { Ok(()) } else { Err(Error::Refused(Phase::Auth, reply)) }
    }

    async fn log_in_plain(&mut self, credentials: &Credentials) -> Result<Reply, Error> {
        let secret = Zeroizing::new(format!("\0{}\0{}", credentials.user, *credentials.password));
        let command = Zeroizing::new(format!("AUTH PLAIN {}", *base64(&secret)));
        self.wire.command(Phase::Auth, self.timeouts.command, &command).await
    }

    /// The server asks for the name, then for the password.
    async fn log_in_by_question(&mut self, credentials: &Credentials) -> Result<Reply, Error> {
        let limit = self.timeouts.command;
        let mut reply = self.wire.command(Phase::Auth, limit, "AUTH LOGIN").await?;
        for answer in [credentials.user.as_str(), &credentials.password] {
            if reply.code() != 334 {
                return Ok(reply);
            }
            reply = self.wire.command(Phase::Auth, limit, &base64(answer)).await?;
        }
        Ok(reply)
    }
}

fn base64(text: &str) -> Zeroizing<String> {
    let mut encoded = Vec::new();
    Base64Encoder::new().encode_into(text.as_bytes(), &mut encoded);
    Zeroizing::new(String::from_utf8(encoded).unwrap_or_default())
}
