//! A relay on loopback between a node and its database, which a test cuts and opens again.
//!
//! With threads of its own, so that it works for services in the test's process and for programs alike.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU8, Ordering},
    },
    thread,
};

/// How a relay is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Connections are closed, the present ones and those that come.
    Refuses,
    /// Connections are accepted and nothing is answered, also on the present ones. The other side sees them as open.
    Silent,
}

const OPEN: u8 = 0;
const REFUSES: u8 = 1;
const SILENT: u8 = 2;

/// A relay, closed when dropped.
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    target: String,
    state: AtomicU8,
    /// The connections of now, which their threads hold; `None` when the relay is closed.
    connections: Mutex<Option<Vec<Weak<Connection>>>>,
}

/// A connection, with the one behind it unless it came while the relay was silent.
struct Connection {
    client: TcpStream,
    server: Option<TcpStream>,
    /// Not open if what it carries is lost, as it stays after the relay is open again.
    state: AtomicU8,
}

impl Connection {
    fn close(&self) {
        for stream in [Some(&self.client), self.server.as_ref()].into_iter().flatten() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, Option<Vec<Weak<Connection>>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, client: TcpStream) {
        let state = self.state.load(Ordering::SeqCst);
        if state == REFUSES {
            return;
        }
        let server = (state == OPEN).then(|| TcpStream::connect(&self.target));
        let Ok(server) = server.transpose() else { return };
        for stream in [Some(&client), server.as_ref()].into_iter().flatten() {
            stream.set_nodelay(true).unwrap();
        }
        let connection = Arc::new(Connection { client, server, state: state.into() });
        let mut connections = self.connections();
        let Some(all) = connections.as_mut() else { return connection.close() };
        // It may have been cut since.
        match self.state.load(Ordering::SeqCst) {
            REFUSES => return connection.close(),
            present if present != OPEN => connection.state.store(present, Ordering::SeqCst),
            _ => {}
        }
        all.retain(|connection| connection.strong_count() > 0);
        all.push(Arc::downgrade(&connection));
        drop(connections);
        for up in [true, false] {
            let connection = connection.clone();
            thread::spawn(move || copy(&connection, up));
        }
    }
}

/// Copies one direction until it ends, and loses what comes while the connection is cut.
fn copy(connection: &Connection, up: bool) {
    let (from, to) = match (&connection.server, up) {
        (Some(server), true) => (&connection.client, Some(server)),
        (Some(server), false) => (server, Some(&connection.client)),
        (None, true) => (&connection.client, None),
        (None, false) => return,
    };
    let (mut from, mut buffer) = (from, vec![0; 64 << 10]);
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let is_open = connection.state.load(Ordering::SeqCst) == OPEN;
        if let Some(mut to) = to.filter(|_| is_open)
            && to.write_all(&buffer[..count]).is_err()
        {
            break;
        }
    }
    // A lost connection stays open to the server, which does not learn that its client has given up.
    if connection.state.load(Ordering::SeqCst) == OPEN {
        connection.close();
    }
}

impl Relay {
    /// An open relay to an address.
    pub fn start(target: impl Into<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            target: target.into(),
            state: OPEN.into(),
            connections: Mutex::new(Some(Vec::new())),
        });
        let accepting = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                if accepting.connections().is_none() {
                    return;
                }
                let (shared, client) = (accepting.clone(), client.unwrap());
                thread::spawn(move || shared.accept(client));
            }
        });
        Self { address, shared }
    }

    /// The URL of a database, with the relay in place of its host.
    pub fn before(url: &str) -> (Self, String) {
        let mut through: url::Url = url.parse().unwrap();
        let target = format!("{}:{}", through.host_str().unwrap(), through.port().unwrap_or(5432));
        let relay = Self::start(target);
        through.set_host(Some("127.0.0.1")).unwrap();
        through.set_port(Some(relay.address.port())).unwrap();
        (relay, through.into())
    }

    /// Cuts it.
    pub fn cut(&self, how: Cut) {
        let state = if how == Cut::Refuses { REFUSES } else { SILENT };
        let connections = self.shared.connections();
        self.shared.state.store(state, Ordering::SeqCst);
        for connection in connections.iter().flatten().filter_map(Weak::upgrade) {
            connection.state.store(state, Ordering::SeqCst);
            if how == Cut::Refuses {
                connection.close();
            }
        }
    }

    /// Opens it for new connections. Those that were cut are lost.
    pub fn open(&self) {
        self.shared.state.store(OPEN, Ordering::SeqCst);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let connections = self.shared.connections().take();
        for connection in connections.iter().flatten().filter_map(Weak::upgrade) {
            connection.close();
        }
        // The listener notices it with its next connection.
        let _ = TcpStream::connect(self.address);
    }
}
