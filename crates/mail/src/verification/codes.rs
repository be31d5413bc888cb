//! Decides which candidates are codes, by the words around them.
//!
//! Each candidate gets a score from its own line, the lines around it and the subject.

use std::collections::HashMap;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

use super::candidates::{self, Candidate, Shape};
use super::confidence::{confidence, keep_best};
use super::vocabulary;

/// How much of a message is searched.
const MAX_CHARS: usize = 20_000;
const MAX_LINES: usize = 400;

/// The longest line that can carry a code with its wording.
const MAX_LINE_BYTES: usize = 2_000;

/// How near a word for code must be to a code in the same line, in bytes.
const NEAR_BYTES: usize = 60;
const VERY_NEAR_BYTES: usize = 14;

/// How many lines above a code may mention it.
const MAX_LINES_ABOVE: usize = 3;

/// Minimum confidence of a result.
const THRESHOLD: f64 = 0.5;

/// The longest context that is returned.
const MAX_CONTEXT_CHARS: usize = 160;

/// A code.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Code {
    /// The code as it is typed in: digits without spaces between them.
    pub value: String,
    /// How likely it is one, from 0 to 1.
    pub confidence: f64,
    /// The line in which it stands.
    pub context: String,
}

/// A line of the message, ready to be searched.
struct Line {
    text: String,
    code_ranges: Vec<Range<usize>>,
    about_sign_up: bool,
    about_offer: bool,
}

impl Line {
    fn new(text: &str) -> Self {
        let end = text.floor_char_boundary(MAX_LINE_BYTES);
        let text = candidates::prepare(text.get(..end).unwrap_or_default());
        let code_ranges = vocabulary::code_ranges(&text);
        let (about_sign_up, about_offer) =
            (vocabulary::speaks_of_sign_up(&text), vocabulary::speaks_of_offer(&text));
        Self { text, code_ranges, about_sign_up, about_offer }
    }

    fn speaks_of_code(&self) -> bool {
        !self.code_ranges.is_empty()
    }
}

/// Finds the codes of a message.
pub(super) fn find(subject: &str, text: &str) -> Vec<Code> {
    let subject = Line::new(subject);
    let end = text.char_indices().nth(MAX_CHARS).map_or(text.len(), |(place, _)| place);
    let body = text.get(..end).unwrap_or_default().lines().filter(|line| !line.is_empty()).take(MAX_LINES);
    let lines: Vec<Line> = body.map(Line::new).collect();
    let about_sign_up = subject.about_sign_up;
    let mut best: HashMap<String, (usize, Code)> = HashMap::new();
    let mut take = |order: usize, line: &Line, candidate: Candidate, score: f64| {
        if score < THRESHOLD {
            return;
        }
        let context = line.text.chars().take(MAX_CONTEXT_CHARS).collect();
        let code = Code { value: candidate.value.clone(), confidence: score, context };
        best.entry(candidate.value)
            .and_modify(|(_, known)| {
                // A code that occurs twice, as in subject and body, is meant.
                known.confidence = known.confidence.max(score) + 0.05;
            })
            .or_insert((order, code));
    };
    for candidate in likely(&subject.text) {
        let score = score_in_line(&subject, &candidate, about_sign_up);
        take(0, &subject, candidate, score);
    }
    for (index, line) in lines.iter().enumerate() {
        for candidate in likely(&line.text) {
            let around = LineContext { subject: &subject, lines: &lines, index, about_sign_up };
            let score = around.score(line, &candidate);
            take(index + 1, line, candidate, score);
        }
    }
    let mut found: Vec<(usize, Code)> = best.into_values().collect();
    found.sort_by(|one, two| one.0.cmp(&two.0).then_with(|| one.1.value.cmp(&two.1.value)));
    let codes =
        found.into_iter().map(|(_, code)| Code { confidence: confidence(code.confidence), ..code }).collect();
    keep_best(codes, |code: &Code| code.confidence)
}

/// Candidates that are no date. Eight digits that form a date are one, whatever surrounds them.
fn likely(line: &str) -> impl Iterator<Item = Candidate> {
    candidates::find(line).into_iter().filter(|candidate| !is_date(&candidate.value))
}

/// A line in the context of its message.
struct LineContext<'a> {
    subject: &'a Line,
    lines: &'a [Line],
    index: usize,
    about_sign_up: bool,
}

impl LineContext<'_> {
    fn score(&self, line: &Line, candidate: &Candidate) -> f64 {
        let above =
            self.lines.get(self.index.saturating_sub(MAX_LINES_ABOVE)..self.index).unwrap_or_default();
        let below = self.lines.get(self.index + 1..).and_then(<[Line]>::first);
        let near_offer = above.last().into_iter().chain(below).any(|near| near.about_offer);
        let about_sign_up =
            self.about_sign_up || above.iter().chain(below).chain([line]).any(|near| near.about_sign_up);
        if near_offer && !self.subject.speaks_of_code() {
            return 0.0;
        }
        let in_line = score_in_line(line, candidate, about_sign_up);
        if in_line > 0.0 || !is_alone(&line.text, candidate) || line.about_offer {
            return in_line;
        }
        let from_above = above.iter().rev().position(Line::speaks_of_code);
        let base: f64 = match from_above {
            Some(0) => 0.7,
            Some(_) => 0.62,
            None if below.is_some_and(Line::speaks_of_code) => 0.6,
            None if self.subject.speaks_of_code() && about_sign_up => 0.58,
            None => return 0.0,
        };
        let labelled_otherwise = above.last().is_some_and(|last| {
            last.code_ranges.is_empty()
                && vocabulary::names_other_number(last.text.trim_end_matches([':', ' ', '.']))
        });
        if labelled_otherwise {
            return 0.0;
        }
        base + shape_bonus(candidate, false) + if about_sign_up { 0.1 } else { -0.08 }
    }
}

