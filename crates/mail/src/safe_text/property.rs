//! The CSS properties that can hide text, and their values.
//!
//! Parsing is in `declaration.rs`, precedence in `cascade.rs`.

use super::colour::Colour;
use super::length::Length;

/// What a declaration sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Property {
    Display,
    Visibility,
    Opacity,
    FontSize,
    LineHeight,
    Ink,
    Fill,
    Background,
    BackgroundImage,
    BackgroundClip,
    Width,
    Height,
    MaxWidth,
    MaxHeight,
    Overflow,
    Position,
    Left,
    Top,
    Right,
    Bottom,
    TextIndent,
    MarginLeft,
    MarginTop,
    PaddingLeft,
    PaddingTop,
    LetterSpacing,
    Clip,
    ClipPath,
    Transform,
    Scale,
    Translate,
    Filter,
    MsoHide,
    ContentVisibility,
    Mask,
    TextSecurity,
    WhiteSpace,
    NoWrap,
    Scrolls,
    Aside,
    AnimationName,
    AnimationDuration,
    AnimationDelay,
    AnimationCount,
    AnimationFill,
    AnimationDirection,
    AnimationPaused,
    AnimationTimeline,
    Zoom,
}

/// How many properties there are.
pub(super) const PROPERTIES: usize = Property::Zoom as usize + 1;

/// Every property, in order.
pub(super) const ALL: [Property; PROPERTIES] = [
    Property::Display,
    Property::Visibility,
    Property::Opacity,
    Property::FontSize,
    Property::LineHeight,
    Property::Ink,
    Property::Fill,
    Property::Background,
    Property::BackgroundImage,
    Property::BackgroundClip,
    Property::Width,
    Property::Height,
    Property::MaxWidth,
    Property::MaxHeight,
    Property::Overflow,
    Property::Position,
    Property::Left,
    Property::Top,
    Property::Right,
    Property::Bottom,
    Property::TextIndent,
    Property::MarginLeft,
    Property::MarginTop,
    Property::PaddingLeft,
    Property::PaddingTop,
    Property::LetterSpacing,
    Property::Clip,
    Property::ClipPath,
    Property::Transform,
    Property::Scale,
    Property::Translate,
    Property::Filter,
    Property::MsoHide,
    Property::ContentVisibility,
    Property::Mask,
    Property::TextSecurity,
    Property::WhiteSpace,
    Property::NoWrap,
    Property::Scrolls,
    Property::Aside,
    Property::AnimationName,
    Property::AnimationDuration,
    Property::AnimationDelay,
    Property::AnimationCount,
    Property::AnimationFill,
    Property::AnimationDirection,
    Property::AnimationPaused,
    Property::AnimationTimeline,
    Property::Zoom,
];

/// Values of `position` other than absolute and static.
pub(super) const RELATIVE: f32 = 1.0;
pub(super) const FIXED: f32 = 2.0;

/// What a property is set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    /// Inherited, or not set.
    Inherit,
    /// Whether the property does what its name says: hides, clips, is positioned, keeps lines.
    Flag(bool),
    /// A plain number.
    Number(f32),
    /// A length.
    Length(Length),
    /// A colour; `None` for an unknown notation.
    Colour(Option<Colour>),
    /// A value of `display`.
    Display(Display),
    /// A background image; with its colour where it is a gradient of nearly one colour.
    Image(Option<Colour>),
    /// The hash of a name, and whether others follow it.
    Name(u64, bool),
}

/// The display types that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Display {
    /// Not shown.
    None,
    /// On lines of its own.
    Block,
    /// On lines of its own, with what is in it side by side.
    Row,
    /// Anything else.
    Inline,
}

/// One declaration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Declaration {
    pub(super) property: Property,
    pub(super) value: Value,
    pub(super) important: bool,
}

impl Declaration {
    /// Whether it could show hidden text again.
    pub(super) fn may_show(&self) -> bool {
        !matches!(
            self.property,
            Property::Background
                | Property::BackgroundImage
                | Property::BackgroundClip
                | Property::MarginLeft
                | Property::MarginTop
                | Property::PaddingLeft
                | Property::PaddingTop
                | Property::WhiteSpace
                | Property::NoWrap
                | Property::Aside
        )
    }
}
