//! The background workers of a process, each supervised: sending, schedules, triage, webhooks, scans, block lists,
//! memory, maintenance.

mod memory;

use std::time::Duration;

use model::{Timestamp, sending::OutboundMode};
use store::{SystemTx, Topic, search, wait_for_wake};
use tokio::task::JoinHandle;

use crate::{
    agent::triage,
    core::{app::App, error::Result, jitter::jitter},
    inbox::scanning,
    mailbox::domains,
    notify::{telegram, webhooks},
    outbox::{reviews::expiry, scheduled_sends, sending::worker},
    payments,
    upkeep::{counters, maintenance, nodes, storage, storage_rounds},
};

/// How often maintenance runs.
const MAINTENANCE_INTERVAL: Duration = Duration::from_mins(1);
/// The first run: soon, but after the first callers were served.
const FIRST_MAINTENANCE_DELAY: Duration = Duration::from_secs(2);
/// How long a worker waits for a notification before it polls.
const IDLE_POLL: Duration = Duration::from_secs(2);
/// When stored mail is first swept and scrubbed after a start, and how often it is asked whether there is more to check.
const FIRST_STORAGE_CHECK_DELAY: Duration = Duration::from_mins(10);
const STORAGE_POLL: Duration = Duration::from_mins(1);
/// How long a message may wait to be indexed by the process that received it.
const MAX_UNINDEXED: Duration = Duration::from_mins(10);
/// Texts that are worth a batch of the search index.
const MARKED_BATCH: i64 = 500;
/// How long fewer texts wait for others.
const MAX_MARKED: Duration = Duration::from_secs(5);
/// How often they are counted meanwhile.
const MARK_POLL: Duration = Duration::from_millis(500);
/// How often additions to counters are looked for, and how often after there were many: readers add those that are left.
const MAX_FOLD_INTERVAL: Duration = Duration::from_secs(2);
const MIN_FOLD_INTERVAL: Duration = Duration::from_millis(250);
const MANY_ADDITIONS: usize = 200;
/// How long no mail must come before the search index is merged.
const MERGE_DELAY: Duration = Duration::from_secs(5);
/// How often it is checked whether an index is missing.
const INDEX_CHECK_INTERVAL: Duration = Duration::from_mins(1);
/// How often due domains are checked.
const DOMAIN_CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// How often the keys of this server's own domains are checked.
const KEY_CHECK_INTERVAL: Duration = Duration::from_mins(10);

/// Starts what every process needs and, with the role `worker`, everything else. Aborting the handles stops it.
pub fn start(app: &App, has_worker_role: bool) -> Vec<JoinHandle<()>> {
    let mut started = vec![supervise(app, "block-lists", watch_lists)];
    if !app.db().is_sole_node() {
        started.push(supervise(app, "node", nodes::announce));
    }
    if has_worker_role {
        started.extend(start_all(app));
    }
    started
}

fn start_all(app: &App) -> Vec<JoinHandle<()>> {
    let mut started = vec![
        supervise(app, "upkeep", maintain_node),
        supervise_one(app, "expiry", maintain),
        supervise(app, "storage", check_storage),
        supervise_one(app, "domains", check_domains),
        supervise(app, "webhooks", webhooks::outbox::work),
        supervise(app, "payments", payments::work),
        supervise(app, "schedules", send_scheduled),
        supervise(app, "reviews", expire_reviews),
        supervise(app, worker::WORKER, send_queued),
        supervise(app, "claims", renew_claims),
        supervise(app, triage::worker::WORKER, triage),
        supervise(app, "documents", memory::index_documents),
        supervise(app, "vectors", memory::re_embed),
    ];
    if app.scanning().has_external() {
        started.push(supervise(app, "scans", scan));
    }
    if app.db().is_sole_node() {
        started.push(supervise(app, "search-index", index_lost));
        started.push(supervise(app, "search-merges", merge_search));
    } else {
        started.push(supervise_one(app, "search-index", index_marked));
        started.push(supervise_one(app, "counters", fold_counters));
        started.push(supervise_one(app, "statistics", maintenance::keep_statistics));
        started.push(supervise_one(app, "indexes", build_indexes));
    }
    if telegram::is_available(app) {
        started.push(supervise(app, "telegram", telegram::work));
    }
    if memory::is_on(app) {
        started.push(supervise(app, "mail-memory", memory::index_mail));
    }
    // Mail that stays on this server needs no signature.
    if matches!(app.settings().outbound.mode, OutboundMode::Relay | OutboundMode::Direct) {
        started.push(supervise(app, "dkim-keys", check_keys));
    }
    started
}

