//! Stored answers for Idempotency-Keys.

use model::WorkspaceId;
use serde::Serialize;

use super::App;
use crate::core::{
    call::Call,
    error::{Error, Result},
    state::running_keys::RunningKey,
};

impl App {
    /// Replaces the stored answer for the call's Idempotency-Key once more is known.
    pub(crate) async fn keep_answer<T: Serialize>(&self, call: &Call, value: &T) -> Result<()> {
        let Some(claim) = call.idempotency.clone() else { return Ok(()) };
        let (body, answer) = (to_json(value)?, call.operation.answer);
        self.db().write(&call.workspace, async move |tx| claim.keep(tx, answer, &body).await).await
    }

    /// Marks an idempotency key as running on this node until the guard is dropped. `None` when it runs already.
    pub(crate) fn run_alone(&self, workspace: &WorkspaceId, key: &str) -> Option<RunningKey> {
        self.0.running.begin(workspace, key)
    }
}

pub(super) fn to_json<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(Error::internal)
}
