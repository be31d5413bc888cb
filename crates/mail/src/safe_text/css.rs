//! Style sheets, read far enough to know which elements they hide from somebody at a desk.
//!
//! A rule that only holds on a phone, on paper or in the dark does not count. One that only holds on wide screens can
//! hide, but not show again what is hidden by default: readers on small screens would not see it.

use std::borrow::Cow;
use std::collections::HashMap;

use super::declaration::{self, Declaration};
use super::selector::Selector;

/// How deep blocks such as `@media` may be nested.
const MAX_NESTING: usize = 8;

/// The most custom properties that are kept, and the longest value of one.
const MAX_VARIABLES: usize = 1000;
const MAX_VARIABLE: usize = 120;

/// How many custom properties are put in for one block of declarations.
const MAX_SUBSTITUTIONS: usize = 64;

/// The screen of our reader, in pixels: the width, and the range that all readers are within.
const DESKTOP: f32 = 1000.0;
const NARROWEST: f32 = 320.0;
const WIDEST: f32 = 1920.0;

/// For whom a rule holds, from nobody to everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holds {
    Never,
    OnDesktops,
    Always,
}

/// A rule with one selector.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) selector: Selector,
    /// The index of its declarations.
    pub(super) block: usize,
    /// Whether it holds on wide screens only.
    pub(super) desktop_only: bool,
}

/// The rules of a document that concern what can be seen.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) list: Vec<Rule>,
    pub(super) blocks: Vec<Vec<Declaration>>,
    pub(super) variables: Variables,
}

impl Rules {
    /// Reads style sheets, each with the media it is for.
    pub(super) fn parse<'a>(sheets: impl Iterator<Item = (Cow<'a, str>, &'a str)>) -> Self {
        let prepared: Vec<(Holds, String)> =
            sheets.map(|(media, css)| (holds(&prepare(&media)), prepare(css))).collect();
        let mut rules = Self::default();
        for (_, css) in &prepared {
            rules.variables.collect(css);
        }
        for (media, css) in &prepared {
            rules.read(css, *media, 0);
        }
        rules
    }

    /// Reads the rules of a sheet, or of a block in it.
    fn read(&mut self, css: &str, media: Holds, nesting: usize) {
        let mut rest = css;
        while let Some(place) = rest.find(['{', ';', '}']) {
            let (prelude, after) = rest.split_at_checked(place).unwrap_or_default();
            let prelude = prelude.trim();
            if !after.starts_with('{') {
                rest = after.get(1..).unwrap_or_default();
                continue;
            }
            let body_length = block_length(after);
            let body = after.get(1..body_length.saturating_sub(1).max(1)).unwrap_or_default();
            rest = after.get(body_length..).unwrap_or_default();
            match prelude.strip_prefix('@') {
                Some(rule) if nesting < MAX_NESTING => self.read(body, media.min(at_rule(rule)), nesting + 1),
                None if media > Holds::Never => {
                    self.read_rule(prelude, body, media);
                    // Rules within rules: read as if they stood alone, which may hide more but never less.
                    if body.contains('{') && nesting < MAX_NESTING {
                        self.read(body, media, nesting + 1);
                    }
                }
                _ => {}
            }
        }
    }

    fn read_rule(&mut self, selectors: &str, body: &str, media: Holds) {
        let declarations = declaration::parse_declarations(&self.variables.substitute(body));
        if declarations.is_empty() {
            return;
        }
        let block = self.blocks.len();
        self.blocks.push(declarations);
        for selector in declaration::split_outside(selectors, ',').filter_map(Selector::parse) {
            self.list.push(Rule { selector, block, desktop_only: media == Holds::OnDesktops });
        }
    }
}

/// How long a block in braces is, to its end or to the end of the sheet.
fn block_length(css: &str) -> usize {
    let mut depth = 0_usize;
    for (place, byte) in css.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return place + 1;
        }
    }
    css.len() + 1
}

/// For whom the rules in an at-rule hold.
fn at_rule(prelude: &str) -> Holds {
    let (name, condition) = prelude.split_once([' ', '(']).unwrap_or((prelude, ""));
    match name {
        "media" => holds(prelude.get(name.len()..).unwrap_or_default()),
        "supports" if condition.trim_start().starts_with("not") => Holds::Never,
        "supports" | "layer" | "scope" => Holds::Always,
        _ => Holds::Never,
    }
}

/// For whom a list of media queries holds.
fn holds(queries: &str) -> Holds {
    if queries.trim().is_empty() {
        return Holds::Always;
    }
    queries.split(',').map(query_holds).max().unwrap_or(Holds::Always)
}

fn query_holds(query: &str) -> Holds {
    let query = query.trim();
    if let Some(negated) = query.strip_prefix("not ") {
        let other_medium =
            matches!(negated.trim(), "print" | "speech" | "tty" | "tv" | "projection" | "handheld");
        return if other_medium { Holds::Always } else { Holds::Never };
    }
    let query = query.strip_prefix("only ").unwrap_or(query);
    query.split(" and ").map(condition_holds).min().unwrap_or(Holds::Always)
}

fn condition_holds(condition: &str) -> Holds {
    let condition = condition.trim();
    let Some(feature) = condition.strip_prefix('(').and_then(|inside| inside.strip_suffix(')')) else {
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
        _ => range_holds(name, value),
    }
}

