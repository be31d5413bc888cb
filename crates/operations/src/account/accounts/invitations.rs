//! Accepting an invitation.
//!
//! The inviting person sees the link, so it proves nothing about who follows it. An existing account accepts by being
//! signed in, never by its password; everyone else signs up, under the usual conditions.

use model::{
    accounts::{Me, SignUp, VerificationSent},
    members::AcceptInvite,
};
use store::accounts;

use super::{
    ACCEPT_INVITE, OpenedSession,
    invite_tokens::{TokenHash, find, redeem},
    load_me,
    new_account::add_member,
    person, sign_up, verification,
};
use crate::core::{
    app::App,
    audit::Author,
    caller::Caller,
    error::{Error, ErrorKind, Result},
    passwords::Client,
    secrets,
};

/// The outcome of accepting an invitation.
pub enum InviteOutcome {
    /// The signed-in account joined the workspace.
    Joined(Me),
    /// A new account joined it and is logged in.
    Opened(OpenedSession),
    /// A message was sent to the invited address; its link makes the account, which joins.
    Sent(VerificationSent),
}

/// Accepts an invitation: with a password by making an account for the invited address, without one as the signed-in
/// account.
#[crate::boxed]
pub async fn accept(
    app: &App,
    input: AcceptInvite,
    caller: Option<&Caller>,
    client: &Client,
) -> Result<InviteOutcome> {
    let hash = secrets::hash(&input.token);
    let Some(password) = input.password else {
        let caller = caller.ok_or_else(|| Error::new(ErrorKind::Unauthorized))?;
        return join(app, hash, caller, client).await.map(InviteOutcome::Joined);
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
        return Ok(InviteOutcome::Sent(verification::request(app, wanted).await?));
    }
    sign_up::create(app, wanted, Some(hash), client).await.map(InviteOutcome::Opened)
}

/// Joins as the signed-in account, if it has the invited address.
async fn join(app: &App, hash: TokenHash, caller: &Caller, client: &Client) -> Result<Me> {
    let (account, session) = person(caller)?;
    let now = app.now();
    let entry = app.audit_entry(&Author::caller(caller, &client.request), ACCEPT_INVITE);
    let me = app
        .db()
        .system_write(async move |tx| {
            let (workspace, invite) = redeem(tx, &hash, now).await?;
            let own = accounts::find(tx, &account).await?;
            if own.is_none_or(|own| own.email != invite.email) {
                return Err(Error::with_message(
                    ErrorKind::RoleRequired,
                    "This invite is for another address than your account's.",
                )
                .with_fix("Log in with the account of the invited address."));
            }
            add_member(tx.enter(&workspace), &account, &invite, &entry).await?;
            accounts::choose_workspace(tx, &session, &workspace).await?;
            load_me(tx, &account, &workspace).await
        })
        .await?;
    app.credentials().forget();
    Ok(me)
}
