//! CSS clips, transforms, masks and filters that make an element invisible.

use super::brackets::{closing, split_outside};
use super::colour::Colour;
use super::length::Length;

/// Further left or up than this is off the page and cannot be scrolled to.
pub(super) const OFF_PAGE: f32 = -300.0;

/// Further than this to the right or below is off the page for practical purposes.
pub(super) const FAR_AWAY: f32 = 4000.0;

/// A scale or size below this is invisible.
const NEARLY_NOTHING: f32 = 0.05;

/// Whether a length moves something off the page.
pub(super) fn moves_away(length: Length, font_size: f32) -> bool {
    match length {
        Length::Percent(share) => share <= -100.0 || share >= 1000.0,
        // Percentages of a page of ordinary width.
        Length::Mixed { percent, .. } if percent.abs() > f32::EPSILON => {
            length.of(font_size, 1000.0).is_some_and(|px| px <= -1000.0 || px >= FAR_AWAY)
        }
        other => other.px(font_size).is_some_and(|px| px <= OFF_PAGE || px >= FAR_AWAY),
    }
}

/// Functions of one value that are read, and arguments of one function.
const MAX_FUNCTIONS: usize = 64;
const MAX_ARGUMENTS: usize = 64;

/// The functions in a value, as names with their arguments.
fn functions(text: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (before, after) = rest.split_once('(')?;
        let end = closing(after).unwrap_or(after.len());
        let (inside, later) = after.split_at_checked(end)?;
        rest = later.get(1..).unwrap_or_default();
        let name = before.rsplit([' ', ',']).find(|word| !word.is_empty()).unwrap_or_default();
        Some((name, words(inside)))
    })
    .take(MAX_FUNCTIONS)
}

/// The words of a value; functions in it stay whole.
fn words(text: &str) -> Vec<&str> {
    split_outside(text, ',')
        .flat_map(|part| split_outside(part, ' '))
        .filter(|part| !part.is_empty())
        .take(MAX_ARGUMENTS)
        .collect()
}

fn px(text: &str) -> Option<f32> {
    Length::parse(text)?.px(16.0)
}

fn is_nothing(text: &str) -> bool {
    match Length::parse(text) {
        Some(Length::Percent(share)) => share.abs() < 1.0,
        Some(length) => length.px(16.0).is_some_and(|value| value.abs() < NEARLY_NOTHING),
        None => false,
    }
}

/// Whether `clip` hides everything: a rectangle at most a pixel wide or high.
pub(super) fn clip_hides(text: &str) -> bool {
    functions(text).any(|(name, sides)| {
        let sides: Vec<f32> = sides.iter().filter_map(|side| px(side)).collect();
        match (name, sides.as_slice()) {
            ("rect", [top, right, bottom, left]) => bottom - top <= 1.0 || right - left <= 1.0,
            _ => false,
        }
    })
}

/// Whether `clip-path` hides everything.
pub(super) fn clip_path_hides(text: &str) -> bool {
    functions(text).any(|(name, arguments)| match name {
        "inset" => inset_hides(&arguments),
        "circle" => arguments.first().is_some_and(|radius| is_nothing(radius)),
        "ellipse" => arguments.iter().take(2).any(|radius| is_nothing(radius)),
        "rect" => arguments.len() >= 4 && arguments.iter().take(4).all(|side| is_nothing(side)),
        "xywh" => arguments.iter().skip(2).take(2).any(|side| is_nothing(side)),
        "polygon" => polygon_hides(text),
        _ => false,
    })
}

fn inset_hides(arguments: &[&str]) -> bool {
    let side = |index: usize| {
        arguments.iter().take_while(|part| **part != "round").nth(index).and_then(|part| match Length::parse(
            part,
        )? {
            Length::Percent(share) => Some(share),
            other => other.px(16.0).map(|px| if px >= 1000.0 { 100.0 } else { 0.0 }),
        })
    };
    let Some(top) = side(0) else { return false };
    let right = side(1).unwrap_or(top);
    let bottom = side(2).unwrap_or(top);
    let left = side(3).unwrap_or(right);
    top + bottom >= 99.0 || left + right >= 99.0
}