/// For whom a lower or upper bound on the screen holds.
fn range_holds(name: &str, limit: &str) -> Holds {
    if let Some(ratio) = name.strip_suffix("device-pixel-ratio") {
        let low = limit.trim().parse::<f32>().is_ok_and(|value| value <= 1.0);
        return if low && ratio.contains("min") { Holds::Always } else { Holds::Never };
    }
    let Some(limit) = declaration::Length::parse(limit).and_then(|length| length.px(16.0)) else {
        return Holds::Never;
    };
    let (always, on_desktops) = match name {
        "min-width" | "min-device-width" | "min-height" | "min-device-height" => {
            (limit <= NARROWEST, limit <= DESKTOP)
        }
        "max-width" | "max-device-width" | "max-height" | "max-device-height" => {
            (limit >= WIDEST, limit >= DESKTOP)
        }
        _ => (false, false),
    };
    match (always, on_desktops) {
        (true, _) => Holds::Always,
        (false, true) => Holds::OnDesktops,
        (false, false) => Holds::Never,
    }
}

/// Custom properties, as if each were set once for the whole document.
#[derive(Clone, Debug, Default)]
pub(super) struct Variables(HashMap<String, String>);

impl Variables {
    fn collect(&mut self, css: &str) {
        if !css.contains("--") {
            return;
        }
        for part in css.split(['{', '}', ';']).map(str::trim).filter(|part| part.starts_with("--")) {
            let Some((name, value)) = part.split_once(':') else { continue };
            if self.0.len() < MAX_VARIABLES && value.len() <= MAX_VARIABLE {
                self.0.insert(name.trim().to_owned(), value.trim().to_owned());
            }
        }
    }

    /// Puts the values in for `var(--name, fallback)`.
    fn substitute<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !text.contains("var(") {
            return Cow::Borrowed(text);
        }
        let mut done = String::with_capacity(text.len());
        let mut rest = text.to_owned();
        for _ in 0..MAX_SUBSTITUTIONS {
            let Some((before, after)) = rest.split_once("var(") else { break };
            let (inside, after) = after.split_once(')').unwrap_or((after, ""));
            let (name, fallback) = inside.split_once(',').unwrap_or((inside, ""));
            done.push_str(before);
            done.push_str(self.0.get(name.trim()).map_or(fallback.trim(), String::as_str));
            rest = after.to_owned();
        }
        done.push_str(&rest);
        Cow::Owned(done)
    }

    /// Reads the declarations of a style attribute.
    pub(super) fn read_attribute(&self, style: &str) -> Vec<Declaration> {
        let css = prepare(style);
        if !css.contains("var(") {
            return declaration::parse_declarations(&css);
        }
        let mut local = self.clone();
        local.collect(&css);
        declaration::parse_declarations(&local.substitute(&css))
    }
}

/// Marks characters that had a meaning of their own but stood escaped or in a string.
const MASK: u32 = 0xe000;

/// Takes comments and quotation marks out of CSS, resolves escapes, folds white space and case.
///
/// What stood escaped or in a string is masked, so that it cannot end a rule; [`unmask`] gives it back.
pub(super) fn prepare(css: &str) -> String {
    let mut out = String::with_capacity(css.len());
    let mut chars = css.chars().peekable();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match c {
            '\\' => push_masked(&mut out, read_escape(&mut chars)),
            '\n' if quote.is_some() => quote = None,
            _ if quote == Some(c) => quote = None,
            _ if quote.is_some() => push_masked(&mut out, Some(c)),
            '"' | '\'' => quote = Some(c),
            '/' if chars.peek() == Some(&'*') => {
                chars.next();
                skip_comment(&mut chars);
                push_space(&mut out);
            }
            _ if c.is_ascii_whitespace() || c == '\0' => push_space(&mut out),
            '-' if out.ends_with("<!-") => out.truncate(out.len().saturating_sub(3)),
            '>' if out.ends_with("--") => out.truncate(out.len().saturating_sub(2)),
            _ => out.push(c.to_ascii_lowercase()),
        }
    }
    out
}

fn push_space(out: &mut String) {
    if !out.ends_with(' ') {
        out.push(' ');
    }
}

fn push_masked(out: &mut String, c: Option<char>) {
    let Some(c) = c else { return };
    if c.is_ascii() && !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_') {
        out.extend(char::from_u32(MASK + u32::from(c)));
    } else {
        out.push(c.to_ascii_lowercase());
    }
}

/// Gives back what [`prepare`] masked.
pub(super) fn unmask(text: &str) -> String {
    text.chars()
        .map(|c| match u32::from(c).checked_sub(MASK) {
            Some(code) if code < 0x80 => char::from_u32(code).unwrap_or(c),
            _ => c,
        })
        .collect()
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_comment(chars: &mut Chars<'_>) {
    let mut after_star = false;
    for c in chars {
        if after_star && c == '/' {
            return;
        }
        after_star = c == '*';
    }
}

/// Reads what follows a backslash; an escaped line end is nothing.
fn read_escape(chars: &mut Chars<'_>) -> Option<char> {
    let mut value = 0;
    let mut digits = 0;
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(16)).filter(|_| digits < 6) {
        value = value * 16 + digit;
        digits += 1;
        chars.next();
    }
    if digits == 0 {
        return chars.next().filter(|c| *c != '\n');
    }
    chars.next_if(char::is_ascii_whitespace);
    Some(char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER))
}
