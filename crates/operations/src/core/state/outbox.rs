//! What a node is sending: running tasks per destination, and the queue in front of them.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use model::WorkspaceId;
use store::{outbound::DeliveryRecord, queue::ClaimedDelivery};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use super::{
    fresh_messages::FreshMessages, recent::Recent, send_shares::SendShares, signing_keys::SigningKeys,
};
use crate::core::{lock::lock, turns::Turns};

/// The destination that stands for the relay: no domain has a space in its name.
pub(crate) const RELAY: &str = "(relay)";
/// Maximum concurrent tasks for one destination, of all nodes together.
const MAX_TASKS_PER_DESTINATION: usize = 4;
/// The same for the relay and for mailboxes of this server, which have slots of their own.
const MAX_TASKS_OF_RELAY: usize = 16;
/// Maximum concurrent tasks for other servers, in total.
pub(crate) const MAX_TASKS: usize = 128;
/// Records that are claimed for each free task.
pub(crate) const RECORDS_PER_TASK: usize = 8;
/// For how long after a success a destination counts as reachable.
const REACHED_FOR: Duration = Duration::from_secs(10);
/// How often other nodes are asked for help.
const HELP_INTERVAL: Duration = Duration::from_secs(1);
/// How long other tasks wait for a probe: a large message may take long although the destination works.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);
/// Destinations whose turns are remembered although nothing is in progress there.
const TURNS_CAPACITY: usize = 1000;
/// Messages remembered because delivering them panicked.
const MAX_PANICKED: usize = 1000;

/// The key of a record: workspace, message, position.
type Key = (WorkspaceId, String, i64);
/// The key of a message.
type MessageKey = (WorkspaceId, String);
/// The recipients of a message after an attempt.
type Recipients = Option<Vec<DeliveryRecord>>;

/// What a node is sending now.
pub(crate) struct Outbox {
    /// The node's name.
    node: String,
    /// Running tasks per destination.
    busy: Mutex<HashMap<String, usize>>,
    /// Claimed messages that no task has started, per destination. The tasks share one queue: with a queue each, one
    /// would be busy while others are idle.
    queued: Mutex<HashMap<String, VecDeque<Group>>>,
    /// Records claimed by tasks of this node, whatever the clock says about their leases.
    claimed_keys: Mutex<HashSet<Key>>,
    /// Locked while claims in the store and `held` change together.
    claiming: tokio::sync::Mutex<()>,
    /// Messages whose last delivery panicked.
    panicked: Mutex<HashSet<(WorkspaceId, String)>>,
    /// Whose turn it is at each destination.
    turns: Mutex<HashMap<String, Turns>>,
    /// Destinations that could not be reached lately and that a single task probes, and since when.
    probed: Mutex<HashMap<String, Instant>>,
    /// Notified whenever a task ends.
    task_finished: Notify,
    /// Whether something due was left in the store, for want of a free task.
    poll_requested: AtomicBool,
    /// What is known about the destinations that were reached lately.
    reached: Mutex<ReachedDestinations>,
    /// When other nodes were last asked for help.
    asked_for_help: Mutex<Option<Instant>>,
    /// Messages whose sender waits until they are accepted.
    watched: Mutex<HashMap<MessageKey, watch::Sender<Recipients>>>,
    /// Messages that were submitted a moment ago.
    fresh_messages: FreshMessages,
    /// This node's share of what all nodes may send at once.
    shares: Mutex<SendShares>,
    /// The keys of the domains that mail is sent from.
    signing_keys: Recent<SigningKeys>,
    /// Whether the process is about to stop.
    shutting_down: AtomicBool,
}

/// Where new messages need not wait behind others.
#[derive(Default)]
struct ReachedDestinations {
    /// When each was reached last.
    since: HashMap<String, Instant>,
    /// Those with due records that the last round of the worker left in the store.
    left_behind: HashSet<String>,
    /// Whether the worker runs.
    worker_runs: bool,
}

