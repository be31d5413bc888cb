//! Accepting an invitation.
//!
//! The person who invites sees the link, so it proves nothing about who follows it. An account that exists accepts by being
//! signed in, never by its password; everybody else makes an account, under the same conditions as by signing up.

use model::{
    accounts::{Me, SignUp, VerificationSent},
    members::AcceptInvite,
};
use store::{accounts, members};

use super::{
    Opened,
    invite_tokens::{TokenHash, find, take},
    load_me, person, sign_up, verification,
};
use crate::core::{
    app::App,
    caller::Caller,
    error::{Error, ErrorKind, Result},
    passwords::Client,
    secrets,
};

/// What came of accepting an invitation.
pub enum Accepted {
    /// The account that is signed in joined the workspace.
    Joined(Me),
    /// A new account joined it and is logged in.
    Opened(Opened),
    /// A message is on its way to the invited address; its link makes the account, which joins.
    Sent(VerificationSent),
}

/// Accepts an invitation: with a password by making an account for the invited address, without one as the account that is
/// signed in.
#[crate::boxed]
pub async fn accept(
    app: &App,
    input: AcceptInvite,
    caller: Option<&Caller>,
    client: &Client,
) -> Result<Accepted> {
    let hash = secrets::hash(&input.token);
    let Some(password) = input.password else {
        let caller = caller.ok_or_else(|| Error::new(ErrorKind::Unauthorized))?;
        return join(app, hash, caller).await.map(Accepted::Joined);
    };
    let now = app.now();
    let (_, invite) = app.db().system_read(async move |tx| find(tx, &hash, now).await).await?;
    let wanted = SignUp {
        email: invite.email,
        password,
        name: input.name,
        workspace_name: None,
        affiliate_code: None,
        code: None,
    };
    if app.settings().sign_up.verify {
        let wanted = verification::SignUpRequest { invite: Some(hash), ..wanted.into() };
        return Ok(Accepted::Sent(verification::request(app, wanted).await?));
    }
    sign_up::create(app, wanted, Some(hash), client).await.map(Accepted::Opened)
}

/// Joins as the account that is signed in, if it has the invited address.
async fn join(app: &App, hash: TokenHash, caller: &Caller) -> Result<Me> {
    let (account, session) = person(caller)?;
    let now = app.now();
    let me = app
        .db()
        .system_write(async move |tx| {
            let (workspace, invite) = take(tx, &hash, now).await?;
            let own = accounts::find(tx, &account).await?;
            if own.is_none_or(|own| own.email != invite.email) {
                return Err(Error::with_message(
                    ErrorKind::RoleRequired,
                    "This invitation is for another address than the one you are logged in with.",
                )
                .with_fix("Log in with the invited address."));
            }
            members::insert(tx.enter(&workspace), &account, invite.role, now).await?;
            accounts::choose_workspace(tx, &session, &workspace).await?;
            load_me(tx, &account, &workspace).await
        })
        .await?;
    app.credentials().forget();
    Ok(me)
}
