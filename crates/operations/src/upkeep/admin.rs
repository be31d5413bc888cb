//! The operator's commands, while the server runs or not.

use bytes::Bytes;
use mail::address::Address;
use model::{
    ApiKeyId, Plan, Timestamp, WorkspaceId,
    accounts::{PASSWORD_MAX, PASSWORD_MIN, SignUp},
    affiliate::{Payout, PayoutStatus},
    api_keys::{ApiKey, ApiKeyWithSecret, NewApiKey},
    audit::{changes, created},
};
use serde::Serialize;
use serde_json::json;
use store::{
    Tx,
    audit::{self, AuditEntry},
    system, workspaces,
};

use crate::{
    account::{accounts::new_account, affiliate, api_keys},
    core::{
        app::App,
        audit::Author,
        error::{Error, Result},
        passwords::{Purpose, Turn},
    },
    inbox::inbound::{self, Recipient},
};

/// What the audit log calls what only operators do.
pub(crate) const CREATE_ACCOUNT: &str = "createAccount";
pub(crate) const SET_PLAN: &str = "setPlan";
pub(crate) const ADD_PAYOUT: &str = "addPayout";
pub(crate) const IMPORT: &str = "importMessages";

/// A new account, as the command line shows it.
#[derive(Debug, Serialize)]
pub struct CreatedAccount {
    /// The account.
    pub account_id: model::AccountId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// Its stable address.
    pub owner_address: String,
}

/// Makes an account with its workspace; without a plan the first account of the server gets the operator's, later ones
/// Free.
#[crate::boxed]
pub async fn create_account(
    app: &App,
    email: String,
    password: String,
    workspace_name: Option<String>,
    plan: Option<Plan>,
    author: &Author,
) -> Result<CreatedAccount> {
    if !(PASSWORD_MIN..=PASSWORD_MAX).contains(&password.chars().count()) {
        let message = format!("needs {PASSWORD_MIN} to {PASSWORD_MAX} characters");
        return Err(Error::invalid("password", message));
    }
    let input = SignUp { email, password, name: None, workspace_name, affiliate_code: None, code: None };
    let turn = Turn { purpose: Purpose::Other, client: None };
    let fresh = new_account::prepare(app, input, plan, turn).await?;
    let created = CreatedAccount {
        account_id: fresh.account.id.clone(),
        workspace_id: fresh.workspace.id.clone(),
        owner_address: fresh.workspace.owner_address.clone(),
    };
    let entry = app.audit_entry(author, CREATE_ACCOUNT);
    app.db().system_write(async move |tx| new_account::insert(tx, fresh, None, &entry).await).await?;
    Ok(created)
}

/// Makes a key for a workspace, within its plan's limit.
#[crate::boxed]
pub async fn create_key(
    app: &App,
    workspace: WorkspaceId,
    input: NewApiKey,
    author: &Author,
) -> Result<ApiKeyWithSecret> {
    let now = app.now();
    let entry = app.audit_entry(author, api_keys::CREATE.id);
    let fresh = api_keys::prepare(app, input, now)?;
    let app_ = app.clone();
    app.db()
        .write(&workspace, async move |tx| {
            let record =
                workspaces::find(tx).await?.ok_or_else(|| Error::not_found("Workspace not found"))?;
            let created = api_keys::insert(tx, fresh, app_.limits(record.plan).api_keys, (now, None)).await?;
            write_entry(tx, &entry).await?;
            Ok(created)
        })
        .await
}

/// The keys of a workspace.
#[crate::boxed]
pub async fn list_keys(app: &App, workspace: WorkspaceId) -> Result<Vec<ApiKey>> {
    Ok(app.db().read(&workspace, async |tx| store::api_keys::list(tx).await).await?)
}

/// Revokes a key, in whichever workspace it is.
#[crate::boxed]
pub async fn revoke_key(app: &App, id: ApiKeyId, author: &Author) -> Result<()> {
    let entry = app.audit_entry(author, api_keys::REVOKE.id);
    app.db()
        .system_write(async move |tx| {
            let workspace = store::api_keys::find_workspace(tx, &id).await?;
            let tx = tx.enter(&workspace.ok_or_else(api_keys::missing)?);
            api_keys::delete(tx, &id).await?;
            write_entry(tx, &entry).await
        })
        .await?;
    app.credentials().forget();
    Ok(())
}

