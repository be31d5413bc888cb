//! Writes HTML that cannot be malformed: elements are closed, and text is escaped.
//!
//! Knows nothing about the content; the pages next to it do.

use serde_json::Value;

/// A fragment of HTML under construction.
#[derive(Default)]
pub(super) struct Html(String);

impl Html {
    /// The markup.
    pub(super) fn finish(self) -> String {
        self.0
    }

    /// An element such as `p.note`, with the closure's output inside.
    pub(super) fn put(&mut self, element: &str, inside: impl FnOnce(&mut Self)) {
        self.put_with(element, &[], inside);
    }

    /// An element with attributes.
    pub(super) fn put_with(
        &mut self,
        element: &str,
        attributes: &[(&str, &str)],
        inside: impl FnOnce(&mut Self),
    ) {
        let (name, classes) = element.split_once('.').unwrap_or((element, ""));
        self.0.push('<');
        self.0.push_str(name);
        if !classes.is_empty() {
            self.attribute("class", &classes.replace('.', " "));
        }
        for (key, value) in attributes {
            self.attribute(key, value);
        }
        self.0.push('>');
        inside(self);
        self.0.push_str("</");
        self.0.push_str(name);
        self.0.push('>');
    }

    /// An element with plain text inside.
    pub(super) fn line(&mut self, element: &str, text: &str) {
        self.put(element, |html| html.text(text));
    }

    /// An element with marked text inside.
    pub(super) fn marked_line(&mut self, element: &str, text: &str) {
        self.put(element, |html| html.marked(text));
    }

    /// A link.
    pub(super) fn link(&mut self, element: &str, target: &str, text: &str) {
        self.put_with(element, &[("href", target)], |html| html.text(text));
    }

    /// A block of code.
    pub(super) fn code_block(&mut self, inside: impl FnOnce(&mut Self)) {
        self.put("pre", |html| html.put("code", inside));
    }

    /// Code of a language, named as highlighters name it.
    pub(super) fn code_of(&mut self, language: &str, code: &str) {
        self.put("pre", |html| html.line(&format!("code.language-{language}"), code));
    }

    /// A block of code with limited height that scrolls, and can be focused by keyboard for that reason.
    pub(super) fn scrolling_code_block(&mut self, label: &str, inside: impl FnOnce(&mut Self)) {
        let attributes = [("tabindex", "0"), ("role", "group"), ("aria-label", label)];
        self.put_with("pre.scrolls", &attributes, |html| html.put("code", inside));
    }

    /// Plain text.
    pub(super) fn text(&mut self, text: &str) {
        mail::html::escape_into(&mut self.0, text);
    }

    /// Text in which `` `words` `` are code and `[words](#place)` is a link within the page, as in doc comments.
    pub(super) fn marked(&mut self, text: &str) {
        for (index, piece) in text.split('`').enumerate() {
            // A lone backtick at the end opens nothing.
            let closed = text.matches('`').count() > index;
            if index % 2 == 1 && closed { self.line("code", piece) } else { self.linked(piece) }
        }
    }

    fn linked(&mut self, text: &str) {
        let mut rest = text;
        while let Some((before, words, anchor, after)) = next_link(rest) {
            self.text(before);
            self.link("a", anchor, words);
            rest = after;
        }
        self.text(rest);
    }

    /// JSON, indented and highlighted.
    pub(super) fn json(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Object(object) if !object.is_empty() => {
                self.0.push('{');
                for (index, (key, inner)) in object.iter().enumerate() {
                    self.next_item(index, indent + 1);
                    self.line("span.k", &Value::from(key.as_str()).to_string());
                    self.0.push_str(": ");
                    self.json(inner, indent + 1);
                }
                self.end_items(indent, '}');
            }
            Value::Array(items) if !items.is_empty() => {
                self.0.push('[');
                for (index, inner) in items.iter().enumerate() {
                    self.next_item(index, indent + 1);
                    self.json(inner, indent + 1);
                }
                self.end_items(indent, ']');
            }
            Value::String(_) => self.line("span.s", &value.to_string()),
            Value::Object(_) | Value::Array(_) => self.text(&value.to_string()),
            other => self.line("span.n", &other.to_string()),
        }
    }

    fn next_item(&mut self, index: usize, indent: usize) {
        self.0.push_str(if index == 0 { "\n" } else { ",\n" });
        self.0.push_str(&"  ".repeat(indent));
    }

    fn end_items(&mut self, indent: usize, bracket: char) {
        self.0.push('\n');
        self.0.push_str(&"  ".repeat(indent));
        self.0.push(bracket);
    }

    fn attribute(&mut self, key: &str, value: &str) {
        self.0.push(' ');
        self.0.push_str(key);
        self.0.push_str("=\"");
        self.text(value);
        self.0.push('"');
    }
}

/// The first `[words](#place)`, with the text before and after it.
fn next_link(text: &str) -> Option<(&str, &str, &str, &str)> {
    let middle = text.find("](#")?;
    let start = text[..middle].rfind('[')?;
    let end = middle + text[middle..].find(')')?;
    Some((&text[..start], &text[start + 1..middle], &text[middle + 2..end], &text[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Html)) -> String {
        let mut html = Html::default();
        write(&mut html);
        html.finish()
    }

    #[test]
    fn escapes_text_and_attributes() {
        let html = written(|html| html.put_with("p.a.b", &[("id", "\"><i>")], |html| html.text("<b> & 'c'")));
        assert_eq!(html, "<p class=\"a b\" id=\"&quot;&gt;&lt;i&gt;\">&lt;b&gt; &amp; &#39;c&#39;</p>");
    }

    #[test]
    fn marks_code_and_links() {
        let html = written(|html| html.marked("Use `a<b` as [shown](#here) or `open"));
        assert_eq!(html, "Use <code>a&lt;b</code> as <a href=\"#here\">shown</a> or open");
        assert_eq!(written(|html| html.marked("[x](https://evil.test)")), "[x](https://evil.test)");
    }

    #[test]
    fn colours_json() {
        let html = written(|html| html.json(&serde_json::json!({ "a": ["<", 1], "b": {} }), 0));
        let expected = "{\n  <span class=\"k\">&quot;a&quot;</span>: [\n    <span class=\"s\">&quot;&lt;&quot;</span>,\n    \
                        <span class=\"n\">1</span>\n  ],\n  <span class=\"k\">&quot;b&quot;</span>: {}\n}";
        assert_eq!(html, expected);
    }
}
