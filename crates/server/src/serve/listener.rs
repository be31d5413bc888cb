//! The accept loop: takes connections as long as there is room for them, and survives running out of descriptors.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use operations::supervisor::Exit;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{Semaphore, watch},
};

use web::Proxies;

use super::connection::{Connections, Peer};
use crate::{
    failure::{Failure, Result},
    shares::{Share, Shares},
};

/// Connections that the kernel keeps for us until we come to accept them.
const BACKLOG: u32 = 4096;
/// How long to wait when the system has no room for another connection.
const BACK_OFF: Duration = Duration::from_millis(100);

/// Listens on an address. Nobody is answered until somebody accepts connections there.
pub(crate) fn bind(address: SocketAddr) -> Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    let listening = socket.and_then(|socket| {
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    });
    listening.map_err(|error| {
        let fix = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "Another program uses it; choose another address in the configuration or stop that one."
            }
            io::ErrorKind::PermissionDenied => "Ports below 1024 need a privilege; choose a higher one.",
            _ => "Choose an address of this machine.",
        };
        Failure::new(format!("Cannot listen on {address}: {error}")).with_fix(fix)
    })
}

/// A router that waits for connections.
pub(super) struct Door {
    connections: Arc<Connections>,
    room: Arc<Semaphore>,
    guests: Guests,
    stopping: watch::Receiver<bool>,
}

/// How many connections there may be at once.
pub(super) struct Guests {
    /// Of all clients together.
    pub(super) most: usize,
    /// Of each client.
    pub(super) shares: Shares,
    /// Who connects on behalf of many clients.
    pub(super) proxies: Proxies,
}

impl Guests {
    /// A place among the connections of a client, or that it has as many as it may have. The programs of this machine share
    /// one address, and so do all who come through a proxy.
    fn admit(&self, address: IpAddr) -> std::result::Result<Option<Share>, TooMany> {
        if address.to_canonical().is_loopback() || self.proxies.include(address) {
            return Ok(None);
        }
        self.shares.take(address).map(Some).ok_or(TooMany)
    }
}

/// A client has as many connections as it may have.
#[derive(Debug)]
struct TooMany;

impl Door {
    /// Serves a bounded number of connections at once, until told to stop.
    pub(super) fn new(router: Router, guests: Guests, stopping: watch::Receiver<bool>) -> Self {
        let room = Arc::new(Semaphore::new(guests.most.min(Semaphore::MAX_PERMITS)));
        Self { connections: Arc::new(Connections::new(router)), room, guests, stopping }
    }

    /// Accepts connections until told to stop.
    pub(super) async fn serve(self: Arc<Self>, listener: Arc<TcpListener>) -> Exit {
        let mut stopping = self.stopping.clone();
        tokio::select! {
            () = self.accept_all(&listener) => Exit::Unexpected,
            _ = stopping.wait_for(|stop| *stop) => Exit::Finished,
        }
    }

    async fn accept_all(&self, listener: &TcpListener) {
        loop {
            // Room first: what is not accepted waits in the kernel and costs us nothing.
            let Ok(place) = self.room.clone().acquire_owned().await else { return };
            let (stream, address) = accept(listener).await;
            match self.guests.admit(address.ip()) {
                Ok(share) => self.begin(stream, Peer { address, place, share }),
                // Closed at once, by dropping it: an answer would have to wait for the question.
                Err(TooMany) => metrics::counter!("http_connections_refused_total").increment(1),
            }
        }
    }

    fn begin(&self, stream: TcpStream, peer: Peer) {
        let (connections, stopping) = (self.connections.clone(), self.stopping.clone());
        tokio::spawn(async move { connections.serve(stream, peer, stopping).await });
    }
}

/// The next connection, after as much waiting as the system needs when it is out of descriptors.
pub(crate) async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    let mut complained = false;
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                // Answers are written whole, so waiting for more would only delay them. A closed socket fails soon enough.
                let _ = stream.set_nodelay(true);
                return (stream, address);
            }
            Err(error) if concerns_one_connection(&error) => {}
            Err(error) => {
                // Once for each time of trouble: a log that fills the disk would make it worse.
                if !std::mem::replace(&mut complained, true) {
                    tracing::warn!(%error, "cannot accept connections for the moment");
                }
                tokio::time::sleep(BACK_OFF).await;
            }
        }
    }
}

/// Whether a failure to accept is about a client that has gone, rather than about us.
fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
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
            let guests = Guests { most: 10, shares: Shares::new(2), proxies };
            let open: Vec<_> = (0..2).map(|_| guests.admit(address.parse().unwrap()).unwrap()).collect();
            let third = guests.admit(address.parse().unwrap());
            assert_eq!(third.is_err(), counted, "{address} {:?}", guests.proxies);
            drop(open);
            assert!(guests.admit(address.parse().unwrap()).is_ok());
        }
    }
}
