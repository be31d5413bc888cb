//! API keys: made, narrowed and revoked in the console, bound to one workspace, shown once.

use model::{
    AccountId, ApiKeyId, MailboxId, Timestamp,
    api_keys::{ApiKey, ApiKeyChange, ApiKeyWithSecret, NewApiKey},
    audit::{changes, created, deleted},
};
use store::{Tx, api_keys, workspaces};

use crate::{
    core::{
        app::App,
        call::Call,
        error::{Detail, Error, ErrorKind, Result},
        input::clean_name,
        operation::Operation,
        secrets,
    },
    mailbox::mailboxes,
};

/// Lists the keys.
pub const LIST: Operation =
    Operation::read("listApiKeys", "Lists the API keys of a workspace, without their secrets.")
        .workspace()
        .admin()
        .console_only();
/// Makes a key.
pub const CREATE: Operation =
    Operation::write("createApiKey", "Creates an API key. It is shown in full only in this response.")
        .workspace()
        .admin()
        .console_only()
        .created()
        .errors(&[ErrorKind::QuotaExceeded]);
/// Renames or narrows a key.
pub const UPDATE: Operation = Operation::write(
    "updateApiKey",
    "Renames an API key, or lets it do less: other calls with it notice within a second. A key never gets to do more.",
)
.workspace()
.admin()
.console_only()
.errors(&[ErrorKind::NotFound]);
/// Revokes a key.
pub const REVOKE: Operation =
    Operation::write("revokeApiKey", "Revokes an API key; it stops working everywhere within a second.")
        .workspace()
        .admin()
        .console_only()
        .empty()
        .errors(&[ErrorKind::NotFound]);

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST, &CREATE, &UPDATE, &REVOKE];

/// What the audit log calls a key, and what it shows of one.
const AUDIT_KIND: &str = "api_key";
const AUDIT_FIELDS: &[&str] = &["name", "role", "scopes", "mailbox_ids", "expires_at"];

/// Lists the keys.
#[crate::boxed]
pub async fn list(app: &App, call: &Call) -> Result<Vec<ApiKey>> {
    app.read(call, async |tx| Ok(api_keys::list(tx).await?)).await
}

/// Makes a key.
#[crate::boxed]
pub async fn create(app: &App, call: &Call, input: NewApiKey) -> Result<ApiKeyWithSecret> {
    let fresh = prepare(app, input, call.now)?;
    let limit = app.limits(call.plan).api_keys;
    let (now, creator) = (call.now, call.creator());
    app.write(call, async move |tx| insert(tx, fresh, limit, (now, creator)).await).await
}

/// Renames or narrows a key.
#[crate::boxed]
pub async fn update(app: &App, call: &Call, id: ApiKeyId, change: ApiKeyChange) -> Result<ApiKey> {
    let name = change.name.as_deref().map(|name| clean_name("name", name)).transpose()?;
    let now = call.now;
    let updated = app
        .write(call, async move |tx| {
            let before = api_keys::find_for_change(tx, &id).await?.ok_or_else(missing)?;
            if let Some(name) = &name {
                api_keys::rename(tx, &id, name).await?;
            }
            let name = name.unwrap_or_else(|| before.name.clone());
            let key = narrowed(tx, ApiKey { name, ..before.clone() }, change, now).await?;
            if !may_do_the_same(&key, &before) {
                api_keys::narrow(tx, &before, &key).await?;
            }
            tx.audit().about(AUDIT_KIND, &id).changed(changes(&before, &key, AUDIT_FIELDS));
            Ok(key)
        })
        .await?;
    app.credentials().forget();
    Ok(updated)
}

/// Whether two states of a key may do the same, and as long.
fn may_do_the_same(one: &ApiKey, other: &ApiKey) -> bool {
    one.role == other.role
        && one.scopes == other.scopes
        && one.mailbox_ids == other.mailbox_ids
        && one.expires_at == other.expires_at
}

