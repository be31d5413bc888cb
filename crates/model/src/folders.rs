//! Folders of a mailbox.

use std::{fmt, str::FromStr};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use mail::safe_text::SafeText;
use unicode_normalization::UnicodeNormalization;

use crate::{FolderId, emails::named, names::valid_name};

named! {
    /// A folder that every mailbox has, by its id, in the order they are shown.
    SystemFolder {
        /// What arrives.
        Inbox "inbox",
        /// What was sent.
        Sent "sent",
        /// What is being written.
        Drafts "draft",
        /// What will be sent.
        Scheduled "scheduled",
        /// What was put away.
        Archive "archive",
        /// What is unwanted.
        Spam "spam",
        /// What was deleted, and can be restored.
        Trash "trash",
        /// What a person decides about before it is sent. There is none while nothing is in it.
        Review "review",
    }
}

impl SystemFolder {
    /// Those that a mailbox has from the start.
    pub const FIRST: [Self; 7] =
        [Self::Inbox, Self::Sent, Self::Drafts, Self::Scheduled, Self::Archive, Self::Spam, Self::Trash];

    /// The name that people see.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Inbox => "Inbox",
            Self::Sent => "Sent",
            Self::Drafts => "Drafts",
            Self::Scheduled => "Scheduled",
            Self::Review => "In review",
            Self::Archive => "Archive",
            Self::Spam => "Spam",
            Self::Trash => "Trash",
        }
    }

    /// The folder that an id names; none for a folder that somebody made.
    pub fn of(id: &FolderId) -> Option<Self> {
        id.as_str().parse().ok()
    }
}

/// Whether what lies in a folder was not sent yet: a draft, a scheduled send, or what is in review.
pub fn is_unsent(id: &FolderId) -> bool {
    matches!(
        SystemFolder::of(id),
        Some(SystemFolder::Drafts | SystemFolder::Scheduled | SystemFolder::Review)
    )
}

impl From<SystemFolder> for FolderId {
    fn from(folder: SystemFolder) -> Self {
        Self::from(folder.as_str())
    }
}

impl PartialEq<SystemFolder> for FolderId {
    fn eq(&self, folder: &SystemFolder) -> bool {
        self.as_str() == folder.as_str()
    }
}

/// A folder.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Folder {
    /// Its id: the slug of its name.
    pub id: FolderId,
    /// Its name.
    pub name: String,
    /// Number of unread emails in it.
    #[serde(rename = "unreadCount")]
    pub unread_count: i64,
    /// Number of emails in it.
    #[serde(rename = "totalCount")]
    pub total_count: i64,
    /// Whether it is one of the folders that every mailbox has.
    pub system: bool,
}

impl Folder {
    /// A folder that every mailbox has, empty.
    pub fn system(folder: SystemFolder) -> Self {
        let (id, name) = (folder.into(), folder.name().to_owned());
        Self { id, name, unread_count: 0, total_count: 0, system: true }
    }

    /// Whether lists show it: the folder of messages in review only while there are some.
    pub fn is_shown(&self) -> bool {
        self.id != SystemFolder::Review || self.total_count > 0
    }
}

/// The name of a folder.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FolderName {
    /// The name. The id of a new folder is its slug.
    #[garde(custom(valid_name))]
    #[schemars(length(min = 1, max = 80))]
    pub name: String,
}

/// The slug of a name: lower-case letters and digits of any script, with single hyphens between words.
///
/// Empty when nothing of the name is left.
pub fn slug(name: &str) -> String {
    let mut slug = String::with_capacity(name.len());
    for character in name.chars().flat_map(char::to_lowercase) {
        if character.is_alphanumeric() {
            slug.push(character);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

/// Whether a name is, or looks like, that of a folder that every mailbox has.
pub fn is_system_name(name: &str) -> bool {
    let seen: String = SafeText::line(name).as_str().nfkc().collect();
    let slug = slug(&seen);
    let is_like = |folder: &SystemFolder| slug == folder.as_str() || slug == self::slug(folder.name());
    SystemFolder::ALL.iter().any(is_like)
}

#[cfg(test)]
mod tests {
    use super::{is_system_name, slug};

    /// rules: FOLD-3, FOLD-4
    #[test]
    fn names_of_system_folders_are_known_in_every_spelling() {
        for name in [
            "Inbox",
            " INBOX ",
            "inbox!",
            "Ｉｎｂｏｘ",
            "in\u{200b}box",
            "𝐈nbox",
            "Draft",
            "drafts",
            "ＳＥＮＴ",
            "Trash…",
        ] {
            assert!(is_system_name(name), "{name}");
        }
        for name in ["Inboxes", "In box", "My drafts", "Sent 2026", "Büro", "Posteingang"] {
            assert!(!is_system_name(name), "{name}");
        }
    }

    #[test]
    fn slugs() {
        assert_eq!(slug("  To do: Today! "), "to-do-today");
        assert_eq!(slug("Büro 2"), "büro-2");
        assert_eq!(slug("---"), "");
        assert_eq!(slug("a/../b"), "a-b");
    }
}
