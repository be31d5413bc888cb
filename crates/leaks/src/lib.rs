//! Finds what must not leave in text: secrets, personal data, and text that came from others.
//!
//! [`find`] looks for secrets and personal data by their shapes; [`fingerprints`] remember received text so that it is
//! recognised in what goes out. Nothing here knows mail or workspaces, waits or does I/O. The work is linear in the
//! length of a text, whatever it holds. Values are masked before they leave this crate.

mod automaton;
mod clean;
mod finding;
pub mod fingerprints;
mod links;
mod personal;
mod secrets;
#[cfg(test)]
#[path = "../tests/templates/mod.rs"]
mod templates;
#[cfg(test)]
mod tests;

use self::clean::CleanText;
pub use self::{
    finding::{Finding, Kind, Search},
    personal::MIN_BULK_ADDRESSES,
};

/// Findings of one text; more would tell a reviewer nothing new.
pub const MAX_FINDINGS: usize = 50;

/// The secrets and personal data of a text, in order of their position. Those of one kind do not overlap.
///
/// Characters without width, full-width digits and soft line breaks hide nothing. Anything else that is encoded, such as
/// HTML, is for the caller to decode first.
pub fn find(text: &str, search: Search) -> Vec<Finding> {
    let clean = CleanText::new(text);
    let mut findings = Vec::new();
    let mut add = |kind, name, range: std::ops::Range<usize>, masked| {
        findings.push(Finding { kind, name, range: clean.original(&range), masked });
    };
    if search.secrets {
        for secret in secrets::find(&clean.text, MAX_FINDINGS) {
            let masked = secret.mask.apply(&clean.text[secret.range.clone()]);
            add(Kind::Secret, secret.name, secret.range, masked);
        }
    }
    if search.personal {
        for item in personal::find(&clean.text, MAX_FINDINGS) {
            add(Kind::Personal, item.name, item.range, item.masked);
        }
    }
    findings.sort_by_key(|finding| (finding.range.start, finding.kind));
    findings.truncate(MAX_FINDINGS);
    findings
}
