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
use tokio::task::JoinHandle;

use super::{
    outbox::{Group, has_own_room},
    settle,
    submit::RELAY,
};
use crate::{
    App, Error, Result,
    emails::present,
    outside::{Handover, HandoverOutcome},
    turns::Turns,
};

/// Records that are taken on for each task that is free.
const EACH: usize = 8;
/// Records that wait for tasks at one destination before nothing more is taken on while all tasks are busy.
const MOST_WAITING: usize = 256;
/// Destinations that are read from the store together, and how many are looked at in all.
const HEADS: i64 = 1000;
const MOST_HEADS: usize = 20_000;
/// How long a node that took a record on is believed to be alive.
const LEASE_SECONDS: i64 = 60;
/// How often a node says that it is still at work.
pub const RENEW_SECONDS: u64 = 15;
/// How much of the lease must be left for a handover to begin.
const LEFT_SECONDS: i64 = 20;
/// When something is tried again that this server itself could not do.
const AGAIN_SECONDS: i64 = 60;
/// How long one handover may take at the very most; the conversation has bounds of its own.
const HANDOVER: Duration = Duration::from_mins(31);
/// Tasks at once for other servers, in all.
const MOST_TASKS: usize = 128;

/// A task's place and the records that it still has. However the task ends, others get them back.
struct Place {
    app: App,
    destination: String,
    left: Vec<Claimed>,
    /// When what is left may be tried again.
    again_at: Timestamp,
}

impl Place {
    fn new(app: &App, destination: &str) -> Self {
        app.outbox().begin(destination);
        let again_at = app.now().plus_seconds(AGAIN_SECONDS);
        Self { app: app.clone(), destination: destination.to_owned(), left: Vec::new(), again_at }
    }

    /// The next mail, unless the process is about to end.
    fn next(&mut self) -> Option<Group> {
        if self.app.outbox().is_ending() {
            return None;
        }
        let group = self.app.outbox().next(&self.destination)?;
        self.left.extend(group.records.iter().cloned());
        Some(group)
    }

    /// Takes records off that are settled.
    fn settled(&mut self, group: &Group) {
        let is_done =
            |record: &Claimed| record.outbound == group.outbound && record.workspace == group.workspace;
        let (done, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.left).into_iter().partition(is_done);
        self.app.outbox().let_go(&done);
        self.left = left;
    }

    /// Gives back what waits for the destination.
    fn give_up(&mut self) {
        self.left.extend(self.app.outbox().take_waiting(Some(&self.destination)));
        self.again_at = self.app.now();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let left = std::mem::take(&mut self.left);
        self.app.outbox().let_go(&left);
        self.app.outbox().end(&self.destination);
        // Without a runtime the process is ending, and others will find out by themselves.
        if !left.is_empty()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(release(self.app.clone(), left, self.again_at));
        }
    }
}

/// Gives records back that were not tried.
async fn release(app: App, records: Vec<Claimed>, at: Timestamp) {
    for record in records {
        let (workspace, node) = (record.workspace.clone(), app.outbox().node().to_owned());
        let released: Result<(), store::Error> =
            app.db().write(&workspace, async move |tx| queue::release(tx, &record, &node, at).await).await;
        if let Err(error) = released {
            tracing::warn!(%error, "mail in the queue waits until others take this node for lost");
        }
    }
}

/// Takes on what is due and begins to work on it. The tasks go on by themselves.
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
    settle::report_due(app).await?;
    Ok(tasks)
}

fn start_tasks(app: &App, tasks: &mut Vec<JoinHandle<()>>) {
    for (destination, wanted) in app.outbox().wanted_tasks() {
        tasks.extend((0..wanted).map(|_| tokio::spawn(work_on(Place::new(app, &destination)))));
    }
}

/// When the queue has to be looked at next, beside the moments when tasks end.
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

/// The destinations in the queue.
async fn heads(app: &App) -> Result<Vec<Head>> {
    let mut all: Vec<Head> = Vec::new();
    loop {
        let after = all.last().map(|head| head.destination.clone());
        let page =
            app.db().system_read(async move |tx| queue::heads(tx, after.as_deref(), HEADS).await).await?;
        let more = i64::try_from(page.len()).is_ok_and(|found| found >= HEADS);
        all.extend(page);
        if !more || all.len() >= MOST_HEADS {
            return Ok(all);
        }
    }
}

