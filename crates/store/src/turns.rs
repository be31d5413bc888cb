//! Round robin over workspaces: which ones have due work, after the one served last.
//!
//! Queues are shared by all workspaces. In order of arrival, one workspace with ten thousand entries would be served
//! before everyone who came later. So a queue has an index that starts with the workspace, and workers go round.

use model::{Timestamp, WorkspaceId};

use crate::{Param, SystemTx, error::Result};

/// A queue whose records are each due at a time. Its index has the workspace and then that time.
pub(crate) struct Queue {
    pub(crate) table: &'static str,
    /// Which of its rows are pending; it may use `$4`.
    pub(crate) condition: &'static str,
    pub(crate) due: &'static str,
}

impl Queue {
    /// The next workspaces after the given one with something due, each once, wrapping around at the end.
    ///
    /// It costs two index lookups per workspace with entries in the queue, however many those are.
    pub(crate) async fn due_workspaces(
        &self,
        tx: &mut SystemTx,
        now: Timestamp,
        after: &str,
        most: usize,
        of: &[Param<'_>],
    ) -> Result<Vec<WorkspaceId>> {
        let mut found = self.due_after(tx, now, after, most, of).await?;
        if !after.is_empty() && found.len() < most {
            let before = self.due_after(tx, now, "", most - found.len(), of).await?;
            found.extend(before.into_iter().take_while(|workspace| workspace.as_str() <= after));
        }
        Ok(found)
    }

    async fn due_after(
        &self,
        tx: &mut SystemTx,
        now: Timestamp,
        after: &str,
        most: usize,
        of: &[Param<'_>],
    ) -> Result<Vec<WorkspaceId>> {
        let Self { table, condition, due } = self;
        let sql = format!(
            "WITH RECURSIVE present (id) AS (
               SELECT (SELECT workspace_id FROM {table} WHERE {condition} AND workspace_id > $2
                 ORDER BY workspace_id LIMIT 1)
               UNION ALL SELECT (SELECT workspace_id FROM {table} WHERE {condition} AND workspace_id > present.id
                 ORDER BY workspace_id LIMIT 1) FROM present WHERE present.id IS NOT NULL)
             SELECT id FROM present WHERE id IS NOT NULL AND EXISTS (SELECT 1 FROM {table}
               WHERE {condition} AND workspace_id = present.id AND {due} <= $1) LIMIT $3"
        );
        let mut values: Vec<Param<'_>> =
            vec![now.into(), after.into(), i64::try_from(most).unwrap_or(i64::MAX).into()];
        values.extend_from_slice(of);
        let found: Vec<(WorkspaceId,)> = tx.all(&sql, &values).await?;
        Ok(found.into_iter().map(|(workspace,)| workspace).collect())
    }
}

/// The next workspaces after the given one for which a statement finds something, each once, wrapping around at the
/// end.
///
/// The statement returns the first workspace after `$2`, by its id, that has something due at `$1`.
pub(crate) async fn next_workspaces(
    tx: &mut SystemTx,
    statement: &str,
    now: Timestamp,
    after: &str,
    most: usize,
) -> Result<Vec<WorkspaceId>> {
    let mut found: Vec<WorkspaceId> = Vec::new();
    let (mut position, mut is_last_round) = (after.to_owned(), after.is_empty());
    while found.len() < most {
        let next: Option<(WorkspaceId,)> = tx.one(statement, &[now.into(), position.as_str().into()]).await?;
        match next {
            Some((workspace,)) if found.first() == Some(&workspace) => break,
            Some((workspace,)) => {
                workspace.as_str().clone_into(&mut position);
                found.push(workspace);
            }
            None if is_last_round => break,
            None => {
                is_last_round = true;
                position.clear();
            }
        }
    }
    Ok(found)
}
