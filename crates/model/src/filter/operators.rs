//! Finds rules that were meant as expressions but use an operator of another language: `from contains "@acme.com"`,
//! `subject = invoice`, `has attachment and is unread`. Kept as instructions they would never do what was meant.

use super::expression::MARK_TERMS;
use super::parser::{FilterError, ends_bare_value};
use super::values::field_named;

/// Words and signs between a field and a value, alone or in a row as in `does not contain`.
const OPERATORS: [&str; 28] = [
    ":", "=", "==", "===", "!=", "<>", "~", "=~", "!~", "<", ">", "<=", ">=", "is", "are", "not", "does",
    "contain", "contains", "equal", "equals", "match", "matches", "like", "starts", "ends", "with",
    "includes",
];
/// Most operators in a row.
const MAX_OPERATORS: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Quoted,
    Open,
    Close,
}

/// A word, a quotation or a parenthesis, and where it stands.
struct Piece {
    at: usize,
    kind: Kind,
    text: String,
}

impl Piece {
    fn is_word(&self, words: &[&str]) -> bool {
        self.kind == Kind::Word && words.iter().any(|word| self.text.eq_ignore_ascii_case(word))
    }

    fn is_keyword(&self) -> bool {
        self.is_word(&["and", "or", "not"])
    }

    /// Whether it is a `word:value` of whatever field; a URL and a time are none.
    fn is_like_term(&self) -> bool {
        let Some((name, value)) = self.text.split_once(':').filter(|_| self.kind == Kind::Word) else {
            return false;
        };
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        is_name && !value.is_empty() && !value.starts_with("//")
    }
}

/// The first mistake of that kind.
pub(super) fn find_mistake(chars: &[char]) -> Option<FilterError> {
    let pieces = cut(chars);
    (0..pieces.len())
        .find_map(|index| wrong_operator(&pieces, index).or_else(|| missing_colon(&pieces, index)))
}

/// Whether something like a term stands beside `and`, `or` or `not`.
pub(super) fn joins_terms(chars: &[char]) -> bool {
    let pieces = cut(chars);
    pieces.windows(2).any(|pair| {
        let (first, second) = (&pair[0], &pair[1]);
        (first.is_like_term() && second.is_keyword()) || (first.is_keyword() && second.is_like_term())
    })
}

/// A known field with an operator that is no colon, and one value.
fn wrong_operator(pieces: &[Piece], index: usize) -> Option<FilterError> {
    let piece = &pieces[index];
    if piece.kind != Kind::Word {
        return None;
    }
    let sign = piece.text.find(|c| "=~!<>:".contains(c)).unwrap_or(piece.text.len());
    let (name, glued) = piece.text.split_at(sign);
    let field = field_named(name)?;
    let value_of_sign = glued.trim_start_matches(|c| "=~!<>:".contains(c));
    if !value_of_sign.is_empty() {
        // `from=bob` is a mistake wherever it stands; `from:bob` is a term.
        return (!glued.starts_with(':')).then(|| wrong(piece.at, field, value_of_sign));
    }
    if !begins_clause(pieces, index) {
        return None;
    }
    let mut next = index + 1;
    let is_operator = |piece: &Piece| piece.is_word(&OPERATORS);
    while next <= index + MAX_OPERATORS && pieces.get(next).is_some_and(is_operator) {
        next += 1;
    }
    if glued.is_empty() && next == index + 1 {
        return None;
    }
    let value = pieces.get(next).filter(|value| matches!(value.kind, Kind::Word | Kind::Quoted))?;
    let ends = pieces.get(next + 1).is_none_or(|after| after.is_keyword() || after.kind == Kind::Close);
    // A longer clause is a sentence.
    (ends && !value.is_keyword()).then(|| wrong(piece.at, field, &quoted(value)))
}

/// `has attachment` beside `and`, `or` or `not`.
fn missing_colon(pieces: &[Piece], index: usize) -> Option<FilterError> {
    let (piece, value) = (&pieces[index], pieces.get(index + 1)?);
    let ends = |after: &Piece| after.is_word(&["and", "or"]) || after.kind == Kind::Close;
    let after = pieces.get(index + 2);
    let is_joined = after.is_some_and(ends) || (after.is_none() && index > 0);
    let field = field_named(&piece.text).filter(|_| piece.kind == Kind::Word && is_joined)?;
    let known = MARK_TERMS.iter().any(|term| term.field == field && value.is_word(&[term.word]));
    (known && begins_clause(pieces, index)).then(|| wrong(piece.at, field, &value.text))
}

fn begins_clause(pieces: &[Piece], index: usize) -> bool {
    let before = index.checked_sub(1).and_then(|before| pieces.get(before));
    before.is_none_or(|before| before.is_keyword() || before.kind == Kind::Open)
}

fn wrong(at: usize, field: &str, value: &str) -> FilterError {
    let message = format!("write {field}:{value} here: a colon joins a field and its value, without spaces");
    FilterError { column: at + 1, message }
}

fn quoted(value: &Piece) -> String {
    if value.kind == Kind::Quoted { format!("\"{}\"", value.text) } else { value.text.clone() }
}

/// Cuts a text into words, quotations and parentheses.
fn cut(chars: &[char]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let kind = match c {
            '(' => Kind::Open,
            ')' => Kind::Close,
            '"' => Kind::Quoted,
            _ if c.is_whitespace() => {
                at += 1;
                continue;
            }
            _ => Kind::Word,
        };
        let (text, next) = match kind {
            Kind::Word => {
                let word: Vec<char> =
                    chars[at..].iter().copied().take_while(|c| !ends_bare_value(*c)).collect();
                let next = at + word.len();
                (word.into_iter().collect(), next)
            }
            Kind::Quoted => match closing_quote(chars, at) {
                Some(closing) => (chars[at + 1..closing].iter().collect(), closing + 1),
                None => (String::new(), at + 1),
            },
            Kind::Open | Kind::Close => (String::new(), at + 1),
        };
        pieces.push(Piece { at, kind, text });
        at = next;
    }
    pieces
}

/// Where the quotation that begins at `opening` ends.
pub(super) fn closing_quote(chars: &[char], opening: usize) -> Option<usize> {
    let mut escaped = false;
    for (offset, &c) in chars[opening + 1..].iter().enumerate() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(opening + 1 + offset),
            _ => {}
        }
    }
    None
}
