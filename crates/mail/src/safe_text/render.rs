//! Renders HTML into the text that a person sees, in one pass.
//!
//! The document is tokenised, styled and written element by element; no tree is built.

use std::borrow::Cow;

use url::Url;

use super::cascade::CascadedValues;
use super::element::{self, Traits};
use super::entities::{self, ReferenceContext};
use super::family::{Census, Family};
use super::flow::{self, Flow};
use super::link;
use super::presentation::{self, MAX_LABEL};
use super::property::{Display, Property};
use super::sheet::Sheet;
use super::style::Style;
use super::tokens::{Name, Tag, Token, Tokens};
use super::tree::{OpenElement, Role, Tree};
use super::window::Window;
use super::writer::Writer;

/// Bytes of HTML that are read.
pub(super) const MAX_HTML: usize = 1 << 20;

/// Links that are collected.
const MAX_LINKS: usize = 1000;

/// A link that a person sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VisibleLink {
    /// Its text, not yet cleaned.
    pub(crate) text: String,
    /// Where it leads.
    pub(crate) url: String,
}

/// The visible text of a document; still to be cleaned.
pub(super) struct RenderedText {
    pub(super) text: String,
    pub(super) links: Vec<VisibleLink>,
    /// Whether something that may hide text is not understood.
    pub(super) unread: bool,
}

/// Reads a document.
pub(super) fn render(html: &str) -> RenderedText {
    let html = html.get(..html.floor_char_boundary(MAX_HTML)).unwrap_or_default();
    let quirks = element::is_quirky(html);
    let sheet = Sheet::of(html, quirks);
    let mut census = Count::Not;
    if sheet.needs_census() {
        let mut counting = Renderer::new(Sheet::of("", true), true, Count::Now(Census::default()));
        counting.read(html);
        if let Count::Now(counted) = counting.census {
            census = Count::Done(counted);
        }
    }
    let styled = !sheet.is_empty();
    let mut renderer = Renderer::new(sheet, styled, census);
    renderer.quirks = quirks;
    renderer.read(html);
    let left_open = renderer.tree.finish();
    renderer.close(left_open);
    let unread = renderer.sheet.is_unsupported(renderer.hides);
    RenderedText { text: renderer.writer.into_text(), links: renderer.links, unread }
}

/// What is known about the number of elements.
pub(super) enum Count {
    /// Not needed.
    Not,
    /// Counting: this is the first pass.
    Now(Census),
    /// Complete: this is the second pass.
    Done(Census),
}

/// Reads a document.
#[expect(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(super) struct Renderer {
    pub(super) sheet: Sheet,
    pub(super) tree: Tree,
    writer: Writer,
    flow: Flow,
    base: Option<Url>,
    links: Vec<VisibleLink>,
    pub(super) has_head: bool,
    pub(super) has_body: bool,
    /// Whether style sheets use combinators or positions: then implied elements matter too.
    pub(super) styled: bool,
    pub(super) quirks: bool,
    /// Whether some text was left out because of its style.
    hides: bool,
    /// How many elements came so far.
    pub(super) elements: usize,
    pub(super) census: Count,
}

impl Renderer {
    fn new(sheet: Sheet, styled: bool, census: Count) -> Self {
        Self {
            sheet,
            tree: Tree::new(),
            writer: Writer::default(),
            flow: Flow::default(),
            base: None,
            links: Vec::new(),
            has_head: false,
            has_body: false,
            styled,
            quirks: true,
            hides: false,
            elements: 0,
            census,
        }
    }

    fn read(&mut self, html: &str) {
        let mut tokens = Tokens::new(html);
        while let Some(token) = tokens.next() {
            if self.writer.is_full() {
                break;
            }
            match token {
                Token::Text(text) => self.text(&entities::decode(text, ReferenceContext::Text)),
                Token::Raw(name, text) => self.raw(name, text),
                Token::Start(tag) => self.start(&tag),
                Token::End(name) => self.end(name),
            }
            tokens.foreign = self.in_foreign();
        }
    }

    fn in_foreign(&self) -> bool {
        self.tree.is_open("svg") || self.tree.is_open("math")
    }

    fn text(&mut self, text: &str) {
        let number = self.tree.family_mut().number;
        if let Count::Now(census) = &mut self.census {
            census.fill(number);
        }
        if text.bytes().all(|byte| byte.is_ascii_whitespace()) {
            let style = self.tree.style();
            if style.is_readable() {
                self.write(text, style);
            }
            return;
        }
        self.imply_body("");
        self.reopen();
        let folded = self.tree.top().is_some_and(|top| matches!(top.role, Role::Folded(_)));
        let style = self.tree.style();
        if style.is_readable() && !folded {
            self.write(text, style);
        } else {
            self.hides = true;
        }
    }

