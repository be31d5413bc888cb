//! The accept loop: takes connections as long as there is room for them, and survives running out of descriptors.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{Semaphore, watch},
};

use super::connection::{Connections, Peer};
use crate::failure::{Failure, Result};

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
    stopping: watch::Receiver<bool>,
}

impl Door {
    /// Serves at most `most` connections at once, until told to stop.
    pub(super) fn new(router: Router, most: usize, stopping: watch::Receiver<bool>) -> Self {
        let room = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        Self { connections: Arc::new(Connections::new(router)), room, stopping }
    }

    /// Accepts connections. Dropping the listener at the end turns further ones away.
    pub(super) async fn serve(self, listener: TcpListener) {
        let mut stopping = self.stopping.clone();
        tokio::select! {
            () = self.accept_all(&listener) => {}
            _ = stopping.wait_for(|stop| *stop) => {}
        }
    }

    async fn accept_all(&self, listener: &TcpListener) {
        loop {
            // Room first: what is not accepted waits in the kernel and costs us nothing.
            let Ok(place) = self.room.clone().acquire_owned().await else { return };
            let (stream, address) = accept(listener).await;
            self.begin(stream, Peer { address, place });
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
