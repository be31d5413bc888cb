//! Workspaces: the caller's list, and their name, time zone and storage.

use model::{
    Role, WorkspaceId,
    audit::changes,
    workspaces::{Provisioning, Storage, User, Workspace, WorkspaceChange, WorkspaceList},
};
use store::workspaces::{self, WorkspaceRecord};

use crate::core::{
    app::App,
    call::Call,
    caller::Actor,
    error::{Error, Result},
    input::clean_name,
    operation::Operation,
};

/// Lists the caller's workspaces.
pub const LIST: Operation =
    Operation::read("listWorkspaces", "Lists the caller's workspaces; with an API key only the key's own.")
        .visible();
/// Reads a workspace.
pub const GET: Operation = Operation::read("getWorkspace", "Returns a workspace.").visible().tagged();
/// Changes a workspace.
pub const UPDATE: Operation =
    Operation::write("updateWorkspace", "Changes the name or the time zone of a workspace.")
        .workspace()
        .admin();
/// Reads the state of a workspace's storage.
pub const STORAGE: Operation =
    Operation::read("getWorkspaceStorage", "Returns the state of a workspace's storage.").visible().tagged();

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST, &GET, &UPDATE, &STORAGE];

/// Lists the caller's workspaces.
#[crate::boxed]
pub async fn list(app: &App, call: &Call) -> Result<WorkspaceList> {
    let caller = &call.caller;
    let mut listed = Vec::with_capacity(caller.workspaces.len());
    for access in &caller.workspaces {
        listed.push(show(app, find(app, call, &access.workspace).await?, access.role));
    }
    let is_admin = matches!(caller.actor, Actor::Person { is_admin: true, .. });
    Ok(WorkspaceList { user: User { is_admin }, workspaces: listed })
}

/// Reads the call's workspace.
#[crate::boxed]
pub async fn get(app: &App, call: &Call) -> Result<Workspace> {
    Ok(show(app, find(app, call, &call.workspace).await?, call.role))
}

/// Reads the state of the call's workspace's storage.
#[crate::boxed]
pub async fn storage(app: &App, call: &Call) -> Result<Storage> {
    Ok(show_storage(app, &find(app, call, &call.workspace).await?))
}

/// Changes the call's workspace.
#[crate::boxed]
pub async fn update(app: &App, call: &Call, change: WorkspaceChange) -> Result<Workspace> {
    if change.name.is_none() && change.timezone.is_none() {
        return Err(Error::invalid("", "send a name, a timezone, or both"));
    }
    let name = change.name.map(|name| clean_name("name", &name)).transpose()?;
    let (app_, role, now) = (app.clone(), call.role, call.now);
    app.write(call, async move |tx| {
        let before = workspaces::find(tx).await?.ok_or_else(missing)?;
        workspaces::update(tx, name.as_deref(), change.timezone.as_deref(), now).await?;
        let record = workspaces::find(tx).await?.ok_or_else(missing)?;
        let (before, after) = (show(&app_, before, role), show(&app_, record, role));
        tx.audit().changed(changes(&before, &after, &["name", "timezone"]));
        Ok(after)
    })
    .await
}

async fn find(app: &App, call: &Call, id: &WorkspaceId) -> Result<WorkspaceRecord> {
    let mut record = app.db().read(id, async |tx| workspaces::find(tx).await?.ok_or_else(missing)).await?;
    if let Some(count) = call.caller.narrowing.mailbox_count() {
        record.mailbox_count = count;
    }
    Ok(record)
}

fn missing() -> Error {
    Error::not_found("Workspace not found")
}

fn show(app: &App, record: WorkspaceRecord, role: Role) -> Workspace {
    Workspace {
        storage: show_storage(app, &record),
        id: record.id,
        name: record.name,
        owner_address: record.owner_address,
        timezone: record.timezone,
        role,
        mailbox_count: record.mailbox_count,
        created_at: record.created_at,
        updated_at: record.updated_at,
    }
}

fn show_storage(app: &App, record: &WorkspaceRecord) -> Storage {
    let blob_fault = app.blob_fault();
    let vault_fault = app
        .master_key()
        .unwrap_key(record.id.as_str(), &record.data_key)
        .err()
        .map(|error| error.to_string());
    let state =
        |fault: &Option<String>| if fault.is_some() { Provisioning::Error } else { Provisioning::Ready };
    let settings = app.settings();
    let first_fault = vault_fault.clone().or_else(|| blob_fault.clone());
    Storage {
        provider: settings.blob_provider.clone(),
        status: state(&first_fault),
        redundancy_enabled: settings.blob_provider == "s3",
        storage_key_status: state(&blob_fault),
        storage_key_last_error: blob_fault.clone(),
        space_id: record.id.to_string(),
        bucket_id: settings.blob_bucket.clone(),
        owner_address: record.owner_address.clone(),
        has_api_key: record.api_key_count > 0,
        has_service_private_key: !record.data_key.is_empty(),
        vault_provisioning_status: state(&vault_fault),
        vault_last_error: vault_fault,
        blob_store_bucket_name: settings.blob_bucket.clone(),
        blob_store_provisioning_status: state(&blob_fault),
        blob_store_last_error: blob_fault,
        last_error: first_fault,
    }
}
