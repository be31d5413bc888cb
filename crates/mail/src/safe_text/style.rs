//! The computed style of an element, as far as it decides whether its text can be read.
//!
//! Children start with their parent's style; what hides them for good cannot be undone below.

use super::cascade::{Cascade, CascadedValues, Origin};
use super::colour::Colour;
use super::length::Length;
use super::property::{Declaration, Display, Property, Value};
use super::shape;
use super::window::Window;

/// Text up to this size in pixels is unreadable.
const MAX_UNREADABLE_PX: f32 = 2.0;

/// A box up to this size in pixels shows no content.
const MAX_TINY_PX: f32 = 2.0;

/// Lines from this height on leave much space above their text.
const MIN_TALL_PX: f32 = 100.0;

/// Up to this opacity nothing is visible.
const MAX_FAINT_OPACITY: f32 = 0.1;

/// Up to this letter spacing in pixels the characters overlap.
const MAX_CRAMPED_PX: f32 = -8.0;

/// The colour of text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ink {
    Known(Colour),
    /// An unknown notation, or an image.
    Unknown,
}

impl From<Option<Colour>> for Ink {
    fn from(colour: Option<Colour>) -> Self {
        colour.map_or(Self::Unknown, Self::Known)
    }
}

/// Whether an element is off the page, which positioned descendants can escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OffPage {
    /// It is not.
    No,
    /// Shifted away: descendants with a position of their own are not.
    Shifted,
    /// No size: descendants out of the flow are visible.
    Cut,
    /// One of these, and positioned descendants are inside too.
    Contained,
}

/// What decides whether text can be read; children begin with their parent's.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(super) struct Style {
    /// Not rendered, and descendants cannot undo it.
    pub(super) removed: bool,
    /// Whether line breaks in the source count.
    pub(super) keeps_lines: bool,
    /// The size of text in pixels.
    pub(super) font_size: f32,
    /// The clipping box around it.
    pub(super) window: Option<Window>,
    nowrap: bool,
    /// The half-leading of tall lines.
    lead: f32,
    hidden: bool,
    crushed: bool,
    /// Hidden by inherited properties that descendants can change: indented off the page, overlapping or masked
    /// characters.
    indented: bool,
    cramped: bool,
    masked: bool,
    away: OffPage,
    opacity: f32,
    ink: Ink,
    /// The text fill colour, where it is set.
    fill: Option<Ink>,
    background: Option<Colour>,
}

impl Style {
    /// The initial style of a page: black on white.
    pub(super) const PAGE: Self = Self {
        removed: false,
        keeps_lines: false,
        font_size: 16.0,
        window: None,
        nowrap: false,
        lead: 0.0,
        hidden: false,
        crushed: false,
        indented: false,
        cramped: false,
        masked: false,
        away: OffPage::No,
        opacity: 1.0,
        ink: Ink::Known(Colour::BLACK),
        fill: None,
        background: Some(Colour::WHITE),
    };

    /// Whether text in it can be read.
    pub(super) fn is_readable(&self) -> bool {
        let same_colour = match (self.fill.unwrap_or(self.ink), self.background) {
            (Ink::Known(ink), Some(background)) => ink.vanishes_on(background),
            (Ink::Known(ink), None) => ink.alpha < MAX_FAINT_OPACITY,
            (Ink::Unknown, _) => false,
        };
        let is_clear = !self.crushed && !self.indented && !self.cramped && !self.masked;
        self.is_shown() && self.font_size > MAX_UNREADABLE_PX && is_clear && !same_colour
    }

    /// Whether something other than text, such as an image, is visible.
    pub(super) fn is_shown(&self) -> bool {
        !self.is_away() && !self.hidden
    }

    /// Whether it is off the page.
    pub(super) fn is_away(&self) -> bool {
        self.removed || self.away != OffPage::No
    }

    /// The same for an element that is not shown.
    pub(super) fn unseen(mut self) -> Self {
        self.removed = true;
        self
    }