fn supervise<W>(app: &App, name: &'static str, work: fn(App) -> W) -> JoinHandle<()>
where
    W: Future<Output = ()> + Send + 'static,
{
    let of = app.clone();
    app.supervisor().start(name, move || work(of.clone()))
}

/// The same for work that one node does for all.
fn supervise_one<W>(app: &App, name: &'static str, work: fn(App) -> W) -> JoinHandle<()>
where
    W: Future<Output = ()> + Send + 'static,
{
    let of = app.clone();
    app.supervisor().start(name, move || nodes::run_with_lease(of.clone(), name, work))
}

/// Runs a node's own maintenance regularly.
async fn maintain_node(app: App) {
    tokio::time::sleep(jitter(&app, FIRST_MAINTENANCE_DELAY)).await;
    loop {
        if let Err(error) = maintenance::run_here(&app).await {
            tracing::warn!(%error, "maintenance of this node failed; retrying");
        }
        tokio::time::sleep(jitter(&app, MAINTENANCE_INTERVAL)).await;
    }
}

/// Deletes regularly what has expired.
async fn maintain(app: App) {
    tokio::time::sleep(jitter(&app, FIRST_MAINTENANCE_DELAY)).await;
    loop {
        let outcome = maintenance::run_for_all(&app).await;
        metrics::counter!("upkeep_runs_total", "ok" => outcome.is_ok().to_string()).increment(1);
        if let Err(error) = outcome {
            tracing::warn!(%error, "maintenance failed; retrying");
        }
        tokio::time::sleep(jitter(&app, MAINTENANCE_INTERVAL)).await;
    }
}

/// Builds what an upgrade left to be built.
async fn build_indexes(app: App) {
    loop {
        if let Err(error) = maintenance::build_indexes(&app).await {
            tracing::warn!(%error, "index not built; retrying");
        }
        tokio::time::sleep(jitter(&app, INDEX_CHECK_INTERVAL)).await;
    }
}

/// Sends unscanned mail to the external scanners.
async fn scan(app: App) {
    let mut wakes = app.db().listen_for_work(Topic::Event);
    loop {
        match scanning::scan_pending(&app).await {
            // There may be more.
            Ok(judged) if judged > 0 => continue,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "external scan failed; retrying");
                // A notification would not help, and may come in a tight loop.
                tokio::time::sleep(IDLE_POLL).await;
            }
        }
        let _ = tokio::time::timeout(IDLE_POLL, wait_for_wake(&mut wakes)).await;
    }
}

/// Re-reads block lists when they change. Every process that receives mail needs this.
async fn watch_lists(app: App) {
    loop {
        tokio::time::sleep(IDLE_POLL).await;
        let lists = app.scanning().clone();
        let _ = tokio::task::spawn_blocking(move || lists.reload()).await;
    }
}

/// Deletes unused blobs, and reads back everything that is stored, once a day and shared with the other nodes.
async fn check_storage(app: App) {
    tokio::time::sleep(jitter(&app, FIRST_STORAGE_CHECK_DELAY)).await;
    loop {
        let pause = match storage_rounds::check_next(&app).await {
            Ok(None) => continue,
            Ok(Some(until_next)) => until_next.min(STORAGE_POLL),
            Err(error) => {
                tracing::warn!(%error, "check of stored mail interrupted; retrying");
                STORAGE_POLL
            }
        };
        tokio::time::sleep(jitter(&app, pause)).await;
    }
}

