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
mod expression;
mod parser;
mod rules;
mod show;
#[cfg(test)]
mod tests;
mod values;

use std::str::FromStr;

use expression::Node;

pub use evaluate::{FilterSubject, Party};
pub use expression::{AddressField, Mark};
pub use parser::{FilterError, MAX_DEPTH, MAX_TERMS};
pub use rules::{Rules, parse_rules};

/// A checked filter expression.
///
/// Its `Display` is the expression in a tidy form, which reads back as an equal filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    root: Node,
}

impl Filter {
    /// Reads an expression; anything that is none is a fault.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        parser::parse(text).map(|root| Self { root })
    }

    /// Whether the email is one that the expression describes.
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
