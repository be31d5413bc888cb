//! Delivery to the MX hosts of each domain, in order of preference.

use std::{
    net::{IpAddr, SocketAddr},
    pin::Pin,
    time::Duration,
};

use mail::{
    client::{Connection, Error, Options, Security, Tls, TlsError},
    dns::{Dns, ResolverError},
    mta_sts::{MtaSts, Policy},
    mx::{Host, NoRoute, Router},
};
use operations::ports::{Clock as _, Handover, HandoverOutcome, HandoverResult, NextHop, Peer, SystemClock};

use super::handover::{send, timeouts, tried_peer};
use crate::webhook_http::OutgoingHttp;

/// Maximum hosts and addresses tried by one attempt.
const MAX_TRIES: usize = 6;
/// Timeout of one attempt to find a host that responds.
const CONNECT_TIMEOUT: Duration = Duration::from_mins(1);

/// How MX hosts are resolved and reached.
pub struct DirectSettings {
    /// The name of this host.
    pub hello: String,
    /// The port of MX hosts.
    pub port: u16,
    /// Whether hosts with private addresses are allowed.
    pub allow_private: bool,
    /// The name servers; empty for the system's.
    pub dns_servers: Vec<SocketAddr>,
}

/// Why direct delivery is not possible.
#[derive(Debug, thiserror::Error)]
pub enum DirectError {
    /// No resolver.
    #[error(transparent)]
    Resolver(#[from] ResolverError),
    /// No TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Delivers to the MX hosts of domains.
pub struct Direct {
    router: Router,
    policies: MtaSts<OutgoingHttp>,
    hello: String,
    tls: Tls,
    port: u16,
}

impl Direct {
    /// Finds and reaches hosts as the settings say.
    pub fn new(settings: DirectSettings) -> Result<Self, DirectError> {
        let DirectSettings { hello, port, allow_private, dns_servers } = settings;
        let mut router = Router::new(resolver(&dns_servers)?, std::slice::from_ref(&hello), &[]);
        if allow_private {
            router = router.with_rule(|_: IpAddr| true);
        }
        let dns = resolver(&dns_servers)?;
        let policies = MtaSts::new(dns.clone(), OutgoingHttp::new(Some(dns), allow_private));
        Ok(Self { router, policies, hello, tls: Tls::system()?, port })
    }

    async fn deliver(&self, handover: Handover) -> HandoverResult {
        let count = handover.recipients.len();
        let all = |outcome: HandoverOutcome, peer| HandoverResult { outcomes: vec![outcome; count], peer };
        let seed = handover.message.len() as u64;
        let hosts = match self.router.route(&handover.domain, seed).await {
            Ok(hosts) => hosts,
            Err(error) => return all(no_route(error), None),
        };
        let policy = self.policies.policy(&handover.domain, now()).await;
        let Some(hosts) = allowed(hosts, policy.as_deref()) else {
            let text = "No mail server of the domain is one that its MTA-STS policy names";
            return all(HandoverOutcome::Unreachable(text.to_owned()), None);
        };
        let proven = policy.is_some_and(|policy| policy.enforces());
        match tokio::time::timeout(CONNECT_TIMEOUT, self.connect(&hosts, proven)).await {
            Ok(Ok(mut connection)) => {
                let sent = send(&mut connection, &handover).await;
                connection.quit().await;
                sent.handed
            }
            Ok(Err((error, peer))) => all(unreachable(&error), peer),
            Err(_) => {
                let text = "No mail server of the domain answers";
                all(HandoverOutcome::Unreachable(text.to_owned()), None)
            }
        }
    }

    /// A connection to the first host that accepts one, or why there is none and at which host.
    async fn connect(&self, hosts: &[Host], proven: bool) -> Result<Connection, (Error, Option<Peer>)> {
        let mut last: Option<(Error, Peer)> = None;
        let mut left = MAX_TRIES;
        for host in hosts {
            for address in host.addresses.iter().take(left) {
                left -= 1;
                match self.connect_to(host, *address, proven).await {
                    Ok(connection) => return Ok(connection),
                    // A temporary failure of one host outweighs a permanent one of another.
                    Err(error) if last.as_ref().is_none_or(|(error, _)| error.is_permanent()) => {
                        let target = SocketAddr::new(*address, self.port);
                        last = Some((error, tried_peer(&host.name, target)));
                    }
                    Err(_) => {}
                }
            }
        }
        Err(last.map_or((Error::NoTls, None), |(error, peer)| (error, Some(peer))))
    }

    /// A connection to one host, which must authenticate itself if its domain's policy requires it.
    async fn connect_to(&self, host: &Host, address: IpAddr, proven: bool) -> Result<Connection, Error> {
        let tls = self.tls.clone();
        let mut options = Options {
            hello: self.hello.clone(),
            server_name: host.name.clone(),
            security: if proven { Security::StartTls(tls) } else { Security::Opportunistic(tls) },
            credentials: None,
            timeouts: timeouts(),
        };
        let target = SocketAddr::new(address, self.port);
        match Connection::connect(target, &options).await {
            // Opportunistic TLS that fails is no worse than none, which the standard allows.
            Err(Error::Tls(_)) if !proven => {
                options.security = Security::None;
                Connection::connect(target, &options).await
            }
            other => other,
        }
    }
}

/// The hosts that a domain's MTA-STS policy allows; `None` when it allows none of them.
fn allowed(hosts: Vec<Host>, policy: Option<&Policy>) -> Option<Vec<Host>> {
    let Some(policy) = policy.filter(|policy| policy.enforces()) else { return Some(hosts) };
    let hosts: Vec<Host> = hosts.into_iter().filter(|host| policy.matches(&host.name)).collect();
    (!hosts.is_empty()).then_some(hosts)
}

fn resolver(servers: &[SocketAddr]) -> Result<Dns, ResolverError> {
    if servers.is_empty() { Dns::from_system() } else { Dns::with_servers(servers) }
}

/// Seconds since 1970.
fn now() -> i64 {
    SystemClock.now().as_micros().div_euclid(1_000_000)
}

fn no_route(error: NoRoute) -> HandoverOutcome {
    let text = format!("{} {error}", error.status());
    if error.is_permanent() {
        HandoverOutcome::Refused(format!("550 {text}"))
    } else {
        HandoverOutcome::Unreachable(format!("451 {text}"))
    }
}

fn unreachable(error: &Error) -> HandoverOutcome {
    if error.is_permanent() {
        HandoverOutcome::Refused(error.to_string())
    } else {
        HandoverOutcome::Unreachable(error.to_string())
    }
}

impl NextHop for Direct {
    fn hand_over(&self, handover: Handover) -> Pin<Box<dyn Future<Output = HandoverResult> + Send + '_>> {
        Box::pin(self.deliver(handover))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rules: SEND-32
    #[test]
    fn a_policy_leaves_only_the_hosts_that_it_names() {
        let host = |name: &str| Host { name: name.to_owned(), addresses: Vec::new() };
        let policy = |mode: &str| {
            let text = format!("version: STSv1\r\nmode: {mode}\r\nmx: *.good.test\r\nmax_age: 86400\r\n");
            Policy::parse(text.as_bytes()).unwrap()
        };
        let hosts = || vec![host("mx.good.test"), host("mx.evil.test")];
        let names = |found: Option<Vec<Host>>| {
            found.map(|hosts| hosts.into_iter().map(|host| host.name).collect::<Vec<_>>())
        };
        assert_eq!(names(allowed(hosts(), None)).unwrap().len(), 2);
        assert_eq!(names(allowed(hosts(), Some(&policy("testing")))).unwrap().len(), 2);
        assert_eq!(names(allowed(hosts(), Some(&policy("enforce")))).unwrap(), ["mx.good.test"]);
        assert_eq!(names(allowed(vec![host("mx.evil.test")], Some(&policy("enforce")))), None);
    }
}
