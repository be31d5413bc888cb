//! The stack of open elements at a point of the document, maintained as browsers do.
//!
//! There is no tree: only the branch that leads to the current text. Which elements an end tag closes, and which
//! continue after it, decides whether text is inside a hidden element, so the rules of the HTML standard are followed
//! as far as they matter for that. Looking back is bounded, so depth costs memory but never time.

use super::cascade::CascadedValues;
use super::element::Traits;
use super::family::Family;
use super::style::Style;
use super::tokens::Name;

/// Open elements that are searched to find one.
const MAX_LOOK_BACK: usize = 256;

/// Formatting elements that are kept to be reopened.
const MAX_DEFERRED: usize = 32;

/// An open element.
#[derive(Debug)]
pub(super) struct OpenElement {
    pub(super) name: Name,
    pub(super) traits: Traits,
    pub(super) cascaded: CascadedValues,
    pub(super) style: Style,
    /// What its children need to know.
    pub(super) family: Family,
    /// How far down the page it begins, and how far the tallest child of its row reaches.
    pub(super) top: f32,
    pub(super) bottom: f32,
    /// What only some elements have.
    pub(super) role: Role,
}

/// What an element does besides being styled.
#[derive(Debug)]
pub(super) enum Role {
    /// Nothing.
    Plain,
    /// A link: where its text begins in the output, and where it leads.
    Link(usize, String),
    /// A list, with the number of its next item where it has numbers.
    List(Option<u32>),
    /// A quotation.
    Quote,
    /// A closed `details`, and whether its summary has come.
    Folded(bool),
    /// A table row, and whether it has a cell already.
    Row(bool),
}

