//! Parsing of the CSS declarations that can hide text.
//!
//! Other declarations are skipped. A value that a browser would refuse is refused here too, so that
//! `display:none;display:nonsense` stays hidden.

use super::animation;
use super::brackets::split_outside;
use super::colour::Colour;
use super::length::Length;
use super::property::{ALL, Declaration, Display, FIXED, Property, RELATIVE, Value};
use super::shape;

/// Reads declarations from prepared CSS (see [`super::prepare`]). Unitless lengths count in quirks mode.
pub(super) fn parse_declarations(text: &str, quirks: bool) -> Vec<Declaration> {
    let mut declarations = Vec::new();
    for part in split_outside(text, ';') {
        let Some((name, value)) = part.split_once(':') else { continue };
        let value = value.trim();
        let (value, important) = match value.rsplit_once('!') {
            Some((before, "important")) => (before.trim_end(), true),
            Some((before, word)) if word.trim() == "important" => (before.trim_end(), true),
            _ => (value, false),
        };
        parse_declaration(name.trim(), value, &mut |property, value| {
            let is_bare = matches!(value, Value::Length(Length::Bare(_)));
            if quirks || !is_bare || property == Property::LineHeight {
                declarations.push(Declaration { property, value, important });
            }
        });
    }
    declarations
}

fn parse_declaration(name: &str, text: &str, set: &mut impl FnMut(Property, Value)) {
    if matches!(text, "inherit" | "initial" | "unset" | "revert" | "revert-layer") {
        let value = |property: Property| if text == "initial" { initial(property) } else { Value::Inherit };
        match simple_property(name) {
            Some(property) => set(property, value(property)),
            None if name == "all" => ALL.into_iter().for_each(|property| set(property, value(property))),
            None => {}
        }
        return;
    }
    match name {
        "background" => parse_background(text, set),
        "font" => parse_font(text, set),
        "margin" => parse_sides(text, Property::MarginTop, Property::MarginLeft, set),
        "padding" => parse_sides(text, Property::PaddingTop, Property::PaddingLeft, set),
        "inset" => parse_sides(text, Property::Top, Property::Left, set),
        "overflow" | "overflow-x" | "overflow-y" => parse_overflow(text, set),
        "white-space" => {
            set(Property::WhiteSpace, Value::Flag(text.starts_with("pre") || text == "break-spaces"));
            set(Property::NoWrap, Value::Flag(matches!(text, "nowrap" | "pre")));
        }
        "animation" | "-webkit-animation" => animation::parse_shorthand(text, set),
        _ => {
            if let Some(property) = simple_property(name)
                && let Some(value) = parse_value(property, text)
            {
                set(property, value);
            }
        }
    }
}

/// The property of a name that stands for one property only.
fn simple_property(name: &str) -> Option<Property> {
    Some(match name {
        "display" => Property::Display,
        "visibility" => Property::Visibility,
        "opacity" | "-moz-opacity" | "-khtml-opacity" | "-webkit-opacity" => Property::Opacity,
        "font-size" => Property::FontSize,
        "line-height" | "mso-line-height-alt" => Property::LineHeight,
        "color" => Property::Ink,
        "-webkit-text-fill-color" => Property::Fill,
        "background-color" | "background" => Property::Background,
        "background-image" => Property::BackgroundImage,
        "background-clip" | "-webkit-background-clip" => Property::BackgroundClip,
        "animation-name" | "-webkit-animation-name" => Property::AnimationName,
        "animation-duration" | "-webkit-animation-duration" => Property::AnimationDuration,
        "animation-delay" | "-webkit-animation-delay" => Property::AnimationDelay,
        "animation-iteration-count" | "-webkit-animation-iteration-count" => Property::AnimationCount,
        "animation-fill-mode" | "-webkit-animation-fill-mode" => Property::AnimationFill,
        "animation-direction" | "-webkit-animation-direction" => Property::AnimationDirection,
        "animation-play-state" | "-webkit-animation-play-state" => Property::AnimationPaused,
        "animation-timeline" => Property::AnimationTimeline,
        "float" => Property::Aside,
        "text-wrap" | "text-wrap-mode" => Property::NoWrap,
        "width" | "inline-size" => Property::Width,
        "height" | "block-size" => Property::Height,
        "max-width" | "max-inline-size" => Property::MaxWidth,
        "max-height" | "max-block-size" => Property::MaxHeight,
        "overflow" => Property::Overflow,
        "position" => Property::Position,
        "left" | "inset-inline-start" => Property::Left,
        "top" | "inset-block-start" => Property::Top,
        "right" | "inset-inline-end" => Property::Right,
        "bottom" | "inset-block-end" => Property::Bottom,
        "text-indent" => Property::TextIndent,
        "margin-left" | "margin-inline-start" => Property::MarginLeft,
        "margin-top" | "margin-block-start" => Property::MarginTop,
        "padding-left" | "padding-inline-start" => Property::PaddingLeft,
        "padding-top" | "padding-block-start" => Property::PaddingTop,
        "letter-spacing" => Property::LetterSpacing,
        "clip" => Property::Clip,
        "clip-path" | "-webkit-clip-path" => Property::ClipPath,
        "transform" | "-webkit-transform" | "-ms-transform" | "-moz-transform" => Property::Transform,
        "scale" => Property::Scale,
        "translate" => Property::Translate,
        "filter" | "-ms-filter" | "-webkit-filter" => Property::Filter,
        "mso-hide" => Property::MsoHide,
        "content-visibility" => Property::ContentVisibility,
        "mask" | "mask-image" | "-webkit-mask" | "-webkit-mask-image" => Property::Mask,
        "-webkit-text-security" | "text-security" => Property::TextSecurity,
        "white-space" => Property::WhiteSpace,
        "zoom" => Property::Zoom,
        _ => return None,
    })
}

