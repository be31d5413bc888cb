//! The sections of the configuration, checked, one per part of the program.
//!
//! `Debug` of what may hold a secret does not show it.

use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

use mail::scan::clamd::ClamdAddress;
use model::sending::OutboundMode;
use store::vault::MasterKey;
use url::Url;

/// How HTTP is served.
#[derive(Clone, Debug)]
pub struct Http {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The URL that users see, if given, without a trailing slash.
    pub public_url: Option<String>,
    /// Unauthenticated requests per client address and minute.
    pub anonymous_rpm: u64,
    /// Origins that may call the API from a browser.
    pub cors_origins: Vec<String>,
    /// Whether /metrics is served on this listener too, wherever it listens.
    pub metrics: bool,
    /// A separate listener for /metrics.
    pub metrics_listen: Option<SocketAddr>,
    /// The trusted proxies in front.
    pub trust_proxy: web::Proxies,
    /// Maximum open connections.
    pub max_connections: usize,
    /// Maximum open connections per client.
    pub connections_per_client: u32,
}

impl Http {
    /// Whether /metrics is served on the main listener: if that is local, or if configured.
    pub fn shows_metrics(&self) -> bool {
        let private = self.listen.ip().to_canonical().is_loopback();
        self.metrics || (private && self.metrics_listen.is_none())
    }

    /// Whether the listener can be reached from other machines.
    pub fn is_public(&self) -> bool {
        let is_proxied = !matches!(self.trust_proxy, web::Proxies::None);
        !self.listen.ip().to_canonical().is_loopback() || self.public_url.is_some() || is_proxied
    }
}

/// How mail is received.
#[derive(Clone, Debug)]
pub struct Smtp {
    /// SMTP listeners.
    pub listen: SocketAddr,
    /// LMTP listeners.
    pub lmtp_listen: Option<SocketAddr>,
    /// The host name, if given, in A-labels.
    pub hostname: Option<String>,
    /// The largest message in bytes.
    pub max_message_bytes: usize,
    /// Connections per client address and minute.
    pub connections_per_minute: u32,
    /// Maximum open connections per client address.
    pub connections_per_address: u32,
    /// Maximum open connections.
    pub max_connections: usize,
    /// The certificate for STARTTLS and its key as absolute paths, if given.
    pub tls: Option<TlsFiles>,
}

/// How received mail is processed.
#[derive(Clone, Debug)]
pub struct Inbound {
    /// Whether senders are authenticated.
    pub verify_senders: bool,
    /// The name servers for that, for custom domains and for webhooks; empty for the system's.
    pub dns_servers: Vec<SocketAddr>,
    /// The secret that signs requests to the HTTP hook.
    pub http_secret: Option<String>,
    /// The virus scanner.
    pub clamd: Option<ClamdAddress>,
    /// Absolute paths of lists of blocked links.
    pub blocklists: Vec<PathBuf>,
}

/// How mail is sent.
#[derive(Clone, Debug)]
pub struct Outbound {
    /// The transport.
    pub mode: OutboundMode,
    /// The smarthost, if the transport is one.
    pub relay_url: Option<Url>,
    /// Messages per connection to it.
    pub messages_per_connection: u32,
    /// How long a send request waits for the delivery result.
    pub send_window: Duration,
    /// How long delivery of a message is retried.
    pub retry_seconds: i64,
    /// Whether hosts with private addresses and relays without TLS are allowed.
    pub allow_private: bool,
    /// The port of MX hosts.
    pub port: u16,
    /// The name servers for MX hosts; empty for the system's.
    pub dns_servers: Vec<SocketAddr>,
}

/// The embedding model, and its uses.
#[derive(Clone, Debug)]
pub struct Embeddings {
    /// The provider of embeddings.
    pub provider: EmbeddingsProvider,
    /// Whether messages are indexed into memory.
    pub mail: bool,
    /// Maximum bytes of indexes in memory.
    pub cache_bytes: usize,
}

/// The provider of embeddings.
#[derive(Clone)]
pub enum EmbeddingsProvider {
    /// Nothing.
    None,
    /// The built-in model.
    Local,
    /// An HTTP endpoint.
    Http(adapters::embeddings::EmbedderSettings),
}

impl fmt::Debug for EmbeddingsProvider {
    /// Without the URL and the key, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Local => "Local",
            Self::Http(_) => "Http",
        })
    }
}

/// Payments for the keyless interface.
#[derive(Clone, Debug)]
pub struct Payments {
    /// Terms and prices.
    pub settings: operations::payments::PaymentSettings,
    /// The facilitator; `None` for the ledger.
    pub facilitator: Option<Facilitator>,
}

/// A facilitator and its client's options.
#[derive(Clone)]
pub struct Facilitator {
    /// Its URL.
    pub url: Url,
    /// Headers of every request to it.
    pub headers: Vec<(String, String)>,
    /// Timeout for its responses.
    pub time_limit: Duration,
}

impl fmt::Debug for Facilitator {
    /// Without the headers, which hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facilitator").field("time_limit", &self.time_limit).finish_non_exhaustive()
    }
}

/// A Telegram bot.
#[derive(Clone)]
pub struct Telegram {
    /// Its token.
    pub token: String,
    /// The URL of its server.
    pub api_base: Url,
    /// How it receives updates.
    pub hearing: operations::BotUpdates,
}

impl fmt::Debug for Telegram {
    /// Without the token and the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telegram").finish_non_exhaustive()
    }
}

/// A certificate and its key, as PEM files.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate, followed by its chain.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Where the master key comes from.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// The configuration holds it.
    Given(MasterKey),
    /// A file holds it.
    File(PathBuf),
}

/// What is logged, and in which format.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    /// One JSON object per line, instead of text.
    pub json: bool,
    /// The lowest level that is logged.
    pub level: tracing::Level,
}

/// Trace export.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "opentelemetry"),
    expect(dead_code, reason = "without the feature it is only checked")
)]
pub struct Telemetry {
    /// The URL of a collector that takes OTLP over HTTP.
    pub endpoint: Url,
    /// The name of this service there.
    pub service_name: String,
}
