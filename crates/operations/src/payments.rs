//! Payments of the keyless interface: prices, wallets, and proofs that count once.
//!
//! A wallet is the account. It gets a workspace of its own with its first purchase. The door reads and checks proofs;
//! here they are claimed, settled, and answered again when they are repeated.

mod checkout;
mod free;
mod prices;
mod proof;
mod reconcile;
mod refusals;
mod view;
mod wallets;

use model::payments::NewWalletMailbox;
pub use store::payments::PaymentKey;

pub use self::{
    checkout::{ProofState, admit, bind, claim, keep_answer, look_up, release, settle, take_over},
    proof::{Proof, Request, resource},
    reconcile::{reconcile, work},
    refusals::refused,
    view::{PaymentTotals, list, totals},
    wallets::open_workspace,
};
pub use crate::core::{
    settings::{LEDGER_RECIPIENT, PaymentSettings, Prices},
    state::wallets::Wallet,
};
use crate::{
    core::{
        app::App,
        call::Call,
        error::{ErrorKind, Result},
        operation::Operation,
    },
    mailbox::mailboxes,
};

/// Tells a wallet where the keyless interface is. Not part of the catalogue, whose operations are metered in credits.
pub const HANDSHAKE: Operation =
    Operation::read("handshake", "Returns where the keyless API is, once a wallet has identified itself.");

/// Creates a mailbox of a wallet: for verification codes and links, without automations.
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

/// The errors that only calls of wallets can get.
pub const ERRORS: &[ErrorKind] = &[
    ErrorKind::PaymentRequired,
    ErrorKind::PaymentCredentials,
    ErrorKind::PaymentInProgress,
    ErrorKind::SettlementPending,
    ErrorKind::FacilitatorUnavailable,
];
