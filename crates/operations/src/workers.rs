//! Work that goes on beside the doors, each part of it as a supervised worker: sending, schedules, triage, webhooks, scans,
//! block lists, memory, upkeep.

mod memory;

use std::time::Duration;

use model::{Timestamp, sending::OutboundMode};
use store::{Topic, woken};
use tokio::task::JoinHandle;

use crate::{
    agent::triage,
    core::{app::App, error::Result, jitter::jitter},
    inbox::scanning,
    mailbox::domains,
    notify::{telegram, webhooks},
    outbox::{scheduled_sends, sending::worker},
    payments,
    upkeep::{maintenance, storage},
};

/// How often upkeep is done.
const UPKEEP: Duration = Duration::from_mins(1);
/// When it is done first: soon, but not while the first callers wait.
const FIRST_UPKEEP: Duration = Duration::from_secs(2);
/// How long a worker waits for news before it looks by itself.
const IDLE_POLL: Duration = Duration::from_secs(2);
/// How often stored mail is looked after, and when first.
const CARE: Duration = Duration::from_hours(24);
const FIRST_CARE: Duration = Duration::from_hours(1);
/// How long a mail may wait to be indexed by whoever took it in.
const UNINDEXED: Duration = Duration::from_mins(10);
/// How often domains are looked at whose time has come.
const DOMAINS: Duration = Duration::from_secs(30);
/// How often the keys of this server's own domains are looked up.
const OWN_KEYS: Duration = Duration::from_mins(10);

/// Starts what every process needs beside its doors and, where it has the role `worker`, everything else. Aborting the
/// handles ends it.
pub fn start(app: &App, has_worker_role: bool) -> Vec<JoinHandle<()>> {
    let mut started = vec![supervise(app, "block-lists", watch_lists)];
    if has_worker_role {
        started.extend(start_all(app));
    }
    started
}

fn start_all(app: &App) -> Vec<JoinHandle<()>> {
    let mut started = vec![
        supervise(app, "upkeep", keep_up),
        supervise(app, "storage", care_for_storage),
        supervise(app, "domains", check_domains),
        supervise(app, "webhooks", webhooks::outbox::work),
        supervise(app, "payments", payments::work),
        supervise(app, "schedules", send_scheduled),
        supervise(app, worker::WORKER, send_queued),
        supervise(app, "claims", keep_claims),
        supervise(app, triage::worker::WORKER, triage),
        supervise(app, "documents", memory::index_documents),
        supervise(app, "vectors", memory::renew_vectors),
    ];
    if app.scanning().has_external() {
        started.push(supervise(app, "scans", scan));
    }
    if app.db().is_sole_node() {
        started.push(supervise(app, "search-index", index_lost));
    } else {
        started.push(supervise(app, "statistics", maintenance::keep_statistics));
    }
    if telegram::is_available(app) {
        started.push(supervise(app, "telegram", telegram::work));
    }
    if memory::takes_mail(app) {
        started.push(supervise(app, "mail-memory", memory::take_mail));
    }
    // Mail that stays here needs no signature.
    if matches!(app.settings().outbound.mode, OutboundMode::Relay | OutboundMode::Direct) {
        started.push(supervise(app, "dkim-keys", look_after_keys));
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

/// Does upkeep now and then, a little irregularly so that several nodes do not all come at once.
async fn keep_up(app: App) {
    tokio::time::sleep(jitter(&app, FIRST_UPKEEP)).await;
    loop {
        let outcome = maintenance::run(&app).await;
        metrics::counter!("upkeep_runs_total", "ok" => outcome.is_ok().to_string()).increment(1);
        if let Err(error) = outcome {
            tracing::warn!(%error, "upkeep failed and will be tried again");
        }
        tokio::time::sleep(jitter(&app, UPKEEP)).await;
    }
}

/// Asks external scanners about mail that waits for them.
async fn scan(app: App) {
    let mut wakes = app.db().listen(Topic::Event);
    loop {
        match scanning::scan_pending(&app).await {
            // There may be more.
            Ok(judged) if judged > 0 => continue,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "mail waits for its scan");
                // News would not mend what is wrong, and may come without end.
                tokio::time::sleep(IDLE_POLL).await;
            }
        }
        let _ = tokio::time::timeout(IDLE_POLL, woken(&mut wakes)).await;
    }
}

/// Reads block lists again when they change. Whoever takes mail in needs this, whatever else the process does.
async fn watch_lists(app: App) {
    loop {
        tokio::time::sleep(IDLE_POLL).await;
        let lists = app.scanning().clone();
        let _ = tokio::task::spawn_blocking(move || lists.reload()).await;
    }
}