/// How likely a candidate is a code by the words of its own line; 0 when they say nothing or speak against it.
fn score_in_line(line: &Line, candidate: &Candidate, about_sign_up: bool) -> f64 {
    let before = line.text.get(..candidate.place.start).unwrap_or_default();
    let after = line.text.get(candidate.place.end..).unwrap_or_default();
    let is_letters = matches!(candidate.shape, Shape::Letters);
    let offers = !is_direct(before, candidate, line) && line.about_offer;
    let offer_code = line.about_offer && !matches!(candidate.shape, Shape::Digits | Shape::Prefixed);
    if offers
        || offer_code
        || vocabulary::names_other_number(sentence_end(before))
        || vocabulary::names_unit(after)
    {
        return 0.0;
    }
    let distance = |place: &Range<usize>| {
        if place.end <= candidate.place.start {
            Some((candidate.place.start - place.end, true))
        } else if place.start >= candidate.place.end {
            Some((place.start - candidate.place.end, false))
        } else {
            None
        }
    };
    let nearest = line.code_ranges.iter().filter_map(distance).min_by_key(|(gap, _)| *gap);
    let Some((gap, word_first)) = nearest.filter(|(gap, _)| *gap <= NEAR_BYTES) else { return 0.0 };
    let said_directly = gap <= VERY_NEAR_BYTES && (word_first || !after.contains(['.', ';']));
    if is_letters && !(word_first && said_directly && is_direct(before, candidate, line)) {
        return 0.0;
    }
    if crosses_sentence(line, candidate, gap, word_first) {
        return 0.0;
    }
    let near_bonus = if said_directly { 0.12 } else { 0.0 };
    0.58 + near_bonus
        + shape_bonus(candidate, said_directly && about_sign_up)
        + if about_sign_up { 0.1 } else { -0.05 }
}

/// Whether only a colon or a word such as "is" is between the word for code and the candidate.
fn is_direct(before: &str, candidate: &Candidate, line: &Line) -> bool {
    let label = line.code_ranges.iter().rfind(|place| place.end <= candidate.place.start);
    let Some(between) = label.and_then(|place| before.get(place.end..)) else { return false };
    let trimmed = between.trim_matches([' ', ':', '-', '–', '=', '"', '“', '：']);
    trimmed.is_empty() || matches!(trimmed, "is" | "lautet" | "ist" | "est" | "es" | "é" | "è" | "是" | "为")
}

/// Whether a sentence ends between the candidate and the word for code.
fn crosses_sentence(line: &Line, candidate: &Candidate, gap: usize, word_first: bool) -> bool {
    let place = if word_first {
        candidate.place.start.saturating_sub(gap)..candidate.place.start
    } else {
        candidate.place.end..candidate.place.end + gap
    };
    let between = line.text.get(place).unwrap_or_default();
    between.contains(". ") || between.contains('!') || between.contains('?') || between.contains('。')
}

/// The text since the last end of a sentence.
fn sentence_end(before: &str) -> &str {
    before.rsplit(['!', '?', '。', ';']).next().unwrap_or(before)
}

/// Whether a line has nothing but the candidate.
fn is_alone(line: &str, candidate: &Candidate) -> bool {
    let rest = |text: Option<&str>| {
        text.unwrap_or_default().chars().all(|c| !c.is_alphanumeric() && !"$€£¥+#©".contains(c))
    };
    rest(line.get(..candidate.place.start)) && rest(line.get(candidate.place.end..))
}

/// What the shape of a candidate adds or takes away.
fn shape_bonus(candidate: &Candidate, surely_meant: bool) -> f64 {
    let length = candidate.value.len();
    let date_penalty = if looks_like_date(&candidate.value) && !surely_meant { -0.35 } else { 0.0 };
    let bonus = match candidate.shape {
        Shape::Digits if length == 6 => 0.12,
        Shape::Digits if (4..=8).contains(&length) => 0.06,
        Shape::Prefixed => 0.1,
        Shape::Mixed => {
            let upper = !candidate.value.bytes().any(|byte| byte.is_ascii_lowercase());
            if upper { 0.02 } else { -0.12 }
        }
        Shape::Digits | Shape::Letters => -0.05,
    };
    bonus + date_penalty
}

/// Whether digits are a year, or two of them.
fn looks_like_date(digits: &str) -> bool {
    match digits.len() {
        4 => is_year(digits, 0..4),
        8 => is_year(digits, 0..4) && is_year(digits, 4..8),
        _ => false,
    }
}

/// Whether digits are a day written without separators, the year first or last.
fn is_date(digits: &str) -> bool {
    let within = |range, most| number(digits, range).is_some_and(|part| (1..=most).contains(&part));
    let is_day = |month, day| within(month, 12) && within(day, 31);
    digits.len() == 8
        && ((is_year(digits, 0..4) && is_day(4..6, 6..8))
            || (is_year(digits, 4..8) && (is_day(2..4, 0..2) || is_day(0..2, 2..4))))
}

fn number(digits: &str, range: Range<usize>) -> Option<u32> {
    digits.get(range)?.parse().ok()
}

fn is_year(digits: &str, range: Range<usize>) -> bool {
    number(digits, range).is_some_and(|year| (1900..=2099).contains(&year))
}