fn parse_value(property: Property, text: &str) -> Option<Value> {
    match property {
        Property::Display => parse_display(text).map(Value::Display),
        Property::Visibility => match text {
            "hidden" | "collapse" => Some(Value::Flag(true)),
            "visible" => Some(Value::Flag(false)),
            _ => None,
        },
        Property::Opacity | Property::Zoom => parse_share(text).map(Value::Number),
        Property::FontSize => parse_font_size(text).map(Value::Length),
        Property::Ink | Property::Fill | Property::Background => parse_colour(text),
        Property::BackgroundImage => parse_image(text),
        Property::BackgroundClip => Some(Value::Flag(text == "text")),
        Property::AnimationName
        | Property::AnimationDuration
        | Property::AnimationDelay
        | Property::AnimationCount
        | Property::AnimationFill
        | Property::AnimationDirection
        | Property::AnimationPaused
        | Property::AnimationTimeline => animation::parse_value(property, text),
        Property::Aside => Some(Value::Flag(matches!(text, "left" | "right"))),
        Property::NoWrap => Some(Value::Flag(text == "nowrap")),
        Property::Position => match text {
            "absolute" => Some(Value::Flag(true)),
            "fixed" => Some(Value::Number(FIXED)),
            "relative" | "sticky" => Some(Value::Number(RELATIVE)),
            "static" => Some(Value::Flag(false)),
            _ => None,
        },
        Property::Clip => Some(Value::Flag(shape::clip_hides(text))),
        Property::ClipPath => Some(Value::Flag(shape::clip_path_hides(text))),
        Property::Transform => Some(Value::Flag(shape::transform_hides(text))),
        Property::Scale => Some(Value::Flag(shape::scale_hides(text))),
        Property::Translate => Some(Value::Flag(shape::translate_hides(text))),
        Property::Filter => Some(Value::Flag(shape::filter_hides(text))),
        Property::MsoHide => Some(Value::Flag(text == "all")),
        Property::ContentVisibility => Some(Value::Flag(text == "hidden")),
        Property::Mask => Some(Value::Flag(shape::mask_hides(text))),
        Property::TextSecurity => Some(Value::Flag(text != "none")),
        Property::Width
        | Property::Height
        | Property::MaxWidth
        | Property::MaxHeight
        | Property::LineHeight => not_negative(text).and_then(Length::parse).map(Value::Length),
        _ => Length::parse(text).map(Value::Length),
    }
}

/// A length that must not be negative: browsers refuse that, except as the result of `calc()`.
fn not_negative(text: &str) -> Option<&str> {
    (!text.starts_with('-')).then_some(text)
}

fn parse_display(text: &str) -> Option<Display> {
    Some(match text.split_ascii_whitespace().next()? {
        "none" => Display::None,
        "block" | "table" | "list-item" | "flow-root" => Display::Block,
        "flex" | "grid" | "table-row" | "-webkit-box" | "-webkit-flex" | "-ms-flexbox" => Display::Row,
        "inline" | "inline-block" | "inline-flex" | "inline-grid" | "inline-table" | "contents" | "ruby"
        | "flow" | "run-in" | "-webkit-inline-box" => Display::Inline,
        table if table.starts_with("table-") => Display::Inline,
        _ => return None,
    })
}

fn parse_share(text: &str) -> Option<f32> {
    match text.strip_suffix('%') {
        Some(share) => share.trim().parse::<f32>().ok().map(|share| share / 100.0),
        None => match Length::parse(text)? {
            Length::Px(value) | Length::Bare(value) => Some(value),
            Length::Percent(share) => Some(share / 100.0),
            _ => None,
        },
    }
}

