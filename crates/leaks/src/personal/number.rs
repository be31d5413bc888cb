//! What a row of the table of numbers says, and what its check gets to see.

/// A row of the table.
pub(crate) struct Number {
    /// What findings are called.
    pub(crate) name: &'static str,
    /// How it is written, from its beginning.
    pub(crate) pattern: &'static str,
    /// Proves it, and says how many of its letters and digits belong to it.
    pub(crate) check: fn(&Notation<'_>) -> Option<usize>,
    /// When it counts.
    pub(crate) context: Context,
    /// Templates of texts that hold one.
    #[cfg_attr(not(test), expect(dead_code, reason = "the test of the table reads it"))]
    pub(crate) matches: &'static [&'static str],
    /// Templates of texts that hold none.
    #[cfg_attr(not(test), expect(dead_code, reason = "the test of the table reads it"))]
    pub(crate) misses: &'static [&'static str],
}

/// When a number counts whose check holds.
pub(crate) enum Context {
    /// Always.
    Free,
    /// If one of these words is near.
    Needed(&'static [&'static str]),
    /// If it is written in groups, or one of these words is near.
    UnlessGrouped(&'static [&'static str]),
}

/// A number as it stands in a text.
pub(crate) struct Notation<'a> {
    /// With its separators.
    pub(crate) raw: &'a str,
    /// Its letters and digits, in upper case.
    pub(crate) dense: String,
    /// What stands before it on its line.
    pub(crate) line: &'a str,
}

impl Notation<'_> {
    pub(crate) fn digits(&self) -> Vec<u32> {
        self.dense.chars().filter_map(|character| character.to_digit(10)).collect()
    }

    /// All of it, if something holds.
    pub(crate) fn when(&self, holds: bool) -> Option<usize> {
        holds.then_some(self.dense.len())
    }
}

/// Whether a text has a word; one of up to four letters must stand alone.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let is_letter = |character: char| character.is_alphanumeric();
        word.len() > 4 || !text[..at].ends_with(is_letter) && !text[at + word.len()..].starts_with(is_letter)
    })
}
