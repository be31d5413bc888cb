//! Moving and deleting emails, one or many.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EmailId, FolderId, emails::named};
use std::{fmt, str::FromStr};

/// The folder to move to.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct Move {
    /// The id of the folder.
    #[serde(rename = "folderId")]
    pub folder_id: FolderId,
}

/// Marks many emails as read or unread.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct BulkRead {
    /// The emails.
    #[garde(length(min = 1, max = 500))]
    pub ids: Vec<EmailId>,
    /// Whether they are read.
    pub read: bool,
}

/// Moves many emails.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct BulkMove {
    /// The emails.
    #[garde(length(min = 1, max = 500))]
    pub ids: Vec<EmailId>,
    /// The id of the folder.
    #[serde(rename = "folderId")]
    pub folder_id: FolderId,
}

/// Deletes many emails.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct BulkDelete {
    /// The emails.
    #[garde(length(min = 1, max = 500))]
    pub ids: Vec<EmailId>,
    /// Deletes permanently instead of moving to Trash.
    #[serde(default)]
    pub permanent: bool,
}

/// The result of a bulk operation.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct BulkResult {
    /// Number of emails changed.
    pub updated: i64,
    /// The ids that were not found.
    pub not_found: Vec<EmailId>,
    /// Number of emails deleted permanently.
    #[serde(rename = "deletedCount", skip_serializing_if = "Option::is_none")]
    pub deleted_count: Option<i64>,
    /// Number of emails moved to Trash.
    #[serde(rename = "trashedCount", skip_serializing_if = "Option::is_none")]
    pub trashed_count: Option<i64>,
    /// Number of scheduled sends cancelled.
    #[serde(rename = "cancelledScheduledCount", skip_serializing_if = "Option::is_none")]
    pub cancelled_scheduled_count: Option<i64>,
}

named! {
    /// The outcome.
    DeletedState {
        /// It was moved to Trash.
        Trashed "trashed",
        /// It was deleted permanently.
        Deleted "deleted",
        /// Its schedule was cancelled; it is a draft again.
        Cancelled "cancelled",
    }
}

/// The result of deleting an email.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Deleted {
    /// The outcome.
    pub status: DeletedState,
}

/// The result of emptying Trash.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Emptied {
    /// Number of emails deleted.
    #[serde(rename = "deletedCount")]
    pub deleted_count: i64,
}
