//! CSS selectors, split into parts that are compared with each element once.
//!
//! A part is a test on one element and its left-hand neighbour in the selector. Whether a part matches an element
//! follows from the parts that matched its parent, its ancestors and its siblings, so every combinator is evaluated
//! without looking back.
//!
//! Selectors that depend on a state (`:hover`) never match in a message that was just opened. Other selectors that are
//! not supported may match anything.

use std::collections::HashMap;

use super::attribute::AttributeTest;
use super::brackets::{closing, split_outside};
use super::family::Family;
use super::identifier::{UnsupportedSelector, identifier};
use super::pseudo::{Test, simple_pseudo};
use super::sibling_position::parse_nth;
use super::subject::{PartId, Subject};
use super::tokens::Name;

/// The most parts of all selectors of a document, and of those to the left of a combinator.
const MAX_PARTS: usize = 1 << 15;
const MAX_LEFT_PARTS: u32 = 4096;

/// The most tests on one element, and the most selectors in the brackets of one.
const MAX_TESTS: usize = 64;

/// How deep `:not()` and `:is()` may be nested.
const MAX_NESTING: usize = 8;

/// The longest name of an element that is kept whole.
const MAX_NAME: usize = 16;

/// How a part of a selector relates to the part on its right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Relation {
    Ancestor,
    Parent,
    Previous,
    Earlier,
}

/// A selector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selector {
    /// The part that the element itself must match.
    pub(super) part: PartId,
    /// Its specificity: ids, classes, elements.
    specificity: [u32; 3],
}

impl Selector {
    /// Its specificity, as one number.
    pub(super) fn strength(&self) -> u32 {
        let [ids, classes, elements] = self.specificity.map(|count| count.min(255));
        ids << 16 | classes << 8 | elements
    }
}

/// A test on one element.
#[derive(Clone, Debug, Default)]
pub(super) struct Compound {
    pub(super) element: Option<Name>,
    pub(super) ids: Vec<String>,
    pub(super) classes: Vec<String>,
    attributes: Vec<AttributeTest>,
    tests: Vec<Test>,
    specificity: [u32; 3],
}

/// A test on one element with the part to its left.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) compound: Compound,
    left: Option<(Relation, u32)>,
    /// Its mark, if a part to its right depends on it.
    pub(super) mark: Option<u32>,
}

/// The source of a part, with the part to its left.
type UnparsedPart = (String, Option<(Relation, PartId)>);

/// All parts of the selectors of a document; a part comes after those that it depends on.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) list: Vec<Part>,
    known: HashMap<UnparsedPart, Selector>,
    marks: u32,
    /// Whether a part depends on the position from the end, or on emptiness.
    pub(super) needs_census: bool,
}

/// What `&` stands for: the selectors of the rule around.
type ParentSelectors<'a> = Option<&'a [Selector]>;

impl Parts {
    /// Parses a selector from prepared CSS; in a nested rule, `parents` has the selectors of the outer one.
    pub(super) fn read(
        &mut self,
        text: &str,
        parents: ParentSelectors<'_>,
    ) -> Result<Selector, UnsupportedSelector> {
        self.complex(text, parents, 0)
    }

    fn complex(
        &mut self,
        text: &str,
        parents: ParentSelectors<'_>,
        nesting: usize,
    ) -> Result<Selector, UnsupportedSelector> {
        let mut rest = text.trim();
        let mut left: Option<(Relation, Selector)> = None;
        if let Some(parents) = parents.filter(|_| nesting == 0 && !text.contains('&')) {
            let outer = self.add_test(Test::Any(parents.iter().map(|one| one.part).collect()), parents)?;
            let (relation, after) = combinator(rest);
            (left, rest) = (Some((relation.unwrap_or(Relation::Ancestor), outer)), after);
        }
        let mut outcome = Ok(());
        loop {
            let (compound, after) =
                rest.split_at_checked(compound_length(rest)).ok_or(UnsupportedSelector::Unknown)?;
            if compound.is_empty() {
                return Err(UnsupportedSelector::Unknown);
            }
            match self.part(compound, left, parents, nesting) {
                Ok(selector) => {
                    let (relation, later) = combinator(after);
                    if later.is_empty() {
                        // A trailing combinator is invalid.
                        let ends = relation.is_none_or(|_| after.trim().is_empty());
                        return if ends {
                            outcome.map(|()| selector)
                        } else {
                            Err(UnsupportedSelector::Unknown)
                        };
                    }
                    (left, rest) = (Some((relation.unwrap_or(Relation::Ancestor), selector)), later);
                }
                // The rest must still be parsed: the selector may be invalid.
                Err(UnsupportedSelector::Unknown) => return Err(UnsupportedSelector::Unknown),
                Err(never) => {
                    outcome = Err(never);
                    let (_, later) = combinator(after);
                    if later.is_empty() {
                        return Err(never);
                    }
                    (left, rest) = (None, later);
                }
            }
        }
    }

