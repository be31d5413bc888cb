//! Elements and end tags that a document omits, added as browsers do.

use super::element::{self, Traits};
use super::render::{Count, Renderer};
use super::sibling_position::SiblingPosition;
use super::tokens::{Name, Tag};

impl Renderer {
    /// Counts an element that begins, and returns its position among its siblings.
    pub(super) fn count(&mut self, name: Name) -> (SiblingPosition, usize) {
        self.elements += 1;
        let number = self.elements;
        if !self.styled {
            return (SiblingPosition::default(), number);
        }
        let parent = self.tree.family_mut();
        let (above, first) = (parent.number, parent.count(name));
        let mut rank = SiblingPosition { first, ..SiblingPosition::default() };
        match &mut self.census {
            Count::Not => {}
            Count::Now(census) => census.add(above, name),
            Count::Done(census) => {
                rank.last = census.places_from_end(above, name, first);
                rank.is_empty = census.is_empty(number);
            }
        }
        (rank, number)
    }

    /// Opens omitted table sections and rows.
    pub(super) fn imply_row(&mut self, name: &str) {
        let above = self.tree.top().map(|top| top.name);
        let implied = match (name, above.as_ref().map_or("", Name::as_str)) {
            ("tr", "table") => "tbody",
            ("td" | "th", "table" | "tbody" | "thead" | "tfoot") => "tr",
            _ => return,
        };
        if self.styled {
            self.start(&Tag { name: Name::new(implied), attributes: Vec::new(), self_closing: false });
        }
    }

    /// Opens an omitted body, because style sheets may set its colours.
    pub(super) fn imply_body(&mut self, name: &str) {
        let before_body = self.tree.top().is_none_or(|top| top.name.as_str() == "html");
        if self.has_body || !before_body || name == "html" || element::belongs_in_head(name) {
            return;
        }
        self.has_body = true;
        for implied in ["html", "head", "body"] {
            let is_there = match implied {
                "head" => self.has_head,
                "body" if name == "body" => true,
                other => self.tree.top().is_some_and(|top| top.name.as_str() == other),
            };
            if self.styled && !is_there {
                self.start(&Tag { name: Name::new(implied), attributes: Vec::new(), self_closing: false });
                if implied == "head" {
                    let closed = self.tree.close_all(&["head"]);
                    self.close(closed);
                }
            }
        }
    }

    /// Closes open SVG or `MathML` if the tag ends it, and returns whether it does.
    pub(super) fn leaves_foreign(&mut self, tag: &Tag<'_>) -> bool {
        let holds_html = self.tree.is_open("foreignobject") || self.tree.is_open("annotation-xml");
        let leaves = !holds_html && element::breaks_out(tag.name.as_str(), !tag.attributes.is_empty());
        if leaves {
            let closed = self.tree.close_all(&["svg", "math"]);
            self.close(closed);
        }
        leaves
    }

    /// Closes what the start of an element closes.
    pub(super) fn close_implied(&mut self, name: &str, traits: Traits) {
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
}
