//! The query language of search: words, "phrases", -not, and fields such as `from:`.
//!
//! Whatever is typed is a query: a field that is unknown or a value that makes no sense is searched for as words.

use jiff::civil::Date;

use super::words::words;
use crate::Timestamp;

/// Clauses that are looked at; what stands behind is left out.
const MOST_CLAUSES: usize = 32;
/// Words of one clause.
const MOST_WORDS: usize = 32;

/// Where words are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Everywhere.
    Any,
    /// In the subject.
    Subject,
    /// In the sender's name and address.
    Sender,
    /// In the recipients' names and addresses.
    Recipient,
}

/// Words that must stand one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Where.
    pub field: Field,
    /// The words, folded; never empty.
    pub words: Vec<String>,
    /// Whether the last word may go on.
    pub prefix: bool,
    /// Whether mails with them are left out.
    pub negated: bool,
}

/// A parsed query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The words; all must match.
    pub clauses: Vec<Clause>,
    /// The slugs of labels; all must be there.
    pub labels: Vec<String>,
    /// Whether files must be there, or must not.
    pub has_attachment: Option<bool>,
    /// Before this time.
    pub before: Option<Timestamp>,
    /// Not before this time.
    pub after: Option<Timestamp>,
    /// Whether nothing can match: what was typed has no words, or contradicts itself.
    pub impossible: bool,
}

impl Query {
    /// Reads a query.
    pub fn parse(text: &str) -> Self {
        let mut query = Self::default();
        for term in terms(text) {
            if query.clauses.len() >= MOST_CLAUSES {
                break;
            }
            query.add(&term);
        }
        let asks_nothing = query == Self::default();
        query.impossible |= asks_nothing && !text.trim().is_empty();
        query
    }

    /// Adds words that must match in a field.
    pub fn add_words(&mut self, field: Field, text: &str) {
        let words = words(text, MOST_WORDS);
        if words.is_empty() {
            self.impossible |= !text.trim().is_empty();
        } else {
            self.clauses.push(Clause { field, words, prefix: true, negated: false });
        }
    }

    /// Asks for mails with files, or for others.
    pub fn add_attachment(&mut self, wanted: bool) {
        self.impossible |= self.has_attachment.is_some_and(|already| already != wanted);
        self.has_attachment = Some(wanted);
    }

    fn add(&mut self, term: &Term<'_>) {
        let field = match (term.field, term.negated) {
            (Some("from"), _) => Some(Field::Sender),
            (Some("to"), _) => Some(Field::Recipient),
            (Some("subject"), _) => Some(Field::Subject),
            (Some("label"), false) => {
                self.labels.push(term.value.to_lowercase());
                return;
            }
            (Some("has"), negated) if term.value.eq_ignore_ascii_case("attachment") => {
                self.add_attachment(!negated);
                return;
            }
            (Some("before"), false) if day(term.value).is_some() => {
                let before = day(term.value);
                self.before = self.before.map_or(before, |other| before.map(|before| before.min(other)));
                return;
            }
            (Some("after"), false) if day(term.value).is_some() => {
                self.after = self.after.max(day(term.value));
                return;
            }
            (_, _) => None,
        };
        let text = match (field, term.field) {
            (None, Some(name)) => format!("{name} {}", term.value),
            _ => term.value.to_owned(),
        };
        let prefix = text.ends_with('*') && !term.quoted;
        let words = words(&text, MOST_WORDS);
        if !words.is_empty() {
            self.clauses.push(Clause {
                field: field.unwrap_or(Field::Any),
                words,
                prefix,
                negated: term.negated,
            });
        }
    }
}

/// The start of a day that is written as 2026-07-14, or a whole time.
fn day(text: &str) -> Option<Timestamp> {
    if let Ok(date) = text.parse::<Date>() {
        let zoned = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        return Some(Timestamp::from_micros(zoned.timestamp().as_microsecond()));
    }
    text.parse().ok()
}

struct Term<'a> {
    negated: bool,
    field: Option<&'a str>,
    value: &'a str,
    quoted: bool,
}

/// Cuts a query at white space outside quotation marks.
fn terms(text: &str) -> impl Iterator<Item = Term<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        if rest.is_empty() {
            return None;
        }
        let negated = rest.len() > 1 && rest.starts_with('-');
        let body = if negated { &rest[1..] } else { rest };
        let (field, value) = match body.split_once(':') {
            Some((name, after)) if is_field(name) => (Some(name), after),
            _ => (None, body),
        };
        let (value, quoted, after) = if let Some(open) = value.strip_prefix('"') {
            let (inside, behind) = open.split_once('"').unwrap_or((open, ""));
            (inside, true, behind)
        } else {
            let end = value.find(char::is_whitespace).unwrap_or(value.len());
            (&value[..end], false, &value[end..])
        };
        rest = after;
        Some(Term { negated, field, value, quoted })
    })
}

fn is_field(name: &str) -> bool {
    matches!(name, "from" | "to" | "subject" | "label" | "has" | "before" | "after")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clause(field: Field, words: &[&str]) -> Clause {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Clause { field, words, prefix: false, negated: false }
    }

    // rules: SEARCH-1
    #[test]
    fn words_phrases_and_fields() {
        let query = Query::parse("invoice \"past due\" -draft from:alice@x.test subject:\"Re: bill\" repo*");
        assert_eq!(
            query.clauses,
            [
                clause(Field::Any, &["invoice"]),
                clause(Field::Any, &["past", "due"]),
                Clause { negated: true, ..clause(Field::Any, &["draft"]) },
                clause(Field::Sender, &["alice", "x", "test"]),
                clause(Field::Subject, &["re", "bill"]),
                Clause { prefix: true, ..clause(Field::Any, &["repo"]) },
            ]
        );
    }

    #[test]
    fn filters() {
        let query = Query::parse("label:vip has:attachment after:2026-01-02 before:2026-02-01T10:00:00Z");
        assert_eq!(query.labels, ["vip"]);
        assert_eq!(query.has_attachment, Some(true));
        assert_eq!(query.after.unwrap().to_string(), "2026-01-02T00:00:00.000Z");
        assert_eq!(query.before.unwrap().to_string(), "2026-02-01T10:00:00.000Z");
        assert!(query.clauses.is_empty());
        assert_eq!(Query::parse("-has:attachment").has_attachment, Some(false));
        let narrow = Query::parse("after:2026-01-02 after:2026-01-01 before:2026-02-01 before:2026-02-02");
        assert_eq!(narrow.after.unwrap().to_string(), "2026-01-02T00:00:00.000Z");
        assert_eq!(narrow.before.unwrap().to_string(), "2026-02-01T00:00:00.000Z");
        assert!(!narrow.impossible && Query::parse("has:attachment -has:attachment").impossible);
    }

    #[test]
    fn what_has_no_words_matches_nothing() {
        assert!(!Query::parse("  ").impossible);
        assert!(Query::parse("!? \"\"").impossible);
        assert!(!Query::parse("a - b").impossible);
        let mut query = Query::parse("a");
        query.add_words(Field::Sender, "@");
        assert!(query.impossible);
    }

    #[test]
    fn what_makes_no_sense_is_words() {
        assert_eq!(Query::parse("before:soon").clauses, [clause(Field::Any, &["before", "soon"])]);
        assert_eq!(Query::parse("a:b - \"").clauses.len(), 1);
        assert_eq!(Query::parse("\"open end").clauses, [clause(Field::Any, &["open", "end"])]);
        assert_eq!(Query::parse(&"x ".repeat(1000)).clauses.len(), MOST_CLAUSES);
    }
}
