//! The backlog of the queues, for metrics and operators.

use crate::{
    core::{app::App, error::Result},
    outbox::sending::worker,
};

/// The backlog of the queues that all workspaces share.
pub struct Backlog {
    /// The queues by name, with their length.
    pub waiting: Vec<(&'static str, i64)>,
    /// How long the oldest record of the outbound queue has been due.
    pub outbound_overdue_seconds: u64,
}

/// Counts the queues, within bounds.
#[crate::boxed]
pub async fn measure(app: &App) -> Result<Backlog> {
    let now = app.now();
    let waiting = app.db().system_read(async move |tx| store::backlog::count(tx, now).await).await?;
    Ok(Backlog { waiting, outbound_overdue_seconds: worker::overdue_seconds(app).await? })
}
