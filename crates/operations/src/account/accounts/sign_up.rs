//! Sign-up: an account and its workspace in one step.
//!
//! The first account of a server is its operator, whose workspace gets the plan `operator.plan`. Where strangers can reach the server, that account needs the code
//! that the server printed at its start. Later ones may have to verify their address first.

use hmac::Mac;
use model::accounts::{SignUp, VerificationSent};
use store::system;

use super::{
    OpenedSession, SIGN_UP,
    invite_tokens::TokenHash,
    new_account::{insert_invited, prepare, require_open},
    prepare_session, verification,
};
use crate::core::{
    app::App,
    error::{Error, ErrorKind, Result},
    passwords::{
        Client, Purpose, Turn,
        guesses::{self, Subject},
    },
    secrets,
};

/// The outcome of a sign-up.
pub enum SignUpOutcome {
    /// The account exists and is logged in.
    Opened(OpenedSession),
    /// A message was sent to the address; its link makes the account.
    Sent(VerificationSent),
}

/// Makes an account and its workspace, and logs in; or sends a link that does, where addresses are verified.
#[crate::boxed]
pub async fn sign_up(app: &App, input: SignUp, client: &Client) -> Result<SignUpOutcome> {
    require_open(app)?;
    if has_accounts(app).await? {
        if app.settings().sign_up.verify {
            return Ok(SignUpOutcome::Sent(verification::request(app, input.into()).await?));
        }
    } else {
        require_code(app, input.code.as_deref())?;
    }
    create(app, input, None, client).await.map(SignUpOutcome::Opened)
}

/// Makes an account, which joins the workspace of an invitation if there is one, and logs in.
///
/// Attempts with addresses that already have an account count as guesses of the client, so that few can be probed.
pub(super) async fn create(
    app: &App,
    input: SignUp,
    invite: Option<TokenHash>,
    client: &Client,
) -> Result<OpenedSession> {
    let attempt = guesses::begin(app, &[Subject::SignUp(client.network)]).await?;
    let made = store_new(app, input, invite, client).await;
    if !made.as_ref().is_err_and(|refused| refused.kind() == ErrorKind::AccountExists) {
        attempt.withdraw(app).await?;
    }
    made
}

async fn store_new(
    app: &App,
    input: SignUp,
    invite: Option<TokenHash>,
    client: &Client,
) -> Result<OpenedSession> {
    let code = input.affiliate_code.clone();
    let turn = Turn { purpose: Purpose::SignUp, client: Some(client.network) };
    let fresh = prepare(app, input, None, turn).await?;
    let session = prepare_session(app, client, &fresh.account.id)?;
    let entry = app.account_entry(&fresh.account, &client.request, SIGN_UP);
    let verify = app.settings().sign_up.verify;
    let opened = app
        .db()
        .system_write(async move |tx| {
            if verify && !system::is_first_account(tx).await? {
                // Another account was first, so this address has to be verified after all.
                return Err(Error::new(ErrorKind::Overloaded).with_retry_after(1));
            }
            let account = fresh.account.id.clone();
            let workspace = insert_invited(tx, fresh, code.as_deref(), invite, &entry).await?;
            session.insert(tx, &account, &workspace).await
        })
        .await?;
    app.credentials().forget();
    Ok(opened)
}

/// Whether there is no account yet, and whether the first one needs the code.
#[crate::boxed]
pub async fn first_account(app: &App) -> Result<(bool, bool)> {
    let empty = !has_accounts(app).await?;
    Ok((empty, empty && app.settings().sign_up.first_account_code))
}

/// The code that the first account needs, while there is no account and strangers can reach the server. It is derived
/// from the master key, so every node has the same one.
#[crate::boxed]
pub async fn first_account_code(app: &App) -> Result<Option<String>> {
    if !app.settings().sign_up.first_account_code || has_accounts(app).await? {
        return Ok(None);
    }
    expected_code(app).map(Some)
}

/// Digits and letters that cannot be confused.
const CODE_ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Characters of a code, five bits each.
const CODE_LENGTH: usize = 20;

fn expected_code(app: &App) -> Result<String> {
    let bytes = secrets::keyed(app, "first account", &[])?.finalize().into_bytes();
    let mut code = String::new();
    for (index, byte) in bytes.iter().take(CODE_LENGTH).enumerate() {
        if index > 0 && index % 5 == 0 {
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
    // Hashes are compared, so that the timing reveals nothing.
    let expected = secrets::hash(&plain(&expected_code(app)?));
    if given.is_some_and(|given| secrets::hash(&plain(given)) == expected) {
        return Ok(());
    }
    Err(Error::with_message(
        ErrorKind::RoleRequired,
        "The first account of this server needs the code that the server printed when it started.",
    )
    .with_fix("Send it as `code`, or create the account on the server with `admin account create`."))
}

async fn has_accounts(app: &App) -> Result<bool> {
    Ok(app.db().system_read(async |tx| system::counts(tx).await).await?.0 > 0)
}