/// Whether all corners are on one vertical or horizontal line.
fn polygon_hides(text: &str) -> bool {
    let Some((_, inside)) = text.split_once('(') else { return false };
    let corners: Vec<(&str, &str)> = split_outside(inside.trim_end_matches(')'), ',')
        .take(64)
        .filter_map(|corner| {
            let mut words = corner.split_ascii_whitespace();
            Some((words.next()?, words.next()?))
        })
        .collect();
    let Some((x, y)) = corners.first() else { return false };
    corners.iter().all(|corner| corner.0 == *x) || corners.iter().all(|corner| corner.1 == *y)
}

/// Whether the `scale` property shrinks to nothing.
pub(super) fn scale_hides(text: &str) -> bool {
    words(text).iter().take(2).any(|part| is_nothing(part))
}

/// Whether the `translate` property moves off the page.
pub(super) fn translate_hides(text: &str) -> bool {
    moves(&words(text))
}

fn moves(parts: &[&str]) -> bool {
    parts.iter().filter_map(|part| Length::parse(part)).any(|length| match length {
        Length::Percent(share) => share <= -150.0 || share >= 1000.0,
        other => moves_away(other, 16.0),
    })
}

/// Whether a transform shrinks to nothing, turns edge-on or moves off the page.
pub(super) fn transform_hides(text: &str) -> bool {
    functions(text).any(|(name, arguments)| match name {
        "scale" | "scale3d" | "scalex" | "scaley" => arguments.iter().take(2).any(|part| is_nothing(part)),
        "matrix" => {
            let zero = |index: usize| arguments.get(index).is_some_and(|part| is_nothing(part));
            (zero(0) && zero(1)) || (zero(2) && zero(3))
        }
        "rotatex" | "rotatey" => arguments
            .iter()
            .any(|part| matches!(*part, "90deg" | "-90deg" | "270deg" | "0.25turn" | "100grad")),
        "translate" | "translatex" | "translatey" | "translate3d" => moves(&arguments),
        _ => false,
    })
}

/// Whether a mask hides everything: a transparent gradient, or an image, which is not fetched and then hides all.
pub(super) fn mask_hides(text: &str) -> bool {
    let Some((_, inside)) = text.split_once("gradient(") else { return text.contains("url(") };
    let inside = inside.strip_suffix(')').unwrap_or(inside);
    let colour = |stop: &str| Colour::parse(stop).or_else(|| Colour::parse(stop.trim().split(' ').next()?));
    let stops: Vec<Colour> = split_outside(inside, ',').take(16).filter_map(colour).collect();
    !stops.is_empty() && stops.iter().all(|stop| stop.alpha <= 0.1)
}

/// Whether a filter makes text invisible (`opacity(0)`, the old `alpha(opacity=0)`) or unreadable (blur).
pub(super) fn filter_hides(text: &str) -> bool {
    functions(text).any(|(name, arguments)| {
        let first = arguments.first().copied().unwrap_or("1");
        match name.rsplit(['.', ':']).next().unwrap_or(name) {
            "opacity" => {
                let share = first.strip_suffix('%').map_or_else(
                    || first.parse().ok(),
                    |share| share.parse::<f32>().ok().map(|value| value / 100.0),
                );
                share.is_some_and(|share| share <= 0.1)
            }
            "blur" => {
                matches!(Length::parse(first), Some(Length::Px(radius) | Length::Em(radius)) if radius >= 4.0)
            }
            "alpha" => first
                .strip_prefix("opacity=")
                .and_then(|value| value.parse::<f32>().ok())
                .is_some_and(|value| value <= 10.0),
            _ => false,
        }
    })
}
