//! The configuration: defaults, then a TOML file, then the environment, then the command line.
//!
//! The defaults are `config.default.toml` at the root of the repository, compiled in; what is not in there is not an
//! option. All mistakes are reported together, each with its key and where it was written.

mod check;
mod layers;
mod places;
mod show;
mod suggest;
#[cfg(test)]
mod tests;

use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

use mail::scan::clamd::ClamdAddress;
use model::{Plans, sending::OutboundMode};
use store::{DatabaseLocation, blobs::BlobLocation, vault::MasterKey};
use url::Url;

use self::{check::Reader, layers::Layers};
pub use self::{layers::Sources, show::show};

/// Everything that can be configured, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder for everything that is not kept elsewhere, absolute.
    pub data_dir: PathBuf,
    /// The domains that hosted addresses live on.
    pub hosted_domains: Vec<String>,
    /// Whether anybody may sign up.
    pub open_sign_up: bool,
    /// Whether an address has to be verified before it gets an account.
    pub sign_up_verify: bool,
    /// The HTTP listener.
    pub http: Http,
    /// How much of the console one may see at a time.
    pub console: web::ConsoleLimits,
    /// How mail arrives.
    pub smtp: Smtp,
    /// What is done with it then.
    pub inbound: Inbound,
    /// The relational store.
    pub database: DatabaseLocation,
    /// The blob store.
    pub blobs: BlobLocation,
    /// Where the master key comes from.
    pub master_key: KeySource,
    /// How mail leaves.
    pub outbound: Outbound,
    /// The terms that the SPF record of a custom domain needs, if they were given.
    pub domains_spf: Option<String>,
    /// Whether webhooks may lead to private addresses.
    pub webhooks_allow_private: bool,
    /// The language model, if there is one.
    pub ai: Option<web::AssistantSettings>,
    /// What makes vectors of texts.
    pub embeddings: Embeddings,
    /// The keyless interface.
    pub payments: Payments,
    /// The Telegram bot, if there is one.
    pub telegram: Option<Telegram>,
    /// Days until a deleted mailbox is gone for good.
    pub grace_days: i64,
    /// The share of a price that an affiliate earns.
    pub affiliate_percent: i64,
    /// The currency of prices.
    pub currency: String,
    /// Logging.
    pub log: Log,
    /// Where traces go, if anywhere.
    pub telemetry: Option<Telemetry>,
    /// The limits of the plans.
    pub plans: Plans,
}

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
    /// Mails over one connection to it.
    pub mails_per_connection: u32,
    /// How long a send waits for other servers.
    pub send_window: Duration,
    /// How long a mail is tried.
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
    Http(web::EmbedderSettings),
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
    pub hearing: operations::telegram::Hearing,
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

/// One mistake in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The option, or what was written in its stead; empty when a whole file is at fault.
    pub key: String,
    /// Where it was written.
    pub origin: String,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            return write!(f, "{}: {}", self.origin, self.message);
        }
        write!(f, "{} ({}): {}", self.key, self.origin, self.message)
    }
}

impl Config {
    /// Reads the configuration, or tells everything that is wrong with it.
    pub fn load(sources: &Sources) -> Result<Self, Vec<Problem>> {
        let layers = Layers::load(sources);
        let mut reader = Reader::new(&layers);
        let config = reader.config(sources);
        let problems = reader.into_problems();
        if problems.is_empty() { config.ok_or_else(Vec::new) } else { Err(problems) }
    }

    /// What operations need to know.
    pub fn settings(&self) -> operations::Settings {
        let (blob_provider, blob_bucket) = match &self.blobs {
            BlobLocation::Directory(path) => {
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
                ("local", name.unwrap_or_default())
            }
            BlobLocation::S3(settings) => ("s3", settings.bucket_name().to_owned()),
        };
        let hostname = crate::smtp::hostname(self);
        operations::Settings {
            plans: self.plans.clone(),
            hosted_domains: self.hosted_domains.clone(),
            public_url: self.public_url(self.http.listen),
            sign_up: operations::SignUpPolicy {
                open: self.open_sign_up,
                verify: self.sign_up_verify,
                first_account_code: self.http.is_public(),
            },
            outbound: operations::Outbound {
                mode: self.outbound.mode,
                send_window: self.outbound.send_window,
                retry_seconds: self.outbound.retry_seconds,
            },
            receives_mail: true,
            mailbox_grace_seconds: self.grace_days * 24 * 3600,
            affiliate_percent: self.affiliate_percent,
            currency: self.currency.clone(),
            blob_provider: blob_provider.to_owned(),
            blob_bucket,
            anonymous_rpm: self.http.anonymous_rpm,
            spf_mechanisms: self.domains_spf.clone().unwrap_or_else(|| format!("a:{hostname}")),
            webhooks_allow_private: self.webhooks_allow_private,
            payments: self.payments.settings.clone(),
            memory: operations::memory::MemorySettings {
                mail: self.embeddings.mail,
                cache_bytes: self.embeddings.cache_bytes,
            },
            telegram: self.telegram.as_ref().map(|telegram| telegram.hearing.clone()).unwrap_or_default(),
            hostname,
            max_message_bytes: self.smtp.max_message_bytes as u64,
            inbound_secret: self.inbound.http_secret.clone(),
        }
    }

    /// The address that users see when the listener is bound to `bound`.
    pub fn public_url(&self, bound: SocketAddr) -> String {
        if let Some(url) = &self.http.public_url {
            return url.clone();
        }
        let host = match bound.ip() {
            // Listening everywhere is not an address to go to; this machine always is.
            ip if ip.is_unspecified() => "127.0.0.1".to_owned(),
            std::net::IpAddr::V4(ip) => ip.to_string(),
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
        };
        format!("http://{host}:{}", bound.port())
    }
}
