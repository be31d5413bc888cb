//! Opens what the configuration names: the data folder, the key, the stores, and the service on top of them.

use std::{ffi::OsStr, fs::DirBuilder, os::unix::fs::DirBuilderExt, path::Path, sync::Arc};

use adapters::{
    embeddings::HttpEmbedder,
    facilitator::HttpFacilitator,
    language_model::HttpAssistant,
    smtp::{Direct, DirectError, DirectSettings, Relay, RelaySettings},
    telegram::HttpBot,
    webhook_http::OutgoingHttp,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use mail::{authentication::Authenticator, dns::Dns};
use model::sending::OutboundMode;
use operations::{
    App, AppParts, DatabaseClock, HashingCost, Scanning, Settings,
    memory::LocalEmbedder,
    ports::{self, Clock, SystemClock, SystemEntropy},
};
use store::{
    DatabaseLocation, Db,
    blobs::{BlobLocation, Blobs},
    system,
    vault::MasterKey,
    workspaces,
};

use crate::{
    config::{Config, EmbeddingsProvider, KeySource},
    failure::{Failure, Result},
    faults,
};

/// Creates a folder that only its owner may enter, if it is missing.
pub fn make_private_folder(path: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| {
        Failure::new(format!("Cannot create the folder {}: {error}", path.display()))
            .with_fix("Create it yourself, or choose another folder with --data-dir.")
    })
}

/// The master key. Its file is created if it is missing.
pub async fn master_key(source: &KeySource) -> Result<MasterKey> {
    match source.clone() {
        KeySource::Given(key) => Ok(key),
        KeySource::File(path) => blocking(move || Ok(MasterKey::load_or_create(&path)?)).await,
    }
}

/// The existing master key.
pub async fn existing_master_key(source: &KeySource) -> Result<MasterKey> {
    if let KeySource::File(path) = source
        && !path.exists()
    {
        return Err(Failure::new(format!("There is no master key at {}", path.display())).with_fix(
            "Put the key of this data there, readable by its owner only, or name the right folder with --data-dir.",
        ));
    }
    master_key(source).await
}

/// The master key of a store. Only an empty store may get a new one, from the process that creates it: with another key
/// old data could not be read, and new data not once the right key is back.
async fn key_of(db: &Db, source: &KeySource, makes_key: bool) -> Result<MasterKey> {
    let first = db.system_read(async |tx| system::workspaces_after(tx, "", 1).await).await?;
    let Some(workspace) = first.first() else {
        return if makes_key { master_key(source).await } else { existing_master_key(source).await };
    };
    let key = existing_master_key(source).await?;
    let record = db.read(workspace, async |tx| workspaces::find(tx).await).await?;
    let opens = |wrapped: &[u8]| key.unwrap_key(workspace.as_str(), wrapped).is_ok();
    if record.is_some_and(|record| !opens(&record.data_key)) {
        return Err(Failure::new("This is not the master key that the data was made with")
            .with_fix("Put the right key in its place; `agent-mailbox doctor` says more."));
    }
    Ok(key)
}

/// Who may create a store that does not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Creation {
    /// The server does.
    Allowed,
    /// A command does in a new folder, if the database is empty too.
    InNewFolder,
    /// Other commands do not: most often the folder is mistyped.
    Refused,
}

/// Opens the existing store next to a running server, for one command.
pub async fn attach(config: &Config) -> Result<App> {
    require_store(config)?;
    Ok(App::attach(parts(config, config.settings(), Creation::Refused).await?))
}

/// As `attach`, and creates the store if the data folder exists and is empty: then the operator created it on purpose.
pub async fn attach_or_create(config: &Config) -> Result<App> {
    if !is_new_folder(&config.data_dir) {
        return attach(config).await;
    }
    Ok(App::attach(parts(config, config.settings(), Creation::InNewFolder).await?))
}

/// Opens the service for serving. Creates the store if it does not exist.
pub async fn start(config: &Config, settings: Settings) -> Result<App> {
    let parts = parts(config, settings, Creation::Allowed).await?;
    Ok(App::start(parts, &config.data_dir.join("spending")).await?)
}

