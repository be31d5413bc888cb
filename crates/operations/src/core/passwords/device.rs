//! The cookie of a browser that has signed in to an account before. It grants nothing: guesses with it are counted
//! apart from those of strangers, so that strangers cannot lock the owner out.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::Mac;
use model::AccountId;

use crate::core::{app::App, error::Result, secrets};

/// Its lifetime; browsers keep no cookie longer than 400 days.
pub const DEVICE_SECONDS: i64 = 400 * 24 * 3600;
/// The longest value that is checked.
const MAX_LENGTH: usize = 200;
const PURPOSE: &str = "device cookie";

/// The value for a browser that has just signed in. A valid one is kept.
pub(crate) fn issue(app: &App, account: &AccountId, shown: Option<&str>) -> Result<String> {
    if let Some(shown) = shown
        && recognise(app, account, shown).is_some()
    {
        return Ok(shown.to_owned());
    }
    let id = secrets::new_token(app);
    let tag = secrets::keyed(app, PURPOSE, &[account.as_str(), &id])?.finalize().into_bytes();
    Ok(format!("{id}.{}", URL_SAFE_NO_PAD.encode(tag)))
}

/// The id of the device, if the value was issued for this account.
pub(crate) fn recognise<'a>(app: &App, account: &AccountId, shown: &'a str) -> Option<&'a str> {
    let (id, given) = shown.split_once('.').filter(|_| shown.len() <= MAX_LENGTH)?;
    let given = URL_SAFE_NO_PAD.decode(given).ok()?;
    secrets::keyed(app, PURPOSE, &[account.as_str(), id]).ok()?.verify_slice(&given).ok()?;
    Some(id)
}
