//! Sockets that listen: bound with a long queue, and accepted from in a way that survives running out of descriptors.

use std::{io, net::SocketAddr, time::Duration};

use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::failure::{Failure, Result};

/// Connections that the kernel keeps for us until we come to accept them.
const BACKLOG: u32 = 4096;
/// How long to wait when the system has no room for another connection.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Listens on an address. Nobody is answered until somebody accepts connections there.
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
                "Another program uses it; choose another address in the configuration or stop that one."
            }
            io::ErrorKind::PermissionDenied => "Ports below 1024 need a privilege; choose a higher one.",
            _ => "Choose an address of this machine.",
        };
        Failure::new(format!("Cannot listen on {address}: {error}")).with_fix(fix)
    })
}

/// The next connection, after as much waiting as the system needs when it is out of descriptors.
pub async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
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
                    let delay_ms = ACCEPT_RETRY_DELAY.as_millis();
                    tracing::warn!(%error, delay_ms, "accepting connections failed; retrying");
                }
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
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
