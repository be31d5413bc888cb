//! How a connection is encrypted, for log lines.

use std::fmt;

/// The protocol and the ciphers that both sides agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encryption {
    version: &'static str,
    cipher: &'static str,
}

impl Encryption {
    /// TLS with unknown parameters.
    pub const UNKNOWN: Self = Self { version: "TLS", cipher: "unknown" };

    /// The parameters that a handshake negotiated.
    #[cfg(feature = "network")]
    pub fn of(connection: &rustls::CommonState) -> Self {
        let version = connection.protocol_version().and_then(|version| version.as_str());
        let suite = connection.negotiated_cipher_suite();
        let cipher = suite.and_then(|suite| suite.suite().as_str());
        Self {
            version: version.unwrap_or(Self::UNKNOWN.version),
            cipher: cipher.unwrap_or(Self::UNKNOWN.cipher),
        }
    }
}

impl fmt::Display for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.version, self.cipher)
    }
}