/// Adds an entry with what its transaction said of itself.
async fn write_entry(tx: &mut Tx, entry: &AuditEntry) -> Result<()> {
    let details = std::mem::take(tx.audit());
    Ok(audit::insert(tx, &[(entry, &details)]).await?)
}

/// A workspace, as operators see it.
#[derive(Debug, Serialize)]
pub struct WorkspaceSummary {
    /// Its id.
    pub id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// Its plan.
    pub plan: Plan,
    /// Its owner's stable address.
    pub owner_address: String,
    /// Mailboxes in it.
    pub mailbox_count: i64,
    /// API keys in it.
    pub api_key_count: i64,
    /// When it was created.
    pub created_at: Timestamp,
}

/// Lists workspaces by id, a page at a time.
#[crate::boxed]
pub async fn list_workspaces(app: &App, after: WorkspaceId, limit: i64) -> Result<Vec<WorkspaceSummary>> {
    let records = app.db().system_read(async move |tx| workspaces::list_all(tx, &after, limit).await).await?;
    Ok(records
        .into_iter()
        .map(|record| WorkspaceSummary {
            id: record.id,
            name: record.name,
            plan: record.plan,
            owner_address: record.owner_address,
            mailbox_count: record.mailbox_count,
            api_key_count: record.api_key_count,
            created_at: record.created_at,
        })
        .collect())
}

/// Moves a workspace to another plan. Its referrer earns a commission when it becomes a paid one.
#[crate::boxed]
pub async fn set_plan(app: &App, workspace: WorkspaceId, plan: Plan, author: &Author) -> Result<()> {
    let now = app.now();
    let entry = app.audit_entry(author, SET_PLAN);
    app.db()
        .write(&workspace, async move |tx| {
            let missing = || Error::not_found("Workspace not found");
            let before = workspaces::find(tx).await?.ok_or_else(missing)?;
            workspaces::set_plan(tx, plan, now).await?;
            let changes = changes(&json!({ "plan": before.plan }), &json!({ "plan": plan }), &["plan"]);
            tx.audit().about("workspace", &before.id).changed(changes);
            write_entry(tx, &entry).await
        })
        .await?;
    app.credentials().forget();
    affiliate::accrue(app).await
}

/// A payout to be recorded.
pub struct NewPayout {
    /// The affiliate's workspace.
    pub workspace: WorkspaceId,
    /// The amount.
    pub amount_cents: i64,
    /// Its currency.
    pub currency: String,
    /// Its status.
    pub status: PayoutStatus,
    /// The start of the period it pays for.
    pub period_start: Timestamp,
    /// The end of the period it pays for, exclusive.
    pub period_end: Timestamp,
    /// The operator's reference.
    pub reference: Option<String>,
}

/// Records a payout to an affiliate. A paid one marks the commissions of its period as paid.
#[crate::boxed]
pub async fn add_payout(app: &App, input: NewPayout, author: &Author) -> Result<Payout> {
    if input.amount_cents <= 0 {
        return Err(Error::invalid("amount-cents", "must be positive"));
    }
    if input.currency.len() != 3 || !input.currency.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return Err(Error::invalid("currency", "expected three letters such as USD"));
    }
    if input.period_end <= input.period_start {
        return Err(Error::invalid("period-end", "must be after the start"));
    }
    let now = app.now();
    let payout = Payout {
        id: app.new_id(),
        amount_cents: input.amount_cents,
        currency: input.currency.to_ascii_uppercase(),
        status: input.status,
        period_start: input.period_start,
        period_end: input.period_end,
        reference: input.reference,
        paid_at: (input.status == PayoutStatus::Paid).then_some(now),
        created_at: now,
    };
    let entry = app.audit_entry(author, ADD_PAYOUT);
    app.db()
        .write(&input.workspace, async move |tx| {
            if workspaces::find(tx).await?.is_none() {
                return Err(Error::not_found("Workspace not found"));
            }
            store::affiliate::insert_payout(tx, &payout).await?;
            if payout.status == PayoutStatus::Paid {
                store::affiliate::mark_commissions_paid(tx, payout.period_start, payout.period_end).await?;
            }
            let fields = created(&payout, &["amount_cents", "currency", "status", "reference"]);
            tx.audit().about("payout", &payout.id).changed(fields);
            write_entry(tx, &entry).await?;
            Ok(payout)
        })
        .await
}

