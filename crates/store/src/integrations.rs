//! Connections to outside tool servers.

use model::{
    AccountId, ConnectionId, Timestamp,
    integrations::{ConnectionStatus, OutsideTool},
};
use serde::Serialize;

use crate::{
    FromRow, Row, Tx,
    error::{Error, Result},
};

/// A connection as it is stored.
#[derive(Clone)]
pub struct ConnectionRecord {
    /// Its id.
    pub id: ConnectionId,
    /// Its name.
    pub name: String,
    /// The host that it leads to.
    pub url_host: String,
    /// Its address and headers, sealed.
    pub target: Vec<u8>,
    /// Whether it can be used.
    pub status: ConnectionStatus,
    /// The tools of the server.
    pub tools: Vec<OutsideTool>,
    /// The names of those that the agent may use; nothing for those that only read.
    pub allowed_tools: Option<Vec<String>>,
    /// Why it cannot be used.
    pub last_error: Option<String>,
    /// When its tools were last read.
    pub synced_at: Option<Timestamp>,
    /// The account that made it or took it over; nothing when it belongs to the workspace.
    pub created_by: Option<AccountId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl FromRow for ConnectionRecord {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.next()?,
            name: row.next()?,
            url_host: row.next()?,
            target: row.next()?,
            status: row.next_named()?,
            tools: row.next_json()?,
            allowed_tools: {
                let text: Option<String> = row.next()?;
                let read =
                    |text: String| serde_json::from_str(&text).map_err(|error| Error::not_json(&error));
                text.map(read).transpose()?
            },
            last_error: row.next()?,
            synced_at: row.next()?,
            created_by: row.next()?,
            created_at: row.next()?,
            updated_at: row.next()?,
        })
    }
}

const COLUMNS: &str =
    "id, name, url_host, target, status, tools, allowed_tools, last_error, synced_at, created_by, created_at,
    updated_at";

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
    let (tools, allowed) = (to_json(&connection.tools)?, allowed_of(connection)?);
    tx.run(
        "INSERT INTO integration_connection (workspace_id, id, name, url_host, target, status, tools, allowed_tools,
           last_error, synced_at, created_by, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)",
        &[
            (&connection.id).into(),
            (&connection.name).into(),
            (&connection.url_host).into(),
            (&connection.target).into(),
            connection.status.as_str().into(),
            (&tools).into(),
            allowed.as_deref().into(),
            connection.last_error.as_deref().into(),
            connection.synced_at.into(),
            connection.created_by.as_ref().into(),
            connection.created_at.into(),
        ],
    )
    .await?;
    Ok(())
}

/// Stores what can be changed of a connection. False when it is gone.
pub async fn update(tx: &mut Tx, connection: &ConnectionRecord) -> Result<bool> {
    let (tools, allowed) = (to_json(&connection.tools)?, allowed_of(connection)?);
    let changed = tx
        .run(
            "UPDATE integration_connection SET name = $3, target = $4, status = $5, tools = $6, allowed_tools = $7,
             last_error = $8, synced_at = $9, created_by = $10, updated_at = $11 WHERE workspace_id = $1 AND id = $2",
            &[
                (&connection.id).into(),
                (&connection.name).into(),
                (&connection.target).into(),
                connection.status.as_str().into(),
                (&tools).into(),
                allowed.as_deref().into(),
                connection.last_error.as_deref().into(),
                connection.synced_at.into(),
                connection.created_by.as_ref().into(),
                connection.updated_at.into(),
            ],
        )
        .await?;
    Ok(changed == 1)
}

/// Pauses the connections that an account made.
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

fn allowed_of(connection: &ConnectionRecord) -> Result<Option<String>> {
    connection.allowed_tools.as_ref().map(to_json).transpose()
}

fn to_json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::Internal(error.into()))
}
