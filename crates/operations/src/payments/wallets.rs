//! Wallets, their calls, and their workspaces.

use std::sync::Arc;

use model::{Plan, Role, WorkspaceId};
use store::{
    mailboxes as stored_mailboxes,
    mailboxes::MailboxName,
    payments,
    vault::DataKey,
    workspaces::{self, WorkspaceRecord},
};
use tokio::time::Instant;

use super::proof::Proof;
use crate::{
    core::{
        app::App,
        call::Call,
        caller::{Access, Caller},
        error::Result,
        operation::Operation,
        request_info::RequestInfo,
        state::wallets::Wallet,
    },
    mailbox::mailboxes,
};

/// The workspace id of wallets without a workspace.
pub(super) const NO_WORKSPACE: &str = "ws_none";

impl Wallet {
    /// Whether a mailbox of this wallet can be read with a sign-in only.
    pub fn requires_siwx(&self, named: &str) -> bool {
        !self.siwx_only.is_empty() && {
            let named = match mailboxes::parse_name(named) {
                MailboxName::Id(id) => id.as_str().to_owned(),
                MailboxName::PublicId(text) | MailboxName::Email(text) => text,
            };
            self.siwx_only.iter().any(|names| names.contains(&named))
        }
    }

    /// A call of this wallet. Without a workspace it finds nothing.
    pub fn call(&self, app: &App, operation: &'static Operation, request: RequestInfo) -> Call {
        let workspace = self.workspace.clone().unwrap_or_else(|| WorkspaceId::from(NO_WORKSPACE));
        let access = Access { workspace, name: String::new(), role: Role::Admin, plan: Plan::Free };
        let caller = Arc::new(Caller::wallet(self.address.to_lower(), access.clone()));
        Call::new(operation, caller, access, app.now(), request)
    }
}

impl App {
    /// The wallet behind a proof.
    #[crate::boxed]
    pub async fn wallet(&self, proof: &Proof) -> Result<Wallet> {
        if let Some(wallet) = self.wallets().find(proof.payer) {
            return Ok(wallet);
        }
        let (since, address) = (Instant::now(), proof.payer.to_lower());
        let (workspace, siwx_only) = self
            .db()
            .system_read(async move |tx| {
                let workspace = payments::find_wallet(tx, &address).await?;
                let records = match &workspace {
                    Some(workspace) => stored_mailboxes::list(tx.enter(workspace)).await?,
                    None => Vec::new(),
                };
                let strict = records.into_iter().filter(|record| record.settings.agent_inbox.require_siwx);
                let names =
                    strict.map(|record| [record.id.as_str().to_owned(), record.public_id, record.email]);
                Ok::<_, store::Error>((workspace, names.collect::<Vec<_>>()))
            })
            .await?;
        let wallet = Wallet { address: proof.payer, workspace, siwx_only: Arc::new(siwx_only) };
        self.wallets().keep(wallet.clone(), since);
        Ok(wallet)
    }
}

/// Gives a wallet a workspace, unless it has one.
#[crate::boxed]
pub async fn open_workspace(app: &App, wallet: &Wallet) -> Result<Wallet> {
    if wallet.workspace.is_some() {
        return Ok(wallet.clone());
    }
    let (now, address) = (app.now(), wallet.address.to_lower());
    let id: WorkspaceId = app.new_id();
    let key = DataKey::generate().map_err(store::Error::from)?;
    let record = WorkspaceRecord {
        id: id.clone(),
        name: format!("Wallet {}", wallet.address),
        owner_address: address.clone(),
        timezone: "UTC".to_owned(),
        plan: Plan::Free,
        data_key: app.master_key().wrap(id.as_str(), &key).map_err(store::Error::from)?,
        referred_by: None,
        mailbox_count: 0,
        api_key_count: 0,
        created_at: now,
        updated_at: now,
    };
    let workspace = app
        .db()
        .system_write(async move |tx| {
            if let Some(existing) = payments::find_wallet(tx, &address).await? {
                return Ok::<_, store::Error>(existing);
            }
            let fresh = record.id.clone();
            workspaces::insert(tx.enter(&fresh), &record).await?;
            if payments::insert_wallet(tx.enter(&fresh), &address, now).await? {
                return Ok(fresh);
            }
            // Another node was quicker; its workspace counts, and this one is deleted.
            workspaces::delete(tx.enter(&fresh)).await?;
            let existing = payments::find_wallet(tx, &address).await?;
            existing.ok_or_else(|| store::Error::Internal("a wallet without a workspace".into()))
        })
        .await?;
    app.wallets().forget();
    Ok(Wallet { workspace: Some(workspace), ..wallet.clone() })
}
