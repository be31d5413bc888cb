//! What the configuration says to operations, read and checked before anything starts.

use std::time::Duration;

use model::{Limit, Plans, sending::OutboundMode};
use pay::{Address, Terms};

/// What the configuration says to operations.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The limits of the plans.
    pub plans: Plans,
    /// The domains that hosted addresses live on; the first is the default.
    pub hosted_domains: Vec<String>,
    /// The address of the service as its users see it, without a slash at the end.
    pub public_url: String,
    /// Who can sign up, and what it takes.
    pub sign_up: SignUpPolicy,
    /// How mail leaves.
    pub outbound: Outbound,
    /// Whether this server takes mail in.
    pub receives_mail: bool,
    /// How long a deleted mailbox can still be brought back.
    pub mailbox_grace_seconds: i64,
    /// The share of a referred workspace's price that its affiliate earns.
    pub affiliate_percent: i64,
    /// The currency of prices.
    pub currency: String,
    /// Where blobs are kept: `local` or `s3`.
    pub blob_provider: String,
    /// The bucket or folder of the blob store.
    pub blob_bucket: String,
    /// Calls without a credential that one client address may make in a minute.
    pub anonymous_rpm: u64,
    /// The name of this server in mail.
    pub hostname: String,
    /// The largest message that is taken in.
    pub max_message_bytes: u64,
    /// What the HTTP hook for mail is signed with; nothing when there is no such hook.
    pub inbound_secret: Option<String>,
    /// The terms that the SPF record of a custom domain needs, so that this server may send for it.
    pub spf_mechanisms: String,
    /// Whether webhooks may lead to this host, private networks and any port.
    pub webhooks_allow_private: bool,
    /// What the keyless interface costs.
    pub payments: PaymentSettings,
    /// What is taken into memory, and how much of it is kept at hand.
    pub memory: MemorySettings,
    /// How the chat bot gets its updates.
    pub telegram: BotUpdates,
}

/// Who can sign up, and what it takes.
#[derive(Clone, Copy, Debug)]
pub struct SignUpPolicy {
    /// Whether anybody may sign up, or only invited people.
    pub open: bool,
    /// Whether an address has to be verified before it gets an account.
    pub verify: bool,
    /// Whether the first account needs the code that the server prints: strangers can reach it.
    pub first_account_code: bool,
}

impl Default for SignUpPolicy {
    fn default() -> Self {
        Self { open: true, verify: false, first_account_code: false }
    }
}

/// How mail leaves, as configured.
#[derive(Clone, Debug)]
pub struct Outbound {
    /// The way.
    pub mode: OutboundMode,
    /// How long a send waits for the next hosts.
    pub send_window: Duration,
    /// How long a mail is tried.
    pub retry_seconds: i64,
}

impl Outbound {
    /// The given way, with the usual times.
    pub const fn new(mode: OutboundMode) -> Self {
        Self { mode, send_window: Duration::from_secs(10), retry_seconds: 48 * 3600 }
    }
}

/// What the configuration says about payments.
#[derive(Clone, Debug)]
pub struct PaymentSettings {
    /// The network, the token, the recipient and the times. The amount is each call's own.
    pub terms: Terms,
    /// What calls cost.
    pub prices: Prices,
    /// Whether a wallet shows itself by a sign-in only where nothing is to be paid.
    pub siwx_only: bool,
    /// What a new wallet gets in the ledger of a test network.
    pub ledger_gift: u64,
    /// Mailboxes that one wallet can have.
    pub mailboxes: Limit,
    /// Calls that one wallet can make in a minute.
    pub wallet_rpm: u64,
}

/// What calls cost, in the token's smallest unit: a millionth of a dollar.
#[derive(Clone, Copy, Debug)]
pub struct Prices {
    /// Making a mailbox.
    pub create_mailbox: u64,
    /// Sending a mail.
    pub send: u64,
    /// Answering a mail.
    pub reply: u64,
    /// Passing a mail on.
    pub forward: u64,
    /// Saving a draft.
    pub draft: u64,
}

impl Default for PaymentSettings {
    /// What `config.default.toml` says: the ledger of a test network.
    fn default() -> Self {
        let network = &pay::networks::NETWORKS[0];
        let terms = Terms {
            network: network.id.to_owned(),
            v1_network: network.v1_name.to_owned(),
            domain: network.domain(),
            pay_to: LEDGER_RECIPIENT,
            amount: 0,
            max_timeout: 300,
        };
        let write = 10_000;
        Self {
            terms,
            prices: Prices {
                create_mailbox: 100_000,
                send: write,
                reply: write,
                forward: write,
                draft: write,
            },
            siwx_only: false,
            ledger_gift: 10_000_000,
            mailboxes: Limit::of(50),
            wallet_rpm: 600,
        }
    }
}

impl PaymentSettings {
    /// The terms of a call at a price.
    pub fn terms(&self, amount: u64) -> Terms {
        Terms { amount, ..self.terms.clone() }
    }
}

/// Who is paid in the ledger unless the configuration names somebody. Nobody has the key of this address.
pub const LEDGER_RECIPIENT: Address = Address([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 2]);

/// What the configuration says about memory.
#[derive(Clone, Debug)]
pub struct MemorySettings {
    /// Whether clean mail is taken into memory, so that it can be recalled and searched by meaning.
    pub mail: bool,
    /// Bytes that the indexes of all workspaces may take in this process.
    pub cache_bytes: usize,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self { mail: true, cache_bytes: 512 << 20 }
    }
}

/// How the bot gets its updates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BotUpdates {
    /// With getUpdates.
    #[default]
    Polling,
    /// By a webhook with this secret.
    Webhook(String),
}
