//! New passwords: by a link sent to the account's address, or with the current password.
//!
//! The answer and its timing are the same whether or not the account exists. A link works once, for an hour, and only
//! its hash is stored.

use model::{
    AccountId,
    accounts::{PasswordChange, PasswordReset, PasswordResetRequest},
    audit::{AuditChange, AuditDetails},
};
use store::{accounts, audit, system};

use crate::{
    account::accounts::{CHANGE_PASSWORD, RESET_PASSWORD, about},
    core::{
        app::App,
        caller::{Actor, Caller},
        error::{Error, ErrorKind, Result},
        passwords::{self, Client, Purpose, Turn, device, guesses},
        secrets,
    },
    outbox::sending::automatic::enqueue_system,
};

/// How long a link works.
pub const RESET_SECONDS: i64 = 3600;
/// Valid links of one account: enough to ask again, too few to flood a mailbox.
const MAX_LINKS: i64 = 3;

/// Sends a link to an account, if the address has one. The work continues after the answer, so that neither its
/// timing nor its outcome reveals which addresses have accounts.
pub fn request(app: &App, input: PasswordResetRequest) {
    let app = app.clone();
    tokio::spawn(async move {
        if let Err(error) = send_link(&app, &input.email).await {
            tracing::warn!(%error, "password reset link not sent; giving up");
        }
    });
}

async fn send_link(app: &App, email: &str) -> Result<()> {
    let Ok(address) = mail::address::Address::parse(email.trim()) else { return Ok(()) };
    let wanted = address.as_str().to_owned();
    let found = app
        .db()
        .system_read(async move |tx| {
            let Some(found) = accounts::find_by_email(tx, &wanted).await? else { return Ok(None) };
            let workspaces = system::memberships(tx, &found.account.id).await?;
            Ok::<_, Error>(workspaces.into_iter().next().map(|one| (found.account, one.workspace_id)))
        })
        .await?;
    let Some((account, workspace)) = found else { return Ok(()) };
    let (token, now) = (secrets::new_token(app), app.now());
    let (hash, text) = (secrets::hash(&token), message_text(app, &token));
    let (app_, key) = (app.clone(), app.data_key(&workspace).await?);
    app.db()
        .system_write(async move |tx| {
            if accounts::count_resets(tx, &account.id, now).await? >= MAX_LINKS {
                return Ok(());
            }
            accounts::insert_reset(tx, &hash, &account.id, now, now.plus_seconds(RESET_SECONDS)).await?;
            let subject = "Choose a new password".to_owned();
            enqueue_system(tx.enter(&workspace), &app_, &key, &account.email, subject, text).await
        })
        .await
}

fn message_text(app: &App, token: &str) -> String {
    format!(
        "Choose a new password for your Agent Mailbox account.\n\n\
         Open this link. It works once and expires after one hour:\n\n{}/console/reset#{token}\n\n\
         If you did not ask for this, ignore this message: your password stays the same.\n",
        app.settings().public_url
    )
}

/// Sets a new password with a link, and ends all sessions and other links of the account. Returns the device cookie
/// that makes this browser one of the owner's.
#[crate::boxed]
pub async fn reset(app: &App, input: PasswordReset, client: &Client) -> Result<String> {
    let (hash, now) = (secrets::hash(&input.token), app.now());
    let found = app.db().system_read(async move |tx| accounts::find_reset(tx, &hash, now).await).await?;
    if found.is_none() {
        return Err(no_link());
    }
    let password_hash = hash_password(app, client, input.password).await?;
    let (app_, request) = (app.clone(), client.request.clone());
    let account = app
        .db()
        .system_write(async move |tx| {
            // Read again: a link works once, even if several people follow it at the same time.
            let account = accounts::find_reset(tx, &hash, now).await?.ok_or_else(no_link)?;
            if accounts::delete_resets(tx, &account).await? == 0 {
                return Err(no_link());
            }
            accounts::set_password(tx, &account, &password_hash, now).await?;
            accounts::delete_sessions(tx, &account).await?;
            let account = accounts::find(tx, &account).await?.ok_or_else(no_link)?;
            let entry = app_.account_entry(&account, &request, RESET_PASSWORD);
            audit::insert_for_account(tx, &account.id, &entry, &changed(&account.id)).await?;
            Ok::<_, Error>(account)
        })
        .await?;
    app.credentials().forget();
    guesses::forget_account(app, &account.email).await?;
    device::issue(app, &account.id, client.device.as_deref())
}

/// Sets a new password for a caller who knows the current one, and ends all sessions of the account.
#[crate::boxed]
pub async fn change(app: &App, caller: &Caller, input: PasswordChange, client: &Client) -> Result<()> {
    let account = person(caller)?;
    let wanted = account.clone();
    let found = app
        .db()
        .system_read(async move |tx| {
            let Some(account) = accounts::find(tx, &wanted).await? else { return Ok(None) };
            accounts::find_by_email(tx, &account.email).await
        })
        .await?;
    let found = found.ok_or_else(|| Error::new(ErrorKind::Unauthorized))?;
    let email = found.account.email.clone();
    if !passwords::check(app, client, Purpose::Other, &email, Some(&found), input.current).await? {
        return Err(Error::invalid("current", "is not your current password"));
    }
    let (password_hash, now) = (hash_password(app, client, input.password).await?, app.now());
    let entry = app.account_entry(&found.account, &client.request, CHANGE_PASSWORD);
    app.db()
        .system_write(async move |tx| {
            accounts::set_password(tx, &account, &password_hash, now).await?;
            accounts::delete_resets(tx, &account).await?;
            accounts::delete_sessions(tx, &account).await?;
            audit::insert_for_account(tx, &account, &entry, &changed(&account)).await
        })
        .await?;
    app.credentials().forget();
    Ok(())
}

/// What the audit log says of a new password: that there is one.
fn changed(account: &AccountId) -> AuditDetails {
    let mut details = about(account);
    details.changed(vec![AuditChange::hidden("password")]);
    details
}

fn person(caller: &Caller) -> Result<AccountId> {
    match &caller.actor {
        Actor::Person { account, .. } => Ok(account.clone()),
        Actor::Key(_) | Actor::Wallet(_) | Actor::Chat(_) => Err(Error::new(ErrorKind::Unauthorized)),
    }
}

async fn hash_password(app: &App, client: &Client, password: String) -> Result<String> {
    let turn = Turn { purpose: Purpose::Other, client: Some(client.network) };
    passwords::hash(app, turn, password).await
}

fn no_link() -> Error {
    Error::not_found("This link has expired or was already used.").with_fix("Ask for a new one.")
}
