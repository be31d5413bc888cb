//! Work on the queue: what is due is taken on, handed to its next host, and what came of it is noted.
//!
//! A record is taken on by one node, which has to say every now and then that it is still at work. Destinations have a
//! bounded number of tasks each, and those that cannot be reached rest for a while, so that one slow or broken destination
//! delays no other.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use model::{Timestamp, WorkspaceId};
use store::{
    contents,
    outbound::{self, OutboundRecord},
    queue::{self, Claimed, Head},
};
use tokio::{sync::Notify, task::JoinHandle};

use super::{settle, submit::RELAY};
use crate::{
    App, Error, Result,
    emails::present,
    lock,
    outside::{Handover, HandoverOutcome},
};

/// Records that one task takes on.
const EACH: usize = 8;
/// Destinations that one look at the queue finds.
const HEADS: i64 = 1000;
/// How long a node that took a record on is believed to be alive.
const LEASE_SECONDS: i64 = 60;
/// How often a node says that it is still at work.
pub const RENEW_SECONDS: u64 = 15;
/// How much of that time must be left for a handover to begin.
const LEFT_SECONDS: i64 = 20;
/// How long one handover may take.
const HANDOVER_SECONDS: u64 = 120;
/// Tasks at once, in all and for one destination.
const MOST_TASKS: usize = 64;
const MOST_FOR_DESTINATION: usize = 4;
/// The same for the relay and for mailboxes of this server.
const MOST_FOR_ALL: usize = 16;

/// What a node is sending at the moment.
pub(crate) struct Outbox {
    /// The node's name.
    node: String,
    /// Tasks for each destination.
    busy: Mutex<HashMap<String, usize>>,
    /// Told whenever a task ends.
    ended: Notify,
    /// Until when everything that this node has taken on is its own, in microseconds.
    held_until: AtomicI64,
    /// The name of the destination from which the next look begins, where there are more than one look finds.
    position: Mutex<String>,
}

impl Outbox {
    pub(crate) fn new(node: String) -> Self {
        Self {
            node,
            busy: Mutex::default(),
            ended: Notify::new(),
            held_until: AtomicI64::new(0),
            position: Mutex::default(),
        }
    }

    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    fn tasks(&self) -> usize {
        lock(&self.busy).values().sum()
    }

    fn free(&self, destination: &str) -> usize {
        let present = lock(&self.busy).get(destination).copied().unwrap_or_default();
        most_for(destination).saturating_sub(present)
    }

    fn begin(&self, destination: &str) {
        *lock(&self.busy).entry(destination.to_owned()).or_default() += 1;
    }

    fn end(&self, destination: &str) {
        let mut busy = lock(&self.busy);
        if let Some(tasks) = busy.get_mut(destination) {
            *tasks = tasks.saturating_sub(1);
            if *tasks == 0 {
                busy.remove(destination);
            }
        }
        drop(busy);
        self.ended.notify_one();
    }
}

fn most_for(destination: &str) -> usize {
    if destination.is_empty() || destination == RELAY { MOST_FOR_ALL } else { MOST_FOR_DESTINATION }
}

/// A task's place, given back when the task ends, however it ends.
struct Place {
    app: App,
    destination: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.app.outbox().end(&self.destination);
    }
}

/// The recipients of one mail at one destination.
pub(super) struct Group {
    pub(super) workspace: WorkspaceId,
    pub(super) outbound: String,
    pub(super) destination: String,
    pub(super) records: Vec<Claimed>,
    /// Until when they are this node's.
    pub(super) until: Timestamp,
}

/// Takes on what is due and begins to work on it. The tasks go on by themselves.
pub async fn start_due(app: &App) -> Result<Vec<JoinHandle<()>>> {
    let mut tasks = Vec::new();
    while app.outbox().tasks() < MOST_TASKS {
        let until = app.now().plus_seconds(LEASE_SECONDS);
        let claimed = claim(app, until).await?;
        if claimed.is_empty() {
            break;
        }
        for (destination, groups) in by_destination(claimed, until) {
            let lanes = app.outbox().free(&destination).clamp(1, groups.len());
            let mut shares: Vec<Vec<Group>> = (0..lanes).map(|_| Vec::new()).collect();
            for (index, group) in groups.into_iter().enumerate() {
                shares[index % lanes].push(group);
            }
            for share in shares {
                app.outbox().begin(&destination);
                let place = Place { app: app.clone(), destination: destination.clone() };
                tasks.push(tokio::spawn(work_on(place, share)));
            }
        }
    }
    settle::report_due(app).await?;
    Ok(tasks)
}

/// When the queue has to be looked at next.
pub async fn next_due(app: &App) -> Result<Option<Timestamp>> {
    let heads = heads(app).await?;
    let due = |head: &Head| head.resting_until.map_or(head.due_at, |rest| rest.max(head.due_at));
    Ok(heads.iter().map(due).min())
}

/// Destinations in the queue. Where there are very many, each look sees others.
async fn heads(app: &App) -> Result<Vec<Head>> {
    let from = lock(&app.outbox().position).clone();
    let heads = app.db().system_read(async move |tx| queue::heads(tx, &from, HEADS).await).await?;
    let full = i64::try_from(heads.len()).is_ok_and(|found| found >= HEADS);
    let last = heads.last().filter(|_| full).map(|head| head.destination.clone());
    *lock(&app.outbox().position) = last.unwrap_or_default();
    Ok(heads)
}

