//! Who did what: one row for every write, in the transaction of its effect.

use model::Timestamp;

use crate::{Param, Tx, error::Result};

/// One entry of the audit trail.
#[derive(Clone, Debug)]
pub struct AuditEntry {
    /// A time-ordered id.
    pub id: String,
    /// When.
    pub at: Timestamp,
    /// Which key or account.
    pub actor: String,
    /// Which operation.
    pub operation: &'static str,
    /// On what: the path of the request.
    pub subject: String,
    /// The request's id, as in the logs.
    pub request_id: String,
}

impl AuditEntry {
    fn params(&self) -> Vec<Param<'_>> {
        vec![
            (&self.id).into(),
            self.at.into(),
            (&self.actor).into(),
            self.operation.into(),
            (&self.subject).into(),
            (&self.request_id).into(),
        ]
    }
}

/// Adds entries.
pub async fn insert(tx: &mut Tx, entries: &[&AuditEntry]) -> Result<()> {
    tx.pipeline_rows(
        "INSERT INTO audit (workspace_id, id, at, actor, operation, subject, request_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        entries.iter().map(|entry| entry.params()).collect(),
    )
    .await
}
