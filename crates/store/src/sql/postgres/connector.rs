//! Connecting to PostgreSQL: to the first host of the URL that answers in time and can be written to.

use std::{
    pin::{Pin, pin},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures_util::{Stream, stream::poll_fn};
use tokio_postgres::{
    AsyncMessage, Client, Config, NoTls,
    config::{Host, SslMode, TargetSessionAttrs},
};

use super::tls;
use crate::error::{Error, Result};

/// How long one of several hosts may take, from the first packet to the answer that it can be used. A host whose server is
/// frozen accepts connections and says nothing.
const HOST_TIMEOUT: Duration = Duration::from_secs(2);
/// The same for the only host, which there is nothing to gain by giving up early.
const ONLY_HOST_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeouts are measured in slices: a time in which this process itself was stopped or starved counts as one slice,
/// however long it was, and says nothing about the server.
const TIMEOUT_SLICES: u32 = 4;

/// What a connection receives; it makes progress only while this is polled.
pub(in crate::sql) type Messages =
    Pin<Box<dyn Stream<Item = Result<AsyncMessage, tokio_postgres::Error>> + Send>>;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(in crate::sql) enum ConnectFault {
    /// The answer of the server, or that nobody listens.
    #[error(transparent)]
    Refused(tokio_postgres::Error),
    /// It accepts connections and says nothing.
    #[error("PostgreSQL does not answer")]
    Silent,
    /// TLS cannot be set up here.
    #[error(transparent)]
    Tls(Error),
}

impl From<ConnectFault> for Error {
    fn from(fault: ConnectFault) -> Self {
        match fault {
            ConnectFault::Refused(error) => error.into(),
            ConnectFault::Silent => Self::Unavailable(fault.into()),
            ConnectFault::Tls(error) => error,
        }
    }
}

/// Connects to the hosts of a URL.
pub(in crate::sql) struct Connector {
    /// The URL, once for each of its hosts.
    hosts: Vec<Config>,
    /// The host that is tried first: the one that was connected to last.
    preferred: AtomicUsize,
}

impl Connector {
    /// `settings` are those that each session starts with, in the form of the server's command line.
    pub(in crate::sql) fn new(url: &str, settings: Option<&str>) -> Result<Self> {
        let mut hosts = Vec::new();
        for url in one_for_each_host(url) {
            let mut config: Config = url.parse().map_err(|error| {
                Error::Unavailable(format!("the database's URL is not a connection string: {error}").into())
            })?;
            config.application_name("agent-mailbox");
            config.connect_timeout(HOST_TIMEOUT);
            if let Some(settings) = settings {
                config.options(settings);
            }
            hosts.push(config);
        }
        if hosts.len() > 1 {
            // One of them is the primary, whether the URL says so or not.
            for config in &mut hosts {
                config.target_session_attrs(TargetSessionAttrs::ReadWrite);
            }
        }
        Ok(Self { hosts, preferred: AtomicUsize::new(0) })
    }

    fn host_timeout(&self) -> Duration {
        if self.hosts.len() > 1 { HOST_TIMEOUT } else { ONLY_HOST_TIMEOUT }
    }

    /// How long [`connect`](Self::connect) may take.
    pub(super) fn timeout(&self) -> Duration {
        self.host_timeout() * u32::try_from(self.hosts.len()).unwrap_or(u32::MAX) + Duration::from_secs(1)
    }

    /// The URL of the host that was connected to last.
    pub(super) fn config(&self) -> &Config {
        &self.hosts[self.preferred.load(Ordering::Relaxed)]
    }

    /// The hosts with their ports, for people.
    pub(super) fn host_names(&self) -> String {
        self.hosts.iter().map(host_names).collect::<Vec<_>>().join(", ")
    }

    /// Lets the next connection be tried elsewhere first, after the present host was lost.
    pub(in crate::sql) fn prefer_next(&self) {
        let next = (self.preferred.load(Ordering::Relaxed) + 1) % self.hosts.len();
        self.preferred.store(next, Ordering::Relaxed);
    }

    /// Connects to the first host that answers in time and can be written to, where several are named.
    pub(in crate::sql) async fn connect(&self) -> Result<(Client, Messages), ConnectFault> {
        let first = self.preferred.load(Ordering::Relaxed);
        let mut fault = None;
        for index in (0..self.hosts.len()).map(|step| (first + step) % self.hosts.len()) {
            // Boxed, because every transaction may have to connect, and that takes much room.
            let connected =
                timeout_in_slices(self.host_timeout(), Box::pin(connect(&self.hosts[index]))).await;
            match connected.unwrap_or(Err(ConnectFault::Silent)) {
                Ok(connection) => {
                    self.preferred.store(index, Ordering::Relaxed);
                    return Ok(connection);
                }
                // That of the preferred host says most: the others may be its standbys.
                Err(found) => _ = fault.get_or_insert(found),
            }
        }
        Err(fault.unwrap_or(ConnectFault::Silent))
    }
}

async fn connect(config: &Config) -> Result<(Client, Messages), ConnectFault> {
    if config.get_ssl_mode() == SslMode::Disable {
        let (client, mut connection) = config.connect(NoTls).await.map_err(ConnectFault::Refused)?;
        Ok((client, Box::pin(poll_fn(move |context| connection.poll_message(context)))))
    } else {
        let tls = tls::connector().map_err(ConnectFault::Tls)?;
        let (client, mut connection) = config.connect(tls).await.map_err(ConnectFault::Refused)?;
        Ok((client, Box::pin(poll_fn(move |context| connection.poll_message(context)))))
    }
}

/// Waits for a response of the server, with a timeout that only counts slices in which this process was running.
pub(in crate::sql) async fn timeout_in_slices<T>(
    time: Duration,
    response: impl Future<Output = T>,
) -> Option<T> {
    let mut response = pin!(response);
    for _ in 0..TIMEOUT_SLICES {
        if let Ok(response) = tokio::time::timeout(time / TIMEOUT_SLICES, &mut response).await {
            return Some(response);
        }
    }
    None
}

/// A URL with several hosts, once for each of them.
fn one_for_each_host(url: &str) -> Vec<String> {
    let Some((scheme, rest)) = url.split_once("://") else { return vec![url.to_owned()] };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (user, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    hosts.split(',').map(|host| format!("{scheme}://{user}{host}{path}")).collect()
}

/// The host of a configuration with its port.
fn host_names(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate().map(|(index, host)| {
        let port = ports.get(index).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        }
    });
    hosts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::{future::pending, thread};

    use super::*;

    #[tokio::test]
    async fn time_in_which_this_process_was_stopped_does_not_count() {
        let time = Duration::from_secs(1);
        let response = async {
            thread::sleep(time * 2);
            tokio::time::sleep(time / 100).await;
            7
        };
        assert_eq!(timeout_in_slices(time, response).await, Some(7));
        assert!(timeout_in_slices(time, pending::<()>()).await.is_none());
    }

    #[test]
    fn a_url_with_several_hosts_is_one_for_each() {
        let one = "postgres://user:p@db/mail?sslmode=disable";
        assert_eq!(one_for_each_host(one), [one]);
        assert_eq!(
            one_for_each_host("postgres://u:p@a:5432,b:5433/mail?target_session_attrs=read-write"),
            [
                "postgres://u:p@a:5432/mail?target_session_attrs=read-write",
                "postgres://u:p@b:5433/mail?target_session_attrs=read-write"
            ]
        );
        assert_eq!(one_for_each_host("postgres://a,b"), ["postgres://a", "postgres://b"]);
        assert_eq!(one_for_each_host("host=a user=b"), ["host=a user=b"]);
        let several = Connector::new("postgres://u:p@a:5432,b/mail", None).unwrap();
        assert_eq!(several.host_names(), "a:5432, b:5432");
        assert_eq!(several.hosts[1].get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    }
}
