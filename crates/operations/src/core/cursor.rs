//! Cursors: where a page ended, sealed for the workspace and the query it belongs to.
//!
//! A changed, foreign or made-up cursor does not open, so it never leads to rows its holder may not see.

use model::cursor::{from_text, to_text};
use serde::{Serialize, de::DeserializeOwned};
use store::vault::DataKey;

use crate::core::error::{Error, ErrorKind, Result};

/// Seals a position in the results of one query.
pub(crate) fn seal<T: Serialize>(key: &DataKey, query: &str, position: &T) -> Result<String> {
    let plain = serde_json::to_vec(position).map_err(Error::internal)?;
    let sealed = key.seal(&purpose(query), &plain).map_err(store::Error::from)?;
    Ok(to_text(&sealed))
}

/// Opens a cursor of the same query.
pub(crate) fn open<T: DeserializeOwned>(key: &DataKey, query: &str, cursor: &str) -> Result<T> {
    let invalid = || Error::new(ErrorKind::InvalidCursor);
    let sealed = from_text(cursor).ok_or_else(invalid)?;
    let plain = key.open(&purpose(query), &sealed).map_err(|_| invalid())?;
    serde_json::from_slice(&plain).map_err(|_| invalid())
}

/// Removes the extra row that was read to find out whether there is another page, and returns whether there is.
pub(crate) fn truncate<T>(rows: &mut Vec<T>, limit: i64) -> bool {
    let limit = usize::try_from(limit).unwrap_or_default();
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    has_more
}

fn purpose(query: &str) -> String {
    format!("cursor {query}")
}

#[cfg(test)]
mod tests {
    use model::cursor::MAX_CURSOR_CHARS;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        // rules: READ-7
        #[test]
        fn what_we_did_not_make_does_not_open(query in ".{0,40}", cursor in "[A-Za-z0-9_-]{0,2100}|.{0,200}") {
            let key = DataKey::generate().unwrap();
            prop_assert!(open::<serde_json::Value>(&key, &query, &cursor).is_err());
        }

        // rules: READ-7
        #[test]
        fn a_cursor_opens_as_it_was_made_and_not_otherwise(position: Vec<u32>, query: String, at: prop::sample::Index) {
            let key = DataKey::generate().unwrap();
            let cursor = seal(&key, &query, &position).unwrap();
            if cursor.len() <= MAX_CURSOR_CHARS {
                prop_assert_eq!(open::<Vec<u32>>(&key, &query, &cursor).unwrap(), position);
            }
            let other = format!("{query}.");
            prop_assert!(open::<Vec<u32>>(&key, &other, &cursor).is_err());
            let mut changed = cursor.into_bytes();
            let at = at.index(changed.len());
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            prop_assert!(open::<Vec<u32>>(&key, &query, &String::from_utf8(changed).unwrap()).is_err());
        }
    }
}
