//! Upkeep of all workspaces: expires or deletes old rows, a bounded number at a time.

use model::{ApiKeyId, Timestamp, WorkspaceId};

use super::credentials::expire_key;
use crate::{SystemTx, error::Result, password_guesses};

/// Subjects whose wrong passwords are counted; above that, those with the fewest are deleted.
const MAX_PASSWORD_GUESSES: i64 = 200_000;

/// Expires and deletes old rows, a bounded number of each kind, and returns how many.
pub async fn sweep(tx: &mut SystemTx, now: Timestamp) -> Result<u64> {
    let most = SystemTx::SWEEP;
    let mut gone = expire_keys(tx, now).await? + sweep_tokens(tx, now).await?;
    for (sql, before) in [
        ("DELETE FROM session WHERE id IN (SELECT id FROM session WHERE expires_at <= $1 LIMIT $2)", now),
        (
            "DELETE FROM idempotency WHERE (workspace_id, key) IN
             (SELECT workspace_id, key FROM idempotency WHERE created_at <= $1 LIMIT $2)",
            now.plus_seconds(-24 * 3600),
        ),
        (
            "DELETE FROM audit WHERE (workspace_id, id) IN
             (SELECT workspace_id, id FROM audit WHERE at <= $1 LIMIT $2)",
            now.plus_seconds(-90 * 24 * 3600),
        ),
        (
            "DELETE FROM event WHERE (workspace_id, sequence) IN
             (SELECT workspace_id, sequence FROM event WHERE occurred_at <= $1 LIMIT $2)",
            now.plus_seconds(-30 * 24 * 3600),
        ),
        (
            "DELETE FROM webhook_delivery WHERE (workspace_id, webhook_id, id) IN
             (SELECT workspace_id, webhook_id, id FROM webhook_delivery
              WHERE created_at <= $1 LIMIT $2)",
            now.plus_seconds(-7 * 24 * 3600),
        ),
        (
            "DELETE FROM send_use WHERE (workspace_id, id) IN
             (SELECT workspace_id, id FROM send_use WHERE at <= $1 LIMIT $2)",
            now.plus_seconds(-48 * 3600),
        ),
        (
            "DELETE FROM auto_reply WHERE (workspace_id, mailbox_id, sender) IN
             (SELECT workspace_id, mailbox_id, sender FROM auto_reply WHERE at <= $1 LIMIT $2)",
            now.plus_seconds(-7 * 24 * 3600),
        ),
        (
            "DELETE FROM cap_use WHERE (workspace_id, message_id, recipient) IN
             (SELECT workspace_id, message_id, recipient FROM cap_use WHERE at <= $1 LIMIT $2)",
            now.plus_seconds(-48 * 3600),
        ),
        (
            "DELETE FROM review WHERE (workspace_id, id) IN
             (SELECT workspace_id, id FROM review WHERE state <> 'pending' AND decided_at <= $1 LIMIT $2)",
            now.plus_seconds(-90 * 24 * 3600),
        ),
        (
            "DELETE FROM destination WHERE name IN (SELECT name FROM destination WHERE resting_until <= $1 LIMIT $2)",
            now.plus_seconds(-24 * 3600),
        ),
        (
            "DELETE FROM payment WHERE (network, asset, payer, nonce) IN
             (SELECT network, asset, payer, nonce FROM payment WHERE amount = 0 AND expires_at <= $1 LIMIT $2)",
            now.plus_seconds(-120),
        ),
    ] {
        gone += tx.run(sql, &[before.into(), most.into()]).await?;
    }
    Ok(gone + sweep_passwords(tx, now, most).await? + sweep_triage(tx, now, most).await?)
}

/// Expires keys, a bounded number, and returns how many. A hash that can be found has 32 bytes.
async fn expire_keys(tx: &mut SystemTx, now: Timestamp) -> Result<u64> {
    let due: Vec<(WorkspaceId, ApiKeyId)> = tx
        .all(
            "SELECT workspace_id, id FROM api_key WHERE expires_at <= $1 AND length(secret_hash) = 32 LIMIT $2",
            &[now.into(), SystemTx::SWEEP.into()],
        )
        .await?;
    for (workspace, key) in &due {
        expire_key(tx, workspace, key).await?;
    }
    Ok(due.len() as u64)
}

