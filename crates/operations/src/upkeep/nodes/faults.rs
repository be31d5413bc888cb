//! What is wrong with the nodes and with the service as a whole, each in a sentence that says what to do.

use std::{collections::BTreeMap, time::Duration};

use store::nodes::{LeaseRecord, NodeRecord};

use super::{
    figures::{IndexState, LOST_AFTER_SECONDS, Lag, Overview, Standby, UnusableIndex},
    settings::MASTER_KEY,
};
use crate::core::clock::MAX_CLOCK_SKEW;

/// A node where a call waited longer for a connection has too few.
const MAX_POOL_WAIT_MS: i64 = 1_000;
/// A lease that expired longer ago was left by all nodes: each asks for it every ten seconds.
const UNCLAIMED_AFTER_SECONDS: i64 = 40;
/// A lease that expired even earlier may be of work that no program does any more.
const ABANDONED_AFTER_SECONDS: i64 = 24 * 3600;
/// Work that is due for longer, and that no node is at, is not merely next in line: nodes look at least once a minute.
const MAX_UNATTENDED_SECONDS: u64 = 300;
/// The same for the search index, which is also built again for old messages.
const MAX_UNINDEXED_SECONDS: u64 = 900;
/// A standby that is further behind is named.
const MAX_STANDBY_LAG_SECONDS: i64 = 60;
/// The worker that builds indexes.
const INDEX_WORKER: &str = "indexes";

/// For how many seconds a node was not heard of.
pub(super) fn silent_seconds(node: &NodeRecord) -> i64 {
    node.silent_for.div_euclid(1_000_000)
}

/// By how many seconds its clock is ahead of the database's.
pub(super) fn clock_ahead_seconds(node: &NodeRecord) -> i64 {
    node.clock_ahead / 1_000_000
}

fn title(node: &NodeRecord) -> String {
    format!("{} process {}", node.host, node.process)
}

/// The running nodes, and what most of them have in common.
pub(super) struct Peers<'a> {
    running: Vec<&'a NodeRecord>,
    newest: Option<&'a NodeRecord>,
    /// The usual digest of each setting, for each version of the program: another one may write it in another way.
    usual: BTreeMap<(&'a str, &'a str), &'a str>,
}

impl<'a> Peers<'a> {
    pub(super) fn new(nodes: &'a [NodeRecord]) -> Self {
        let is_running = |node: &&NodeRecord| silent_seconds(node) <= LOST_AFTER_SECONDS;
        let running: Vec<&NodeRecord> = nodes.iter().filter(is_running).collect();
        let newest = running.iter().max_by_key(|node| (node.schema_version, version_parts(&node.version)));
        Self { newest: newest.copied(), usual: usual_settings(&running), running }
    }

    pub(super) fn running(&self) -> &[&'a NodeRecord] {
        &self.running
    }

    fn is_running(&self, node: &NodeRecord) -> bool {
        self.running.iter().any(|running| running.id == node.id)
    }

    fn has_worker(&self) -> bool {
        self.running.iter().any(|node| node.sends)
    }

    fn differs(&self, node: &NodeRecord, setting: &str) -> bool {
        let own = node.figures.settings.get(setting);
        let usual = self.usual.get(&(node.version.as_str(), setting));
        own.is_some_and(|own| usual.is_some_and(|usual| own != usual))
    }
}

/// The digest that most nodes have of each setting; of two equally frequent ones that of the node that runs longest.
fn usual_settings<'a>(running: &[&'a NodeRecord]) -> BTreeMap<(&'a str, &'a str), &'a str> {
    let mut by_age = running.to_vec();
    by_age.sort_by_key(|node| node.started_at);
    let mut counts: BTreeMap<(&str, &str), Vec<(&str, usize)>> = BTreeMap::new();
    for node in by_age {
        for (setting, digest) in &node.figures.settings {
            let digests = counts.entry((node.version.as_str(), setting.as_str())).or_default();
            match digests.iter_mut().find(|(known, _)| *known == digest.as_str()) {
                Some((_, count)) => *count += 1,
                None => digests.push((digest.as_str(), 1)),
            }
        }
    }
    let most = |digests: Vec<(&'a str, usize)>| {
        // The last of several equal ones, so in reverse.
        digests.into_iter().rev().max_by_key(|(_, count)| *count).map(|(digest, _)| digest)
    };
    counts.into_iter().filter_map(|(key, digests)| Some((key, most(digests)?))).collect()
}

/// The numbers of a version, to compare it with another.
fn version_parts(version: &str) -> Vec<u64> {
    let release = version.split(['-', '+']).next().unwrap_or_default();
    release.split('.').map(|part| part.parse().unwrap_or_default()).collect()
}

