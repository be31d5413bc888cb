//! Fair scheduling over workspaces: how the workers of a process share their slots.
//!
//! Each worker goes round robin over the workspaces with pending work. In one round each gets the same share, and
//! none ever exceeds its maximum, so a newcomer waits for one round and not for all that others queued.

use std::collections::HashMap;

use model::WorkspaceId;

/// The position of a worker in its round, and its work in progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    after: String,
    in_progress: HashMap<WorkspaceId, usize>,
}

impl Turns {
    /// The workspace that was served last.
    pub(crate) fn after(&self) -> &str {
        &self.after
    }

    /// How many workspaces to load for this many slots: those at their maximum get nothing.
    pub(crate) fn candidate_limit(&self, slots: usize) -> usize {
        if slots == 0 { 0 } else { slots + self.in_progress.len() }
    }

    /// Shares slots among workspaces in round-robin order: how many each may use. None exceeds its maximum, work in
    /// progress included. The remainder stays free until the next round.
    pub(crate) fn share(
        &mut self,
        waiting: Vec<WorkspaceId>,
        slots: usize,
        max_each: usize,
    ) -> Vec<(WorkspaceId, usize)> {
        let open = |workspace: &WorkspaceId| max_each.saturating_sub(self.count(workspace));
        let waiting: Vec<(WorkspaceId, usize)> = waiting
            .into_iter()
            .map(|workspace| (open(&workspace), workspace))
            .filter(|(open, _)| *open > 0)
            .map(|(open, workspace)| (workspace, open))
            .collect();
        let each = slots.checked_div(waiting.len()).unwrap_or_default().max(1);
        let mut left = slots;
        let mut shares = Vec::new();
        for (workspace, open) in waiting {
            let share = each.min(open).min(left);
            if share == 0 {
                break;
            }
            left -= share;
            workspace.as_str().clone_into(&mut self.after);
            shares.push((workspace, share));
        }
        shares
    }

    /// Whether nothing is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_progress.is_empty()
    }

    /// How many items of a workspace are in progress.
    pub(crate) fn count(&self, workspace: &WorkspaceId) -> usize {
        self.in_progress.get(workspace).copied().unwrap_or_default()
    }

    /// The workspaces with work in progress.
    pub(crate) fn workspaces(&self) -> Vec<WorkspaceId> {
        self.in_progress.keys().cloned().collect()
    }

    /// Moves the round on to a workspace.
    pub(crate) fn advance(&mut self, workspace: &WorkspaceId) {
        workspace.as_str().clone_into(&mut self.after);
    }

    /// Moves the round on to a workspace and counts an item as in progress.
    pub(crate) fn serve(&mut self, workspace: &WorkspaceId) {
        self.advance(workspace);
        self.claim(workspace);
    }

    /// Counts an item of a workspace as in progress.
    pub(crate) fn claim(&mut self, workspace: &WorkspaceId) {
        *self.in_progress.entry(workspace.clone()).or_default() += 1;
    }

    /// Counts an item of a workspace as finished.
    pub(crate) fn release(&mut self, workspace: &WorkspaceId) {
        if let Some(in_progress) = self.in_progress.get_mut(workspace) {
            *in_progress -= 1;
            if *in_progress == 0 {
                self.in_progress.remove(workspace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspaces(names: &[&str]) -> Vec<WorkspaceId> {
        names.iter().map(|name| WorkspaceId::from(*name)).collect()
    }

    fn shares(turns: &mut Turns, waiting: &[&str], slots: usize) -> Vec<(String, usize)> {
        let shares = turns.share(workspaces(waiting), slots, 4);
        shares.into_iter().map(|(workspace, share)| (workspace.to_string(), share)).collect()
    }

    // rules: MEMORY-12, SCAN-11, HOOK-11, TRIAGE-13
    #[test]
    fn room_is_shared_in_turn_and_none_gets_beyond_its_part() {
        let mut turns = Turns::default();
        let owned = |all: &[(&str, usize)]| -> Vec<(String, usize)> {
            all.iter().map(|(name, share)| ((*name).to_owned(), *share)).collect()
        };
        assert_eq!(shares(&mut turns, &["a"], 8), owned(&[("a", 4)]));
        assert_eq!(shares(&mut turns, &["a", "b"], 6), owned(&[("a", 3), ("b", 3)]));
        assert_eq!(shares(&mut turns, &["a", "b", "c"], 2), owned(&[("a", 1), ("b", 1)]));
        assert_eq!(turns.after(), "b", "the next one begins behind it");
        for _ in 0..4 {
            turns.claim(&"a".into());
        }
        assert_eq!((shares(&mut turns, &["a", "b"], 1), turns.candidate_limit(1)), (owned(&[("b", 1)]), 2));
        turns.release(&"a".into());
        assert_eq!(shares(&mut turns, &["a"], 8), owned(&[("a", 1)]));
        assert_eq!((shares(&mut turns, &[], 8), turns.candidate_limit(0)), (owned(&[]), 0));
    }
}
