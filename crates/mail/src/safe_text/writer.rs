//! Writes text in lines: blocks, cells, list items and quotations in plain text.

/// Maximum quotation depth shown before a line.
const MAX_QUOTES: usize = 6;

/// Maximum output: a document cannot amplify itself by repetition.
pub(super) const MAX_OUTPUT_BYTES: usize = 2 << 20;

/// Collects the text of a document.
#[derive(Debug, Default)]
pub(super) struct Writer {
    out: String,
    breaks: usize,
    space: bool,
    cell: bool,
    quotes: usize,
    marker: Option<String>,
}

impl Writer {
    /// What was written.
    pub(super) fn into_text(self) -> String {
        self.out
    }

    /// The offset of the next text.
    pub(super) fn place(&self) -> usize {
        self.out.len()
    }

    /// What was written since an offset.
    pub(super) fn since(&self, place: usize) -> &str {
        self.out.get(place..).unwrap_or_default().trim()
    }

    /// Whether the output limit is reached.
    pub(super) fn is_full(&self) -> bool {
        self.out.len() >= MAX_OUTPUT_BYTES
    }

    /// Asks for this many line breaks before the next text.
    pub(super) fn break_lines(&mut self, count: usize) {
        self.breaks = self.breaks.max(count);
        self.space = false;
    }

    /// An explicit line break; two of them leave an empty line.
    pub(super) fn line_end(&mut self) {
        self.breaks = (self.breaks + 1).min(2);
        self.space = false;
    }

    /// Begins another cell of a row.
    pub(super) fn next_cell(&mut self) {
        self.cell = true;
    }

    /// Begins an item of a list.
    pub(super) fn item(&mut self, marker: Option<String>) {
        self.break_lines(1);
        self.marker = marker;
    }

    /// Enters or leaves a quotation.
    pub(super) fn quote(&mut self, inwards: bool) {
        self.quotes = if inwards { self.quotes + 1 } else { self.quotes.saturating_sub(1) };
    }

    /// Writes text of a document.
    pub(super) fn text(&mut self, text: &str, keeps_lines: bool) {
        if keeps_lines {
            for (number, line) in text.split('\n').enumerate() {
                if number > 0 {
                    self.line_end();
                }
                self.words(line);
            }
        } else {
            self.words(text);
        }
    }

    fn words(&mut self, text: &str) {
        for (number, word) in text.split(|c: char| c.is_ascii_whitespace()).enumerate() {
            self.space |= number > 0;
            if !word.is_empty() && !self.is_full() {
                self.lead_in();
                self.out.push_str(word);
            }
        }
    }

    /// Writes the target of a link directly after its text.
    pub(super) fn target(&mut self, url: &str) {
        if !self.is_full() {
            self.out.push_str(" (");
            self.out.push_str(url);
            self.out.push(')');
        }
    }

    /// Writes the separator between the last text and the next.
    fn lead_in(&mut self) {
        if self.out.is_empty() {
            self.prefix();
        } else if self.breaks > 0 {
            for _ in 0..self.breaks {
                self.out.push('\n');
                self.prefix();
            }
        } else if self.cell {
            self.out.push_str(" | ");
        } else if self.space {
            self.out.push(' ');
        }
        if let Some(marker) = self.marker.take() {
            self.out.push_str(&marker);
        }
        (self.breaks, self.space, self.cell) = (0, false, false);
    }

    fn prefix(&mut self) {
        for _ in 0..self.quotes.min(MAX_QUOTES) {
            self.out.push_str("> ");
        }
    }
}
