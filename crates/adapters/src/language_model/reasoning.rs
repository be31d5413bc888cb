//! Removes the reasoning that some models write between tags before their answer.

/// Removes the reasoning that some models write between tags before their answer.
#[derive(Default)]
pub(super) enum ReasoningFilter {
    /// The text may still start with the tag.
    #[default]
    Undecided,
    /// The text so far could be the start of the tag.
    Beginning(String),
    /// Inside the reasoning; the end of the text may be a part of the closing tag.
    Thinking(String),
    /// After the reasoning, before the answer.
    Before,
    /// Inside the answer.
    Answering,
}

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

impl ReasoningFilter {
    /// Adds text, and returns the part that belongs to the answer.
    pub(super) fn add(&mut self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        match std::mem::take(self) {
            Self::Answering => {
                *self = Self::Answering;
                text.to_owned()
            }
            Self::Undecided => self.begin(text.to_owned()),
            Self::Beginning(before) => self.begin(before + text),
            Self::Thinking(before) => self.skip_reasoning(&(before + text)),
            Self::Before => {
                let answer = text.trim_start();
                *self = if answer.is_empty() { Self::Before } else { Self::Answering };
                answer.to_owned()
            }
        }
    }

    fn begin(&mut self, text: String) -> String {
        let start = text.trim_start();
        if let Some(thought) = start.strip_prefix(OPEN) {
            return self.skip_reasoning(thought);
        }
        if OPEN.starts_with(start) {
            *self = Self::Beginning(text);
            return String::new();
        }
        *self = Self::Answering;
        text
    }

    fn skip_reasoning(&mut self, text: &str) -> String {
        if let Some((_, answer)) = text.split_once(CLOSE) {
            *self = Self::Before;
            return self.add(answer);
        }
        // Keep what may be the start of the tag.
        let kept = text.char_indices().rev().take(CLOSE.len()).last().map_or(0, |(at, _)| at);
        *self = Self::Thinking(text[kept..].to_owned());
        String::new()
    }

    /// Text that was held back and is not a tag after all.
    pub(super) fn finish(self) -> String {
        match self {
            Self::Beginning(text) => text,
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_looks_like_a_thought_is_none() {
        let mut filter = ReasoningFilter::default();
        assert_eq!(filter.add("<th"), "");
        assert_eq!(filter.add("eory>"), "<theory>");
        let mut filter = ReasoningFilter::default();
        assert_eq!(filter.add("<thin"), "");
        assert_eq!(filter.finish(), "<thin");
        let mut filter = ReasoningFilter::default();
        assert_eq!(filter.add("<think>never ends"), "");
        assert_eq!(filter.finish(), "");
    }
}
