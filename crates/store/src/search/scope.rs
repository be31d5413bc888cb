//! The word that separates the texts of one mailbox from all others, in the index and in every query.

use model::MailboxId;

/// The word of a mailbox: letters and digits, so that no tokenizer splits it.
pub(super) fn scope(mailbox: &MailboxId) -> String {
    mailbox.as_str().chars().filter(char::is_ascii_alphanumeric).collect()
}