    /// Writes readable text, unless a box clips it.
    fn write(&mut self, text: &str, style: Style) {
        if matches!(self.census, Count::Now(_)) {
            return;
        }
        if style.window.is_none() {
            self.writer.text(text, style.keeps_lines);
        }
        let lines: usize = if style.keeps_lines { usize::MAX } else { 1 };
        for (number, line) in text.splitn(lines, '\n').enumerate() {
            if number > 0 {
                self.flow.break_line(style.line_height());
            }
            if style.window.is_some() {
                let ended = if number > 0 { "\n" } else { "" };
                self.writer.text(ended, true);
                if style.is_cut_off(self.flow.at()) {
                    self.hides = true;
                } else {
                    self.writer.text(line, false);
                }
            }
            if !line.bytes().all(|byte| byte.is_ascii_whitespace()) {
                self.flow.put(style.line_height());
            }
        }
    }

    fn raw(&mut self, name: Name, text: &str) {
        let number = self.tree.family_mut().number;
        if let Count::Now(census) = &mut self.census {
            census.fill(number);
        }
        let shown = matches!(name.as_str(), "textarea" | "xmp" | "plaintext");
        let mut style = self.tree.style();
        if shown && style.is_readable() {
            let decoded = if name.as_str() == "textarea" {
                entities::decode(text, ReferenceContext::Text)
            } else {
                Cow::Borrowed(text)
            };
            style.keeps_lines = true;
            self.write(&decoded, style);
        }
    }

    /// Reopens formatting elements that continue after their block.
    fn reopen(&mut self) {
        for mut open in self.tree.take_deferred() {
            open.style = self.tree.style().child(&open.cascaded, false);
            let (_, number) = self.count(open.name);
            let marks = open.family.own;
            open.family = self.tree.family_mut().adopt(number, &marks);
            if let Role::Link(start, _) = &mut open.role {
                *start = self.writer.place();
            }
            self.tree.push(open);
        }
    }

    pub(super) fn start(&mut self, tag: &Tag<'_>) {
        let name = tag.name.as_str();
        let traits = Traits::of(name);
        if self.in_foreign() && !self.leaves_foreign(tag) {
            if !tag.self_closing {
                self.open_unseen(tag.name);
            }
            return;
        }
        let means_nothing = traits.has(Traits::TABLE_PART) && !self.tree.is_open("table");
        if means_nothing || (tag.self_closing && matches!(name, "svg" | "math")) {
            return;
        }
        if self.tree.is_open("head") && !element::belongs_in_head(name) {
            let closed = self.tree.close_all(&["head"]);
            self.close(closed);
        }
        self.imply_body(name);
        self.close_implied(name, traits);
        if !traits.has(Traits::SPECIAL) {
            self.reopen();
        }
        self.has_head |= name == "head";
        self.imply_row(name);
        let (rank, number) = self.count(tag.name);
        let (cascaded, style, marks) = self.style_of(tag, traits, rank);
        let family = self.tree.family_mut().adopt(number, &marks);
        if traits.has(Traits::VOID) {
            self.void(tag, &cascaded, style);
        } else {
            self.open(tag, traits, cascaded, style, family);
        }
    }

    /// Opens an element within SVG or `MathML`.
    fn open_unseen(&mut self, name: Name) {
        let style = self.tree.style();
        self.tree.push(OpenElement {
            name,
            traits: Traits::of_foreign(name.as_str()),
            cascaded: CascadedValues::default(),
            style: style.unseen(),
            family: Family::default(),
            top: 0.0,
            bottom: 0.0,
            role: Role::Plain,
        });
    }

    fn end(&mut self, name: Name) {
        let text = name.as_str();
        match text {
            "body" | "html" => {}
            "br" => self.line_end(self.tree.style()),
            "p" => {
                let closed = self.tree.close_paragraph();
                self.close(closed);
            }
            _ => {
                let closed = self.tree.end(name, Traits::of(text));
                self.close(closed);
            }
        }
    }

    fn line_end(&mut self, style: Style) {
        self.writer.line_end();
        self.flow.break_line(style.line_height());
    }

    /// Writes the text of closing elements, innermost first.
    pub(super) fn close(&mut self, mut closed: Vec<OpenElement>) {
        for index in 0..closed.len() {
            let (before, after) = closed.split_at_mut(index + 1);
            let Some(open) = before.last() else { continue };
            match &open.role {
                Role::Link(start, url) => self.end_link(*start, url),
                Role::Quote => self.writer.quote(false),
                _ => {}
            }
            if !open.style.is_away() {
                self.break_around(open.traits, &open.cascaded);
                if flow::is_block(open.traits, &open.cascaded) || open.name.as_str() == "td" {
                    let parent = after.first_mut().or_else(|| self.tree.top_mut());
                    self.flow.end(open, parent);
                }
            }
        }
        self.tree.defer_formatting(closed);
    }

    fn end_link(&mut self, start: usize, url: &str) {
        let text = self.writer.since(start);
        if text.is_empty() {
            return;
        }
        if self.links.len() < MAX_LINKS {
            let text = text.chars().take(MAX_LABEL).collect();
            self.links.push(VisibleLink { text, url: url.to_owned() });
        }
        if !link::says_target(text, url) {
            self.writer.target(url);
        }
    }

