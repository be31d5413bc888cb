//! Turns over workspaces: how the workers of a process share their room among everybody who waits.
//!
//! Each worker goes round the workspaces that have something waiting. In one round each gets the same, and none ever holds
//! more than its part of the room, so that somebody who comes later waits for a round, not for all that others have.

use std::collections::HashMap;

use model::WorkspaceId;

/// Where a worker is in its round, and what it has in its hands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    after: String,
    held: HashMap<WorkspaceId, usize>,
}

impl Turns {
    /// The workspace that was served last.
    pub(crate) fn after(&self) -> &str {
        &self.after
    }

    /// How many waiting workspaces to look up for so much room: those that hold their part already get nothing.
    pub(crate) fn to_look_up(&self, room: usize) -> usize {
        if room == 0 { 0 } else { room + self.held.len() }
    }

    /// Shares room among workspaces that wait, in their turn: for each how much it may take. None gets beyond its part,
    /// what it holds included. What is left over goes to nobody until the next look.
    pub(crate) fn share(
        &mut self,
        waiting: Vec<WorkspaceId>,
        room: usize,
        part: usize,
    ) -> Vec<(WorkspaceId, usize)> {
        let open = |workspace: &WorkspaceId| part.saturating_sub(self.holds(workspace));
        let waiting: Vec<(WorkspaceId, usize)> = waiting
            .into_iter()
            .map(|workspace| (open(&workspace), workspace))
            .filter(|(open, _)| *open > 0)
            .map(|(open, workspace)| (workspace, open))
            .collect();
        let each = room.checked_div(waiting.len()).unwrap_or_default().max(1);
        let mut left = room;
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

    /// Whether nothing is in work.
    pub(crate) fn is_idle(&self) -> bool {
        self.held.is_empty()
    }

    /// How much of a workspace is in work.
    pub(crate) fn holds(&self, workspace: &WorkspaceId) -> usize {
        self.held.get(workspace).copied().unwrap_or_default()
    }

    /// The workspaces of which something is in work.
    pub(crate) fn served(&self) -> Vec<WorkspaceId> {
        self.held.keys().cloned().collect()
    }

    /// Gives a workspace its turn.
    pub(crate) fn pass(&mut self, workspace: &WorkspaceId) {
        workspace.as_str().clone_into(&mut self.after);
    }

    /// Gives a workspace its turn, and notes that something of it is taken on.
    pub(crate) fn serve(&mut self, workspace: &WorkspaceId) {
        self.pass(workspace);
        self.take(workspace);
    }

    /// Notes that something of a workspace is taken on.
    pub(crate) fn take(&mut self, workspace: &WorkspaceId) {
        *self.held.entry(workspace.clone()).or_default() += 1;
    }

    /// Notes that something of a workspace is done.
    pub(crate) fn release(&mut self, workspace: &WorkspaceId) {
        if let Some(held) = self.held.get_mut(workspace) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(workspace);
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

    fn shares(turns: &mut Turns, waiting: &[&str], room: usize) -> Vec<(String, usize)> {
        let shares = turns.share(workspaces(waiting), room, 4);
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
            turns.take(&"a".into());
        }
        assert_eq!((shares(&mut turns, &["a", "b"], 1), turns.to_look_up(1)), (owned(&[("b", 1)]), 2));
        turns.release(&"a".into());
        assert_eq!(shares(&mut turns, &["a"], 8), owned(&[("a", 1)]));
        assert_eq!((shares(&mut turns, &[], 8), turns.to_look_up(0)), (owned(&[]), 0));
    }
}
