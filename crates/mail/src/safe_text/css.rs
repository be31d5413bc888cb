//! Style sheets, parsed far enough to know which elements they hide on a desktop screen.
//!
//! A rule for phones, print or dark mode does not count. One for wide screens can hide, but not show what is hidden by
//! default: it would stay hidden on small screens. A rule that is not understood hides nothing; if it would hide
//! something, that is noted.

use std::borrow::Cow;
use std::collections::HashMap;

use super::animation::{self, Animations};
use super::brackets::{closing, split_outside};
use super::declaration::parse_declarations;
use super::identifier::UnsupportedSelector;
use super::media::{self, MediaMatch};
use super::prepare::{SEAM, lower, prepare, without_seams};
use super::property::{Declaration, PROPERTIES};
use super::selector::{Parts, Selector};
use super::style;

/// How deep blocks such as `@media` may be nested.
const MAX_NESTING: usize = 8;

/// The most frames of all animations.
const MAX_FRAMES: usize = 2_000;

/// The most custom properties that are kept, and the longest value of one.
const MAX_VARIABLES: usize = 1000;
const MAX_VARIABLE: usize = 120;

/// `var()` substitutions in one block of declarations.
const MAX_SUBSTITUTIONS: usize = 64;

/// A rule with one selector.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) selector: Selector,
    /// The index of its declarations.
    pub(super) block: usize,
    /// Whether it applies on wide screens only.
    pub(super) desktop_only: bool,
}

/// The rules of a document that affect visibility.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(super) struct Rules {
    pub(super) list: Vec<Rule>,
    pub(super) parts: Parts,
    pub(super) blocks: Vec<Vec<Declaration>>,
    pub(super) variables: Variables,
    pub(super) animations: Animations,
    /// Whether some rule that is understood hides something.
    pub(super) hides: bool,
    /// Whether a rule that may hide, or show again, is not understood.
    pub(super) unread: bool,
    pub(super) unread_shows: bool,
    frames: usize,
    /// Whether numbers without a unit count as pixels.
    quirks: bool,
}

/// A style sheet in a document.
pub(super) struct Source<'a> {
    /// The media it is for.
    pub(super) media: Cow<'a, str>,
    /// Its text.
    pub(super) css: &'a str,
    /// Whether it certainly applies in its context.
    pub(super) counts: bool,
}

/// The context of a block.
#[derive(Clone, Copy)]
struct Context<'a> {
    media: MediaMatch,
    nesting: usize,
    /// The selectors of the rule around it.
    around: Option<&'a [Selector]>,
}

/// A piece of a style sheet.
enum Item<'a> {
    /// A block, with its prelude.
    Block(&'a str, &'a str),
    /// A statement or declaration without a block.
    Bare(&'a str),
}

impl Rules {
    /// Reads style sheets, each with the media it is for.
    pub(super) fn parse<'a>(sheets: impl Iterator<Item = Source<'a>>, quirks: bool) -> Self {
        let prepared: Vec<(MediaMatch, String)> = sheets
            .map(|source| {
                let media = media::holds(&lower(&prepare(&source.media)));
                let media = if source.counts { media } else { media.min(MediaMatch::Unknown) };
                (media, prepare(source.css))
            })
            .collect();
        let mut rules = Self { quirks, ..Self::default() };
        for (_, css) in &prepared {
            rules.variables.collect(css);
        }
        for (media, css) in &prepared {
            rules.read(css, Context { media: *media, nesting: 0, around: None });
        }
        rules
    }

    /// Reads the rules of a sheet, or of a block in it.
    fn read(&mut self, css: &str, context: Context<'_>) {
        let mut bare = String::new();
        for item in items(css, context.around.is_some()) {
            match item {
                Item::Block(prelude, body) => {
                    // Declarations before a nested rule are weaker than it.
                    self.add_bare(&mut bare, context);
                    match prelude.trim_start_matches([SEAM, ' ']).strip_prefix('@') {
                        Some(rule) => self.read_at_rule(&lower(rule), body, context),
                        None => self.read_rule(prelude, body, context),
                    }
                }
                Item::Bare(text) if context.around.is_some() && !text.starts_with('@') => {
                    bare.push_str(text);
                    bare.push(';');
                }
                Item::Bare(_) => {}
            }
        }
        self.add_bare(&mut bare, context);
    }

    /// Adds the bare declarations of a block to the rule around it.
    fn add_bare(&mut self, bare: &mut String, context: Context<'_>) {
        if let Some(around) = context.around.filter(|_| !bare.is_empty()) {
            self.add(bare, around, context.media);
            bare.clear();
        }
    }

    fn read_at_rule(&mut self, rule: &str, body: &str, context: Context<'_>) {
        let (name, argument) = rule.split_once([' ', '(']).unwrap_or((rule, ""));
        if name.trim_start_matches("-webkit-").trim_start_matches("-moz-") == "keyframes" {
            self.read_frames(argument.trim(), body, context.media);
            return;
        }
        let media = context.media.min(media::at_rule(rule));
        if context.nesting < MAX_NESTING {
            self.read(body, Context { media, nesting: context.nesting + 1, ..context });
        } else {
            self.unread = true;
        }
    }

    fn read_frames(&mut self, name: &str, body: &str, media: MediaMatch) {
        let mut frames = Vec::new();
        for item in items(body, false) {
            let Item::Block(places, body) = item else { continue };
            self.frames += 1;
            if self.frames > MAX_FRAMES || media < MediaMatch::OnDesktops {
                self.unread |= media != MediaMatch::Never;
                return;
            }
            let body = lower(body);
            let mut declarations = parse_declarations(&self.variables.substitute(&body), self.quirks);
            declarations.retain(|declaration| !declaration.important);
            keep_last(&mut declarations);
            for place in places.split(',').filter_map(|place| animation::parse_offset(&lower(place))) {
                frames.push((place, declarations.clone()));
            }
        }
        self.hides |= frames.iter().any(|(_, declarations)| style::hides_by_itself(declarations));
        self.animations.insert(animation::name(name), frames);
    }

    /// Reads a rule, and the rules in it.
    fn read_rule(&mut self, prelude: &str, body: &str, context: Context<'_>) {
        if context.media == MediaMatch::Never {
            return;
        }
        let (mut found, mut fault) = (Vec::new(), UnsupportedSelector::Never);
        for text in split_outside(prelude, ',') {
            let read = without_seams(text).ok_or(UnsupportedSelector::Unknown);
            match read.and_then(|text| self.parts.read(&text, context.around)) {
                Ok(selector) => found.push(selector),
                Err(UnsupportedSelector::Never) => {}
                Err(other) if fault != UnsupportedSelector::Unknown => fault = other,
                Err(_) => {}
            }
        }
        // Browsers ignore a whole rule because of one unknown selector.
        let is_known = match fault {
            UnsupportedSelector::Never => true,
            UnsupportedSelector::Foreign => found.is_empty(),
            UnsupportedSelector::Unknown => false,
        };
        let media = if is_known { context.media } else { MediaMatch::Unknown };
        if found.is_empty() && is_known {
            return;
        }
        if context.nesting < MAX_NESTING {
            self.read(body, Context { media, nesting: context.nesting + 1, around: Some(&found) });
        } else {
            self.unread = true;
        }
    }

    /// Adds declarations for some selectors.
    fn add(&mut self, declarations: &str, selectors: &[Selector], media: MediaMatch) {
        let text = lower(declarations);
        let mut declarations = parse_declarations(&self.variables.substitute(&text), self.quirks);
        if declarations.is_empty() {
            return;
        }
        keep_last(&mut declarations);
        let hides = style::hides_by_itself(&declarations);
        if media < MediaMatch::OnDesktops {
            self.unread |= hides && media == MediaMatch::Unknown;
            self.unread_shows |=
                media == MediaMatch::Unknown && declarations.iter().any(Declaration::may_show);
            return;
        }
        self.hides |= hides;
        let block = self.blocks.len();
        self.blocks.push(declarations);
        for selector in selectors {
            self.list.push(Rule {
                selector: *selector,
                block,
                desktop_only: media == MediaMatch::OnDesktops,
            });
        }
    }
}

