//! Checks of the ports: whether they are free, or who has them. A server of another data folder is another program.

use std::net::SocketAddr;

use store::DatabaseLocation;

use super::{super::probe, report::Report};
use crate::{
    config::Config,
    output,
    port_owner::{self, PortOwner},
    serve::lock::serving_process,
};

/// Whether a server of this data folder runs.
enum OwnServer {
    /// Yes: this process.
    Running(String),
    Stopped,
    /// Servers on PostgreSQL leave no trace in the data folder, and that of another user cannot be read.
    Unknown,
}

impl OwnServer {
    fn find(config: &Config) -> Self {
        match (&config.database, serving_process(&config.data_dir)) {
            (DatabaseLocation::Postgres(_), _) | (_, Err(_)) => Self::Unknown,
            (DatabaseLocation::Sqlite(_), Ok(Some(process))) => Self::Running(process),
            (DatabaseLocation::Sqlite(_), Ok(None)) => Self::Stopped,
        }
    }

    /// Whether what listens on a port is known to be something else.
    fn is_not(&self, owner: Option<&PortOwner>) -> bool {
        match (self, owner) {
            (Self::Stopped, _) => true,
            (Self::Running(process), Some(owner)) => *process != format!("process {}", owner.process),
            (Self::Running(_), None) | (Self::Unknown, _) => false,
        }
    }
}

pub(super) async fn check(config: &Config, report: &mut Report) {
    let own = OwnServer::find(config);
    let places = [
        ("HTTP", "http.listen", Some(config.http.listen)),
        ("metrics", "http.metrics_listen", config.http.metrics_listen),
        ("SMTP", "smtp.listen", Some(config.smtp.listen)),
        ("LMTP", "smtp.lmtp_listen", config.smtp.lmtp_listen),
    ];
    for (name, option, address) in places {
        let Some(address) = address else { continue };
        let listener = probe::identify(address).await;
        let owner = match &listener {
            probe::Listener::Us(_) | probe::Listener::Other => port_owner::find(address),
            probe::Listener::Free | probe::Listener::Unusable(_) => None,
        };
        let fix = format!("stop it, or choose another {option}");
        match listener {
            probe::Listener::Free => free(name, address, &own, report),
            probe::Listener::Us(version) if own.is_not(owner.as_ref()) => report.fail(
                name,
                format!("{address} is used by {}; {fix}", other_server(&version, owner.as_ref(), config)),
            ),
            probe::Listener::Us(version) => {
                report.ok(name, format!("{address} is served by Agent Mailbox {version}"));
                workers(address, report).await;
            }
            probe::Listener::Other if own.is_not(owner.as_ref()) => report.fail(
                name,
                format!("{address} is used by another program{}; {fix}", program(owner.as_ref())),
            ),
            // Only HTTP says who answers.
            probe::Listener::Other if name == "HTTP" => report.fail(
                name,
                match own {
                    OwnServer::Running(ref process) => {
                        format!(
                            "the server of this folder ({process}) does not answer on {address}; see its log"
                        )
                    }
                    _ => format!(
                        "{address} is used by another program: it does not answer like Agent Mailbox; {fix}"
                    ),
                },
            ),
            probe::Listener::Other => report.ok(name, format!("{address} is in use")),
            probe::Listener::Unusable(error) => {
                report.fail(name, format!("cannot listen on {address}: {error}; choose another {option}"));
            }
        }
    }
}

fn free(name: &'static str, address: SocketAddr, own: &OwnServer, report: &mut Report) {
    match own {
        OwnServer::Running(process) if name == "HTTP" && address.port() != 0 => report.warn(
            name,
            format!("the server of this folder ({process}) runs, but does not listen on {address}: was it started with other options?"),
        ),
        _ => report.ok(name, format!("{address} is free")),
    }
}

/// An Agent Mailbox that serves another folder.
fn other_server(version: &str, owner: Option<&PortOwner>, config: &Config) -> String {
    let own = config.data_dir.display();
    format!("another Agent Mailbox {version}{}, while no server runs on {own}", program(owner))
}

fn program(owner: Option<&PortOwner>) -> String {
    owner.map(|owner| format!(" ({owner})")).unwrap_or_default()
}

/// The state of the running service's workers.
async fn workers(address: SocketAddr, report: &mut Report) {
    let Some(readiness) = probe::readiness(address).await else {
        return report
            .fail("workers", "unknown, because the server is not ready; see the failures above and its log");
    };
    let workers = readiness["workers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut running = 0_u64;
    for worker in workers {
        let name = worker["name"].as_str().unwrap_or("?");
        let restarts = worker["restarts"].as_u64().unwrap_or_default();
        let failures = output::plural(worker["failures"].as_u64().unwrap_or_default(), "failure");
        match worker["state"].as_str() {
            Some("running") if restarts == 0 => running += 1,
            Some("running") => {
                running += 1;
                let times = output::plural(restarts, "time");
                report.warn(
                    "workers",
                    format!("{name} was restarted {times} since the start; the log says why"),
                );
            }
            Some("restarting") => {
                report.warn(
                    "workers",
                    format!("{name} is down after {failures} in a row and will be restarted"),
                );
            }
            _ => report.fail("workers", format!("{name} could not be restarted; the server is stopping")),
        }
    }
    report.ok("workers", format!("{running} of {} running", workers.len()));
}
