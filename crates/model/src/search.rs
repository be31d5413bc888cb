//! Searching the mail of a mailbox.

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
        /// `is:starred` `before:` `after:`. Words with a colon stand in quotation marks.
        #[garde(length(chars, max = 1000))]
        #[serde(default)]
        query: String,
        /// Only this folder; without it all but Trash and Spam.
        #[serde(default)]
        folder: Option<FolderId>,
        /// A part of the sender's name or address.
        #[garde(length(chars, max = 320))]
        #[serde(default)]
        from: Option<String>,
        /// A part of a recipient's name or address.
        #[garde(length(chars, max = 320))]
        #[serde(default)]
        to: Option<String>,
        /// Words of the subject.
        #[garde(length(chars, max = 998))]
        #[serde(default)]
        subject: Option<String>,
        /// Not before this time.
        #[serde(default)]
        date_start: Option<Timestamp>,
        /// Before this time.
        #[serde(default)]
        date_end: Option<Timestamp>,
        /// Only read or only unread mails.
        #[serde(default)]
        is_read: Option<bool>,
        /// Only starred mails, or only others.
        #[serde(default)]
        is_starred: Option<bool>,
        /// Only this category.
        #[serde(default)]
        category: Option<Category>,
        /// Only mails with this label, by its slug.
        #[serde(default)]
        custom_label: Option<String>,
        /// Only mails with files, or only others.
        #[serde(default)]
        has_attachment: Option<bool>,
        /// How to search. `semantic` and `hybrid` look at the best 200 passages of clean mail, and need the memory store.
        #[serde(default)]
        mode: SearchMode,
        /// Emails a page.
        #[garde(range(min = 1, max = 100))]
        #[serde(default = "crate::emails::twenty_five")]
        limit: i64,
        /// The `next_cursor` of the page before.
        #[serde(default)]
        #[schemars(length(max = 2048))]
        cursor: Option<String>,
    }
}

/// How to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SearchMode {
    /// By the words of the mail, newest first.
    #[default]
    Text,
    /// By meaning, the nearest first; the fields of the query and what it leaves out still count as they stand.
    Semantic,
    /// By both, what is high in either first.
    Hybrid,
}

pub mod query;
pub mod words;
