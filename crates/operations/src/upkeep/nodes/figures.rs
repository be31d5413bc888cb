//! What operators see of the nodes: in `admin nodes`, in `doctor` and in the console.

use model::Timestamp;
use serde::Serialize;

/// After so many seconds, three missed announcements, a node counts as lost.
pub(super) const LOST_AFTER_SECONDS: i64 = 35;

/// The nodes of the service, how far behind their work is, and what is wrong.
#[derive(Clone, Debug, Serialize)]
pub struct Overview {
    /// The nodes that were heard of in the last day; none on SQLite, where one process has the store alone.
    pub nodes: Vec<Node>,
    /// The oldest due work of each queue.
    pub lag: Vec<Lag>,
    /// The connections of all nodes to PostgreSQL.
    pub connections: Connections,
    /// The standbys of the database; `None` where the database's role may not see them.
    pub standbys: Option<Vec<Standby>>,
    /// Indexes that are not there yet.
    pub indexes: Vec<UnusableIndex>,
    /// What is wrong with the service as a whole.
    pub faults: Vec<String>,
}

impl Overview {
    /// How many nodes are running.
    pub fn running(&self) -> usize {
        self.nodes.iter().filter(|node| node.is_running()).count()
    }

    /// Everything that is wrong, each in a sentence.
    pub fn all_faults(&self) -> impl Iterator<Item = String> {
        let of_nodes = self.nodes.iter().flat_map(|node| {
            node.faults.iter().map(move |fault| format!("{} process {}: {fault}", node.host, node.process))
        });
        of_nodes.chain(self.faults.iter().cloned())
    }
}

/// A node.
#[derive(Clone, Debug, Serialize)]
pub struct Node {
    /// Its id, which is new with each start.
    pub id: String,
    /// The machine.
    pub host: String,
    /// The process on it.
    pub process: i64,
    /// Where it answers HTTP; empty when it does not, or does not say.
    pub address: String,
    /// The version of the program.
    pub version: String,
    /// The newest schema that it knows.
    pub schema_version: i64,
    /// When it was started.
    pub started_at: Timestamp,
    /// Seconds since it was heard of.
    pub silent_seconds: i64,
    /// Seconds by which its clock is ahead of the database's.
    pub clock_ahead_seconds: i64,
    /// The work that it does for all nodes.
    pub leases: Vec<String>,
    /// Its connections to PostgreSQL in use.
    pub pool_in_use: i64,
    /// The most that it opens; 0 when it does not say.
    pub pool_size: i64,
    /// For how many milliseconds a call waited for one at most, between its last two announcements.
    pub pool_wait_ms: i64,
    /// Its connections to other mail servers.
    pub sending: i64,
    /// What is wrong with it.
    pub faults: Vec<String>,
}

impl Node {
    /// Whether it was heard of lately.
    pub fn is_running(&self) -> bool {
        self.silent_seconds <= LOST_AFTER_SECONDS
    }
}

/// How far behind a queue is.
#[derive(Clone, Debug, Serialize)]
pub struct Lag {
    /// The queue: `outbound`, `schedules`, `webhooks`, `triage` or `search`.
    pub queue: &'static str,
    /// For how long its oldest work has been due without being claimed.
    pub overdue_seconds: u64,
    /// The same where no node is at work at this moment.
    pub unattended_seconds: u64,
}

/// Connections to PostgreSQL.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Connections {
    /// Those of all running nodes in use.
    pub in_use: i64,
    /// The most that all running nodes together open to the server itself.
    pub max: i64,
    /// How many the server allows; `None` on SQLite.
    pub allowed: Option<i64>,
}

/// A standby of the database.
#[derive(Clone, Debug, Serialize)]
pub struct Standby {
    /// The name that it gives itself.
    pub name: String,
    /// Where it connects from.
    pub address: String,
    /// What it does, such as `streaming`; `None` where the database's role may not know.
    pub state: Option<String>,
    /// By how many seconds it is behind.
    pub lag_seconds: Option<i64>,
    /// The bytes that it has not applied.
    pub lag_bytes: Option<i64>,
}

/// An index that PostgreSQL does not use yet.
#[derive(Clone, Debug, Serialize)]
pub struct UnusableIndex {
    /// Its name.
    pub name: String,
    /// What there is of it.
    pub state: IndexState,
}

/// What there is of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IndexState {
    /// Nothing.
    Missing,
    /// What was built before the build was interrupted.
    Interrupted,
    /// It is being built.
    Building,
}
