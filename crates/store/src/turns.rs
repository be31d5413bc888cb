//! Work in turns: which workspaces have something waiting, from where a worker was last.
//!
//! Queues are shared by all workspaces. Taken in the order in which things came, one workspace with ten thousand of them
//! would go before everybody who came later. So a queue has an index that begins with the workspace, and workers go round.

use model::{Timestamp, WorkspaceId};

use crate::{Param, SystemTx, error::Result};

/// A queue whose records wait until a time each. Its index has the workspace and then that time.
pub(crate) struct Queue {
    pub(crate) table: &'static str,
    /// Which of its rows wait; it may speak of `$4`.
    pub(crate) condition: &'static str,
    pub(crate) due: &'static str,
}

impl Queue {
    /// The next workspaces behind the given one with something that is due, each once, beginning anew at the end.
    ///
    /// It costs two looks into the index for each workspace that has anything in the queue, however much that is.
    pub(crate) async fn due_workspaces(
        &self,
        tx: &mut SystemTx,
        now: Timestamp,
        after: &str,
        most: usize,
        of: &[Param<'_>],
    ) -> Result<Vec<WorkspaceId>> {
        let mut found = self.due_behind(tx, now, after, most, of).await?;
        if !after.is_empty() && found.len() < most {
            let before = self.due_behind(tx, now, "", most - found.len(), of).await?;
            found.extend(before.into_iter().take_while(|workspace| workspace.as_str() <= after));
        }
        Ok(found)
    }

    async fn due_behind(
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

/// The next workspaces behind the given one for which a statement finds something, each once, beginning anew at the end.
///
/// The statement gives the first workspace behind `$2`, by its id, that has something waiting at `$1`.
pub(crate) async fn next(
    tx: &mut SystemTx,
    statement: &str,
    now: Timestamp,
    after: &str,
    most: usize,
) -> Result<Vec<WorkspaceId>> {
    let mut found: Vec<WorkspaceId> = Vec::new();
    let (mut place, mut is_last_round) = (after.to_owned(), after.is_empty());
    while found.len() < most {
        let next: Option<(WorkspaceId,)> = tx.one(statement, &[now.into(), place.as_str().into()]).await?;
        match next {
            Some((workspace,)) if found.first() == Some(&workspace) => break,
            Some((workspace,)) => {
                workspace.as_str().clone_into(&mut place);
                found.push(workspace);
            }
            None if is_last_round => break,
            None => {
                is_last_round = true;
                place.clear();
            }
        }
    }
    Ok(found)
}
