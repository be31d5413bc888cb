//! Accounts: logging in and out, choosing a workspace. Sign-up and invitations have files of their own.
//!
//! These are the console's own routes, neither metered nor part of the catalogue.

pub mod invitations;
mod invite_tokens;
pub(crate) mod new_account;
pub mod sign_up;
pub mod verification;

use model::{
    AccountId, SessionId, WorkspaceId,
    accounts::{Login, Me, Membership, Session, SwitchWorkspace},
    audit::AuditDetails,
};
use store::{
    SystemTx, accounts,
    audit::{self, AuditEntry},
    system,
};

use crate::core::{
    app::App,
    audit::Author,
    caller::{Actor, Caller},
    error::{Error, ErrorKind, Result},
    passwords::{self, Client, Purpose, device},
    request_info::RequestInfo,
    secrets,
};

/// What the audit log calls the changes of an account by its person. They are in the log of each of its workspaces.
pub(crate) const SIGN_UP: &str = "signUp";
pub(crate) const LOG_IN: &str = "logIn";
pub(crate) const LOG_OUT: &str = "logOut";
pub(crate) const LOG_OUT_EVERYWHERE: &str = "logOutEverywhere";
pub(crate) const END_SESSION: &str = "endSession";
pub(crate) const ACCEPT_INVITE: &str = "acceptInvite";
pub(crate) const CHANGE_PASSWORD: &str = "changePassword";
pub(crate) const RESET_PASSWORD: &str = "resetPassword";

/// How long a session lasts.
pub const SESSION_SECONDS: i64 = 30 * 24 * 3600;

/// A session that was just opened, and the secret for its cookie.
pub struct OpenedSession {
    /// The account that is logged in.
    pub me: Me,
    /// The secret; only the browser gets it.
    pub secret: String,
    /// The device cookie, which tells this browser from strangers' when passwords are guessed.
    pub device: String,
}

/// Logs in. An unknown address and a wrong password get the same answer after the same work.
#[crate::boxed]
pub async fn log_in(app: &App, input: Login, client: &Client) -> Result<OpenedSession> {
    let given = input.email.trim();
    let email = mail::address::Address::parse(given)
        .map_or_else(|_| given.to_owned(), |address| address.as_str().to_owned());
    let wanted = email.clone();
    let found = app.db().system_read(async move |tx| accounts::find_by_email(tx, &wanted).await).await?;
    if !passwords::check(app, client, Purpose::LogIn, &email, found.as_ref(), input.password).await? {
        return Err(Error::new(ErrorKind::Unauthorized));
    }
    let account = found.ok_or_else(|| Error::new(ErrorKind::Unauthorized))?.account;
    let session = prepare_session(app, client, &account.id)?;
    let entry = app.account_entry(&account, &client.request, LOG_IN);
    app.db()
        .system_write(async move |tx| {
            audit::insert_for_account(tx, &account.id, &entry, &about(&account.id)).await?;
            let memberships = system::memberships(tx, &account.id).await?;
            let workspace = memberships.into_iter().next().map(|membership| membership.workspace_id);
            let workspace = workspace.unwrap_or_else(|| WorkspaceId::from(""));
            session.insert(tx, &account.id, &workspace).await
        })
        .await
}

/// Ends the caller's session.
#[crate::boxed]
pub async fn log_out(app: &App, caller: &Caller, request: &RequestInfo) -> Result<()> {
    let (account, session) = person(caller)?;
    let entry = app.audit_entry(&Author::caller(caller, request), LOG_OUT);
    end_session(app, account, session, entry).await.map(|_| ())
}

/// Ends all sessions of the caller's account.
#[crate::boxed]
pub async fn log_out_everywhere(app: &App, caller: &Caller, request: &RequestInfo) -> Result<()> {
    let (account, _) = person(caller)?;
    let entry = app.audit_entry(&Author::caller(caller, request), LOG_OUT_EVERYWHERE);
    app.db()
        .system_write(async move |tx| {
            accounts::delete_sessions(tx, &account).await?;
            audit::insert_for_account(tx, &account, &entry, &about(&account)).await
        })
        .await?;
    app.credentials().forget();
    Ok(())
}

/// The account that is logged in.
#[crate::boxed]
pub async fn me(app: &App, caller: &Caller) -> Result<Me> {
    let (account, _) = person(caller)?;
    let chosen = caller.workspaces.get(caller.chosen).map(|access| access.workspace.clone());
    let chosen = chosen.unwrap_or_else(|| WorkspaceId::from(""));
    app.db().system_read(async move |tx| load_me(tx, &account, &chosen).await).await
}

