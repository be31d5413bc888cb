//! Turns HTML into the text that a reader sees, in one pass.

use std::borrow::Cow;

use url::Url;

use super::colour::Colour;
use super::declaration::{Declaration, Length, Property, Value};
use super::element::{self, Traits};
use super::entities::{self, Place};
use super::link;
use super::selector::Subject;
use super::sheet::{NOT_DISPLAYED, Sheet};
use super::style::{Cascade, Origin, Style, Winners};
use super::tokens::{Name, Tag, Token, Tokens};
use super::tree::{Open, Role, Tree};
use super::writer::Writer;

/// HTML beyond this many bytes is not read.
pub(super) const MAX_HTML: usize = 1 << 20;

/// The longest description of a picture, or content of a form field, that is shown.
const MAX_LABEL: usize = 200;

/// The most links that are told apart from the text.
const MAX_LINKS: usize = 1000;

/// A link that a reader sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeenLink {
    /// Its text, not yet cleaned.
    pub(crate) text: String,
    /// Where it leads.
    pub(crate) url: String,
}

/// What a reader sees of a document; the text still has to be cleaned.
pub(super) struct Rendered {
    pub(super) text: String,
    pub(super) links: Vec<SeenLink>,
}

/// Reads a document.
pub(super) fn render(html: &str) -> Rendered {
    let html = html.get(..html.floor_char_boundary(MAX_HTML)).unwrap_or_default();
    let mut renderer = Renderer {
        sheet: Sheet::of(html),
        tree: Tree::new(),
        writer: Writer::default(),
        base: None,
        links: Vec::new(),
        has_body: false,
    };
    let mut tokens = Tokens::new(html);
    while let Some(token) = tokens.next() {
        if renderer.writer.is_full() {
            break;
        }
        match token {
            Token::Text(text) => renderer.text(&entities::decode(text, Place::Text)),
            Token::Raw(name, text) => renderer.raw(name, text),
            Token::Start(tag) => renderer.start(&tag),
            Token::End(name) => renderer.end(name),
        }
        tokens.foreign = renderer.in_foreign();
    }
    let left_open = renderer.tree.finish();
    renderer.close(left_open);
    Rendered { text: renderer.writer.into_text(), links: renderer.links }
}

struct Renderer<'a> {
    sheet: Sheet,
    tree: Tree<'a>,
    writer: Writer,
    base: Option<Url>,
    links: Vec<SeenLink>,
    has_body: bool,
}

impl<'a> Renderer<'a> {
    fn in_foreign(&self) -> bool {
        self.tree.is_open("svg") || self.tree.is_open("math")
    }

    fn text(&mut self, text: &str) {
        if text.bytes().all(|byte| byte.is_ascii_whitespace()) {
            let style = self.tree.style();
            if style.is_readable() {
                self.writer.text(text, style.keeps_lines);
            }
            return;
        }
        self.imply_body("");
        self.reopen();
        let folded = self.tree.top().is_some_and(|top| matches!(top.role, Role::Folded(_)));
        let style = self.tree.style();
        if style.is_readable() && !folded {
            self.writer.text(text, style.keeps_lines);
        }
    }

    fn raw(&mut self, name: Name, text: &str) {
        let shown = matches!(name.as_str(), "textarea" | "xmp" | "plaintext");
        if shown && self.tree.style().is_readable() {
            let decoded = if name.as_str() == "textarea" {
                entities::decode(text, Place::Text)
            } else {
                Cow::Borrowed(text)
            };
            self.writer.text(&decoded, true);
        }
    }

    /// Opens formatting elements again that went on behind the block in which they stood.
    fn reopen(&mut self) {
        for mut open in self.tree.take_waiting() {
            open.style = self.tree.style().child(&open.winners, false);
            if let Role::Link(start, _) = &mut open.role {
                *start = self.writer.place();
            }
            self.tree.push(open);
        }
    }

    fn start(&mut self, tag: &Tag<'a>) {
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
        let position = self.tree.top_mut().map_or(1, |parent| {
            parent.children = parent.children.saturating_add(1);
            parent.children
        });
        let (winners, style) = self.style_of(tag, traits, position);
        self.sheet.note(tag.name);
        if traits.has(Traits::VOID) {
            self.void(tag, &winners, style);
        } else {
            self.open(tag, traits, winners, style, position);
        }
    }

