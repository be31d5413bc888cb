//! Connections to external tool servers.

use model::{
    AccountId, ConnectionId, Timestamp,
    integrations::{ConnectionStatus, OutsideTool},
};

use crate::{
    Tx,
    error::Result,
    sql::{Columns, Insert, columns, update_row},
};

/// A connection as it is stored.
#[derive(Clone)]
pub struct ConnectionRecord {
    /// Its id.
    pub id: ConnectionId,
    /// Its name.
    pub name: String,
    /// The host it connects to.
    pub url_host: String,
    /// Its address and headers, sealed.
    pub target: Vec<u8>,
    /// Whether it can be used.
    pub status: ConnectionStatus,
    /// The tools of the server.
    pub tools: Vec<OutsideTool>,
    /// The names of the tools that the agent may use; `None` for all read-only ones.
    pub allowed_tools: Option<Vec<String>>,
    /// Why it cannot be used.
    pub last_error: Option<String>,
    /// When its tools were last read.
    pub synced_at: Option<Timestamp>,
    /// The account that created it or took it over; `None` when it belongs to the workspace.
    pub created_by: Option<AccountId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

columns!(ConnectionRecord {
    id, name, url_host, target, status, tools as json, allowed_tools as optional_json, last_error,
    synced_at, created_by, created_at, updated_at,
});

const COLUMNS: &str = ConnectionRecord::COLUMNS;

/// The connections of the workspace, oldest first.
pub async fn list(tx: &mut Tx) -> Result<Vec<ConnectionRecord>> {
    tx.all(&format!("SELECT {COLUMNS} FROM integration_connection WHERE workspace_id = $1 ORDER BY id"), &[])
        .await
}

/// Finds a connection.
pub async fn find(tx: &mut Tx, id: &ConnectionId) -> Result<Option<ConnectionRecord>> {
    tx.one(
        &format!("SELECT {COLUMNS} FROM integration_connection WHERE workspace_id = $1 AND id = $2"),
        &[id.into()],
    )
    .await
}

/// How many connections the workspace has.
pub async fn count(tx: &mut Tx) -> Result<i64> {
    let found = tx.one("SELECT count(*) FROM integration_connection WHERE workspace_id = $1", &[]).await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// Adds a connection.
pub async fn insert(tx: &mut Tx, connection: &ConnectionRecord) -> Result<()> {
    Insert::into("integration_connection").record(connection).run(tx).await?;
    Ok(())
}

/// Stores the changeable fields of a connection. False when it was deleted.
pub async fn update(tx: &mut Tx, connection: &ConnectionRecord) -> Result<bool> {
    update_row(tx, "integration_connection", &[("id", (&connection.id).into())], connection).await
}

/// Pauses the connections that an account created.
pub async fn pause_made_by(tx: &mut Tx, account: &AccountId, now: Timestamp) -> Result<()> {
    tx.run(
        "UPDATE integration_connection SET status = 'paused', updated_at = $3
         WHERE workspace_id = $1 AND created_by = $2",
        &[account.into(), now.into()],
    )
    .await?;
    Ok(())
}

/// Deletes a connection. False when there is none.
pub async fn delete(tx: &mut Tx, id: &ConnectionId) -> Result<bool> {
    let gone = tx
        .run("DELETE FROM integration_connection WHERE workspace_id = $1 AND id = $2", &[id.into()])
        .await?;
    Ok(gone == 1)
}
