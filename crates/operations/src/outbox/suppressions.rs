//! Suppressions: the addresses that a workspace or a mailbox does not write to any more. The gate of send policies obeys
//! them, and the worker once more when a message leaves.

pub mod csv;

use mail::address::Address;
use model::{
    MailboxId, SuppressionId,
    audit::{created, deleted},
    suppressions::{
        NewSuppression, Suppression, SuppressionPage, SuppressionQuery, SuppressionReason,
        SuppressionRemoval, SuppressionScope,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::suppressions::{self, SuppressionFilter, SuppressionRecord};

use crate::{
    core::{
        app::App,
        call::Call,
        cursor,
        error::{Error, ErrorKind, Result},
        operation::Operation,
    },
    mailbox::mailboxes,
};

/// Lists suppressions.
pub const LIST: Operation = Operation::read(
    "listSuppressions",
    "Lists suppressed addresses, newest first. They bounced, complained, unsubscribed, or were added, and are not written to.",
)
.visible()
.errors(&[ErrorKind::NotFound, ErrorKind::InvalidCursor]);
/// Suppresses an address.
pub const CREATE: Operation = Operation::write(
    "createSuppression",
    "Suppresses an address for the workspace, or for one mailbox. One that is suppressed already is returned.",
)
.visible()
.created()
.errors(&[ErrorKind::NotFound]);
/// Removes a suppression.
pub const DELETE: Operation = Operation::write(
    "deleteSuppression",
    "Removes a suppression, so that its address is written to again. The audit log keeps the reason.",
)
.visible()
.empty()
.errors(&[ErrorKind::NotFound]);

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST, &CREATE, &DELETE];

/// What the audit log calls a suppression.
const AUDIT_KIND: &str = "suppression";
const AUDIT_FIELDS: &[&str] = &["address", "reason", "note"];

fn fields(record: &SuppressionRecord) -> serde_json::Value {
    json!({ "address": record.address, "reason": record.reason, "note": record.note })
}

/// The suppressions of the workspace are kept under the id of no mailbox.
fn of_workspace() -> MailboxId {
    MailboxId::from("")
}

fn show(record: SuppressionRecord) -> Suppression {
    let of_mailbox = !record.mailbox_id.as_str().is_empty();
    Suppression {
        id: record.id,
        address: record.address,
        scope: if of_mailbox { SuppressionScope::Mailbox } else { SuppressionScope::Workspace },
        mailbox_id: Some(record.mailbox_id).filter(|_| of_mailbox),
        reason: record.reason,
        email_id: record.email_id,
        note: record.note,
        created_at: record.created_at,
    }
}

fn missing() -> Error {
    Error::not_found("Suppression not found")
}

/// Whether a caller sees the suppressions of a mailbox, or of the workspace if it is empty: they stop its messages.
fn sees(own: Option<&[MailboxId]>, mailbox: &MailboxId) -> bool {
    mailbox.as_str().is_empty() || own.is_none_or(|own| own.contains(mailbox))
}

/// Whether a caller may change them: one that is narrowed to mailboxes only those of its own.
fn may_change(own: Option<&[MailboxId]>, mailbox: &MailboxId) -> bool {
    own.is_none_or(|own| own.contains(mailbox))
}

/// Where a page ended.
#[derive(Serialize, Deserialize)]
struct SuppressionPosition(SuppressionId);

/// Lists suppressions.
#[crate::boxed]
pub async fn list(app: &App, call: &Call, query: SuppressionQuery) -> Result<SuppressionPage> {
    let key = app.data_key(&call.workspace).await?;
    let about = format!("listSuppressions {:?} {:?} {:?}", query.q, query.reason, query.mailbox_id);
    let before = match &query.cursor {
        Some(text) => Some(cursor::open::<SuppressionPosition>(&key, &about, text)?.0),
        None => None,
    };
    let named = query.mailbox_id.as_deref().map(|mailbox| mailboxes::name(call, mailbox));
    let own = call.mailbox_ids().map(|ids| ids.to_vec());
    let (limit, reason, text) = (query.limit, query.reason, query.q.map(|text| text.trim().to_lowercase()));
    let mut found = app
        .read(call, async move |tx| {
            let mut mailboxes = own;
            if let Some(named) = named {
                mailboxes = Some(vec![mailboxes::find_id(tx, &named).await?]);
            }
            let mailboxes = mailboxes.map(|mut own| {
                own.push(of_workspace());
                own
            });
            let filter = SuppressionFilter { text, reason, mailboxes };
            Ok(suppressions::list(tx, &filter, before.as_ref(), limit + 1).await?)
        })
        .await?;
    let has_more = cursor::truncate(&mut found, limit);
    let next_cursor = match found.last().filter(|_| has_more) {
        Some(last) => Some(cursor::seal(&key, &about, &SuppressionPosition(last.id.clone()))?),
        None => None,
    };
    Ok(SuppressionPage { suppressions: found.into_iter().map(show).collect(), has_more, next_cursor })
}

/// The address of a suppression, as it is compared.
fn address(text: &str) -> Result<String> {
    let parsed = Address::parse(text.trim()).map_err(|error| Error::invalid("address", error.to_string()))?;
    Ok(parsed.as_str().to_lowercase())
}

/// The mailbox that a request names, where its scope asks for one.
fn named_mailbox(input: &NewSuppression) -> Result<Option<&str>> {
    match (input.scope, input.mailbox_id.as_deref()) {
        (Some(SuppressionScope::Mailbox), None) => {
            Err(Error::invalid("mailbox_id", "is required where the scope is mailbox"))
        }
        (Some(SuppressionScope::Workspace), Some(_)) => {
            Err(Error::invalid("mailbox_id", "does not fit the scope workspace"))
        }
        (_, mailbox) => Ok(mailbox),
    }
}

/// Suppresses an address. One that is suppressed already stays as it is.
#[crate::boxed]
pub async fn create(app: &App, call: &Call, input: NewSuppression) -> Result<Suppression> {
    let address = address(&input.address)?;
    let named = named_mailbox(&input)?.map(|mailbox| mailboxes::name(call, mailbox));
    let own = call.mailbox_ids().map(|ids| ids.to_vec());
    if named.is_none() && own.is_some() {
        let fix = "This key works in some mailboxes only: name one of them in mailbox_id.";
        return Err(Error::invalid("mailbox_id", "is required for this key").with_fix(fix));
    }
    let (id, now) = (app.new_id(), call.now);
    app.write(call, async move |tx| {
        let mailbox_id = match &named {
            Some(named) => mailboxes::find_id(tx, named).await?,
            None => of_workspace(),
        };
        let record = SuppressionRecord {
            id,
            address,
            mailbox_id,
            reason: SuppressionReason::Manual,
            email_id: None,
            note: input.note.filter(|note| !note.trim().is_empty()),
            created_at: now,
        };
        let is_new = suppressions::insert(tx, &record).await?;
        let found = suppressions::find_of_address(tx, &record.address, &record.mailbox_id).await?;
        let found = found.ok_or_else(|| Error::internal("a suppression was not stored"))?;
        let audit = tx.audit().about(AUDIT_KIND, &found.id);
        if named.is_some() {
            audit.in_mailbox(&found.mailbox_id);
        }
        if is_new {
            audit.changed(created(&fields(&found), AUDIT_FIELDS));
        }
        Ok(show(found))
    })
    .await
}

/// Removes a suppression.
#[crate::boxed]
pub async fn delete(app: &App, call: &Call, id: SuppressionId, removal: SuppressionRemoval) -> Result<()> {
    let own = call.mailbox_ids().map(|ids| ids.to_vec());
    app.write(call, async move |tx| {
        let found = suppressions::find(tx, &id).await?;
        let found = found.filter(|one| sees(own.as_deref(), &one.mailbox_id)).ok_or_else(missing)?;
        if !may_change(own.as_deref(), &found.mailbox_id) {
            let fix = "This key works in some mailboxes only, and this suppression is the workspace's.";
            return Err(Error::new(ErrorKind::ScopeRequired).with_fix(fix));
        }
        suppressions::delete(tx, &id).await?;
        let audit = tx.audit().about(AUDIT_KIND, &id);
        if !found.mailbox_id.as_str().is_empty() {
            audit.in_mailbox(&found.mailbox_id);
        }
        let why = json!({ "removal": removal.reason });
        let mut changed = deleted(&fields(&found), AUDIT_FIELDS);
        changed.extend(created(&why, &["removal"]));
        audit.changed(changed);
        Ok(())
    })
    .await
}

/// Suppressions that are carried out at once.
const MAX_EXPORTED: usize = 100_000;
/// Suppressions that one statement reads for that.
const EXPORTED_AT_ONCE: i64 = 1000;

/// All suppressions that the caller sees, newest first, up to a bound.
#[crate::boxed]
pub async fn all(app: &App, call: &Call) -> Result<Vec<Suppression>> {
    let mailboxes = call.mailbox_ids().map(|ids| {
        let mut own = ids.to_vec();
        own.push(of_workspace());
        own
    });
    app.read(call, async move |tx| {
        let filter = SuppressionFilter { mailboxes, ..SuppressionFilter::default() };
        let mut found: Vec<SuppressionRecord> = Vec::new();
        loop {
            let last = found.last().map(|one| one.id.clone());
            let part = suppressions::list(tx, &filter, last.as_ref(), EXPORTED_AT_ONCE).await?;
            let is_last = i64::try_from(part.len()).is_ok_and(|count| count < EXPORTED_AT_ONCE);
            found.extend(part);
            if is_last || found.len() >= MAX_EXPORTED {
                return Ok(found.into_iter().map(show).collect());
            }
        }
    })
    .await
}

/// What became of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportOutcome {
    /// Addresses that were added.
    pub added: usize,
    /// Those that were suppressed already.
    pub known: usize,
}

/// Suppresses many addresses for the whole workspace, all or none.
#[crate::boxed]
pub async fn import(app: &App, call: &Call, all: Vec<NewSuppression>) -> Result<ImportOutcome> {
    let now = call.now;
    let mut records = Vec::with_capacity(all.len());
    for (index, one) in all.into_iter().enumerate() {
        let said =
            |error: Error| Error::invalid("file", format!("address {}: {}", index + 1, error.message()));
        records.push(SuppressionRecord {
            id: app.new_id(),
            address: address(&one.address).map_err(said)?,
            mailbox_id: of_workspace(),
            reason: SuppressionReason::Manual,
            email_id: None,
            note: one.note,
            created_at: now,
        });
    }
    records.sort_by(|one, other| one.address.cmp(&other.address));
    records.dedup_by(|one, other| one.address == other.address);
    app.write(call, async move |tx| {
        let mut added = 0;
        for record in &records {
            added += usize::from(suppressions::insert(tx, record).await?);
        }
        let outcome = ImportOutcome { added, known: records.len() - added };
        tx.audit().changed(created(&json!({ "imported": outcome.added }), &["imported"]));
        Ok(outcome)
    })
    .await
}
