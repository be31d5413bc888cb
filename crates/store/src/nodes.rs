//! The nodes of the service, and the leases of work that one of them does for all. All times are those of the store's
//! clock, so that a node whose own clock is wrong harms nobody.

use std::collections::BTreeMap;

use model::Timestamp;

use crate::{FromRow, Param, Row, SystemTx, error::Result, migrations, sql::row};

/// Nodes that were not seen for this long are forgotten.
const FORGOTTEN_AFTER_SECONDS: i64 = 24 * 3600;
/// After this a node is forgotten if another one of the same machine has its address: it was started in its place.
const REPLACED_AFTER_SECONDS: i64 = 35;

/// A node that was not heard of for this long has ended.
const ENDED_AFTER_SECONDS: i64 = 35;

/// A digest of each setting that must be the same on all nodes, by name.
pub type SettingDigests = BTreeMap<String, String>;

/// What a node says about itself.
#[derive(Clone, Debug)]
pub struct NodeAnnouncement {
    /// Its id, which is new with each start.
    pub id: String,
    /// The machine.
    pub host: String,
    /// The process on it.
    pub process: i64,
    /// The version of the program.
    pub version: String,
    /// The newest schema that it knows.
    pub schema_version: i64,
    /// When it was started, by its own clock.
    pub started_at: Timestamp,
    /// Whether it delivers mail to other servers.
    pub sends: bool,
    /// What changes while it runs, and its settings.
    pub figures: NodeFigures,
}

/// What a node says about its connections and settings.
#[derive(Clone, Debug, Default)]
pub struct NodeFigures {
    /// Where it answers HTTP; empty when it does not.
    pub address: String,
    /// Maximum pooled connections to PostgreSQL; 0 for a program that does not say.
    pub pool_size: i64,
    /// Those in use.
    pub pool_in_use: i64,
    /// For how many microseconds a call waited for one at most since the last announcement.
    pub pool_wait: i64,
    /// Maximum connections to the database server itself, rather than to a pooler.
    pub server_connections: i64,
    /// Its connections to other mail servers.
    pub sending: i64,
    /// Its settings.
    pub settings: SettingDigests,
}

impl FromRow for NodeFigures {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            address: row.next()?,
            pool_size: row.next()?,
            pool_in_use: row.next()?,
            pool_wait: row.next()?,
            server_connections: row.next()?,
            sending: row.next()?,
            settings: row.next_json()?,
        })
    }
}

/// A node as the others see it.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "what the node said, see the announcement")]
pub struct NodeRecord {
    pub id: String,
    pub host: String,
    pub process: i64,
    pub version: String,
    pub schema_version: i64,
    pub started_at: Timestamp,
    pub sends: bool,
    /// How long ago it was heard of, in microseconds.
    pub silent_for: i64,
    /// How far its clock is ahead of the store's, in microseconds.
    pub clock_ahead: i64,
    pub figures: NodeFigures,
}

impl FromRow for NodeRecord {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.next()?,
            host: row.next()?,
            process: row.next()?,
            version: row.next()?,
            schema_version: row.next()?,
            started_at: row.next()?,
            sends: row.next()?,
            silent_for: row.next()?,
            clock_ahead: row.next()?,
            figures: NodeFigures::from_row(row)?,
        })
    }
}

/// Work that a node does for all.
#[derive(Clone, Debug)]
pub struct LeaseRecord {
    /// The name of the work.
    pub name: String,
    /// The node.
    pub node_id: String,
    /// For how long it still counts as alive, in microseconds; negative when another node may take over.
    pub remaining: i64,
}

row!(LeaseRecord { name, node_id, remaining });

/// Records that a node is alive, and how many microseconds its clock is ahead of the store's, and forgets nodes that are
/// long gone or replaced.
pub async fn announce(tx: &mut SystemTx, node: &NodeAnnouncement, clock_ahead: i64) -> Result<()> {
    let Some(clock) = tx.own_clock() else { return Ok(()) };
    let sql = format!(
        "INSERT INTO node (id, host, process, version, schema_version, started_at, sends, seen_at, clock_ahead,
           address, pool_size, pool_in_use, pool_wait, server_connections, sending, settings)
         VALUES ($1, $2, $3, $4, $5, $6, $7, {clock}, $8, $9, $10, $11, $12, $13, $14, $15)
         ON CONFLICT (id) DO UPDATE SET
           sends = excluded.sends, seen_at = excluded.seen_at, clock_ahead = excluded.clock_ahead,
           address = excluded.address, pool_size = excluded.pool_size, pool_in_use = excluded.pool_in_use,
           pool_wait = excluded.pool_wait, server_connections = excluded.server_connections,
           sending = excluded.sending, settings = excluded.settings"
    );
    let figures = &node.figures;
    let values = [
        (&node.id).into(),
        (&node.host).into(),
        node.process.into(),
        (&node.version).into(),
        node.schema_version.into(),
        node.started_at.into(),
        node.sends.into(),
        clock_ahead.into(),
        (&figures.address).into(),
        figures.pool_size.into(),
        figures.pool_in_use.into(),
        figures.pool_wait.into(),
        figures.server_connections.into(),
        figures.sending.into(),
        Param::Json(&figures.settings),
    ];
    tx.run(&sql, &values).await?;
    let gone = format!(
        "DELETE FROM node WHERE seen_at < {clock} - $1
           OR (host = $2 AND address = $3 AND address <> '' AND id <> $4 AND seen_at < {clock} - $5)"
    );
    let values = [
        (FORGOTTEN_AFTER_SECONDS * 1_000_000).into(),
        (&node.host).into(),
        (&figures.address).into(),
        (&node.id).into(),
        (REPLACED_AFTER_SECONDS * 1_000_000).into(),
    ];
    tx.run(&gone, &values).await?;
    Ok(())
}

