//! What a test can want otherwise than usual of the service that it starts.

use std::{sync::Arc, time::Duration};

use adapters::language_model::AssistantSettings;
use mail::scan::clamd::ClamdAddress;
use model::{Limit, Plans, sending::OutboundMode};
use operations::{
    BotUpdates, HashingCost, MemorySettings, Outbound, SignUpPolicy, memory::LocalEmbedder,
    payments::PaymentSettings, ports,
};

use crate::{hop::Hop, model::ScriptedModel};

/// What a test wants other than the defaults.
#[derive(Clone)]
pub struct ServerOptions {
    /// The limits of the plans.
    pub plans: Plans,
    /// Who can sign up, and what it takes.
    pub sign_up: SignUpPolicy,
    /// The address of the service.
    pub public_url: String,
    /// Calls without a credential in a minute.
    pub anonymous_rpm: u64,
    /// What the random numbers start from.
    pub seed: u64,
    /// Whether the server takes mail in.
    pub receives_mail: bool,
    /// How long a deleted mailbox is kept.
    pub mailbox_grace_seconds: i64,
    /// What the HTTP hook for mail is signed with.
    pub inbound_secret: Option<String>,
    /// Files of links that are blocked.
    pub blocklists: Vec<std::path::PathBuf>,
    /// The virus scanner.
    pub clamd: Option<ClamdAddress>,
    /// Name servers for custom domains and webhooks; none for none.
    pub dns_servers: Vec<std::net::SocketAddr>,
    /// Whether webhooks may lead to this host.
    pub webhooks_allow_private: bool,
    /// How long a webhook may take.
    pub webhook_time_limit: Duration,
    /// How mail leaves.
    pub outbound: Outbound,
    /// Who takes mail for other servers.
    pub next_hop: Option<Hop>,
    /// What the keyless interface costs.
    pub payments: PaymentSettings,
    /// Where the facilitator is that settles payments, and how long it may take; nothing for the ledger.
    pub facilitator: Option<(url::Url, Duration)>,
    /// The language model.
    pub assistant: Option<ScriptedModel>,
    /// Where a language model is, if there is no scripted one.
    pub model_endpoint: Option<Box<AssistantSettings>>,
    /// What makes vectors of texts.
    pub embedder: Option<Arc<dyn ports::Embedder>>,
    /// What is taken into memory.
    pub memory: MemorySettings,
    /// Where the chat bot's server is, and how it hears of its chats; nothing for no bot.
    pub telegram: Option<(url::Url, BotUpdates)>,
    /// Whether work goes on by itself, such as settling what was spent; otherwise the test says when.
    pub background: bool,
    /// How the doors are set up.
    pub web: web::Options,
    /// What hashing a password costs: next to nothing, unless a test is about that.
    pub hashing_cost: HashingCost,
}

impl Default for ServerOptions {
    fn default() -> Self {
        let config: toml::Table = include_str!("../../../config.default.toml").parse().unwrap();
        let mut plans: Plans = config["plans"].clone().try_into().unwrap();
        // Most tests make more calls than a minute of the smaller plans allows; those about limits set their own.
        for limits in [&mut plans.free, &mut plans.developer] {
            limits.rpm = Limit::of(100_000);
        }
        Self {
            plans,
            sign_up: SignUpPolicy::default(),
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
            outbound: Outbound::new(OutboundMode::Local),
            next_hop: None,
            payments: PaymentSettings { wallet_rpm: 100_000, ..PaymentSettings::default() },
            facilitator: None,
            assistant: None,
            model_endpoint: None,
            embedder: Some(Arc::new(LocalEmbedder::default())),
            memory: MemorySettings::default(),
            telegram: None,
            background: true,
            web: web::Options { doors: vec![mcp::door], ..web::Options::default() },
            hashing_cost: HashingCost::LEAST,
        }
    }
}