/// A shorthand for four sides, of which top and left matter here.
fn parse_sides(text: &str, top: Property, left: Property, set: &mut impl FnMut(Property, Value)) {
    let sides: Vec<Option<Length>> =
        split_outside(text, ' ').filter(|side| !side.is_empty()).take(5).map(Length::parse).collect();
    // One invalid value invalidates the whole declaration, in browsers too.
    let below = top == Property::PaddingTop && split_outside(text, ' ').any(|side| side.starts_with('-'));
    if sides.len() > 4 || sides.iter().any(Option::is_none) || below {
        return;
    }
    let upper = sides.first().copied().flatten();
    let leftmost = sides.get(3).or(sides.get(1)).or(sides.first()).copied().flatten();
    for (property, side) in [(top, upper), (left, leftmost)] {
        if let Some(side) = side {
            set(property, Value::Length(side));
        }
    }
}

fn parse_overflow(text: &str, set: &mut impl FnMut(Property, Value)) {
    let known = |word: &str| matches!(word, "hidden" | "clip" | "auto" | "scroll" | "visible" | "overlay");
    let words: Vec<&str> = text.split_ascii_whitespace().take(3).collect();
    if words.is_empty() || words.len() > 2 || !words.iter().all(|word| known(word)) {
        return;
    }
    set(Property::Overflow, Value::Flag(words.iter().any(|word| *word != "visible")));
    let scrolls = words.iter().any(|word| matches!(*word, "auto" | "scroll" | "overlay"));
    set(Property::Scrolls, Value::Flag(scrolls));
}

/// The initial value of a property. Most behave as if they were not set.
fn initial(property: Property) -> Value {
    match property {
        Property::Ink => Value::Colour(Some(Colour::BLACK)),
        Property::FontSize => Value::Length(Length::Px(16.0)),
        Property::TextIndent => Value::Length(Length::Px(0.0)),
        Property::LineHeight | Property::LetterSpacing => Value::Length(Length::Auto),
        Property::Visibility | Property::WhiteSpace | Property::NoWrap | Property::TextSecurity => {
            Value::Flag(false)
        }
        _ => Value::Inherit,
    }
}

fn parse_font_size(text: &str) -> Option<Length> {
    Some(match text {
        "xx-small" => Length::Px(9.0),
        "x-small" => Length::Px(10.0),
        "small" => Length::Px(13.0),
        "medium" => Length::Px(16.0),
        "large" | "x-large" | "xx-large" | "xxx-large" => Length::Px(20.0),
        "smaller" => Length::Em(0.83),
        "larger" => Length::Em(1.2),
        _ => return Length::parse(not_negative(text)?).filter(|length| *length != Length::Auto),
    })
}

fn parse_colour(text: &str) -> Option<Value> {
    if text == "currentcolor" {
        return Some(Value::Inherit);
    }
    let known = Colour::parse(text);
    let notation = text.ends_with(')') && !text.starts_with("rgb") && !text.starts_with("hsl");
    (known.is_some() || notation).then_some(Value::Colour(known))
}

/// An image or a gradient; a gradient of similar colours counts as that colour.
fn parse_image(text: &str) -> Option<Value> {
    if text == "none" {
        return Some(Value::Inherit);
    }
    if !text.contains('(') {
        return None;
    }
    let Some((_, inside)) = text.split_once("gradient(") else { return Some(Value::Image(None)) };
    let colours: Vec<Colour> = split_outside(inside.trim_end_matches(')'), ',')
        .filter_map(|stop| Colour::parse(stop).or_else(|| Colour::parse(stop.trim().split(' ').next()?)))
        .take(8)
        .collect();
    let first = colours.first().copied();
    let alike = first.is_some_and(|first| colours.iter().all(|colour| colour.vanishes_on(first)));
    Some(Value::Image(first.filter(|_| alike)))
}

fn parse_background(text: &str, set: &mut impl FnMut(Property, Value)) {
    let mut colour = Value::Colour(Some(Colour::TRANSPARENT));
    let mut image = Value::Inherit;
    for word in split_outside(text, ' ').filter(|word| !word.is_empty()).take(24) {
        if word.starts_with("url(") || word.contains("gradient(") {
            image = parse_image(word).unwrap_or(image);
        } else if let Some(found) = parse_colour(word) {
            colour = found;
        }
    }
    set(Property::Background, colour);
    set(Property::BackgroundImage, image);
}

/// The `font` shorthand: the size is the first length, and the height of lines may follow it after a slash.
fn parse_font(text: &str, set: &mut impl FnMut(Property, Value)) {
    for word in text.split_ascii_whitespace().take(8) {
        let (size, height) = word.split_once('/').map_or((word, None), |(size, height)| (size, Some(height)));
        let is_weight = size.len() == 3 && size.ends_with("00");
        let bare = |length: &Length| matches!(length, Length::Bare(_));
        if let Some(length) =
            parse_font_size(size).filter(|length| !is_weight && size != "normal" && !bare(length))
        {
            set(Property::FontSize, Value::Length(length));
            if let Some(height) = height.and_then(Length::parse) {
                set(Property::LineHeight, Value::Length(height));
            }
            return;
        }
    }
}