/// The latest payouts to all affiliates.
#[crate::boxed]
pub async fn list_payouts(app: &App, limit: i64) -> Result<Vec<store::affiliate::WorkspacePayout>> {
    let found = app.db().system_read(async move |tx| store::affiliate::list_all_payouts(tx, limit).await);
    Ok(found.await?)
}

/// Storage usage: bytes and objects of all workspaces, and the largest workspaces.
#[crate::boxed]
pub async fn storage(app: &App, limit: i64) -> Result<((i64, i64), Vec<system::WorkspaceStorage>)> {
    let found = app.db().system_read(async move |tx| {
        Ok::<_, store::Error>((
            system::total_storage(tx).await?,
            system::largest_workspaces(tx, limit).await?,
        ))
    });
    Ok(found.await?)
}

/// A mailbox that messages are imported into.
#[derive(Clone, Debug)]
pub struct ImportTarget(Recipient);

/// Finds a mailbox of any workspace by its address or id.
#[crate::boxed]
pub async fn find_mailbox(app: &App, named: &str) -> Result<ImportTarget> {
    let missing = || Error::not_found("Mailbox not found");
    // Addresses are stored normalised; ids are no addresses.
    let named = Address::parse(named).map_or_else(|_| named.to_owned(), |found| found.as_str().to_owned());
    let found = app.db().system_read(async move |tx| system::find_mailboxes(tx, &named).await).await?;
    let (first, others) = found.split_first().ok_or_else(missing)?;
    if !others.is_empty() && !first.is_proven {
        return Err(Error::invalid(
            "mailbox",
            "several workspaces use this address: use the id of the mailbox",
        ));
    }
    let found = first.clone();
    Ok(ImportTarget(Recipient {
        workspace: found.workspace_id,
        plan: found.plan,
        mailbox: found.mailbox_id,
        address: found.email,
        policy: None,
    }))
}

/// Records that messages are about to be imported into a mailbox: before the first one, so that none comes without it.
#[crate::boxed]
pub async fn begin_import(app: &App, target: &ImportTarget, author: &Author) -> Result<()> {
    let (entry, mailbox) = (app.audit_entry(author, IMPORT), target.0.mailbox.clone());
    app.db()
        .write(&target.0.workspace, async move |tx| {
            tx.audit().in_mailbox(&mailbox);
            write_entry(tx, &entry).await
        })
        .await
}

/// Imports one message through the path of incoming mail.
#[crate::boxed]
pub async fn import_message(app: &App, target: ImportTarget, raw: Bytes) -> Result<()> {
    inbound::import(app, target.0, raw).await.map(|_| ())
}

/// The state of the server, for its operator.
pub struct Health {
    /// Accounts.
    pub accounts: i64,
    /// Workspaces.
    pub workspaces: i64,
    /// The version of the schema.
    pub schema: i64,
    /// What is wrong with the blob store.
    pub blob_fault: Option<String>,
}

/// Reads the state of the server.
#[crate::boxed]
pub async fn health(app: &App) -> Result<Health> {
    let (accounts, workspaces) = app.db().system_read(async |tx| store::system::counts(tx).await).await?;
    Ok(Health {
        accounts,
        workspaces,
        schema: app.db().schema_version().await?,
        blob_fault: app.blob_fault(),
    })
}

/// The outbound queue, by destination.
#[crate::boxed]
pub async fn queue(app: &App, limit: i64) -> Result<Vec<store::queue::QueueSummary>> {
    Ok(app.db().system_read(async move |tx| store::queue::summary(tx, limit).await).await?)
}
