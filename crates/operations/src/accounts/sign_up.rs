//! Signing up: an account and its workspace in one step.
//!
//! The first account of a server operates it. Where strangers can reach the server, that account needs the code that the
//! server printed at its start. Later ones may have to show that their address is theirs first.

use std::fmt::Write as _;

use hmac::Mac;
use model::{
    Plan, Role, Timestamp, WorkspaceId,
    accounts::{Account, SignUp, VerificationSent},
};
use store::{
    SystemTx, accounts, affiliate, members, system,
    vault::DataKey,
    workspaces::{self, WorkspaceRecord},
};

use super::{Opened, invitations, prepare_session, verification};
use crate::{
    App, Client, Error, ErrorKind, Result, clean_email, clean_name,
    passwords::{
        self, Purpose, Turn,
        guesses::{self, Subject},
    },
    secrets,
};

/// What came of signing up.
pub enum SignedUp {
    /// The account is there and logged in.
    Opened(Opened),
    /// A message is on its way to the address; its link makes the account.
    Sent(VerificationSent),
}

/// A new account with the workspace that comes with it.
pub(crate) struct NewAccount {
    pub(crate) account: Account,
    pub(crate) password_hash: String,
    pub(crate) workspace: WorkspaceRecord,
}

/// Makes an account and its workspace in one step, and logs in; or sends a link that does, where addresses are verified.
#[crate::boxed]
pub async fn sign_up(app: &App, input: SignUp, client: &Client) -> Result<SignedUp> {
    require_open(app)?;
    if has_accounts(app).await? {
        if app.settings().sign_up.verify {
            return Ok(SignedUp::Sent(verification::request(app, input.into()).await?));
        }
    } else {
        require_code(app, input.code.as_deref())?;
    }
    create(app, input, None, client).await.map(SignedUp::Opened)
}

/// Refuses where accounts are made by invitation only.
pub(super) fn require_open(app: &App) -> Result<()> {
    if app.settings().sign_up.open {
        return Ok(());
    }
    Err(Error::new(ErrorKind::RoleRequired).with_fix("This server takes new accounts by invitation only."))
}

/// Makes an account, which joins the workspace of an invitation if there is one, and logs in.
///
/// That an address has an account already is told to few: guesses who has one are counted for the client.
pub(super) async fn create(
    app: &App,
    input: SignUp,
    invite: Option<invitations::TokenHash>,
    client: &Client,
) -> Result<Opened> {
    let attempt = guesses::begin(app, &[Subject::SignUp(client.network)]).await?;
    let made = store_new(app, input, invite, client).await;
    if !made.as_ref().is_err_and(|refused| refused.kind() == ErrorKind::AccountExists) {
        attempt.take_back(app).await?;
    }
    made
}

async fn store_new(
    app: &App,
    input: SignUp,
    invite: Option<invitations::TokenHash>,
    client: &Client,
) -> Result<Opened> {
    let code = input.affiliate_code.clone();
    let turn = Turn { purpose: Purpose::SignUp, client: Some(client.network) };
    let fresh = prepare(app, input, Plan::Free, turn).await?;
    let session = prepare_session(app, client, &fresh.account.id)?;
    let (now, verify) = (app.now(), app.settings().sign_up.verify);
    let opened = app
        .db()
        .system_write(async move |tx| {
            if verify && !system::is_first_account(tx).await? {
                // Somebody else was first, so this address has to be verified after all.
                return Err(Error::new(ErrorKind::Overloaded).with_retry_after(1));
            }
            let account = fresh.account.id.clone();
            let workspace = insert_invited(tx, fresh, code.as_deref(), invite, now).await?;
            session.insert(tx, &account, &workspace).await
        })
        .await?;
    app.credentials().forget();
    Ok(opened)
}

/// Stores an account and its workspace, and lets it join the workspace of its invitation. Tells where it goes first.
pub(super) async fn insert_invited(
    tx: &mut SystemTx,
    fresh: NewAccount,
    affiliate_code: Option<&str>,
    invite: Option<invitations::TokenHash>,
    now: Timestamp,
) -> Result<WorkspaceId> {
    let account = fresh.account.id.clone();
    let Some(invite) = invite else { return insert(tx, fresh, affiliate_code, now).await };
    let (workspace, invite) = invitations::take(tx, &invite, now).await?;
    insert(tx, fresh, affiliate_code, now).await?;
    members::insert(tx.enter(&workspace), &account, invite.role, now).await?;
    Ok(workspace)
}

/// Whether there is no account yet, and whether the first one needs the code.
#[crate::boxed]
pub async fn first_account(app: &App) -> Result<(bool, bool)> {
    let empty = !has_accounts(app).await?;
    Ok((empty, empty && app.settings().sign_up.first_account_code))
}

/// The code that the first account needs, as long as there is none and strangers can reach the server. It is made of the
/// master key, so every node has the same one.
#[crate::boxed]
pub async fn first_account_code(app: &App) -> Result<Option<String>> {
    if !app.settings().sign_up.first_account_code || has_accounts(app).await? {
        return Ok(None);
    }
    expected_code(app).map(Some)
}

/// Digits and letters that nobody takes for one another.
const CODE_ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Characters of a code, five bits each.
const CODE_LENGTH: usize = 20;

fn expected_code(app: &App) -> Result<String> {
    let bytes = secrets::keyed(app, "first account", &[])?.finalize().into_bytes();
    let mut code = String::new();
    for (place, byte) in bytes.iter().take(CODE_LENGTH).enumerate() {
        if place > 0 && place % 5 == 0 {
            code.push('-');
        }
        code.push(char::from(CODE_ALPHABET[usize::from(byte % 32)]));
    }
    Ok(code)
}

fn require_code(app: &App, given: Option<&str>) -> Result<()> {
    if !app.settings().sign_up.first_account_code {
        return Ok(());
    }
    let plain = |code: &str| -> String {
        code.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).collect()
    };
    // Hashes are compared, so that the time tells nothing.
    let expected = secrets::hash(&plain(&expected_code(app)?));
    if given.is_some_and(|given| secrets::hash(&plain(given)) == expected) {
        return Ok(());
    }
    Err(Error::with_message(
        ErrorKind::RoleRequired,
        "The first account of this server needs the code that the server printed at its start.",
    )
    .with_fix("Send it as `code`, or make the account on the server itself with `admin account create`."))
}

async fn has_accounts(app: &App) -> Result<bool> {
    Ok(app.db().system_read(async |tx| system::counts(tx).await).await?.0 > 0)
}

/// A stable address that looks like a wallet's, because a wallet can own a workspace too.
fn owner_address(random: &[u8]) -> String {
    random.iter().fold("0x".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// An account and its workspace, ready to be stored.
pub(crate) async fn prepare(app: &App, input: SignUp, plan: Plan, turn: Turn) -> Result<NewAccount> {
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