/// What is wrong with a node.
pub(super) fn of_node(node: &NodeRecord, peers: &Peers<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    if !peers.is_running(node) {
        let silent_seconds = silent_seconds(node);
        faults.push(format!(
            "not heard of for {silent_seconds} s: it has died or hangs, or cannot reach the database; \
             see its log and restart it (one that is gone for good is forgotten after a day)"
        ));
    }
    faults.extend(age_of_program(node, peers));
    // What a lost node said is of the past.
    if peers.is_running(node) {
        faults.extend(clock(node));
        faults.extend(pool(node));
        faults.extend(settings(node, peers));
    }
    faults
}

fn age_of_program(node: &NodeRecord, peers: &Peers<'_>) -> Option<String> {
    let newest = peers.newest?;
    let is_older = node.schema_version < newest.schema_version
        || version_parts(&node.version) < version_parts(&newest.version);
    let version = |node: &NodeRecord| format!("{} (schema {})", node.version, node.schema_version);
    is_older.then(|| {
        format!(
            "version {} is older than that of another node, {}: upgrade it",
            version(node),
            version(newest)
        )
    })
}

fn clock(node: &NodeRecord) -> Option<String> {
    let ahead = clock_ahead_seconds(node);
    let direction = if ahead > 0 { "ahead of" } else { "behind" };
    let off = ahead.abs();
    let is_off = Duration::from_micros(node.clock_ahead.unsigned_abs()) > MAX_CLOCK_SKEW;
    is_off.then(|| format!("its clock is {off} s {direction} the database's: synchronise them with NTP"))
}

fn pool(node: &NodeRecord) -> Option<String> {
    let (waited_ms, size) = (node.figures.pool_wait / 1000, node.figures.pool_size);
    (waited_ms >= MAX_POOL_WAIT_MS).then(|| {
        format!(
            "its {size} connections to PostgreSQL are used up: a call waited {}.{} s for one; \
             raise database.pool, or see what keeps the database busy",
            waited_ms / 1000,
            waited_ms % 1000 / 100
        )
    })
}

fn settings(node: &NodeRecord, peers: &Peers<'_>) -> Vec<String> {
    if peers.differs(node, MASTER_KEY) {
        return vec![format!(
            "its {MASTER_KEY} differs from that of the other nodes, so each cannot read what the others store: \
             give all nodes the same"
        )];
    }
    let own = node.figures.settings.keys().filter(|setting| peers.differs(node, setting));
    own.map(|setting| {
        format!("its setting {setting} differs from that of the other nodes: give all the same")
    })
    .collect()
}

/// What the faults of the service follow from.
pub(super) struct ServiceFacts<'a> {
    pub(super) nodes: &'a [NodeRecord],
    pub(super) peers: &'a Peers<'a>,
    pub(super) leases: &'a [LeaseRecord],
    pub(super) overview: &'a Overview,
}

/// What is wrong with the service as a whole. While no node runs, nothing is: nobody is there to do it.
pub(super) fn of_service(facts: &ServiceFacts<'_>) -> Vec<String> {
    if facts.peers.running.is_empty() {
        return Vec::new();
    }
    let overview = facts.overview;
    let mut faults = Vec::new();
    let connections = &overview.connections;
    if let Some(allowed) = connections.allowed.filter(|allowed| connections.max > *allowed) {
        faults.push(format!(
            "the nodes open up to {} connections to PostgreSQL together, and it allows {allowed}: \
             lower database.pool, raise max_connections, or put a pooler in front",
            connections.max
        ));
    }
    faults.extend(facts.leases.iter().filter_map(|lease| lost_lease(lease, facts)));
    faults.extend(overview.lag.iter().filter_map(|lag| unattended(lag, facts.peers)));
    faults.extend(overview.standbys.iter().flatten().filter_map(standby));
    faults.extend(overview.indexes.iter().map(|index| unusable_index(index, facts)));
    faults
}

fn lost_lease(lease: &LeaseRecord, facts: &ServiceFacts<'_>) -> Option<String> {
    let expired = -lease.remaining / 1_000_000;
    if !(UNCLAIMED_AFTER_SECONDS..ABANDONED_AFTER_SECONDS).contains(&expired) {
        return None;
    }
    let holder = facts.nodes.iter().find(|node| node.id == lease.node_id);
    let holder = holder.map_or_else(|| "a node that is gone".to_owned(), title);
    let fix = if facts.peers.has_worker() {
        "see the logs of the nodes for `lease not claimed`"
    } else {
        START_WORKER
    };
    let name = &lease.name;
    Some(format!("no node does the work `{name}`: the lease of {holder} expired {expired} s ago; {fix}"))
}

