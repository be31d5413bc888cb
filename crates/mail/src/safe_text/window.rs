//! Clipping boxes, and how far text was moved within them.
//!
//! The height of text can only be estimated. The estimate is low, so that visible text never counts as clipped: lines
//! are as high as their characters, and long lines are not wrapped.

use super::cascade::CascadedValues;
use super::length::Length;
use super::property::Property;

/// A box of at least this height can be scrolled: content below is not hidden.
const MIN_SCROLLABLE_PX: f32 = 48.0;

/// Assumed page width for percentages.
const PAGE_WIDTH_PX: f32 = 600.0;

/// A box that clips the text in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Window {
    width: Option<f32>,
    height: Option<f32>,
    /// How far down the page it begins.
    top: f32,
    /// How far the text was moved: in pixels, and in widths of the box.
    right: f32,
    down: f32,
    widths: f32,
    /// Whether it is the containing block of absolutely positioned content.
    holds_absolute: bool,
    /// Whether content below can be scrolled to.
    scrolls: bool,
}

impl Window {
    /// The clipping box of an element, if it has one. `outer` is the box around it; `top` is how far down the page it
    /// begins.
    pub(super) fn of(own: &CascadedValues, font_size: f32, outer: Option<Self>, top: f32) -> Option<Self> {
        if !own.flag(Property::Overflow) {
            return None;
        }
        let size = |properties: [Property; 2]| {
            let known = properties.into_iter().filter_map(|property| own.length(property)?.px(font_size));
            known.reduce(f32::min)
        };
        let mut window = Self {
            width: size([Property::Width, Property::MaxWidth]),
            height: size([Property::Height, Property::MaxHeight]),
            top,
            right: 0.0,
            down: 0.0,
            widths: 0.0,
            holds_absolute: own.is_absolute() || own.is_relative(),
            scrolls: own.flag(Property::Scrolls),
        };
        // What an outer box clips stays clipped.
        if let Some(outer) = outer {
            let space = outer.space_below(top);
            window.height = [window.height, space].into_iter().flatten().reduce(f32::min);
        }
        Some(window)
    }

    /// The same for content that is positioned regardless of what came before.
    pub(super) fn begin_at(&mut self, top: f32) {
        self.top = top;
    }

    fn space_below(&self, at: f32) -> Option<f32> {
        let endless = self.scrolls && self.height.is_some_and(|height| height >= MIN_SCROLLABLE_PX);
        self.height.filter(|_| !endless).map(|height| height - (at - self.top + self.down))
    }

    /// The same for a descendant, which may be moved. Content with a fixed position is not clipped by it.
    pub(super) fn shift(mut self, own: &CascadedValues, font_size: f32) -> Option<Self> {
        match own.is_absolute() {
            true if own.is_fixed() || !self.holds_absolute => return None,
            true => {
                (self.right, self.widths) = (0.0, 0.0);
                self.move_right(own.length(Property::Left), font_size, 1.0);
                if let Some(down) = self.vertical(own.length(Property::Top), font_size) {
                    self.down = down;
                }
            }
            false if own.is_relative() => {
                let (left, right) = (own.length(Property::Left), own.length(Property::Right));
                match left {
                    Some(Length::Auto) | None => self.move_right(right, font_size, -1.0),
                    left => self.move_right(left, font_size, 1.0),
                }
                let lifted = self.vertical(own.length(Property::Bottom), font_size).unwrap_or_default();
                self.down += self.vertical(own.length(Property::Top), font_size).unwrap_or(-lifted);
                self.holds_absolute = true;
            }
            false => {}
        }
        self.move_right(own.length(Property::MarginLeft), font_size, 1.0);
        self.move_right(own.length(Property::PaddingLeft), font_size, 1.0);
        Some(self)
    }

    fn move_right(&mut self, length: Option<Length>, font_size: f32, sign: f32) {
        let Some(length) = length else { return };
        match (length, self.width) {
            (length, Some(width)) => self.right += sign * length.of(font_size, width).unwrap_or_default(),
            (Length::Percent(share), None) => self.widths += sign * share / 100.0,
            (length, None) => self.right += sign * length.of(font_size, PAGE_WIDTH_PX).unwrap_or_default(),
        }
    }

    fn vertical(&self, length: Option<Length>, font_size: f32) -> Option<f32> {
        let length = length.filter(|length| *length != Length::Auto)?;
        length.px(font_size).or_else(|| length.of(font_size, self.height?))
    }

    /// Whether the text of an element was moved out to the side; `wraps` says whether its lines are broken.
    pub(super) fn hides_beside(&self, own: &CascadedValues, font_size: f32, wraps: bool) -> bool {
        let mut moved = *self;
        // Only the first line is indented; where lines wrap, the others are visible.
        if !wraps {
            moved.move_right(own.length(Property::TextIndent), font_size, 1.0);
        }
        let beyond = moved.width.is_some_and(|width| {
            let margin = width.max(4.0 * font_size);
            moved.right >= width || moved.right <= -margin
        });
        beyond || moved.widths >= 0.999 || moved.widths <= -0.999
    }

    /// Whether a line that begins this far down the page is clipped.
    pub(super) fn hides_at(&self, at: f32, line: f32) -> bool {
        let place = at - self.top + self.down;
        let below = self.height.is_some_and(|height| place >= height.max(1.0));
        let endless =
            self.scrolls && self.height.is_some_and(|height| height >= MIN_SCROLLABLE_PX) && self.down <= 0.0;
        (below && !endless) || place <= -1.5 * line
    }
}

/// How far a margin or padding moves what follows, in pixels; `outer` is the box around it.
pub(super) fn spacing(
    own: &CascadedValues,
    property: Property,
    font_size: f32,
    outer: Option<Window>,
) -> f32 {
    let whole = outer.and_then(|window| window.width).unwrap_or(PAGE_WIDTH_PX);
    let length = own.length(property).and_then(|length| length.of(font_size, whole));
    length.unwrap_or_default().clamp(-100_000.0, 100_000.0)
}
