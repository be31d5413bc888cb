//! A smarthost that takes everything, over connections that are kept for a while.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use mail::client::{Connection, Credentials, Options, Security, Tls, TlsError};
use operations::ports::{Handed, Handover, HandoverOutcome, NextHop, Peer};
use tokio::time::Instant;
use url::{Url, form_urlencoded};

use super::handover::{send, timeouts, tried_peer};

/// How long a connection that nobody uses is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Connections that are kept: as many as the queue uses at once.
const MAX_IDLE_CONNECTIONS: usize = 16;

/// Addresses of the relay that one attempt tries.
const MAX_ADDRESSES: usize = 4;

/// How a relay is reached.
pub struct RelaySettings {
    /// Its address, with the name and password that it asks for: `smtp` or `smtps`.
    pub url: Url,
    /// The name of this host.
    pub hello: String,
    /// Whether it is also used when it offers no encryption.
    pub allow_plain: bool,
    /// Messages over one connection.
    pub max_messages: u32,
}

/// The relay.
pub struct Relay {
    host: String,
    port: u16,
    options: Options,
    /// Messages over one connection.
    max_messages: u32,
    idle: Mutex<Vec<Kept>>,
}

/// A connection that was used already.
struct Kept {
    connection: Connection,
    /// Since when nobody uses it.
    since: Instant,
    /// Messages that went over it.
    messages: u32,
}

impl Relay {
    /// The relay that the settings name.
    pub fn new(settings: RelaySettings) -> Result<Self, TlsError> {
        let RelaySettings { url, hello, allow_plain, max_messages } = settings;
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let implicit = url.scheme() == "smtps";
        let port = url.port().unwrap_or(if implicit { 465 } else { 587 });
        // A relay is somebody we know: it proves who it is, unless the operator says that the network is closed.
        let security = match (implicit, allow_plain) {
            (true, _) => Security::Implicit(Tls::system()?),
            (false, true) => Security::Opportunistic(Tls::system()?),
            (false, false) => Security::StartTls(Tls::system()?),
        };
        let options = Options {
            hello,
            server_name: host.clone(),
            security,
            credentials: credentials(&url),
            timeouts: timeouts(),
        };
        Ok(Self { host, port, options, max_messages, idle: Mutex::default() })
    }

    /// A connection, and how many messages went over it; or why there is none.
    async fn connection(&self) -> Result<(Connection, u32), (HandoverOutcome, Peer)> {
        if let Some(kept) = self.take() {
            return Ok((kept.connection, kept.messages));
        }
        let unreachable = |error: &dyn std::fmt::Display| HandoverOutcome::Unreachable(error.to_string());
        let unknown = Peer { host: self.host.clone(), address: None, tls: None, verified: false };
        let addresses: Vec<SocketAddr> = match tokio::net::lookup_host((self.host.as_str(), self.port)).await
        {
            Ok(found) => found.collect(),
            Err(error) => return Err((unreachable(&error), unknown)),
        };
        let mut last = (HandoverOutcome::Unreachable("The relay has no address".to_owned()), unknown);
        for address in addresses.into_iter().take(MAX_ADDRESSES) {
            match Connection::connect(address, &self.options).await {
                Ok(connection) => return Ok((connection, 0)),
                // What the relay says about us is no verdict about the message: it waits until somebody has mended it.
                Err(error) => last = (unreachable(&error), tried_peer(&self.host, address)),
            }
        }
        Err(last)
    }

    fn take(&self) -> Option<Kept> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|kept| kept.since.elapsed() < IDLE_TIMEOUT);
        idle.pop()
    }

    fn keep(&self, connection: Connection, messages: u32) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if connection.is_usable() && messages < self.max_messages && idle.len() < MAX_IDLE_CONNECTIONS {
            idle.push(Kept { connection, since: Instant::now(), messages });
        }
    }

    async fn hand(&self, handover: Handover) -> Handed {
        let count = handover.recipients.len();
        let all = |outcome: HandoverOutcome, peer| Handed { outcomes: vec![outcome; count], peer };
        for fresh in [false, true] {
            let (mut connection, messages) = match self.connection().await {
                Ok(found) => found,
                Err((outcome, peer)) => return all(outcome, Some(peer)),
            };
            let sent = send(&mut connection, &handover).await;
            self.keep(connection, messages + 1);
            // A kept connection may have ended meanwhile: that says nothing about the relay.
            if fresh || messages == 0 || !sent.connection_failed {
                return sent.handed;
            }
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        all(HandoverOutcome::Later("The relay closed the connection".to_owned()), None)
    }
}

/// The name and password in the address of a relay, if there are both.
fn credentials(url: &Url) -> Option<Credentials> {
    let decode = |text: &str| {
        let pairs = format!("x={}", text.replace('+', "%2B"));
        form_urlencoded::parse(pairs.as_bytes()).next().map(|(_, value)| value.into_owned())
    };
    match (decode(url.username()), url.password().and_then(decode)) {
        (Some(user), Some(password)) if !user.is_empty() => Some(Credentials::new(user, password)),
        _ => None,
    }
}

impl NextHop for Relay {
    fn hand_over(&self, handover: Handover) -> Pin<Box<dyn Future<Output = Handed> + Send + '_>> {
        Box::pin(self.hand(handover))
    }
}
