//! Errors of a connection, and the step of the session at which they occurred.
//!
//! The caller decides about retries; the error has what it needs for that.

use std::fmt;

use super::reply::Reply;

/// What a connection was waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The connection itself.
    Connect,
    /// The greeting.
    Greeting,
    /// The answer to EHLO or HELO.
    Hello,
    /// The answer to STARTTLS, or the handshake.
    Tls,
    /// The answer to AUTH.
    Auth,
    /// The answer to RSET.
    Reset,
    /// The answer to MAIL.
    Sender,
    /// The answer to RCPT.
    Recipient,
    /// The answer to DATA, or writing the content.
    Content,
    /// The answer to the end of the content.
    Finish,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::Greeting => "the greeting",
            Self::Hello => "EHLO",
            Self::Tls => "STARTTLS",
            Self::Auth => "AUTH",
            Self::Reset => "RSET",
            Self::Sender => "MAIL",
            Self::Recipient => "RCPT",
            Self::Content => "the content",
            Self::Finish => "the end of the content",
        })
    }
}

/// Why a connection failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server took too long.
    #[error("The server took too long at {0}.")]
    Timeout(Phase),
    /// The connection was closed.
    #[error("The server closed the connection at {0}.")]
    Closed(Phase),
    /// The connection failed.
    #[error("The connection failed at {0}: {1}.")]
    Network(Phase, String),
    /// The server's reply is not SMTP, or was unsolicited.
    #[error("The server broke the protocol at {0}: {1}.")]
    Protocol(Phase, &'static str),
    /// The server refused the session, for good or for now.
    #[error("The server refused at {0}: {1}")]
    Refused(Phase, Reply),
    /// Encryption is demanded, and the server offers none.
    #[error("The server offers no encryption.")]
    NoTls,
    /// The handshake failed, or the certificate is not valid.
    #[error("Encryption failed: {0}.")]
    Tls(String),
    /// There is an account to send with, but no encryption to send it over, or no way to log in that both sides know.
    #[error("The server offers no safe way to log in.")]
    NoAuth,
}

impl Error {
    /// The server's reply, if that was the error.
    pub fn reply(&self) -> Option<&Reply> {
        match self {
            Self::Refused(_, reply) => Some(reply),
            _ => None,
        }
    }

    /// Whether a retry with the same server would fail again.
    pub fn is_permanent(&self) -> bool {
        self.reply().is_some_and(Reply::is_permanent)
    }
}