    fn part(
        &mut self,
        text: &str,
        left: Option<(Relation, Selector)>,
        parents: ParentSelectors<'_>,
        nesting: usize,
    ) -> Result<Selector, UnsupportedSelector> {
        let key = (text.to_owned(), left.map(|(relation, left)| (relation, left.part)));
        if parents.is_none()
            && let Some(known) = self.known.get(&key)
        {
            return Ok(*known);
        }
        let compound = self.compound(text, parents, nesting)?;
        let selector = self.add(compound, left)?;
        if parents.is_none() {
            self.known.insert(key, selector);
        }
        Ok(selector)
    }

    fn add(
        &mut self,
        compound: Compound,
        left: Option<(Relation, Selector)>,
    ) -> Result<Selector, UnsupportedSelector> {
        let mut specificity = compound.specificity;
        let left = match left {
            Some((relation, left)) => {
                for (total, part) in specificity.iter_mut().zip(left.specificity) {
                    *total = total.saturating_add(part);
                }
                Some((relation, self.mark(left.part)?))
            }
            None => None,
        };
        let id = u32::try_from(self.list.len()).ok().filter(|_| self.list.len() < MAX_PARTS);
        let part = id.ok_or(UnsupportedSelector::Unknown)?;
        self.list.push(Part { compound, left, mark: None });
        Ok(Selector { part, specificity })
    }

    /// Adds a single test with the highest specificity of some selectors.
    fn add_test(&mut self, test: Test, like: &[Selector]) -> Result<Selector, UnsupportedSelector> {
        let specificity = strongest(like);
        self.add(Compound { tests: vec![test], specificity, ..Compound::default() }, None)
    }

    /// Assigns a mark to a part.
    fn mark(&mut self, part: PartId) -> Result<u32, UnsupportedSelector> {
        let next = self.marks;
        let part = usize::try_from(part)
            .ok()
            .and_then(|part| self.list.get_mut(part))
            .ok_or(UnsupportedSelector::Unknown)?;
        if let Some(mark) = part.mark {
            return Ok(mark);
        }
        if next >= MAX_LEFT_PARTS {
            return Err(UnsupportedSelector::Unknown);
        }
        self.marks += 1;
        part.mark = Some(next);
        Ok(next)
    }

