//! A smarthost that takes everything, over connections that are kept for a while.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use mail::client::{Connection, Credentials, Options, Security};
use operations::outside::{Handed, Handover, HandoverOutcome, NextHop, Peer};
use tokio::time::Instant;

use super::{send, timeouts, tls, tried_peer};
use crate::{
    config::Config,
    failure::{Failure, Result},
};

/// How long a connection that nobody uses is kept.
const IDLE: Duration = Duration::from_secs(30);
/// Connections that are kept: as many as the queue uses at once.
const MOST_IDLE: usize = 16;

/// The smarthost.
pub(super) struct Relay {
    host: String,
    port: u16,
    options: Options,
    /// Mails over one connection.
    most_mails: u32,
    idle: Mutex<Vec<Kept>>,
}

/// A connection that was used already.
struct Kept {
    connection: Connection,
    /// Since when nobody uses it.
    since: Instant,
    /// Mails that went over it.
    mails: u32,
}

impl Relay {
    pub(super) fn new(config: &Config) -> Result<Self> {
        let url = config.outbound.relay_url.as_ref();
        let url = url.ok_or_else(|| Failure::new("outbound.relay_url is missing"))?;
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let implicit = url.scheme() == "smtps";
        let port = url.port().unwrap_or(if implicit { 465 } else { 587 });
        let decode = |text: &str| {
            let pairs = format!("x={}", text.replace('+', "%2B"));
            url::form_urlencoded::parse(pairs.as_bytes()).next().map(|(_, value)| value.into_owned())
        };
        let credentials = match (decode(url.username()), url.password().and_then(decode)) {
            (Some(user), Some(password)) if !user.is_empty() => Some(Credentials::new(user, password)),
            _ => None,
        };
        // A relay is somebody we know: it proves who it is, unless the operator says that the network is closed.
        let security = match (implicit, config.outbound.allow_private) {
            (true, _) => Security::Implicit(tls()?),
            (false, true) => Security::Opportunistic(tls()?),
            (false, false) => Security::StartTls(tls()?),
        };
        let options = Options {
            hello: crate::smtp::hostname(config),
            server_name: host.clone(),
            security,
            credentials,
            timeouts: timeouts(),
        };
        let most_mails = config.outbound.mails_per_connection;
        Ok(Self { host, port, options, most_mails, idle: Mutex::default() })
    }

    /// A connection, and how many messages went over it; or why there is none.
    async fn connection(&self) -> Result<(Connection, u32), (HandoverOutcome, Peer)> {
        if let Some(kept) = self.take() {
            return Ok((kept.connection, kept.mails));
        }
        let unreachable = |error: &dyn std::fmt::Display| HandoverOutcome::Unreachable(error.to_string());
        let unknown = Peer { host: self.host.clone(), address: None, tls: None, verified: false };
        let addresses: Vec<SocketAddr> = match tokio::net::lookup_host((self.host.as_str(), self.port)).await
        {
            Ok(found) => found.collect(),
            Err(error) => return Err((unreachable(&error), unknown)),
        };
        let mut last = (HandoverOutcome::Unreachable("The relay has no address".to_owned()), unknown);
        for address in addresses.into_iter().take(4) {
            match Connection::connect(address, &self.options).await {
                Ok(connection) => return Ok((connection, 0)),
                // What the relay says about us is no verdict about the mail: it waits until somebody has mended it.
                Err(error) => last = (unreachable(&error), tried_peer(&self.host, address)),
            }
        }
        Err(last)
    }

    fn take(&self) -> Option<Kept> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|kept| kept.since.elapsed() < IDLE);
        idle.pop()
    }

    fn keep(&self, connection: Connection, mails: u32) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if connection.is_usable() && mails < self.most_mails && idle.len() < MOST_IDLE {
            idle.push(Kept { connection, since: Instant::now(), mails });
        }
    }

    async fn hand(&self, handover: Handover) -> Handed {
        let count = handover.recipients.len();
        let all = |outcome: HandoverOutcome, peer| Handed { outcomes: vec![outcome; count], peer };
        for fresh in [false, true] {
            let (mut connection, mails) = match self.connection().await {
                Ok(found) => found,
                Err((outcome, peer)) => return all(outcome, Some(peer)),
            };
            let sent = send(&mut connection, &handover).await;
            self.keep(connection, mails + 1);
            // A kept connection may have ended meanwhile: that says nothing about the relay.
            if fresh || mails == 0 || !sent.connection_failed {
                return sent.handed;
            }
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        all(HandoverOutcome::Later("The relay closed the connection".to_owned()), None)
    }
}

impl NextHop for Relay {
    fn hand_over(&self, handover: Handover) -> Pin<Box<dyn Future<Output = Handed> + Send + '_>> {
        Box::pin(self.hand(handover))
    }
}
