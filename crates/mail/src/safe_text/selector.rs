//! Selectors of CSS: classes, ids, elements, attributes, descendants and the commoner pseudo-classes.
//!
//! What depends on a state (`:hover`, `:checked`) never matches. What cannot be known in one pass (`:last-child`, or
//! siblings beyond whether such an element came before at all) is taken to match: then hidden text stays hidden.

use super::css::unmask;
use super::declaration::split_outside;
use super::tokens::{Attribute, Name};

/// The most parts of a selector that are looked at.
const MAX_PARTS: usize = 16;

/// The most tests of one kind on one element that are looked at; the rest is taken to hold.
const MAX_TESTS: usize = 16;

/// How deep `:not()` and `:is()` may be nested.
const MAX_NESTING: usize = 3;

/// How far up the ancestors are looked at.
pub(super) const MAX_ANCESTORS: usize = 256;

/// What a selector is compared with.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) name: Name,
    pub(super) id: &'a str,
    pub(super) class: &'a str,
    pub(super) attributes: &'a [Attribute<'a>],
    /// Which child of its parent it is, from 1.
    pub(super) position: u32,
}

/// How a part of a selector relates to the part on its right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Ancestor,
    Parent,
    Sibling,
}

/// A test on one element.
#[derive(Clone, Debug, Default)]
pub(super) struct Compound {
    pub(super) element: Option<Name>,
    pub(super) id: Option<String>,
    pub(super) classes: Vec<String>,
    attributes: Vec<AttributeTest>,
    /// `an+b` of `:nth-child`.
    places: Vec<(i64, i64)>,
    not: Vec<Compound>,
    root: bool,
}

#[derive(Clone, Debug)]
struct AttributeTest {
    name: String,
    operator: char,
    value: String,
}

/// A selector, its rightmost part first.
#[derive(Clone, Debug)]
pub(super) struct Selector {
    /// The part that the element itself must match.
    pub(super) subject: Compound,
    context: Vec<(Relation, Compound)>,
    /// How strong it is: ids, classes, elements.
    pub(super) specificity: u32,
}

impl Selector {
    /// Reads a selector from prepared CSS; `None` when it can never match what a reader sees at first.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts: Vec<(Relation, Compound)> = Vec::new();
        let mut relation = Relation::Ancestor;
        let mut rest = text.trim();
        while !rest.is_empty() {
            let length = compound_length(rest);
            let (compound, after) = rest.split_at_checked(length)?;
            parts.push((relation, Compound::parse(compound, 0)?));
            let combinator = after.trim_start_matches(' ');
            (relation, rest) = match combinator.chars().next() {
                Some('>') => (Relation::Parent, combinator.get(1..)?.trim_start()),
                Some('+' | '~') => (Relation::Sibling, combinator.get(1..)?.trim_start()),
                _ => (Relation::Ancestor, combinator),
            };
            if length == 0 || parts.len() > MAX_PARTS {
                return None;
            }
        }
        let specificity = parts.iter().map(|(_, part)| part.specificity()).fold(0, u32::saturating_add);
        let (mut left, subject) = parts.pop()?;
        let mut context = Vec::new();
        while let Some((relation, part)) = parts.pop() {
            context.push((left, part));
            left = relation;
        }
        Some(Self { subject, context, specificity })
    }

    /// Whether an element matches; `ancestor(0)` is its parent. Also says how much work that was.
    pub(super) fn matches<'a>(
        &self,
        subject: Subject<'a>,
        ancestor: impl Fn(usize) -> Option<Subject<'a>>,
        was_seen: impl Fn(Name) -> bool,
    ) -> (bool, usize) {
        let effort = |subject: Subject<'_>| 1 + subject.class.len() / 16 + subject.attributes.len() / 4;
        let mut work = effort(subject);
        if !self.subject.matches(subject) {
            return (false, work);
        }
        let mut level = 0;
        for (relation, part) in &self.context {
            if *relation == Relation::Sibling {
                if part.element.is_none_or(&was_seen) {
                    continue;
                }
                return (false, work);
            }
            let reach = if *relation == Relation::Parent { level + 1 } else { MAX_ANCESTORS };
            let found =
                (level..reach).map_while(|level| Some((level, ancestor(level)?))).find(|(_, candidate)| {
                    work += effort(*candidate);
                    part.matches(*candidate)
                });
            let Some((place, _)) = found else { return (false, work) };
            level = place + 1;
        }
        (true, work)
    }
}

/// How long the test on one element is.
fn compound_length(text: &str) -> usize {
    let mut depth = 0_i32;
    for (place, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ' ' | '>' | '+' | '~' if depth <= 0 => return place,
            _ => {}
        }
    }
    text.len()
}

/// How long a name at the beginning of a text is.
fn name_length(text: &str) -> usize {
    text.find(['.', '#', '[', ':', '(', ')', ']', '*']).unwrap_or(text.len())
}

