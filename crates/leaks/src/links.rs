//! Whether something stands in a link: what links carry is for the one who gets them.

/// How far back the beginning of a link is looked for.
pub(crate) const MAX_LINK_BYTES: usize = 400;

/// Whether a byte of a text is part of a URL.
pub(crate) fn is_in_link(text: &str, at: usize) -> bool {
    let before = &text[text.floor_char_boundary(at.saturating_sub(MAX_LINK_BYTES))..at];
    let ends = |character: char| character.is_whitespace() || "\"'<>()".contains(character);
    before.rsplit(ends).next().is_some_and(|word| word.contains("://"))
}
