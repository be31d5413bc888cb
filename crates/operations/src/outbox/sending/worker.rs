//! Work on the queue: what is due is taken on, handed to its next host, and what came of it is noted.
//!
//! A record is taken on by one node, which has to say every now and then that it is still at work. Destinations have a
//! bounded number of tasks each, and those that cannot be reached rest for a while, so that one slow or broken destination
//! delays no other.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use model::{Timestamp, WorkspaceId, sending::OutboundMode};
use store::{
    contents::{self, ContentRecord},
    outbound::{self, OutboundRecord},
    queue::{self, Claimed, Head},
};
use tokio::{task::JoinHandle, time::Instant};
use tracing::Instrument;

pub use super::claims::{Dispatcher, RENEW_SECONDS, finish, release_lost, renew};
use super::{
    attempts::{self, Tried},
    claims::{ClaimedRecords, LEASE_SECONDS},
};
use crate::{
    core::{
        app::App,
        error::{Error, Result},
        ports::{Handed, Handover, HandoverOutcome},
        state::outbox::{Group, RELAY, has_own_room},
        supervisor::catch_item_panic,
        turns::Turns,
    },
    inbox::emails::present,
};

/// The worker that works on the queue.
pub(crate) const WORKER: &str = "queue";

/// Records that are taken on for each task that is free.
const EACH: usize = 8;
/// Records that wait for tasks at one destination before nothing more is taken on while all tasks are busy.
const MAX_WAITING: usize = 256;
/// Destinations that are read from the store together, and how many are looked at in all.
const HEADS: i64 = 1000;
const MAX_HEADS: usize = 20_000;
/// How much of the lease must be left for a handover to begin.
const LEFT_SECONDS: i64 = 20;
/// How long one handover may take at the very most; the conversation has bounds of its own.
const HANDOVER: Duration = Duration::from_mins(31);
/// Tasks at once for other servers, in all.
const MAX_TASKS: usize = 128;

/// Takes on what is due and begins to work on it. The tasks go on by themselves.
#[crate::boxed]
pub async fn start_due(app: &App) -> Result<Vec<JoinHandle<()>>> {
    let mut tasks = Vec::new();
    if app.outbox().is_ending() {
        return Ok(tasks);
    }
    // A task that saw nothing left may have ended just when something came.
    start_tasks(app, &mut tasks);
    loop {
        let claimed = claim(app).await?;
        if claimed.is_empty() {
            break;
        }
        for (destination, groups) in by_destination(claimed) {
            app.outbox().wait(destination, groups);
        }
        start_tasks(app, &mut tasks);
    }
    attempts::report_due(app).await?;
    Ok(tasks)
}

fn start_tasks(app: &App, tasks: &mut Vec<JoinHandle<()>>) {
    for (destination, wanted) in app.outbox().wanted_tasks() {
        tasks.extend((0..wanted).map(|_| tokio::spawn(work_on(ClaimedRecords::new(app, &destination)))));
    }
}

/// When the queue has to be looked at next, beside the moments when tasks end.
#[crate::boxed]
pub async fn next_due(app: &App) -> Result<Option<Timestamp>> {
    let now = app.now();
    let due = |head: &Head| head.resting_until.map_or(head.due_at, |rest| rest.max(head.due_at));
    let wait = |head: Head| match due(&head) {
        at if at > now => Some(at),
        // Another node had it in its hands a moment ago.
        _ if app.outbox().free(&head.destination) > 0 => Some(now.plus_seconds(1)),
        // A task has to end first.
        _ => None,
    };
    Ok(heads(app).await?.into_iter().filter_map(wait).min())
}

/// How long the oldest record has been due. Where a destination rests, its records are due when it has rested.
pub(crate) async fn overdue_seconds(app: &App) -> Result<u64> {
    let now = app.now();
    let due = |head: Head| head.resting_until.map_or(head.due_at, |rest| rest.max(head.due_at));
    let oldest = heads(app).await?.into_iter().map(due).min();
    Ok(oldest.map_or(0, |at| at.seconds_until(now)))
}

/// The destinations in the queue.
async fn heads(app: &App) -> Result<Vec<Head>> {
    let mut all: Vec<Head> = Vec::new();
    loop {
        let after = all.last().map(|head| head.destination.clone());
        let page =
            app.db().system_read(async move |tx| queue::heads(tx, after.as_deref(), HEADS).await).await?;
        let more = i64::try_from(page.len()).is_ok_and(|found| found >= HEADS);
        all.extend(page);
        if !more || all.len() >= MAX_HEADS {
            return Ok(all);
        }
    }
}

/// Waits until a task of this node ends.
#[crate::boxed]
pub async fn task_ended(app: &App) {
    app.outbox().task_ended().await;
}

/// Works on everything that is due until nothing is left.
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

/// What may be taken on at one destination.
struct Room {
    destination: String,
    most: usize,
    /// Only of workspaces of which nothing is in work there: all tasks are busy, and the next one that is done takes one
    /// mail of each in turn.
    newcomers: bool,
}

