//! How many connections to a destination this node may have: nodes that send share a destination's limit.
//!
//! Each computes its share from the list of nodes, which it reads with each announcement. For a while after a change
//! others may not know it yet, so the smallest share of that time counts.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

/// After this long all nodes have read a change: more than two announcements.
pub(crate) const SETTLED_AFTER: Duration = Duration::from_secs(25);
/// Changes that are remembered; where nodes come and go more often, only the latest count.
const MAX_VIEWS: usize = 16;

/// The nodes that send, as this node saw them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    /// It has just come, and the others do not count it yet: one connection.
    Newcomer,
    /// Its place among so many, by id.
    Settled { place: usize, nodes: usize },
}

/// The views that still count: the latest, and those that were replaced a moment ago.
#[derive(Default)]
pub(crate) struct SendShares {
    latest: Option<View>,
    replaced: VecDeque<(Instant, View)>,
}

impl SendShares {
    /// Records the nodes that send, this one among them; without it, it has no share to compute.
    pub(crate) fn record(&mut self, own: &str, nodes: &[String]) {
        let mut sorted: Vec<&str> = nodes.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        let Ok(place) = sorted.binary_search(&own) else { return };
        let view = View::Settled { place, nodes: sorted.len() };
        let before = match self.latest.replace(view) {
            Some(before) if before == view => return,
            Some(before) => before,
            None if nodes.len() == 1 => return,
            None => View::Newcomer,
        };
        self.replaced.retain(|(at, _)| at.elapsed() < SETTLED_AFTER);
        if self.replaced.len() >= MAX_VIEWS {
            self.replaced.pop_front();
        }
        self.replaced.push_back((Instant::now(), before));
    }

    /// This node's share of a destination's limit. A node that nobody shares with has all of it.
    pub(crate) fn of(&self, destination: &str, limit: usize) -> usize {
        let recent = self.replaced.iter().filter(|(at, _)| at.elapsed() < SETTLED_AFTER);
        let views = recent.map(|(_, view)| *view).chain(self.latest);
        views.map(|view| view.share(destination, limit)).min().unwrap_or(limit)
    }
}

impl View {
    fn share(self, destination: &str, limit: usize) -> usize {
        match self {
            Self::Newcomer => limit.min(1),
            Self::Settled { place, nodes } => {
                // What is left of the division goes to other nodes at each destination.
                let shifted = (place + digest(destination) % nodes) % nodes;
                limit / nodes + usize::from(shifted < limit % nodes)
            }
        }
    }
}

/// The same number on all nodes, whatever version they have.
fn digest(destination: &str) -> usize {
    let mixed = |sum: u32, byte: u8| sum.wrapping_mul(31).wrapping_add(u32::from(byte));
    destination.bytes().fold(7, mixed) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(nodes: usize) -> Vec<String> {
        (0..nodes).map(|node| format!("node-{node:03}")).collect()
    }

    /// What all nodes may have together.
    fn together(of: &[SendShares], destination: &str, limit: usize) -> usize {
        of.iter().map(|shares| shares.of(destination, limit)).sum()
    }

    #[tokio::test(start_paused = true)]
    async fn the_shares_of_all_nodes_are_the_limit() {
        for nodes in [1, 2, 3, 4, 5, 20, 100] {
            let ids = ids(nodes);
            let mut all: Vec<SendShares> = ids.iter().map(|_| SendShares::default()).collect();
            for (own, shares) in ids.iter().zip(&mut all) {
                shares.record(own, &ids);
            }
            tokio::time::advance(SETTLED_AFTER).await;
            for destination in ["a.test", "b.test", "mail.example"] {
                assert_eq!(together(&all, destination, 4), 4, "{nodes} nodes at {destination}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_has_one_connection_until_the_others_count_it() {
        let (two, three) = (ids(2), ids(3));
        let mut all: Vec<SendShares> = (0..3).map(|_| SendShares::default()).collect();
        all[0].record(&two[0], &two);
        all[1].record(&two[1], &two);
        tokio::time::advance(SETTLED_AFTER).await;
        assert_eq!(together(&all[..2], "a.test", 4), 4);
        // The third knows the others at once; one of them knows it, the other does not yet.
        all[2].record(&three[2], &three);
        all[0].record(&three[0], &three);
        assert_eq!(all[2].of("a.test", 4), 1);
        assert!(together(&all, "a.test", 4) <= 5);
        all[1].record(&three[1], &three);
        tokio::time::advance(SETTLED_AFTER).await;
        assert_eq!(together(&all, "a.test", 4), 4);
        // It leaves, and what it had is shared again.
        all[0].record(&two[0], &two);
        all[1].record(&two[1], &two);
        assert!(together(&all[..2], "a.test", 4) <= 4);
        tokio::time::advance(SETTLED_AFTER).await;
        assert_eq!(together(&all[..2], "a.test", 4), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_alone_has_all_at_once() {
        let mut alone = SendShares::default();
        assert_eq!(alone.of("a.test", 4), 4);
        alone.record("node-000", &ids(1));
        assert_eq!(alone.of("a.test", 4), 4);
        let mut without_worker = SendShares::default();
        without_worker.record("web", &ids(3));
        assert_eq!(without_worker.of("a.test", 4), 4, "it sends nothing");
    }
}
