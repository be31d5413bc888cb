//! What matched the patterns of a shape, for the checks to look at.

use std::ops::Range;

/// What a check may look at.
pub(crate) struct Candidate<'a> {
    /// The searched text.
    pub(crate) text: &'a str,
    /// Where the shape begins.
    pub(crate) start: usize,
    /// Where its value stands.
    pub(crate) range: Range<usize>,
}

impl<'a> Candidate<'a> {
    pub(crate) fn value(&self) -> &'a str {
        &self.text[self.range.clone()]
    }

    /// What of the shape stands before the value: the name of a setting and what joins them.
    pub(crate) fn lead(&self) -> &'a str {
        &self.text[self.start..self.range.start]
    }

    /// So many bytes before the shape, or a few less.
    pub(crate) fn before(&self, bytes: usize) -> &'a str {
        &self.text[self.text.floor_char_boundary(self.start.saturating_sub(bytes))..self.start]
    }

    pub(crate) fn after(&self) -> &'a str {
        &self.text[self.range.end..]
    }
}
