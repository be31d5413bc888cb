//! The URL and headers of a connection, sealed with the workspace's data key.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use store::vault::DataKey;

use crate::core::error::{Error, Result};

/// The URL and headers of a connection.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Target {
    pub(super) url: String,
    pub(super) headers: BTreeMap<String, String>,
}

impl Target {
    pub(super) fn seal(&self, key: &DataKey) -> Result<Vec<u8>> {
        let plain = serde_json::to_vec(self).map_err(Error::internal)?;
        Ok(key.seal(PURPOSE, &plain).map_err(store::Error::from)?)
    }

    pub(super) fn open(key: &DataKey, sealed: &[u8]) -> Result<Self> {
        let plain = key.open(PURPOSE, sealed).map_err(store::Error::from)?;
        serde_json::from_slice(&plain).map_err(Error::internal)
    }
}

/// The purpose that they are sealed for.
const PURPOSE: &str = "integration";
