//! What separates the texts of one mailbox from all others, in the index and in every query.

use data_encoding::BASE32_NOPAD;
use model::MailboxId;
use sha2::{Digest, Sha256};

/// Characters that every word in SQLite's index begins with. A word of a text cannot pretend to be another mailbox's:
/// it has the characters of its own before it.
const PREFIX_CHARS: usize = 10;

/// What the words of mailboxes in PostgreSQL's index begin with: the prefix of their ids.
pub(super) const SCOPE_START: &str = "mbx";

/// The word of a mailbox in PostgreSQL's index: letters and digits, so that no tokenizer splits it.
pub(super) fn scope(mailbox: &MailboxId) -> String {
    mailbox.as_str().chars().filter(char::is_ascii_alphanumeric).collect()
}

/// The same of a column with the id, as an expression.
pub(super) fn scope_of(column: &str) -> String {
    format!("regexp_replace({column}, '[^A-Za-z0-9]', '', 'g')")
}

/// The beginning of every word of a mailbox in SQLite's index: 50 bits of a hash, short because it is stored and
/// compared with every word. Should two mailboxes share it, the rows of the emails still tell them apart.
pub(super) fn prefix(mailbox: &MailboxId) -> String {
    let mut text = BASE32_NOPAD.encode(&Sha256::digest(mailbox.as_str()));
    text.truncate(PREFIX_CHARS);
    text.make_ascii_lowercase();
    text
}
