//! Accounts and console sessions. They belong to the server, not to a workspace.

use model::{
    AccountId, SessionId, Timestamp, WorkspaceId,
    accounts::{Account, Session},
};

use crate::{
    FromRow, Row, SystemTx,
    error::Result,
    sql::{Columns, Insert, columns},
};

/// An account together with what its password is checked against.
pub struct AccountWithPassword {
    /// The account.
    pub account: Account,
    /// The hash in PHC form.
    pub password_hash: String,
}

const COLUMNS: &str = Account::COLUMNS;

columns!(Account { id, email, name, is_admin, address, created_at });

impl FromRow for AccountWithPassword {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self { account: Account::from_row(row)?, password_hash: row.next()? })
    }
}

/// Adds an account. False when the address is taken.
pub async fn insert(tx: &mut SystemTx, account: &Account, password_hash: &str) -> Result<bool> {
    Insert::into("account")
        .record(account)
        .column("updated_at", account.created_at)
        .column("password_hash", password_hash)
        .unless_same("email")
        .run_system(tx)
        .await
}

/// Finds an account by its normalised address.
pub async fn find_by_email(tx: &mut SystemTx, email: &str) -> Result<Option<AccountWithPassword>> {
    tx.one(&format!("SELECT {COLUMNS}, password_hash FROM account WHERE email = $1"), &[email.into()]).await
}

/// Finds an account.
pub async fn find(tx: &mut SystemTx, id: &AccountId) -> Result<Option<Account>> {
    tx.one(&format!("SELECT {COLUMNS} FROM account WHERE id = $1"), &[id.into()]).await
}

/// Adds a session.
pub async fn insert_session(
    tx: &mut SystemTx,
    session: &Session,
    secret_hash: &[u8],
    account: &AccountId,
    workspace: &WorkspaceId,
) -> Result<()> {
    tx.run(
        "INSERT INTO session (id, secret_hash, account_id, chosen_workspace, user_agent, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &[
            (&session.id).into(),
            secret_hash.into(),
            account.into(),
            workspace.into(),
            (&session.user_agent).into(),
            session.created_at.into(),
            session.expires_at.into(),
        ],
    )
    .await?;
    Ok(())
}

impl FromRow for Session {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self {
            id: row.next()?,
            current: false,
            user_agent: row.next()?,
            created_at: row.next()?,
            expires_at: row.next()?,
        })
    }
}

/// The sessions of an account that have not expired, newest first.
pub async fn list_sessions(tx: &mut SystemTx, account: &AccountId, now: Timestamp) -> Result<Vec<Session>> {
    tx.all(
        "SELECT id, user_agent, created_at, expires_at FROM session
         WHERE account_id = $1 AND expires_at > $2 ORDER BY created_at DESC, id DESC LIMIT 200",
        &[account.into(), now.into()],
    )
    .await
}

/// Deletes one session of an account. False when there is none.
pub async fn delete_session(tx: &mut SystemTx, account: &AccountId, id: &SessionId) -> Result<bool> {
    let gone =
        tx.run("DELETE FROM session WHERE account_id = $1 AND id = $2", &[account.into(), id.into()]).await?;
    Ok(gone == 1)
}

/// Deletes all sessions of an account.
pub async fn delete_sessions(tx: &mut SystemTx, account: &AccountId) -> Result<()> {
    tx.run("DELETE FROM session WHERE account_id = $1", &[account.into()]).await?;
    Ok(())
}

/// Chooses the workspace of a session.
pub async fn choose_workspace(tx: &mut SystemTx, id: &SessionId, workspace: &WorkspaceId) -> Result<()> {
    tx.run("UPDATE session SET chosen_workspace = $2 WHERE id = $1", &[id.into(), workspace.into()]).await?;
    Ok(())
}

/// Sets the password of an account.
pub async fn set_password(
    tx: &mut SystemTx,
    account: &AccountId,
    password_hash: &str,
    now: Timestamp,
) -> Result<()> {
    tx.run(
        "UPDATE account SET password_hash = $2, updated_at = $3 WHERE id = $1",
        &[account.into(), password_hash.into(), now.into()],
    )
    .await?;
    Ok(())
}

/// Adds a password reset link.
pub async fn insert_reset(
    tx: &mut SystemTx,
    token_hash: &[u8],
    account: &AccountId,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<()> {
    tx.run(
        "INSERT INTO password_reset (token_hash, account_id, created_at, expires_at) VALUES ($1, $2, $3, $4)",
        &[token_hash.into(), account.into(), now.into(), expires_at.into()],
    )
    .await?;
    Ok(())
}

/// How many reset links of an account are still valid.
pub async fn count_resets(tx: &mut SystemTx, account: &AccountId, now: Timestamp) -> Result<i64> {
    let found = tx
        .one(
            "SELECT count(*) FROM password_reset WHERE account_id = $1 AND expires_at > $2",
            &[account.into(), now.into()],
        )
        .await?;
    Ok(found.map_or(0, |(count,)| count))
}

/// The account of a reset link, if the link is still valid.
pub async fn find_reset(tx: &mut SystemTx, token_hash: &[u8], now: Timestamp) -> Result<Option<AccountId>> {
    let found: Option<(AccountId,)> = tx
        .one(
            "SELECT account_id FROM password_reset WHERE token_hash = $1 AND expires_at > $2",
            &[token_hash.into(), now.into()],
        )
        .await?;
    Ok(found.map(|(account,)| account))
}

/// Deletes all reset links of an account.
pub async fn delete_resets(tx: &mut SystemTx, account: &AccountId) -> Result<u64> {
    tx.run("DELETE FROM password_reset WHERE account_id = $1", &[account.into()]).await
}
