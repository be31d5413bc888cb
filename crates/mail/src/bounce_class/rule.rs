//! A rule: a phrase, and the class of the texts that it is in.

use super::{
    class::BounceClass,
    evidence::{Evidence, Status},
};

/// The most bytes that a `*` stands for.
const MAX_GAP_BYTES: usize = 80;

/// What else must be so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// Nothing.
    Always,
    /// The status has this subject and this detail.
    Status(u16, u16),
    /// No server replied.
    NoReply,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) class: BounceClass,
    pub(super) condition: Condition,
    /// In lower case. `*` stands for anything short, and a space at the end of a part for the end of a word.
    pub(super) phrase: &'static str,
}

impl Rule {
    const fn new(class: BounceClass, phrase: &'static str) -> Self {
        Self { class, condition: Condition::Always, phrase }
    }

    /// The same rule for one status only.
    pub(super) const fn with_status(self, subject: u16, detail: u16) -> Self {
        Self { condition: Condition::Status(subject, detail), ..self }
    }

    /// The same rule for failures without a reply.
    pub(super) const fn without_reply(self) -> Self {
        Self { condition: Condition::NoReply, ..self }
    }

    /// Whether the rule is about what is known.
    pub(super) fn applies_to(&self, evidence: &Evidence) -> bool {
        let condition = match self.condition {
            Condition::Always => true,
            Condition::Status(subject, detail) => {
                let same = |status: Status| (status.subject, status.detail) == (subject, detail);
                evidence.status.is_some_and(same)
            }
            Condition::NoReply => evidence.code.is_none(),
        };
        condition && contains(&evidence.text, self.phrase)
    }
}

/// Whether a text contains a phrase.
pub(super) fn contains(text: &str, phrase: &str) -> bool {
    let (part, rest) = phrase.split_once('*').map_or((phrase, None), |(part, rest)| (part, Some(rest)));
    let word = part.trim();
    text.match_indices(word).any(|(start, _)| {
        let (before, after) = (&text[..start], &text[start + word.len()..]);
        let begins = !part.starts_with(' ') || !before.ends_with(char::is_alphanumeric);
        let ends = !part.ends_with(' ') || !after.starts_with(char::is_alphanumeric);
        let near = after.get(..after.floor_char_boundary(MAX_GAP_BYTES)).unwrap_or(after);
        begins && ends && rest.is_none_or(|rest| contains(near, rest))
    })
}

/// A rule about dead addresses.
pub(super) const fn hard(phrase: &'static str) -> Rule {
    Rule::new(BounceClass::Hard, phrase)
}

/// A rule about what may work later.
pub(super) const fn soft(phrase: &'static str) -> Rule {
    Rule::new(BounceClass::Soft, phrase)
}

/// A rule about reputation and authentication.
pub(super) const fn block(phrase: &'static str) -> Rule {
    Rule::new(BounceClass::Block, phrase)
}

/// A rule about the rules of the recipient's server.
pub(super) const fn policy(phrase: &'static str) -> Rule {
    Rule::new(BounceClass::Policy, phrase)
}

/// A rule about mailboxes that are full.
pub(super) const fn full(phrase: &'static str) -> Rule {
    Rule::new(BounceClass::Full, phrase)
}
