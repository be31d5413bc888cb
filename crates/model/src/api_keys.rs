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
    /// The name it was given.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The first characters of the key, to tell keys apart.
    pub hint: String,
    /// When it stops working, if it does.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A fresh key with its secret, which is shown only once.
#[derive(Clone, Serialize, JsonSchema)]
pub struct ApiKeyWithSecret {
    /// The key.
    #[serde(flatten)]
    pub api_key: ApiKey,
    /// The full key for the `x-api-key` header.
    pub key: String,
}

/// What making a key takes.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewApiKey {
    /// A name to tell it apart.
    #[garde(custom(valid_name))]
    #[schemars(length(min = 1, max = 80))]
    pub name: String,
    /// What it may do.
    #[serde(default = "admin")]
    pub role: Role,
    /// When it stops working.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
}

const fn admin() -> Role {
    Role::Admin
}
