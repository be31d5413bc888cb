//! Send policies of workspaces and mailboxes, and what counts towards their caps.

use std::collections::BTreeSet;

use model::{MailboxId, Timestamp, send_policies::NewSendPolicy};

use crate::{
    Param, Tx,
    error::Result,
    sql::{Columns, Insert, columns, long_list_params, long_list_placeholders},
};

/// The migration that programs must know to obey policies.
pub const SCHEMA: i64 = 39;
/// The one that they must know to search contents.
pub const SCAN_SCHEMA: i64 = 40;

/// A policy as it was set.
#[derive(Clone, Debug)]
pub struct PolicyRecord {
    /// The mailbox; empty for the policy of the workspace.
    pub mailbox_id: MailboxId,
    /// What was set.
    pub policy: NewSendPolicy,
    /// Rises with every change.
    pub version: i64,
}

columns!(PolicyRecord { mailbox_id, policy as json, version });

/// The policies of the workspace and of one of its mailboxes, as far as there are any: that of the workspace first.
pub async fn find(tx: &mut Tx, mailbox: &MailboxId) -> Result<Vec<PolicyRecord>> {
    let columns = PolicyRecord::COLUMNS;
    let sql = format!(
        "SELECT {columns} FROM send_policy WHERE workspace_id = $1 AND mailbox_id IN ('', $2) ORDER BY mailbox_id"
    );
    tx.all(&sql, &[mailbox.into()]).await
}

/// Whether anything stands against messages of these mailboxes to these addresses, in lower case: a policy of the workspace
/// or of a mailbox, or a suppression.
pub async fn any(tx: &mut Tx, mailboxes: &BTreeSet<&MailboxId>, addresses: &[String]) -> Result<bool> {
    let ids: Vec<MailboxId> = mailboxes.iter().map(|id| (*id).clone()).collect();
    let (of_workspace, nothing) = (MailboxId::from(""), String::new());
    let mut params: Vec<Param<'_>> = long_list_params(&ids, &of_workspace).collect();
    let first = params.len() + 2;
    params.extend(long_list_params(addresses, &nothing));
    let sql = format!(
        "SELECT mailbox_id FROM send_policy WHERE workspace_id = $1 AND mailbox_id IN ('', {})
         UNION ALL SELECT mailbox_id FROM suppression WHERE workspace_id = $1 AND address IN ({}) LIMIT 1",
        long_list_placeholders(2, ids.len()),
        long_list_placeholders(first, addresses.len())
    );
    Ok(tx.one::<(MailboxId,)>(&sql, &params).await?.is_some())
}

/// All policies of the workspace.
pub async fn list(tx: &mut Tx) -> Result<Vec<PolicyRecord>> {
    let sql = format!(
        "SELECT {} FROM send_policy WHERE workspace_id = $1 ORDER BY mailbox_id",
        PolicyRecord::COLUMNS
    );
    tx.all(&sql, &[]).await
}

/// Sets a policy; the mailbox is empty for that of the workspace.
pub async fn set(tx: &mut Tx, mailbox: &MailboxId, policy: &NewSendPolicy, now: Timestamp) -> Result<()> {
    tx.run(
        "INSERT INTO send_policy (workspace_id, mailbox_id, policy, version, updated_at) VALUES ($1, $2, $3, 1, $4)
         ON CONFLICT (workspace_id, mailbox_id) DO UPDATE SET policy = excluded.policy,
           version = send_policy.version + 1, updated_at = excluded.updated_at",
        &[mailbox.into(), Param::Json(policy), now.into()],
    )
    .await?;
    Ok(())
}

/// Deletes a policy. False when there is none.
pub async fn delete(tx: &mut Tx, mailbox: &MailboxId) -> Result<bool> {
    let sql = "DELETE FROM send_policy WHERE workspace_id = $1 AND mailbox_id = $2";
    Ok(tx.run(sql, &[mailbox.into()]).await? == 1)
}

/// Serialises what counts towards the caps of a workspace until the end of the transaction. It comes after the locks of
/// mailboxes.
pub async fn lock_caps(tx: &mut Tx) -> Result<()> {
    if tx.is_postgres() {
        let sql = "SELECT CAST(1 AS BIGINT) FROM (SELECT pg_advisory_xact_lock(hashtextextended('caps ' || $1, 0))) AS locked";
        tx.one::<(i64,)>(sql, &[]).await?;
    }
    Ok(())
}

/// A recipient of a message that counts towards caps.
#[derive(Clone, Debug)]
pub struct CapUse {
    /// The message, by its name in the queue.
    pub message_id: String,
    /// The recipient, in lower case.
    pub recipient: String,
    /// The mailbox that sends it.
    pub mailbox_id: MailboxId,
    /// Whether the workspace had never sent to it.
    pub is_new: bool,
    /// When.
    pub at: Timestamp,
}

columns!(CapUse { message_id, recipient, mailbox_id, is_new, at });

/// Counts recipients of a message.
pub async fn count(tx: &mut Tx, uses: &[CapUse]) -> Result<()> {
    let rows = uses
        .iter()
        .map(|one| Insert::into("cap_use").record(one).unless_same("workspace_id, message_id, recipient"));
    Insert::pipeline_all(tx, rows.collect()).await
}

/// Takes a message off again.
pub async fn discount(tx: &mut Tx, message: &str) -> Result<()> {
    tx.run("DELETE FROM cap_use WHERE workspace_id = $1 AND message_id = $2", &[message.into()]).await?;
    Ok(())
}

/// What is counted for a cap.
#[derive(Clone, Copy, Debug)]
pub struct CapScope<'a> {
    /// Only messages of this mailbox.
    pub mailbox: Option<&'a MailboxId>,
    /// Only this recipient.
    pub recipient: Option<&'a str>,
    /// Only recipients that were new.
    pub only_new: bool,
    /// Not this message.
    pub except: &'a str,
}

/// When the recipient was counted that has this many newer ones, if that was after a time.
pub async fn nth_newest(
    tx: &mut Tx,
    scope: CapScope<'_>,
    after: Timestamp,
    newer: i64,
) -> Result<Option<Timestamp>> {
    let mut conditions = String::new();
    let mut params: Vec<Param<'_>> = vec![after.into(), scope.except.into(), newer.into()];
    if let Some(mailbox) = scope.mailbox {
        params.push(mailbox.into());
        conditions.push_str(" AND mailbox_id = $5");
    }
    if let Some(recipient) = scope.recipient {
        params.push(recipient.into());
        conditions.push_str(if scope.mailbox.is_some() {
            " AND recipient = $6"
        } else {
            " AND recipient = $5"
        });
    }
    if scope.only_new {
        conditions.push_str(" AND is_new = 1");
    }
    let sql = format!(
        "SELECT at FROM cap_use WHERE workspace_id = $1 AND at > $2 AND message_id <> $3{conditions}
         ORDER BY at DESC LIMIT 1 OFFSET $4"
    );
    Ok(tx.one::<(Timestamp,)>(&sql, &params).await?.map(|(at,)| at))
}