/// Says that this node is still at work on what it has taken on.
pub async fn renew(app: &App) -> Result<()> {
    if app.outbox().is_idle() {
        return Ok(());
    }
    let (node, until) = (app.outbox().node().to_owned(), app.now().plus_seconds(LEASE_SECONDS));
    Ok(app.db().system_write(async move |tx| queue::renew(tx, &node, until).await).await?)
}

/// Lets the tasks of this node end after the mail that each is at, and waits until they have: what another server has
/// taken should be noted before the process ends.
pub async fn finish(app: &App) {
    app.outbox().prepare_to_end();
    while !app.outbox().is_idle() {
        // Beside the worker there may be others who wait for the same.
        let _ = tokio::time::timeout(Duration::from_millis(50), app.outbox().task_ended()).await;
    }
    let untried = app.outbox().take_waiting(None);
    app.outbox().let_go(&untried);
    release(app.clone(), untried, app.now()).await;
}

/// Waits until a task of this node ends.
pub async fn task_ended(app: &App) {
    app.outbox().task_ended().await;
}

/// Works on everything that is due until nothing is left.
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

/// Lets go of what a process of the past worked on. Only for a store that this process has alone.
pub async fn release_lost(app: &App) -> Result<()> {
    Ok(app.db().system_write(async |tx| queue::release_all(tx).await).await?)
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
    let mut room = MOST_TASKS.saturating_sub(outbox.tasks());
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
        let most = if newcomers { MOST_WAITING } else { lanes * EACH }.saturating_sub(waiting);
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

async fn work_on(mut place: Place) {
    while let Some(mut group) = place.next() {
        match attempt(&place.app, &mut group).await {
            Ok(reached) => {
                place.settled(&group);
                if reached {
                    place.app.outbox().reached(&place.destination);
                } else {
                    // The others would only wait for the same: they come again when the destination has rested.
                    return place.give_up();
                }
            }
            Err(error) => {
                tracing::warn!(destination = group.destination, %error, "mail in the queue will be tried again");
            }
        }
    }
}

/// Tries one mail at one destination, for those of its recipients that are still this node's. False when the
/// destination could not be reached.
async fn attempt(app: &App, group: &mut Group) -> Result<bool> {
    let Some((mail, content)) = load(app, group).await? else { return Ok(true) };
    // The way out was another one when it was put into the queue.
    if group.destination == RELAY && app.settings().outbound.mode == OutboundMode::Direct {
        for record in &group.records {
            settle::redirect(app, record).await?;
        }
        return Ok(true);
    }
    let message = match message(app, group, &mail, &content).await {
        Ok(message) => message,
        Err(error) => {
            tracing::warn!(%error, "a mail in the queue cannot be read");
            let outcome = HandoverOutcome::Later("451 4.3.0 The mail cannot be read here".to_owned());
            settle::settle(app, group, &mail, vec![outcome; group.records.len()]).await?;
            return Ok(true);
        }
    };
    if group.destination.is_empty() {
        settle::deliver_here(app, group, &mail, message).await?;
        return Ok(true);
    }
    let outcomes = hand_over(app, group, &mail, message).await;
    metrics::counter!("outbound_attempts_total").increment(outcomes.len() as u64);
    let reached = !outcomes.iter().all(|one| matches!(one, HandoverOutcome::Unreachable(_)));
    settle::settle(app, group, &mail, outcomes).await?;
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

async fn hand_over(app: &App, group: &Group, mail: &OutboundRecord, message: Bytes) -> Vec<HandoverOutcome> {
    let all = |outcome: HandoverOutcome| vec![outcome; group.records.len()];
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
    let mut outcomes = match limited.await {
        Ok(outcomes) => outcomes,
        Err(_) => all(HandoverOutcome::Later("The other server took too long".to_owned())),
    };
    outcomes.resize(group.records.len(), HandoverOutcome::Later("No answer for this recipient".to_owned()));
    outcomes
}
