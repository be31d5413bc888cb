//! Connections to outside tool servers (Model Context Protocol over HTTP), and their tools for the mailbox agent.
//!
//! The arguments of a call leave the service. So the tools of a connection are offered to a model only for a message
//! that names it, only those that the workspace's admins allowed, and the result is data, bounded.

pub(crate) mod session;
mod session_wire;
mod target;

use std::sync::Arc;

use mail::safe_text::SafeText;
use model::{
    ConnectionId, Limit, Timestamp, WorkspaceId,
    audit::{AuditChange, changes, created, deleted},
    folders::slug,
    integrations::{
        CONNECTIONS_PER_WORKSPACE, Connection, ConnectionChange, ConnectionStatus, NewConnection, OutsideTool,
    },
};
use store::{
    Tx,
    integrations::{self, ConnectionRecord},
    vault::DataKey,
    workspaces,
};
use url::Url;

pub(crate) use self::target::Target;

use crate::{
    account::members::{require_creator, take_over},
    core::{
        app::App,
        call::Call,
        error::{Error, ErrorKind, Result},
        input::clean_name,
        operation::Operation,
        ports::ToolSpec,
    },
    notify::webhooks::target::clean_url,
};

/// Lists connections.
pub const LIST: Operation = Operation::read(
    "listIntegrationConnections",
    "Lists the connections to outside tool servers whose tools the mailbox agent can use.",
)
.workspace();
/// Makes a connection.
pub const CREATE: Operation = Operation::provision(
    "createIntegrationConnection",
    "Connects an outside tool server (Model Context Protocol over HTTP) and reads its tools; at most 20 per workspace.",
).workspace()
.admin()
.errors(&[ErrorKind::QuotaExceeded]);
/// Changes a connection.
pub const UPDATE: Operation = Operation::write(
    "updateIntegrationConnection",
    "Changes the name, the headers or the allowed tools of a connection.",
)
.workspace()
.admin()
.errors(&[ErrorKind::NotFound]);
/// Removes a connection.
pub const DELETE: Operation =
    Operation::write("deleteIntegrationConnection", "Removes a connection to an outside tool server.")
        .workspace()
        .admin()
        .empty()
        .errors(&[ErrorKind::NotFound]);
/// Reads the tools again.
pub const SYNC: Operation =
    Operation::write("syncIntegrationConnection", "Reads the tools of an outside tool server again. This also takes over a connection that was paused because its creator left.").workspace()
        .admin()
        .errors(&[ErrorKind::NotFound]);

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST, &CREATE, &UPDATE, &DELETE, &SYNC];

/// What the audit log shows of a connection, and of one whose tools are read again.
const AUDIT_FIELDS: &[&str] = &["name", "url_host", "header_names", "allowed_tools"];
const SYNCED_FIELDS: &[&str] = &["status", "allowed_tools", "created_by"];
/// Characters of a stored error.
const MAX_REASON_CHARS: usize = 300;
/// Characters of a tool's name for the model.
const MAX_NAME_CHARS: usize = 64;

/// Lists connections.
#[crate::boxed]
pub async fn list(app: &App, call: &Call) -> Result<Vec<Connection>> {
    let key = app.data_key(&call.workspace).await?;
    let found = app.read(call, async |tx| Ok(integrations::list(tx).await?)).await?;
    found.into_iter().map(|record| show(&key, record)).collect()
}

/// Makes a connection. It is stored even when the server does not answer yet.
#[crate::boxed]
pub async fn create(app: &App, call: &Call, input: NewConnection) -> Result<Connection> {
    let name = clean_name("name", &input.name)?;
    let url = clean_url(&input.url, app.settings().webhooks_allow_private)?;
    let url_host = Url::parse(&url).map_err(Error::internal)?.host_str().unwrap_or_default().to_owned();
    let target = Target { url, headers: input.headers };
    let key = app.data_key(&call.workspace).await?;
    require_room(app, call).await?;
    let mut record = ConnectionRecord {
        id: app.new_id(),
        name,
        url_host,
        target: target.seal(&key)?,
        status: ConnectionStatus::Error,
        tools: Vec::new(),
        allowed_tools: input.allowed_tools.map(each_once),
        last_error: None,
        synced_at: None,
        created_by: call.creator(),
        created_at: call.now,
        updated_at: call.now,
    };
    record_sync(&mut record, session::tools(app, &target).await, app.now());
    let shown = show(&key, record.clone())?;
    app.write(call, async move |tx| {
        workspaces::lock(tx).await?;
        require_creator(tx, record.created_by.as_ref()).await?;
        check_room(tx).await?;
        integrations::insert(tx, &record).await?;
        tx.audit().about("integration", &shown.id).changed(created(&shown, AUDIT_FIELDS));
        Ok(shown)
    })
    .await
}