/// Says that this node is still at work on what it has taken on.
pub async fn renew(app: &App) -> Result<()> {
    if app.outbox().tasks() == 0 {
        return Ok(());
    }
    let (node, until) = (app.outbox().node().to_owned(), app.now().plus_seconds(LEASE_SECONDS));
    app.db().system_write(async move |tx| queue::renew(tx, &node, until).await).await?;
    app.outbox().held_until.store(until.as_micros(), Ordering::Relaxed);
    Ok(())
}

/// Waits until a task of this node ends.
pub async fn task_ended(app: &App) {
    app.outbox().ended.notified().await;
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

/// Takes on records at every destination that has some and where there is room.
async fn claim(app: &App, until: Timestamp) -> Result<Vec<Claimed>> {
    let (now, outbox) = (app.now(), app.outbox());
    let mut heads = heads(app).await?;
    heads.retain(|head| head.due_at <= now && head.resting_until.is_none_or(|rest| rest <= now));
    heads.sort_by_key(|head| head.due_at);
    let mut room = MOST_TASKS.saturating_sub(outbox.tasks());
    let mut wanted: Vec<(String, i64)> = Vec::new();
    for head in heads {
        let lanes = outbox.free(&head.destination).min(room);
        room -= lanes;
        if lanes > 0 {
            wanted.push((head.destination, i64::try_from(lanes * EACH).unwrap_or(i64::MAX)));
        }
    }
    // A look costs no commit, and most looks find nothing.
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let node = outbox.node().to_owned();
    let claimed = app.db().system_write(async move |tx| {
        let mut claimed = Vec::new();
        for (destination, most) in wanted {
            claimed.extend(queue::claim(tx, &node, now, until, &destination, most).await?);
        }
        Ok::<_, store::Error>(claimed)
    });
    Ok(claimed.await?)
}

fn by_destination(claimed: Vec<Claimed>, until: Timestamp) -> BTreeMap<String, Vec<Group>> {
    let mut groups: BTreeMap<(String, WorkspaceId, String), Vec<Claimed>> = BTreeMap::new();
    for record in claimed {
        let key = (record.destination.clone(), record.workspace.clone(), record.outbound.clone());
        groups.entry(key).or_default().push(record);
    }
    let mut by: BTreeMap<String, Vec<Group>> = BTreeMap::new();
    for ((destination, workspace, outbound), mut records) in groups {
        records.sort_by_key(|record| record.position);
        let group = Group { workspace, outbound, destination: destination.clone(), records, until };
        by.entry(destination).or_default().push(group);
    }
    by
}

async fn work_on(place: Place, groups: Vec<Group>) {
    for group in groups {
        // What came so late that another node may have it before it is done is left to that node.
        let held = place.app.outbox().held_until.load(Ordering::Relaxed).max(group.until.as_micros());
        if place.app.now().plus_seconds(LEFT_SECONDS).as_micros() > held {
            continue;
        }
        if let Err(error) = attempt(&place.app, &group).await {
            tracing::warn!(destination = group.destination, %error, "mail in the queue will be tried again");
        }
    }
}

/// Tries one mail at one destination.
async fn attempt(app: &App, group: &Group) -> Result<()> {
    let Some((mail, message)) = load(app, group).await? else { return Ok(()) };
    if group.destination.is_empty() {
        return settle::deliver_here(app, group, &mail, message).await;
    }
    let outcomes = hand_over(app, group, &mail, message).await;
    metrics::counter!("outbound_attempts_total").increment(outcomes.len() as u64);
    settle::settle(app, group, &mail, outcomes).await
}

/// The mail and its bytes as they go over the wire; nothing when it is gone.
async fn load(app: &App, group: &Group) -> Result<Option<(OutboundRecord, Bytes)>> {
    let id = group.outbound.clone();
    let found = app
        .db()
        .read(&group.workspace, async move |tx| {
            let Some(mail) = outbound::find(tx, &id).await? else { return Ok(None) };
            let content = contents::find(tx, &mail.content_id).await?;
            Ok::<_, store::Error>(content.map(|content| (mail, content)))
        })
        .await?;
    let Some((mail, content)) = found else { return Ok(None) };
    let raw = present::open_raw(app, &group.workspace, &content).await?;
    let mut message = BytesMut::with_capacity(mail.prefix.len() + raw.len());
    message.extend_from_slice(mail.prefix.as_bytes());
    message.extend_from_slice(&raw);
    Ok(Some((mail, message.freeze())))
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
    let limit = Duration::from_secs(HANDOVER_SECONDS);
    let limited = tokio::time::timeout(limit, hop.hand_over(handover));
    let mut outcomes = match limited.await {
        Ok(outcomes) => outcomes,
        Err(_) => all(HandoverOutcome::Unreachable("The other server took too long".to_owned())),
    };
    outcomes.resize(group.records.len(), HandoverOutcome::Later("No answer for this recipient".to_owned()));
    outcomes
}
