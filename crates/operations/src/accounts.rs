//! People: signing up, logging in and out, choosing a workspace, accepting an invitation.
//!
//! These are the console's own routes. They are neither metered nor part of the catalogue.

use std::fmt::Write as _;

use model::{
    AccountId, Plan, Role, SessionId, Timestamp, WorkspaceId,
    accounts::{Account, Login, Me, Membership, Session, SignUp, SwitchWorkspace},
    members::AcceptInvite,
};
use store::{
    SystemTx, accounts, affiliate, members, system,
    vault::DataKey,
    workspaces::{self, WorkspaceRecord},
};

use crate::{Actor, App, Caller, Error, ErrorKind, Result, clean_email, clean_name, secrets};

/// How long a session lasts.
pub const SESSION_SECONDS: i64 = 30 * 24 * 3600;

/// A session that was just opened: who, and the secret for the cookie.
pub struct Opened {
    /// Who is logged in.
    pub me: Me,
    /// The secret. It is shown to nobody but the browser.
    pub secret: String,
}

/// A new account with the workspace that comes with it.
pub(crate) struct NewAccount {
    pub(crate) account: Account,
    pub(crate) password_hash: String,
    pub(crate) workspace: WorkspaceRecord,
}

/// Makes an account and its workspace in one step, and logs in.
pub async fn sign_up(app: &App, input: SignUp, user_agent: &str) -> Result<Opened> {
    if !app.settings().open_sign_up {
        return Err(Error::new(ErrorKind::RoleRequired)
            .with_fix("This server takes new accounts by invitation only."));
    }
    let code = input.affiliate_code.clone();
    let fresh = prepare(app, input, Plan::Free).await?;
    let session = prepare_session(app, user_agent);
    let now = app.now();
    let me = app
        .db()
        .system_write(async move |tx| {
            let account = fresh.account.id.clone();
            let workspace = insert(tx, fresh, code.as_deref(), now).await?;
            session.insert(tx, &account, &workspace).await
        })
        .await?;
    Ok(me)
}

/// Logs in. An unknown address and a wrong password get the same answer after the same work.
pub async fn log_in(app: &App, input: Login, user_agent: &str) -> Result<Opened> {
    let email = mail::address::Address::parse(input.email.trim()).map(|address| address.as_str().to_owned());
    let email = email.unwrap_or_default();
    let found = app.db().system_read(async move |tx| accounts::find_by_email(tx, &email).await).await?;
    let hash = found.as_ref().map(|found| found.password_hash.clone());
    if !app.passwords().verify(input.password, hash).await? {
        return Err(Error::new(ErrorKind::Unauthorized));
    }
    let account = found.ok_or_else(|| Error::new(ErrorKind::Unauthorized))?.account;
    let session = prepare_session(app, user_agent);
    app.db()
        .system_write(async move |tx| {
            let memberships = system::memberships(tx, &account.id).await?;
            let workspace = memberships.into_iter().next().map(|membership| membership.workspace_id);
            let workspace = workspace.unwrap_or_else(|| WorkspaceId::from(""));
            session.insert(tx, &account.id, &workspace).await
        })
        .await
}

/// Ends the caller's session.
pub async fn log_out(app: &App, caller: &Caller) -> Result<()> {
    let (account, session) = person(caller)?;
    end_session(app, account, session).await.map(|_| ())
}

/// Ends all sessions of the caller's account.
pub async fn log_out_everywhere(app: &App, caller: &Caller) -> Result<()> {
    let (account, _) = person(caller)?;
    app.db().system_write(async move |tx| accounts::delete_sessions(tx, &account).await).await?;
    app.credentials().forget();
    Ok(())
}

/// Who is logged in.
pub async fn me(app: &App, caller: &Caller) -> Result<Me> {
    let (account, _) = person(caller)?;
    let chosen = caller.workspaces.get(caller.chosen).map(|access| access.workspace.clone());
    let chosen = chosen.unwrap_or_else(|| WorkspaceId::from(""));
    app.db().system_read(async move |tx| load_me(tx, &account, &chosen).await).await
}

/// Chooses the workspace that calls without a workspace id go to.
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
pub async fn revoke_session(app: &App, caller: &Caller, id: SessionId) -> Result<()> {
    let (account, _) = person(caller)?;
    if end_session(app, account, id).await? { Ok(()) } else { Err(Error::not_found("Session not found")) }
}

