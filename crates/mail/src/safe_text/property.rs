//! The properties of CSS that can hide text, and the values that they are set to.
//!
//! What a declaration means is said here; how it is read, and which one wins, is said elsewhere.

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

/// What a position comes to that is neither absolute nor none.
pub(super) const RELATIVE: f32 = 1.0;
pub(super) const FIXED: f32 = 2.0;

/// What a property is set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    /// As its parent has it, or as if it had never been set.
    Inherit,
    /// Whether the property does what its name says: hides, clips, is positioned, keeps lines.
    Flag(bool),
    /// A plain number.
    Number(f32),
    /// A length.
    Length(Length),
    /// A colour; `None` for one in a notation that is not known.
    Colour(Option<Colour>),
    /// How an element takes part in the layout.
    Display(Display),
    /// A picture as background; with its colour where it is a gradient of nearly one colour.
    Image(Option<Colour>),
    /// What stands for a name, and whether others follow it.
    Name(u64, bool),
}

/// The layouts that matter here.
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
    /// Whether it could show what something else hides.
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
