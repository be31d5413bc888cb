//! The query language of search: words, "phrases", -not, and fields such as `from:`.
//!
//! Words are taken as they come. A field that is unknown and a value that makes no sense are faults: whoever mistypes one
//! must not take the answer for "there is no such mail". People search for what they see, such as `Re: Invoice`:
//! [`forgive`] rewrites an unknown field as words.

use std::fmt;

use jiff::civil::Date;

use super::words::words;
use crate::Timestamp;

/// Clauses that are looked at; what stands behind is left out.
const MAX_CLAUSES: usize = 32;
/// Words of one clause.
const MAX_TERMS: usize = 32;

/// Characters of the query that a fault repeats.
const MAX_TOKEN_CHARS: usize = 60;

/// A mistake in a query, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryFault {
    /// The place, counted in characters from 1.
    pub column: usize,
    /// What stands there, shortened.
    pub token: String,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for QueryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}, at “{}”: {}", self.column, self.token, self.message)
    }
}

impl std::error::Error for QueryFault {}

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
    pub fn parse(text: &str) -> Result<Self, QueryFault> {
        let mut query = Self::default();
        let mut terms = Terms { text, at: 0 };
        while query.clauses.len() < MAX_CLAUSES
            && let Some(term) = terms.next()?
        {
            query.add(&term).map_err(|message| terms.fault_of(&term, message))?;
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

/// Rewrites a query so that an unknown field with its colon is searched for as words. Other mistakes stay mistakes, with
/// their place in the text as it was typed.
pub fn forgive(text: &str) -> Result<String, QueryFault> {
    let (mut forgiven, mut query) = (String::with_capacity(text.len() + 8), Query::default());
    let mut terms = Terms { text, at: 0 };
    loop {
        let rest = terms.rest();
        let space = rest.len() - rest.trim_start().len();
        terms.at += space;
        forgiven.push_str(rest.get(..space).unwrap_or_default());
        let (start, rest) = (terms.at, terms.rest());
        let sign = if rest.len() > 1 && rest.starts_with('-') { "-" } else { "" };
        let term = rest.get(sign.len()..).unwrap_or_default();
        if let Some(name) = field_name(term).filter(|name| known_field(name).is_none()) {
            let value = term.get(name.len() + 1..).unwrap_or_default();
            terms.at += sign.len() + name.len() + 1;
            if value.starts_with('"') {
                // The value is a term of its own, left out like its field.
                forgiven.extend([sign, "\"", name, "\" ", sign]);
                continue;
            }
            let end = value.find(char::is_whitespace).unwrap_or(value.len());
            terms.at += end;
            let words = value.get(..end).unwrap_or_default().replace('"', " ");
            forgiven.extend([sign, "\"", name, ":", &words, "\""]);
            continue;
        }
        let Some(term) = terms.next()? else { return Ok(forgiven) };
        query.add(&term).map_err(|message| terms.fault_of(&term, message))?;
        forgiven.push_str(text.get(start..terms.at).unwrap_or_default());
    }
}

/// The name before the colon that a term begins with. A number with a colon, as in a time, and the address of a page are
/// words.
fn field_name(term: &str) -> Option<&str> {
    let (name, value) = term.split_once(':')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    (is_name && !value.starts_with("//")).then_some(name)
}

fn known_field(name: &str) -> Option<FieldName> {
    FIELDS.iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, field)| *field)
}

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
    fn next(&mut self) -> Result<Option<Term<'a>>, QueryFault> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        let rest = self.rest();
        if rest.is_empty() {
            return Ok(None);
        }
        let negated = rest.len() > 1 && rest.starts_with('-');
        self.at += usize::from(negated);
        let (field_at, field) = (self.at, self.field()?);
        let (value_at, rest) = (self.at, self.rest());
        let quoted = rest.starts_with('"');
        let value = if quoted {
            let inside = rest.get(1..).unwrap_or_default();
            let fault = || self.fault(value_at, rest, "this quotation mark is not closed");
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
            let token = self.text.get(field_at..self.at).unwrap_or_default();
            return Err(self.fault(value_at, token, format!("expected a value after \"{name}:\"")));
        }
        Ok(Some(Term { negated, field, value, value_at, quoted }))
    }

    /// The field that a term begins with.
    fn field(&mut self) -> Result<Option<FieldName>, QueryFault> {
        let rest = self.rest();
        let Some(name) = field_name(rest) else { return Ok(None) };
        let Some(field) = known_field(name) else {
            let fields = FIELDS.map(|(field, _)| field).join(", ");
            let message = format!(
                "unknown field \"{name}\"; the fields are {fields}; words with a colon stand in quotation marks"
            );
            let token = rest.split_whitespace().next().unwrap_or_default();
            return Err(self.fault(self.at, token, message));
        };
        self.at += name.len() + 1;
        Ok(Some(field))
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// What is wrong with a term's value.
    fn fault_of(&self, term: &Term<'_>, message: String) -> QueryFault {
        self.fault(term.value_at, term.value, message)
    }

    /// What is wrong at a place, which is told in characters.
    fn fault(&self, at: usize, token: &str, message: impl Into<String>) -> QueryFault {
        let column = self.text.get(..at).unwrap_or_default().chars().count() + 1;
        QueryFault { column, token: token.chars().take(MAX_TOKEN_CHARS).collect(), message: message.into() }
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
        for (text, column, token, said) in [
            ("before:soon x", 8, "soon", "expected a date"),
            ("é after:", 9, "after:", "expected a value after \"after:\""),
            ("from:\"\"", 6, "from:\"\"", "expected a value after \"from:\""),
            ("foo:bar x", 1, "foo:bar", "unknown field \"foo\""),
            ("lunch -body:past", 8, "body:past", "unknown field \"body\""),
            ("Re: lunch", 1, "Re:", "in quotation marks"),
            ("has:link", 5, "link", "expected has:attachment"),
            ("is:urgent", 4, "urgent", "expected is:read"),
            ("-label:vip", 8, "vip", "not left out"),
            ("a \"open end", 3, "\"open end", "not closed"),
            ("subject:\"open end", 9, "\"open end", "not closed"),
        ] {
            let fault = Query::parse(text).unwrap_err();
            assert!(fault.column == column && fault.message.contains(said), "{text}: {fault}");
            assert_eq!(fault.token, token, "{text}");
        }
        let long = Query::parse(&format!("before:{}", "x".repeat(1000))).unwrap_err();
        assert_eq!(long.token.len(), MAX_TOKEN_CHARS);
    }

    #[test]
    fn an_unknown_field_is_forgiven_as_words() {
        let any = |words: &[&str]| clause(Field::Any, words);
        let forgiven = |text: &str| parsed(&forgive(text).unwrap());
        assert_eq!(forgiven("Re: Invoice 4711").clauses, [any(&["re"]), any(&["invoice"]), any(&["4711"])]);
        assert_eq!(forgiven("foo:bar -Note:x").clauses[0], any(&["foo", "bar"]));
        assert_eq!(forgiven("-Note:x").clauses, [Clause { negated: true, ..any(&["note", "x"]) }]);
        assert_eq!(forgiven("foo:\"a b\" c").clauses, [any(&["foo"]), any(&["a", "b"]), any(&["c"])]);
        assert_eq!(forgiven("foo:a\"b c").clauses, [any(&["foo", "a", "b"]), any(&["c"])]);
        for same in ["12:30", "https://x.test/y", "from:ann is:unread \"past due\" -x repo*", " a  b ", ""] {
            assert_eq!(forgive(same).unwrap(), same);
        }
        for (text, column) in
            [("Re: lunch before:soon", 18), ("Re: from:", 10), ("Fwd: \"open", 6), ("x:\"open", 3)]
        {
            assert_eq!(forgive(text).unwrap_err().column, column, "{text}");
        }
    }
}
