//! `serve`: opens everything, listens, runs the workers, and shuts down gracefully.

mod connection;
mod descriptors;
mod door;
pub mod lock;
mod pace;
mod stream;
mod upload;
mod welcome;

use std::{
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{Router, http::header, routing::get};
use operations::{App, supervisor::FailedWorker, workers};
use store::{DatabaseLocation, blobs::BlobLocation};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use self::door::{ConnectionLimits, Door};
pub use self::lock::ServeLock;
use self::welcome::Welcome;
use crate::{
    cli::{Serve, ServeRole},
    commands::invocation::Invocation,
    config::Config,
    failure::{Failure, Result},
    faults, listener, metrics, open, output,
    shares::Shares,
    smtp::{self, ServiceReception},
};

/// How long calls in flight may take to finish during shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long storing the last figures may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum connections to the metrics listener: a handful of collectors. The other descriptors are for callers.
const MAX_COLLECTORS: u32 = 64;

/// Serves until a signal or a failed worker stops it.
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
    let recorder = metrics::install()?;
    let app = open_app(&config, bound).await?;
    if api {
        app.record_address(bound.to_string());
    }
    faults::inject(app.supervisor());
    let (stop, stopping) = watch::channel(false);
    let mail_address = mail_listeners.first().and_then(|(listener, _)| listener.local_addr().ok());
    receive_mail(&config, &app, mail_listeners, &stopping)?;
    let render = metrics::start(recorder, &app, watched_folders(&config));
    Doors { config: &config, app: &app, listener, metrics_listener, render, stopping }.open();
    let work = workers::start(&app, options.roles.contains(&ServeRole::Worker));
    tracing::info!(
        milliseconds = started.elapsed().as_millis(),
        engine = app.db().engine_name(),
        address = %bound,
        "server ready"
    );
    let welcome = Welcome::new(&config, &app, &invocation, api, mail_address).await?;
    if output::is_json() {
        output::json(&welcome.to_json(&config))?;
    } else {
        output::text(&welcome.text());
    }

    let reason = tokio::select! {
        name = signals.next() => StopReason::Signal(name),
        worker = app.supervisor().failed() => StopReason::Worker(worker),
    };
    reason.log();
    app.supervisor().stop();
    for task in work {
        task.abort();
    }
    drain(stop, &mut signals, &app).await;
    close(&app).await;
    tracing::info!("server stopped");
    Ok(reason.exit_code())
}

/// Why the process stops.
enum StopReason {
    /// A signal.
    Signal(&'static str),
    /// A worker that cannot be restarted. The service manager should restart the process.
    Worker(FailedWorker),
}

impl StopReason {
    fn log(&self) {
        match self {
            Self::Signal(signal) => tracing::info!(signal, "signal received; stopping"),
            Self::Worker(FailedWorker { name, error }) => {
                tracing::error!(worker = name, error, "worker could not be restarted; stopping the process");
            }
        }
    }

    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Signal(_) => ExitCode::SUCCESS,
            Self::Worker(_) => ExitCode::FAILURE,
        }
    }
}

/// Messages of the last run that are indexed before the server answers.
const MAX_INDEXED_AT_START: usize = 1_000;

async fn open_app(config: &Config, bound: SocketAddr) -> Result<App> {
    let mut settings = config.settings();
    settings.public_url = config.public_url(bound);
    let app = open::start(config, settings).await?;
    let bypasses: Result<bool, store::Error> =
        app.db().system_read(async |tx| store::system::bypasses_row_security(tx).await).await;
    if bypasses? {
        tracing::warn!(
            "row-level security of PostgreSQL not applied to this role; operator action needed: use one without SUPERUSER and BYPASSRLS"
        );
    }
    // Before the first search; if they are many, as after an upgrade of the index, a worker does the rest.
    if let Err(error) = operations::storage::index_lost(&app, i64::MAX, MAX_INDEXED_AT_START).await {
        tracing::warn!(%error, "indexing the messages of the last run failed; retrying later");
    }
    Ok(app)
}

/// Starts receiving mail.
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
        let name = if protocol == mail::smtp::Protocol::Lmtp { "lmtp" } else { "smtp" };
        // Kept open across a worker's restart: clients wait in the backlog meanwhile.
        let listener = Arc::new(listener);
        let (reception, options, stopping) = (reception.clone(), options.clone(), stopping.clone());
        app.supervisor().start(name, move || {
            smtp::serve(listener.clone(), protocol, reception.clone(), options.clone(), stopping.clone())
        });
    }
    Ok(())
}

