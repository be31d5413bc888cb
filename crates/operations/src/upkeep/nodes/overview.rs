//! Reads what the nodes say and how far behind their work is, and names what is wrong.

use model::Timestamp;
use store::{
    Db,
    backlog::{self, OldestWork},
    concurrent_indexes::{self, UnusableState},
    nodes::{self, LeaseRecord, NodeRecord},
    replication::{self, StandbyRecord},
};

use super::{
    faults::{self, Peers, ServiceFacts},
    figures::{Connections, IndexState, Lag, Node, Overview, Standby, UnusableIndex},
};
use crate::{core::error::Result, outbox::sending::worker};

/// What one read of the store finds.
struct Figures {
    nodes: Vec<NodeRecord>,
    leases: Vec<LeaseRecord>,
    oldest: Vec<OldestWork>,
    allowed: Option<i64>,
    indexes: Vec<(String, UnusableState)>,
}

/// The nodes of the service, how far behind they are at a time, and what is wrong.
#[crate::boxed]
pub async fn overview(db: &Db, now: Timestamp) -> Result<Overview> {
    let wanted = Db::concurrent_indexes();
    let found = db.system_read(async move |tx| {
        Ok::<_, store::Error>(Figures {
            nodes: nodes::list(tx).await?,
            leases: nodes::leases(tx).await?,
            oldest: backlog::oldest(tx, now).await?,
            allowed: replication::max_connections(tx).await?,
            indexes: concurrent_indexes::unusable(tx, &wanted).await?,
        })
    });
    let mut found = found.await?;
    found.nodes.sort_by(|one, other| (&one.host, one.process).cmp(&(&other.host, other.process)));
    let outbound = worker::oldest_due(db, now).await?;
    let peers = Peers::new(&found.nodes);
    let mut shown = Overview {
        nodes: found.nodes.iter().map(|node| describe(node, &found.leases, &peers)).collect(),
        lag: std::iter::once(outbound).chain(found.oldest).map(|oldest| lag(&oldest, now)).collect(),
        connections: connections(&peers, found.allowed),
        standbys: standbys(db).await,
        indexes: found.indexes.into_iter().map(index).collect(),
        faults: Vec::new(),
    };
    shown.faults = faults::of_service(&ServiceFacts {
        nodes: &found.nodes,
        peers: &peers,
        leases: &found.leases,
        overview: &shown,
    });
    Ok(shown)
}

fn describe(node: &NodeRecord, leases: &[LeaseRecord], peers: &Peers<'_>) -> Node {
    let own = leases.iter().filter(|lease| lease.node_id == node.id && lease.remaining > 0);
    let figures = &node.figures;
    Node {
        id: node.id.clone(),
        host: node.host.clone(),
        process: node.process,
        address: figures.address.clone(),
        version: node.version.clone(),
        schema_version: node.schema_version,
        started_at: node.started_at,
        silent_seconds: faults::silent_seconds(node),
        clock_ahead_seconds: faults::clock_ahead_seconds(node),
        leases: own.map(|lease| lease.name.clone()).collect(),
        pool_in_use: figures.pool_in_use,
        pool_size: figures.pool_size,
        pool_wait_ms: figures.pool_wait / 1000,
        sending: figures.sending,
        faults: faults::of_node(node, peers),
    }
}

fn lag(oldest: &OldestWork, now: Timestamp) -> Lag {
    let seconds = |since: Option<Timestamp>| since.map_or(0, |at| at.seconds_until(now));
    Lag {
        queue: oldest.queue,
        overdue_seconds: seconds(oldest.due_since),
        unattended_seconds: seconds(oldest.unattended_since),
    }
}

fn connections(peers: &Peers<'_>, allowed: Option<i64>) -> Connections {
    let figures = || peers.running().iter().map(|node| &node.figures);
    Connections {
        in_use: figures().map(|figures| figures.pool_in_use).sum(),
        max: figures().map(|figures| figures.server_connections).sum(),
        allowed,
    }
}

fn index((name, state): (String, UnusableState)) -> UnusableIndex {
    let state = match state {
        UnusableState::Missing => IndexState::Missing,
        UnusableState::Interrupted => IndexState::Interrupted,
        UnusableState::Building => IndexState::Building,
    };
    UnusableIndex { name, state }
}

/// In a transaction of its own: a role that may not ask would end that of the other figures.
async fn standbys(db: &Db) -> Option<Vec<Standby>> {
    let found: store::Result<Vec<StandbyRecord>> =
        db.system_read(async |tx| replication::standbys(tx).await).await;
    let found = found.inspect_err(|error| tracing::debug!(%error, "standbys not shown")).ok()?;
    let shown = found.into_iter().map(|standby| Standby {
        name: standby.name,
        address: standby.address,
        state: standby.state,
        lag_seconds: standby.lag.map(|micros| micros / 1_000_000),
        lag_bytes: standby.bytes,
    });
    Some(shown.collect())
}
