//! The caller itself: what its key or session is, and what it may do.

use model::identity::{Identity, IdentityKind, IdentityWorkspace};
use store::{accounts, api_keys, workspaces};

use crate::core::{
    app::App,
    call::Call,
    caller::Actor,
    error::{Error, ErrorKind, Result},
    operation::Operation,
};

/// Reads the caller.
pub const GET: Operation =
    Operation::read("getIdentity", "Returns what the caller is and what it may do; works with any key.")
        .any_scope(&[])
        .visible()
        .tagged();

pub(crate) const OPERATIONS: &[&Operation] = &[&GET];

/// Reads the caller.
#[crate::boxed]
pub async fn get(app: &App, call: &Call) -> Result<Identity> {
    let (actor, workspace) = (call.caller.actor.clone(), call.workspace.clone());
    let (role, plan, expires_at) = (call.role, call.plan, call.caller.expires_at);
    let gone = || Error::new(ErrorKind::Unauthorized);
    app.db()
        .system_read(async move |tx| {
            let (kind, id, name, scopes, mailbox_ids) = match actor {
                Actor::Key(id) => {
                    let key = api_keys::find(tx.enter(&workspace), &id).await?.ok_or_else(gone)?;
                    (IdentityKind::Key, id.to_string(), key.name, key.scopes, key.mailbox_ids)
                }
                Actor::Person { account, session, .. } => {
                    let account = accounts::find(tx, &account).await?.ok_or_else(gone)?;
                    (IdentityKind::Session, session.to_string(), account.name, None, None)
                }
                // They have their own interfaces.
                Actor::Wallet(_) | Actor::Chat(_) => return Err(gone()),
            };
            let found = workspaces::find(tx.enter(&workspace)).await?.ok_or_else(gone)?;
            let workspace = IdentityWorkspace { id: found.id, name: found.name, plan };
            Ok(Identity { kind, id, name, role, scopes, mailbox_ids, workspace, expires_at })
        })
        .await
}