    fn compound(
        &mut self,
        text: &str,
        parents: ParentSelectors<'_>,
        nesting: usize,
    ) -> Result<Compound, UnsupportedSelector> {
        let mut compound = Compound::default();
        let mut outcome = Ok(());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let is_start = rest.len() == text.len();
            let after = rest.get(first.len_utf8()..).unwrap_or_default();
            let length = match first {
                '*' | '&' => 0,
                '[' => after.find(']').ok_or(UnsupportedSelector::Unknown)? + 1,
                ':' => pseudo_length(after)?,
                _ => name_length(after),
            };
            let (word, later) = after.split_at_checked(length).ok_or(UnsupportedSelector::Unknown)?;
            match first {
                '*' if is_start => {}
                '&' => {
                    let parents = parents.ok_or(UnsupportedSelector::Unknown)?;
                    compound.tests.push(Test::Any(parents.iter().map(|one| one.part).collect()));
                    compound.stronger(strongest(parents));
                }
                '.' => compound.classes.push(identifier(word)?),
                '#' => compound.ids.push(identifier(word)?),
                '[' => {
                    let inside = word.strip_suffix(']').ok_or(UnsupportedSelector::Unknown)?;
                    compound.attributes.push(AttributeTest::parse(inside)?);
                }
                ':' => match self.pseudo(&mut compound, word, parents, nesting) {
                    Err(UnsupportedSelector::Unknown) => return Err(UnsupportedSelector::Unknown),
                    Err(never) => outcome = Err(never),
                    Ok(()) => {}
                },
                _ if is_start => {
                    let name = identifier(
                        rest.get(..first.len_utf8() + length).ok_or(UnsupportedSelector::Unknown)?,
                    )?;
                    if name.len() >= MAX_NAME || !name.is_ascii() {
                        return Err(UnsupportedSelector::Unknown);
                    }
                    compound.element = Some(Name::new(&name));
                }
                _ => return Err(UnsupportedSelector::Unknown),
            }
            rest = later;
        }
        compound.weigh();
        let tests = compound.classes.len() + compound.attributes.len() + compound.tests.len();
        if tests > MAX_TESTS { Err(UnsupportedSelector::Unknown) } else { outcome.map(|()| compound) }
    }

    /// Adds a pseudo-class.
    fn pseudo(
        &mut self,
        compound: &mut Compound,
        word: &str,
        parents: ParentSelectors<'_>,
        nesting: usize,
    ) -> Result<(), UnsupportedSelector> {
        let (name, argument) = match word.split_once('(') {
            Some((name, argument)) => {
                (name, Some(argument.strip_suffix(')').ok_or(UnsupportedSelector::Unknown)?))
            }
            None => (word, None),
        };
        let name = name.to_ascii_lowercase();
        match (name.as_str(), argument) {
            ("is" | "matches" | "where" | "not" | "-webkit-any" | "-moz-any", Some(argument)) => {
                self.inner(compound, &name, argument, parents, nesting)
            }
            (_, Some(argument)) => {
                let from_end = name.starts_with("nth-last");
                let of_type = name.ends_with("of-type");
                let (step, offset) = parse_nth(argument).ok_or(UnsupportedSelector::Unknown)?;
                if !matches!(
                    name.as_str(),
                    "nth-child" | "nth-last-child" | "nth-of-type" | "nth-last-of-type"
                ) {
                    return Err(UnsupportedSelector::Unknown);
                }
                self.needs_census |= from_end;
                compound.tests.push(Test::SiblingPosition { step, offset, from_end, of_type });
                Ok(())
            }
            (name, None) => {
                let tests = simple_pseudo(name)?;
                self.needs_census |= tests
                    .iter()
                    .any(|test| matches!(test, Test::SiblingPosition { from_end: true, .. } | Test::Empty));
                compound.tests.extend(tests);
                Ok(())
            }
        }
    }

    /// Adds a pseudo-class with selector arguments.
    fn inner(
        &mut self,
        compound: &mut Compound,
        name: &str,
        argument: &str,
        parents: ParentSelectors<'_>,
        nesting: usize,
    ) -> Result<(), UnsupportedSelector> {
        if nesting >= MAX_NESTING {
            return Err(UnsupportedSelector::Unknown);
        }
        let mut found = Vec::new();
        // Empty arguments match nothing, and are invalid in `:not()`.
        let is_empty = argument.trim().is_empty() && name != "not";
        for one in split_outside(argument, ',').filter(|_| !is_empty) {
            if found.len() >= MAX_TESTS {
                return Err(UnsupportedSelector::Unknown);
            }
            match self.complex(one, parents, nesting + 1) {
                Ok(selector) => found.push(selector),
                Err(UnsupportedSelector::Never) => {}
                // Browsers drop the unknown selector or the whole rule; which one is not known.
                Err(_) => return Err(UnsupportedSelector::Unknown),
            }
        }
        let parts = found.iter().map(|selector| selector.part).collect();
        compound.tests.push(if name == "not" { Test::None(parts) } else { Test::Any(parts) });
        if name != "where" {
            compound.stronger(strongest(&found));
        }
        Ok(())
    }
}

