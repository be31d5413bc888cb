//! The query language of search: words, "phrases", -not, and fields such as `from:`.
//!
//! Words are taken as they come. A field that is unknown and a value that makes no sense are faults: whoever mistypes one
//! must not take the answer for "there is no such mail".

use jiff::civil::Date;

use super::words::words;
use crate::{Timestamp, filter::FilterError};

/// Clauses that are looked at; what stands behind is left out.
const MAX_CLAUSES: usize = 32;
/// Words of one clause.
const MAX_TERMS: usize = 32;

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
    /// Its workspace.
    pub field: Field,
    /// The words, folded; never empty.
    pub words: Vec<String>,
    /// Whether the last word may go on.
    pub prefix: bool,
    /// Whether emails with them are left out.
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
    /// Whether it must have been read, or must not.
    pub is_read: Option<bool>,
    /// Whether it must have a star, or must not.
    pub is_starred: Option<bool>,
    /// Before this time.
    pub before: Option<Timestamp>,
    /// At or after this time.
    pub after: Option<Timestamp>,
    /// Whether nothing can match: what was typed has no words, or contradicts itself.
    pub impossible: bool,
}

impl Query {
    /// Reads a query.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let mut query = Self::default();
        let mut terms = Terms { text, at: 0 };
        while query.clauses.len() < MAX_CLAUSES
            && let Some(term) = terms.next()?
        {
            query.add(&term).map_err(|message| terms.fault(term.value_at, message))?;
        }
        let asks_nothing = query == Self::default();
        query.impossible |= asks_nothing && !text.trim().is_empty();
        Ok(query)
    }

    /// Adds words that must match in a field.
    pub fn add_words(&mut self, field: Field, text: &str) {
        let words = words(text, MAX_TERMS);
        if words.is_empty() {
            self.impossible |= !text.trim().is_empty();
        } else {
            self.clauses.push(Clause { field, words, prefix: true, negated: false });
        }
    }

    /// Asks for emails with files, or for others.
    pub fn add_attachment(&mut self, wanted: bool) {
        self.impossible |= demand(&mut self.has_attachment, wanted);
    }

    /// Asks for emails that were read, or for others.
    pub fn add_read(&mut self, wanted: bool) {
        self.impossible |= demand(&mut self.is_read, wanted);
    }

    /// Asks for emails with a star, or for others.
    pub fn add_starred(&mut self, wanted: bool) {
        self.impossible |= demand(&mut self.is_starred, wanted);
    }

    fn add(&mut self, term: &Term<'_>) -> Result<(), String> {
        let Some(name) = term.field else {
            self.add_clause(Field::Any, term);
            return Ok(());
        };
        let wanted = !term.negated;
        match name {
            FieldName::From => self.add_clause(Field::Sender, term),
            FieldName::To => self.add_clause(Field::Recipient, term),
            FieldName::Subject => self.add_clause(Field::Subject, term),
            FieldName::Label if wanted => self.labels.push(term.value.to_lowercase()),
            FieldName::Label => return Err("a label can be asked for, but not left out".to_owned()),
            FieldName::Has => match term.value.to_ascii_lowercase().as_str() {
                "attachment" => self.add_attachment(wanted),
                _ => return Err("expected has:attachment".to_owned()),
            },
            FieldName::Is => match term.value.to_ascii_lowercase().as_str() {
                "read" => self.add_read(wanted),
                "unread" => self.add_read(!wanted),
                "starred" => self.add_starred(wanted),
                _ => return Err("expected is:read, is:unread or is:starred".to_owned()),
            },
            FieldName::Before | FieldName::After => {
                let expected = "expected a date such as 2026-07-14, or a time such as 2026-07-14T10:00:00Z";
                let day = day(term.value).ok_or(expected)?;
                // Not before a day is from that day on.
                if (name == FieldName::Before) == wanted {
                    self.before = Some(self.before.map_or(day, |other| day.min(other)));
                } else {
                    self.after = self.after.max(Some(day));
                }
            }
        }
        Ok(())
    }

    fn add_clause(&mut self, field: Field, term: &Term<'_>) {
        let words = words(term.value, MAX_TERMS);
        if words.is_empty() {
            // A field without a word matches nothing; a lone sign between words is none.
            self.impossible |= field != Field::Any && !term.negated;
            return;
        }
        let prefix = term.value.ends_with('*') && !term.quoted;
        self.clauses.push(Clause { field, words, prefix, negated: term.negated });
    }
}

