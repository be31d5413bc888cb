//! Threads of a mailbox.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EmailId, FolderId, ThreadId, Timestamp, emails::Email};

/// A thread in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ThreadSummary {
    /// Its id.
    pub id: ThreadId,
    /// The subject of its newest email.
    pub subject: String,
    /// Number of its emails in the folder, or outside Trash and Spam.
    pub mail_count: i64,
    /// Number of unread emails among them.
    pub unread_count: i64,
    /// The date of the newest of them.
    pub newest_at: Timestamp,
    /// The id of the newest of them.
    pub newest_email_id: EmailId,
    /// The newest of them, as a list shows it.
    pub newest_email: Email,
}

/// A page of threads, newest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ThreadPage {
    /// The threads.
    pub threads: Vec<ThreadSummary>,
    /// Total number.
    #[serde(rename = "totalCount")]
    pub total_count: i64,
    /// Whether more follow.
    pub has_more: bool,
    /// The cursor of the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Which threads a list shows.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct ThreadListQuery {
    /// Only threads with an email in this folder. If omitted, all folders except Trash and Spam.
    #[serde(default)]
    pub folder: Option<FolderId>,
    /// Threads per page.
    #[garde(range(min = 1, max = 100))]
    #[serde(default = "crate::emails::twenty_five")]
    pub limit: i64,
    /// The `next_cursor` of the previous page.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub cursor: Option<String>,
}

/// Number of emails changed in a thread.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ThreadUpdate {
    /// Maximum number.
    pub updated: i64,
}
