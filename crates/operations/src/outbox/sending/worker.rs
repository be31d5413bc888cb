//! The queue worker: claims what is due, hands it to its next hop, and records the attempt.
//!
//! A record is claimed by one node, which renews its claim regularly. Each destination has a bounded number of tasks,
//! and unreachable ones are paused, so that one slow or broken destination delays no other.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use bytes::Bytes;
use model::{Timestamp, WorkspaceId, sending::OutboundMode};
use store::{
    Db, Topic,
    backlog::OldestWork,
    outbound::OutboundRecord,
    queue::{self, ClaimedDelivery, DestinationHead, QueueHeads},
};
use tokio::{task::JoinHandle, time::Instant};
use tracing::Instrument;

pub use super::claims::{Dispatcher, RENEW_SECONDS, finish, release_lost, renew};
use super::{
    attempts::{self, AttemptResult},
    claims::{ClaimedRecords, LEASE_SECONDS},
    loaded_message::{LoadedMessage, load},
};
use crate::core::{
    app::App,
    error::{Error, Result},
    ports::{Handover, HandoverOutcome, HandoverResult},
    state::outbox::{Group, MAX_TASKS, RECORDS_PER_TASK, RELAY, has_own_slots},
    supervisor::catch_item_panic,
    turns::Turns,
};

/// The name of the queue worker.
pub(crate) const WORKER: &str = "queue";

/// Records queued for one destination beyond which nothing more is claimed while all tasks are busy.
const MAX_QUEUED_RECORDS: usize = 256;
/// Destinations per read from the store, and the maximum in total.
const HEADS_PER_PAGE: i64 = 1000;
const MAX_HEADS: usize = 20_000;
/// The limit for one handover; the SMTP conversation has limits of its own.
const HANDOVER_TIMEOUT: Duration = Duration::from_mins(31);

/// A round of the worker.
#[derive(Default)]
pub struct Round {
    /// The tasks that it started. They run on their own.
    pub tasks: Vec<JoinHandle<()>>,
    /// When the queue is due next, not counting the moments when tasks end.
    pub next_due_at: Option<Timestamp>,
}

/// Claims what is due and starts tasks for it.
#[crate::boxed]
pub async fn start_due(app: &App) -> Result<Vec<JoinHandle<()>>> {
    Ok(run_round(app).await?.tasks)
}

/// The same, and returns when the queue is due next. It reads the queue once, unless more is due than it has claimed.
#[crate::boxed]
pub async fn run_round(app: &App) -> Result<Round> {
    let mut round = Round::default();
    if app.outbox().is_shutting_down() {
        return Ok(round);
    }
    // A task that found nothing left may have ended just when something was queued.
    start_tasks(app, &mut round.tasks);
    let (heads, exhausted) = loop {
        let heads = all_heads(app.db(), app.now()).await?;
        let ClaimedBatch { records, exhausted } = claim(app, &heads.destinations).await?;
        let left_behind = left_behind(app, &heads.destinations, &exhausted);
        let is_done = records.is_empty() || left_behind.is_empty();
        round.tasks.extend(deliver(app, records));
        if is_done {
            if !left_behind.is_empty() {
                app.outbox().request_poll();
                if app.outbox().may_ask_for_help() {
                    app.db().wake_other_nodes(Topic::Queue);
                }
            }
            app.outbox().record_left_behind(left_behind);
            break (heads, exhausted);
        }
    };
    if heads.has_reports {
        attempts::report_due(app).await?;
    }
    round.next_due_at = next_due(app, &heads.destinations, &exhausted);
    Ok(round)
}

/// The destinations where something that is due was not claimed.
fn left_behind(app: &App, heads: &[DestinationHead], exhausted: &HashSet<String>) -> HashSet<String> {
    let now = app.now();
    let is_left = |head: &&DestinationHead| due_at(head) <= now && !exhausted.contains(&head.destination);
    heads.iter().filter(is_left).map(|head| head.destination.clone()).collect()
}

