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
    /// The subject of its newest mail.
    pub subject: String,
    /// Mails of the thread in the folder, or outside Trash and Spam.
    pub mail_count: i64,
    /// Unread ones among them.
    pub unread_count: i64,
    /// When the newest of them is from.
    pub newest_at: Timestamp,
    /// The newest of them.
    pub newest_email_id: EmailId,
    /// The newest of them, as a list shows it.
    pub newest_email: Email,
}

/// A page of threads, newest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ThreadPage {
    /// The threads.
    pub threads: Vec<ThreadSummary>,
    /// How many there are in all.
    #[serde(rename = "totalCount")]
    pub total_count: i64,
    /// Whether more follow.
    pub has_more: bool,
    /// Where the next page begins; null when there is none.
    pub next_cursor: Option<String>,
}

/// Which threads a list shows.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct ThreadListQuery {
    /// Only threads with a mail in this folder; without it all but Trash and Spam.
    #[serde(default)]
    pub folder: Option<FolderId>,
    /// Threads a page.
    #[garde(range(min = 1, max = 100))]
    #[serde(default = "crate::emails::twenty_five")]
    pub limit: i64,
    /// The `next_cursor` of the page before.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub cursor: Option<String>,
}

/// How many mails of a thread were changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ThreadUpdate {
    /// How many.
    pub updated: i64,
}
