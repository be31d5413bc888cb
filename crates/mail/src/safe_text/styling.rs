//! The style of an element: matching rules, attributes and animations, combined by the cascade.

use super::animation::{self, VisibleFrames};
use super::cascade::{Cascade, CascadedValues, Origin};
use super::element::Traits;
use super::family::SmallMarkSet;
use super::presentation;
use super::property::{Declaration, Display, Property, Value};
use super::render::{Count, Renderer};
use super::sibling_position::SiblingPosition;
use super::style::Style;
use super::subject::Subject;
use super::tokens::Tag;
use super::tree::Role;

/// The cost of one animation frame, in comparisons.
const WORK_OF_A_FRAME: usize = 50;

impl Renderer {
    /// The cascaded values of an element, its style, and its marks.
    pub(super) fn style_of(
        &mut self,
        tag: &Tag<'_>,
        traits: Traits,
        position: SiblingPosition,
    ) -> (CascadedValues, Style, SmallMarkSet) {
        let name = tag.name.as_str();
        let is_plain =
            tag.attributes.is_empty() && self.sheet.is_empty() && !presentation::has_presentation(name);
        let folded = matches!(self.tree.top().map(|top| &top.role), Some(Role::Folded(_)));
        if is_plain && !folded || matches!(self.census, Count::Now(_)) {
            let style = self.tree.style();
            let style = if traits.has(Traits::NOT_RENDERED) { style.unseen() } else { style };
            return (CascadedValues::default(), style, SmallMarkSet::default());
        }
        let mut cascade = Cascade::new();
        presentation::present(&mut cascade, tag);
        if self.is_folded_away(name) {
            let hide = Declaration { property: Property::MsoHide, value: Value::Flag(true), important: true };
            cascade.add(hide, Origin::Attribute);
        }
        let class = tag.attribute("class").unwrap_or_default();
        let id = tag.attribute("id").unwrap_or_default();
        let (attributes, quirks) = (&tag.attributes, self.quirks);
        let subject = Subject { name: tag.name, id: &id, class: &class, attributes, position, quirks };
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
        let (cascaded, mut style) = self.animate(&cascade, is_cell);
        if let Some((_, desktop)) = on_desktops.map(|cascade| self.animate(&cascade, is_cell)) {
            style = if desktop.is_readable() { style } else { desktop };
        }
        style.removed |= traits.has(Traits::NOT_RENDERED);
        (cascaded, style, SmallMarkSet::new(matched.marks))
    }

    /// The style of an element in the visible frame of its animation.
    fn animate(&self, cascade: &Cascade, is_cell: bool) -> (CascadedValues, Style) {
        let parent = self.tree.style();
        let cascaded = cascade.cascaded();
        let style = parent.child(&cascaded, is_cell);
        // An element that is not rendered is not animated.
        if cascaded.display() == Some(Display::None) {
            return (cascaded, style);
        }
        let (visible_frames, others) = animation::visible_frames(self.sheet.animations(), &cascaded);
        if others && self.sheet.hides() {
            self.sheet.note_unsupported();
        }
        let framed = |frame: &[Declaration]| {
            let mut cascade = cascade.clone();
            for declaration in frame {
                cascade.add(*declaration, Origin::Animation);
            }
            let cascaded = cascade.cascaded();
            let style = parent.child(&cascaded, is_cell);
            (cascaded, style)
        };
        match visible_frames {
            VisibleFrames::Itself => (cascaded, style),
            VisibleFrames::Frame(frame) => framed(frame),
            VisibleFrames::All(_, true) if style.is_readable() => (cascaded, style),
            VisibleFrames::All(frames, _) => {
                let in_turn = frames.iter().take_while(|_| self.sheet.has_work(WORK_OF_A_FRAME));
                let mut presentation = in_turn.map(|(_, frame)| framed(frame));
                presentation.find(|(_, style)| style.is_readable()).unwrap_or_else(|| {
                    // The budget is exhausted, which is noted.
                    (cascaded, if self.sheet.has_work(0) { style.unseen() } else { style })
                })
            }
        }
    }

    /// Whether an element is in a closed `details` and is not its summary.
    fn is_folded_away(&mut self, name: &str) -> bool {
        match self.tree.top_mut().map(|top| &mut top.role) {
            Some(Role::Folded(has_line)) => name != "summary" || std::mem::replace(has_line, true),
            _ => false,
        }
    }
}
