//! The settings of operations, read from the configuration and checked before anything starts.

use std::time::Duration;

use model::{Limit, Plan, Plans, send_policies::SendPolicy, sending::OutboundMode};
use pay::{Address, Terms};

/// The settings of operations.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The limits of the plans.
    pub plans: Plans,
    /// The domains that hosted addresses live on; the first is the default.
    pub hosted_domains: Vec<String>,
    /// The public URL of the service, without a slash at the end.
    pub public_url: String,
    /// Who can sign up, and what it takes.
    pub sign_up: SignUpPolicy,
    /// The plan of the first account's workspace: it belongs to the operator.
    pub operator_plan: Plan,
    /// Outbound mail.
    pub outbound: Outbound,
    /// What the operator decides about send policies and reviews.
    pub send_policy: SendPolicySettings,
    /// Whether this server receives mail.
    pub receives_mail: bool,
    /// How long a deleted mailbox can be restored.
    pub mailbox_grace_seconds: i64,
    /// The share of a referred workspace's price that its affiliate earns.
    pub affiliate_percent: i64,
    /// The currency of prices.
    pub currency: String,
    /// The blob store: `local` or `s3`.
    pub blob_provider: String,
    /// The bucket or folder of the blob store.
    pub blob_bucket: String,
    /// Unauthenticated calls per client address and minute.
    pub anonymous_rpm: u64,
    /// The host name of this server in SMTP and headers.
    pub hostname: String,
    /// The largest message that is accepted.
    pub max_message_bytes: u64,
    /// The secret of the HTTP hook for inbound mail; `None` disables the hook.
    pub inbound_secret: Option<String>,
    /// The SPF mechanisms that a custom domain needs, so that this server may send for it.
    pub spf_mechanisms: String,
    /// Whether webhooks may call this host, private networks and any port.
    pub webhooks_allow_private: bool,
    /// The keyless interface.
    pub payments: PaymentSettings,
    /// Memory: what is indexed, and how much is cached.
    pub memory: MemorySettings,
    /// How the chat bot gets its updates.
    pub telegram: BotUpdates,
}

/// Who can sign up, and what it takes.
#[derive(Clone, Copy, Debug)]
pub struct SignUpPolicy {
    /// Whether anyone may sign up, or only invited people.
    pub open: bool,
    /// Whether an address must be verified before it gets an account.
    pub verify: bool,
    /// Whether the first account needs the code that the server prints, because strangers can reach the server.
    pub first_account_code: bool,
}

impl Default for SignUpPolicy {
    fn default() -> Self {
        Self { open: true, verify: false, first_account_code: false }
    }
}

/// What the operator decides about send policies and reviews.
#[derive(Clone, Debug, Default)]
pub struct SendPolicySettings {
    /// The policy that all messages must satisfy, whatever workspaces and mailboxes say.
    pub floor: SendPolicy,
    /// How long a message waits for a decision, instead of the hours of its policy.
    pub hold_seconds: Option<i64>,
    /// How long an approved message can be taken back before it leaves.
    pub undo_seconds: i64,
    /// How long contents are searched at most, instead of 100 ms. What takes longer is reviewed.
    pub scan_timeout: Option<Duration>,
    /// Whether a person cannot decide about messages of their own session.
    pub second_person: bool,
}

/// Outbound mail, as configured.
#[derive(Clone, Debug)]
pub struct Outbound {
    /// The transport.
    pub mode: OutboundMode,
    /// How long a send call waits for the next hop.
    pub send_window: Duration,
    /// How long delivery is retried.
    pub retry_seconds: i64,
}

impl Outbound {
    /// The given transport, with default times.
    pub const fn new(mode: OutboundMode) -> Self {
        Self { mode, send_window: Duration::from_secs(10), retry_seconds: 48 * 3600 }
    }
}

/// The settings of payments.
#[derive(Clone, Debug)]
pub struct PaymentSettings {
    /// The network, token, recipient and times. The amount depends on the call.
    pub terms: Terms,
    /// The prices.
    pub prices: Prices,
    /// Whether calls without a price need a sign-in instead of a zero payment.
    pub siwx_only: bool,
    /// The initial balance of a wallet in the ledger of a test network.
    pub ledger_gift: u64,
    /// Maximum mailboxes of one wallet.
    pub mailboxes: Limit,
    /// Calls per wallet and minute.
    pub wallet_rpm: u64,
}

/// Prices in the token's smallest unit: a millionth of a dollar.
#[derive(Clone, Copy, Debug)]
pub struct Prices {
    /// Creating a mailbox.
    pub create_mailbox: u64,
    /// Sending a message.
    pub send: u64,
    /// Replying.
    pub reply: u64,
    /// Forwarding.
    pub forward: u64,
    /// Saving a draft.
    pub draft: u64,
}

impl Default for PaymentSettings {
    /// The defaults of `config.default.toml`: the ledger of a test network.
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
    /// The terms of a call at this price.
    pub fn terms(&self, amount: u64) -> Terms {
        Terms { amount, ..self.terms.clone() }
    }
}

/// The default recipient in the ledger. No private key for this address is known.
pub const LEDGER_RECIPIENT: Address = Address([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 2]);

/// The settings of memory.
#[derive(Clone, Debug)]
pub struct MemorySettings {
    /// Whether clean mail is indexed, so that it can be recalled and searched by meaning.
    pub mail: bool,
    /// Maximum bytes of all memory indexes in this process.
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