impl Compound {
    fn parse(text: &str, nesting: usize) -> Option<Self> {
        let mut compound = Self::default();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let after = rest.get(first.len_utf8()..).unwrap_or_default();
            let length = match first {
                '*' | '&' => 0,
                '[' => after.find(']')? + 1,
                ':' => pseudo_length(after),
                _ => name_length(after),
            };
            let (word, later) = after.split_at_checked(length)?;
            match first {
                '*' | '&' => {}
                '.' => push_test(&mut compound.classes, unmask(word)),
                '#' => compound.id = Some(unmask(word)),
                '[' => push_test(&mut compound.attributes, AttributeTest::parse(word.strip_suffix(']')?)),
                ':' => compound.add_pseudo(word, nesting)?,
                _ => compound.element = Some(Name::new(rest.get(..first.len_utf8() + length)?)),
            }
            rest = later;
        }
        Some(compound)
    }

    /// Takes in a pseudo-class; `None` when it does not hold for a mail that was just opened.
    fn add_pseudo(&mut self, word: &str, nesting: usize) -> Option<()> {
        let (name, argument) =
            word.strip_suffix(')').and_then(|call| call.split_once('(')).unwrap_or((word, ""));
        match name {
            "first-child" => push_test(&mut self.places, (0, 1)),
            "nth-child" => push_test(&mut self.places, parse_place(argument)?),
            "root" => self.root = true,
            "not" | "is" | "where" | "matches" | "-webkit-any" if nesting >= MAX_NESTING => {}
            "not" => {
                for part in
                    split_outside(argument, ',').filter_map(|part| Self::parse(part.trim(), nesting + 1))
                {
                    push_test(&mut self.not, part);
                }
            }
            "is" | "where" | "matches" | "-webkit-any" => {
                let single = (!argument.contains([',', ' ', '>'])).then_some(argument);
                if let Some(only) = single.and_then(|part| Self::parse(part, nesting + 1)) {
                    only.classes.into_iter().for_each(|class| push_test(&mut self.classes, class));
                    self.element = self.element.or(only.element);
                    self.id = self.id.take().or(only.id);
                }
            }
            "link" | "any-link" | "last-child" | "only-child" | "empty" | "first-of-type"
            | "last-of-type" | "only-of-type" | "nth-of-type" | "nth-last-child" | "nth-last-of-type"
            | "enabled" | "lang" | "dir" | "defined" | "has" | "read-only" => {}
            _ => return None,
        }
        Some(())
    }

    fn specificity(&self) -> u32 {
        let count = |length: usize| u32::try_from(length.min(200)).unwrap_or(200);
        let classes =
            count(self.classes.len() + self.attributes.len() + self.places.len() + usize::from(self.root));
        let inner = self.not.iter().map(Self::specificity).max().unwrap_or_default();
        u32::from(self.id.is_some()) << 16
            | classes.min(255) << 8
            | u32::from(self.element.is_some()).saturating_add(inner)
    }

    fn matches(&self, subject: Subject<'_>) -> bool {
        self.element.is_none_or(|name| name == subject.name)
            && self.id.as_ref().is_none_or(|id| id.eq_ignore_ascii_case(subject.id))
            && self.classes.iter().all(|class| has_class(subject.class, class))
            && self.attributes.iter().all(|test| test.matches(subject.attributes))
            && self.places.iter().all(|place| is_at_place(*place, i64::from(subject.position)))
            && !self.not.iter().any(|not| not.matches(subject))
            && (!self.root || subject.name.as_str() == "html")
    }
}

fn push_test<T>(tests: &mut Vec<T>, test: T) {
    if tests.len() < MAX_TESTS {
        tests.push(test);
    }
}

fn pseudo_length(text: &str) -> usize {
    let name = text.strip_prefix(':').map_or(0, |_| 1) + name_length(text.trim_start_matches(':'));
    if text.get(name..).is_some_and(|after| after.starts_with('(')) {
        let mut depth = 0_i32;
        for (place, c) in text.char_indices().skip(name) {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return place + 1;
            }
        }
        return text.len();
    }
    name
}

/// Whether a class attribute holds a class. Case does not count, as in mail without a document type.
fn has_class(attribute: &str, class: &str) -> bool {
    attribute.split_ascii_whitespace().any(|found| found.eq_ignore_ascii_case(class))
}

/// Reads `odd`, `3`, `2n+1`.
fn parse_place(text: &str) -> Option<(i64, i64)> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    match text.as_str() {
        "odd" => return Some((2, 1)),
        "even" => return Some((2, 0)),
        _ => {}
    }
    let Some((step, offset)) = text.split_once('n') else { return text.parse().ok().map(|place| (0, place)) };
    let step = match step {
        "" | "+" => 1,
        "-" => -1,
        number => number.parse().ok()?,
    };
    let offset = if offset.is_empty() { 0 } else { offset.trim_start_matches('+').parse().ok()? };
    Some((step, offset))
}

fn is_at_place((step, offset): (i64, i64), place: i64) -> bool {
    let distance = place.saturating_sub(offset);
    if step == 0 { distance == 0 } else { distance.checked_rem(step) == Some(0) && distance / step >= 0 }
}

impl AttributeTest {
    fn parse(text: &str) -> Self {
        let Some((name, value)) = text.split_once('=') else {
            return Self { name: unmask(text.trim()), operator: '?', value: String::new() };
        };
        let operator = name.chars().last().filter(|c| "~|^$*".contains(*c));
        let name = name.trim_end_matches(|c| "~|^$*".contains(c)).trim();
        let value = value.trim().trim_end_matches(" i").trim_end_matches(" s");
        Self { name: unmask(name), operator: operator.unwrap_or('='), value: unmask(value) }
    }

    fn matches(&self, attributes: &[Attribute<'_>]) -> bool {
        let Some(found) = attributes.iter().find(|found| found.name.eq_ignore_ascii_case(&self.name)) else {
            return false;
        };
        if self.operator == '?' {
            return true;
        }
        let value =
            super::entities::decode(found.value, super::entities::Place::Attribute).to_ascii_lowercase();
        match self.operator {
            '~' => has_class(&value, &self.value),
            '|' => {
                value == self.value
                    || value.strip_prefix(&self.value).is_some_and(|rest| rest.starts_with('-'))
            }
            '^' => value.starts_with(&self.value),
            '$' => value.ends_with(&self.value),
            '*' => value.contains(&self.value),
            _ => value == self.value,
        }
    }
}
