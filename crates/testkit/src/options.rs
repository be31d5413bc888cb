//! The options of a test's service.

use std::{sync::Arc, time::Duration};

use adapters::language_model::AssistantSettings;
use mail::scan::clamd::ClamdAddress;
use model::{Limit, Plan, Plans, sending::OutboundMode};
use operations::{
    BotUpdates, HashingCost, MemorySettings, Outbound, SendPolicySettings, SignUpPolicy,
    memory::LocalEmbedder, payments::PaymentSettings, ports,
};

use crate::{hop::Hop, model::ScriptedModel};

/// The options of a test's service, where they differ from the defaults.
#[derive(Clone)]
pub struct ServerOptions {
    /// The limits of the plans.
    pub plans: Plans,
    /// Who can sign up, and the requirements.
    pub sign_up: SignUpPolicy,
    /// The plan of the first account that signs up: Free, so that tests about limits meet them.
    pub operator_plan: Plan,
    /// The public URL.
    pub public_url: String,
    /// Unauthenticated requests per minute.
    pub anonymous_rpm: u64,
    /// The seed of the random numbers.
    pub seed: u64,
    /// Whether the server receives mail.
    pub receives_mail: bool,
    /// How long a deleted mailbox is kept.
    pub mailbox_grace_seconds: i64,
    /// The secret of the HTTP hook for mail.
    pub inbound_secret: Option<String>,
    /// Lists of blocked links.
    pub blocklists: Vec<std::path::PathBuf>,
    /// The virus scanner.
    pub clamd: Option<ClamdAddress>,
    /// Name servers for custom domains and webhooks; empty for no resolver.
    pub dns_servers: Vec<std::net::SocketAddr>,
    /// Whether webhooks may call this host.
    pub webhooks_allow_private: bool,
    /// Timeout of a webhook.
    pub webhook_time_limit: Duration,
    /// The bucket of the blobs, as in the configuration; `None` for a folder.
    pub bucket: Option<String>,
    /// How mail is sent.
    pub outbound: Outbound,
    /// What the operator decides about send policies and reviews.
    pub send_policy: SendPolicySettings,
    /// The next hop for other servers.
    pub next_hop: Option<Hop>,
    /// Prices of the keyless interface.
    pub payments: PaymentSettings,
    /// The URL of the facilitator, and its timeout; `None` for the ledger.
    pub facilitator: Option<(url::Url, Duration)>,
    /// The language model.
    pub assistant: Option<ScriptedModel>,
    /// The endpoint of a language model, if there is no scripted one.
    pub model_endpoint: Option<Box<AssistantSettings>>,
    /// The embedder.
    pub embedder: Option<Arc<dyn ports::Embedder>>,
    /// What is indexed into memory.
    pub memory: MemorySettings,
    /// The URL of the chat bot's server, and how it gets updates; `None` for no bot.
    pub telegram: Option<(url::Url, BotUpdates)>,
    /// Whether background work runs by itself, such as writing usage; otherwise the test triggers it.
    pub background: bool,
    /// The options of the HTTP doors.
    pub web: web::Options,
    /// The cost of hashing a password: minimal, unless a test is about it.
    pub hashing_cost: HashingCost,
}

impl Default for ServerOptions {
    fn default() -> Self {
        let config: toml::Table = include_str!("../../../config.default.toml").parse().unwrap();
        let mut plans: Plans = config["plans"].clone().try_into().unwrap();
        // Most tests make more calls per minute than the smaller plans allow; those about limits set their own.
        for limits in [&mut plans.free, &mut plans.developer] {
            limits.rpm = Limit::of(100_000);
        }
        // What a person sends leaves at once, unless a test is about undoing that.
        let console = web::ConsoleLimits { undo_send_seconds: 0, ..web::ConsoleLimits::default() };
        Self {
            plans,
            sign_up: SignUpPolicy::default(),
            operator_plan: Plan::Free,
            public_url: "http://mail.test".to_owned(),
            anonymous_rpm: 100_000,
            seed: 1,
            receives_mail: true,
            mailbox_grace_seconds: 7 * 86_400,
            inbound_secret: None,
            blocklists: Vec::new(),
            clamd: None,
            dns_servers: Vec::new(),
            webhooks_allow_private: false,
            webhook_time_limit: Duration::from_secs(10),
            bucket: None,
            outbound: Outbound::new(OutboundMode::Local),
            send_policy: SendPolicySettings::default(),
            next_hop: None,
            payments: PaymentSettings { wallet_rpm: 100_000, ..PaymentSettings::default() },
            facilitator: None,
            assistant: None,
            model_endpoint: None,
            embedder: Some(Arc::new(LocalEmbedder::default())),
            memory: MemorySettings::default(),
            telegram: None,
            background: true,
            web: web::Options { doors: vec![mcp::door], console, ..web::Options::default() },
            hashing_cost: HashingCost::MIN,
        }
    }
}