/// The same for links sent to people who are not logged in, and for wrong passwords.
async fn sweep_passwords(tx: &mut SystemTx, now: Timestamp, most: i64) -> Result<u64> {
    let mut gone = password_guesses::trim(tx, MAX_PASSWORD_GUESSES).await?;
    for sql in [
        "DELETE FROM password_reset WHERE token_hash IN
         (SELECT token_hash FROM password_reset WHERE expires_at <= $1 LIMIT $2)",
        "DELETE FROM sign_up WHERE token_hash IN
         (SELECT token_hash FROM sign_up WHERE expires_at <= $1 LIMIT $2)",
        "DELETE FROM password_guess WHERE subject IN
         (SELECT subject FROM password_guess WHERE expires_at <= $1 LIMIT $2)",
    ] {
        gone += tx.run(sql, &[now.into(), most.into()]).await?;
    }
    Ok(gone)
}

/// The same for what triagers leave behind.
async fn sweep_triage(tx: &mut SystemTx, now: Timestamp, most: i64) -> Result<u64> {
    let mut gone = 0;
    for (sql, before) in [
        // Without a model no worker takes these, and later they are no longer useful.
        (
            "DELETE FROM triage_job WHERE (workspace_id, mailbox_id, id) IN
             (SELECT workspace_id, mailbox_id, id FROM triage_job WHERE created_at <= $1 LIMIT $2)",
            now.plus_seconds(-24 * 3600),
        ),
        (
            "DELETE FROM triager_run WHERE (workspace_id, mailbox_id, id) IN
             (SELECT workspace_id, mailbox_id, id FROM triager_run WHERE started_at <= $1 LIMIT $2)",
            now.plus_seconds(-30 * 24 * 3600),
        ),
        (
            "UPDATE triager_run SET status = 'FAILED', summary = 'It was given up.', finished_at = $1
             WHERE (workspace_id, mailbox_id, id) IN (SELECT workspace_id, mailbox_id, id FROM triager_run
               WHERE started_at <= $1 AND status = 'RUNNING' LIMIT $2)",
            now.plus_seconds(-24 * 3600),
        ),
        (
            "DELETE FROM task WHERE (workspace_id, mailbox_id, id) IN
             (SELECT workspace_id, mailbox_id, id FROM task WHERE status <> 'open' AND updated_at <= $1 LIMIT $2)",
            now.plus_seconds(-90 * 24 * 3600),
        ),
        (
            "DELETE FROM calendar_event WHERE (workspace_id, mailbox_id, uid) IN
             (SELECT workspace_id, mailbox_id, uid FROM calendar_event WHERE updated_at <= $1 LIMIT $2)",
            now.plus_seconds(-400 * 24 * 3600),
        ),
    ] {
        gone += tx.run(sql, &[before.into(), most.into()]).await?;
    }
    Ok(gone)
}

/// The same for tokens of agents and chats.
async fn sweep_tokens(tx: &mut SystemTx, now: Timestamp) -> Result<u64> {
    let mut gone = 0;
    for (sql, before) in [
        (
            "DELETE FROM confirmation WHERE (workspace_id, token_hash) IN
             (SELECT workspace_id, token_hash FROM confirmation WHERE expires_at <= $1 LIMIT $2)",
            now,
        ),
        (
            "DELETE FROM telegram_code WHERE (workspace_id, mailbox_id) IN
             (SELECT workspace_id, mailbox_id FROM telegram_code WHERE expires_at <= $1 LIMIT $2)",
            now,
        ),
        (
            "DELETE FROM telegram_notice WHERE (workspace_id, id) IN
             (SELECT workspace_id, id FROM telegram_notice WHERE created_at <= $1 LIMIT $2)",
            now.plus_seconds(-30 * 24 * 3600),
        ),
    ] {
        gone += tx.run(sql, &[before.into(), SystemTx::SWEEP.into()]).await?;
    }
    Ok(gone)
}
