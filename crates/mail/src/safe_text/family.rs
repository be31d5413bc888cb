//! What is known about an element's relatives when the next element begins: which selector parts they matched, and how
//! many there were.

use std::collections::HashMap;
use std::rc::Rc;

use super::tokens::Name;

/// A bit set of marks (selector parts that were matched). Copied on write; cloning is cheap.
#[derive(Clone, Debug, Default)]
pub(super) struct MarkSet(Option<Rc<[u64]>>);

impl MarkSet {
    /// Whether a mark is in it.
    pub(super) fn has(&self, mark: u32) -> bool {
        let (word, bit) = place(mark);
        self.0.as_ref().is_some_and(|words| words.get(word).is_some_and(|bits| bits & bit != 0))
    }

    fn with(&self, marks: &SmallMarkSet) -> Self {
        if marks.list().iter().all(|mark| self.has(*mark)) {
            return self.clone();
        }
        let mut words: Vec<u64> = self.0.as_ref().map(|words| words.to_vec()).unwrap_or_default();
        for mark in marks.list() {
            let (word, bit) = place(*mark);
            if words.len() <= word {
                words.resize(word + 1, 0);
            }
            if let Some(bits) = words.get_mut(word) {
                *bits |= bit;
            }
        }
        Self(Some(words.into()))
    }
}

fn place(mark: u32) -> (usize, u64) {
    (usize::try_from(mark / 64).unwrap_or(usize::MAX), 1 << (mark % 64))
}

/// A small sorted set of marks: its size does not grow with the nesting of elements.
#[derive(Clone, Debug, Default)]
pub(super) struct SmallMarkSet(Option<Rc<[u32]>>);

impl SmallMarkSet {
    /// Makes a set.
    pub(super) fn new(mut marks: Vec<u32>) -> Self {
        marks.sort_unstable();
        Self((!marks.is_empty()).then(|| marks.into()))
    }

    fn list(&self) -> &[u32] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Whether a mark is in it.
    pub(super) fn has(&self, mark: u32) -> bool {
        self.list().binary_search(&mark).is_ok()
    }

    fn with(&self, more: &Self) -> Self {
        if self.0.is_none() {
            return more.clone();
        }
        let lacking: Vec<u32> = more.list().iter().filter(|mark| !self.has(**mark)).copied().collect();
        if lacking.is_empty() { self.clone() } else { Self::new([self.list(), &lacking].concat()) }
    }
}

/// What an element's children need to know about it.
#[derive(Debug, Default)]
pub(super) struct Family {
    /// Its number among all elements of the document; 0 is the document itself.
    pub(super) number: usize,
    /// What it matched itself, what it or an ancestor did, what its last child did, and what any of its children did.
    pub(super) own: SmallMarkSet,
    pub(super) above: MarkSet,
    pub(super) previous: SmallMarkSet,
    pub(super) earlier: SmallMarkSet,
    /// How many children it has so far, of all and of each name.
    pub(super) children: u32,
    named: HashMap<Name, u32>,
}

impl Family {
    /// Counts another child, and says which one it is: of all, and of those with its name.
    pub(super) fn count(&mut self, name: Name) -> [u32; 2] {
        self.children = self.children.saturating_add(1);
        let named = self.named.entry(name).or_default();
        *named = named.saturating_add(1);
        [self.children, *named]
    }

    /// Records what a child matched, and returns the family of that child.
    pub(super) fn adopt(&mut self, number: usize, own: &SmallMarkSet) -> Self {
        self.earlier = self.earlier.with(own);
        self.previous = own.clone();
        Self { number, own: own.clone(), above: self.above.with(own), ..Self::default() }
    }
}

/// How many children each element of a document has, counted before it is read.
#[derive(Debug, Default)]
pub(super) struct Census {
    children: Vec<u32>,
    named: HashMap<(usize, Name), u32>,
    filled: Vec<bool>,
}

impl Census {
    /// Counts an element as a child of another.
    pub(super) fn add(&mut self, parent: usize, name: Name) {
        if self.children.len() <= parent {
            self.children.resize(parent + 1, 0);
        }
        if let Some(count) = self.children.get_mut(parent) {
            *count = count.saturating_add(1);
        }
        *self.named.entry((parent, name)).or_default() += 1;
    }

    /// Notes that an element has content.
    pub(super) fn fill(&mut self, number: usize) {
        if self.filled.len() <= number {
            self.filled.resize(number + 1, false);
        }
        if let Some(filled) = self.filled.get_mut(number) {
            *filled = true;
        }
    }

    /// A child's positions from the end, given those from the start.
    pub(super) fn places_from_end(&self, parent: usize, name: Name, first: [u32; 2]) -> [u32; 2] {
        let all = self.children.get(parent).copied().unwrap_or_default();
        let named = self.named.get(&(parent, name)).copied().unwrap_or_default();
        let from_end = |total: u32, place: u32| (total + 1).saturating_sub(place);
        [from_end(all, first[0]), from_end(named, first[1])]
    }

    /// Whether an element has no content.
    pub(super) fn is_empty(&self, number: usize) -> bool {
        !self.filled.get(number).copied().unwrap_or_default()
            && self.children.get(number).is_none_or(|count| *count == 0)
    }
}
