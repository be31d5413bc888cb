//! Null in a change: not the same as a field that was left out.

use serde::{Deserialize, Deserializer};

/// Tells a null that was written from a field that was left out.
pub(crate) fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
