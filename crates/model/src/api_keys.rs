//! API keys.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ApiKeyId, MailboxId, Role, Scope, Timestamp, names::valid_name, nulls::given};

/// The mailboxes that one key can be narrowed to.
pub const MAX_MAILBOXES_PER_KEY: usize = 100;

/// An API key without its secret.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ApiKey {
    /// Its id.
    pub id: ApiKeyId,
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// What it may do; null for everything that its role may do.
    pub scopes: Option<Vec<Scope>>,
    /// The only mailboxes that it sees; null for all.
    pub mailbox_ids: Option<Vec<MailboxId>>,
    /// The first characters of the key, to recognise it.
    pub hint: String,
    /// When it expires; null if never.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
}

impl ApiKey {
    /// Whether it may do less than its role.
    pub const fn is_narrowed(&self) -> bool {
        self.scopes.is_some() || self.mailbox_ids.is_some()
    }
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
    /// What it may do. If omitted, everything that its role may do.
    #[garde(length(min = 1, max = 6))]
    #[serde(default)]
    pub scopes: Option<Vec<Scope>>,
    /// The only mailboxes that it sees, each by any of its names. If omitted, all. A key that is narrowed to mailboxes
    /// reaches nothing of the workspace beyond them, and creates no mailboxes.
    #[garde(length(min = 1, max = MAX_MAILBOXES_PER_KEY))]
    #[serde(default)]
    pub mailbox_ids: Option<Vec<MailboxId>>,
    /// When it expires.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
}

impl NewApiKey {
    /// A key that may do everything that its role may do, without end.
    pub fn new(name: &str, role: Role) -> Self {
        Self { name: name.to_owned(), role, scopes: None, mailbox_ids: None, expires_at: None }
    }
}

/// Changes to an API key, which never let it do more. Omitted fields stay as they are.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct ApiKeyChange {
    /// The new name.
    #[garde(inner(custom(valid_name)))]
    #[serde(default)]
    #[schemars(length(min = 1, max = 80))]
    pub name: Option<String>,
    /// The new role: an admin's key can become a member's.
    #[serde(default)]
    pub role: Option<Role>,
    /// The scopes that it keeps.
    #[garde(inner(inner(length(min = 1, max = 6))))]
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<Vec<Scope>>", length(min = 1, max = 6))]
    pub scopes: Option<Option<Vec<Scope>>>,
    /// The mailboxes that it keeps.
    #[garde(inner(inner(length(min = 1, max = MAX_MAILBOXES_PER_KEY))))]
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<Vec<MailboxId>>", length(min = 1, max = MAX_MAILBOXES_PER_KEY))]
    pub mailbox_ids: Option<Option<Vec<MailboxId>>>,
    /// An earlier time at which it expires.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<Timestamp>")]
    pub expires_at: Option<Option<Timestamp>>,
}

const fn admin() -> Role {
    Role::Admin
}