/// Keeps the last declaration of each property, so that no block is long.
fn keep_last(declarations: &mut Vec<Declaration>) {
    let mut seen = [[false; PROPERTIES]; 2];
    declarations.reverse();
    declarations.retain(|one| {
        let slot =
            seen.get_mut(usize::from(one.important)).and_then(|row| row.get_mut(one.property as usize));
        slot.is_none_or(|slot| !std::mem::replace(slot, true))
    });
    declarations.reverse();
}

/// Splits a sheet into blocks and statements. Only within a rule a semicolon ends what does not begin with `@`.
fn items(css: &str, in_rule: bool) -> impl Iterator<Item = Item<'_>> {
    let mut rest = css;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        if rest.is_empty() {
            return None;
        }
        let ends_early = in_rule || rest.starts_with('@');
        let end = if ends_early { head_length(rest) } else { rest.find('{').unwrap_or(rest.len()) };
        let (head, after) = rest.split_at_checked(end)?;
        let Some(inside) = after.strip_prefix('{') else {
            rest = after.get(1..).unwrap_or_default();
            return Some(Item::Bare(head.trim()));
        };
        let length = block_length(inside);
        let body = inside.get(..length).unwrap_or_default();
        rest = inside.get(length + 1..).unwrap_or_default();
        Some(Item::Block(head.trim(), body))
    })
}

/// The length up to the first brace or semicolon outside brackets.
fn head_length(css: &str) -> usize {
    let mut depth = 0_usize;
    for (place, byte) in css.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'{' => return place,
            b';' | b'}' if depth == 0 => return place,
            _ => {}
        }
    }
    css.len()
}

/// The length of a block's content, up to its closing brace or the end of the sheet.
fn block_length(css: &str) -> usize {
    let mut depth = 0_usize;
    for (place, byte) in css.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => return place,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    css.len()
}

/// Custom properties, treated as global to the document.
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
                self.0.insert(lower(name.trim()), lower(value.trim()));
            }
        }
    }

    /// Substitutes `var(--name, fallback)`.
    fn substitute<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !text.contains("var(") {
            return Cow::Borrowed(text);
        }
        let mut done = String::with_capacity(text.len());
        let mut rest = text.to_owned();
        for _ in 0..MAX_SUBSTITUTIONS {
            let Some((before, after)) = rest.split_once("var(") else { break };
            let end = closing(after).unwrap_or(after.len());
            let (inside, after) = after.split_at_checked(end).unwrap_or((after, ""));
            let after = after.strip_prefix(')').unwrap_or_default();
            let (name, fallback) = inside.split_once(',').unwrap_or((inside, ""));
            done.push_str(before);
            done.push_str(self.0.get(name.trim()).map_or(fallback.trim(), String::as_str));
            rest = after.to_owned();
        }
        done.push_str(&rest);
        Cow::Owned(done)
    }

    /// Reads the declarations of a style attribute.
    pub(super) fn read_attribute(&self, style: &str, quirks: bool) -> Vec<Declaration> {
        let css = lower(&prepare(style));
        if !css.contains("var(") {
            return parse_declarations(&css, quirks);
        }
        let mut local = self.clone();
        local.collect(&css);
        parse_declarations(&local.substitute(&css), quirks)
    }
}
