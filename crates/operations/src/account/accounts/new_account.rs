//! A new account with its own workspace: preparing and storing it.

use std::fmt::Write as _;

use model::{
    AccountId, Plan, Role, WorkspaceId,
    accounts::{Account, SignUp},
    audit::{AuditDetails, created},
    members::Invite,
};
use serde_json::json;
use store::{
    SystemTx, Tx, accounts, affiliate,
    audit::{self, AuditEntry},
    members, system,
    vault::DataKey,
    workspaces::{self, WorkspaceRecord},
};

use super::{
    ACCEPT_INVITE, about,
    invite_tokens::{self, TokenHash},
};
use crate::core::{
    app::App,
    error::{Error, ErrorKind, Result},
    input::{clean_email, clean_name},
    passwords::{self, Turn},
};

/// A new account with its workspace.
pub(crate) struct NewAccount {
    pub(crate) account: Account,
    pub(crate) password_hash: String,
    pub(crate) workspace: WorkspaceRecord,
    /// The workspace's plan if this turns out to be the first account, unless one was asked for.
    pub(crate) operator_plan: Option<Plan>,
}

/// Refuses where sign-up needs an invite.
pub(super) fn require_open(app: &App) -> Result<()> {
    if app.settings().sign_up.open {
        return Ok(());
    }
    Err(Error::new(ErrorKind::RoleRequired)
        .with_fix("New accounts on this server need an invite. Ask an admin of a workspace to invite you."))
}

/// An account and its workspace, ready to be stored. Without a plan it gets the usual one: Free, or the operator's for
/// the first account of the server.
pub(crate) async fn prepare(app: &App, input: SignUp, plan: Option<Plan>, turn: Turn) -> Result<NewAccount> {
    let email = clean_email("email", &input.email)?;
    let name = clean_name("name", input.name.as_deref().unwrap_or(email.local()))?;
    let workspace_name = match &input.workspace_name {
        Some(given) => clean_name("workspace_name", given)?,
        None => format!("{name}'s workspace").chars().take(80).collect(),
    };
    let mut random = [0; 20];
    app.entropy().fill(&mut random);
    let address = owner_address(&random);
    let password_hash = passwords::hash(app, turn, input.password).await?;
    let now = app.now();
    let id: WorkspaceId = app.new_id();
    let data_key = DataKey::generate().map_err(store::Error::from)?;
    let wrapped = app.master_key().wrap(id.as_str(), &data_key).map_err(store::Error::from)?;
    let account = Account {
        id: app.new_id(),
        email: email.as_str().to_owned(),
        name,
        is_admin: false,
        address: address.clone(),
        created_at: now,
    };
    let workspace = WorkspaceRecord {
        id,
        name: workspace_name,
        owner_address: address,
        timezone: "UTC".to_owned(),
        plan: plan.unwrap_or(Plan::Free),
        data_key: wrapped,
        referred_by: None,
        mailbox_count: 0,
        api_key_count: 0,
        created_at: now,
        updated_at: now,
    };
    let operator_plan = plan.is_none().then_some(app.settings().operator_plan);
    Ok(NewAccount { account, password_hash, workspace, operator_plan })
}

/// A stable address that looks like a wallet's, because a wallet can own a workspace too.
fn owner_address(random: &[u8]) -> String {
    random.iter().fold("0x".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Stores an account and its workspace, and adds it to the workspace of its invitation. Returns the workspace it
/// opens first.
pub(super) async fn insert_invited(
    tx: &mut SystemTx,
    fresh: NewAccount,
    affiliate_code: Option<&str>,
    invite: Option<TokenHash>,
    entry: &AuditEntry,
) -> Result<WorkspaceId> {
    let account = fresh.account.id.clone();
    let Some(invite) = invite else { return insert(tx, fresh, affiliate_code, entry).await };
    let (workspace, invite) = invite_tokens::redeem(tx, &invite, entry.at).await?;
    insert(tx, fresh, affiliate_code, entry).await?;
    let joined = AuditEntry { operation: ACCEPT_INVITE.to_owned(), ..entry.clone() };
    add_member(tx.enter(&workspace), &account, &invite, &joined).await?;
    Ok(workspace)
}

/// Adds the account that accepted an invite.
pub(super) async fn add_member(
    tx: &mut Tx,
    account: &AccountId,
    invite: &Invite,
    entry: &AuditEntry,
) -> Result<()> {
    members::insert(tx, account, invite.role, entry.at).await?;
    let mut details = AuditDetails::default();
    details.about("member", account).changed(created(invite, &["email", "role"]));
    Ok(audit::insert(tx, &[(entry, &details)]).await?)
}

/// Stores an account and its workspace. The first account of a server is its operator.
pub(crate) async fn insert(
    tx: &mut SystemTx,
    mut fresh: NewAccount,
    affiliate_code: Option<&str>,
    entry: &AuditEntry,
) -> Result<WorkspaceId> {
    let now = entry.at;
    fresh.account.is_admin = system::is_first_account(tx).await?;
    if let Some(plan) = fresh.operator_plan.filter(|_| fresh.account.is_admin) {
        fresh.workspace.plan = plan;
    }
    if !accounts::insert(tx, &fresh.account, &fresh.password_hash).await? {
        return Err(Error::new(ErrorKind::AccountExists));
    }
    if let Some(code) = affiliate_code {
        fresh.workspace.referred_by = affiliate::find_by_code(tx, code).await?;
    }
    let id = fresh.workspace.id.clone();
    workspaces::insert(tx.enter(&id), &fresh.workspace).await?;
    members::insert(tx.enter(&id), &fresh.account.id, Role::Admin, now).await?;
    if let Some(referrer) = &fresh.workspace.referred_by {
        affiliate::count(tx.enter(referrer), now.day(), 0, 1).await?;
    }
    let state = json!({ "email": fresh.account.email, "workspace": fresh.workspace.name, "plan": fresh.workspace.plan });
    let mut details = about(&fresh.account.id);
    details.changed(created(&state, &["email", "workspace", "plan"]));
    audit::insert(tx.enter(&id), &[(entry, &details)]).await?;
    Ok(id)
}
