//! Asking an email whether an expression describes it.

use std::cell::OnceCell;

use jiff::civil::{Date, date};

use super::expression::{AddressField, AddressPattern, Mark, Node, Term, fold};

/// What a filter asks about an email.
pub trait FilterSubject {
    /// Everyone in one of the address lists.
    fn parties(&self, field: AddressField) -> impl Iterator<Item = Party<'_>>;
    /// The decoded subject.
    fn subject(&self) -> &str;
    /// The readable text of the body.
    fn body(&self) -> &str;
    /// The category, where one is set.
    fn category(&self) -> Option<&str>;
    /// The slugs of the labels on the email.
    fn labels(&self) -> impl Iterator<Item = &str>;
    /// Whether the email bears the mark.
    fn is(&self, mark: Mark) -> bool;
    /// The time of the email in microseconds since 1970, UTC.
    fn date(&self) -> i64;
    /// The size of the whole mail in bytes.
    fn size(&self) -> u64;
}

/// Someone who wrote or got an email.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Party<'a> {
    /// The display name, or nothing.
    pub name: &'a str,
    /// The address, normalised as [`mail::address::Address::as_str`] gives it where it is a proper one.
    pub address: &'a str,
}

/// Whether the email is one that the tree describes.
pub(super) fn matches(root: &Node, mail: &impl FilterSubject) -> bool {
    let mail = Folding { mail, subject: OnceCell::new(), body: OnceCell::new() };
    mail.satisfies(root)
}

/// An email whose texts are folded when first asked for and at most once, however many terms look at them.
struct Folding<'a, S> {
    mail: &'a S,
    subject: OnceCell<String>,
    body: OnceCell<String>,
}

impl<S: FilterSubject> Folding<'_, S> {
    /// Recursion is safe here: the parser bounds the depth of a tree.
    fn satisfies(&self, node: &Node) -> bool {
        match node {
            Node::All(children) => children.iter().all(|child| self.satisfies(child)),
            Node::Any(children) => children.iter().any(|child| self.satisfies(child)),
            Node::Not(child) => !self.satisfies(child),
            Node::Term(term) => self.satisfies_term(term),
        }
    }

    fn satisfies_term(&self, term: &Term) -> bool {
        match term {
            Term::Address(field, pattern) => self.mail.parties(*field).any(|party| is_party(pattern, party)),
            Term::Subject(part) => {
                self.subject.get_or_init(|| fold(self.mail.subject())).contains(part.as_str())
            }
            Term::Body(part) => self.body.get_or_init(|| fold(self.mail.body())).contains(part.as_str()),
            Term::Category(word) => self.mail.category().is_some_and(|category| fold(category) == *word),
            Term::Label(word) => self.mail.labels().any(|label| fold(label) == *word),
            Term::Mark(asked) => self.mail.is(asked.mark) == asked.wanted,
            Term::Before(day) => i128::from(self.mail.date()) < start_of_day(*day),
            Term::After(day) => i128::from(self.mail.date()) >= start_of_day(*day),
            Term::Larger(size) => self.mail.size() > *size,
            Term::Smaller(size) => self.mail.size() < *size,
        }
    }
}

fn is_party(pattern: &AddressPattern, party: Party<'_>) -> bool {
    match pattern {
        AddressPattern::Domain(domain) => {
            party.address.rsplit_once('@').is_some_and(|(_, of_party)| of_party.eq_ignore_ascii_case(domain))
        }
        AddressPattern::Exact(address) => party.address.eq_ignore_ascii_case(address),
        AddressPattern::Contains(part) => {
            fold(party.address).contains(part.as_str()) || fold(party.name).contains(part.as_str())
        }
    }
}

/// The first microsecond of a day in UTC; by duration, since a timestamp does not reach the end of the year
/// 9999.
fn start_of_day(day: Date) -> i128 {
    day.duration_since(date(1970, 1, 1)).as_micros()
}
