//! The nodes of a service on PostgreSQL: each says regularly that it is alive, and work that needs doing once is done by
//! the one that has its lease.

mod faults;
mod figures;
mod overview;
mod settings;

use std::time::Duration;

use store::{
    Db,
    nodes::{self, LeaseHolder, NodeAnnouncement, NodeFigures},
};
use tokio::time::Instant;

use self::figures::LOST_AFTER_SECONDS;
pub use self::{
    figures::{Connections, IndexState, Lag, Node, Overview, Standby, UnusableIndex},
    overview::overview,
};
use crate::core::{app::App, clock, error::Result, jitter::jitter};

/// How often a node says that it is alive.
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(10);
/// How long a lease lasts, and how often it is renewed.
const LEASE: Duration = Duration::from_secs(20);
const RENEW_INTERVAL: Duration = Duration::from_secs(5);
/// Without renewal the work ends after this, five seconds before another node may begin it.
const MAX_UNRENEWED: Duration = Duration::from_secs(15);
/// How often a node tries to claim a lease that another one has.
const CLAIM_INTERVAL: Duration = Duration::from_secs(10);

/// Says regularly that this node is alive.
#[crate::boxed]
pub async fn announce(app: App) {
    loop {
        if let Err(error) = announce_once(&app).await {
            tracing::warn!(%error, "this node could not say that it is alive; retrying");
        }
        tokio::time::sleep(jitter(&app, ANNOUNCE_INTERVAL)).await;
    }
}

/// Says that this node is alive, compares its clock with the database's, and learns which nodes send mail.
#[crate::boxed]
pub async fn announce_once(app: &App) -> Result<()> {
    let (said, clock) = (announcement(app)?, app.clock().clone());
    let told = app.db().asynchronous_system_write(async move |tx| {
        let reading = clock::read(tx, &*clock).await?;
        let clock_ahead = reading.map_or(0, |reading| reading.machine_ahead());
        nodes::announce(tx, &said, clock_ahead).await?;
        Ok::<_, store::Error>((reading, nodes::senders(tx, LOST_AFTER_SECONDS).await?))
    });
    let (reading, senders) = told.await?;
    if let Some(reading) = reading {
        app.clock().correct(&reading);
        metrics::gauge!("clock_ahead_seconds").set(to_seconds(reading.machine_ahead()));
    }
    app.outbox().record_senders(&senders);
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "for a chart")]
fn to_seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

fn announcement(app: &App) -> Result<NodeAnnouncement> {
    Ok(NodeAnnouncement {
        id: app.node().to_owned(),
        host: host(),
        process: i64::from(std::process::id()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        schema_version: Db::newest_schema(),
        // Only the first announcement is stored with this.
        started_at: app.now(),
        sends: app.outbox().has_worker(),
        figures: own_figures(app)?,
    })
}

fn own_figures(app: &App) -> Result<NodeFigures> {
    let pool = app.db().take_pool_figures().unwrap_or_default();
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    Ok(NodeFigures {
        address: app.address().to_owned(),
        pool_size: number(pool.size),
        pool_in_use: number(pool.in_use),
        pool_wait: i64::try_from(pool.longest_wait.as_micros()).unwrap_or(i64::MAX),
        server_connections: number(pool.to_server),
        sending: number(app.outbox().connections()),
        settings: settings::digests(app)?,
    })
}

fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

/// Lets other nodes take over at once, before the process ends.
#[crate::boxed]
pub async fn withdraw(app: &App) {
    if app.db().is_sole_node() {
        return;
    }
    let node = app.node().to_owned();
    let withdrawn = app.db().system_write(async move |tx| nodes::withdraw(tx, &node).await);
    if let Err(error) = withdrawn.await {
        tracing::debug!(%error, "leases not released; they will expire");
    }
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().chars().take(200).collect()
}

/// Does work as long as this node has its lease, and waits while another one has it. On SQLite there is nobody to share
/// it with.
///
/// A node that was stopped and goes on does one more step beside its successor, so the work must bear that.
pub async fn run_with_lease<W>(app: App, name: &'static str, work: impl Fn(App) -> W)
where
    W: Future<Output = ()>,
{
    if app.db().is_sole_node() {
        return work(app).await;
    }
    loop {
        match claim(&app, name).await {
            Ok(LeaseHolder::Own) => {
                tracing::debug!(lease = name, "this node does it for all");
                tokio::select! {
                    () = work(app.clone()) => return,
                    () = renew(&app, name) => tracing::warn!(lease = name, "lease lost; another node takes over"),
                }
            }
            Ok(LeaseHolder::Other(remaining)) => {
                let remaining = Duration::from_micros(remaining.unsigned_abs());
                tokio::time::sleep(jitter(&app, remaining.min(CLAIM_INTERVAL))).await;
            }
            Err(error) => {
                tracing::warn!(lease = name, %error, "lease not claimed; retrying");
                tokio::time::sleep(jitter(&app, RENEW_INTERVAL)).await;
            }
        }
    }
}

async fn claim(app: &App, name: &'static str) -> Result<LeaseHolder> {
    let (node, seconds) = (app.node().to_owned(), seconds(LEASE));
    // A lease that is lost with the database's last half second is claimed again.
    let claim = async move |tx: &mut store::SystemTx| nodes::claim(tx, name, &node, seconds).await;
    Ok(app.db().asynchronous_system_write(claim).await?)
}

/// Renews a lease, and returns when it is lost.
async fn renew(app: &App, name: &'static str) {
    let mut renewed_at = Instant::now();
    loop {
        tokio::time::sleep(RENEW_INTERVAL).await;
        let claimed_at = Instant::now();
        match claim(app, name).await {
            Ok(LeaseHolder::Own) => renewed_at = claimed_at,
            Ok(LeaseHolder::Other(_)) => return,
            Err(error) => tracing::warn!(lease = name, %error, "lease not renewed; retrying"),
        }
        if renewed_at.elapsed() > MAX_UNRENEWED {
            return;
        }
    }
}
