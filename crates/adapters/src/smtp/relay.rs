//! A smarthost for all messages, over pooled connections.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use mail::client::{Connection, Credentials, Options, Security, Tls, TlsError};
use operations::ports::{Handover, HandoverOutcome, HandoverResult, NextHop, Peer};
use tokio::time::Instant;
use url::{Url, form_urlencoded};

use super::handover::{send, timeouts, tried_peer};

/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum idle connections: as many as the queue uses concurrently.
const MAX_IDLE_CONNECTIONS: usize = 16;

/// Maximum addresses of the relay tried by one attempt.
const MAX_ADDRESSES: usize = 4;

/// How the relay is reached.
pub struct RelaySettings {
    /// Its URL, with its user name and password: `smtp` or `smtps`.
    pub url: Url,
    /// The name of this host.
    pub hello: String,
    /// Whether it is also used without TLS.
    pub allow_plain: bool,
    /// Messages per connection.
    pub max_messages: u32,
}

/// The relay.
pub struct Relay {
    host: String,
    port: u16,
    options: Options,
    /// Messages per connection.
    max_messages: u32,
    idle: Mutex<Vec<IdleConnection>>,
}

/// An idle connection.
struct IdleConnection {
    connection: Connection,
    /// Since when it is idle.
    since: Instant,
    /// Messages that were sent over it.
    messages: u32,
}

impl Relay {
    /// A relay with these settings.
    pub fn new(settings: RelaySettings) -> Result<Self, TlsError> {
        let RelaySettings { url, hello, allow_plain, max_messages } = settings;
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let implicit = url.scheme() == "smtps";
        let port = url.port().unwrap_or(if implicit { 465 } else { 587 });
        // The relay is known, so it must authenticate itself, unless the operator says that the network is private.
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

    /// A connection, and how many messages were sent over it; or why there is none.
    async fn connection(&self) -> Result<(Connection, u32), (HandoverOutcome, Peer)> {
        if let Some(idle_connection) = self.take_idle() {
            return Ok((idle_connection.connection, idle_connection.messages));
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
                // A failed connection or login says nothing about the message: it stays queued until the operator
                // has fixed it.
                Err(error) => last = (unreachable(&error), tried_peer(&self.host, address)),
            }
        }
        Err(last)
    }

    fn take_idle(&self) -> Option<IdleConnection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|idle_connection| idle_connection.since.elapsed() < IDLE_TIMEOUT);
        idle.pop()
    }

    fn put_idle(&self, connection: Connection, messages: u32) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if connection.is_usable() && messages < self.max_messages && idle.len() < MAX_IDLE_CONNECTIONS {
            idle.push(IdleConnection { connection, since: Instant::now(), messages });
        }
    }

    async fn deliver(&self, handover: Handover) -> HandoverResult {
        let count = handover.recipients.len();
        let all = |outcome: HandoverOutcome, peer| HandoverResult { outcomes: vec![outcome; count], peer };
        for fresh in [false, true] {
            let (mut connection, messages) = match self.connection().await {
                Ok(found) => found,
                Err((outcome, peer)) => return all(outcome, Some(peer)),
            };
            let sent = send(&mut connection, &handover).await;
            self.put_idle(connection, messages + 1);
            // A pooled connection may have been closed meanwhile: that says nothing about the relay.
            if fresh || messages == 0 || !sent.connection_failed {
                return sent.handed;
            }
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        all(HandoverOutcome::Deferred("The relay closed the connection".to_owned()), None)
    }
}

/// The user name and password in the relay's URL, if it has both.
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
    fn hand_over(&self, handover: Handover) -> Pin<Box<dyn Future<Output = HandoverResult> + Send + '_>> {
        Box::pin(self.deliver(handover))
    }
}