    /// Opens the body that a document did not name, because style sheets may give it a colour.
    fn imply_body(&mut self, name: &str) {
        let before_body = self.tree.top().is_none_or(|top| top.name.as_str() == "html");
        if self.has_body || !before_body || name == "html" || element::belongs_in_head(name) {
            return;
        }
        self.has_body = true;
        if name == "body" {
            return;
        }
        for implied in ["html", "body"] {
            if !self.sheet.is_empty() && self.tree.top().is_none_or(|top| top.name.as_str() != implied) {
                self.start(&Tag { name: Name::new(implied), attributes: Vec::new(), self_closing: false });
            }
        }
    }

    /// Whether a tag ends the picture or formula that is open; if so, that is closed.
    fn leaves_foreign(&mut self, tag: &Tag<'a>) -> bool {
        let holds_html = self.tree.is_open("foreignobject") || self.tree.is_open("annotation-xml");
        let leaves = !holds_html && element::breaks_out(tag.name.as_str(), !tag.attributes.is_empty());
        if leaves {
            let closed = self.tree.close_all(&["svg", "math"]);
            self.close(closed);
        }
        leaves
    }

    /// Opens an element within a picture or formula.
    fn open_unseen(&mut self, name: Name) {
        let style = self.tree.style();
        self.tree.push(Open {
            name,
            traits: Traits::of_foreign(name.as_str()),
            winners: Winners::default(),
            style: style.unseen(),
            class: Cow::Borrowed(""),
            id: Cow::Borrowed(""),
            attributes: Vec::new(),
            children: 0,
            position: 0,
            role: Role::Plain,
        });
    }

    /// Closes what the start of an element closes.
    fn close_implied(&mut self, name: &str, traits: Traits) {
        const BODIES: [&str; 4] = ["tbody", "thead", "tfoot", "caption"];
        if traits.has(Traits::CLOSES_P) {
            let closed = self.tree.close_paragraph();
            self.close(closed);
        }
        let closed = match name {
            "li" => self.tree.close_item(&["li"]),
            "dt" | "dd" => self.tree.close_item(&["dt", "dd"]),
            "td" | "th" => self.tree.close_nearest(&["td", "th"], &["table", "tr"]),
            "tr" => self.tree.close_nearest(&["tr"], &["table"]),
            "tbody" | "thead" | "tfoot" | "caption" => {
                let rows = self.tree.close_nearest(&["tr"], &["table"]);
                self.close(rows);
                self.tree.close_nearest(&BODIES, &["table"])
            }
            "a" => self.tree.end(Name::new("a"), Traits::FORMATTING),
            "option" => self.tree.close_nearest(&["option"], &["select", "datalist"]),
            _ if traits.has(Traits::HEADING)
                && self.tree.top().is_some_and(|top| top.traits.has(Traits::HEADING)) =>
            {
                self.tree.end(Name::new(name), traits)
            }
            _ => Vec::new(),
        };
        self.close(closed);
    }