/// Fails if the files of the store do not exist, and writes nothing.
pub fn require_store(config: &Config) -> Result<()> {
    let missing = match (&config.database, &config.blobs) {
        (DatabaseLocation::Sqlite(path), _) => !path.metadata().is_ok_and(|about| about.len() > 0),
        (DatabaseLocation::Postgres(_), BlobLocation::Directory(path)) => !path.is_dir(),
        (DatabaseLocation::Postgres(_), BlobLocation::S3(_)) => false,
    };
    if missing { Err(no_store(config)) } else { Ok(()) }
}

/// There is no store where a command needs one.
fn no_store(config: &Config) -> Failure {
    let folder = config.data_dir.display();
    let message = match (&config.database, config.data_dir.exists()) {
        (DatabaseLocation::Postgres(_), _) => {
            format!("There is no Agent Mailbox store in the database, or its files are not in {folder}")
        }
        (DatabaseLocation::Sqlite(_), true) => format!("There is no Agent Mailbox store in {folder}"),
        (DatabaseLocation::Sqlite(_), false) => {
            format!("There is no Agent Mailbox store in {folder}: the folder does not exist")
        }
    };
    let fix = "Name the right folder with --data-dir, or start the server there first: its first start creates the store.";
    Failure::new(message).with_code("no_store").with_fix(fix)
}

/// Whether a folder exists and holds nothing, or nothing but a master key that was put there beforehand and what a new
/// file system has at its root.
fn is_new_folder(folder: &Path) -> bool {
    let is_expected = |name: &OsStr| name == "master.key" || name == "lost+found";
    std::fs::read_dir(folder).is_ok_and(|entries| {
        entries.into_iter().all(|entry| entry.is_ok_and(|entry| is_expected(&entry.file_name())))
    })
}

async fn parts(config: &Config, settings: Settings, creation: Creation) -> Result<AppParts> {
    let db = Db::open(&config.database).await?;
    let is_new = db.schema_version().await? == 0;
    if is_new && creation == Creation::Refused {
        return Err(no_store(config));
    }
    db.migrate(SystemClock.now()).await?;
    let makes_key = creation == Creation::Allowed || is_new;
    let master_key = key_of(&db, &config.master_key, makes_key).await?;
    let blobs = Blobs::open(&config.blobs).await?;
    let inbound = &config.inbound;
    let (files, clamd) = (inbound.blocklists.clone(), inbound.clamd.clone());
    let scanning = blocking(move || Ok(Scanning::new(files, clamd))).await?;
    let authenticator = if inbound.verify_senders { Some(authenticator(config)?) } else { None };
    let dns = Dns::without_cache(&inbound.dns_servers)
        .inspect_err(
            |error| tracing::warn!(error = %model::causes(error), "DNS resolver not available; custom domains cannot be verified; operator action needed"),
        )
        .ok();
    // Webhooks' host names are resolved by the system, unless name servers are configured.
    let for_webhooks = dns.clone().filter(|_| !inbound.dns_servers.is_empty());
    let http = Box::new(OutgoingHttp::new(for_webhooks, config.webhooks_allow_private));
    let (clock, entropy) = (DatabaseClock::start(&db, Arc::new(SystemClock)).await?, Box::new(SystemEntropy));
    let next_hop = next_hop(config)?;
    let facilitator = facilitator(config)?.map(|http| Box::new(http) as Box<dyn ports::Facilitator>);
    Ok(AppParts {
        db,
        blobs,
        master_key,
        clock,
        entropy,
        settings,
        scanning,
        authenticator,
        dns,
        http,
        next_hop,
        facilitator,
        assistant: config.ai.clone().map(|ai| Arc::new(HttpAssistant::new(ai)) as Arc<dyn ports::Assistant>),
        embedder: embedder(config),
        hashing_cost: HashingCost::default(),
        restarts: faults::restart_policy(),
        bot: config.telegram.as_ref().map(|telegram| {
            Box::new(HttpBot::new(&telegram.api_base, &telegram.token)) as Box<dyn ports::BotApi>
        }),
    })
}

