//! Moving and deleting emails, one or many.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EmailId, FolderId, emails::named};
use std::{fmt, str::FromStr};

/// Where to move something.
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
    /// Whether they were read.
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
    /// For good, not by way of Trash.
    #[serde(default)]
    pub permanent: bool,
}

/// What became of many emails.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct BulkResult {
    /// How many were changed.
    pub updated: i64,
    /// The ids that name nothing.
    pub not_found: Vec<EmailId>,
    /// How many are gone for good.
    #[serde(rename = "deletedCount", skip_serializing_if = "Option::is_none")]
    pub deleted_count: Option<i64>,
    /// How many went to Trash.
    #[serde(rename = "trashedCount", skip_serializing_if = "Option::is_none")]
    pub trashed_count: Option<i64>,
    /// How many schedules were cancelled.
    #[serde(rename = "cancelledScheduledCount", skip_serializing_if = "Option::is_none")]
    pub cancelled_scheduled_count: Option<i64>,
}

named! {
    /// What deleting came to.
    DeletedState {
        /// It went to Trash.
        Trashed "trashed",
        /// It is gone for good.
        Deleted "deleted",
        /// Its schedule was cancelled, and it is a draft again.
        Cancelled "cancelled",
    }
}

/// What became of a deleted email.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Deleted {
    /// What deleting came to.
    pub status: DeletedState,
}

/// What emptying Trash took away.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Emptied {
    /// How many mails are gone.
    #[serde(rename = "deletedCount")]
    pub deleted_count: i64,
}