/// Where there is something to take on, and room for it.
async fn rooms(app: &App) -> Result<(Vec<Room>, HashSet<String>)> {
    let (now, outbox) = (app.now(), app.outbox());
    let mut heads = heads(app).await?;
    heads.retain(|head| head.due_at <= now && head.resting_until.is_none_or(|rest| rest <= now));
    heads.sort_by_key(|head| head.due_at);
    let mut room = MAX_TASKS.saturating_sub(outbox.tasks());
    let mut rooms: Vec<Room> = Vec::new();
    let mut rested: HashSet<String> = HashSet::new();
    for head in heads {
        let mut lanes = outbox.free(&head.destination);
        // One that could not be reached lately is asked by one task first.
        if head.resting_until.is_some() {
            rested.insert(head.destination.clone());
            lanes = lanes.min(1);
        }
        if !has_own_room(&head.destination) {
            lanes = lanes.min(room);
            room -= lanes;
        }
        let waiting = outbox.waiting(&head.destination);
        let newcomers = outbox.free(&head.destination) == 0 && !outbox.is_probed(&head.destination);
        let most = if newcomers { MAX_WAITING } else { lanes * EACH }.saturating_sub(waiting);
        rooms.push(Room { destination: head.destination, most, newcomers });
    }
    rooms.retain(|room| room.most > 0);
    Ok((rooms, rested))
}

/// The workspaces whose turn it is at each destination, and how much each may take.
async fn shares(app: &App, rooms: Vec<Room>) -> Result<Vec<(String, WorkspaceId, usize)>> {
    let with_turns = |room: Room| (app.outbox().turns(&room.destination), room);
    let rooms: Vec<(Turns, Room)> = rooms.into_iter().map(with_turns).collect();
    let now = app.now();
    let read = app.db().system_read(async move |tx| {
        let mut shares = Vec::new();
        for (mut turns, room) in rooms {
            let look_up = turns.to_look_up(room.most);
            let mut waiting =
                queue::due_workspaces(tx, &room.destination, now, turns.after(), look_up).await?;
            if room.newcomers {
                waiting.retain(|workspace| turns.holds(workspace) == 0);
            }
            let part = if room.newcomers { EACH } else { usize::MAX };
            let of_room = turns.share(waiting, room.most, part).into_iter();
            shares.extend(of_room.map(|(workspace, most)| (room.destination.clone(), workspace, most)));
        }
        Ok::<_, store::Error>(shares)
    });
    Ok(read.await?)
}

/// Takes on records at every destination that has some and where there is room.
async fn claim(app: &App) -> Result<Vec<Claimed>> {
    let (now, outbox) = (app.now(), app.outbox());
    let (rooms, rested) = rooms(app).await?;
    // A look costs no commit, and most looks find nothing.
    if rooms.is_empty() {
        return Ok(Vec::new());
    }
    let shares = shares(app, rooms).await?;
    if shares.is_empty() {
        return Ok(Vec::new());
    }
    for (destination, workspace, _) in &shares {
        outbox.served(destination, workspace);
    }
    // Until it is known here whose they are, nobody may take them for strays.
    let _claiming = outbox.claiming().await;
    let (node, until) = (outbox.node().to_owned(), now.plus_seconds(LEASE_SECONDS));
    let claimed = app.db().system_write(async move |tx| {
        let mut claimed = Vec::new();
        for (destination, workspace, most) in shares {
            let of = (destination.as_str(), &workspace);
            claimed.extend(queue::claim(tx, &node, (now, until), of, most).await?);
        }
        Ok::<_, store::Error>(claimed)
    });
    let claimed = outbox.hold(claimed.await?);
    for record in claimed.iter().filter(|record| rested.contains(&record.destination)) {
        outbox.probe(&record.destination);
    }
    Ok(claimed)
}

