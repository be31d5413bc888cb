//! `admin nodes`: the nodes of a service on PostgreSQL, their leases and connections, how far behind their work is, and
//! what is wrong.

use operations::{
    App,
    nodes::{self, Lag, Node, Overview, Standby},
};

use crate::{failure::Result, output};

/// Characters of a node's id that tell it from the others.
const ID_LENGTH: usize = 8;

pub(super) async fn run(app: &App) -> Result<()> {
    let overview = nodes::overview(app.db(), app.now()).await?;
    output::result(&overview, || text(app, &overview))
}

fn text(app: &App, overview: &Overview) -> String {
    let mut lines: Vec<String> = overview.nodes.iter().flat_map(about).collect();
    if app.db().is_sole_node() {
        lines.push("No nodes: only a service on PostgreSQL has several.".to_owned());
    } else if overview.nodes.is_empty() {
        lines.push("No nodes.".to_owned());
    }
    lines.push(format!("Lag          {}", overview.lag.iter().map(lag).collect::<Vec<_>>().join("  ")));
    let connections = &overview.connections;
    if let Some(allowed) = connections.allowed {
        lines.push(format!(
            "Connections  {} in use, at most {} to PostgreSQL, which allows {allowed}",
            connections.in_use, connections.max
        ));
    }
    lines.extend(overview.standbys.iter().flatten().map(standby));
    if overview.standbys.is_none() {
        lines.push("Standbys     not shown to this role of PostgreSQL".to_owned());
    }
    lines.extend(overview.faults.iter().map(|fault| format!("! {fault}")));
    lines.join("\n")
}

fn about(node: &Node) -> Vec<String> {
    let id = node.id.get(..ID_LENGTH).unwrap_or(&node.id);
    let address = if node.address.is_empty() { "no HTTP" } else { &node.address };
    let pool = match node.pool_size {
        0 => "unknown".to_owned(),
        size => format!("{} of {size}", node.pool_in_use),
    };
    let leases = if node.leases.is_empty() { "none".to_owned() } else { node.leases.join(", ") };
    let mut lines = vec![
        format!("{id}  {} process {}  {address}", node.host, node.process),
        format!(
            "  version {} (schema {})  since {}  seen {} s ago  clock {:+} s",
            node.version, node.schema_version, node.started_at, node.silent_seconds, node.clock_ahead_seconds
        ),
        format!("  connections {pool}  sending over {}  leases {leases}", node.sending),
    ];
    lines.extend(node.faults.iter().map(|fault| format!("  ! {fault}")));
    lines
}

fn lag(lag: &Lag) -> String {
    format!("{} {} s", lag.queue, lag.overdue_seconds)
}

fn standby(standby: &Standby) -> String {
    let Standby { name, address, state, lag_seconds, lag_bytes } = standby;
    let state = state.as_deref().unwrap_or("not shown to this role of PostgreSQL");
    let seconds = lag_seconds.map(|seconds| format!("{seconds} s behind"));
    let bytes = lag_bytes.map(|bytes| format!("{} not applied", output::bytes(bytes.unsigned_abs())));
    let known = [Some(name.clone()), Some(address.clone()), Some(state.to_owned()), seconds, bytes];
    let known: Vec<String> = known.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    format!("Standby      {}", known.join("  "))
}