    /// The style of a child. Table cells grow with their content, so no size can make them hide it.
    pub(super) fn child(&self, own: &CascadedValues, is_cell: bool) -> Self {
        let mut style = *self;
        if own.is_empty() {
            return style;
        }
        style.set_size(own);
        style.set_colours(own);
        match own.get(Property::Visibility) {
            Some(Value::Flag(hidden)) => style.hidden = hidden,
            _ => style.hidden = self.hidden,
        }
        if let Some(Value::Flag(keeps)) = own.get(Property::WhiteSpace) {
            style.keeps_lines = keeps;
        }
        if let Some(Value::Flag(nowrap)) = own.get(Property::NoWrap) {
            style.nowrap = nowrap;
        }
        if let Some(opacity) = own.number(Property::Opacity) {
            style.opacity *= opacity.clamp(0.0, 1.0);
        }
        style.removed |= style.opacity <= MAX_FAINT_OPACITY || hides(own);
        style.set_position(own, is_cell);
        if let Some(window) = self.window {
            style.window = window.shift(own, style.font_size);
            style.removed |=
                style.window.is_some_and(|window| window.hides_beside(own, style.font_size, style.wraps()));
        }
        style
    }

    /// The minimum height of a line.
    pub(super) fn line_height(&self) -> f32 {
        self.font_size + 2.0 * self.lead
    }

    /// Whether a box clips a line that begins this far down the page.
    pub(super) fn is_cut_off(&self, at: f32) -> bool {
        self.window.is_some_and(|window| window.hides_at(at + self.lead, self.font_size))
    }

    /// Whether lines wrap.
    pub(super) fn wraps(&self) -> bool {
        !self.nowrap
    }

    /// Sets whether the element is off the page.
    fn set_position(&mut self, own: &CascadedValues, is_cell: bool) {
        let font_size = self.font_size;
        if let Some(length) = own.length(Property::TextIndent) {
            let about = length.of(font_size, 1000.0).unwrap_or_default();
            let is_share = length.px(font_size).is_none();
            self.indented = if is_share { about.abs() >= 1000.0 } else { is_pushed_away(about) };
        }
        if let Some(length) = own.length(Property::LetterSpacing) {
            self.cramped = length.px(font_size).is_some_and(|px| px <= MAX_CRAMPED_PX);
        }
        if let Some(Value::Flag(masked)) = own.get(Property::TextSecurity) {
            self.masked = masked;
        }
        let is_placed = own.length(Property::Left).or(own.length(Property::Right)).is_some();
        match self.away {
            _ if own.is_fixed() => self.away = OffPage::No,
            OffPage::Cut if own.is_absolute() => self.away = OffPage::No,
            OffPage::Shifted if own.is_absolute() && is_placed => self.away = OffPage::No,
            OffPage::Cut | OffPage::Shifted if own.is_relative() => self.away = OffPage::Contained,
            _ => {}
        }
        let is_contained = own.is_absolute() || own.is_relative();
        if self.away == OffPage::Contained {
            return;
        }
        if has_no_room(own, font_size, is_cell) {
            self.away = if is_contained { OffPage::Contained } else { OffPage::Cut };
        } else if is_off_page(own, font_size) {
            self.away = if is_contained { OffPage::Contained } else { OffPage::Shifted };
        }
    }

    fn set_size(&mut self, own: &CascadedValues) {
        match own.length(Property::FontSize) {
            Some(Length::Percent(share)) => self.font_size *= share / 100.0,
            Some(length) => self.font_size = length.px(self.font_size).unwrap_or(self.font_size),
            None => {}
        }
        if let Some(zoom) = own.number(Property::Zoom).filter(|zoom| *zoom > 0.0) {
            self.font_size *= zoom;
        }
        let line = match own.length(Property::LineHeight) {
            Some(Length::Percent(share)) => Some(self.font_size * share / 100.0),
            Some(Length::Bare(times)) => Some(self.font_size * times),
            Some(length) => length.px(self.font_size),
            None => None,
        };
        if let Some(height) = line {
            self.lead = if height >= MIN_TALL_PX { (height - self.font_size) / 2.0 } else { 0.0 };
        }
        match line {
            Some(height) if height <= 0.1 && own.flag(Property::Overflow) => self.crushed = true,
            Some(height) if height > 0.1 => self.crushed = false,
            _ => {}
        }
    }

