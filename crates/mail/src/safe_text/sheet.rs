//! Finds the rules that match an element, in time linear in the document.
//!
//! Selector parts are indexed by id, class or element. A document that makes matching expensive on purpose exhausts its
//! budget; from then on no rule is applied, and that is noted.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;

use super::animation::Animations;
use super::cascade::{Cascade, Origin};
use super::css::{Rules, Source, Variables};
use super::family::Family;
use super::property::{Display, Value};
use super::selector::Compound;
use super::subject::{PartId, Subject};
use super::tokens::{self, Name, Token, Tokens};

/// Comparisons per document.
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
        match (compound.ids.first(), compound.classes.first(), compound.element) {
            (Some(id), _, _) => Self::Id(id.to_ascii_lowercase()),
            (None, Some(class), _) => Self::Class(class.to_ascii_lowercase()),
            (None, None, Some(name)) => Self::Element(name),
            (None, None, None) => Self::Any,
        }
    }
}

/// The style sheets of a document.
#[derive(Debug)]
pub(super) struct Sheet {
    rules: Rules,
    parts: HashMap<Key, Vec<PartId>>,
    /// The rules of each part that is the last of a selector.
    rules_of: HashMap<PartId, Vec<usize>>,
    work_left: Cell<usize>,
    unread: Cell<bool>,
}

/// The selector parts that match an element.
#[derive(Default)]
pub(super) struct SelectorMatches {
    /// The parts of selectors, in order.
    parts: Vec<PartId>,
    /// The marks for the element's relatives.
    pub(super) marks: Vec<u32>,
}

impl Sheet {
    /// Reads all style elements of a document.
    pub(super) fn of(html: &str, quirks: bool) -> Self {
        let (mut media, mut title) = (Cow::Borrowed(""), None);
        // Style elements in these apply in some clients only, or nowhere.
        let (mut within, mut counts) = (0_usize, true);
        let styled = if tokens::may_hold(html, "style") { html } else { "" };
        let sheets = Tokens::new(styled).filter_map(|token| match token {
            Token::Start(tag) if tag.name.as_str() == "style" => {
                media = tag.attribute("media").unwrap_or_default();
                let kind = tag.attribute("type").unwrap_or_default();
                let is_css = kind.is_empty() || kind.eq_ignore_ascii_case("text/css");
                // Of titled sheets only those with the first title apply.
                let own = tag.attribute("title").filter(|title| !title.is_empty());
                let is_first =
                    own.as_ref().is_none_or(|own| *title.get_or_insert_with(|| own.clone()) == *own);
                counts = is_css && is_first && within == 0;
                None
            }
            Token::Raw(name, css) if name.as_str() == "style" => {
                Some(Source { media: std::mem::take(&mut media), css, counts })
            }
            Token::Start(tag) if matches!(tag.name.as_str(), "template" | "select" | "noscript") => {
                within += 1;
                None
            }
            Token::End(name) if matches!(name.as_str(), "template" | "select" | "noscript") => {
                within = within.saturating_sub(1);
                None
            }
            _ => None,
        });
        let rules = Rules::parse(sheets, quirks);
        let mut parts: HashMap<Key, Vec<PartId>> = HashMap::new();
        for (id, part) in (0..).zip(&rules.parts.list) {
            parts.entry(Key::of(&part.compound)).or_default().push(id);
        }
        let mut rules_of: HashMap<PartId, Vec<usize>> = HashMap::new();
        for (index, rule) in rules.list.iter().enumerate() {
            rules_of.entry(rule.selector.part).or_default().push(index);
        }
        let unread = Cell::new(rules.unread);
        Self { rules, parts, rules_of, work_left: Cell::new(MAX_WORK), unread }
    }

    /// Whether an unsupported rule may decide what is visible, given whether anything is hidden.
    pub(super) fn is_unsupported(&self, hidden: bool) -> bool {
        self.unread.get() || (hidden && self.rules.unread_shows)
    }

    /// Notes that something that may hide is ignored.
    pub(super) fn note_unsupported(&self) {
        self.unread.set(true);
    }

    /// Whether some rule or animation hides something.
    pub(super) fn hides(&self) -> bool {
        self.rules.hides
    }

    /// The animations.
    pub(super) fn animations(&self) -> &Animations {
        &self.rules.animations
    }

    /// Whether what follows an element must be known in advance.
    pub(super) fn needs_census(&self) -> bool {
        self.rules.parts.needs_census
    }

    /// Whether there are no rules.
    pub(super) fn is_empty(&self) -> bool {
        self.rules.list.is_empty()
    }

    /// The custom properties.
    pub(super) fn variables(&self) -> &Variables {
        &self.rules.variables
    }

    /// Finds the parts that match an element.
    pub(super) fn find(&self, subject: Subject<'_>, parent: &Family) -> SelectorMatches {
        let mut matched = SelectorMatches::default();
        if self.is_empty() || !self.has_work(1) {
            return matched;
        }
        let mut candidates: Vec<PartId> =
            keys(subject).filter_map(|key| self.parts.get(&key)).flatten().copied().collect();
        candidates.sort_unstable();
        candidates.dedup();
        let effort = 1 + subject.class.len() / 16 + subject.attributes.len() / 4;
        for id in candidates {
            let part = usize::try_from(id).ok().and_then(|index| self.rules.parts.list.get(index));
            let Some(part) = part else { continue };
            if !self.has_work(effort + part.compound.effort()) {
                return SelectorMatches::default();
            }
            if part.matches(subject, parent, &matched.parts) {
                matched.parts.push(id);
                matched.marks.extend(part.mark);
            }
        }
        matched
    }

    /// Consumes some of the budget; false when it is exhausted.
    pub(super) fn has_work(&self, amount: usize) -> bool {
        let left = self.work_left.get().saturating_sub(amount);
        self.work_left.set(left);
        if left == 0 {
            self.unread.set(true);
        }
        left > 0
    }

    /// Adds the rules that match an element. Returns a second cascade for wide screens where that differs.
    pub(super) fn apply(&self, cascade: &mut Cascade, matched: &SelectorMatches) -> Option<Cascade> {
        let mut for_desktops = Vec::new();
        for index in matched.parts.iter().filter_map(|part| self.rules_of.get(part)).flatten() {
            if !self.has_work(4) {
                break;
            }
            match self.rules.list.get(*index) {
                Some(rule) if rule.desktop_only => for_desktops.push(*index),
                _ => self.add(cascade, *index),
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
            cascade.add(*declaration, Origin::Rule(rule.selector.strength(), order));
        }
    }
}

/// The index keys of an element.
fn keys(subject: Subject<'_>) -> impl Iterator<Item = Key> {
    let id = (!subject.id.is_empty()).then(|| Key::Id(subject.id.to_ascii_lowercase()));
    let classes = subject.class.split_ascii_whitespace().map(|class| Key::Class(class.to_ascii_lowercase()));
    [Key::Any, Key::Element(subject.name)].into_iter().chain(id).chain(classes)
}

/// The value for elements that are hidden by default.
pub(super) const NOT_DISPLAYED: Value = Value::Display(Display::None);