/// Refuses before the server is asked what would be refused afterwards.
async fn require_room(app: &App, call: &Call) -> Result<()> {
    app.read(call, async |tx| check_room(tx).await).await
}

async fn check_room(tx: &mut Tx) -> Result<()> {
    let limit = Limit::of(CONNECTIONS_PER_WORKSPACE);
    if !limit.has_room(u64::try_from(integrations::count(tx).await?).unwrap_or_default()) {
        return Err(Error::quota("connections", limit));
    }
    Ok(())
}

/// Changes a connection.
#[crate::boxed]
pub async fn update(
    app: &App,
    call: &Call,
    id: ConnectionId,
    change: ConnectionChange,
) -> Result<Connection> {
    let name = change.name.map(|name| clean_name("name", &name)).transpose()?;
    let key = app.data_key(&call.workspace).await?;
    let now = call.now;
    app.write(call, async move |tx| {
        let mut record = integrations::find(tx, &id).await?.ok_or_else(missing)?;
        let before = show(&key, record.clone())?;
        record.name = name.unwrap_or(record.name);
        let has_new_headers = change.headers.is_some();
        if let Some(headers) = change.headers {
            let target = Target::open(&key, &record.target)?;
            record.target = Target { headers, ..target }.seal(&key)?;
        }
        if let Some(allowed) = change.allowed_tools {
            record.allowed_tools = Some(each_once(allowed));
        }
        record.updated_at = now;
        integrations::update(tx, &record).await?;
        let after = show(&key, record)?;
        let mut changed = changes(&before, &after, AUDIT_FIELDS);
        changed.extend(has_new_headers.then(|| AuditChange::hidden("headers")));
        tx.audit().about("integration", &id).changed(changed);
        Ok(after)
    })
    .await
}

/// Removes a connection.
#[crate::boxed]
pub async fn delete(app: &App, call: &Call, id: ConnectionId) -> Result<()> {
    let key = app.data_key(&call.workspace).await?;
    app.write(call, async move |tx| {
        let record = integrations::find(tx, &id).await?.ok_or_else(missing)?;
        tx.audit().about("integration", &id).changed(deleted(&show(&key, record)?, AUDIT_FIELDS));
        if integrations::delete(tx, &id).await? { Ok(()) } else { Err(missing()) }
    })
    .await
}

/// Reads the tools of a server again, and takes the connection over from a creator who has left.
#[crate::boxed]
pub async fn sync(app: &App, call: &Call, id: ConnectionId) -> Result<Connection> {
    let key = app.data_key(&call.workspace).await?;
    let wanted = id.clone();
    let found = app.read(call, async move |tx| Ok(integrations::find(tx, &wanted).await?)).await?;
    let target = Target::open(&key, &found.ok_or_else(missing)?.target)?;
    let outcome = session::tools(app, &target).await;
    let (now, caller) = (app.now(), call.creator());
    app.write(call, async move |tx| {
        workspaces::lock(tx).await?;
        let mut record = integrations::find(tx, &id).await?.ok_or_else(missing)?;
        let before = show(&key, record.clone())?;
        record.created_by = take_over(tx, record.created_by, caller).await?;
        record_sync(&mut record, outcome, now);
        record.updated_at = now;
        integrations::update(tx, &record).await?;
        let after = show(&key, record)?;
        tx.audit().about("integration", &id).changed(changes(&before, &after, SYNCED_FIELDS));
        Ok(after)
    })
    .await
}

/// Records the tools of a server, or why they could not be read. Known tools stay.
fn record_sync(record: &mut ConnectionRecord, outcome: Result<Vec<OutsideTool>, String>, now: Timestamp) {
    match outcome {
        Ok(tools) => {
            record.tools = tools;
            record.status = ConnectionStatus::Ready;
            record.last_error = None;
            record.synced_at = Some(now);
        }
        Err(reason) => {
            record.status = ConnectionStatus::Error;
            record.last_error = Some(SafeText::line(&reason).cut(MAX_REASON_CHARS).0.to_owned());
        }
    }
}

