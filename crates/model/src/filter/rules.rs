//! Telling an expression from an instruction: people write both into the same box.

use super::operators::{closing_quote, find_mistake, joins_terms};
use super::parser::ends_bare_value;
use super::values::field_named;
use super::{Filter, FilterError};

/// What the text of a rule turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rules {
    /// An expression, which the service evaluates itself.
    Expression(Filter),
    /// Free text for the AI provider; empty when there was none.
    Instruction(String),
}

/// Reads the text of a rule; a text that is meant as an expression must be a correct one.
///
/// Meant as an expression is what has a known field directly followed by a value anywhere outside quotation
/// marks, or begins with any `word:value` (a URL excepted), perhaps behind `(` or `not`. The second half is
/// for misspelt fields: kept as an instruction, `sender:@acme.com` would never do what its author expects. So are
/// known fields with another operator, as in `from contains "@acme.com"`, and terms joined by `and`, `or` or `not`.
pub fn parse_rules(text: &str) -> Result<Rules, FilterError> {
    let chars: Vec<char> = text.chars().collect();
    let mistake = find_mistake(&chars);
    if mistake.is_some() || joins_terms(&chars) || names_a_field(&chars) || begins_like_a_term(&chars) {
        return match (Filter::parse(text), mistake) {
            // Of two mistakes the first is named; this one knows better what was meant.
            (Err(error), Some(mistake)) if mistake.column <= error.column => Err(mistake),
            (parsed, _) => parsed.map(Rules::Expression),
        };
    }
    Ok(Rules::Instruction(text.trim().to_owned()))
}

/// Whether a known field with a value stands somewhere outside quotation marks.
fn names_a_field(chars: &[char]) -> bool {
    let mut at = 0;
    let mut quotes_pair_up = true;
    while let Some(&c) = chars.get(at) {
        if c == '"' && quotes_pair_up {
            match closing_quote(chars, at) {
                Some(closing) => at = closing + 1,
                // A lone mark, as in 5" screens, quotes nothing.
                None => quotes_pair_up = false,
            }
        } else if ends_bare_value(c) {
            at += 1;
        } else {
            let length = word_length(&chars[at..], |c| !ends_bare_value(c));
            if is_term(&chars[at..], |name| field_named(name.trim_start_matches('-')).is_some()) {
                return true;
            }
            at += length;
        }
    }
    false
}

/// Whether the text begins with `word:value`, where parentheses and `not` may stand before it.
fn begins_like_a_term(chars: &[char]) -> bool {
    let mut rest = chars;
    loop {
        let gap = word_length(rest, |c| c.is_whitespace() || c == '(');
        rest = &rest[gap..];
        let word: String = rest.iter().take_while(|c| c.is_ascii_alphabetic()).collect();
        let after = rest.get(word.len());
        let is_not =
            word.eq_ignore_ascii_case("not") && after.is_some_and(|c| c.is_whitespace() || *c == '(');
        if !is_not {
            break;
        }
        rest = &rest[word.len()..];
    }
    is_term(rest, |name| {
        let url = rest.get(name.len() + 1..).is_some_and(|value| value.starts_with(&['/', '/']));
        !url && !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    })
}

/// Whether the characters begin with a name that passes, a colon and something that could be a value.
fn is_term(chars: &[char], name_passes: impl Fn(&str) -> bool) -> bool {
    let name: String = chars.iter().take_while(|c| **c != ':' && !ends_bare_value(**c)).collect();
    let mut after = chars.iter().skip(name.chars().count());
    let has_value =
        after.next() == Some(&':') && after.next().is_some_and(|c| !c.is_whitespace() && *c != ')');
    has_value && name_passes(&name)
}

fn word_length(chars: &[char], belongs: impl Fn(char) -> bool) -> usize {
    chars.iter().take_while(|c| belongs(**c)).count()
}
