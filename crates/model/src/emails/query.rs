//! What reads and lists of emails take after the question mark.

use garde::Validate;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Category, ScanStatus};
use crate::{EmailId, FolderId, ThreadId};

/// How the content of emails is shown.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Leave body, snippet, headers and threat links out.
    pub metadata_only: bool,
    /// Also show mail that is held while an answer is drafted.
    pub include_held: bool,
    /// Leave content out unless the scan status is this one.
    pub require_scan_status: Option<ScanStatus>,
    /// Show bounded plain text only.
    pub agent_safe_content: bool,
    /// Maximum characters of a body.
    pub max_body_chars: Option<usize>,
}

/// A query with the read options among its parameters. Written out in each, since unknown ones are refused.
macro_rules! read_options {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, serde::Deserialize, garde::Validate, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[garde(allow_unvalidated)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
            /// Leaves out body, snippet, raw headers and threat links.
            #[serde(default)]
            pub metadata_only: bool,
            /// Includes emails that are held while a reply is drafted.
            #[serde(default)]
            pub include_held: bool,
            /// Leaves out the content of emails with another scan status.
            #[serde(default)]
            pub require_scan_status: Option<$crate::emails::ScanStatus>,
            /// Returns bounded plain text without headers, threats, attachments and diagnostics.
            #[serde(default)]
            pub agent_safe_content: bool,
            /// Maximum characters of a body.
            #[garde(range(min = 1, max = 100_000))]
            #[serde(default)]
            pub max_body_chars: Option<u32>,
        }
        impl $name {
            /// The part about content.
            pub fn read_options(&self) -> $crate::emails::ReadOptions {
                $crate::emails::ReadOptions {
                    metadata_only: self.metadata_only,
                    include_held: self.include_held,
                    require_scan_status: self.require_scan_status,
                    agent_safe_content: self.agent_safe_content,
                    max_body_chars: self.max_body_chars.and_then(|most| usize::try_from(most).ok()),
                }
            }
        }
    };
}
pub(crate) use read_options;

read_options! {
    /// How one email is read.
    EmailQuery {}
}
read_options! {
    /// How a thread is read.
    ThreadQuery {
        /// Only emails of the thread that are older than this one. A response has at most the newest 500; pass the id
        /// of its first email to get those before.
        #[serde(default)]
        before: Option<EmailId>,
    }
}
read_options! {
    /// Which emails a list shows, and how.
    ListQuery {
        /// Only this folder. If omitted, all folders except Trash and Spam.
        #[serde(default)]
        folder: Option<FolderId>,
        /// Only this thread.
        #[serde(default)]
        thread_id: Option<ThreadId>,
        /// Only this category.
        #[serde(default)]
        category: Option<Category>,
        /// Only emails with this label, by its slug.
        #[serde(default)]
        custom_label: Option<String>,
        /// Only read, or only unread emails.
        #[serde(default)]
        is_read: Option<bool>,
        /// Only starred, or only unstarred emails.
        #[serde(default)]
        is_starred: Option<bool>,
        /// Only emails with attachments, or only those without.
        #[serde(default)]
        has_attachment: Option<bool>,
        /// One email per thread: the newest that matches the other filters, with `thread_count`. Always newest first.
        #[serde(default)]
        threaded: bool,
        /// Maximum characters of all bodies in the response; the newest emails keep their text first.
        #[garde(range(min = 1, max = 1_000_000))]
        #[serde(default)]
        max_total_chars: Option<u32>,
        /// Emails per page.
        #[garde(range(min = 1, max = 100))]
        #[serde(default = "twenty_five")]
        limit: i64,
        /// The `next_cursor` of the previous page.
        #[serde(default)]
        #[schemars(length(max = 2048))]
        cursor: Option<String>,
        /// The page number, from 1, instead of a cursor.
        #[garde(range(min = 1, max = 1_000_000))]
        #[serde(default)]
        page: Option<i64>,
        /// The field to sort by.
        #[serde(default, rename = "sortColumn")]
        sort_column: SortColumn,
        /// The sort direction.
        #[serde(default, rename = "sortDirection")]
        sort_direction: SortDirection,
    }
}

pub(crate) const fn twenty_five() -> i64 {
    25
}

/// The field that a list is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "each is the field of the email with this name")]
pub enum SortColumn {
    #[default]
    Date,
    Subject,
    Sender,
    Recipient,
    Read,
    Starred,
    Id,
}

/// The direction of a sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum SortDirection {
    /// Smallest or oldest first.
    #[serde(rename = "ASC")]
    Ascending,
    /// Largest or newest first.
    #[default]
    #[serde(rename = "DESC")]
    Descending,
}

/// Which page of a thread the context shows.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct ContextQuery {
    /// Thread messages per page.
    #[garde(range(min = 1, max = 50))]
    #[serde(default = "twenty")]
    pub limit: i64,
    /// The `next_cursor` of the previous page.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub cursor: Option<String>,
    /// Includes emails that are held while a reply is drafted; only for the active verification flow.
    #[serde(default)]
    pub include_held: bool,
}

const fn twenty() -> i64 {
    20
}

/// How an email is deleted.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct DeleteQuery {
    /// Deletes permanently instead of moving to Trash.
    #[serde(default)]
    pub permanent: bool,
}
