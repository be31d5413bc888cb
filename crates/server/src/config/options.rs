//! Everything that can be configured, checked, and what follows from it for the rest of the program.

use std::{net::SocketAddr, path::PathBuf};

use model::Plans;
use store::{DatabaseLocation, blobs::BlobLocation};

use super::sections::{
    Embeddings, Http, Inbound, KeySource, Log, Outbound, Payments, Smtp, Telegram, Telemetry,
};

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
    pub ai: Option<adapters::language_model::AssistantSettings>,
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

impl Config {
    /// What operations need to know.
    pub fn settings(&self) -> operations::Settings {
        let (blob_provider, blob_bucket) = match &self.blobs {
            BlobLocation::Directory(path) => {
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
                ("local", name.unwrap_or_default())
            }
            BlobLocation::S3(settings) => ("s3", settings.bucket_name().to_owned()),
        };
        let hostname = self.hostname();
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
            memory: operations::MemorySettings {
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
    /// The name of this host: as configured, or the system's if it has a domain, or the first hosted domain.
    pub fn hostname(&self) -> String {
        let system = rustix::system::uname();
        let system = system.nodename().to_str().ok().filter(|name| name.contains('.'));
        let system =
            system.and_then(|name| mail::address::Address::parse(&format!("postmaster@{name}")).ok());
        let hosted = || self.hosted_domains.first().cloned();
        let found = self.smtp.hostname.clone().or_else(|| Some(system?.domain().to_owned())).or_else(hosted);
        found.unwrap_or_else(|| "localhost".to_owned())
    }
}
