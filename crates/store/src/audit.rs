//! Who did what: one row for every write, in the transaction of its effect.

use model::{AccountId, MailboxId, Timestamp, audit::AuditDetails};

use crate::{
    FromRow, Param, Row, SystemTx, Tx,
    error::Result,
    sql::{Columns, Insert, columns},
    system,
};

/// One entry of the audit trail.
#[derive(Clone, Debug)]
pub struct AuditEntry {
    /// The digits of a time-ordered UUID.
    pub id: String,
    /// When.
    pub at: Timestamp,
    /// Which key, account, wallet or chat; or the operator, or the service.
    pub actor: String,
    /// Its name at that time: it may be deleted later.
    pub actor_name: Option<String>,
    /// From where.
    pub address: Option<String>,
    /// Which operation.
    pub operation: String,
    /// On what: the path of the request, or the command.
    pub subject: String,
    /// The request's id, as in the logs.
    pub request_id: String,
}

columns!(AuditEntry { id, at, actor, actor_name, address, operation, subject, request_id });

columns!(AuditDetails { resource_kind, resource_id, mailbox_id, changes as optional_json });

/// An entry as it is read.
pub struct AuditRow {
    /// Who did what.
    pub entry: AuditEntry,
    /// What it is about.
    pub details: AuditDetails,
}

impl FromRow for AuditRow {
    fn from_row(row: &mut Row<'_>) -> Result<Self> {
        Ok(Self { entry: AuditEntry::from_row(row)?, details: AuditDetails::from_row(row)? })
    }
}

/// Adds entries.
pub async fn insert(tx: &mut Tx, entries: &[(&AuditEntry, &AuditDetails)]) -> Result<()> {
    let rows = entries.iter().map(|(entry, details)| Insert::into("audit").record(*entry).record(*details));
    Insert::pipeline_all(tx, rows.collect()).await
}

/// Adds an entry to every workspace of an account: what changes the account concerns all of them.
pub async fn insert_for_account(
    tx: &mut SystemTx,
    account: &AccountId,
    entry: &AuditEntry,
    details: &AuditDetails,
) -> Result<()> {
    for membership in system::memberships(tx, account).await? {
        insert(tx.enter(&membership.workspace_id), &[(entry, details)]).await?;
    }
    Ok(())
}

/// Which entries a list shows.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Of this actor.
    pub actor: Option<String>,
    /// This operation.
    pub operation: Option<String>,
    /// In this mailbox.
    pub mailbox: Option<MailboxId>,
    /// About the resource of this id.
    pub resource: Option<String>,
    /// At this time or later.
    pub since: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
    /// Without everyday work with mail.
    pub only_lasting: bool,
}

/// A part of the audit log, newest first.
pub struct AuditPart {
    /// The entries that match, at most one more than asked for.
    pub rows: Vec<AuditRow>,
    /// The last entry that was examined, if there may be others after it.
    pub examined_until: Option<String>,
}

/// Entries that a page examines at most. A filter that matches few of them gives a short page, so that no page costs more
/// than this.
pub const MAX_EXAMINED: i64 = 10_000;
/// How much later than its time an entry may have got its id, by which the log is ordered.
const MAX_DELAY_SECONDS: i64 = 600;
/// Sorts after all ids.
const LAST: &str = "g";
/// Everyday work with mail, in the words of the index `audit_lasting`.
const IS_LASTING: &str = "operation NOT IN ('sendEmail', 'replyToEmail', 'forwardEmail', 'updateEmail', 'moveEmail', 'deleteEmail', 'bulkReadEmails', 'bulkMoveEmails', 'bulkDeleteEmails', 'importEmails', 'readThread', 'moveThread', 'emptyTrash', 'saveDraft', 'sendDraft', 'deleteDraft', 'regenerateDraft', 'scheduleSend', 'rescheduleSend', 'cancelScheduledSend', 'sendAgentMessage', 'createAgentConversation', 'updateAgentConversation', 'deleteAgentConversation', 'getTriagerAgentConversation', 'runTaskTriager', 'updateTask', 'remember', 'forget')";

/// Whether an operation is everyday work with mail.
pub fn is_routine(operation: &str) -> bool {
    IS_LASTING.split('\'').skip(1).step_by(2).any(|name| name == operation)
}

/// How the ids of entries begin that were made at a time.
fn id_at(at: Timestamp) -> String {
    format!("{:012x}", u64::try_from(at.as_micros() / 1000).unwrap_or_default())
}

/// Lists entries before one, or the newest.
pub async fn list(tx: &mut Tx, filter: &AuditFilter, before: Option<&str>, limit: i64) -> Result<AuditPart> {
    let newest = filter.until.map(|until| id_at(until.plus_seconds(MAX_DELAY_SECONDS)));
    let before = [before, newest.as_deref()].into_iter().flatten().min().unwrap_or(LAST);
    let since = filter.since.map(id_at).unwrap_or_default();
    let is_lasting = if filter.only_lasting { IS_LASTING } else { "1 = 1" };
    let examined = format!(
        "FROM audit WHERE workspace_id = $1 AND id < $2 AND id >= $3 AND {is_lasting} ORDER BY id DESC LIMIT"
    );
    let names = [AuditEntry::COLUMNS, AuditDetails::COLUMNS].join(", ");
    let sql = format!(
        "SELECT {names} FROM (SELECT {names} {examined} $4) AS newest
         WHERE (CAST($5 AS TEXT) IS NULL OR actor = $5) AND (CAST($6 AS TEXT) IS NULL OR operation = $6)
         AND (CAST($7 AS TEXT) IS NULL OR mailbox_id = $7)
         AND (CAST($8 AS TEXT) IS NULL OR coalesce(resource_id, mailbox_id, $9) = $8)
         AND at >= $10 AND at < $11 ORDER BY id DESC LIMIT $12"
    );
    let workspace = tx.workspace().clone();
    let (from, to) = (filter.since.map_or(i64::MIN, Timestamp::as_micros), filter.until);
    let params: [Param<'_>; 11] = [
        before.into(),
        since.as_str().into(),
        MAX_EXAMINED.into(),
        filter.actor.as_deref().into(),
        filter.operation.as_deref().into(),
        filter.mailbox.as_ref().into(),
        filter.resource.as_deref().into(),
        (&workspace).into(),
        from.into(),
        to.map_or(i64::MAX, Timestamp::as_micros).into(),
        (limit + 1).into(),
    ];
    let rows: Vec<AuditRow> = tx.all(&sql, &params).await?;
    let is_full = i64::try_from(rows.len()).is_ok_and(|count| count > limit);
    let examined_until = if is_full {
        None
    } else {
        let sql = format!("SELECT id {examined} 1 OFFSET $4");
        let last = [before.into(), since.as_str().into(), (MAX_EXAMINED - 1).into()];
        tx.one::<(String,)>(&sql, &last).await?.map(|(id,)| id)
    };
    Ok(AuditPart { rows, examined_until })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_has_the_words_of_the_query() {
        let migration = include_str!("../migrations/0038_audit_details.sql");
        assert!(migration.contains(&format!("WHERE {IS_LASTING};")));
        assert!(is_routine("sendEmail") && is_routine("forget") && !is_routine("createApiKey"));
    }

    #[test]
    fn ids_begin_with_their_time() {
        let at: Timestamp = "2026-07-14T09:00:00.123Z".parse().unwrap();
        // The first 48 bits of a UUID of version 7 are its milliseconds since 1970.
        assert_eq!(id_at(at), format!("{:012x}", 1_784_019_600_123_u64));
        assert!("ffffffffffffffffffffffffffffffff" < LAST);
    }
}
