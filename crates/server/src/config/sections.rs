//! The sections of the configuration, checked: what each part of the program is told.
//!
//! What may hold a secret shows none of it in its debugging form.

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
    /// The address that users see, if it was given, without a slash at the end.
    pub public_url: Option<String>,
    /// Requests without a credential for one client address and minute.
    pub anonymous_rpm: u64,
    /// Origins that browsers may call the API from.
    pub cors_origins: Vec<String>,
    /// Whether /metrics is shown with everything else, wherever that listens.
    pub metrics: bool,
    /// A listener for /metrics alone.
    pub metrics_listen: Option<SocketAddr>,
    /// The proxies in front that are believed about the client's address.
    pub trust_proxy: web::Proxies,
    /// Connections that are open at once.
    pub max_connections: usize,
    /// Connections of one client that are open at once.
    pub connections_per_client: u32,
}

impl Http {
    /// Whether /metrics is shown with everything else: where only this machine can see it, or where that is wanted.
    pub fn shows_metrics(&self) -> bool {
        let private = self.listen.ip().to_canonical().is_loopback();
        self.metrics || (private && self.metrics_listen.is_none())
    }

    /// Whether others than the people on this machine can be expected to reach the listener.
    pub fn is_public(&self) -> bool {
        let is_proxied = !matches!(self.trust_proxy, web::Proxies::None);
        !self.listen.ip().to_canonical().is_loopback() || self.public_url.is_some() || is_proxied
    }
}

/// How mail is received.
#[derive(Clone, Debug)]
pub struct Smtp {
    /// Where SMTP is spoken.
    pub listen: SocketAddr,
    /// Where LMTP is spoken.
    pub lmtp_listen: Option<SocketAddr>,
    /// The name of this host, if it was given, in A-labels.
    pub hostname: Option<String>,
    /// The largest message in bytes.
    pub max_message_bytes: usize,
    /// Connections for one client address and minute.
    pub connections_per_minute: u32,
    /// Connections that one client address may have open at once.
    pub connections_per_address: u32,
    /// Connections that are open at once.
    pub max_connections: usize,
    /// The certificate for STARTTLS and its key, absolute, if they were given.
    pub tls: Option<TlsFiles>,
}

/// What is done with arriving mail.
#[derive(Clone, Debug)]
pub struct Inbound {
    /// Whether senders are checked.
    pub verify_senders: bool,
    /// The name servers for that, for custom domains and for webhooks; empty for the system's.
    pub dns_servers: Vec<SocketAddr>,
    /// What requests to the HTTP hook are signed with.
    pub http_secret: Option<String>,
    /// The virus scanner.
    pub clamd: Option<ClamdAddress>,
    /// Files of links that are blocked, absolute.
    pub blocklists: Vec<PathBuf>,
}

/// How mail leaves.
#[derive(Clone, Debug)]
pub struct Outbound {
    /// The way.
    pub mode: OutboundMode,
    /// The smarthost, if the way is one.
    pub relay_url: Option<Url>,
    /// Messages over one connection to it.
    pub mails_per_connection: u32,
    /// How long a send waits for other servers.
    pub send_window: Duration,
    /// How long a message is tried.
    pub retry_seconds: i64,
    /// Whether hosts with private addresses and relays without TLS are used.
    pub allow_private: bool,
    /// The port of MX hosts.
    pub port: u16,
    /// The name servers for MX hosts; empty for the system's.
    pub dns_servers: Vec<SocketAddr>,
}

/// What makes vectors of texts, and what for.
#[derive(Clone, Debug)]
pub struct Embeddings {
    /// What makes them.
    pub provider: EmbeddingsProvider,
    /// Whether mail is taken into memory.
    pub mail: bool,
    /// Bytes that indexes may take in memory.
    pub cache_bytes: usize,
}

/// What makes vectors of texts.
#[derive(Clone)]
pub enum EmbeddingsProvider {
    /// Nothing.
    None,
    /// The model inside of this program.
    Local,
    /// An endpoint.
    Http(adapters::embeddings::EmbedderSettings),
}

impl fmt::Debug for EmbeddingsProvider {
    /// Without the address and the key, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Local => "Local",
            Self::Http(_) => "Http",
        })
    }
}

/// How the keyless interface is paid.
#[derive(Clone, Debug)]
pub struct Payments {
    /// Terms and prices.
    pub settings: operations::payments::PaymentSettings,
    /// Who settles; nothing for the ledger.
    pub facilitator: Option<Facilitator>,
}

/// A facilitator and how it is called.
#[derive(Clone)]
pub struct Facilitator {
    /// Its address.
    pub url: Url,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
    /// How long an answer may take.
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
    /// Where its server is.
    pub api_base: Url,
    /// How it hears of what happens in its chats.
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
    /// The certificate, followed by those above it.
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

/// What is logged, and how.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    /// One JSON object a line, instead of text for people.
    pub json: bool,
    /// The least important lines that are written.
    pub level: tracing::Level,
}

/// Where traces go.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "opentelemetry"),
    expect(dead_code, reason = "without the feature it is only checked")
)]
pub struct Telemetry {
    /// The address of a collector that speaks OTLP over HTTP.
    pub endpoint: Url,
    /// What this service is called there.
    pub service_name: String,
}