/// When a destination is due. One that is paused is not due before its pause ends.
fn due_at(head: &DestinationHead) -> Timestamp {
    head.backoff_until.map_or(head.due_at, |rest| rest.max(head.due_at))
}

/// Starts tasks for records that this node has claimed.
pub(super) fn deliver(app: &App, records: Vec<ClaimedDelivery>) -> Vec<JoinHandle<()>> {
    for (destination, groups) in by_destination(records) {
        app.outbox().enqueue(destination, groups);
    }
    let mut tasks = Vec::new();
    start_tasks(app, &mut tasks);
    tasks
}

fn start_tasks(app: &App, tasks: &mut Vec<JoinHandle<()>>) {
    for (destination, wanted) in app.outbox().missing_tasks() {
        tasks.extend((0..wanted).map(|_| tokio::spawn(deliver_all(ClaimedRecords::new(app, &destination)))));
    }
}

/// When the queue is due next, after everything due was claimed at these destinations.
fn next_due(app: &App, heads: &[DestinationHead], exhausted: &HashSet<String>) -> Option<Timestamp> {
    let now = app.now();
    let wait = |head: &DestinationHead| match due_at(head) {
        at if at > now => Some(at),
        _ if exhausted.contains(&head.destination) => head.next_due_at,
        // Another node had it a moment ago.
        _ if app.outbox().free_slots(&head.destination) > 0 => Some(now.plus_seconds(1)),
        // A task has to end first.
        _ => None,
    };
    heads.iter().filter_map(wait).min()
}

/// How long the oldest record has been due.
pub(crate) async fn overdue_seconds(app: &App) -> Result<u64> {
    let now = app.now();
    let oldest = all_heads(app.db(), now).await?.destinations.iter().map(due_at).min();
    Ok(oldest.map_or(0, |at| at.seconds_until(now)))
}

/// The oldest due record at any destination, and at those where no node has claimed anything.
pub(crate) async fn oldest_due(db: &Db, now: Timestamp) -> Result<OldestWork> {
    let heads = all_heads(db, now).await?.destinations;
    let claimed = db.system_read(async move |tx| queue::claimed_destinations(tx, now).await).await?;
    let is_due = |at: &Timestamp| *at <= now;
    let unattended = heads.iter().filter(|head| !claimed.contains(&head.destination));
    Ok(OldestWork {
        queue: "outbound",
        due_since: heads.iter().map(due_at).min().filter(is_due),
        unattended_since: unattended.map(due_at).min().filter(is_due),
    })
}

/// The destinations in the queue.
async fn all_heads(db: &Db, now: Timestamp) -> Result<QueueHeads> {
    let mut all = QueueHeads { destinations: Vec::new(), has_reports: false };
    loop {
        let after = all.destinations.last().map(|head| head.destination.clone());
        let page = db
            .system_read(async move |tx| queue::heads(tx, after.as_deref(), now, HEADS_PER_PAGE).await)
            .await?;
        let more = i64::try_from(page.destinations.len()).is_ok_and(|found| found >= HEADS_PER_PAGE);
        all.destinations.extend(page.destinations);
        all.has_reports |= page.has_reports;
        if !more || all.destinations.len() >= MAX_HEADS {
            return Ok(all);
        }
    }
}

/// Waits until a task of this node ends for which something is waiting.
#[crate::boxed]
pub async fn task_finished(app: &App) {
    loop {
        app.outbox().task_finished().await;
        if app.outbox().take_requested_poll() {
            return;
        }
    }
}

/// Delivers everything that is due until nothing is left.
#[crate::boxed]
pub async fn run_due(app: &App) -> Result<()> {
    loop {
        let tasks = start_due(app).await?;
        if tasks.is_empty() {
            return Ok(());
        }
        for task in tasks {
            task.await.map_err(Error::internal)?;
        }
    }
}

/// How many records may be claimed at one destination.
struct ClaimCapacity {
    destination: String,
    limit: usize,
    /// Only from workspaces with nothing in progress there: all tasks are busy, and the next free one takes one
    /// message of each in turn.
    newcomers: bool,
    /// The workspace of all its records, if they are of one.
    only_workspace: Option<WorkspaceId>,
}

