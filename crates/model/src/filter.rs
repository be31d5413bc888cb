//! Filter expressions: the small language of label rules and triager triggers.
//!
//! `from:@acme.com and (subject:invoice or has:attachment) and not body:"unsubscribe"`
//!
//! - `or` binds weakest, then `and`, then `not`; terms side by side mean `and`; keywords and fields in any
//!   case.
//! - `from to cc`: `@domain` is any address of that domain, `name@domain` that address, anything else (also
//!   `name@`) a part of the address or of the display name.
//! - `subject body`: a part of the text. `category label`: the whole word. All of them in any case.
//! - `has`: `attachment link`. `is`: `read unread starred urgent automatic`.
//! - `before after`: `YYYY-MM-DD` in UTC; `after` includes its day, `before` does not.
//! - `larger smaller`: bytes, or with `kb mb gb`, 1024 at a step.
//! - A value with spaces, parentheses or quotation marks stands in `"`, with `\"` and `\\` inside.
//!
//! A parsed [`Filter`] is bounded in depth and number of terms, and evaluating it takes time linear in the
//! mail.

mod evaluate;
mod parser;
mod rules;
mod show;
#[cfg(test)]
mod tests;
mod values;

use std::str::FromStr;

use jiff::civil::Date;

pub use evaluate::{FilterSubject, Party};
pub use rules::{Rules, parse_rules};

/// How deep parentheses may be nested.
pub const MAX_DEPTH: usize = 32;

/// How many terms one expression may have.
pub const MAX_TERMS: usize = 64;

/// A checked filter expression.
///
/// Its `Display` is the expression in a tidy form, which reads back as an equal filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    root: Node,
}

/// What is wrong with an expression, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub struct FilterError {
    /// The place of the fault, counted in characters from 1.
    pub column: usize,
    /// What was expected there.
    pub message: String,
}

/// A yes-or-no property of a mail that `has:` and `is:` ask for.
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

/// One of the address lists of a mail.
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
const FIELDS: [&str; 13] = [
    "from", "to", "cc", "subject", "body", "category", "label", "has", "is", "before", "after", "larger",
    "smaller",
];

/// One word of `has:` or `is:`, the mark it asks about, and the answer it wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MarkTerm {
    field: &'static str,
    word: &'static str,
    mark: Mark,
    wanted: bool,
}

/// Every word of `has:` and `is:`.
const MARK_TERMS: [MarkTerm; 7] = [
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
enum Node {
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Term(Term),
}

/// One `field:value`, its value already understood.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
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
enum AddressPattern {
    /// Any address of this domain, in A-labels.
    Domain(String),
    /// This normalised address.
    Exact(String),
    /// A part of the address or the display name, folded.
    Contains(String),
}

impl Filter {
    /// Reads an expression; anything that is none is a fault.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        parser::parse(text).map(|root| Self { root })
    }

    /// Whether the mail is one that the expression describes.
    pub fn matches(&self, mail: &impl FilterSubject) -> bool {
        evaluate::matches(&self.root, mail)
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        Self::parse(text)
    }
}

/// Folds case, character by character: then a part of a text folds to a part of the folded text.
fn fold(text: &str) -> String {
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
