//! API keys: made and revoked in the console, bound to one workspace, shown once.

use model::{
    ApiKeyId, Role, Timestamp,
    api_keys::{ApiKey, ApiKeyWithSecret, NewApiKey},
};
use store::{Tx, api_keys, workspaces};

use crate::core::{
    app::App,
    call::Call,
    error::{Error, ErrorKind, Result},
    input::clean_name,
    operation::Operation,
    secrets,
};

/// Lists the keys.
pub const LIST: Operation =
    Operation::read("listApiKeys", "Lists the API keys of a workspace, without their secrets.")
        .admin()
        .console_only();
/// Makes a key.
pub const CREATE: Operation =
    Operation::write("createApiKey", "Creates an API key. It is shown in full only in this response.")
        .admin()
        .console_only()
        .created()
        .errors(&[ErrorKind::QuotaExceeded]);
/// Revokes a key.
pub const REVOKE: Operation =
    Operation::write("revokeApiKey", "Revokes an API key; it stops working everywhere within a second.")
        .admin()
        .console_only()
        .empty()
        .errors(&[ErrorKind::NotFound]);

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST, &CREATE, &REVOKE];

/// Lists the keys.
#[crate::boxed]
pub async fn list(app: &App, call: &Call) -> Result<Vec<ApiKey>> {
    app.read(call, async |tx| Ok(api_keys::list(tx).await?)).await
}

/// Makes a key.
#[crate::boxed]
pub async fn create(app: &App, call: &Call, input: NewApiKey) -> Result<ApiKeyWithSecret> {
    let fresh = prepare(app, &input.name, input.role, input.expires_at, call.now)?;
    let limit = app.limits(call.plan).api_keys;
    let now = call.now;
    app.write(call, async move |tx| insert(tx, fresh, limit, now).await).await
}

/// Revokes a key.
#[crate::boxed]
pub async fn revoke(app: &App, call: &Call, id: ApiKeyId) -> Result<()> {
    app.write(call, async move |tx| {
        if api_keys::delete(tx, &id).await? { Ok(()) } else { Err(Error::not_found("API key not found")) }
    })
    .await?;
    app.credentials().forget();
    Ok(())
}

/// A new key with its secret, not yet stored.
pub(crate) fn prepare(
    app: &App,
    name: &str,
    role: Role,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<ApiKeyWithSecret> {
    if expires_at.is_some_and(|end| end <= now) {
        return Err(Error::invalid("expires_at", "must be in the future"));
    }
    let key = secrets::new_api_key(app);
    let api_key = ApiKey {
        id: app.new_id(),
        name: clean_name("name", name)?,
        role,
        hint: secrets::hint(&key),
        expires_at,
        last_used_at: None,
        created_at: now,
    };
    Ok(ApiKeyWithSecret { api_key, key })
}

/// Stores a new key within the plan's limit.
pub(crate) async fn insert(
    tx: &mut Tx,
    fresh: ApiKeyWithSecret,
    limit: model::Limit,
    now: Timestamp,
) -> Result<ApiKeyWithSecret> {
    workspaces::lock(tx).await?;
    if !limit.has_room(u64::try_from(api_keys::count(tx, now).await?).unwrap_or_default()) {
        return Err(Error::quota("API keys", limit));
    }
    api_keys::insert(tx, &fresh.api_key, &secrets::hash(&fresh.key)).await?;
    Ok(fresh)
}
