//! Workspaces and the state of their storage.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Role, Timestamp, WorkspaceId, names::valid_name};

/// A workspace, as the caller sees it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Workspace {
    /// Its id.
    pub id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// The stable address of its owner.
    pub owner_address: String,
    /// IANA zone name.
    pub timezone: String,
    /// The caller's role in it.
    pub role: Role,
    /// Number of mailboxes.
    pub mailbox_count: i64,
    /// The state of its storage.
    pub storage: Storage,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// The caller's workspaces.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WorkspaceList {
    /// The caller.
    pub user: User,
    /// With an API key only the key's workspace.
    pub workspaces: Vec<Workspace>,
}

/// The caller.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct User {
    /// Whether the caller operates this server. Always false for API keys.
    pub is_admin: bool,
}

/// The state of a part of the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Provisioning {
    /// It works.
    Ready,
    /// Not created yet.
    Pending,
    /// It does not work; the error field next to it says why.
    Error,
}

/// The state of a workspace's storage. Key material itself is never shown.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Storage {
    /// `local` or `s3`.
    pub provider: String,
    /// The overall state.
    pub status: Provisioning,
    /// Whether the blob store replicates its data.
    pub redundancy_enabled: bool,
    /// The state of the credentials for the blob store.
    pub storage_key_status: Provisioning,
    /// What is wrong with those credentials.
    pub storage_key_last_error: Option<String>,
    /// The workspace's prefix in the blob store.
    pub space_id: String,
    /// The bucket of the workspace's data.
    pub bucket_id: String,
    /// The stable address of the workspace's owner.
    pub owner_address: String,
    /// Whether the workspace has an API key.
    pub has_api_key: bool,
    /// Whether the workspace has its own data key.
    pub has_service_private_key: bool,
    /// The state of the workspace's data key.
    pub vault_provisioning_status: Provisioning,
    /// What is wrong with the data key.
    pub vault_last_error: Option<String>,
    /// The bucket or folder of the blob store.
    pub blob_store_bucket_name: String,
    /// Whether the blob store is available.
    pub blob_store_provisioning_status: Provisioning,
    /// What is wrong with the blob store.
    pub blob_store_last_error: Option<String>,
    /// The first of the errors above.
    pub last_error: Option<String>,
}

/// Changes to a workspace. At least one field is required.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceChange {
    /// The new name.
    #[garde(inner(custom(valid_name)))]
    #[schemars(length(min = 1, max = 80))]
    #[serde(default)]
    pub name: Option<String>,
    /// The new time zone, an IANA name.
    #[garde(inner(custom(known_timezone)))]
    #[serde(default)]
    pub timezone: Option<String>,
}

/// Whether there is a time zone of this IANA name.
pub fn is_timezone(name: &str) -> bool {
    jiff::tz::TimeZone::get(name).is_ok()
}

pub(crate) fn known_timezone(name: &str, _: &()) -> garde::Result {
    if is_timezone(name) {
        Ok(())
    } else {
        Err(garde::Error::new("unknown time zone: use an IANA name such as Europe/Berlin"))
    }
}