impl Outbox {
    pub(crate) fn new(node: String) -> Self {
        Self {
            node,
            busy: Mutex::default(),
            queued: Mutex::default(),
            claimed_keys: Mutex::default(),
            claiming: tokio::sync::Mutex::default(),
            panicked: Mutex::default(),
            turns: Mutex::default(),
            probed: Mutex::default(),
            task_finished: Notify::new(),
            poll_requested: AtomicBool::new(false),
            reached: Mutex::default(),
            asked_for_help: Mutex::default(),
            watched: Mutex::default(),
            fresh_messages: FreshMessages::default(),
            shares: Mutex::default(),
            signing_keys: Recent::default(),
            shutting_down: AtomicBool::new(false),
        }
    }

    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    pub(crate) fn fresh_messages(&self) -> &FreshMessages {
        &self.fresh_messages
    }

    pub(crate) fn signing_keys(&self) -> &Recent<SigningKeys> {
        &self.signing_keys
    }

    /// Running tasks that share the slots for other servers.
    pub(crate) fn tasks(&self) -> usize {
        let busy = lock(&self.busy);
        busy.iter().filter(|(name, _)| !has_own_slots(name)).map(|(_, tasks)| tasks).sum()
    }

    /// Running tasks that have a connection to another server.
    pub(crate) fn connections(&self) -> usize {
        lock(&self.busy).iter().filter(|(name, _)| !name.is_empty()).map(|(_, tasks)| tasks).sum()
    }

