//! What a model thinks before it answers, where it writes that between tags into its text: it is no part of the answer.

/// Leaves out what a model thinks before it answers, where it writes that between tags into its text.
#[derive(Default)]
pub(super) enum Thoughts {
    /// It may still begin with a thought.
    #[default]
    Undecided,
    /// The beginning so far could be a tag.
    Beginning(String),
    /// It is thinking; the end of what came may be a part of the tag.
    Thinking(String),
    /// It has thought, and the answer has not begun.
    Before,
    /// It answers.
    Answering,
}

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

impl Thoughts {
    /// Adds text, and gives what of it belongs to the answer.
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
            Self::Thinking(before) => self.think(&(before + text)),
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
            return self.think(thought);
        }
        if OPEN.starts_with(start) {
            *self = Self::Beginning(text);
            return String::new();
        }
        *self = Self::Answering;
        text
    }

    fn think(&mut self, text: &str) -> String {
        if let Some((_, answer)) = text.split_once(CLOSE) {
            *self = Self::Before;
            return self.add(answer);
        }
        // As much as may be the beginning of the tag.
        let kept = text.char_indices().rev().take(CLOSE.len()).last().map_or(0, |(at, _)| at);
        *self = Self::Thinking(text[kept..].to_owned());
        String::new()
    }

    /// What was held back and is no thought after all.
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
        let mut thoughts = Thoughts::default();
        assert_eq!(thoughts.add("<th"), "");
        assert_eq!(thoughts.add("eory>"), "<theory>");
        let mut thoughts = Thoughts::default();
        assert_eq!(thoughts.add("<thin"), "");
        assert_eq!(thoughts.finish(), "<thin");
        let mut thoughts = Thoughts::default();
        assert_eq!(thoughts.add("<think>never ends"), "");
        assert_eq!(thoughts.finish(), "");
    }
}