/// The next hop for messages to other servers, if there is one.
fn next_hop(config: &Config) -> Result<Option<Box<dyn ports::NextHop>>> {
    Ok(match config.outbound.mode {
        OutboundMode::Local | OutboundMode::Sandbox => None,
        OutboundMode::Relay => Some(Box::new(relay(config)?)),
        OutboundMode::Direct => Some(Box::new(direct(config)?)),
    })
}

fn relay(config: &Config) -> Result<Relay> {
    let outbound = &config.outbound;
    let url = outbound.relay_url.clone().ok_or_else(|| {
        Failure::new("outbound.relay_url is missing")
            .with_fix("Set it, such as smtp://user:password@relay.example:587.")
    })?;
    let settings = RelaySettings {
        url,
        hello: config.hostname(),
        allow_plain: outbound.allow_private,
        max_messages: outbound.messages_per_connection,
    };
    Relay::new(settings).map_err(|error| Failure::new(error.to_string()))
}

fn direct(config: &Config) -> Result<Direct> {
    let outbound = &config.outbound;
    let settings = DirectSettings {
        hello: config.hostname(),
        port: outbound.port,
        allow_private: outbound.allow_private,
        dns_servers: outbound.dns_servers.clone(),
    };
    Direct::new(settings).map_err(|error| match error {
        DirectError::Resolver(error) => {
            Failure::new(format!("Mail servers cannot be found: {}", model::causes(&error)))
                .with_fix("Name DNS servers in outbound.dns_servers.")
        }
        DirectError::Tls(error) => Failure::new(error.to_string()),
    })
}

/// The configured provider of embeddings.
fn embedder(config: &Config) -> Option<Arc<dyn ports::Embedder>> {
    match &config.embeddings.provider {
        EmbeddingsProvider::None => None,
        EmbeddingsProvider::Local => Some(Arc::new(LocalEmbedder::default())),
        EmbeddingsProvider::Http(settings) => Some(Arc::new(HttpEmbedder::new(settings.clone()))),
    }
}

/// The client of the configured facilitator; `None` for the ledger.
fn facilitator(config: &Config) -> Result<Option<HttpFacilitator>> {
    let Some(given) = &config.payments.facilitator else { return Ok(None) };
    let mut headers = HeaderMap::new();
    for (name, value) in &given.headers {
        let (name, value) = (HeaderName::try_from(name), HeaderValue::from_str(value));
        let (Ok(name), Ok(mut value)) = (name, value) else {
            return Err(Failure::new("A header for the payment facilitator is not valid")
                .with_fix("Write each of payments.facilitator_headers as \"Name: value\"."));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(Some(HttpFacilitator::new(given.url.clone(), headers, given.time_limit)))
}

/// Asks the facilitator, with a few retries, whether it settles on the configured network.
pub async fn check_facilitator(config: &Config) -> Result<()> {
    let Some(facilitator) = facilitator(config)? else { return Ok(()) };
    let network = &config.payments.settings.terms.network;
    let mut attempts = 0;
    loop {
        attempts += 1;
        match facilitator.check_support(network).await {
            Ok(()) => return Ok(()),
            Err(reason) if attempts == 3 => {
                return Err(Failure::new(format!("The payment facilitator cannot be used: {reason}"))
                    .with_fix("Check payments.facilitator, its headers and payments.network."));
            }
            Err(_) => tokio::time::sleep(std::time::Duration::from_secs(1)).await,
        }
    }
}

fn authenticator(config: &Config) -> Result<Authenticator> {
    let servers = &config.inbound.dns_servers;
    let made =
        if servers.is_empty() { Authenticator::from_system() } else { Authenticator::with_servers(servers) };
    made.map_err(|error| {
        Failure::new(format!("Senders cannot be verified: {}", model::causes(&error)))
            .with_fix("Name DNS servers in inbound.dns_servers.")
    })
}

/// Runs blocking work on a thread for it.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(Failure::new("The work was interrupted")))
}