const START_WORKER: &str = "start a node with the role worker";

fn unattended(lag: &Lag, peers: &Peers<'_>) -> Option<String> {
    let (what, worker, most) = match lag.queue {
        "outbound" => ("messages to be delivered", "queue", MAX_UNATTENDED_SECONDS),
        "schedules" => ("scheduled messages", "schedules", MAX_UNATTENDED_SECONDS),
        "webhooks" => ("webhook deliveries", "webhooks", MAX_UNATTENDED_SECONDS),
        "triage" => ("messages to be triaged", "triage", MAX_UNATTENDED_SECONDS),
        _ => ("messages to be indexed for search", "search-index", MAX_UNINDEXED_SECONDS),
    };
    let fix = if peers.has_worker() {
        format!("see the logs of the nodes, and `/readyz` for their worker `{worker}`")
    } else {
        START_WORKER.to_owned()
    };
    let due = lag.unattended_seconds;
    (due > most).then(|| format!("{what} have been due for {due} s and no node takes them: {fix}"))
}

fn standby(standby: &Standby) -> Option<String> {
    let behind = standby.lag_seconds.filter(|behind| *behind > MAX_STANDBY_LAG_SECONDS)?;
    let name = &standby.name;
    Some(format!(
        "the standby `{name}` of PostgreSQL is {behind} s behind: what it lacks would be missing after a failover; \
         see its log and its disk"
    ))
}

fn unusable_index(index: &UnusableIndex, facts: &ServiceFacts<'_>) -> String {
    let builds = |lease: &&LeaseRecord| lease.name == INDEX_WORKER && lease.remaining > 0;
    let lease = facts.leases.iter().find(builds);
    let builder = lease.and_then(|lease| facts.nodes.iter().find(|node| node.id == lease.node_id));
    let name = &index.name;
    let state = match index.state {
        IndexState::Missing => "is missing",
        IndexState::Interrupted => "is not used, because its build was interrupted",
        IndexState::Building => "is being built",
    };
    match builder {
        Some(node) => format!(
            "the index {name} {state}; {} builds it in the background (worker `{INDEX_WORKER}`), and until then some \
             answers take longer",
            title(node)
        ),
        None => format!("the index {name} {state}, and no node builds it: {START_WORKER}"),
    }
}

#[cfg(test)]
mod tests {
    use model::Timestamp;
    use store::nodes::NodeFigures;

    use super::*;
    use crate::upkeep::nodes::figures::Connections;

    fn node(name: &str) -> NodeRecord {
        let settings = [(MASTER_KEY, "a"), ("plans", "b")];
        NodeRecord {
            id: name.to_owned(),
            host: name.to_owned(),
            process: 7,
            version: "0.9.1".to_owned(),
            schema_version: 36,
            started_at: Timestamp::from_micros(i64::from(name.as_bytes()[0])),
            sends: true,
            silent_for: 3_000_000,
            clock_ahead: -400_000,
            figures: NodeFigures {
                pool_size: 20,
                pool_in_use: 20,
                pool_wait: 90_000,
                server_connections: 21,
                settings: settings.map(|(name, digest)| (name.to_owned(), digest.to_owned())).into(),
                ..NodeFigures::default()
            },
        }
    }

    fn lease(holder: &str, remaining: i64) -> LeaseRecord {
        LeaseRecord {
            name: INDEX_WORKER.to_owned(),
            node_id: holder.to_owned(),
            remaining: remaining * 1_000_000,
        }
    }

    fn healthy() -> Overview {
        let queues = ["outbound", "schedules", "webhooks", "triage", "search"];
        Overview {
            nodes: Vec::new(),
            lag: queues.map(|queue| Lag { queue, overdue_seconds: 4000, unattended_seconds: 200 }).into(),
            connections: Connections { in_use: 20, max: 42, allowed: Some(97) },
            standbys: Some(vec![Standby {
                name: "two".to_owned(),
                address: String::new(),
                state: None,
                lag_seconds: None,
                lag_bytes: None,
            }]),
            indexes: Vec::new(),
            faults: Vec::new(),
        }
    }

    fn service(nodes: &[NodeRecord], leases: &[LeaseRecord], overview: &Overview) -> Vec<String> {
        let peers = Peers::new(nodes);
        of_service(&ServiceFacts { nodes, peers: &peers, leases, overview })
    }

    fn faults(nodes: &[NodeRecord], index: usize) -> Vec<String> {
        of_node(&nodes[index], &Peers::new(nodes))
    }

