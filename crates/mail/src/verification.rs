//! Codes and links of sign-up mails: what somebody who waits for such a mail is looking for.
//!
//! Found by wording and shape alone, in what a reader sees. A code that is missed costs a look at the mail; a year or
//! an order number taken for a code costs a failed sign-up, so doubt means no.

mod candidates;
mod codes;
mod links;
#[cfg(test)]
mod tests;
mod words;

use schemars::JsonSchema;
use serde::Serialize;

use crate::safe_text::SafeText;

/// The most codes and the most links that are given.
const MAX_FOUND: usize = 10;

/// What was found in a mail.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Verification {
    /// Codes to type in, likeliest first.
    pub codes: Vec<Code>,
    /// Links to follow, likeliest first.
    pub links: Vec<Link>,
}

/// A code.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Code {
    /// The code as it is typed in: digits without spaces between them.
    pub value: String,
    /// How likely it is one, from 0 to 1.
    pub confidence: f64,
    /// The line in which it stands.
    pub context: String,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Link {
    /// Where it leads.
    pub url: String,
    /// The host of that, in its ASCII form.
    pub host: String,
    /// What it says.
    pub text: String,
    /// How likely it is the one to follow, from 0 to 1.
    pub confidence: f64,
}

/// Looks for codes and links in what a reader sees of a mail.
pub fn find(subject: &str, text: &SafeText, html: Option<&str>) -> Verification {
    let subject = SafeText::line(subject);
    Verification {
        codes: codes::find(subject.as_str(), text.as_str()),
        links: links::find(subject.as_str(), text.as_str(), html),
    }
}

/// Sorts by confidence and keeps the best. Equal ones keep the order of the mail.
fn keep_best<T>(mut found: Vec<T>, confidence: impl Fn(&T) -> f64) -> Vec<T> {
    found.sort_by(|one, two| confidence(two).total_cmp(&confidence(one)));
    found.truncate(MAX_FOUND);
    found
}

/// A confidence with two digits, below certainty.
fn confidence(score: f64) -> f64 {
    (score.clamp(0.0, 0.99) * 100.0).round() / 100.0
}
