//! API keys.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ApiKeyId, Role, Timestamp, names::valid_name};

/// An API key without its secret.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ApiKey {
    /// Its id.
    pub id: ApiKeyId,
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// The first characters of the key, to recognise it.
    pub hint: String,
    /// When it expires; null if never.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A new key with its secret, which is shown only once.
#[derive(Clone, Serialize, JsonSchema)]
pub struct ApiKeyWithSecret {
    /// The key.
    #[serde(flatten)]
    pub api_key: ApiKey,
    /// The full key for the `x-api-key` header.
    pub key: String,
}

/// A new API key.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewApiKey {
    /// A name to recognise it by.
    #[garde(custom(valid_name))]
    #[schemars(length(min = 1, max = 80))]
    pub name: String,
    /// Its role.
    #[serde(default = "admin")]
    pub role: Role,
    /// When it expires.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
}

const fn admin() -> Role {
    Role::Admin
}
