//! Whether rules within `@media`, `@supports` and similar apply: on a desktop screen, always, or never.

use super::declaration;
use super::length::Length;

/// Screen widths in pixels: the assumed desktop, and the range of all screens.
const DESKTOP: f32 = 1000.0;
const NARROWEST: f32 = 320.0;
const WIDEST: f32 = 1920.0;

/// Where a rule applies, from never to always.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MediaMatch {
    Never,
    /// Perhaps somewhere.
    Unknown,
    OnDesktops,
    Always,
}

/// Where the rules in an at-rule apply.
pub(super) fn at_rule(prelude: &str) -> MediaMatch {
    let (name, _) = prelude.split_once([' ', '(']).unwrap_or((prelude, ""));
    match name {
        "media" => holds(prelude.get(name.len()..).unwrap_or_default()),
        "supports" => supports(prelude.get(name.len()..).unwrap_or_default()),
        // Their rules are weighed differently in the cascade.
        "layer" | "scope" | "container" | "-moz-document" | "document" | "nest" => MediaMatch::Unknown,
        _ => MediaMatch::Never,
    }
}

/// Evaluates `@supports`: certain only for declarations that are parsed here as well.
fn supports(condition: &str) -> MediaMatch {
    let condition = condition.trim();
    let (wanted, inside) = match condition.strip_prefix("not ") {
        Some(rest) => (false, rest.trim()),
        None => (true, condition),
    };
    let declared = inside.strip_prefix('(').and_then(|inside| inside.strip_suffix(')'));
    match declared {
        Some(declared) if !declaration::parse_declarations(declared, false).is_empty() => {
            if wanted {
                MediaMatch::Always
            } else {
                MediaMatch::Never
            }
        }
        _ => MediaMatch::Unknown,
    }
}

/// Where a list of media queries applies.
pub(super) fn holds(queries: &str) -> MediaMatch {
    if queries.trim().is_empty() {
        return MediaMatch::Always;
    }
    queries.split(',').map(query_holds).max().unwrap_or(MediaMatch::Always)
}

fn query_holds(query: &str) -> MediaMatch {
    let query = query.trim();
    if let Some(negated) = query.strip_prefix("not ") {
        if negated.trim_start().starts_with("not ") {
            return MediaMatch::Unknown;
        }
        return match query_holds(negated) {
            MediaMatch::Never if negated.contains('(') => MediaMatch::OnDesktops,
            MediaMatch::Never => MediaMatch::Always,
            MediaMatch::Unknown => MediaMatch::Unknown,
            MediaMatch::OnDesktops | MediaMatch::Always => MediaMatch::Never,
        };
    }
    let query = query.strip_prefix("only ").unwrap_or(query);
    query.split(" and ").map(condition_holds).min().unwrap_or(MediaMatch::Always)
}

fn condition_holds(condition: &str) -> MediaMatch {
    let condition = condition.trim();
    let Some(feature) = condition.strip_prefix('(').and_then(|inside| inside.strip_suffix(')')) else {
        if condition.contains('(') {
            return MediaMatch::Unknown;
        }
        return if matches!(condition, "all" | "screen") { MediaMatch::Always } else { MediaMatch::Never };
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
        | ("color", "") => MediaMatch::Always,
        ("orientation", "landscape")
        | ("hover" | "any-hover", "hover")
        | ("pointer" | "any-pointer", "fine") => MediaMatch::OnDesktops,
        ("prefers-color-scheme", "dark")
        | ("prefers-reduced-motion", "reduce" | "")
        | ("orientation", "portrait")
        | ("hover" | "any-hover", "none")
        | ("pointer" | "any-pointer", "none" | "coarse")
        | ("prefers-contrast", "more" | "less" | "")
        | ("forced-colors" | "inverted-colors" | "monochrome" | "grid", _) => MediaMatch::Never,
        _ if name.starts_with("-ms-") => MediaMatch::Never,
        _ => range_holds(name, value),
    }
}

/// Where a minimum or maximum of the screen applies.
fn range_holds(name: &str, limit: &str) -> MediaMatch {
    let limit = limit.trim();
    if let Some(ratio) = name.strip_suffix("device-pixel-ratio").or(name.strip_suffix("resolution")) {
        let number = limit.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let one = if limit.ends_with("dpi") { 96.0 } else { 1.0 };
        let low = number.parse::<f32>().is_ok_and(|value| value <= one);
        return if low && ratio.contains("min") { MediaMatch::Always } else { MediaMatch::Never };
    }
    let Some(limit) = Length::parse(limit).and_then(|length| length.px(16.0)) else {
        return MediaMatch::Unknown;
    };
    let (always, on_desktops) = match name {
        "min-width" | "min-device-width" | "min-height" | "min-device-height" => {
            (limit <= NARROWEST, limit <= DESKTOP)
        }
        "max-width" | "max-device-width" | "max-height" | "max-device-height" => {
            (limit >= WIDEST, limit >= DESKTOP)
        }
        _ => return MediaMatch::Unknown,
    };
    match (always, on_desktops) {
        (true, _) => MediaMatch::Always,
        (false, true) => MediaMatch::OnDesktops,
        (false, false) => MediaMatch::Never,
    }
}