/// Accepts an invitation: joins its workspace with an existing account or a new one, and logs in.
pub async fn accept_invite(app: &App, input: AcceptInvite, user_agent: &str) -> Result<Opened> {
    let hash = secrets::hash(&input.token);
    let now = app.now();
    let invited = app
        .db()
        .system_read(async move |tx| {
            let (workspace, invite) =
                members::find_invite_by_token(tx, &hash).await?.ok_or_else(no_invite)?;
            let invite = members::find_invite(tx.enter(&workspace), &invite).await?.ok_or_else(no_invite)?;
            let existing = accounts::find_by_email(tx, &invite.email).await?;
            Ok::<_, Error>((invite, existing))
        })
        .await?;
    let (invite, existing) = invited;
    if invite.expires_at <= now {
        return Err(no_invite());
    }
    let joining = if let Some(found) = existing {
        if !app.passwords().verify(input.password, Some(found.password_hash)).await? {
            return Err(Error::new(ErrorKind::Unauthorized));
        }
        Joining::Existing(found.account.id)
    } else {
        {
            let sign_up = SignUp {
                email: invite.email.clone(),
                password: input.password,
                name: input.name,
                workspace_name: None,
                affiliate_code: None,
            };
            Joining::New(Box::new(prepare(app, sign_up, Plan::Free).await?))
        }
    };
    let session = prepare_session(app, user_agent);
    let opened = app
        .db()
        .system_write(async move |tx| {
            // Read again: a link works once, however many people follow it at the same time.
            let (workspace, invite) =
                members::find_invite_by_token(tx, &hash).await?.ok_or_else(no_invite)?;
            let invite = members::find_invite(tx.enter(&workspace), &invite).await?.ok_or_else(no_invite)?;
            if !members::delete_invite(tx.enter(&workspace), &invite.id).await? {
                return Err(no_invite());
            }
            let account = joining.resolve(tx, now).await?;
            members::insert(tx.enter(&workspace), &account, invite.role, now).await?;
            session.insert(tx, &account, &workspace).await
        })
        .await?;
    app.credentials().forget();
    Ok(opened)
}

enum Joining {
    Existing(AccountId),
    New(Box<NewAccount>),
}

impl Joining {
    async fn resolve(self, tx: &mut SystemTx, now: Timestamp) -> Result<AccountId> {
        match self {
            Self::Existing(id) => Ok(id),
            Self::New(fresh) => {
                let id = fresh.account.id.clone();
                insert(tx, *fresh, None, now).await?;
                Ok(id)
            }
        }
    }
}

fn no_invite() -> Error {
    Error::not_found("Invite not found")
}

fn person(caller: &Caller) -> Result<(AccountId, SessionId)> {
    match &caller.actor {
        Actor::Person { account, session, .. } => Ok((account.clone(), session.clone())),
        Actor::Key(_) | Actor::Wallet(_) | Actor::Chat(_) => Err(Error::new(ErrorKind::Unauthorized)),
    }
}

async fn end_session(app: &App, account: AccountId, session: SessionId) -> Result<bool> {
    let ended =
        app.db().system_write(async move |tx| accounts::delete_session(tx, &account, &session).await).await?;
    app.credentials().forget();
    Ok(ended)
}

/// A stable address that looks like a wallet's, because a wallet can own a workspace too.
fn owner_address(random: &[u8]) -> String {
    random.iter().fold("0x".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// An account and its workspace, ready to be stored.
pub(crate) async fn prepare(app: &App, input: SignUp, plan: Plan) -> Result<NewAccount> {
    let email = clean_email("email", &input.email)?;
    let name = clean_name("name", input.name.as_deref().unwrap_or(email.local()))?;
    let workspace_name = match &input.workspace_name {
        Some(given) => clean_name("workspace_name", given)?,
        None => format!("{name}'s workspace").chars().take(80).collect(),
    };
    let mut random = [0; 36];
    app.entropy().fill(&mut random);
    let mut salt = [0; 16];
    salt.copy_from_slice(&random[..16]);
    let address = owner_address(&random[16..]);
    let password_hash = app.passwords().hash(input.password, salt).await?;
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
        plan,
        data_key: wrapped,
        referred_by: None,
        mailbox_count: 0,
        api_key_count: 0,
        created_at: now,
        updated_at: now,
    };
    Ok(NewAccount { account, password_hash, workspace })
}

/// Stores an account and its workspace. The first account of a server operates it.
pub(crate) async fn insert(
    tx: &mut SystemTx,
    mut fresh: NewAccount,
    affiliate_code: Option<&str>,
    now: Timestamp,
) -> Result<WorkspaceId> {
    fresh.account.is_admin = system::is_first_account(tx).await?;
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
    Ok(id)
}

/// A session ready to be stored.
struct NewSession {
    session: Session,
    secret: String,
}

fn prepare_session(app: &App, user_agent: &str) -> NewSession {
    let now = app.now();
    let session = Session {
        id: app.new_id(),
        current: true,
        user_agent: user_agent.chars().filter(|character| !character.is_control()).take(200).collect(),
        created_at: now,
        expires_at: now.plus_seconds(SESSION_SECONDS),
    };
    NewSession { session, secret: secrets::new_token(app) }
}

impl NewSession {
    async fn insert(self, tx: &mut SystemTx, account: &AccountId, workspace: &WorkspaceId) -> Result<Opened> {
        let hash = secrets::hash(&self.secret);
        accounts::insert_session(tx, &self.session, &hash, account, workspace).await?;
        Ok(Opened { me: load_me(tx, account, workspace).await?, secret: self.secret })
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
