//! The MX hosts of each domain, in their order.

use std::{
    net::{IpAddr, SocketAddr},
    pin::Pin,
    time::Duration,
};

use mail::{
    client::{Connection, Error, Options, Security, Tls},
    mx::{Host, NoRoute, Router},
};
use operations::outside::{Handover, HandoverOutcome, NextHop};

use super::{resolver, send, timeouts, tls};
use crate::{config::Config, failure::Result};

/// Hosts and addresses that one attempt tries.
const MOST_TRIES: usize = 6;
/// How long one attempt may look for a host that answers.
const SEARCH: Duration = Duration::from_mins(1);

/// Sends to the hosts that domains name for their mail.
pub(super) struct Direct {
    router: Router,
    hello: String,
    tls: Tls,
    port: u16,
}

impl Direct {
    pub(super) fn new(config: &Config) -> Result<Self> {
        let hello = crate::smtp::hostname(config);
        let mut router = Router::new(resolver(config)?, std::slice::from_ref(&hello), &[]);
        if config.outbound.allow_private {
            router = router.with_rule(|_: IpAddr| true);
        }
        Ok(Self { router, hello, tls: tls()?, port: config.outbound.port })
    }

    async fn hand(&self, handover: Handover) -> Vec<HandoverOutcome> {
        let count = handover.recipients.len();
        let seed = handover.message.len() as u64;
        let hosts = match self.router.route(&handover.domain, seed).await {
            Ok(hosts) => hosts,
            Err(error) => return vec![no_route(error); count],
        };
        match tokio::time::timeout(SEARCH, self.connect(&hosts)).await {
            Ok(Ok(mut connection)) => {
                let outcomes = send(&mut connection, &handover).await;
                connection.quit().await;
                outcomes
            }
            Ok(Err(error)) => vec![unreachable(&error); count],
            Err(_) => {
                vec![HandoverOutcome::Unreachable("No mail server of the domain answers".to_owned()); count]
            }
        }
    }

    /// A connection to the first host that has time for us.
    async fn connect(&self, hosts: &[Host]) -> Result<Connection, Error> {
        let mut last = Error::NoTls;
        let mut left = MOST_TRIES;
        for host in hosts {
            for address in host.addresses.iter().take(left) {
                left -= 1;
                match self.connect_to(host, *address).await {
                    Ok(connection) => return Ok(connection),
                    Err(error) => last = error,
                }
            }
        }
        Err(last)
    }

    async fn connect_to(&self, host: &Host, address: IpAddr) -> Result<Connection, Error> {
        let mut options = Options {
            hello: self.hello.clone(),
            server_name: host.name.clone(),
            security: Security::Opportunistic(self.tls.clone()),
            credentials: None,
            timeouts: timeouts(),
        };
        let place = SocketAddr::new(address, self.port);
        match Connection::connect(place, &options).await {
            // Encryption that does not work is no worse than none, which is what the standard allows.
            Err(Error::Tls(_)) => {
                options.security = Security::None;
                Connection::connect(place, &options).await
            }
            other => other,
        }
    }
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
    fn hand_over(
        &self,
        handover: Handover,
    ) -> Pin<Box<dyn Future<Output = Vec<HandoverOutcome>> + Send + '_>> {
        Box::pin(self.hand(handover))
    }
}
