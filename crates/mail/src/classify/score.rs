//! Counting the points of a text, word by word.

use super::phrases::{self, Signal};

/// How often one phrase counts in the subject, and again in the text.
const MAX_COUNTS: u8 = 2;

/// The longest word that is looked up; the rest of a longer one is not read.
const MAX_WORD_BYTES: usize = 40;

/// Local parts and the signal they give.
const SENDERS: [(&str, Signal, i32); 14] = [
    ("alert", Signal::Technical, 4),
    ("bizdev", Signal::Partnership, 4),
    ("builds", Signal::Technical, 3),
    ("ci", Signal::Technical, 3),
    ("devops", Signal::Technical, 3),
    ("incident", Signal::Technical, 4),
    ("monitor", Signal::Technical, 4),
    ("newsletter", Signal::Bulk, 5),
    ("noc", Signal::Technical, 4),
    ("partnership", Signal::Partnership, 4),
    ("pagerduty", Signal::Technical, 4),
    ("security", Signal::Technical, 2),
    ("sponsor", Signal::Partnership, 3),
    ("status", Signal::Technical, 3),
];

/// Points by signal.
#[derive(Default)]
pub(super) struct Score {
    points: [i32; Signal::COUNT],
}

impl Score {
    /// The points of one signal.
    pub(super) fn of(&self, signal: Signal) -> i32 {
        self.points.get(signal as usize).copied().unwrap_or_default()
    }

    fn give(&mut self, signal: Signal, points: i32) {
        if let Some(sum) = self.points.get_mut(signal as usize) {
            *sum = sum.saturating_add(points);
        }
    }

    /// Adds the points of a text, each multiplied by the factor.
    pub(super) fn add(&mut self, text: &str, factor: i32) {
        let mut counts = vec![0u8; phrases::phrase_count()];
        let (folded, ends) = fold(text);
        let mut start = 0;
        for &end in &ends {
            let word = folded.get(start..end).unwrap_or_default();
            let rest = folded.get((end + 1).min(folded.len())..).unwrap_or_default();
            for phrase in phrases::beginning_with(word) {
                if let Some(count) = counts.get_mut(phrase.number).filter(|count| **count < MAX_COUNTS)
                    && follows(rest, phrase.rest)
                {
                    *count += 1;
                    self.give(phrase.signal, phrase.points * factor);
                }
            }
            start = end + 1;
        }
    }

    /// Adds the points of the sender's address.
    pub(super) fn add_sender(&mut self, sender: &str) {
        let local = local_part(sender);
        for (name, signal, points) in SENDERS {
            let rest =
                local.strip_prefix(name).map(|rest| rest.trim_start_matches("ing").trim_start_matches('s'));
            if rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric())) {
                self.give(signal, points);
            }
        }
    }
}

/// Whether a text continues with the given words and then a word boundary.
fn follows(text: &str, words: &str) -> bool {
    words.is_empty()
        || text.strip_prefix(words).is_some_and(|after| after.is_empty() || after.starts_with(' '))
}

/// Whether an address belongs to a program.
pub(super) fn is_program(sender: &str) -> bool {
    let plain: String = local_part(sender).chars().filter(char::is_ascii_alphanumeric).collect();
    ["noreply", "donotreply", "mailerdaemon", "notification", "automated"]
        .iter()
        .any(|name| plain.starts_with(name))
}

/// The part before the `@` in lower case, of a bare address or of one in angle brackets.
fn local_part(sender: &str) -> String {
    let bare = sender.rsplit_once('<').map_or(sender, |(_, address)| address);
    let local = bare.rsplit_once('@').map_or(bare, |(local, _)| local);
    local.chars().take(64).collect::<String>().to_ascii_lowercase()
}

/// The words of a text in lower case without accents, each followed by a blank, and where each ends.
///
/// Quoted lines are left out: they belong to an earlier message.
fn fold(text: &str) -> (String, Vec<usize>) {
    if text.is_ascii() {
        return fold_ascii(text);
    }
    let mut folded = String::with_capacity(text.len() + 8);
    let mut ends = Vec::with_capacity(text.len() / 5);
    for line in text.lines().filter(|line| !line.trim_start().starts_with('>')) {
        let mut start = folded.len();
        for c in line.chars().chain(['\n']) {
            if c.is_ascii_alphanumeric() || c == '%' || (!c.is_ascii() && c.is_alphanumeric()) {
                if folded.len() - start < MAX_WORD_BYTES {
                    fold_char(c, &mut folded);
                }
            } else if folded.len() > start {
                ends.push(folded.len());
                folded.push(' ');
                start = folded.len();
            }
        }
    }
    (folded, ends)
}

/// The same for plain text, word by word.
fn fold_ascii(text: &str) -> (String, Vec<usize>) {
    let lower = text.to_ascii_lowercase();
    let mut folded = String::with_capacity(text.len() + 8);
    let mut ends = Vec::with_capacity(text.len() / 5);
    for line in lower.lines().filter(|line| !line.trim_start().starts_with('>')) {
        let mut rest = line;
        while !rest.is_empty() {
            let is_letter = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'%');
            let end = rest.bytes().position(|byte| !is_letter(byte)).unwrap_or(rest.len());
            if end > 0 {
                folded.push_str(rest.get(..end.min(MAX_WORD_BYTES)).unwrap_or_default());
                ends.push(folded.len());
                folded.push(' ');
            }
            rest = rest.get(end + 1..).unwrap_or_default();
        }
    }
    (folded, ends)
}

/// Writes a character in lower case and without its accent.
fn fold_char(c: char, to: &mut String) {
    if c.is_ascii() {
        to.push(c.to_ascii_lowercase());
        return;
    }
    let plain = match c {
        'à'..='å' | 'À'..='Å' => 'a',
        'ç' | 'Ç' => 'c',
        'è'..='ë' | 'È'..='Ë' => 'e',
        'ì'..='ï' | 'Ì'..='Ï' => 'i',
        'ñ' | 'Ñ' => 'n',
        'ò'..='ö' | 'Ò'..='Ö' => 'o',
        'ù'..='ü' | 'Ù'..='Ü' => 'u',
        'ß' => {
            to.push('s');
            's'
        }
        other => other.to_lowercase().next().unwrap_or(other),
    };
    to.push(plain);
}
