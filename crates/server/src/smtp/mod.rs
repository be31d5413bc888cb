//! The SMTP and LMTP listeners: connection limits, TLS, and shutdown.
//!
//! The protocol is in [`mail::smtp`]; the [`Reception`] decides about recipients and messages.

mod gate;
mod reception;
#[cfg(test)]
mod tests;
mod tls;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use mail::{
    Encryption,
    smtp::{Budget, Client, Conversation, Protocol, Reception, RunEnd, Settings},
};
use operations::supervisor::Exit;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{Instant, timeout},
};
use tokio_rustls::TlsAcceptor;
use tracing::Instrument;

use self::gate::{ConnectionPermit, Gate, Limits};
pub use self::reception::ServiceReception;
use crate::{config::Config, failure::Result, listener};

/// Timeout for the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for sending the refusal of a connection.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
/// Memory for messages being received, unless the largest one needs more.
const MESSAGE_MEMORY_BYTES: usize = 256 * 1024 * 1024;

/// What the listeners share; clones share the limits.
#[derive(Clone)]
pub struct Options {
    settings: Arc<Settings>,
    tls: TlsAcceptor,
    gate: Arc<Gate>,
}

impl Options {
    /// From the configuration. Reads the certificate, or creates one at the first start.
    pub fn from_config(config: &Config) -> Result<Self> {
        let smtp = &config.smtp;
        let hostname = config.hostname();
        let tls = tls::acceptor(smtp.tls.as_ref(), &config.data_dir, &hostname)?;
        let settings = Settings {
            hostname,
            max_message_bytes: smtp.max_message_bytes,
            starttls: true,
            budget: Budget::new(MESSAGE_MEMORY_BYTES.max(smtp.max_message_bytes.saturating_mul(2))),
        };
        let limits =
            Limits { per_minute: smtp.connections_per_minute, max_open: smtp.connections_per_address };
        let gate = Gate::new(smtp.max_connections, limits);
        Ok(Self { settings: Arc::new(settings), tls, gate: Arc::new(gate) })
    }
}

/// Binds the configured addresses, each for its protocol. Clients wait until [`serve`] is called.
pub fn bind(config: &Config) -> Result<Vec<(TcpListener, Protocol)>> {
    let lmtp = config.smtp.lmtp_listen.map(|address| (address, Protocol::Lmtp));
    let listeners = std::iter::once((config.smtp.listen, Protocol::Smtp)).chain(lmtp);
    listeners.map(|(address, protocol)| Ok((listener::bind(address)?, protocol))).collect()
}

/// Receives mail until shutdown: then no further connections, 421 to idle ones, and time for messages in flight.
/// Each connection keeps a clone of `stopping` until its end.
///
/// `protocol` is [`Protocol::Lmtp`] for LMTP and anything else for SMTP.
pub async fn serve<R: Reception>(
    listener: Arc<TcpListener>,
    protocol: Protocol,
    reception: Arc<R>,
    options: Options,
    mut stopping: watch::Receiver<bool>,
) -> Exit {
    let stopping_connections = stopping.clone();
    let accept_all = async {
        loop {
            let (stream, address) = listener::accept(&listener).await;
            let connection = Connection {
                client: Client {
                    session: web::new_log_id("smtp"),
                    ..Client::new(canonical(address), protocol)
                },
                reception: reception.clone(),
                options: options.clone(),
                stopping: stopping_connections.clone(),
            };
            connection.begin(stream);
        }
    };
    tokio::select! {
        () = accept_all => Exit::Unexpected,
        _ = stopping.wait_for(|stop| *stop) => Exit::Finished,
    }
}

/// The canonical address: IPv4 without the mapping of a dual-stack listener.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// A connection, and its resources.
struct Connection<R> {
    client: Client,
    reception: Arc<R>,
    options: Options,
    stopping: watch::Receiver<bool>,
}

impl<R: Reception> Connection<R> {
    fn begin(self, stream: TcpStream) {
        // A mail server in front relays everyone's mail; only unknown clients are counted by their address.
        let counted = (self.client.protocol != Protocol::Lmtp).then_some(self.client.address.ip());
        match self.options.gate.admit(counted, Instant::now()) {
            Ok(permit) => {
                // All log lines of the session carry its id.
                let span = tracing::error_span!("smtp", session = self.client.session);
                tokio::spawn(self.run(stream, permit).instrument(span));
            }
            Err(refusal) => {
                metrics::counter!("smtp_connections_refused_total").increment(1);
                refuse(stream, refusal);
            }
        }
    }

    async fn run(self, mut stream: TcpStream, permit: ConnectionPermit) {
        let _open = OpenConnection::count();
        let _permit = permit;
        let mut conversation =
            Conversation::new(self.options.settings, self.client, self.reception, self.stopping);
        let outcome = async {
            if conversation.run(&mut stream).await? == RunEnd::Closed {
                return Ok(());
            }
            let mut stream = timeout(HANDSHAKE_TIMEOUT, self.options.tls.accept(stream)).await??;
            conversation.secured(Encryption::of(stream.get_ref().1));
            conversation.run(&mut stream).await.map(|_| ())
        };
        let outcome: std::io::Result<()> = outcome.await;
        if let Err(error) = outcome {
            tracing::trace!(%error, "connection failed");
        }
    }
}

/// Sends the reason, without waiting for the client.
fn refuse(mut stream: TcpStream, refusal: &'static str) {
    // A new connection has buffer space for a line; a client that does not read it gets none.
    if stream.try_write(refusal.as_bytes()).is_ok() {
        tokio::spawn(async move { timeout(REFUSAL_TIMEOUT, stream.shutdown()).await });
    }
}

/// Counts itself among the open connections until it is dropped.
struct OpenConnection;

impl OpenConnection {
    fn count() -> Self {
        metrics::gauge!("smtp_connections").increment(1.0);
        Self
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        metrics::gauge!("smtp_connections").decrement(1.0);
    }
}