/// The key after a change, which is refused with all its faults if it would let the key do more.
async fn narrowed(tx: &mut Tx, mut key: ApiKey, change: ApiKeyChange, now: Timestamp) -> Result<ApiKey> {
    let mut details = Vec::new();
    if let Some(role) = change.role {
        if role > key.role {
            details.push(Detail::new("role", "a member's key cannot become an admin's"));
        }
        key.role = role;
    }
    if let Some(scopes) = change.scopes {
        let scopes = scopes.map(each_once);
        if adds(key.scopes.as_deref(), scopes.as_deref()) {
            details.push(Detail::new("scopes", "a key can only lose scopes"));
        }
        key.scopes = scopes;
    }
    if let Some(named) = change.mailbox_ids {
        let ids = kept_mailboxes(tx, &key, named).await?;
        if adds(key.mailbox_ids.as_deref(), ids.as_deref()) {
            details.push(Detail::new("mailbox_ids", "a key can only lose mailboxes"));
        }
        key.mailbox_ids = ids;
    }
    if let Some(end) = change.expires_at {
        match end {
            Some(end) if end <= now => details.push(Detail::new("expires_at", "must be in the future")),
            end if key.expires_at.is_some_and(|before| end.is_none_or(|end| end > before)) => {
                details.push(Detail::new("expires_at", "a key can only expire sooner"));
            }
            _ => {}
        }
        key.expires_at = end;
    }
    Error::refuse(details)?;
    Ok(key)
}

/// Whether a narrowing allows something that an earlier one does not. None of either allows everything.
fn adds<T: PartialEq>(before: Option<&[T]>, after: Option<&[T]>) -> bool {
    match (before, after) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(before), Some(after)) => after.iter().any(|one| !before.contains(one)),
    }
}

/// The ids of the mailboxes that a change names. One that the key has already need not exist any more.
async fn kept_mailboxes(
    tx: &mut Tx,
    key: &ApiKey,
    named: Option<Vec<MailboxId>>,
) -> Result<Option<Vec<MailboxId>>> {
    let Some(named) = named else { return Ok(None) };
    let own = key.mailbox_ids.as_deref().unwrap_or_default();
    if named.iter().all(|id| own.contains(id)) {
        return Ok(Some(each_once(named)));
    }
    mailboxes::known(tx, "mailbox_ids", &named, mailboxes::parse_name).await.map(Some)
}

/// Sorted, and without repetitions.
fn each_once<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort_unstable();
    all.dedup();
    all
}

pub(crate) fn missing() -> Error {
    Error::not_found("API key not found")
}

/// Revokes a key.
#[crate::boxed]
pub async fn revoke(app: &App, call: &Call, id: ApiKeyId) -> Result<()> {
    app.write(call, async move |tx| delete(tx, &id).await).await?;
    app.credentials().forget();
    Ok(())
}

/// Deletes a key.
pub(crate) async fn delete(tx: &mut Tx, id: &ApiKeyId) -> Result<()> {
    let found = api_keys::find(tx, id).await?.ok_or_else(missing)?;
    if !api_keys::delete(tx, id).await? {
        return Err(missing());
    }
    tx.audit().about(AUDIT_KIND, id).changed(deleted(&found, AUDIT_FIELDS));
    Ok(())
}

/// A new key with its secret, not yet stored. Its mailboxes are as the caller named them.
pub(crate) fn prepare(app: &App, input: NewApiKey, now: Timestamp) -> Result<ApiKeyWithSecret> {
    if input.expires_at.is_some_and(|end| end <= now) {
        return Err(Error::invalid("expires_at", "must be in the future"));
    }
    let key = secrets::new_api_key(app);
    let api_key = ApiKey {
        id: app.new_id(),
        name: clean_name("name", &input.name)?,
        role: input.role,
        scopes: input.scopes.map(each_once),
        mailbox_ids: input.mailbox_ids,
        hint: secrets::hint(&key),
        expires_at: input.expires_at,
        last_used_at: None,
        created_at: now,
    };
    Ok(ApiKeyWithSecret { api_key, key })
}

/// Stores a new key within the plan's limit.
pub(crate) async fn insert(
    tx: &mut Tx,
    mut fresh: ApiKeyWithSecret,
    limit: model::Limit,
    (now, creator): (Timestamp, Option<AccountId>),
) -> Result<ApiKeyWithSecret> {
    workspaces::lock(tx).await?;
    if let Some(named) = &fresh.api_key.mailbox_ids {
        let known = mailboxes::known(tx, "mailbox_ids", named, mailboxes::parse_name).await?;
        fresh.api_key.mailbox_ids = Some(known);
    }
    if !limit.has_room(u64::try_from(api_keys::count(tx, now).await?).unwrap_or_default()) {
        return Err(Error::quota("API keys", limit));
    }
    api_keys::insert(tx, &fresh.api_key, &secrets::hash(&fresh.key), creator.as_ref()).await?;
    tx.audit().about(AUDIT_KIND, &fresh.api_key.id).changed(created(&fresh.api_key, AUDIT_FIELDS));
    Ok(fresh)
}
