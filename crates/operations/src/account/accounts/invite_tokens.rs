//! The token in the link of an invitation, which works once.

use model::{Timestamp, WorkspaceId, members::Invite};
use store::{SystemTx, members};

use crate::core::error::{Error, Result};

/// The hash of an invitation's token.
pub(super) type TokenHash = [u8; 32];

/// The invitation of a token.
pub(super) async fn find(
    tx: &mut SystemTx,
    hash: &TokenHash,
    now: Timestamp,
) -> Result<(WorkspaceId, Invite)> {
    let (workspace, id) = members::find_invite_by_token(tx, hash).await?.ok_or_else(no_invite)?;
    let invite = members::find_invite(tx.enter(&workspace), &id).await?;
    let invite = invite.filter(|invite| invite.expires_at > now).ok_or_else(no_invite)?;
    Ok((workspace, invite))
}

/// The same, and deletes it: a link works once, even if several people follow it at the same time.
pub(super) async fn redeem(
    tx: &mut SystemTx,
    hash: &TokenHash,
    now: Timestamp,
) -> Result<(WorkspaceId, Invite)> {
    let (workspace, invite) = find(tx, hash, now).await?;
    if !members::delete_invite(tx.enter(&workspace), &invite.id).await? {
        return Err(no_invite());
    }
    Ok((workspace, invite))
}

fn no_invite() -> Error {
    Error::not_found("Invite not found")
}
