//! Identifiers in selectors, and why a selector is not supported.
//!
//! A name that browsers would refuse makes the whole selector unsupported, so that nothing relies on what it would
//! match.

use super::prepare::{QUOTE, SEAM, unmask};

/// Why a selector is not supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnsupportedSelector {
    /// It never matches an element that is shown now.
    Never,
    /// It matches no element, and browsers that do not know it ignore the whole rule.
    Foreign,
    /// Not known.
    Unknown,
}

/// A name as browsers take it.
pub(super) fn identifier(text: &str) -> Result<String, UnsupportedSelector> {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    let begins = text.strip_prefix('-').unwrap_or(text).starts_with(|c: char| is_letter(c) || c == '-');
    let unknown = |c: char| matches!(c, QUOTE | SEAM | char::REPLACEMENT_CHARACTER);
    let holds = text.chars().all(|c| (is_letter(c) || c.is_ascii_digit() || c == '-') && !unknown(c));
    if begins && holds { Ok(unmask(text)) } else { Err(UnsupportedSelector::Unknown) }
}
