//! For whom the rules within `@media` and the like hold: for a reader at a desk, for everybody, or for nobody.

use super::declaration;
use super::length::Length;

/// The screen of our reader, in pixels: the width, and the range that all readers are within.
const DESKTOP: f32 = 1000.0;
const NARROWEST: f32 = 320.0;
const WIDEST: f32 = 1920.0;

/// For whom a rule holds, from nobody to everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holds {
    Never,
    /// For somebody perhaps.
    Unknown,
    OnDesktops,
    Always,
}

/// For whom the rules in an at-rule hold.
pub(super) fn at_rule(prelude: &str) -> Holds {
    let (name, _) = prelude.split_once([' ', '(']).unwrap_or((prelude, ""));
    match name {
        "media" => holds(prelude.get(name.len()..).unwrap_or_default()),
        "supports" => supports(prelude.get(name.len()..).unwrap_or_default()),
        // Rules in them are weighed in other ways than those outside.
        "layer" | "scope" | "container" | "-moz-document" | "document" | "nest" => Holds::Unknown,
        _ => Holds::Never,
    }
}

/// Whether browsers can do what is asked for: certain only for what can be read here as well.
fn supports(condition: &str) -> Holds {
    let condition = condition.trim();
    let (wanted, inside) = match condition.strip_prefix("not ") {
        Some(rest) => (false, rest.trim()),
        None => (true, condition),
    };
    let declared = inside.strip_prefix('(').and_then(|inside| inside.strip_suffix(')'));
    match declared {
        Some(declared) if !declaration::parse_declarations(declared, false).is_empty() => {
            if wanted {
                Holds::Always
            } else {
                Holds::Never
            }
        }
        _ => Holds::Unknown,
    }
}

/// For whom a list of media queries holds.
pub(super) fn holds(queries: &str) -> Holds {
    if queries.trim().is_empty() {
        return Holds::Always;
    }
    queries.split(',').map(query_holds).max().unwrap_or(Holds::Always)
}

fn query_holds(query: &str) -> Holds {
    let query = query.trim();
    if let Some(negated) = query.strip_prefix("not ") {
        if negated.trim_start().starts_with("not ") {
            return Holds::Unknown;
        }
        return match query_holds(negated) {
            Holds::Never if negated.contains('(') => Holds::OnDesktops,
            Holds::Never => Holds::Always,
            Holds::Unknown => Holds::Unknown,
            Holds::OnDesktops | Holds::Always => Holds::Never,
        };
    }
    let query = query.strip_prefix("only ").unwrap_or(query);
    query.split(" and ").map(condition_holds).min().unwrap_or(Holds::Always)
}

fn condition_holds(condition: &str) -> Holds {
    let condition = condition.trim();
    let Some(feature) = condition.strip_prefix('(').and_then(|inside| inside.strip_suffix(')')) else {
        if condition.contains('(') {
            return Holds::Unknown;
        }
        return if matches!(condition, "all" | "screen") { Holds::Always } else { Holds::Never };
    };
    if let Some((name, limit)) = feature.split_once(">=").or_else(|| feature.split_once('>')) {
        return range_holds(&format!("min-{}", name.trim()), limit);
    }
    if let Some((name, limit)) = feature.split_once("<=").or_else(|| feature.split_once('<')) {
        return range_holds(&format!("max-{}", name.trim()), limit);
    }
    let (name, value) =
        feature.split_once(':').map_or((feature, ""), |(name, value)| (name.trim(), value.trim()));
    match (name, value) {
        ("prefers-color-scheme", "light")
        | ("prefers-reduced-motion" | "prefers-contrast", "no-preference")
        | ("color", "") => Holds::Always,
        ("orientation", "landscape")
        | ("hover" | "any-hover", "hover")
        | ("pointer" | "any-pointer", "fine") => Holds::OnDesktops,
        ("prefers-color-scheme", "dark")
        | ("prefers-reduced-motion", "reduce" | "")
        | ("orientation", "portrait")
        | ("hover" | "any-hover", "none")
        | ("pointer" | "any-pointer", "none" | "coarse")
        | ("prefers-contrast", "more" | "less" | "")
        | ("forced-colors" | "inverted-colors" | "monochrome" | "grid", _) => Holds::Never,
        _ if name.starts_with("-ms-") => Holds::Never,
        _ => range_holds(name, value),
    }
}

/// For whom a lower or upper bound on the screen holds.
fn range_holds(name: &str, limit: &str) -> Holds {
    let limit = limit.trim();
    if let Some(ratio) = name.strip_suffix("device-pixel-ratio").or(name.strip_suffix("resolution")) {
        let number = limit.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let one = if limit.ends_with("dpi") { 96.0 } else { 1.0 };
        let low = number.parse::<f32>().is_ok_and(|value| value <= one);
        return if low && ratio.contains("min") { Holds::Always } else { Holds::Never };
    }
    let Some(limit) = Length::parse(limit).and_then(|length| length.px(16.0)) else {
        return Holds::Unknown;
    };
    let (always, on_desktops) = match name {
        "min-width" | "min-device-width" | "min-height" | "min-device-height" => {
            (limit <= NARROWEST, limit <= DESKTOP)
        }
        "max-width" | "max-device-width" | "max-height" | "max-device-height" => {
            (limit >= WIDEST, limit >= DESKTOP)
        }
        _ => return Holds::Unknown,
    };
    match (always, on_desktops) {
        (true, _) => Holds::Always,
        (false, true) => Holds::OnDesktops,
        (false, false) => Holds::Never,
    }
}