/// The destinations with due records and free capacity, and which of them were paused.
fn capacities(app: &App, heads: &[DestinationHead]) -> (Vec<ClaimCapacity>, HashSet<String>) {
    let (now, outbox) = (app.now(), app.outbox());
    let is_own =
        |head: &&DestinationHead| due_at(head) <= now && !outbox.is_left_to_others(&head.destination);
    let mut heads: Vec<&DestinationHead> = heads.iter().filter(is_own).collect();
    heads.sort_by_key(|head| head.due_at);
    let mut free_tasks = MAX_TASKS.saturating_sub(outbox.tasks());
    let mut capacities: Vec<ClaimCapacity> = Vec::new();
    let mut rested: HashSet<String> = HashSet::new();
    for head in heads {
        let mut tasks = outbox.free_slots(&head.destination);
        // A destination that was unreachable is probed by one task first.
        if head.backoff_until.is_some() {
            rested.insert(head.destination.clone());
            tasks = tasks.min(1);
        }
        if !has_own_slots(&head.destination) {
            tasks = tasks.min(free_tasks);
            free_tasks -= tasks;
        }
        let waiting = outbox.queued(&head.destination);
        let newcomers = outbox.free_slots(&head.destination) == 0 && !outbox.is_probed(&head.destination);
        let limit =
            if newcomers { MAX_QUEUED_RECORDS } else { tasks * RECORDS_PER_TASK }.saturating_sub(waiting);
        let (destination, only_workspace) = (head.destination.clone(), head.only_workspace.clone());
        capacities.push(ClaimCapacity { destination, limit, newcomers, only_workspace });
    }
    capacities.retain(|capacity| capacity.limit > 0);
    (capacities, rested)
}

/// How many records a workspace may claim at a destination.
struct ClaimShare {
    destination: String,
    workspace: WorkspaceId,
    limit: usize,
}

/// The workspaces whose turn it is at each destination, and at which destinations those are all that have something due.
async fn shares(app: &App, capacities: Vec<ClaimCapacity>) -> Result<(Vec<ClaimShare>, HashSet<String>)> {
    let with_turns = |capacity: ClaimCapacity| (app.outbox().turns(&capacity.destination), capacity);
    let capacities: Vec<(Turns, ClaimCapacity)> = capacities.into_iter().map(with_turns).collect();
    let now = app.now();
    // Nothing has to be read for what only one workspace has.
    let (known, unknown): (Vec<_>, Vec<_>) =
        capacities.into_iter().partition(|(_, capacity)| capacity.only_workspace.is_some());
    let mut waiting: Vec<(Turns, ClaimCapacity, Vec<WorkspaceId>, bool)> = Vec::new();
    for (turns, capacity) in known {
        let only = capacity.only_workspace.iter().cloned().collect();
        waiting.push((turns, capacity, only, true));
    }
    if !unknown.is_empty() {
        let read = app.db().system_read(async move |tx| {
            let mut found = Vec::new();
            for (turns, capacity) in unknown {
                let candidates = turns.candidate_limit(capacity.limit);
                let due = queue::due_workspaces(tx, &capacity.destination, now, turns.after(), candidates);
                let due = due.await?;
                let is_complete = due.len() < candidates;
                found.push((turns, capacity, due, is_complete));
            }
            Ok::<_, store::Error>(found)
        });
        waiting.extend(read.await?);
    }
    let (mut shares, mut complete) = (Vec::new(), HashSet::new());
    for (mut turns, capacity, mut workspaces, mut is_complete) in waiting {
        if capacity.newcomers {
            let found = workspaces.len();
            workspaces.retain(|workspace| turns.count(workspace) == 0);
            is_complete &= workspaces.len() == found;
        }
        let found = workspaces.len();
        let max_each = if capacity.newcomers { RECORDS_PER_TASK } else { usize::MAX };
        let shared = turns.share(workspaces, capacity.limit, max_each);
        if is_complete && shared.len() == found {
            complete.insert(capacity.destination.clone());
        }
        shares.extend(shared.into_iter().map(|(workspace, limit)| ClaimShare {
            destination: capacity.destination.clone(),
            workspace,
            limit,
        }));
    }
    Ok((shares, complete))
}

