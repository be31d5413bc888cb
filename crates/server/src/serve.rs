//! `serve`: opens everything, listens, does the upkeep, and ends in good order.

mod connection;
mod descriptors;
pub(crate) mod listener;
mod lock;
mod memory;
mod pace;
mod stream;
mod upload;
mod welcome;
mod workers;

use std::{
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{Router, http::header, routing::get};
use model::sending::OutboundMode;
use operations::App;
use store::{DatabaseLocation, blobs::BlobLocation};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    task::JoinHandle,
};

use self::listener::{Door, Guests};
pub use self::lock::ServeLock;
use crate::{
    cli::{Serve, ServeRole},
    commands::Invocation,
    config::Config,
    failure::{Failure, Result},
    metrics, open, output,
    shares::Shares,
    smtp::{self, ServiceReception},
};

/// How long calls in flight may take to finish once the process was told to stop.
const DRAIN: Duration = Duration::from_secs(10);
/// How long the last settlements may take.
const CLOSE: Duration = Duration::from_secs(5);
/// Connections to the door for metrics: a handful of collectors. The rest of the descriptors is for callers.
const MAX_COLLECTORS: u32 = 64;
/// How often upkeep is done.
const UPKEEP: Duration = Duration::from_mins(1);
/// When it is done first: soon, but not while the first callers wait.
const FIRST_UPKEEP: Duration = Duration::from_secs(2);

/// Serves until the process is told to stop.
pub async fn run(config: Config, options: Serve, invocation: Invocation) -> Result<ExitCode> {
    let started = Instant::now();
    let mut signals = Signals::new()?;
    open::make_private_folder(&config.data_dir)?;
    let _lock = ServeLock::take(&config)?;
    let api = options.roles.contains(&ServeRole::Api);
    let listener = if api { Some(listener::bind(config.http.listen)?) } else { None };
    let metrics_listener = config.http.metrics_listen.map(listener::bind).transpose()?;
    let smtp = options.roles.contains(&ServeRole::Smtp);
    let mail_listeners = if smtp { smtp::bind(&config)? } else { Vec::new() };
    let bound = match &listener {
        Some(listener) => listener.local_addr().map_err(|error| Failure::new(error.to_string()))?,
        None => config.http.listen,
    };
    if api {
        open::check_facilitator(&config).await?;
    }
    let app = open_app(&config, bound).await?;
    let (stop, stopping) = watch::channel(false);
    let mail_address = mail_listeners.first().and_then(|(listener, _)| listener.local_addr().ok());
    receive_mail(&config, &app, mail_listeners, &stopping)?;
    let doors = Doors { config: &config, app: &app, listener, metrics_listener, stopping };
    doors.open()?;
    let work = begin_work(&app, options.roles.contains(&ServeRole::Worker));
    tracing::info!(
        milliseconds = started.elapsed().as_millis(),
        engine = app.db().engine_name(),
        address = %bound,
        "ready"
    );
    output::text(&welcome::text(&config, &app, &invocation, api, mail_address).await?);

    let name = signals.next().await;
    tracing::info!(signal = name, "stopping");
    for task in work {
        task.abort();
    }
    drain(stop, &mut signals, &app).await;
    close(&app).await;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

async fn open_app(config: &Config, bound: SocketAddr) -> Result<App> {
    let mut settings = config.settings();
    settings.public_url = config.public_url(bound);
    let app = open::start(config, settings).await?;
    let open_wall: Result<bool, store::Error> =
        app.db().system_read(async |tx| store::system::bypasses_row_security(tx).await).await;
    if open_wall? {
        tracing::warn!(
            "PostgreSQL does not apply row-level security to this role: use one without SUPERUSER and BYPASSRLS"
        );
    }
    // Before anybody searches. The store is looked at again later.
    if let Err(error) = operations::storage::index_lost(&app, i64::MAX).await {
        tracing::warn!(%error, "mails of the last run may not be indexed yet");
    }
    Ok(app)
}

/// Begins to receive mail.
fn receive_mail(
    config: &Config,
    app: &App,
    listeners: Vec<(TcpListener, mail::smtp::Protocol)>,
    stopping: &watch::Receiver<bool>,
) -> Result<()> {
    if listeners.is_empty() {
        return Ok(());
    }
    let options = smtp::Options::from_config(config)?;
    let reception = Arc::new(ServiceReception::new(app.clone(), stored_in(config)));
    for (listener, protocol) in listeners {
        tokio::spawn(smtp::serve(listener, protocol, reception.clone(), options.clone(), stopping.clone()));
    }
    Ok(())
}

/// The folders that mail is stored in. Room on this machine matters only for what is stored on it.
fn stored_in(config: &Config) -> Vec<PathBuf> {
    let database = matches!(config.database, DatabaseLocation::Sqlite(_)).then(|| config.data_dir.clone());
    let blobs = match &config.blobs {
        BlobLocation::Directory(path) => Some(path.clone()),
        BlobLocation::S3(_) => None,
    };
    database.into_iter().chain(blobs).collect()
}

/// What is listened on.
struct Doors<'a> {
    config: &'a Config,
    app: &'a App,
    listener: Option<TcpListener>,
    metrics_listener: Option<TcpListener>,
    stopping: watch::Receiver<bool>,
}

