//! Listening sockets: bound with a long backlog, and accepted from in a way that survives running out of
//! descriptors.

use std::{io, net::SocketAddr, time::Duration};

use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::{
    failure::{Failure, Result},
    port_owner,
};

/// The backlog: connections that the kernel queues until they are accepted.
const BACKLOG: u32 = 4096;
/// Delay before the next accept when the system is out of descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Listens on an address. Clients wait in the backlog until connections are accepted.
pub fn bind(address: SocketAddr) -> Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    let listening = socket.and_then(|socket| {
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    });
    listening.map_err(|error| {
        let fix = match error.kind() {
            io::ErrorKind::AddrInUse => {
                let owner = port_owner::find(address);
                let owner = owner.map(|owner| format!(" ({owner})")).unwrap_or_default();
                format!(
                    "Another program uses it{owner}. Stop it, or choose another address in the configuration."
                )
            }
            io::ErrorKind::PermissionDenied => {
                "Ports below 1024 need a privilege; choose a higher one.".to_owned()
            }
            _ => "Choose an address of this machine.".to_owned(),
        };
        Failure::new(format!("Cannot listen on {address}: {error}")).with_fix(fix)
    })
}

/// The next connection, waiting while the system is out of descriptors.
pub async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    let mut complained = false;
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                // Responses are written whole, so Nagle's algorithm would only delay them. A closed socket fails
                // soon enough.
                let _ = stream.set_nodelay(true);
                return (stream, address);
            }
            Err(error) if concerns_one_connection(&error) => {}
            Err(error) => {
                // Logged once per outage: a log that fills the disk would make it worse.
                if !std::mem::replace(&mut complained, true) {
                    let delay_ms = ACCEPT_RETRY_DELAY.as_millis();
                    tracing::warn!(%error, delay_ms, "accepting connections failed; retrying");
                }
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

/// Whether a failed accept is about a client that disconnected, rather than about us.
fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
