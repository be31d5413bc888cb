//! Finds the rules that match an element, in time that grows with the document only.
//!
//! Rules are found by the last id, class or element of their selector. A document that makes this expensive on purpose
//! runs out of work; from then on every element that any hiding rule might mean is hidden.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use super::css::{Rules, Variables};
use super::declaration::{Display, Property, Value};
use super::selector::{Compound, Subject};
use super::style::{Cascade, Origin, Style};
use super::tokens::{self, Name, Token, Tokens};

/// How many comparisons a document may ask for.
const MAX_WORK: usize = 3_000_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Id(String),
    Class(String),
    Element(Name),
    Any,
}

impl Key {
    fn of(compound: &Compound) -> Self {
        match (&compound.id, compound.classes.first(), compound.element) {
            (Some(id), _, _) => Self::Id(id.clone()),
            (None, Some(class), _) => Self::Class(class.to_ascii_lowercase()),
            (None, None, Some(name)) => Self::Element(name),
            (None, None, None) => Self::Any,
        }
    }
}

#[derive(Debug, Default)]
struct Bucket {
    rules: Vec<usize>,
    hides: bool,
}

/// The style sheets of a document.
#[derive(Debug)]
pub(super) struct Sheet {
    rules: Rules,
    buckets: HashMap<Key, Bucket>,
    work_left: Cell<usize>,
    /// The elements that came so far.
    seen: HashSet<Name>,
}

impl Sheet {
    /// Reads all style elements of a document, wherever they stand.
    pub(super) fn of(html: &str) -> Self {
        let mut media = Cow::Borrowed("");
        let styled = if tokens::may_hold(html, "style") { html } else { "" };
        let sheets = Tokens::new(styled).filter_map(|token| match token {
            Token::Start(tag) if tag.name.as_str() == "style" => {
                media = tag.attribute("media").unwrap_or_default();
                None
            }
            Token::Raw(name, css) if name.as_str() == "style" => Some((std::mem::take(&mut media), css)),
            _ => None,
        });
        let rules = Rules::parse(sheets);
        let hiding: Vec<bool> = rules
            .blocks
            .iter()
            .map(|block| {
                let mut cascade = Cascade::new();
                for declaration in block {
                    cascade.add(*declaration, Origin::Attribute);
                }
                !Style::PAGE.child(&cascade.winners(), false).is_readable()
            })
            .collect();
        let mut buckets: HashMap<Key, Bucket> = HashMap::new();
        for (index, rule) in rules.list.iter().enumerate() {
            let bucket = buckets.entry(Key::of(&rule.selector.subject)).or_default();
            bucket.rules.push(index);
            bucket.hides |= hiding.get(rule.block).copied().unwrap_or_default();
        }
        Self { rules, buckets, work_left: Cell::new(MAX_WORK), seen: HashSet::new() }
    }

    /// Whether no rule says anything.
    pub(super) fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Notes that an element came, for the rules of those that follow it.
    pub(super) fn note(&mut self, name: Name) {
        if !self.is_empty() {
            self.seen.insert(name);
        }
    }

    /// The custom properties of the document.
    pub(super) fn variables(&self) -> &Variables {
        &self.rules.variables
    }

    /// Adds what the rules say about an element. Returns a second cascade for wide screens where that differs.
    pub(super) fn apply<'a>(
        &self,
        cascade: &mut Cascade,
        subject: Subject<'a>,
        ancestor: impl Fn(usize) -> Option<Subject<'a>> + Copy,
    ) -> Option<Cascade> {
        if self.is_empty() {
            return None;
        }
        let mut for_desktops = Vec::new();
        for key in keys(subject) {
            let Some(bucket) = self.buckets.get(&key) else { continue };
            if self.work_left.get() == 0 {
                if bucket.hides {
                    cascade.present(Property::MsoHide, Value::Flag(true));
                }
                continue;
            }
            for index in &bucket.rules {
                let Some(rule) = self.rules.list.get(*index) else { continue };
                let (matches, work) =
                    rule.selector.matches(subject, ancestor, |name| self.seen.contains(&name));
                self.work_left.set(self.work_left.get().saturating_sub(work));
                if matches && rule.desktop_only {
                    for_desktops.push(*index);
                } else if matches {
                    self.add(cascade, *index);
                }
            }
        }
        if for_desktops.is_empty() {
            return None;
        }
        let mut on_desktops = cascade.clone();
        for index in for_desktops {
            self.add(&mut on_desktops, index);
        }
        Some(on_desktops)
    }

    fn add(&self, cascade: &mut Cascade, index: usize) {
        let Some(rule) = self.rules.list.get(index) else { return };
        let order = u32::try_from(index).unwrap_or(u32::MAX);
        for declaration in self.rules.blocks.get(rule.block).into_iter().flatten() {
            cascade.add(*declaration, Origin::Rule(rule.selector.specificity, order));
        }
    }
}

/// Under which keys rules for an element may be found.
fn keys(subject: Subject<'_>) -> impl Iterator<Item = Key> {
    let id = (!subject.id.is_empty()).then(|| Key::Id(subject.id.to_ascii_lowercase()));
    let classes = subject.class.split_ascii_whitespace().map(|class| Key::Class(class.to_ascii_lowercase()));
    [Key::Any, Key::Element(subject.name)].into_iter().chain(id).chain(classes)
}

/// What hides an element by itself, before any style.
pub(super) const NOT_DISPLAYED: Value = Value::Display(Display::None);