/// Records that were claimed together.
#[derive(Default)]
struct ClaimedBatch {
    records: Vec<ClaimedDelivery>,
    /// The destinations where everything that was due is among them.
    exhausted: HashSet<String>,
}

/// Claims records at every destination that has some and has capacity.
async fn claim(app: &App, heads: &[DestinationHead]) -> Result<ClaimedBatch> {
    let (now, outbox) = (app.now(), app.outbox());
    let (capacities, rested) = capacities(app, heads);
    // A read needs no commit, and most reads find nothing.
    if capacities.is_empty() {
        return Ok(ClaimedBatch::default());
    }
    let (shares, complete) = shares(app, capacities).await?;
    if shares.is_empty() {
        return Ok(ClaimedBatch::default());
    }
    for share in &shares {
        outbox.record_turn(&share.destination, &share.workspace);
    }
    // Until the claims are registered here, they must not be released as strays.
    let _claiming = outbox.lock_claims().await;
    let (node, until) = (outbox.node().to_owned(), now.plus_seconds(LEASE_SECONDS));
    let claimed = app.db().system_write(async move |tx| {
        let (mut records, mut exhausted) = (Vec::new(), complete);
        for share in shares {
            let of = (share.destination.as_str(), &share.workspace);
            let found = queue::claim(tx, &node, (now, until), of, share.limit).await?;
            // Where nothing was found, another node is just claiming it.
            if found.is_empty() || found.len() >= share.limit {
                exhausted.remove(&share.destination);
            }
            records.extend(found);
        }
        Ok::<_, store::Error>(ClaimedBatch { records, exhausted })
    });
    let ClaimedBatch { records, exhausted } = claimed.await?;
    let records = outbox.claim(records);
    for record in records.iter().filter(|record| rested.contains(&record.destination)) {
        outbox.probe(&record.destination);
    }
    Ok(ClaimedBatch { records, exhausted })
}

fn by_destination(claimed: Vec<ClaimedDelivery>) -> BTreeMap<String, Vec<Group>> {
    let mut groups: BTreeMap<(String, WorkspaceId, String), Vec<ClaimedDelivery>> = BTreeMap::new();
    for record in claimed {
        let key = (record.destination.clone(), record.workspace.clone(), record.outbound.clone());
        groups.entry(key).or_default().push(record);
    }
    let mut by: BTreeMap<String, Vec<Group>> = BTreeMap::new();
    for ((destination, workspace, outbound), mut records) in groups {
        records.sort_by_key(|record| record.position);
        let group = Group { workspace, outbound, destination: destination.clone(), records };
        by.entry(destination).or_default().push(group);
    }
    by
}

async fn deliver_all(mut records: ClaimedRecords) {
    while let Some(mut group) = records.next() {
        // Everything logged here carries the queue id of the message.
        let span = tracing::error_span!("queue", queue_id = group.outbound, workspace = %group.workspace);
        let outcome = attempt_isolated(&records.app, &mut group).instrument(span.clone());
        match outcome.await {
            Ok(AttemptOutcome::Reached) => {
                records.finish_group(&group);
                records.app.outbox().end_probe(&records.destination);
                records.app.outbox().record_reached(&records.destination);
            }
            Ok(AttemptOutcome::Unreachable) => {
                records.finish_group(&group);
                // The others would fail alike: they are retried after the destination's pause.
                return records.give_up();
            }
            Ok(AttemptOutcome::ItemPanic) => records.release_after_panic(&group).await,
            Err(error) => {
                let _inside = span.enter();
                tracing::warn!(destination = group.destination, %error, "delivery attempt failed; retrying");
            }
        }
    }
}