    fn set_colours(&mut self, own: &CascadedValues) {
        match own.get(Property::Ink) {
            Some(Value::Colour(colour)) => self.ink = Ink::from(colour),
            Some(Value::Inherit) | None => {}
            Some(_) => self.ink = Ink::Unknown,
        }
        if let Some(Value::Colour(colour)) = own.get(Property::Fill) {
            self.fill = Some(Ink::from(colour));
        }
        let below = self.background;
        match own.get(Property::Background) {
            Some(Value::Colour(Some(colour))) if colour.alpha > 0.0 => {
                self.background =
                    below.or((colour.alpha >= 1.0).then_some(colour)).map(|below| colour.over(below));
            }
            Some(Value::Colour(None)) => self.background = None,
            _ => {}
        }
        if let Some(Value::Image(colour)) = own.get(Property::BackgroundImage) {
            let painted =
                matches!(own.get(Property::Background), Some(Value::Colour(Some(c))) if c.alpha > 0.0);
            if let Some(colour) = colour {
                self.background = Some(below.map_or(colour, |below| colour.over(below)));
            } else if !painted {
                self.background = None;
            }
            // With `background-clip: text` the background is the text's colour.
            if own.flag(Property::BackgroundClip) {
                (self.ink, self.fill, self.background) = (Ink::from(colour), None, below);
            }
        }
    }
}

/// Whether declarations hide text on an ordinary page.
pub(super) fn hides_by_itself(declarations: &[Declaration]) -> bool {
    let mut cascade = Cascade::new();
    for declaration in declarations {
        cascade.add(*declaration, Origin::Attribute);
    }
    !Style::PAGE.child(&cascade.cascaded(), false).is_readable()
}

/// Whether an element is hidden by something that its children cannot undo.
fn hides(own: &CascadedValues) -> bool {
    let hiding = [
        Property::ClipPath,
        Property::Transform,
        Property::Scale,
        Property::Translate,
        Property::Filter,
        Property::MsoHide,
        Property::ContentVisibility,
        Property::Mask,
    ];
    own.display() == Some(Display::None)
        || hiding.into_iter().any(|property| own.flag(property))
        || own.number(Property::Zoom).is_some_and(|zoom| zoom > 0.0 && zoom <= MAX_FAINT_OPACITY)
        || (own.is_absolute() && own.flag(Property::Clip))
}

impl CascadedValues {
    /// Whether the style makes an image too small to be seen.
    pub(super) fn is_tiny(&self, font_size: f32) -> bool {
        [Property::Width, Property::Height, Property::MaxWidth, Property::MaxHeight].into_iter().any(
            |property| {
                self.length(property)
                    .and_then(|length| length.px(font_size))
                    .is_some_and(|px| px <= MAX_TINY_PX)
            },
        )
    }
}

fn has_no_room(own: &CascadedValues, font_size: f32, is_cell: bool) -> bool {
    if is_cell && own.display().is_none() {
        return false;
    }
    let tiny = |property: Property| {
        own.length(property).and_then(|length| length.px(font_size)).is_some_and(|px| px <= MAX_TINY_PX)
    };
    let clipped = own.flag(Property::Overflow);
    let small = [Property::Width, Property::Height, Property::MaxWidth].into_iter().any(tiny);
    (clipped && small) || tiny(Property::MaxHeight)
}

fn is_pushed_away(px: f32) -> bool {
    px <= shape::OFF_PAGE || px >= shape::FAR_AWAY
}

fn is_off_page(own: &CascadedValues, font_size: f32) -> bool {
    let away =
        |property: Property| own.length(property).is_some_and(|length| shape::moves_away(length, font_size));
    let pushed_away = |property: Property| {
        own.length(property).and_then(|length| length.px(font_size)).is_some_and(is_pushed_away)
    };
    let sides = [Property::Left, Property::Top, Property::Right, Property::Bottom];
    ((own.is_absolute() || own.is_relative()) && sides.into_iter().any(away))
        || [Property::MarginLeft, Property::MarginTop].into_iter().any(pushed_away)
}
