//! Confirmations: a destructive tool is called twice, and only the second call, with the first one's token, takes
//! effect.
//!
//! A token is valid for one call of one key, with exactly these arguments, and works once on any node. A caller that
//! lost the answer repeats the call with the same idempotency key, which returns it again.

use model::{Timestamp, WorkspaceId};
use store::confirmations;

use crate::core::{app::App, error::Result, secrets};

/// How long a token works.
pub const SECONDS: i64 = 5 * 60;

/// A token and its expiry.
pub struct Confirmation {
    /// The token; only its hash is stored.
    pub token: String,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// Makes a token for the call with this fingerprint.
#[crate::boxed]
pub async fn issue(app: &App, workspace: &WorkspaceId, fingerprint: [u8; 32]) -> Result<Confirmation> {
    let token = format!("cnf_{}", secrets::new_token(app));
    let (hash, expires_at) = (secrets::hash(&token), app.now().plus_seconds(SECONDS));
    app.db()
        .write(workspace, async move |tx| confirmations::insert(tx, &hash, &fingerprint, expires_at).await)
        .await?;
    Ok(Confirmation { token, expires_at })
}

/// Uses a token for the call with this fingerprint and idempotency key; without such a key it is used up. Returns
/// whether it is valid.
#[crate::boxed]
pub async fn redeem(
    app: &App,
    workspace: &WorkspaceId,
    token: &str,
    fingerprint: [u8; 32],
    idempotency_key: Option<&str>,
) -> Result<bool> {
    let (hash, now) = (secrets::hash(token), app.now());
    let used_by = match idempotency_key {
        Some(key) => format!("key {key}"),
        None => format!("call {}", app.new_uuid().simple()),
    };
    let is_valid = app
        .db()
        .write(workspace, async move |tx| confirmations::redeem(tx, &hash, &fingerprint, &used_by, now).await)
        .await?;
    Ok(is_valid)
}