/// The folders that messages are stored in. Free space on this machine matters only for what is stored on it.
fn stored_in(config: &Config) -> Vec<PathBuf> {
    let database = matches!(config.database, DatabaseLocation::Sqlite(_)).then(|| config.data_dir.clone());
    let blobs = match &config.blobs {
        BlobLocation::Directory(path) => Some(path.clone()),
        BlobLocation::S3(_) => None,
    };
    database.into_iter().chain(blobs).collect()
}

/// The folders whose disks are sampled: those that messages are stored in, and the data folder of every node.
fn watched_folders(config: &Config) -> Vec<PathBuf> {
    let mut folders = stored_in(config);
    folders.push(config.data_dir.clone());
    folders.sort();
    folders.dedup();
    folders
}

/// The listeners.
struct Doors<'a> {
    config: &'a Config,
    app: &'a App,
    listener: Option<TcpListener>,
    metrics_listener: Option<TcpListener>,
    render: web::RenderMetrics,
    stopping: watch::Receiver<bool>,
}

impl Doors<'_> {
    /// Starts accepting connections.
    fn open(self) {
        let http = &self.config.http;
        let render = self.render;
        let for_mail = self.config.smtp.max_connections;
        let all = descriptors::allow(http.max_connections + for_mail);
        let max_connections = all.saturating_sub(for_mail).max(1);
        if let Some(listener) = self.listener {
            let options = web::Options {
                metrics: http.shows_metrics().then(|| render.clone()),
                cors_origins: http.cors_origins.clone(),
                proxies: http.trust_proxy.clone(),
                console: self.config.console,
                doors: vec![mcp::door],
                #[cfg(feature = "opentelemetry")]
                continue_trace: Some(crate::telemetry::continue_trace),
                #[cfg(not(feature = "opentelemetry"))]
                continue_trace: None,
            };
            let router = web::router(self.app.clone(), options);
            let shares = Shares::new(http.connections_per_client);
            let limits = ConnectionLimits { max_connections, shares, proxies: http.trust_proxy.clone() };
            accept(self.app, "http", Door::new(router, limits, self.stopping.clone()), listener);
        }
        if let Some(listener) = self.metrics_listener {
            let text = move || {
                let render = render.clone();
                async move { ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], render()) }
            };
            let router = Router::new().route("/metrics", get(text));
            let shares = Shares::new(MAX_COLLECTORS);
            let limits = ConnectionLimits {
                max_connections: MAX_COLLECTORS as usize,
                shares,
                proxies: web::Proxies::None,
            };
            accept(self.app, "metrics-http", Door::new(router, limits, self.stopping), listener);
        }
    }
}

/// Accepts connections. The listener is kept open across a worker's restart: clients wait in the backlog meanwhile.
fn accept(app: &App, name: &'static str, door: Door, listener: TcpListener) {
    let (door, listener) = (Arc::new(door), Arc::new(listener));
    app.supervisor().start(name, move || door.clone().serve(listener.clone()));
}

/// Shuts down all connections, outgoing ones too, and waits for them until a timeout or a second signal.
async fn drain(stop: watch::Sender<bool>, signals: &mut Signals, app: &App) {
    app.end_waits();
    // No receivers left is fine.
    let _ = stop.send(true);
    let ended = async { tokio::join!(stop.closed(), operations::sending::worker::finish(app)) };
    tokio::select! {
        _ = ended => {}
        () = tokio::time::sleep(DRAIN_TIMEOUT) => tracing::warn!("calls not finished in time; cutting them off"),
        _ = signals.next() => tracing::warn!("second signal received; cutting off calls in flight"),
    }
}

/// Stores what is only in memory.
async fn close(app: &App) {
    let last = async {
        if let Err(error) = app.store_key_uses().await {
            tracing::warn!(%error, "storing the uses of keys failed; giving up");
        }
        operations::nodes::withdraw(app).await;
        app.meter().close().await;
        if let Err(error) = app.db().index_texts().await {
            tracing::warn!(%error, "indexing the last messages failed; retrying at the next start");
        }
    };
    if tokio::time::timeout(CLOSE_TIMEOUT, last).await.is_err() {
        tracing::warn!("last figures not stored in time; giving up");
    }
}

/// The signals that end the process.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        let listen =
            |kind| signal(kind).map_err(|error| Failure::new(format!("Cannot listen for signals: {error}")));
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