    #[test]
    fn healthy_nodes_have_no_faults() {
        let nodes = [node("a"), node("b")];
        assert_eq!((faults(&nodes, 0), faults(&nodes, 1)), (vec![], vec![]));
        assert_eq!(service(&nodes, &[lease("a", 12)], &healthy()), [""; 0]);
        // A lease that changes hands, and one of work that only an older program did.
        assert_eq!(service(&nodes, &[lease("c", -10), lease("c", -100_000)], &healthy()), [""; 0]);
        // A program that says less is of an older version, and nothing else.
        let mut old = node("c");
        (old.figures, old.schema_version) = (NodeFigures::default(), 34);
        let nodes = [node("a"), old];
        assert!(faults(&nodes, 0).is_empty());
        assert!(faults(&nodes, 1)[0].contains("older than that of another node, 0.9.1 (schema 36)"));
    }

    #[test]
    fn each_fault_of_a_node_is_named() {
        type Change = fn(&mut NodeRecord);
        let changes: [(Change, &str); 6] = [
            (|node| node.silent_for = 36_000_000, "not heard of for 36 s"),
            (|node| node.clock_ahead = 6_000_000, "its clock is 6 s ahead of the database's"),
            (|node| node.version = "0.8.11".to_owned(), "version 0.8.11 (schema 36) is older"),
            (
                |node| node.figures.pool_wait = 2_340_000,
                "its 20 connections to PostgreSQL are used up: a call waited 2.3 s",
            ),
            (
                |node| *node.figures.settings.get_mut("plans").unwrap() = "c".to_owned(),
                "its setting plans differs",
            ),
            (
                |node| *node.figures.settings.get_mut(MASTER_KEY).unwrap() = "c".to_owned(),
                "its vault.master_key differs",
            ),
        ];
        for (change, named) in changes {
            let mut nodes = [node("a"), node("b"), node("c")];
            change(&mut nodes[1]);
            let found = faults(&nodes, 1);
            assert!(found.len() == 1 && found[0].starts_with(named), "{named}: {found:?}");
            assert_eq!((faults(&nodes, 0), faults(&nodes, 2)), (vec![], vec![]), "{named}");
        }
        // Of two nodes that differ, the one that was started later is asked to follow.
        let mut nodes = [node("b"), node("a")];
        change_plans(&mut nodes[0]);
        assert_eq!((faults(&nodes, 0).len(), faults(&nodes, 1).len()), (1, 0));
        // A newer version that is gone makes no other one old.
        nodes[1].version = "1.0.0".to_owned();
        nodes[1].silent_for = 100_000_000;
        assert!(faults(&nodes, 0).is_empty());
    }

    fn change_plans(node: &mut NodeRecord) {
        node.figures.settings.insert("plans".to_owned(), "c".to_owned());
    }

    #[test]
    fn each_fault_of_the_service_is_named() {
        let nodes = [node("a"), node("b")];
        let mut overview = healthy();
        overview.connections.max = 98;
        for lag in &mut overview.lag {
            lag.unattended_seconds = 901;
        }
        overview.standbys.as_mut().unwrap()[0].lag_seconds = Some(61);
        let states = [IndexState::Missing, IndexState::Interrupted, IndexState::Building];
        overview.indexes = states.map(|state| UnusableIndex { name: "some_index".to_owned(), state }).into();
        let found = service(&nodes, &[lease("gone", -50)], &overview);
        let expected = [
            "the nodes open up to 98 connections to PostgreSQL together, and it allows 97",
            "no node does the work `indexes`: the lease of a node that is gone expired 50 s ago",
            "messages to be delivered have been due for 901 s and no node takes them",
            "scheduled messages have",
            "webhook deliveries have",
            "messages to be triaged have",
            "messages to be indexed for search have",
            "the standby `two` of PostgreSQL is 61 s behind",
            "the index some_index is missing, and no node builds it",
            "the index some_index is not used, because its build was interrupted, and",
            "the index some_index is being built, and",
        ];
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{expected}: {found}");
        }
        let built = service(&nodes, &[lease("b", 9)], &overview);
        assert!(built.last().unwrap().contains("b process 7 builds it in the background"), "{built:?}");
        // Without a node that works, that is what is to be done; without any node, nothing is wrong with it.
        let mut doors = nodes.clone();
        for node in &mut doors {
            node.sends = false;
        }
        let found = service(&doors, &[lease("a", -50)], &overview);
        assert!(found[1..7].iter().all(|fault| fault.ends_with(START_WORKER)), "{found:#?}");
        let mut lost = nodes;
        for node in &mut lost {
            node.silent_for = 60_000_000;
        }
        assert_eq!(service(&lost, &[lease("a", -50)], &overview), [""; 0]);
    }
}