    pub(crate) fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::Relaxed)
    }

    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.busy).is_empty()
    }

    pub(crate) fn free_slots(&self, destination: &str) -> usize {
        let present = lock(&self.busy).get(destination).copied().unwrap_or_default();
        let limit = match destination {
            name if lock(&self.probed).get(name).is_some_and(|since| since.elapsed() < PROBE_TIMEOUT) => 1,
            _ => usize::MAX,
        };
        limit.min(self.share(destination)).saturating_sub(present)
    }

    /// How many tasks this node may have at a destination: its share of the limit. The relay is the operator's own, so
    /// each node may have one there.
    fn share(&self, destination: &str) -> usize {
        match destination {
            "" => MAX_TASKS_OF_RELAY,
            RELAY => lock(&self.shares).of(RELAY, MAX_TASKS_OF_RELAY).max(1),
            name => lock(&self.shares).of(name, MAX_TASKS_PER_DESTINATION),
        }
    }

    /// Whether other nodes have all tasks at a destination, because there are more nodes than tasks.
    pub(crate) fn is_left_to_others(&self, destination: &str) -> bool {
        self.share(destination) == 0
    }

    /// Records the nodes that send, this one among them.
    pub(crate) fn record_senders(&self, nodes: &[String]) {
        lock(&self.shares).record(&self.node, nodes);
    }

    /// Whether this node may deliver a message to a destination as soon as it is submitted, without asking the queue: it
    /// reached the destination a moment ago, has room, and nothing older is left in the store.
    pub(crate) fn takes_at_once(&self, destination: &str) -> bool {
        if self.is_shutting_down() || self.is_probed(destination) {
            return false;
        }
        let has_room = self.queued(destination) < self.share(destination) * RECORDS_PER_TASK;
        let reached = lock(&self.reached);
        let is_reached = reached.since.get(destination).is_some_and(|since| since.elapsed() < REACHED_FOR);
        has_room && is_reached && reached.worker_runs && !reached.left_behind.contains(destination)
    }

    /// Records that a destination was reached.
    pub(crate) fn record_reached(&self, destination: &str) {
        let mut reached = lock(&self.reached);
        if reached.since.len() >= TURNS_CAPACITY {
            reached.since.retain(|_, since| since.elapsed() < REACHED_FOR);
        }
        if reached.since.len() < TURNS_CAPACITY {
            reached.since.insert(destination.to_owned(), Instant::now());
        }
    }

    /// Records which destinations have due records in the store that no node has claimed.
    pub(crate) fn record_left_behind(&self, destinations: HashSet<String>) {
        lock(&self.reached).left_behind = destinations;
    }

    /// Whether the worker runs.
    pub(crate) fn has_worker(&self) -> bool {
        lock(&self.reached).worker_runs
    }

    /// Records whether the worker runs.
    pub(crate) fn record_worker(&self, runs: bool) {
        lock(&self.reached).worker_runs = runs;
    }

    /// Queued records that no task has started.
    pub(crate) fn queued(&self, destination: &str) -> usize {
        let queued = lock(&self.queued);
        queued.get(destination).map_or(0, |groups| groups.iter().map(|group| group.records.len()).sum())
    }

    /// Queues messages, round robin over workspaces: a newcomer is not behind everything that others queued.
    pub(crate) fn enqueue(&self, destination: String, groups: Vec<Group>) {
        let mut queued = lock(&self.queued);
        let present = queued.entry(destination).or_default();
        present.extend(groups);
        *present = in_turn(std::mem::take(present));
    }

    /// The turns at a destination, and what is in progress for each workspace.
    pub(crate) fn turns(&self, destination: &str) -> Turns {
        lock(&self.turns).get(destination).cloned().unwrap_or_default()
    }

    /// Records which workspace was served last at a destination.
    pub(crate) fn record_turn(&self, destination: &str, workspace: &WorkspaceId) {
        let mut turns = lock(&self.turns);
        // Where nothing is in progress the round may start over.
        if turns.len() >= TURNS_CAPACITY && !turns.contains_key(destination) {
            turns.retain(|_, turns| !turns.is_idle());
        }
        turns.entry(destination.to_owned()).or_default().advance(workspace);
    }

    /// The next message for a destination.
    pub(crate) fn next(&self, destination: &str) -> Option<Group> {
        let mut queued = lock(&self.queued);
        let groups = queued.get_mut(destination)?;
        let next = groups.pop_front();
        if groups.is_empty() {
            queued.remove(destination);
        }
        next
    }

    /// Takes all queued records: those for a destination, or for all.
    pub(crate) fn take_queued(&self, destination: Option<&str>) -> Vec<ClaimedDelivery> {
        let mut queued = lock(&self.queued);
        let taken: Vec<VecDeque<Group>> = match destination {
            Some(name) => queued.remove(name).into_iter().collect(),
            None => queued.drain().map(|(_, groups)| groups).collect(),
        };
        taken.into_iter().flatten().flat_map(|group| group.records).collect()
    }

    /// How many more tasks each destination has messages for.
    pub(crate) fn missing_tasks(&self) -> Vec<(String, usize)> {
        let queued: Vec<(String, usize)> =
            lock(&self.queued).iter().map(|(name, groups)| (name.clone(), groups.len())).collect();
        let mut in_total = MAX_TASKS.saturating_sub(self.tasks());
        queued
            .into_iter()
            .map(|(name, messages)| {
                let mut free = self.free_slots(&name).min(messages);
                if !has_own_slots(&name) {
                    free = free.min(in_total);
                    in_total -= free;
                }
                (name, free)
            })
            .collect()
    }

    /// Keeps the claims that no task of this node has yet: after a clock jump a lease may seem to have expired.
    pub(crate) fn claim(&self, claimed: Vec<ClaimedDelivery>) -> Vec<ClaimedDelivery> {
        let mut claimed_keys = lock(&self.claimed_keys);
        let kept: Vec<ClaimedDelivery> =
            claimed.into_iter().filter(|record| claimed_keys.insert(key_of(record))).collect();
        let mut turns = lock(&self.turns);
        for record in &kept {
            turns.entry(record.destination.clone()).or_default().claim(&record.workspace);
        }
        kept
    }

    /// Whether a task has a record, or will get it.
    pub(crate) fn has_claim(&self, record: &ClaimedDelivery) -> bool {
        lock(&self.claimed_keys).contains(&key_of(record))
    }

    /// Waits until no other task changes this node's claims.
    pub(crate) async fn lock_claims(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.claiming.lock().await
    }

    /// Records that delivering a message panicked; false when it panicked the last time too.
    pub(crate) fn record_panic(&self, group: &Group) -> bool {
        let mut panicked = lock(&self.panicked);
        if panicked.len() >= MAX_PANICKED {
            panicked.clear();
        }
        panicked.insert(group.id())
    }

    /// Records that a delivery did not panic.
    pub(crate) fn clear_panic(&self, group: &Group) {
        let mut panicked = lock(&self.panicked);
        if !panicked.is_empty() {
            panicked.remove(&group.id());
        }
    }

    pub(crate) fn release(&self, records: &[ClaimedDelivery]) {
        let mut claimed_keys = lock(&self.claimed_keys);
        let mut turns = lock(&self.turns);
        for record in records {
            if claimed_keys.remove(&key_of(record))
                && let Some(turns) = turns.get_mut(&record.destination)
            {
                turns.release(&record.workspace);
            }
        }
    }

    /// Limits a destination to one probing task.
    pub(crate) fn probe(&self, destination: &str) {
        lock(&self.reached).since.remove(destination);
        lock(&self.probed).entry(destination.to_owned()).or_insert_with(Instant::now);
    }

    /// Whether a destination could not be reached lately and no probe has succeeded since.
    pub(crate) fn is_probed(&self, destination: &str) -> bool {
        lock(&self.probed).contains_key(destination)
    }

    /// Ends the probe: other tasks may join.
    pub(crate) fn end_probe(&self, destination: &str) {
        lock(&self.probed).remove(destination);
    }

    /// Makes each task stop after its current message.
    pub(crate) fn begin_shutdown(&self) {
        self.shutting_down.store(true, Ordering::Relaxed);
    }

    /// Waits until a task ends.
    pub(crate) async fn task_finished(&self) {
        self.task_finished.notified().await;
    }

    /// Whether other nodes may be asked to look at the queue, which each is at most once a second: nodes that all have
    /// more than they can deliver would ask each other without end.
    pub(crate) fn may_ask_for_help(&self) -> bool {
        let mut asked = lock(&self.asked_for_help);
        let may = asked.is_none_or(|at| at.elapsed() >= HELP_INTERVAL);
        if may {
            *asked = Some(Instant::now());
        }
        may
    }

    /// Makes the worker poll the queue when the next task ends.
    pub(crate) fn request_poll(&self) {
        self.poll_requested.store(true, Ordering::Release);
    }

    /// Whether the queue should be polled after a task has ended. Whatever is queued meanwhile wakes the worker itself.
    pub(crate) fn take_requested_poll(&self) -> bool {
        self.poll_requested.swap(false, Ordering::AcqRel)
            || self.missing_tasks().iter().any(|(_, tasks)| *tasks > 0)
    }

    /// Watches a message that is about to be queued.
    pub(crate) fn watch(&self, workspace: &WorkspaceId, message: &str) -> watch::Receiver<Recipients> {
        let (sender, receiver) = watch::channel(None);
        let mut watched = lock(&self.watched);
        // Each belongs to a call; what is left of calls that are over is removed here.
        watched.retain(|_, sender| !sender.is_closed());
        watched.insert((workspace.clone(), message.to_owned()), sender);
        receiver
    }

    /// Publishes the recipients of a message after an attempt, for a call of this node that waits for them.
    pub(crate) fn publish(&self, workspace: &WorkspaceId, message: &str, recipients: Vec<DeliveryRecord>) {
        let watched = lock(&self.watched);
        if let Some(sender) = watched.get(&(workspace.clone(), message.to_owned())) {
            sender.send_replace(Some(recipients));
        }
    }

    /// Whether this node has claimed one of the first recipients of a message.
    pub(crate) fn has_message(&self, workspace: &WorkspaceId, message: &str, recipients: usize) -> bool {
        let claimed_keys = lock(&self.claimed_keys);
        let positions = (0_i64..).take(recipients);
        positions
            .into_iter()
            .any(|position| claimed_keys.contains(&(workspace.clone(), message.to_owned(), position)))
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
                self.end_probe(destination);
            }
        }
        drop(busy);
        self.task_finished.notify_one();
    }
}

/// Whether a destination has slots of its own: the relay, and mailboxes of this server.
pub(crate) fn has_own_slots(destination: &str) -> bool {
    destination.is_empty() || destination == RELAY
}

/// One message of each workspace, then the second of each, and so on.
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

fn key_of(record: &ClaimedDelivery) -> Key {
    (record.workspace.clone(), record.outbound.clone(), record.position)
}

/// The recipients of one message at one destination.
pub(crate) struct Group {
    pub(crate) workspace: WorkspaceId,
    pub(crate) outbound: String,
    pub(crate) destination: String,
    pub(crate) records: Vec<ClaimedDelivery>,
}

impl Group {
    /// The key of the message.
    fn id(&self) -> (WorkspaceId, String) {
        (self.workspace.clone(), self.outbound.clone())
    }
}
