//! What an element looks like: everything that is said about it, weighed.

use super::animation::{self, Seen};
use super::cascade::{Cascade, Origin, Winners};
use super::element::Traits;
use super::family::FewMarks;
use super::looks;
use super::place::Place;
use super::property::{Declaration, Display, Property, Value};
use super::render::{Count, Renderer};
use super::style::Style;
use super::subject::Subject;
use super::tokens::Tag;
use super::tree::Role;

/// What it costs to look at a frame of an animation, in comparisons.
const WORK_OF_A_FRAME: usize = 50;

impl Renderer {
    /// What wins for an element, what it then looks like, and what it matches for its relatives.
    pub(super) fn style_of(
        &mut self,
        tag: &Tag<'_>,
        traits: Traits,
        place: Place,
    ) -> (Winners, Style, FewMarks) {
        let name = tag.name.as_str();
        let is_plain = tag.attributes.is_empty() && self.sheet.is_empty() && !looks::has_looks(name);
        let folded = matches!(self.tree.top().map(|top| &top.role), Some(Role::Folded(_)));
        if is_plain && !folded || matches!(self.census, Count::Now(_)) {
            let style = self.tree.style();
            let style = if traits.has(Traits::GONE) { style.unseen() } else { style };
            return (Winners::default(), style, FewMarks::default());
        }
        let mut cascade = Cascade::new();
        looks::present(&mut cascade, tag);
        if self.is_folded_away(name) {
            let hide = Declaration { property: Property::MsoHide, value: Value::Flag(true), important: true };
            cascade.add(hide, Origin::Attribute);
        }
        let class = tag.attribute("class").unwrap_or_default();
        let id = tag.attribute("id").unwrap_or_default();
        let (attributes, quirks) = (&tag.attributes, self.quirks);
        let subject = Subject { name: tag.name, id: &id, class: &class, attributes, place, quirks };
        let matched = self.sheet.find(subject, self.tree.family_mut());
        let mut on_desktops = self.sheet.apply(&mut cascade, &matched);
        if let Some(css) = tag.attribute("style") {
            for declaration in self.sheet.variables().read_attribute(&css, self.quirks) {
                cascade.add(declaration, Origin::Attribute);
                if let Some(cascade) = &mut on_desktops {
                    cascade.add(declaration, Origin::Attribute);
                }
            }
        }
        let is_cell = matches!(name, "td" | "th");
        let (winners, mut style) = self.animate(&cascade, is_cell);
        if let Some((_, desktop)) = on_desktops.map(|cascade| self.animate(&cascade, is_cell)) {
            style = if desktop.is_readable() { style } else { desktop };
        }
        style.gone |= traits.has(Traits::GONE);
        (winners, style, FewMarks::new(matched.marks))
    }

    /// What an element looks like in the frame of its animation that is seen.
    fn animate(&self, cascade: &Cascade, is_cell: bool) -> (Winners, Style) {
        let parent = self.tree.style();
        let winners = cascade.winners();
        let style = parent.child(&winners, is_cell);
        // What takes no part in the layout is not animated.
        if winners.display() == Some(Display::None) {
            return (winners, style);
        }
        let (seen, others) = animation::seen(self.sheet.animations(), &winners);
        if others && self.sheet.hides() {
            self.sheet.note_unread();
        }
        let framed = |frame: &[Declaration]| {
            let mut cascade = cascade.clone();
            for declaration in frame {
                cascade.add(*declaration, Origin::Animation);
            }
            let winners = cascade.winners();
            let style = parent.child(&winners, is_cell);
            (winners, style)
        };
        match seen {
            Seen::Itself => (winners, style),
            Seen::Frame(frame) => framed(frame),
            Seen::All(_, true) if style.is_readable() => (winners, style),
            Seen::All(frames, _) => {
                let in_turn = frames.iter().take_while(|_| self.sheet.has_work(WORK_OF_A_FRAME));
                let mut looks = in_turn.map(|(_, frame)| framed(frame));
                looks.find(|(_, style)| style.is_readable()).unwrap_or_else(|| {
                    // Without work left nobody knows, which is noted.
                    (winners, if self.sheet.has_work(0) { style.unseen() } else { style })
                })
            }
        }
    }

    /// Whether an element is in a folded-up block and not its visible line.
    fn is_folded_away(&mut self, name: &str) -> bool {
        match self.tree.top_mut().map(|top| &mut top.role) {
            Some(Role::Folded(has_line)) => name != "summary" || std::mem::replace(has_line, true),
            _ => false,
        }
    }
}