/// Indexes messages that are left from the time before the start, and then those that another process of this machine
/// left unindexed, such as a killed import.
async fn index_lost(app: App) {
    let mut old = i64::MAX;
    loop {
        match storage::index_lost(&app, old, usize::MAX).await {
            Ok(newest) => old = newest,
            Err(error) => tracing::warn!(%error, "indexing of left-over messages failed; retrying"),
        }
        tokio::time::sleep(jitter(&app, MAX_UNINDEXED)).await;
    }
}

/// Indexes new messages on PostgreSQL, many at once.
async fn index_marked(app: App) {
    let mut arrivals = app.db().listen(Topic::Event);
    loop {
        if let Err(error) = index_enough(&app).await {
            tracing::warn!(%error, "indexing of new messages failed; retrying");
            tokio::time::sleep(IDLE_POLL).await;
        }
        // What comes while this node starts or is not told of it waits for the next message or the time.
        let _ = tokio::time::timeout(MAX_SLEEP, wait_for_wake(&mut arrivals)).await;
    }
}

/// Adds what messages were counted by to the counters, soon while there are many.
async fn fold_counters(app: App) {
    loop {
        let pause = match counters::fold(&app).await {
            Ok(folded) if folded >= MANY_ADDITIONS => MIN_FOLD_INTERVAL,
            Ok(_) => MAX_FOLD_INTERVAL,
            Err(error) => {
                tracing::warn!(%error, "counters not updated; retrying, and readers add what is missing");
                MAX_FOLD_INTERVAL
            }
        };
        tokio::time::sleep(jitter(&app, pause)).await;
    }
}

/// Waits until there are enough messages, or for a while, and indexes them.
async fn index_enough(app: &App) -> Result<()> {
    let deadline = tokio::time::Instant::now() + MAX_MARKED;
    let marked = async |tx: &mut SystemTx| search::count_marked(tx, MARKED_BATCH).await;
    while app.db().system_read(marked).await? < MARKED_BATCH && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(MARK_POLL).await;
    }
    storage::index_marked(app).await
}

/// Merges parts of the search index whenever no mail has come for a while.
async fn merge_search(app: App) {
    let mut arrivals = app.db().listen(Topic::Event);
    loop {
        wait_for_wake(&mut arrivals).await;
        while tokio::time::timeout(MERGE_DELAY, wait_for_wake(&mut arrivals)).await.is_ok() {}
        let idle = || arrivals.is_empty();
        if let Err(error) = storage::merge_search(&app, idle).await {
            tracing::warn!(%error, "merging the search index failed; retrying after the next message");
        }
    }
}

/// Checks custom domains in DNS when they are due.
async fn check_domains(app: App) {
    loop {
        tokio::time::sleep(jitter(&app, DOMAIN_CHECK_INTERVAL)).await;
        match domains::check_due(&app).await {
            Ok(checked) => tracing::debug!(checked, "custom domains checked"),
            Err(error) => tracing::warn!(%error, "check of custom domains failed; retrying"),
        }
    }
}

/// Generates the keys of this server's own domains and checks them in DNS.
async fn check_keys(app: App) {
    loop {
        if let Err(error) = domains::keys::check_all_hosted(&app).await {
            tracing::warn!(%error, "check of this server's DKIM keys failed; retrying");
        }
        tokio::time::sleep(jitter(&app, KEY_CHECK_INTERVAL)).await;
    }
}

/// How long a timer sleeps before it reads the clock again, which may be set.
const TICK: Duration = Duration::from_secs(1);
/// How long it waits before it asks the store again.
const MAX_SLEEP: Duration = Duration::from_mins(1);
/// The same where there may be other nodes: the wake-up of one that died right after its commit never comes.
const MAX_SHARED_SLEEP: Duration = Duration::from_secs(4);

