//! What a node is sending at the moment: which tasks are at work for whom, and what waits for them.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use model::WorkspaceId;
use store::queue::Claimed;
use tokio::{sync::Notify, time::Instant};

use crate::core::{lock::lock, turns::Turns};

/// The destination that stands for the relay: no domain has a space in its name.
pub(crate) const RELAY: &str = "(relay)";
/// Tasks at once for one destination.
const MAX_TASKS_PER_DESTINATION: usize = 4;
/// The same for the relay and for mailboxes of this server, which have room of their own.
const MAX_TASKS_OF_RELAY: usize = 16;
/// How long others wait for the one that asks: a large mail may take its time although the destination is well.
const PROBE: Duration = Duration::from_secs(30);
/// Destinations whose turns are remembered although nothing is in work there.
const TURNS_CAPACITY: usize = 1000;
/// Mails that are remembered because code panicked over them.
const MAX_PANICKED: usize = 1000;

/// What names a record: its workspace, its mail, its position.
type Key = (WorkspaceId, String, i64);

/// What a node is sending at the moment.
pub(crate) struct Outbox {
    /// The node's name.
    node: String,
    /// Tasks for each destination.
    busy: Mutex<HashMap<String, usize>>,
    /// Mails that were taken on and that no task is at yet, for each destination. The tasks share them: with some for
    /// each, one would have much to do while others have nothing.
    waiting: Mutex<HashMap<String, VecDeque<Group>>>,
    /// Records that tasks of this node have, whatever the clock says about their leases.
    held: Mutex<HashSet<Key>>,
    /// Held while claims in the store and `held` change together.
    claiming: tokio::sync::Mutex<()>,
    /// Mails over which code of this server panicked the last time.
    panicked: Mutex<HashSet<(WorkspaceId, String)>>,
    /// Whose turn it is at each destination.
    turns: Mutex<HashMap<String, Turns>>,
    /// Destinations that could not be reached lately and that one task asks before others do, and since when.
    probed: Mutex<HashMap<String, Instant>>,
    /// Told whenever a task ends.
    ended: Notify,
    /// Whether the process is about to end.
    ending: AtomicBool,
}

