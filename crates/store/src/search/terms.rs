//! What a search looks for, and what it finds.

use model::{MailboxId, search::query::Clause};

use crate::emails::{list::EmailFilter, record::EmailRecord};

/// Matches are counted up to this number.
pub const MAX_COUNTED: i64 = 1000;
/// From the index to the emails. SQLite keeps the order of a CROSS JOIN, and must start with the index.
pub(super) const MATCHING_SQLITE: &str =
    "FROM email_text CROSS JOIN email ON email.workspace_id = $1 AND email.mailbox_id = $2
    AND email.id = email_text.email_id WHERE email_text MATCH $3";

/// An email that matches, with its position in the result.
#[derive(Clone, Debug)]
pub struct SearchHit {
    /// The email.
    pub email: EmailRecord,
    /// Its position, after which the next page starts.
    pub position: String,
}

/// A page of matches.
#[derive(Clone, Debug)]
pub struct SearchPage {
    /// The mailbox.
    pub mailbox: MailboxId,
    /// Whether it has the folder of the filter, if that names one.
    pub has_folder: bool,
    /// The emails.
    pub hits: Vec<SearchHit>,
    /// How many match, counted up to [`MAX_COUNTED`].
    pub total: i64,
}

/// What a search looks for.
#[derive(Clone, Copy, Debug)]
pub struct Matching<'a> {
    /// The conditions on the text.
    pub clauses: &'a [Clause],
    /// The conditions on the email.
    pub filter: &'a EmailFilter,
}

/// A search: what for, and where.
#[derive(Clone, Copy, Debug)]
pub struct SearchTerms<'a> {
    /// The mailbox.
    pub mailbox: &'a MailboxId,
    /// The conditions on the text.
    pub clauses: &'a [Clause],
    /// The conditions on the email.
    pub filter: &'a EmailFilter,
}
