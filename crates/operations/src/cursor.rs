//! Cursors: where a page ended, sealed for the workspace and the query it belongs to.
//!
//! A changed, foreign or made-up one does not open, so a cursor can never lead to what its holder may not see.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Serialize, de::DeserializeOwned};
use store::vault::DataKey;

use crate::{Error, ErrorKind, Result};

/// The longest cursor that is looked at.
const LONGEST: usize = 2048;

/// Seals a place in the answers to one query.
pub(crate) fn seal<T: Serialize>(key: &DataKey, query: &str, place: &T) -> Result<String> {
    let plain = serde_json::to_vec(place).map_err(Error::internal)?;
    let sealed = key.seal(&purpose(query), &plain).map_err(store::Error::from)?;
    Ok(URL_SAFE_NO_PAD.encode(sealed))
}

/// Opens a cursor of the same query.
pub(crate) fn open<T: DeserializeOwned>(key: &DataKey, query: &str, cursor: &str) -> Result<T> {
    let invalid = || Error::new(ErrorKind::InvalidCursor);
    if cursor.len() > LONGEST {
        return Err(invalid());
    }
    let sealed = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| invalid())?;
    let plain = key.open(&purpose(query), &sealed).map_err(|_| invalid())?;
    serde_json::from_slice(&plain).map_err(|_| invalid())
}

fn purpose(query: &str) -> String {
    format!("cursor {query}")
}