    fn break_around(&mut self, traits: Traits, cascaded: &CascadedValues) {
        if traits.has(Traits::SPACED) {
            self.writer.break_lines(2);
        } else if traits.has(Traits::BLOCK)
            || matches!(cascaded.display(), Some(Display::Block | Display::Row))
        {
            self.writer.break_lines(1);
        }
    }

    fn open(
        &mut self,
        tag: &Tag<'_>,
        traits: Traits,
        cascaded: CascadedValues,
        mut style: Style,
        family: Family,
    ) {
        if !style.is_away() {
            self.break_around(traits, &cascaded);
            self.begin(tag);
            if flow::is_block(traits, &cascaded) {
                self.flow.begin(&cascaded, &style);
            }
        }
        let is_cell = matches!(tag.name.as_str(), "td" | "th") && cascaded.display().is_none();
        if !is_cell {
            self.look_through_window(&cascaded, &mut style);
        }
        let role = self.role_of(tag, style);
        self.tree.push(OpenElement {
            name: tag.name,
            traits,
            cascaded,
            style,
            family,
            top: self.flow.at(),
            bottom: 0.0,
            role,
        });
    }

    /// Applies clipping boxes to an element's style.
    fn look_through_window(&self, cascaded: &CascadedValues, style: &mut Style) {
        let is_placed = cascaded.is_absolute();
        if let Some(outer) = style.window.as_mut().filter(|_| is_placed) {
            outer.begin_at(self.flow.at());
        }
        if let Some(window) = Window::of(cascaded, style.font_size, style.window, self.flow.at()) {
            style.window = Some(window);
            style.removed |= window.hides_beside(cascaded, style.font_size, style.wraps());
        }
    }

    /// Writes the text of an opening element.
    fn begin(&mut self, tag: &Tag<'_>) {
        match tag.name.as_str() {
            "li" => {
                let number =
                    self.tree.nearest_mut(|open| matches!(open.role, Role::List(_))).and_then(|list| {
                        let Role::List(Some(next)) = &mut list.role else { return None };
                        let number = *next;
                        *next = next.saturating_add(1);
                        Some(number)
                    });
                self.writer
                    .item(Some(number.map_or_else(|| "- ".to_owned(), |number| format!("{number}. "))));
            }
            "td" | "th" => {
                let row = self.tree.nearest_mut(|open| matches!(open.role, Role::Row(_)));
                if let Some(Role::Row(begun)) = row.map(|open| &mut open.role)
                    && std::mem::replace(begun, true)
                {
                    self.writer.next_cell();
                }
            }
            _ => {}
        }
    }

    fn role_of(&mut self, tag: &Tag<'_>, style: Style) -> Role {
        match tag.name.as_str() {
            "a" if !style.is_away() => {
                let target = tag.attribute("href").and_then(|href| link::target(&href, self.base.as_ref()));
                target.map_or(Role::Plain, |url| Role::Link(self.writer.place(), url))
            }
            "ul" | "menu" | "dir" => Role::List(None),
            "ol" => Role::List(Some(
                tag.attribute("start").and_then(|start| start.trim().parse().ok()).unwrap_or(1),
            )),
            "blockquote" => {
                self.writer.quote(true);
                Role::Quote
            }
            "details" if !tag.has("open") => Role::Folded(false),
            "tr" => Role::Row(false),
            _ => Role::Plain,
        }
    }

    /// Writes an element without content.
    fn void(&mut self, tag: &Tag<'_>, cascaded: &CascadedValues, style: Style) {
        match tag.name.as_str() {
            "br" if !style.is_away() => self.line_end(style),
            "hr" if !style.is_away() => {
                self.writer.break_lines(2);
                self.flow.end_line();
            }
            "base" if self.base.is_none() => {
                self.base = tag.attribute("href").and_then(|href| link::base(&href));
            }
            "img" | "image" if style.is_shown() && !presentation::is_tiny_picture(tag, cascaded, style) => {
                if style.is_cut_off(self.flow.at()) {
                    return;
                }
                let height = tag.attribute("height").and_then(|height| height.trim().parse::<f32>().ok());
                let height =
                    cascaded.length(Property::Height).and_then(|own| own.px(style.font_size)).or(height);
                self.flow.put(height.filter(|height| height.is_finite()).unwrap_or_default());
                let alt = tag.attribute("alt").unwrap_or_default();
                let alt = presentation::label(&alt);
                if !alt.is_empty() {
                    self.writer.text(&format!("[image: {alt}]"), false);
                }
            }
            "input"
                if style.is_readable()
                    && !style.is_cut_off(self.flow.at())
                    && presentation::shows_value(tag) =>
            {
                let value = tag.attribute("value").unwrap_or_default();
                let value = presentation::label(&value);
                if !value.is_empty() {
                    self.writer.text(&format!("[{value}]"), false);
                }
            }
            _ => {}
        }
    }
}
