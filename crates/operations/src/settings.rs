//! What the configuration says to operations, read and checked before anything starts.

use std::time::Duration;

use model::{Plans, sending::OutboundMode};

use crate::{memory::MemorySettings, payments::PaymentSettings, telegram::Hearing};

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
    /// How the chat bot hears of what happens in its chats.
    pub telegram: Hearing,
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
