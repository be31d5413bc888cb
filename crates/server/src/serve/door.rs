//! A router behind a listener: accepts connections up to a total limit and a limit per client.

use std::{net::IpAddr, sync::Arc};

use axum::Router;
use operations::supervisor::Exit;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};
use web::Proxies;

use super::connection::{Connections, Peer};
use crate::{
    listener,
    shares::{Share, Shares},
};

/// A router that waits for connections.
pub(super) struct Door {
    connections: Arc<Connections>,
    permits: Arc<Semaphore>,
    limits: ConnectionLimits,
    stopping: watch::Receiver<bool>,
}

/// Limits of concurrent connections.
pub(super) struct ConnectionLimits {
    /// Of all clients together.
    pub(super) max_connections: usize,
    /// Of each client.
    pub(super) shares: Shares,
    /// The trusted proxies, which connect for many clients.
    pub(super) proxies: Proxies,
}

impl ConnectionLimits {
    /// A share of a client's connections, or an error when it has too many. Programs on this machine share one
    /// address, and so do all clients behind a proxy, so those are not counted.
    fn admit(&self, address: IpAddr) -> std::result::Result<Option<Share>, TooManyConnections> {
        if address.to_canonical().is_loopback() || self.proxies.include(address) {
            return Ok(None);
        }
        self.shares.take(address).map(Some).ok_or(TooManyConnections)
    }
}

/// A client has too many connections open.
#[derive(Debug)]
struct TooManyConnections;

impl Door {
    /// Serves a bounded number of connections until shutdown.
    pub(super) fn new(router: Router, limits: ConnectionLimits, stopping: watch::Receiver<bool>) -> Self {
        let permits = Arc::new(Semaphore::new(limits.max_connections.min(Semaphore::MAX_PERMITS)));
        Self { connections: Arc::new(Connections::new(router)), permits, limits, stopping }
    }

    /// Accepts connections until shutdown.
    pub(super) async fn serve(self: Arc<Self>, listener: Arc<TcpListener>) -> Exit {
        let mut stopping = self.stopping.clone();
        tokio::select! {
            () = self.accept_all(&listener) => Exit::Unexpected,
            _ = stopping.wait_for(|stop| *stop) => Exit::Finished,
        }
    }

    async fn accept_all(&self, listener: &TcpListener) {
        loop {
            // A permit first: connections that are not accepted wait in the kernel and cost nothing.
            let Ok(permit) = self.permits.clone().acquire_owned().await else { return };
            let (stream, address) = listener::accept(listener).await;
            match self.limits.admit(address.ip()) {
                Ok(share) => self.begin(stream, Peer { address, permit, share }),
                // Closed at once, by dropping it: a response would have to wait for the request.
                Err(TooManyConnections) => metrics::counter!("http_connections_refused_total").increment(1),
            }
        }
    }

    fn begin(&self, stream: TcpStream, peer: Peer) {
        let (connections, stopping) = (self.connections.clone(), self.stopping.clone());
        tokio::spawn(async move { connections.serve(stream, peer, stopping).await });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rules: HTTP-20
    #[test]
    fn this_machine_and_proxies_have_as_many_connections_as_they_like() {
        let networks = vec!["192.0.2.0/24".parse().unwrap()];
        for (proxies, address, counted) in [
            (Proxies::None, "198.51.100.7", true),
            (Proxies::None, "::ffff:198.51.100.7", true),
            (Proxies::None, "2001:db8::1", true),
            (Proxies::None, "127.0.0.1", false),
            (Proxies::None, "::1", false),
            (Proxies::None, "::ffff:127.0.0.1", false),
            (Proxies::Count(1), "198.51.100.7", false),
            (Proxies::Networks(networks.clone()), "198.51.100.7", true),
            (Proxies::Networks(networks.clone()), "192.0.2.9", false),
            (Proxies::Networks(networks), "::ffff:192.0.2.9", false),
        ] {
            let limits = ConnectionLimits { max_connections: 10, shares: Shares::new(2), proxies };
            let open: Vec<_> = (0..2).map(|_| limits.admit(address.parse().unwrap()).unwrap()).collect();
            let third = limits.admit(address.parse().unwrap());
            assert_eq!(third.is_err(), counted, "{address} {:?}", limits.proxies);
            drop(open);
            assert!(limits.admit(address.parse().unwrap()).is_ok());
        }
    }
}
