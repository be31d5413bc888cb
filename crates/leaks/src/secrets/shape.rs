//! What a row of the table of secret shapes says.

use super::{candidate::Candidate, checks};
use crate::finding::Mask;

/// A row of the table.
pub(crate) struct Shape {
    /// What findings are called.
    pub(crate) name: &'static str,
    /// Literals: every match contains one, at its beginning or at most `back` token characters behind it.
    pub(crate) starts: &'static [&'static str],
    /// How many token characters may stand before the literal.
    pub(crate) back: usize,
    /// Whether it must begin, and without a lead also end, where a word does.
    pub(crate) whole: bool,
    /// What stands before the value and is no part of it.
    pub(crate) lead: &'static str,
    /// The value.
    pub(crate) value: &'static str,
    /// With this ending the value goes on beyond what the pattern matches, if it stands near.
    pub(crate) ending: Option<&'static str>,
    /// What no pattern can say: a checksum, an encoding, how random the value looks.
    pub(crate) check: fn(&Candidate<'_>) -> bool,
    /// What of the value may be shown.
    pub(crate) mask: Mask,
    /// Templates of texts that hold this secret.
    #[cfg_attr(not(test), expect(dead_code, reason = "the test of the table reads it"))]
    pub(crate) matches: &'static [&'static str],
    /// Templates of texts that hold none.
    #[cfg_attr(not(test), expect(dead_code, reason = "the test of the table reads it"))]
    pub(crate) misses: &'static [&'static str],
}

/// What rows of prefixed tokens have in common.
pub(super) const TOKEN: Shape = Shape {
    name: "",
    starts: &[],
    back: 0,
    whole: true,
    lead: "",
    value: "",
    ending: None,
    check: checks::random,
    mask: Mask::Prefix(4),
    matches: &[],
    misses: &[],
};

/// What rows have in common whose value is known by the name of a setting before it.
pub(super) const SETTING: Shape = Shape { whole: false, mask: Mask::Hidden, ..TOKEN };
