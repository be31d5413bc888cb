//! Sign-ups completed by a link in a message, so that only the owner of an address can make an account for it.
//!
//! The answer does not reveal whether the address has an account: its owner then gets a message that says so. The
//! password is chosen by the person who follows the link, never by the requester, who may be a stranger.

use model::accounts::{CompleteSignUp, SignUp, VerificationSent};
use serde::{Deserialize, Serialize};
use store::{accounts, sign_ups, system};

use super::{
    OpenedSession, SIGN_UP,
    invite_tokens::TokenHash,
    new_account::{insert_invited, prepare, require_open},
    prepare_session,
};
use crate::{
    core::{
        app::App,
        error::{Error, ErrorKind, Result},
        input::{clean_email, clean_name},
        passwords::{Client, Purpose, Turn},
        secrets,
    },
    outbox::sending::automatic::enqueue_system,
};

/// How long a link works.
const LINK_SECONDS: i64 = 24 * 3600;
/// Valid links of one address: enough to ask again, too few to flood a mailbox.
const MAX_LINKS: i64 = 3;

/// A sign-up without a password.
pub struct SignUpRequest {
    /// The address.
    pub email: String,
    /// The name of the account.
    pub name: Option<String>,
    /// The name of the workspace.
    pub workspace_name: Option<String>,
    /// An affiliate's code.
    pub affiliate_code: Option<String>,
    /// The invitation that it accepts.
    pub(super) invite: Option<TokenHash>,
}

impl SignUpRequest {
    /// A sign-up that accepts no invitation.
    pub const fn new(
        email: String,
        name: Option<String>,
        workspace_name: Option<String>,
        affiliate_code: Option<String>,
    ) -> Self {
        Self { email, name, workspace_name, affiliate_code, invite: None }
    }
}

impl From<SignUp> for SignUpRequest {
    fn from(input: SignUp) -> Self {
        Self::new(input.email, input.name, input.workspace_name, input.affiliate_code)
    }
}

/// What is stored with the address until the link is followed.
#[derive(Serialize, Deserialize)]
struct Details {
    name: Option<String>,
    workspace_name: Option<String>,
    affiliate_code: Option<String>,
    invite: Option<TokenHash>,
}

/// Sends a link that makes an account, or a message that there is one.
#[crate::boxed]
pub async fn request(app: &App, wanted: SignUpRequest) -> Result<VerificationSent> {
    if wanted.invite.is_none() {
        require_open(app)?;
    }
    let email = clean_email("email", &wanted.email)?.as_str().to_owned();
    for (path, name) in [("name", &wanted.name), ("workspace_name", &wanted.workspace_name)] {
        name.as_ref().map(|name| clean_name(path, name)).transpose()?;
    }
    let details = Details {
        name: wanted.name,
        workspace_name: wanted.workspace_name,
        affiliate_code: wanted.affiliate_code,
        invite: wanted.invite,
    };
    let details = serde_json::to_string(&details).map_err(Error::internal)?;
    let sender = app.db().system_read(async |tx| system::operator_workspace(tx).await).await?;
    let sender =
        sender.ok_or_else(|| Error::internal("the operator has no workspace to send messages from"))?;
    let (token, now) = (secrets::new_token(app), app.now());
    let (app_, key) = (app.clone(), app.data_key(&sender).await?);
    let sent = VerificationSent { email: email.clone(), expires_at: now.plus_seconds(LINK_SECONDS) };
    app.db()
        .system_write(async move |tx| {
            if sign_ups::count(tx, &email, now).await? >= MAX_LINKS {
                return Ok(());
            }
            let (hash, expires_at) = (secrets::hash(&token), now.plus_seconds(LINK_SECONDS));
            // Stored for an existing account as well: its token is never sent, but its messages are counted alike.
            sign_ups::insert(tx, &hash, &email, &details, now, expires_at).await?;
            let exists = accounts::find_by_email(tx, &email).await?.is_some();
            let text = if exists { exists_text(&app_) } else { link_text(&app_, &token) };
            let subject = "Your Agent Mailbox account".to_owned();
            enqueue_system(tx.enter(&sender), &app_, &key, &email, subject, text).await
        })
        .await?;
    Ok(sent)
}

fn link_text(app: &App, token: &str) -> String {
    format!(
        "Finish creating your Agent Mailbox account.\n\n\
         Open this link and choose a password. It works once and expires after one day:\n\n{}/console/verify#{token}\n\n\
         If you did not sign up, ignore this message: no account is created.\n",
        app.settings().public_url
    )
}

fn exists_text(app: &App) -> String {
    let url = &app.settings().public_url;
    format!(
        "Someone tried to create an Agent Mailbox account with this address. You already have one.\n\n\
         Log in: {url}/console/login\nForgot your password: {url}/console/forgot\n\n\
         If it was not you, ignore this message: nothing has changed.\n"
    )
}

/// Makes the account of a link with the given password, and logs in.
#[crate::boxed]
pub async fn complete(app: &App, input: CompleteSignUp, client: &Client) -> Result<OpenedSession> {
    let (hash, now) = (secrets::hash(&input.token), app.now());
    let found = app.db().system_read(async move |tx| sign_ups::find(tx, &hash, now).await).await?;
    let (email, details) = found.ok_or_else(no_link)?;
    let details: Details = serde_json::from_str(&details).map_err(Error::internal)?;
    if details.invite.is_none() {
        require_open(app)?;
    }
    let wanted = SignUp {
        email,
        password: input.password,
        name: details.name,
        workspace_name: details.workspace_name,
        affiliate_code: None,
        code: None,
    };
    let turn = Turn { purpose: Purpose::SignUp, client: Some(client.network) };
    let fresh = prepare(app, wanted, None, turn).await?;
    let session = prepare_session(app, client, &fresh.account.id)?;
    let entry = app.account_entry(&fresh.account, &client.request, SIGN_UP);
    let made = app
        .db()
        .system_write(async move |tx| {
            // A link works once, even if several people follow it at the same time.
            if !sign_ups::delete(tx, &hash).await? {
                return Err(no_link());
            }
            let (account, code) = (fresh.account.id.clone(), details.affiliate_code.as_deref());
            let workspace = insert_invited(tx, fresh, code, details.invite, &entry).await?;
            session.insert(tx, &account, &workspace).await
        })
        .await;
    match made {
        Err(refused) if refused.kind() == ErrorKind::AccountExists => Err(no_link()),
        made => {
            app.credentials().forget();
            made
        }
    }
}

fn no_link() -> Error {
    Error::not_found("This link has expired or was already used.").with_fix("Sign up again.")
}