/// Forgets a node that ends, with its leases.
pub async fn withdraw(tx: &mut SystemTx, id: &str) -> Result<()> {
    tx.run("DELETE FROM lease WHERE node_id = $1", &[id.into()]).await?;
    tx.run("DELETE FROM node WHERE id = $1", &[id.into()]).await?;
    Ok(())
}

/// The nodes that were heard of lately, those that were seen last first.
pub async fn list(tx: &mut SystemTx) -> Result<Vec<NodeRecord>> {
    let Some(clock) = tx.own_clock() else { return Ok(Vec::new()) };
    let sql = format!(
        "SELECT id, host, process, version, schema_version, started_at, sends, {clock} - seen_at, clock_ahead,
           address, pool_size, pool_in_use, pool_wait, server_connections, sending, settings
         FROM node ORDER BY seen_at DESC, id LIMIT 1000"
    );
    tx.all(&sql, &[]).await
}

/// The ids of the nodes that deliver mail to other servers and were heard of in the last seconds.
pub async fn senders(tx: &mut SystemTx, seconds: i64) -> Result<Vec<String>> {
    let Some(clock) = tx.own_clock() else { return Ok(Vec::new()) };
    let sql =
        format!("SELECT id FROM node WHERE sends = 1 AND seen_at > {clock} - $1 ORDER BY id LIMIT 1000");
    let found: Vec<(String,)> = tx.all(&sql, &[(seconds * 1_000_000).into()]).await?;
    Ok(found.into_iter().map(|(id,)| id).collect())
}

/// The leases by name.
pub async fn leases(tx: &mut SystemTx) -> Result<Vec<LeaseRecord>> {
    let Some(clock) = tx.own_clock() else { return Ok(Vec::new()) };
    tx.all(&format!("SELECT name, node_id, expires_at - {clock} FROM lease ORDER BY name"), &[]).await
}

/// Who has a lease after a node tried to claim it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseHolder {
    /// The node that asked.
    Own,
    /// Another node, which counts as alive for so many more microseconds.
    Other(i64),
}

/// Claims or renews a lease for a while, unless another node has it.
pub async fn claim(tx: &mut SystemTx, name: &str, node: &str, seconds: i64) -> Result<LeaseHolder> {
    let Some(clock) = tx.own_clock() else { return Ok(LeaseHolder::Own) };
    // Reading first: of many nodes that ask, all but one need not write.
    let found: Option<(String, i64)> = tx
        .one(&format!("SELECT node_id, expires_at - {clock} FROM lease WHERE name = $1"), &[name.into()])
        .await?;
    if let Some((holder, remaining)) = found
        && holder != node
        && remaining > 0
    {
        return Ok(LeaseHolder::Other(remaining));
    }
    let sql = format!(
        "INSERT INTO lease (name, node_id, expires_at) VALUES ($1, $2, {clock} + $3)
         ON CONFLICT (name) DO UPDATE SET node_id = excluded.node_id, expires_at = excluded.expires_at
         WHERE lease.node_id = excluded.node_id OR lease.expires_at <= {clock}"
    );
    let claimed = tx.run(&sql, &[name.into(), node.into(), (seconds * 1_000_000).into()]).await? == 1;
    Ok(if claimed { LeaseHolder::Own } else { LeaseHolder::Other(seconds * 1_000_000) })
}

/// Releases a lease, so that another node need not wait until it expires.
pub async fn release(tx: &mut SystemTx, name: &str, node: &str) -> Result<()> {
    tx.run("DELETE FROM lease WHERE name = $1 AND node_id = $2", &[name.into(), node.into()]).await?;
    Ok(())
}

/// Refuses programs that do not know a migration from now on. False while one of them runs.
pub async fn require_schema(tx: &mut SystemTx, schema: i64, now: Timestamp) -> Result<bool> {
    if let Some(clock) = tx.own_clock() {
        let sql = format!(
            "SELECT count(*) FROM node WHERE schema_version < $1 AND seen_at > {clock} - {}",
            ENDED_AFTER_SECONDS * 1_000_000
        );
        let older: Option<(i64,)> = tx.one(&sql, &[schema.into()]).await?;
        if older.is_some_and(|(count,)| count > 0) {
            return Ok(false);
        }
    }
    migrations::require(tx, schema, now).await?;
    Ok(true)
}
