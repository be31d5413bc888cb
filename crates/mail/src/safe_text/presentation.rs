//! How elements look before any style sheet: presentational attributes and browser defaults.

use super::cascade::{Cascade, CascadedValues};
use super::colour::Colour;
use super::length::Length;
use super::property::{Property, Value};
use super::sheet::NOT_DISPLAYED;
use super::style::Style;
use super::tokens::Tag;

/// The longest description of a picture, or content of a form field, that is shown.
pub(super) const MAX_LABEL: usize = 200;

/// The first words of a label, on one line.
pub(super) fn label(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_LABEL).collect()
}

/// Whether a form field shows its value.
pub(super) fn shows_value(tag: &Tag<'_>) -> bool {
    let kind = tag.attribute("type").unwrap_or_default().trim().to_ascii_lowercase();
    !matches!(
        kind.as_str(),
        "hidden" | "password" | "checkbox" | "radio" | "file" | "image" | "color" | "range"
    )
}

/// Whether an image is as small as a tracking pixel.
pub(super) fn is_tiny_picture(tag: &Tag<'_>, cascaded: &CascadedValues, style: Style) -> bool {
    let tiny = |name: &str| {
        let length = tag.attribute(name).and_then(|value| Length::parse(value.trim()));
        length.and_then(|length| length.px(style.font_size)).is_some_and(|px| px <= 2.0)
    };
    tiny("width") || tiny("height") || cascaded.is_tiny(style.font_size)
}

/// Whether an element has a default style of its own.
pub(super) fn has_presentation(name: &str) -> bool {
    matches!(
        name,
        "mark"
            | "button"
            | "input"
            | "textarea"
            | "pre"
            | "listing"
            | "xmp"
            | "plaintext"
            | "small"
            | "dialog"
    )
}

/// Adds presentational attributes and browser defaults to the cascade.
pub(super) fn present(cascade: &mut Cascade, tag: &Tag<'_>) {
    let name = tag.name.as_str();
    let mut colour = |property: Property, attribute: &str| {
        if let Some(colour) = tag.attribute(attribute).and_then(|text| Colour::parse_attribute(&text)) {
            cascade.present(property, Value::Colour(Some(colour)));
        }
    };
    match name {
        "font" | "basefont" => colour(Property::Ink, "color"),
        "body" => colour(Property::Ink, "text"),
        _ => {}
    }
    colour(Property::Background, "bgcolor");
    if tag.attribute("background").is_some_and(|picture| !picture.is_empty()) {
        cascade.present(Property::BackgroundImage, Value::Image(None));
    }
    let (ink, background) = match name {
        "a" if tag.has("href") => (Some(Colour::LINK), None),
        "mark" => (Some(Colour::BLACK), Some(Colour::YELLOW)),
        "button" | "input" => (Some(Colour::BLACK), Some(Colour::BUTTON)),
        "textarea" => (Some(Colour::BLACK), Some(Colour::WHITE)),
        _ => (None, None),
    };
    for (property, default) in [(Property::Ink, ink), (Property::Background, background)] {
        if let Some(colour) = default {
            cascade.present(property, Value::Colour(Some(colour)));
        }
    }
    match name {
        "pre" | "textarea" | "listing" | "xmp" | "plaintext" => {
            cascade.present(Property::WhiteSpace, Value::Flag(true));
        }
        "small" => cascade.present(Property::FontSize, Value::Length(Length::Em(0.83))),
        _ => {}
    }
    if tag.has("hidden") || tag.has("popover") || (name == "dialog" && !tag.has("open")) {
        cascade.present(Property::Display, NOT_DISPLAYED);
    }
}