fn by_destination(claimed: Vec<Claimed>) -> BTreeMap<String, Vec<Group>> {
    let mut groups: BTreeMap<(String, WorkspaceId, String), Vec<Claimed>> = BTreeMap::new();
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

async fn work_on(mut place: ClaimedRecords) {
    while let Some(mut group) = place.next() {
        // Whatever is logged on the way stands under the mail's id in the queue.
        let span = tracing::error_span!("queue", queue_id = group.outbound, workspace = %group.workspace);
        let attempted = attempt_isolated(&place.app, &mut group).instrument(span.clone());
        match attempted.await {
            Ok(Attempted::Reached) => {
                place.settled(&group);
                place.app.outbox().reached(&place.destination);
            }
            Ok(Attempted::Unreachable) => {
                place.settled(&group);
                // The others would only wait for the same: they come again when the destination has rested.
                return place.give_up();
            }
            Ok(Attempted::Panicked) => place.release_soon(&group).await,
            Err(error) => {
                let _inside = span.enter();
                tracing::warn!(destination = group.destination, %error, "mail in the queue will be tried again");
            }
        }
    }
}

/// What came of an attempt.
enum Attempted {
    /// It is noted, and the destination could be reached.
    Reached,
    /// It is noted, and the destination could not be reached.
    Unreachable,
    /// Code of this server panicked, for the first time over this mail. Nothing is noted.
    Panicked,
}

/// Tries one mail. Where that makes code panic, it is tried once more in a moment, and counts as deferred from the second
/// time on, with the usual pauses: it may be what the code cannot bear.
async fn attempt_isolated(app: &App, group: &mut Group) -> Result<Attempted> {
    if let Ok(attempted) = catch_item_panic(WORKER, attempt(app, group)).await {
        app.outbox().survived(group);
        return attempted.map(|reached| if reached { Attempted::Reached } else { Attempted::Unreachable });
    }
    if app.outbox().panicked_first(group) {
        return Ok(Attempted::Panicked);
    }
    let Some((mail, _)) = load(app, group).await? else { return Ok(Attempted::Reached) };
    let outcome = HandoverOutcome::Later("451 4.3.0 This server failed to handle the message".to_owned());
    attempts::settle(app, group, &mail, Tried::here(vec![outcome; group.records.len()])).await?;
    Ok(Attempted::Reached)
}

/// Tries one mail at one destination, for those of its recipients that are still this node's. False when the
/// destination could not be reached.
async fn attempt(app: &App, group: &mut Group) -> Result<bool> {
    let Some((mail, content)) = load(app, group).await? else { return Ok(true) };
    // The way out was another one when it was put into the queue.
    if group.destination == RELAY && app.settings().outbound.mode == OutboundMode::Direct {
        for record in &group.records {
            attempts::redirect(app, record).await?;
        }
        return Ok(true);
    }
    let message = match message(app, group, &mail, &content).await {
        Ok(message) => message,
        Err(error) => {
            tracing::warn!(%error, "a mail in the queue cannot be read");
            let outcome = HandoverOutcome::Later("451 4.3.0 The mail cannot be read here".to_owned());
            attempts::settle(app, group, &mail, Tried::here(vec![outcome; group.records.len()])).await?;
            return Ok(true);
        }
    };
    if group.destination.is_empty() {
        attempts::deliver_here(app, group, &mail, message).await?;
        return Ok(true);
    }
    let begun = Instant::now();
    let handed = hand_over(app, group, &mail, message).await;
    let tried = Tried { handed, took: begun.elapsed() };
    let reached = !tried.is_unreachable();
    attempts::settle(app, group, &mail, tried).await?;
    Ok(reached)
}

/// The mail; nothing when it is gone, or when another node has it. Recipients that others have are left out.
async fn load(app: &App, group: &mut Group) -> Result<Option<(OutboundRecord, ContentRecord)>> {
    let (id, node) = (group.outbound.clone(), app.outbox().node().to_owned());
    let until = app.now().plus_seconds(LEFT_SECONDS);
    let found = app
        .db()
        .read(&group.workspace, async move |tx| {
            let held = queue::held(tx, &id, &node, until).await?;
            let Some(mail) = outbound::find(tx, &id).await? else { return Ok(None) };
            let content = contents::find(tx, &mail.content_id).await?;
            Ok::<_, store::Error>(content.map(|content| (held, mail, content)))
        })
        .await?;
    let Some((held, mail, content)) = found else { return Ok(None) };
    group.records.retain(|record| held.contains(&record.position));
    Ok((!group.records.is_empty()).then_some((mail, content)))
}

/// The bytes of a mail as they go over the wire.
async fn message(app: &App, group: &Group, mail: &OutboundRecord, content: &ContentRecord) -> Result<Bytes> {
    let raw = present::open_raw(app, &group.workspace, content).await?;
    let mut message = BytesMut::with_capacity(mail.prefix.len() + raw.len());
    message.extend_from_slice(mail.prefix.as_bytes());
    message.extend_from_slice(&raw);
    Ok(message.freeze())
}

async fn hand_over(app: &App, group: &Group, mail: &OutboundRecord, message: Bytes) -> Handed {
    let all = |outcome: HandoverOutcome| Handed { outcomes: vec![outcome; group.records.len()], peer: None };
    let Some(hop) = app.next_hop() else {
        return all(HandoverOutcome::Later("This server has no way out at the moment".to_owned()));
    };
    let message = match super::signing::sign(app, &group.workspace, mail, message).await {
        Ok(message) => message,
        Err(error) => {
            tracing::warn!(%error, "a mail could not be signed");
            return all(HandoverOutcome::Later("The mail could not be signed".to_owned()));
        }
    };
    let handover = Handover {
        domain: group.destination.clone(),
        sender: mail.sender.clone(),
        recipients: group.records.iter().map(|record| record.recipient.clone()).collect(),
        message,
    };
    let limited = tokio::time::timeout(HANDOVER, hop.hand_over(handover));
    let mut handed = match limited.await {
        Ok(handed) => handed,
        Err(_) => all(HandoverOutcome::Later("The other server took too long".to_owned())),
    };
    let missing = HandoverOutcome::Later("No answer for this recipient".to_owned());
    handed.outcomes.resize(group.records.len(), missing);
    handed
}