/// The highest specificity.
fn strongest(selectors: &[Selector]) -> [u32; 3] {
    selectors.iter().map(|selector| selector.specificity).max().unwrap_or_default()
}

/// The combinator at the beginning of a text, if there is one, and what follows it.
fn combinator(text: &str) -> (Option<Relation>, &str) {
    let text = text.trim_start();
    let relation = match text.chars().next() {
        Some('>') => Relation::Parent,
        Some('+') => Relation::Previous,
        Some('~') => Relation::Earlier,
        _ => return (None, text),
    };
    (Some(relation), text.get(1..).unwrap_or_default().trim_start())
}

/// The length of a compound selector.
fn compound_length(text: &str) -> usize {
    let mut depth = 0_i32;
    for (position, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ' ' | '>' | '+' | '~' if depth <= 0 => return position,
            _ => {}
        }
    }
    text.len()
}

/// The length of a leading name.
fn name_length(text: &str) -> usize {
    text.find(['.', '#', '[', ':', '(', ')', ']', '*', '&']).unwrap_or(text.len())
}

/// The length of a pseudo-class, with its arguments.
fn pseudo_length(text: &str) -> Result<usize, UnsupportedSelector> {
    let name = text.strip_prefix(':').map_or(0, |_| 1) + name_length(text.strip_prefix(':').unwrap_or(text));
    let Some(inside) = text.get(name..).and_then(|after| after.strip_prefix('(')) else { return Ok(name) };
    let end = closing(inside).ok_or(UnsupportedSelector::Unknown)?;
    Ok(name + end + 2)
}

/// Whether two names are the same.
fn same(one: &str, other: &str, quirks: bool) -> bool {
    if quirks { one.eq_ignore_ascii_case(other) } else { one == other }
}

impl Part {
    /// Whether an element with this parent matches; `matched` has the earlier parts that do, in order.
    pub(super) fn matches(&self, subject: Subject<'_>, parent: &Family, matched: &[PartId]) -> bool {
        let left = self.left.is_none_or(|(relation, mark)| match relation {
            Relation::Ancestor => parent.above.has(mark),
            Relation::Parent => parent.own.has(mark),
            Relation::Previous => parent.previous.has(mark),
            Relation::Earlier => parent.earlier.has(mark),
        });
        left && self.compound.matches(subject, matched)
    }
}

impl Compound {
    fn stronger(&mut self, by: [u32; 3]) {
        for (total, part) in self.specificity.iter_mut().zip(by) {
            *total = total.saturating_add(part);
        }
    }

    /// Adds the specificity of its own tests; arguments were added before.
    fn weigh(&mut self) {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let plain = self.tests.iter().filter(|test| !matches!(test, Test::Any(_) | Test::None(_))).count();
        self.stronger([
            count(self.ids.len()),
            count(self.classes.len() + self.attributes.len() + plain),
            u32::from(self.element.is_some()),
        ]);
    }

    fn matches(&self, subject: Subject<'_>, matched: &[PartId]) -> bool {
        self.element.is_none_or(|name| name == subject.name)
            && self.ids.iter().all(|id| same(id, subject.id, subject.quirks))
            && self.classes.iter().all(|class| has_class(subject.class, class, subject.quirks))
            && self.attributes.iter().all(|test| test.matches(subject.attributes))
            && self.tests.iter().all(|test| test.holds(subject, matched))
    }

    /// The number of other parts that are looked up.
    pub(super) fn effort(&self) -> usize {
        let inner = |test: &Test| match test {
            Test::Any(parts) | Test::None(parts) => parts.len(),
            _ => 0,
        };
        1 + self.tests.iter().map(inner).sum::<usize>() / 4
    }
}

/// Whether a class attribute contains a class.
fn has_class(attribute: &str, class: &str, quirks: bool) -> bool {
    attribute.split_ascii_whitespace().any(|found| same(found, class, quirks))
}
