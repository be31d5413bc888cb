//! All options, checked, and what other parts of the program derive from them.

use std::{net::SocketAddr, path::PathBuf};

use model::{Plan, Plans};
use store::{DatabaseLocation, blobs::BlobLocation};

use super::sections::{
    Embeddings, Http, Inbound, KeySource, Log, Outbound, Payments, Smtp, Telegram, Telemetry,
};

/// All options, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder for everything that is not stored elsewhere, absolute.
    pub data_dir: PathBuf,
    /// The domains of hosted addresses.
    pub hosted_domains: Vec<String>,
    /// Who can sign up.
    pub open_sign_up: bool,
    /// Whether an address must be verified before it gets an account.
    pub sign_up_verify: bool,
    /// The plan of the first account's workspace.
    pub operator_plan: Plan,
    /// The HTTP listener.
    pub http: Http,
    /// Limits of the console.
    pub console: web::ConsoleLimits,
    /// How mail is received.
    pub smtp: Smtp,
    /// How received mail is processed.
    pub inbound: Inbound,
    /// The relational store.
    pub database: DatabaseLocation,
    /// The blob store.
    pub blobs: BlobLocation,
    /// Where the master key comes from.
    pub master_key: KeySource,
    /// How mail is sent.
    pub outbound: Outbound,
    /// What the operator decides about send policies and reviews.
    pub send_policy: operations::SendPolicySettings,
    /// The terms for the SPF record of a custom domain, if given.
    pub domains_spf: Option<String>,
    /// Whether webhooks may call private addresses.
    pub webhooks_allow_private: bool,
    /// The language model, if there is one.
    pub ai: Option<adapters::language_model::AssistantSettings>,
    /// The embedding model.
    pub embeddings: Embeddings,
    /// The keyless interface.
    pub payments: Payments,
    /// The Telegram bot, if there is one.
    pub telegram: Option<Telegram>,
    /// Days until a deleted mailbox is purged.
    pub grace_days: i64,
    /// An affiliate's share of a price.
    pub affiliate_percent: i64,
    /// The currency of prices.
    pub currency: String,
    /// Logging.
    pub log: Log,
    /// Trace export, if configured.
    pub telemetry: Option<Telemetry>,
    /// The limits of the plans.
    pub plans: Plans,
}

impl Config {
    /// The settings of operations.
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
            operator_plan: self.operator_plan,
            outbound: operations::Outbound {
                mode: self.outbound.mode,
                send_window: self.outbound.send_window,
                retry_seconds: self.outbound.retry_seconds,
            },
            send_policy: self.send_policy.clone(),
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

    /// The URL that users see when the listener is bound to `bound`.
    pub fn public_url(&self, bound: SocketAddr) -> String {
        if let Some(url) = &self.http.public_url {
            return url.clone();
        }
        let host = match bound.ip() {
            // An unspecified address cannot be opened; the loopback address can.
            ip if ip.is_unspecified() => "127.0.0.1".to_owned(),
            std::net::IpAddr::V4(ip) => ip.to_string(),
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
        };
        format!("http://{host}:{}", bound.port())
    }
    /// The host name: as configured, or the system's if it has a domain, or the first hosted domain.
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