impl Doors<'_> {
    /// Begins to accept connections.
    fn open(self) -> Result<()> {
        let http = &self.config.http;
        let render = metrics::start(self.app.db().engine_name())?;
        let most = descriptors::allow(http.max_connections + self.config.smtp.max_connections);
        let most = most.saturating_sub(self.config.smtp.max_connections).max(1);
        if let Some(listener) = self.listener {
            let options = web::Options {
                metrics: http.shows_metrics().then(|| render.clone()),
                cors_origins: http.cors_origins.clone(),
                proxies: http.trust_proxy.clone(),
                console: self.config.console,
                doors: vec![mcp::door],
            };
            let router = web::router(self.app.clone(), options);
            let shares = Shares::new(http.connections_per_client);
            let guests = Guests { most, shares, proxies: http.trust_proxy.clone() };
            tokio::spawn(Door::new(router, guests, self.stopping.clone()).serve(listener));
        }
        if let Some(listener) = self.metrics_listener {
            let text = move || {
                let render = render.clone();
                async move { ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], render()) }
            };
            let router = Router::new().route("/metrics", get(text));
            let shares = Shares::new(MAX_COLLECTORS);
            let guests = Guests { most: MAX_COLLECTORS as usize, shares, proxies: web::Proxies::None };
            tokio::spawn(Door::new(router, guests, self.stopping).serve(listener));
        }
        Ok(())
    }
}

/// Begins what goes on beside the doors.
fn begin_work(app: &App, worker: bool) -> Vec<JoinHandle<()>> {
    let mut work = vec![tokio::spawn(workers::watch_lists(app.clone()))];
    if worker {
        work.push(tokio::spawn(keep_up(app.clone())));
        work.push(tokio::spawn(workers::scan(app.clone())));
        work.push(tokio::spawn(workers::care_for_storage(app.clone())));
        work.push(tokio::spawn(workers::index_lost(app.clone())));
        work.push(tokio::spawn(workers::check_domains(app.clone())));
        work.push(tokio::spawn(operations::upkeep::keep_statistics(app.clone())));
        work.push(tokio::spawn(operations::webhooks::outbox::work(app.clone())));
        work.push(tokio::spawn(operations::payments::work(app.clone())));
        work.push(tokio::spawn(operations::telegram::work(app.clone())));
        work.push(tokio::spawn(workers::send_scheduled(app.clone())));
        work.push(tokio::spawn(workers::send_queued(app.clone())));
        work.push(tokio::spawn(workers::triage(app.clone())));
        work.push(tokio::spawn(workers::keep_claims(app.clone())));
        work.push(tokio::spawn(memory::index_documents(app.clone())));
        work.push(tokio::spawn(memory::take_mail(app.clone())));
        work.push(tokio::spawn(memory::renew_vectors(app.clone())));
        // Mail that stays here needs no signature.
        if matches!(app.settings().outbound.mode, OutboundMode::Relay | OutboundMode::Direct) {
            work.push(tokio::spawn(workers::look_after_keys(app.clone())));
        }
    }
    work
}

/// Does upkeep now and then, a little irregularly so that several nodes do not all come at once.
async fn keep_up(app: App) {
    tokio::time::sleep(irregular(&app, FIRST_UPKEEP)).await;
    loop {
        let outcome = operations::upkeep::run(&app).await;
        ::metrics::counter!("upkeep_runs_total", "ok" => outcome.is_ok().to_string()).increment(1);
        if let Err(error) = outcome {
            tracing::warn!(%error, "upkeep failed and will be tried again");
        }
        tokio::time::sleep(irregular(&app, UPKEEP)).await;
    }
}

/// A time between four and six fifths of the given one.
fn irregular(app: &App, about: Duration) -> Duration {
    let mut random = [0];
    app.entropy().fill(&mut random);
    about.mul_f64(0.8 + 0.4 * f64::from(random[0]) / 255.0)
}

/// Tells all connections to end, those to other servers too, and waits until they have, up to a bound or a second signal.
async fn drain(stop: watch::Sender<bool>, signals: &mut Signals, app: &App) {
    app.end_waits();
    // Nobody there is fine.
    let _ = stop.send(true);
    let ended = async { tokio::join!(stop.closed(), operations::sending::work::finish(app)) };
    tokio::select! {
        _ = ended => {}
        () = tokio::time::sleep(DRAIN) => tracing::warn!("some calls did not finish in time"),
        _ = signals.next() => tracing::warn!("told to stop a second time; calls in flight are cut off"),
    }
}

/// Stores what is still only in memory.
async fn close(app: &App) {
    let last = async {
        if let Err(error) = app.store_key_uses().await {
            tracing::warn!(%error, "could not store when keys were used");
        }
        app.meter().close().await;
        if let Err(error) = app.db().index_texts().await {
            tracing::warn!(%error, "the last mails are indexed at the next start");
        }
    };
    if tokio::time::timeout(CLOSE, last).await.is_err() {
        tracing::warn!("the store did not take the last figures in time");
    }
}

/// The signals that end the process.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        let listen = |kind| signal(kind).map_err(|error| Failure::new(format!("No signals: {error}")));
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