/// The branch of open elements.
#[derive(Debug)]
pub(super) struct Tree {
    open: Vec<OpenElement>,
    /// Open elements by the hash of their name: quickly tells that one is not open.
    counts: [u32; 256],
    tracked: [(&'static str, u32); 6],
    deferred: Vec<OpenElement>,
    /// The family of the root.
    document: Family,
}

impl Tree {
    /// Nothing open.
    pub(super) fn new() -> Self {
        let tracked =
            ["table", "head", "svg", "math", "foreignobject", "annotation-xml"].map(|name| (name, 0));
        Self {
            open: Vec::new(),
            counts: [0; 256],
            tracked,
            deferred: Vec::new(),
            document: Family::default(),
        }
    }

    /// Whether one of the tracked elements is open.
    pub(super) fn is_open(&self, name: &str) -> bool {
        self.tracked.iter().any(|(tracked, count)| *count > 0 && *tracked == name)
    }

    /// Whether an element of this name may be open; `false` is certain.
    fn may_be_open(&self, name: Name) -> bool {
        self.counts.get(name.sum()).is_some_and(|count| *count > 0)
    }

    fn count(&mut self, open: &OpenElement, change: i32) {
        let name = open.name.as_str();
        if let Some(count) = self.counts.get_mut(open.name.sum()) {
            *count = count.saturating_add_signed(change);
        }
        if open.traits.has(Traits::TRACKED) {
            for (_, count) in self.tracked.iter_mut().filter(|(tracked, _)| *tracked == name) {
                *count = count.saturating_add_signed(change);
            }
        }
    }

    /// The innermost open element.
    pub(super) fn top(&self) -> Option<&OpenElement> {
        self.open.last()
    }

    /// The innermost open element, to change it.
    pub(super) fn top_mut(&mut self) -> Option<&mut OpenElement> {
        self.open.last_mut()
    }

    /// The style of text at this point.
    pub(super) fn style(&self) -> Style {
        self.top().map_or(Style::PAGE, |top| top.style)
    }

    /// The innermost open element of a name.
    pub(super) fn nearest_mut(&mut self, accepts: impl Fn(&OpenElement) -> bool) -> Option<&mut OpenElement> {
        self.open.iter_mut().rev().take(MAX_LOOK_BACK).find(|open| accepts(open))
    }

    /// The family of the next element's parent.
    pub(super) fn family_mut(&mut self) -> &mut Family {
        self.open.last_mut().map_or(&mut self.document, |top| &mut top.family)
    }

    /// Opens an element.
    pub(super) fn push(&mut self, open: OpenElement) {
        self.count(&open, 1);
        self.open.push(open);
    }

    fn pop(&mut self) -> Option<OpenElement> {
        let open = self.open.pop()?;
        self.count(&open, -1);
        Some(open)
    }

    /// Finds the innermost matching open element, unless a barrier is above it.
    fn find(
        &self,
        wanted: impl Fn(&OpenElement) -> bool,
        stops: impl Fn(&OpenElement) -> bool,
    ) -> Option<usize> {
        for (index, open) in self.open.iter().enumerate().rev().take(MAX_LOOK_BACK) {
            if wanted(open) {
                return Some(index);
            }
            if stops(open) {
                return None;
            }
        }
        None
    }

    /// Closes everything from an element on, and returns it, innermost first.
    fn close_from(&mut self, index: usize) -> Vec<OpenElement> {
        let mut closed = Vec::new();
        while self.open.len() > index {
            closed.extend(self.pop());
        }
        closed
    }

    /// Keeps the formatting elements that were closed with another one and continue: their own end tags are still to
    /// come.
    pub(super) fn defer_formatting(&mut self, closed: Vec<OpenElement>) {
        let within = closed.len().saturating_sub(1);
        let marker = closed.iter().rposition(|open| open.traits.has(Traits::MARKER));
        let mut going_on: Vec<OpenElement> = closed
            .into_iter()
            .enumerate()
            .filter(|(index, open)| {
                *index < within
                    && marker.is_none_or(|marker| *index > marker)
                    && open.traits.has(Traits::FORMATTING)
            })
            .map(|(_, open)| open)
            .collect();
        going_on.reverse();
        self.deferred.extend(going_on);
        let surplus = self.deferred.len().saturating_sub(MAX_DEFERRED);
        self.deferred.drain(..surplus);
    }

    /// Takes the formatting elements to reopen before text.
    pub(super) fn take_deferred(&mut self) -> Vec<OpenElement> {
        std::mem::take(&mut self.deferred)
    }

    /// Closes the innermost of some elements, unless a barrier is above it.
    pub(super) fn close_nearest(&mut self, names: &[&str], barriers: &[&str]) -> Vec<OpenElement> {
        if !names.iter().any(|name| self.may_be_open(Name::new(name))) {
            return Vec::new();
        }
        let found = self
            .find(|open| names.contains(&open.name.as_str()), |open| barriers.contains(&open.name.as_str()));
        found.map(|index| self.close_from(index)).unwrap_or_default()
    }

    /// Closes an open paragraph.
    pub(super) fn close_paragraph(&mut self) -> Vec<OpenElement> {
        if !self.may_be_open(Name::new("p")) {
            return Vec::new();
        }
        let found = self.find(
            |open| open.name.as_str() == "p",
            |open| open.traits.has(Traits::SCOPE) || open.name.as_str() == "button",
        );
        found.map(|index| self.close_from(index)).unwrap_or_default()
    }

    /// Closes an open item of a list or of definitions.
    pub(super) fn close_item(&mut self, names: &[&str]) -> Vec<OpenElement> {
        if !names.iter().any(|name| self.may_be_open(Name::new(name))) {
            return Vec::new();
        }
        let found = self.find(
            |open| names.contains(&open.name.as_str()),
            |open| open.traits.has(Traits::SPECIAL) && !matches!(open.name.as_str(), "address" | "div" | "p"),
        );
        found.map(|index| self.close_from(index)).unwrap_or_default()
    }

    /// Closes all elements of some tracked names, and what is open within them.
    ///
    /// The search goes through nothing that is not closed by it, so it costs no more than opening did.
    pub(super) fn close_all(&mut self, names: &[&str]) -> Vec<OpenElement> {
        let mut closed = Vec::new();
        while names.iter().any(|name| self.is_open(name)) {
            let found = self.open.iter().rposition(|open| names.contains(&open.name.as_str()));
            closed.extend(self.close_from(found.unwrap_or_default()));
        }
        closed
    }

    /// Closes everything, at the end of the document.
    pub(super) fn finish(&mut self) -> Vec<OpenElement> {
        self.close_from(0)
    }

    /// Handles an end tag.
    pub(super) fn end(&mut self, name: Name, traits: Traits) -> Vec<OpenElement> {
        let text = name.as_str();
        if traits.has(Traits::HEADING) {
            let found =
                self.find(|open| open.traits.has(Traits::HEADING), |open| open.traits.has(Traits::SCOPE));
            return found.map(|index| self.close_from(index)).unwrap_or_default();
        }
        if !self.may_be_open(name) {
            if let Some(index) = self.deferred.iter().rposition(|open| open.name == name) {
                self.deferred.remove(index);
            }
            return Vec::new();
        }
        if traits.has(Traits::FORMATTING) {
            return self.end_formatting(name);
        }
        let found = if traits.has(Traits::TABLE_PART) {
            self.find(|open| open.name == name, |open| open.name.as_str() == "table")
        } else if text == "table" {
            self.find(|open| open.name == name, |open| open.name.as_str() == "template")
        } else if traits.has(Traits::SPECIAL) {
            self.find(|open| open.name == name, |open| open.traits.has(Traits::SCOPE))
        } else {
            self.find(|open| open.name == name, |open| open.traits.has(Traits::SPECIAL))
        };
        found.map(|index| self.close_from(index)).unwrap_or_default()
    }

    /// Ends a formatting element; blocks that were opened within it stay open without it.
    fn end_formatting(&mut self, name: Name) -> Vec<OpenElement> {
        let found = self.find(|open| open.name == name, |open| open.traits.has(Traits::SCOPE));
        let Some(index) = found else {
            if let Some(deferred) = self.deferred.iter().rposition(|open| open.name == name) {
                self.deferred.remove(deferred);
            }
            return Vec::new();
        };
        let holds_block = self.open.iter().skip(index + 1).any(|open| open.traits.has(Traits::SPECIAL));
        if !holds_block {
            return self.close_from(index);
        }
        let removed = self.open.remove(index);
        self.count(&removed, -1);
        self.restyle_from(index);
        vec![removed]
    }

    /// Recomputes the styles from an element on, after its parent changed.
    fn restyle_from(&mut self, index: usize) {
        let mut parent = index
            .checked_sub(1)
            .and_then(|above| self.open.get(above))
            .map_or(Style::PAGE, |open| open.style);
        for open in self.open.iter_mut().skip(index) {
            let is_cell = matches!(open.name.as_str(), "td" | "th");
            let mut style = parent.child(&open.cascaded, is_cell);
            style.window = open.style.window;
            style.removed |= open.traits.has(Traits::NOT_RENDERED);
            open.style = style;
            parent = style;
        }
    }
}
