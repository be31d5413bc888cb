//! The tree of an expression: what the parser makes, the evaluation asks and the display writes.
//!
//! The texts in it are folded or normalised already: comparing folds only what the email says.

use jiff::civil::Date;

/// A yes-or-no property of an email that `has:` and `is:` ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mark {
    /// At least one file is attached.
    Attachment,
    /// The body holds at least one link.
    Link,
    /// Somebody has read it.
    Read,
    /// It has a star.
    Starred,
    /// It was judged urgent.
    Urgent,
    /// A machine wrote it: list, bulk or automatic mail.
    Automatic,
}

/// One of the address lists of an email.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressField {
    /// Who sent it.
    From,
    /// To whom it was addressed.
    To,
    /// Who got a copy.
    Cc,
}

/// Every field, in the order in which messages name them.
pub(super) const FIELDS: [&str; 13] = [
    "from", "to", "cc", "subject", "body", "category", "label", "has", "is", "before", "after", "larger",
    "smaller",
];

/// One word of `has:` or `is:`, the mark it asks about, and the answer it wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MarkTerm {
    pub(super) field: &'static str,
    pub(super) word: &'static str,
    pub(super) mark: Mark,
    pub(super) wanted: bool,
}

/// Every word of `has:` and `is:`.
pub(super) const MARK_TERMS: [MarkTerm; 7] = [
    MarkTerm { field: "has", word: "attachment", mark: Mark::Attachment, wanted: true },
    MarkTerm { field: "has", word: "link", mark: Mark::Link, wanted: true },
    MarkTerm { field: "is", word: "read", mark: Mark::Read, wanted: true },
    MarkTerm { field: "is", word: "unread", mark: Mark::Read, wanted: false },
    MarkTerm { field: "is", word: "starred", mark: Mark::Starred, wanted: true },
    MarkTerm { field: "is", word: "urgent", mark: Mark::Urgent, wanted: true },
    MarkTerm { field: "is", word: "automatic", mark: Mark::Automatic, wanted: true },
];

/// A part of an expression.
///
/// `All` and `Any` have two children or more and a `Not` never holds a `Not`, so that equal trees have equal
/// texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Term(Term),
}

/// One `field:value`, its value already understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Term {
    Address(AddressField, AddressPattern),
    Subject(String),
    Body(String),
    Category(String),
    Label(String),
    Mark(MarkTerm),
    Before(Date),
    After(Date),
    Larger(u64),
    Smaller(u64),
}

/// How a term about addresses compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AddressPattern {
    /// Any address of this domain, in A-labels.
    Domain(String),
    /// This normalised address.
    Exact(String),
    /// A part of the address or the display name, folded.
    Contains(String),
}

/// Folds case, character by character: then a part of a text folds to a part of the folded text.
pub(super) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            folded.push(c.to_ascii_lowercase());
        } else {
            folded.extend(c.to_lowercase());
        }
    }
    folded
}
