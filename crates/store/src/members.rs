//! Members of a workspace and invitations into it.

use model::{
    AccountId, InviteId, Role, Timestamp, WorkspaceId,
    members::{Invite, Member},
};

use crate::{
    SystemTx, Tx,
    error::Result,
    sql::{Columns, Insert, columns, row},
};

row!(Member { id, email, name, role, address, joined_at });

const SELECT: &str = "SELECT a.id, a.email, a.name, m.role, a.address, m.joined_at
    FROM member m JOIN account a ON a.id = m.account_id WHERE m.workspace_id = $1";

/// The members, oldest first.
pub async fn list(tx: &mut Tx) -> Result<Vec<Member>> {
    tx.all(&format!("{SELECT} ORDER BY m.joined_at, a.id"), &[]).await
}

/// Finds a member.
pub async fn find(tx: &mut Tx, id: &AccountId) -> Result<Option<Member>> {
    tx.one(&format!("{SELECT} AND m.account_id = $2"), &[id.into()]).await
}

/// Adds a member. False when the account is one already.
pub async fn insert(tx: &mut Tx, account: &AccountId, role: Role, now: Timestamp) -> Result<bool> {
    let added = tx
        .run(
            "INSERT INTO member (workspace_id, account_id, role, joined_at) VALUES ($1, $2, $3, $4)
             ON CONFLICT (workspace_id, account_id) DO NOTHING",
            &[account.into(), role.into(), now.into()],
        )
        .await?;
    Ok(added == 1)
}

/// Sets a member's role.
pub async fn set_role(tx: &mut Tx, id: &AccountId, role: Role) -> Result<()> {
    tx.run(
        "UPDATE member SET role = $3 WHERE workspace_id = $1 AND account_id = $2",
        &[id.into(), role.into()],
    )
    .await?;
    Ok(())
}

/// Removes a member.
pub async fn delete(tx: &mut Tx, id: &AccountId) -> Result<()> {
    tx.run("DELETE FROM member WHERE workspace_id = $1 AND account_id = $2", &[id.into()]).await?;
    Ok(())
}

/// How many admins the workspace has.
pub async fn count_admins(tx: &mut Tx) -> Result<i64> {
    let found = tx.one("SELECT count(*) FROM member WHERE workspace_id = $1 AND role = 'admin'", &[]).await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// How many members and open invitations the workspace has.
pub async fn count_seats(tx: &mut Tx, now: Timestamp) -> Result<i64> {
    let found = tx
        .one(
            "SELECT (SELECT count(*) FROM member WHERE workspace_id = $1) +
                    (SELECT count(*) FROM invite WHERE workspace_id = $1 AND expires_at > $2)",
            &[now.into()],
        )
        .await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// Whether an address belongs to a member.
pub async fn has_email(tx: &mut Tx, email: &str) -> Result<bool> {
    let found: Option<(i64,)> = tx
        .one(
            "SELECT count(*) FROM member m JOIN account a ON a.id = m.account_id
             WHERE m.workspace_id = $1 AND a.email = $2",
            &[email.into()],
        )
        .await?;
    Ok(found.is_some_and(|(count,)| count > 0))
}

columns!(Invite { id, email, role, created_at, expires_at });

/// The open invitations, oldest first.
pub async fn list_invites(tx: &mut Tx, now: Timestamp) -> Result<Vec<Invite>> {
    tx.all(
        &format!(
            "SELECT {} FROM invite
         WHERE workspace_id = $1 AND expires_at > $2 ORDER BY created_at, id",
            Invite::COLUMNS
        ),
        &[now.into()],
    )
    .await
}

/// Finds an invitation.
pub async fn find_invite(tx: &mut Tx, id: &InviteId) -> Result<Option<Invite>> {
    tx.one(
        &format!("SELECT {} FROM invite WHERE workspace_id = $1 AND id = $2", Invite::COLUMNS),
        &[id.into()],
    )
    .await
}

/// Adds an invitation; replaces an older one for the same address.
pub async fn insert_invite(tx: &mut Tx, invite: &Invite, token_hash: &[u8]) -> Result<()> {
    tx.run("DELETE FROM invite WHERE workspace_id = $1 AND email = $2", &[(&invite.email).into()]).await?;
    Insert::into("invite").record(invite).column("token_hash", token_hash).run(tx).await?;
    Ok(())
}

/// Gives an invitation a new token and expiry.
pub async fn renew_invite(
    tx: &mut Tx,
    id: &InviteId,
    token_hash: &[u8],
    expires_at: Timestamp,
) -> Result<()> {
    tx.run(
        "UPDATE invite SET token_hash = $3, expires_at = $4 WHERE workspace_id = $1 AND id = $2",
        &[id.into(), token_hash.into(), expires_at.into()],
    )
    .await?;
    Ok(())
}

/// Removes an invitation. False when there is none.
pub async fn delete_invite(tx: &mut Tx, id: &InviteId) -> Result<bool> {
    let gone = tx.run("DELETE FROM invite WHERE workspace_id = $1 AND id = $2", &[id.into()]).await?;
    Ok(gone == 1)
}

/// Finds the invitation of a token, in any workspace.
pub async fn find_invite_by_token(
    tx: &mut SystemTx,
    token_hash: &[u8],
) -> Result<Option<(WorkspaceId, InviteId)>> {
    tx.one("SELECT workspace_id, id FROM invite WHERE token_hash = $1", &[token_hash.into()]).await
}