/// Asks for a mark, and tells whether the opposite was asked for already.
fn demand(mark: &mut Option<bool>, wanted: bool) -> bool {
    mark.replace(wanted).is_some_and(|already| already != wanted)
}

/// The start of a day that is written as 2026-07-14, or a whole time.
fn day(text: &str) -> Option<Timestamp> {
    if let Ok(date) = text.parse::<Date>() {
        let zoned = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        return Some(Timestamp::from_micros(zoned.timestamp().as_microsecond()));
    }
    text.parse().ok()
}

/// The fields of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldName {
    From,
    To,
    Subject,
    Label,
    Has,
    Is,
    Before,
    After,
}

/// The fields by the names that messages give them.
const FIELDS: [(&str, FieldName); 8] = [
    ("from", FieldName::From),
    ("to", FieldName::To),
    ("subject", FieldName::Subject),
    ("label", FieldName::Label),
    ("has", FieldName::Has),
    ("is", FieldName::Is),
    ("before", FieldName::Before),
    ("after", FieldName::After),
];

struct Term<'a> {
    negated: bool,
    field: Option<FieldName>,
    value: &'a str,
    /// Where the value begins, in bytes.
    value_at: usize,
    quoted: bool,
}

/// Cuts a query at white space outside quotation marks.
struct Terms<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Terms<'a> {
    fn next(&mut self) -> Result<Option<Term<'a>>, FilterError> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        let rest = self.rest();
        if rest.is_empty() {
            return Ok(None);
        }
        let negated = rest.len() > 1 && rest.starts_with('-');
        self.at += usize::from(negated);
        let field = self.field()?;
        let (value_at, rest) = (self.at, self.rest());
        let quoted = rest.starts_with('"');
        let value = if quoted {
            let inside = rest.get(1..).unwrap_or_default();
            let fault = || self.fault(value_at, "this quotation mark is not closed");
            let end = inside.find('"').ok_or_else(fault)?;
            self.at += end + 2;
            inside.get(..end).unwrap_or_default()
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            self.at += end;
            rest.get(..end).unwrap_or_default()
        };
        if let Some(name) = field.filter(|_| value.is_empty()) {
            let name = FIELDS.iter().find(|(_, field)| *field == name).map_or("", |(name, _)| *name);
            return Err(self.fault(value_at, format!("expected a value after \"{name}:\"")));
        }
        Ok(Some(Term { negated, field, value, value_at, quoted }))
    }

    /// The field that a term begins with. A number with a colon, as in a time, and the address of a page are words.
    fn field(&mut self) -> Result<Option<FieldName>, FilterError> {
        let rest = self.rest();
        let Some((name, value)) = rest.split_once(':') else { return Ok(None) };
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        if !is_name || value.starts_with("//") {
            return Ok(None);
        }
        let known = FIELDS.iter().find(|(field, _)| field.eq_ignore_ascii_case(name));
        let Some((_, field)) = known else {
            let fields = FIELDS.map(|(field, _)| field).join(", ");
            let message = format!(
                "unknown field \"{name}\"; the fields are {fields}; words with a colon stand in quotation marks"
            );
            return Err(self.fault(self.at, message));
        };
        self.at += name.len() + 1;
        Ok(Some(*field))
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// What is wrong at a place, which is told in characters.
    fn fault(&self, at: usize, message: impl Into<String>) -> FilterError {
        let column = self.text.get(..at).unwrap_or_default().chars().count() + 1;
        FilterError { column, message: message.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clause(field: Field, words: &[&str]) -> Clause {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Clause { field, words, prefix: false, negated: false }
    }

    fn parsed(text: &str) -> Query {
        Query::parse(text).unwrap()
    }

    // rules: SEARCH-1
    #[test]
    fn words_phrases_and_fields() {
        let query = parsed("invoice \"past due\" -draft from:alice@x.test subject:\"Re: bill\" repo*");
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
        let query = parsed("label:vip has:attachment after:2026-01-02 before:2026-02-01T10:00:00Z");
        assert_eq!(query.labels, ["vip"]);
        assert_eq!(query.has_attachment, Some(true));
        assert_eq!(query.after.unwrap().to_string(), "2026-01-02T00:00:00.000Z");
        assert_eq!(query.before.unwrap().to_string(), "2026-02-01T10:00:00.000Z");
        assert!(query.clauses.is_empty());
        assert_eq!(parsed("-has:attachment").has_attachment, Some(false));
        let narrow = parsed("after:2026-01-02 after:2026-01-01 before:2026-02-01 before:2026-02-02");
        assert_eq!(narrow.after.unwrap().to_string(), "2026-01-02T00:00:00.000Z");
        assert_eq!(narrow.before.unwrap().to_string(), "2026-02-01T00:00:00.000Z");
        assert_eq!(parsed("-before:2026-01-02").after, narrow.after);
        assert_eq!(parsed("-after:2026-02-01").before, narrow.before);
        assert!(!narrow.impossible && parsed("has:attachment -has:attachment").impossible);
        let marks = |text: &str| (parsed(text).is_read, parsed(text).is_starred);
        assert_eq!(marks("is:unread IS:Starred"), (Some(false), Some(true)));
        assert_eq!(marks("is:read"), (Some(true), None));
        assert_eq!(marks("-is:unread -is:starred"), (Some(true), Some(false)));
        assert!(parsed("is:read is:unread").impossible);
    }

    #[test]
    fn what_has_no_words_matches_nothing() {
        assert!(!parsed("  ").impossible);
        assert!(parsed("!? \"\"").impossible);
        assert!(!parsed("a - b").impossible);
        assert!(parsed("from:! lunch").impossible);
        let mut query = parsed("a");
        query.add_words(Field::Sender, "@");
        assert!(query.impossible);
    }

    #[test]
    fn numbers_and_addresses_with_a_colon_are_words() {
        assert_eq!(parsed("12:30").clauses, [clause(Field::Any, &["12", "30"])]);
        assert_eq!(parsed("https://a.test/b").clauses, [clause(Field::Any, &["https", "a", "test", "b"])]);
        assert_eq!(parsed("\"Re: bill\"").clauses, [clause(Field::Any, &["re", "bill"])]);
        assert_eq!(parsed("5\" :*").clauses, [clause(Field::Any, &["5"])]);
        assert_eq!(parsed(&"x ".repeat(1000)).clauses.len(), MAX_CLAUSES);
    }

    // rules: SEARCH-8
    #[test]
    fn mistakes_are_told_with_their_place() {
        for (text, column, said) in [
            ("before:soon", 8, "expected a date"),
            ("é after:", 9, "expected a value after \"after:\""),
            ("from:\"\"", 6, "expected a value after \"from:\""),
            ("foo:bar", 1, "unknown field \"foo\""),
            ("lunch -body:past", 8, "unknown field \"body\""),
            ("Re: lunch", 1, "in quotation marks"),
            ("has:link", 5, "expected has:attachment"),
            ("is:urgent", 4, "expected is:read"),
            ("-label:vip", 8, "not left out"),
            ("a \"open end", 3, "not closed"),
            ("subject:\"open end", 9, "not closed"),
        ] {
            let fault = Query::parse(text).unwrap_err();
            assert!(fault.column == column && fault.message.contains(said), "{text}: {fault}");
        }
    }
}
