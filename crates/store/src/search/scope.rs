//! The word that keeps the texts of one mailbox apart from those of all others, in the index and in every query.

use model::MailboxId;

/// The word that stands for a mailbox: letters and digits, so that no engine cuts it.
pub(super) fn scope(mailbox: &MailboxId) -> String {
    mailbox.as_str().chars().filter(char::is_ascii_alphanumeric).collect()
}
