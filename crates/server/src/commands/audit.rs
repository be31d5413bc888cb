//! `admin audit`: who changed what in a workspace.

use model::{WorkspaceId, audit::AuditEntry};
use operations::{App, audit};

use crate::{failure::Result, output};

pub(super) async fn run(app: &App, workspace: &WorkspaceId, limit: u32) -> Result<()> {
    let entries = audit::newest(app, workspace, i64::from(limit)).await?;
    output::result(&entries, || {
        let lines = entries.iter().map(line);
        let count = match entries.len() {
            1 => "1 entry".to_owned(),
            count => format!("{count} entries"),
        };
        lines.collect::<String>() + &count
    })
}

fn line(entry: &AuditEntry) -> String {
    let actor = entry.actor.name.as_deref().unwrap_or(&entry.actor.id);
    let changes: Vec<String> = entry
        .changes
        .iter()
        .map(|change| {
            if change.hidden {
                format!("\n  {}: changed", change.field)
            } else {
                format!("\n  {}: {} -> {}", change.field, change.from, change.to)
            }
        })
        .collect();
    format!(
        "{}  {:<8}  {actor}  {}  {}  {} {}{}\n",
        entry.at,
        entry.actor.kind.as_str(),
        entry.address.as_deref().unwrap_or("-"),
        entry.operation,
        entry.resource.kind,
        entry.resource.id,
        changes.concat(),
    )
}