/// Chooses the workspace that calls without a workspace id go to.
#[crate::boxed]
pub async fn switch_workspace(app: &App, caller: &Caller, input: SwitchWorkspace) -> Result<Me> {
    let (account, session) = person(caller)?;
    let workspace = caller.access(Some(input.workspace_id.as_str()))?.workspace.clone();
    let me = app
        .db()
        .system_write(async move |tx| {
            accounts::choose_workspace(tx, &session, &workspace).await?;
            load_me(tx, &account, &workspace).await
        })
        .await?;
    app.credentials().forget();
    Ok(me)
}

/// The sessions of the caller's account.
#[crate::boxed]
pub async fn list_sessions(app: &App, caller: &Caller) -> Result<Vec<Session>> {
    let (account, current) = person(caller)?;
    let now = app.now();
    let mut sessions =
        app.db().system_read(async move |tx| accounts::list_sessions(tx, &account, now).await).await?;
    for session in &mut sessions {
        session.current = session.id == current;
    }
    Ok(sessions)
}

/// Ends one session of the caller's account.
#[crate::boxed]
pub async fn revoke_session(app: &App, caller: &Caller, id: SessionId, request: &RequestInfo) -> Result<()> {
    let (account, _) = person(caller)?;
    let entry = app.audit_entry(&Author::caller(caller, request), END_SESSION);
    if end_session(app, account, id, entry).await? {
        Ok(())
    } else {
        Err(Error::not_found("Session not found"))
    }
}

/// What an entry about an account is about.
pub(crate) fn about(account: &AccountId) -> AuditDetails {
    let mut details = AuditDetails::default();
    details.about("account", account);
    details
}

fn person(caller: &Caller) -> Result<(AccountId, SessionId)> {
    match &caller.actor {
        Actor::Person { account, session, .. } => Ok((account.clone(), session.clone())),
        Actor::Key(_) | Actor::Wallet(_) | Actor::Chat(_) => Err(Error::new(ErrorKind::Unauthorized)),
    }
}

async fn end_session(app: &App, account: AccountId, session: SessionId, entry: AuditEntry) -> Result<bool> {
    let ended = app
        .db()
        .system_write(async move |tx| {
            let ended = accounts::delete_session(tx, &account, &session).await?;
            if ended {
                let mut details = about(&account);
                details.about("session", &session);
                audit::insert_for_account(tx, &account, &entry, &details).await?;
            }
            Ok::<_, Error>(ended)
        })
        .await?;
    app.credentials().forget();
    Ok(ended)
}

/// A session ready to be stored.
struct NewSession {
    session: Session,
    secret: String,
    device: String,
}

fn prepare_session(app: &App, client: &Client, account: &AccountId) -> Result<NewSession> {
    let now = app.now();
    let session = Session {
        id: app.new_id(),
        current: true,
        user_agent: client.user_agent.chars().filter(|character| !character.is_control()).take(200).collect(),
        created_at: now,
        expires_at: now.plus_seconds(SESSION_SECONDS),
    };
    let device = device::issue(app, account, client.device.as_deref())?;
    Ok(NewSession { session, secret: secrets::new_token(app), device })
}

impl NewSession {
    async fn insert(
        self,
        tx: &mut SystemTx,
        account: &AccountId,
        workspace: &WorkspaceId,
    ) -> Result<OpenedSession> {
        let hash = secrets::hash(&self.secret);
        accounts::insert_session(tx, &self.session, &hash, account, workspace).await?;
        let me = load_me(tx, account, workspace).await?;
        Ok(OpenedSession { me, secret: self.secret, device: self.device })
    }
}

async fn load_me(tx: &mut SystemTx, account: &AccountId, workspace: &WorkspaceId) -> Result<Me> {
    let account = accounts::find(tx, account).await?.ok_or_else(|| Error::new(ErrorKind::Unauthorized))?;
    let memberships = system::memberships(tx, &account.id).await?;
    Ok(Me {
        account,
        workspace_id: workspace.clone(),
        workspaces: memberships
            .into_iter()
            .map(|membership| Membership {
                id: membership.workspace_id,
                name: membership.name,
                role: membership.role,
                plan: membership.plan,
            })
            .collect(),
    })
}
