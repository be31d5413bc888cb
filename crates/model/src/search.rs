//! Searching the email of a mailbox.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    FolderId, Timestamp,
    emails::{Category, read_options},
};

read_options! {
    /// What to search for, and how to show it.
    SearchQuery {
        /// Words, "phrases", -not, `from:` `to:` `subject:` `label:` `has:attachment` `is:read` `is:unread`
        /// `is:starred` `before:` `after:`. Put other words with a colon in quotation marks.
        #[garde(length(chars, max = 1000))]
        #[serde(default)]
        query: String,
        /// Only this folder. If omitted, all folders except Trash and Spam.
        #[serde(default)]
        folder: Option<FolderId>,
        /// Part of the sender's name or address.
        #[garde(length(chars, max = 320))]
        #[serde(default)]
        from: Option<String>,
        /// Part of a recipient's name or address.
        #[garde(length(chars, max = 320))]
        #[serde(default)]
        to: Option<String>,
        /// Words in the subject.
        #[garde(length(chars, max = 998))]
        #[serde(default)]
        subject: Option<String>,
        /// At or after this time.
        #[serde(default)]
        date_start: Option<Timestamp>,
        /// Before this time.
        #[serde(default)]
        date_end: Option<Timestamp>,
        /// Only read, or only unread emails.
        #[serde(default)]
        is_read: Option<bool>,
        /// Only starred, or only unstarred emails.
        #[serde(default)]
        is_starred: Option<bool>,
        /// Only this category.
        #[serde(default)]
        category: Option<Category>,
        /// Only emails with this label, by its slug.
        #[serde(default)]
        custom_label: Option<String>,
        /// Only emails with attachments, or only those without.
        #[serde(default)]
        has_attachment: Option<bool>,
        /// How to search. `semantic` and `hybrid` rank the best 200 passages of clean mail, and need the memory
        /// store.
        #[serde(default)]
        mode: SearchMode,
        /// Emails per page.
        #[garde(range(min = 1, max = 100))]
        #[serde(default = "crate::emails::twenty_five")]
        limit: i64,
        /// The `next_cursor` of the previous page.
        #[serde(default)]
        #[schemars(length(max = 2048))]
        cursor: Option<String>,
    }
}

/// How to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SearchMode {
    /// By words, newest first.
    #[default]
    Text,
    /// By meaning, best match first. Filters such as `from:` and excluded words still apply.
    Semantic,
    /// By words and meaning together, best match first.
    Hybrid,
}

pub mod query;
pub mod words;