/// The outcome of an attempt.
enum AttemptOutcome {
    /// Recorded; the destination was reached.
    Reached,
    /// Recorded; the destination was unreachable.
    Unreachable,
    /// Code of this server panicked, for the first time over this message. Not recorded.
    ItemPanic,
}

/// Tries one message. If that panics, it is retried once soon, and from the second panic on counts as deferred, with
/// the usual delays: the message itself may be the cause.
async fn attempt_isolated(app: &App, group: &mut Group) -> Result<AttemptOutcome> {
    if let Ok(outcome) = catch_item_panic(WORKER, attempt(app, group)).await {
        app.outbox().clear_panic(group);
        return outcome
            .map(|reached| if reached { AttemptOutcome::Reached } else { AttemptOutcome::Unreachable });
    }
    if app.outbox().record_panic(group) {
        return Ok(AttemptOutcome::ItemPanic);
    }
    let Some(LoadedMessage { mail, .. }) = load(app, group).await? else {
        return Ok(AttemptOutcome::Reached);
    };
    let outcome = HandoverOutcome::Deferred("451 4.3.0 This server failed to handle the message".to_owned());
    attempts::record_attempt(app, group, &mail, AttemptResult::here(vec![outcome; group.records.len()]))
        .await?;
    Ok(AttemptOutcome::Reached)
}

/// Tries one message at one destination, for those of its recipients that this node still has claimed. False when the
/// destination was unreachable.
async fn attempt(app: &App, group: &mut Group) -> Result<bool> {
    let Some(loaded) = load(app, group).await? else { return Ok(true) };
    let mail = &loaded.mail;
    // The transport was changed after it was queued.
    if group.destination == RELAY && app.settings().outbound.mode == OutboundMode::Direct {
        for record in &group.records {
            attempts::redirect(app, record).await?;
        }
        return Ok(true);
    }
    let message = match loaded.open(app, group).await {
        Ok(message) => message,
        Err(error) => {
            tracing::warn!(%error, "queued message unreadable; deferring it");
            let outcome = HandoverOutcome::Deferred("451 4.3.0 The mail cannot be read here".to_owned());
            attempts::record_attempt(
                app,
                group,
                mail,
                AttemptResult::here(vec![outcome; group.records.len()]),
            )
            .await?;
            return Ok(true);
        }
    };
    if group.destination.is_empty() {
        attempts::deliver_locally(app, group, mail, message).await?;
        return Ok(true);
    }
    let begun = Instant::now();
    let handover = hand_over(app, group, mail, message).await;
    let result = AttemptResult { handover, took: begun.elapsed() };
    let reached = !result.is_unreachable();
    attempts::record_attempt(app, group, mail, result).await?;
    Ok(reached)
}

async fn hand_over(app: &App, group: &Group, mail: &OutboundRecord, message: Bytes) -> HandoverResult {
    let all = |outcome: HandoverOutcome| HandoverResult {
        outcomes: vec![outcome; group.records.len()],
        peer: None,
    };
    let Some(hop) = app.next_hop() else {
        return all(HandoverOutcome::Deferred("This server has no way out at the moment".to_owned()));
    };
    let message = match super::signing::sign(app, &group.workspace, mail, message).await {
        Ok(message) => message,
        Err(error) => {
            tracing::warn!(%error, "message not signed; deferring it");
            return all(HandoverOutcome::Deferred("The mail could not be signed".to_owned()));
        }
    };
    let handover = Handover {
        domain: group.destination.clone(),
        sender: mail.sender.clone(),
        recipients: group.records.iter().map(|record| record.recipient.clone()).collect(),
        message,
    };
    let limited = tokio::time::timeout(HANDOVER_TIMEOUT, hop.hand_over(handover));
    let mut handover = match limited.await {
        Ok(handover) => handover,
        Err(_) => all(HandoverOutcome::Deferred("The other server took too long".to_owned())),
    };
    let missing = HandoverOutcome::Deferred("No answer for this recipient".to_owned());
    handover.outcomes.resize(group.records.len(), missing);
    handover
}
