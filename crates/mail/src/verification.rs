//! Codes and links of sign-up messages: what a caller waiting for such a message needs.
//!
//! Found by wording and shape alone, in what a person sees. A missed code costs a look at the message; a year or an
//! order number mistaken for a code costs a failed sign-up, so doubt means no.

mod candidates;
mod codes;
mod confidence;
mod links;
#[cfg(test)]
mod tests;
mod vocabulary;

use schemars::JsonSchema;
use serde::Serialize;

use crate::safe_text::SafeText;

pub use codes::Code;
pub use links::Link;

/// What was found in a mail.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Verification {
    /// Codes to type in, likeliest first.
    pub codes: Vec<Code>,
    /// Links to follow, likeliest first.
    pub links: Vec<Link>,
}

/// Looks for codes and links in what a reader sees of a message.
pub fn find(subject: &str, text: &SafeText, html: Option<&str>) -> Verification {
    let subject = SafeText::line(subject);
    Verification {
        codes: codes::find(subject.as_str(), text.as_str()),
        links: links::find(subject.as_str(), text.as_str(), html),
    }
}
