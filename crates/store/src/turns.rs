//! Work in turns: which workspaces have something waiting, from where a worker was last.
//!
//! Queues are shared by all workspaces. Taken in the order in which things came, one workspace with ten thousand of them
//! would go before everybody who came later. So a queue has an index that begins with the workspace, and workers go round.

use model::{Timestamp, WorkspaceId};

use crate::{SystemTx, error::Result};

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
