//! The nodes of the service, how far behind their work is, their connections to PostgreSQL, and what is wrong.

use askama::Template;
use axum::{Router, response::Response, routing::get};
use operations::nodes::{self, Lag, Node, Standby};

use crate::{
    State,
    console::{
        page::html,
        shell::Shell,
        time::{When, Zone, number, size},
        visit::Visit,
    },
};

/// A queue that is behind by less is not behind: workers look for what they were not told of once a minute.
const UNREMARKABLE_LAG_SECONDS: u64 = 60;
/// Characters of a node's id that tell it from the others.
const ID_LENGTH: usize = 8;

pub(super) fn routes() -> Router<State> {
    Router::new().route("/console/operator/nodes", get(show))
}

struct NodeRow {
    id: String,
    host: String,
    process: i64,
    address: String,
    version: String,
    schema: i64,
    started: When,
    seen: String,
    clock: String,
    leases: String,
    /// Connections in use, and the most that there are; `None` when the node does not say.
    pool: Option<(String, String)>,
    sending: String,
    running: bool,
    faults: Vec<String>,
}

impl NodeRow {
    fn new(node: Node, zone: &Zone) -> Self {
        Self {
            running: node.is_running(),
            started: zone.when(node.started_at),
            seen: format!("{} ago", duration(node.silent_seconds.unsigned_abs())),
            clock: format!("{:+} s", node.clock_ahead_seconds),
            leases: node.leases.join(", "),
            pool: (node.pool_size > 0).then(|| (number(node.pool_in_use), number(node.pool_size))),
            sending: number(node.sending),
            id: node.id.chars().take(ID_LENGTH).collect(),
            host: node.host,
            process: node.process,
            address: node.address,
            version: node.version,
            schema: node.schema_version,
            faults: node.faults,
        }
    }
}

struct LagRow {
    name: &'static str,
    /// Since when something has been due; empty when nothing is.
    overdue: String,
    is_behind: bool,
}

impl From<&Lag> for LagRow {
    fn from(lag: &Lag) -> Self {
        let name = match lag.queue {
            "outbound" => "Outbound mail",
            "schedules" => "Scheduled sends",
            "webhooks" => "Webhooks",
            "triage" => "Triage",
            _ => "Search index",
        };
        let overdue = if lag.overdue_seconds == 0 { String::new() } else { duration(lag.overdue_seconds) };
        Self { name, overdue, is_behind: lag.overdue_seconds > UNREMARKABLE_LAG_SECONDS }
    }
}

struct StandbyRow {
    name: String,
    address: String,
    state: String,
    lag: String,
}

impl From<Standby> for StandbyRow {
    fn from(standby: Standby) -> Self {
        let seconds = standby.lag_seconds.map(|seconds| duration(seconds.unsigned_abs()));
        let bytes = standby.lag_bytes.map(size);
        let lag: Vec<String> = [seconds, bytes].into_iter().flatten().collect();
        Self {
            name: standby.name,
            address: standby.address,
            state: standby.state.unwrap_or_else(|| "not shown to this role of PostgreSQL".to_owned()),
            lag: lag.join(", "),
        }
    }
}

#[derive(Template)]
#[template(path = "console/operator_nodes.html")]
struct NodesPage {
    shell: Shell,
    /// Whether there can only be this process.
    is_sole: bool,
    running: String,
    in_use: String,
    /// The most connections that all nodes open, and how many the database allows.
    connections: Option<(String, String)>,
    rows: Vec<NodeRow>,
    lag: Vec<LagRow>,
    standbys: Vec<StandbyRow>,
    faults: Vec<String>,
}

async fn show(visit: Visit) -> Response {
    visit
        .answer(async {
            visit.require_operator()?;
            let shell = visit.shell("Nodes", "operator-nodes").await?;
            let app = visit.app();
            let overview = nodes::overview(app.db(), app.now()).await?;
            let connections = &overview.connections;
            let count = |count: usize| number(i64::try_from(count).unwrap_or(i64::MAX));
            html(&NodesPage {
                is_sole: app.db().is_sole_node(),
                running: count(overview.running()),
                in_use: number(connections.in_use),
                connections: connections.allowed.map(|allowed| (number(connections.max), number(allowed))),
                lag: overview.lag.iter().map(LagRow::from).collect(),
                standbys: overview.standbys.into_iter().flatten().map(StandbyRow::from).collect(),
                faults: overview.faults,
                rows: overview.nodes.into_iter().map(|node| NodeRow::new(node, &shell.zone)).collect(),
                shell,
            })
        })
        .await
}

/// A duration in its largest unit.
fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        for (seconds, text) in
            [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (172_800, "2 days")]
        {
            assert_eq!(duration(seconds), text);
        }
    }
}