    fn end(&mut self, name: Name) {
        let text = name.as_str();
        match text {
            "body" | "html" => {}
            "br" => self.writer.line_end(),
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

    /// Writes what the ends of elements leave in the text, innermost first.
    fn close(&mut self, closed: Vec<Open<'a>>) {
        for open in &closed {
            match &open.role {
                Role::Link(start, url) => self.end_link(*start, url),
                Role::Quote => self.writer.quote(false),
                _ => {}
            }
            if !open.style.gone {
                self.break_around(open.traits, &open.winners);
            }
        }
        self.tree.keep_waiting(closed);
    }

    fn end_link(&mut self, start: usize, url: &str) {
        let text = self.writer.since(start);
        if text.is_empty() {
            return;
        }
        if self.links.len() < MAX_LINKS {
            let text = text.chars().take(MAX_LABEL).collect();
            self.links.push(SeenLink { text, url: url.to_owned() });
        }
        if !link::says_target(text, url) {
            self.writer.target(url);
        }
    }

    fn break_around(&mut self, traits: Traits, winners: &Winners) {
        if traits.has(Traits::SPACED) {
            self.writer.break_lines(2);
        } else if traits.has(Traits::BLOCK) || winners.display() == Some(super::declaration::Display::Block) {
            self.writer.break_lines(1);
        }
    }

    fn open(&mut self, tag: &Tag<'a>, traits: Traits, winners: Winners, style: Style, position: u32) {
        if !style.gone {
            self.break_around(traits, &winners);
            self.begin(tag);
        }
        let role = self.role_of(tag, style);
        self.tree.push(Open {
            name: tag.name,
            traits,
            winners,
            style,
            class: tag.attribute("class").unwrap_or_default(),
            id: tag.attribute("id").unwrap_or_default(),
            attributes: if self.sheet.is_empty() { Vec::new() } else { tag.attributes.clone() },
            children: 0,
            position,
            role,
        });
    }

    /// Writes what the beginning of an element puts into the text.
    fn begin(&mut self, tag: &Tag<'a>) {
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

    fn role_of(&mut self, tag: &Tag<'a>, style: Style) -> Role {
        match tag.name.as_str() {
            "a" if !style.gone => {
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
    fn void(&mut self, tag: &Tag<'a>, winners: &Winners, style: Style) {
        match tag.name.as_str() {
            "br" if !style.gone => self.writer.line_end(),
            "hr" if !style.gone => self.writer.break_lines(2),
            "base" if self.base.is_none() => {
                self.base = tag.attribute("href").and_then(|href| link::base(&href));
            }
            "img" | "image" if style.is_shown() && !is_tiny_picture(tag, winners, style) => {
                let alt = tag.attribute("alt").unwrap_or_default();
                let alt = label(&alt);
                if !alt.is_empty() {
                    self.writer.text(&format!("[image: {alt}]"), false);
                }
            }
            "input" if style.is_readable() && shows_value(tag) => {
                let value = tag.attribute("value").unwrap_or_default();
                let value = label(&value);
                if !value.is_empty() {
                    self.writer.text(&format!("[{value}]"), false);
                }
            }
            _ => {}
        }
    }

    /// What wins for an element, and what it then looks like.
    fn style_of(&mut self, tag: &Tag<'a>, traits: Traits, position: u32) -> (Winners, Style) {
        let name = tag.name.as_str();
        let is_plain = tag.attributes.is_empty() && self.sheet.is_empty() && !has_looks(name);
        if is_plain && !matches!(self.tree.top().map(|top| &top.role), Some(Role::Folded(_))) {
            let style = self.tree.style();
            return (Winners::default(), if traits.has(Traits::GONE) { style.unseen() } else { style });
        }
        let mut cascade = Cascade::new();
        present(&mut cascade, tag);
        if self.is_folded_away(name) {
            let hide = Declaration { property: Property::MsoHide, value: Value::Flag(true), important: true };
            cascade.add(hide, Origin::Attribute);
        }
        let class = tag.attribute("class").unwrap_or_default();
        let id = tag.attribute("id").unwrap_or_default();
        let subject =
            Subject { name: tag.name, id: &id, class: &class, attributes: &tag.attributes, position };
        let mut on_desktops = self.sheet.apply(&mut cascade, subject, |level| self.tree.ancestor(level));
        if let Some(css) = tag.attribute("style") {
            for declaration in self.sheet.variables().read_attribute(&css) {
                cascade.add(declaration, Origin::Attribute);
                if let Some(cascade) = &mut on_desktops {
                    cascade.add(declaration, Origin::Attribute);
                }
            }
        }
        let parent = self.tree.style();
        let is_cell = matches!(name, "td" | "th");
        let winners = cascade.winners();
        let mut style = parent.child(&winners, is_cell);
        if let Some(desktop) = on_desktops.map(|cascade| parent.child(&cascade.winners(), is_cell)) {
            style = if desktop.is_readable() { style } else { desktop };
        }
        style.gone |= traits.has(Traits::GONE);
        (winners, style)
    }

    /// Whether an element is in a folded-up block and not its visible line.
    fn is_folded_away(&mut self, name: &str) -> bool {
        match self.tree.top_mut().map(|top| &mut top.role) {
            Some(Role::Folded(has_line)) => name != "summary" || std::mem::replace(has_line, true),
            _ => false,
        }
    }
}

/// The first words of a label, on one line.
fn label(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_LABEL).collect()
}

/// Whether a form field shows what it holds.
fn shows_value(tag: &Tag<'_>) -> bool {
    let kind = tag.attribute("type").unwrap_or_default().trim().to_ascii_lowercase();
    !matches!(
        kind.as_str(),
        "hidden" | "password" | "checkbox" | "radio" | "file" | "image" | "color" | "range"
    )
}

/// Whether a picture is as small as those that only count readers.
fn is_tiny_picture(tag: &Tag<'_>, winners: &Winners, style: Style) -> bool {
    let tiny = |name: &str| {
        let length = tag.attribute(name).and_then(|value| Length::parse(value.trim()));
        length.and_then(|length| length.px(style.font_size)).is_some_and(|px| px <= 2.0)
    };
    tiny("width") || tiny("height") || winners.is_tiny(style.font_size)
}

/// Whether an element looks different from its parent without being told so.
fn has_looks(name: &str) -> bool {
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

/// What attributes and the customs of browsers say about the looks of an element.
fn present(cascade: &mut Cascade, tag: &Tag<'_>) {
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