impl Outbox {
    pub(crate) fn new(node: String) -> Self {
        Self {
            node,
            busy: Mutex::default(),
            waiting: Mutex::default(),
            held: Mutex::default(),
            claiming: tokio::sync::Mutex::default(),
            panicked: Mutex::default(),
            turns: Mutex::default(),
            probed: Mutex::default(),
            ended: Notify::new(),
            ending: AtomicBool::new(false),
        }
    }

    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    /// Tasks that share the room for other servers.
    pub(crate) fn tasks(&self) -> usize {
        let busy = lock(&self.busy);
        busy.iter().filter(|(name, _)| !has_own_room(name)).map(|(_, tasks)| tasks).sum()
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.busy).is_empty()
    }

    pub(crate) fn free(&self, destination: &str) -> usize {
        let present = lock(&self.busy).get(destination).copied().unwrap_or_default();
        let most = match destination {
            name if lock(&self.probed).get(name).is_some_and(|since| since.elapsed() < PROBE) => 1,
            name if has_own_room(name) => MAX_TASKS_OF_RELAY,
            _ => MAX_TASKS_PER_DESTINATION,
        };
        most.saturating_sub(present)
    }

    /// Records that no task is at yet.
    pub(crate) fn waiting(&self, destination: &str) -> usize {
        let waiting = lock(&self.waiting);
        waiting.get(destination).map_or(0, |groups| groups.iter().map(|group| group.records.len()).sum())
    }

    /// Lets mails wait for a task, one of each workspace in turn: who comes later is not behind all that others have.
    pub(crate) fn wait(&self, destination: String, groups: Vec<Group>) {
        let mut waiting = lock(&self.waiting);
        let present = waiting.entry(destination).or_default();
        present.extend(groups);
        *present = in_turn(std::mem::take(present));
    }

    /// Whose turn it is at a destination, and what is in work for whom.
    pub(crate) fn turns(&self, destination: &str) -> Turns {
        lock(&self.turns).get(destination).cloned().unwrap_or_default()
    }

    /// Notes whose turn it was last at a destination.
    pub(crate) fn served(&self, destination: &str, workspace: &WorkspaceId) {
        let mut turns = lock(&self.turns);
        // Where nothing is in work any more the next turn may as well begin anew.
        if turns.len() >= TURNS_CAPACITY && !turns.contains_key(destination) {
            turns.retain(|_, turns| !turns.is_idle());
        }
        turns.entry(destination.to_owned()).or_default().pass(workspace);
    }

    /// The next mail for a destination.
    pub(crate) fn next(&self, destination: &str) -> Option<Group> {
        let mut waiting = lock(&self.waiting);
        let groups = waiting.get_mut(destination)?;
        let next = groups.pop_front();
        if groups.is_empty() {
            waiting.remove(destination);
        }
        next
    }

    /// All records that no task is at: those for a destination, or those for any.
    pub(crate) fn take_waiting(&self, destination: Option<&str>) -> Vec<Claimed> {
        let mut waiting = lock(&self.waiting);
        let taken: Vec<VecDeque<Group>> = match destination {
            Some(name) => waiting.remove(name).into_iter().collect(),
            None => waiting.drain().map(|(_, groups)| groups).collect(),
        };
        taken.into_iter().flatten().flat_map(|group| group.records).collect()
    }

    /// How many more tasks each destination has mails for.
    pub(crate) fn wanted_tasks(&self) -> Vec<(String, usize)> {
        let waiting: Vec<(String, usize)> =
            lock(&self.waiting).iter().map(|(name, groups)| (name.clone(), groups.len())).collect();
        waiting
            .into_iter()
            .map(|(name, mails)| {
                let free = self.free(&name);
                (name, free.min(mails))
            })
            .collect()
    }

    /// Keeps those that no task of this node has yet: after a jump of the clock a lease may seem to be over.
    pub(crate) fn hold(&self, claimed: Vec<Claimed>) -> Vec<Claimed> {
        let mut held = lock(&self.held);
        let kept: Vec<Claimed> = claimed.into_iter().filter(|record| held.insert(key_of(record))).collect();
        let mut turns = lock(&self.turns);
        for record in &kept {
            turns.entry(record.destination.clone()).or_default().take(&record.workspace);
        }
        kept
    }

    /// Whether a task has a record, or will get it.
    pub(crate) fn holds(&self, record: &Claimed) -> bool {
        lock(&self.held).contains(&key_of(record))
    }

    /// Waits until nobody else changes what this node has claimed.
    pub(crate) async fn claiming(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.claiming.lock().await
    }

    /// Notes that code panicked over a mail; false when it did so the last time too.
    pub(crate) fn panicked_first(&self, group: &Group) -> bool {
        let mut panicked = lock(&self.panicked);
        if panicked.len() >= MAX_PANICKED {
            panicked.clear();
        }
        panicked.insert(group.id())
    }

    /// Notes that a mail was tried without a panic.
    pub(crate) fn survived(&self, group: &Group) {
        let mut panicked = lock(&self.panicked);
        if !panicked.is_empty() {
            panicked.remove(&group.id());
        }
    }

    pub(crate) fn let_go(&self, records: &[Claimed]) {
        let mut held = lock(&self.held);
        let mut turns = lock(&self.turns);
        for record in records {
            if held.remove(&key_of(record))
                && let Some(turns) = turns.get_mut(&record.destination)
            {
                turns.release(&record.workspace);
            }
        }
    }

    /// Lets one task alone ask a destination.
    pub(crate) fn probe(&self, destination: &str) {
        lock(&self.probed).entry(destination.to_owned()).or_insert_with(Instant::now);
    }

    /// Whether a destination could not be reached lately, and nobody has got through since.
    pub(crate) fn is_probed(&self, destination: &str) -> bool {
        lock(&self.probed).contains_key(destination)
    }

    /// Lets other tasks join one that got through.
    pub(crate) fn reached(&self, destination: &str) {
        lock(&self.probed).remove(destination);
    }

    /// Lets the tasks end after the mail that each is at.
    pub(crate) fn prepare_to_end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Waits until a task ends.
    pub(crate) async fn task_ended(&self) {
        self.ended.notified().await;
    }

    pub(crate) fn begin(&self, destination: &str) {
        *lock(&self.busy).entry(destination.to_owned()).or_default() += 1;
    }

    pub(crate) fn end(&self, destination: &str) {
        let mut busy = lock(&self.busy);
        if let Some(tasks) = busy.get_mut(destination) {
            *tasks = tasks.saturating_sub(1);
            if *tasks == 0 {
                busy.remove(destination);
                self.reached(destination);
            }
        }
        drop(busy);
        self.ended.notify_one();
    }
}

/// Whether a destination's tasks count apart: those for the relay and for mailboxes of this server.
pub(crate) fn has_own_room(destination: &str) -> bool {
    destination.is_empty() || destination == RELAY
}

/// One mail of each workspace, then the second of each, and so on.
fn in_turn(groups: VecDeque<Group>) -> VecDeque<Group> {
    let mut before: HashMap<WorkspaceId, usize> = HashMap::new();
    let mut placed: Vec<(usize, Group)> = Vec::with_capacity(groups.len());
    for group in groups {
        let round = before.entry(group.workspace.clone()).or_default();
        placed.push((*round, group));
        *round += 1;
    }
    placed.sort_by_key(|(round, _)| *round);
    placed.into_iter().map(|(_, group)| group).collect()
}

fn key_of(record: &Claimed) -> Key {
    (record.workspace.clone(), record.outbound.clone(), record.position)
}

/// The recipients of one mail at one destination.
pub(crate) struct Group {
    pub(crate) workspace: WorkspaceId,
    pub(crate) outbound: String,
    pub(crate) destination: String,
    pub(crate) records: Vec<Claimed>,
}

impl Group {
    /// What names the mail.
    fn id(&self) -> (WorkspaceId, String) {
        (self.workspace.clone(), self.outbound.clone())
    }
}