/// Sends scheduled messages when they are due.
async fn send_scheduled(app: App) {
    let mut wakes = app.db().listen(Topic::Schedule);
    if app.db().is_sole_node() {
        log(
            scheduled_sends::worker::release_lost(&app).await,
            "scheduled send claims of the last run not released; they will expire",
        );
    }
    loop {
        let next = match scheduled_sends::worker::run_due(&app).await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(%error, "scheduled sends failed; retrying");
                tokio::time::sleep(IDLE_POLL).await;
                continue;
            }
        };
        tokio::select! {
            () = until(&app, next) => {}
            () = wait_for_wake(&mut wakes) => {}
        }
    }
}

/// Ends reviews that nobody has decided about in time.
async fn expire_reviews(app: App) {
    let mut wakes = app.db().listen(Topic::Schedule);
    loop {
        let next = match expiry::run_due(&app).await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(%error, "review expiry failed; retrying");
                tokio::time::sleep(IDLE_POLL).await;
                continue;
            }
        };
        tokio::select! {
            () = until(&app, next) => {}
            () = wait_for_wake(&mut wakes) => {}
        }
    }
}

/// Runs triagers on queued messages.
async fn triage(app: App) {
    let mut wakes = app.db().listen(Topic::Triage);
    if app.db().is_sole_node() {
        log(
            triage::worker::release_lost(&app).await,
            "triage claims of the last run not released; they will expire",
        );
    }
    loop {
        let next = match triage::worker::run_due(&app).await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(%error, "triage failed; retrying");
                tokio::time::sleep(IDLE_POLL).await;
                continue;
            }
        };
        tokio::select! {
            () = until(&app, next) => {}
            () = wait_for_wake(&mut wakes) => {}
        }
    }
}

/// Delivers the outbound queue.
async fn send_queued(app: App) {
    let mut wakes = app.db().listen_for_work(Topic::Queue);
    let _dispatcher = worker::Dispatcher::new(&app);
    log(worker::release_lost(&app).await, "queue claims of the last run not released; they will expire");
    loop {
        // The tasks run on their own, so that a slow server does not delay others.
        let next = match worker::run_round(&app).await {
            Ok(round) => round.next_due_at,
            Err(error) => {
                tracing::warn!(%error, "outbound queue failed; retrying");
                tokio::time::sleep(IDLE_POLL).await;
                continue;
            }
        };
        tokio::select! {
            // A due record that is still queued has a destination at its limit: a task has to end first.
            () = until(&app, next.filter(|at| *at > app.now())) => {}
            () = worker::task_finished(&app) => {}
            () = wait_for_wake(&mut wakes) => {}
        }
    }
}

/// Renews the claims of this node, so that no other node takes over its records.
async fn renew_claims(app: App) {
    loop {
        tokio::time::sleep(Duration::from_secs(worker::RENEW_SECONDS)).await;
        log(
            worker::renew(&app).await,
            "queue claims not renewed; they will expire and be picked up by another node",
        );
    }
}

fn log(outcome: Result<()>, what: &str) {
    if let Err(error) = outcome {
        tracing::warn!(%error, "{what}");
    }
}

/// Waits until a time by the service's clock, or until the store should be asked again.
async fn until(app: &App, at: Option<Timestamp>) {
    let most = if app.db().is_sole_node() { MAX_SLEEP } else { MAX_SHARED_SLEEP };
    let deadline = tokio::time::Instant::now() + most;
    while tokio::time::Instant::now() < deadline {
        let left = at.map_or(TICK, |at| {
            let micros = at.as_micros().saturating_sub(app.now().as_micros());
            Duration::from_micros(u64::try_from(micros).unwrap_or_default())
        });
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(TICK)).await;
    }
}
