//! How far down the page text is, estimated without a layout: a lower bound.

use super::cascade::CascadedValues;
use super::element::Traits;
use super::property::{Display, Property};
use super::style::Style;
use super::tree::OpenElement;
use super::window;

/// The vertical position of the next text.
#[derive(Debug, Default)]
pub(super) struct Flow {
    at: f32,
    /// The height of the line that was begun.
    line: f32,
}

impl Flow {
    /// How far down the page the current line begins.
    pub(super) fn at(&self) -> f32 {
        self.at
    }

    /// Adds something of this height to the line.
    pub(super) fn put(&mut self, height: f32) {
        self.line = self.line.max(height);
    }

    /// Ends the line, if one was begun.
    pub(super) fn end_line(&mut self) {
        self.at += std::mem::take(&mut self.line);
    }

    /// Ends the line, which is at least this high.
    pub(super) fn break_line(&mut self, height: f32) {
        self.put(height);
        self.end_line();
    }

    /// Begins an element on lines of its own.
    pub(super) fn begin(&mut self, own: &CascadedValues, style: &Style) {
        self.end_line();
        self.at += window::spacing(own, Property::MarginTop, style.font_size, style.window);
        self.at += window::spacing(own, Property::PaddingTop, style.font_size, style.window).max(0.0);
    }

    /// Ends such an element in its parent.
    pub(super) fn end(&mut self, open: &OpenElement, parent: Option<&mut OpenElement>) {
        self.end_line();
        let height =
            open.cascaded.length(Property::Height).and_then(|height| height.px(open.style.font_size));
        self.at = self.at.max(open.top + height.unwrap_or_default()).max(open.bottom);
        if is_aside(&open.cascaded) {
            self.at = open.top;
        } else if let Some(parent) = parent
            && is_row(parent)
        {
            parent.bottom = parent.bottom.max(self.at);
            self.at = open.top;
        }
    }
}

/// Whether an element leaves space beside it.
fn is_aside(own: &CascadedValues) -> bool {
    own.flag(Property::Aside) || own.is_absolute() || own.display() == Some(Display::Inline)
}

/// Whether an element lays out its children in a row.
fn is_row(open: &OpenElement) -> bool {
    open.cascaded.display() == Some(Display::Row) || open.name.as_str() == "tr"
}

/// Whether an element is a block.
pub(super) fn is_block(traits: Traits, own: &CascadedValues) -> bool {
    traits.has(Traits::BLOCK)
        || matches!(own.display(), Some(Display::Block | Display::Row))
        || own.is_absolute()
}
