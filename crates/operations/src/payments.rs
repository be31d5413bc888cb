//! The keyless interface's money: what calls cost, which wallet showed itself, and that each proof counts once.
//!
//! A wallet is the account. It gets a workspace of its own with the first thing it pays for. Proofs are read and checked
//! by the door; here they are claimed, settled and answered again when they come again.

mod desk;
mod free;
mod ledger;
mod reconcile;
mod view;
mod wallets;

use model::{
    Limit, Timestamp,
    payments::{NewWalletMailbox, Protocol},
};
use pay::{Address, Terms, x402::Resource};
pub use store::payments::PaymentKey;

use self::desk::reused;
pub use self::{
    desk::{Standing, admit, bind, claim, keep_answer, look_up, refused, release, settle, take_over},
    free::FreeProofs,
    ledger::Ledger,
    reconcile::{reconcile, work},
    view::{PaymentTotals, list, totals},
    wallets::{Wallet, Wallets, open_workspace},
};
use crate::{App, Call, ErrorKind, Operation, Result, drafts, mailboxes, sending};

/// Tells a wallet where it is. It is no part of the catalogue of operations, which are metered in credits.
pub const HANDSHAKE: Operation =
    Operation::read("handshake", "Tells a wallet that showed itself where the keyless interface is.");

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

/// Who is paid in the ledger unless the configuration names somebody. Nobody has the key of this address.
pub const LEDGER_RECIPIENT: Address = Address([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 2]);

impl PaymentSettings {
    /// What an operation costs a wallet.
    pub fn price(&self, operation: &Operation) -> u64 {
        let prices = &self.prices;
        match operation.id {
            id if id == mailboxes::CREATE.id => prices.create_mailbox,
            id if id == sending::SEND.id => prices.send,
            id if id == sending::REPLY.id => prices.reply,
            id if id == sending::FORWARD.id => prices.forward,
            id if id == drafts::SAVE.id => prices.draft,
            _ => 0,
        }
    }

    /// The terms of a call at a price.
    pub fn terms(&self, amount: u64) -> Terms {
        Terms { amount, ..self.terms.clone() }
    }
}

/// A proof that was read and checked: who, how much, and for how long.
#[derive(Clone)]
pub struct Proof {
    /// The wallet.
    pub payer: Address,
    /// How it came.
    pub protocol: Protocol,
    /// What makes it usable once.
    pub key: PaymentKey,
    /// How much it pays.
    pub amount: u64,
    /// Until when it is good.
    pub expires_at: Timestamp,
    /// Why it is too late or too early for anything but a repeat.
    pub untimely: Option<pay::Refusal>,
    /// What was signed; nothing of a sign-in.
    pub payment: Option<pay::Payment>,
    /// The id of the challenge that it answers.
    pub challenge: Option<String>,
}

/// What a request is known by.
#[derive(Clone)]
pub struct Request {
    /// The operation.
    pub operation: &'static Operation,
    /// The path.
    pub subject: String,
    /// The hash of method, path, query and body.
    pub fingerprint: [u8; 32],
}

/// What is paid for, as payers and facilitators are told.
pub fn resource(app: &App, summary: &str, path: &str) -> Resource {
    Resource {
        url: format!("{}{path}", app.settings().public_url),
        description: summary
            .split_inclusive(". ")
            .next()
            .unwrap_or_default()
            .trim()
            .chars()
            .take(120)
            .collect(),
        service: "Agent Mailbox".to_owned(),
    }
}

/// Makes a mailbox of a wallet: for codes and links, and without anything that happens by itself.
#[crate::boxed]
pub async fn create_mailbox(
    app: &App,
    call: &Call,
    input: NewWalletMailbox,
) -> Result<model::mailboxes::Mailbox> {
    use model::mailboxes::{AgentInboxMode, MailboxSettings, NewMailbox};
    let mut settings = MailboxSettings::default();
    settings.agent_inbox.mode = AgentInboxMode::Verification;
    settings.agent_inbox.automations_enabled = false;
    settings.agent_inbox.require_siwx = input.require_siwx;
    settings.auto_draft.enabled = false;
    let new = NewMailbox { name: input.name, email: input.email, workspace_id: None, settings };
    if call.rehearsal && call.workspace.as_str() == wallets::NO_WORKSPACE {
        return mailboxes::rehearse_first(app, call, new).await;
    }
    let made = mailboxes::create(app, call, new).await?;
    app.wallets().forget();
    Ok(made)
}

/// The errors that only calls of wallets meet.
pub const ERRORS: &[ErrorKind] = &[
    ErrorKind::PaymentRequired,
    ErrorKind::PaymentCredentials,
    ErrorKind::PaymentInProgress,
    ErrorKind::SettlementPending,
    ErrorKind::FacilitatorUnavailable,
];
