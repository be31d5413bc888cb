//! The audit log of a workspace, as admins and operators read it.
//!
//! Entries are written where the changes are made. They are ordered by their ids, which are made when the change is
//! written; a page examines a bounded number of them, whatever the filter.

use model::{
    AuditEntryId, WorkspaceId,
    audit::{AuditActor, AuditEntry, AuditPage, AuditQuery, AuditResource},
};
use store::audit::{self, AuditFilter, AuditRow};

use crate::core::{
    app::App,
    call::Call,
    cursor,
    error::{Error, ErrorKind, Result},
    operation::Operation,
};

/// Lists the entries.
pub const LIST: Operation = Operation::read(
    "listAuditEntries",
    "Lists the audit log of a workspace: who changed what, when and from where. Newest first, for 90 days.",
)
.workspace()
.admin()
.errors(&[ErrorKind::InvalidCursor]);

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST];

/// Lists the entries.
#[crate::boxed]
pub async fn list(app: &App, call: &Call, query: AuditQuery) -> Result<AuditPage> {
    let key = app.data_key(&call.workspace).await?;
    let limit = query.limit;
    let filter = AuditFilter {
        // What is looked for is told by its name or its resource as well, and then found more quickly.
        only_lasting: !query.include_routine || query.operation.as_deref().is_some_and(is_lasting),
        actor: query.actor,
        operation: query.operation,
        mailbox: query.mailbox_id,
        resource: query.resource,
        since: query.since,
        until: query.until,
    };
    let about = format!("listAuditEntries {filter:?}");
    let before: Option<String> =
        query.cursor.as_deref().map(|text| cursor::open(&key, &about, text)).transpose()?;
    let (mut rows, end) =
        app.read(call, async move |tx| part(tx, &filter, before.as_deref(), limit).await).await?;
    let has_more = cursor::truncate(&mut rows, limit);
    let last = if has_more { rows.last().map(|row| row.entry.id.clone()) } else { end };
    let next_cursor = last.map(|last| cursor::seal(&key, &about, &last)).transpose()?;
    let entries = rows.into_iter().map(|row| show(row, &call.workspace)).collect();
    Ok(AuditPage { entries, has_more: next_cursor.is_some(), next_cursor })
}

fn is_lasting(operation: &str) -> bool {
    !audit::is_routine(operation)
}

async fn part(
    tx: &mut store::Tx,
    filter: &AuditFilter,
    before: Option<&str>,
    limit: i64,
) -> Result<(Vec<AuditRow>, Option<String>)> {
    let part = audit::list(tx, filter, before, limit).await?;
    Ok((part.rows, part.examined_until))
}

/// The newest entries of a workspace, for operators.
#[crate::boxed]
pub async fn newest(app: &App, workspace: &WorkspaceId, limit: i64) -> Result<Vec<AuditEntry>> {
    let read = async move |tx: &mut store::Tx| {
        if store::workspaces::find(tx).await?.is_none() {
            return Err(Error::not_found("Workspace not found"));
        }
        part(tx, &AuditFilter::default(), None, limit).await
    };
    let (mut rows, _) = app.db().read(workspace, read).await?;
    cursor::truncate(&mut rows, limit);
    Ok(rows.into_iter().map(|row| show(row, workspace)).collect())
}

fn show(AuditRow { entry, details }: AuditRow, workspace: &WorkspaceId) -> AuditEntry {
    let resource = |kind: &str, id: &str| AuditResource { kind: kind.to_owned(), id: id.to_owned() };
    AuditEntry {
        id: AuditEntryId::from(format!("aud_{}", entry.id)),
        at: entry.at,
        actor: AuditActor::new(entry.actor, entry.actor_name),
        address: entry.address,
        operation: entry.operation,
        subject: entry.subject,
        resource: match (&details.resource_kind, &details.resource_id, &details.mailbox_id) {
            (Some(kind), Some(id), _) => resource(kind, id),
            (_, _, Some(mailbox)) => resource("mailbox", mailbox.as_str()),
            _ => resource("workspace", workspace.as_str()),
        },
        mailbox_id: details.mailbox_id,
        request_id: entry.request_id,
        changes: details.changes.unwrap_or_default(),
    }
}