/// Removes blobs that nothing needs, and reads back everything that is stored, once a day.
async fn care_for_storage(app: App) {
    tokio::time::sleep(jitter(&app, FIRST_CARE)).await;
    loop {
        match storage::sweep_blobs(&app).await {
            Ok(gone) => tracing::debug!(gone, "swept blobs that nothing needs"),
            Err(error) => tracing::warn!(%error, "blobs that nothing needs could not be swept"),
        }
        match storage::scrub(&app).await {
            Ok(found) => {
                tracing::info!(
                    checked = found.checked,
                    damaged = found.damaged.len(),
                    "read stored mail back"
                );
            }
            Err(error) => tracing::warn!(%error, "stored mail could not be read back"),
        }
        tokio::time::sleep(jitter(&app, CARE)).await;
    }
}

/// Indexes mails that another process of this machine left unindexed, as an import that was killed does.
async fn index_lost(app: App) {
    let mut old = 0;
    loop {
        match storage::index_lost(&app, old).await {
            Ok(newest) => old = newest,
            Err(error) => tracing::warn!(%error, "mails that are not indexed will be looked at again"),
        }
        tokio::time::sleep(jitter(&app, UNINDEXED)).await;
    }
}

/// Looks custom domains up in DNS, each when its time has come.
async fn check_domains(app: App) {
    loop {
        tokio::time::sleep(jitter(&app, DOMAINS)).await;
        match domains::check_due(&app).await {
            Ok(checked) => tracing::debug!(checked, "looked at custom domains"),
            Err(error) => tracing::warn!(%error, "custom domains could not be looked at"),
        }
    }
}

/// Makes the keys of this server's own domains and looks them up in DNS.
async fn look_after_keys(app: App) {
    loop {
        if let Err(error) = domains::keys::check_all_hosted(&app).await {
            tracing::warn!(%error, "the keys of this server's domains could not be looked up");
        }
        tokio::time::sleep(jitter(&app, OWN_KEYS)).await;
    }
}

/// How long a timer sleeps without looking at the clock, which somebody may set.
const TICK: Duration = Duration::from_secs(1);
/// How long it trusts what it knows without asking the store.
const TRUST: Duration = Duration::from_mins(1);

/// Sends scheduled mails when their time has come.
async fn send_scheduled(app: App) {
    let mut wakes = app.db().listen(Topic::Schedule);
    if app.db().is_sole_node() {
        log(
            scheduled_sends::release_lost(&app).await,
            "scheduled mails of the last run wait a little longer",
        );
    }
    loop {
        let next = match scheduled_sends::run_due(&app).await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(%error, "scheduled mails will be looked at again");
                tokio::time::sleep(IDLE_POLL).await;
                continue;
            }
        };
        tokio::select! {
            () = until(&app, next) => {}
            () = woken(&mut wakes) => {}
        }
    }
}

/// Lets triagers look at mail that waits for them.
async fn triage(app: App) {
    let mut wakes = app.db().listen(Topic::Triage);
    if app.db().is_sole_node() {
        log(triage::worker::release_lost(&app).await, "mail for triagers waits a little longer");
    }
    loop {
        let next = match triage::worker::run_due(&app).await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(%error, "mail for triagers will be looked at again");
                tokio::time::sleep(IDLE_POLL).await;
                continue;
            }
        };
        tokio::select! {
            () = until(&app, next) => {}
            () = woken(&mut wakes) => {}
        }
    }
}

/// Takes the mail in the queue on its way.
async fn send_queued(app: App) {
    let mut wakes = app.db().listen(Topic::Queue);
    let _dispatcher = worker::Dispatcher::new(&app);
    log(
        worker::release_lost(&app).await,
        "claims on mail in the queue not released; they expire within a minute",
    );
    loop {
        // The tasks go on by themselves, so that a slow server does not keep others waiting.
        let looked = match worker::start_due(&app).await {
            Ok(_) => worker::next_due(&app).await,
            Err(error) => Err(error),
        };
        let next = match looked {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(%error, "the queue will be looked at again");
                tokio::time::sleep(IDLE_POLL).await;
                continue;
            }
        };
        tokio::select! {
            // What is due and still waits has a destination that is full: a task has to end first.
            () = until(&app, next.filter(|at| *at > app.now())) => {}
            () = worker::task_ended(&app) => {}
            () = woken(&mut wakes) => {}
        }
    }
}

/// Says that this node is still at work, so that no other takes over what it has taken on.
async fn keep_claims(app: App) {
    loop {
        tokio::time::sleep(Duration::from_secs(worker::RENEW_SECONDS)).await;
        log(worker::renew(&app).await, "other nodes may take this one for lost");
    }
}

fn log(outcome: Result<()>, what: &str) {
    if let Err(error) = outcome {
        tracing::warn!(%error, "{what}");
    }
}

/// Waits until a time by the clock of the service, or for as long as what is known can be trusted.
async fn until(app: &App, at: Option<Timestamp>) {
    let deadline = tokio::time::Instant::now() + TRUST;
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