fn show(key: &DataKey, record: ConnectionRecord) -> Result<Connection> {
    let target = Target::open(key, &record.target)?;
    Ok(Connection {
        allowed_tools: allowed(&record).map(|tool| tool.name.clone()).collect(),
        tools: record.tools.iter().map(|tool| tool.name.clone()).collect(),
        header_names: target.headers.into_keys().collect(),
        id: record.id,
        name: record.name,
        url_host: record.url_host,
        status: record.status,
        last_error: record.last_error,
        synced_at: record.synced_at,
        created_by: record.created_by,
        created_at: record.created_at,
        updated_at: record.updated_at,
    })
}

/// The tools that admins allowed: the named ones, or the read-only ones.
fn allowed(record: &ConnectionRecord) -> impl Iterator<Item = &OutsideTool> {
    record.tools.iter().filter(|tool| match &record.allowed_tools {
        Some(names) => names.contains(&tool.name),
        None => tool.read_only,
    })
}

/// The tools that the agent may use: none while the connection is paused.
fn usable(record: &ConnectionRecord) -> impl Iterator<Item = &OutsideTool> {
    allowed(record).filter(|_| record.status != ConnectionStatus::Paused)
}

fn each_once(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names.dedup();
    names
}

fn missing() -> Error {
    Error::not_found("Connection not found")
}

/// Connections belong to the workspace: there are none for a caller that is narrowed to mailboxes.
pub(crate) fn require_reach(call: &Call, ids: &[ConnectionId]) -> Result<()> {
    if call.mailbox_ids().is_some() && !ids.is_empty() { Err(missing()) } else { Ok(()) }
}

/// The connections of the workspace that a message names.
pub(crate) async fn named(tx: &mut Tx, ids: &[ConnectionId]) -> Result<Vec<ConnectionRecord>> {
    let mut found: Vec<ConnectionRecord> = Vec::with_capacity(ids.len());
    for id in ids {
        let record = integrations::find(tx, id).await?.ok_or_else(missing)?;
        if !found.iter().any(|other| other.id == record.id) {
            found.push(record);
        }
    }
    Ok(found)
}

/// A tool of a connection, offered to a model.
pub(crate) struct OfferedTool {
    /// Its name for the model: the connection, then the tool.
    pub(crate) name: String,
    description: String,
    parameters: serde_json::Value,
    /// The index of its connection in the message.
    pub(crate) connection: usize,
    id: ConnectionId,
    /// Its name on the server.
    pub(crate) tool: String,
    pub(crate) target: Arc<Target>,
}

impl OfferedTool {
    pub(crate) fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: self.parameters.clone(),
        }
    }

    /// Checks that the connection still exists and the tool is still allowed.
    pub(crate) async fn require_present(&self, app: &App, workspace: &WorkspaceId) -> Result<()> {
        let id = self.id.clone();
        let found = app.db().read(workspace, async move |tx| integrations::find(tx, &id).await).await?;
        let record = found.ok_or_else(missing)?;
        if usable(&record).any(|tool| tool.name == self.tool) {
            return Ok(());
        }
        Err(Error::not_found("Tool not found"))
    }
}

/// The allowed tools of some connections, each under a unique name.
pub(crate) fn offer(key: &DataKey, connections: Vec<ConnectionRecord>) -> Result<Vec<OfferedTool>> {
    let mut all: Vec<OfferedTool> = Vec::new();
    for (index, record) in connections.into_iter().enumerate() {
        let target = Arc::new(Target::open(key, &record.target)?);
        let prefix = prefix(&record.name, index);
        for tool in usable(&record) {
            let name = offered_name(&prefix, &tool.name);
            if all.iter().any(|other| other.name == name) {
                tracing::warn!(connection = %record.id, "tool name not unique; skipping the second tool");
                continue;
            }
            all.push(OfferedTool {
                name,
                description: format!("Of the outside server \"{prefix}\": {}", tool.description),
                parameters: tool.parameters.clone(),
                connection: index,
                id: record.id.clone(),
                tool: tool.name.clone(),
                target: target.clone(),
            });
        }
    }
    Ok(all)
}

/// A connection's name as a prefix. The number keeps two of the same name apart, and all of them apart from the
/// agent's own tools.
fn prefix(name: &str, index: usize) -> String {
    let plain: String = slug(name).chars().filter(char::is_ascii_alphanumeric).take(16).collect();
    format!("{plain}{}", index + 1)
}

fn offered_name(prefix: &str, tool: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    format!("{prefix}__{}", tool.chars().map(plain).collect::<String>())
        .chars()
        .take(MAX_NAME_CHARS)
        .collect()
}
