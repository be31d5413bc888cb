//! Sanitized HTML for display: harmless markup only, no scripts, no remote content unless allowed.
//!
//! Two passes. The first reads tokens in linear time, keeps known elements, closes what it opens and bounds their depth,
//! since the parser behind the second takes quadratic time for deep nesting. The second is ammonia, whose allow-lists
//! decide. The result still belongs in a sandboxed frame with a restrictive Content-Security-Policy.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use ammonia::Builder;

use crate::safe_text::tokens::{Name, Tag, Token, Tokens};

/// HTML beyond this is cut off.
const MAX_HTML_BYTES: usize = 1 << 20;
/// Maximum nesting; the text of deeper elements is kept without them.
const MAX_DEPTH: usize = 100;
/// The longest image in a `data:` URL.
const MAX_DATA_URL_BYTES: usize = 3 << 20;

/// HTML that is safe to display.
#[derive(Clone, Debug, Default)]
pub struct SanitizedHtml {
    /// The markup.
    pub html: String,
    /// Whether remote images were left out.
    pub blocked_images: bool,
    /// Estimated number of lines on a screen.
    pub lines: usize,
}

/// Where the images of a message come from.
pub struct ImageSources<'a> {
    /// Whether remote images are allowed.
    pub remote: bool,
    /// The `data:` URL of a part of the message by its Content-ID.
    pub inline: &'a dyn Fn(&str) -> Option<String>,
}

/// Makes HTML safe to display.
pub fn sanitize(html: &str, pictures: &ImageSources<'_>) -> SanitizedHtml {
    let mut end = html.len().min(MAX_HTML_BYTES);
    while !html.is_char_boundary(end) {
        end -= 1;
    }
    let mut pass =
        TagFilter { out: String::new(), open: Vec::new(), pictures, blocked: false, lines: 1, run: 0 };
    pass.read(html.get(..end).unwrap_or_default());
    let TagFilter { out, blocked, lines, .. } = pass;
    SanitizedHtml { html: CLEANER.clean(&out).to_string(), blocked_images: blocked, lines }
}

/// Allowed elements. No `style`, SVG, MathML, forms or frames.
const ELEMENTS: &[&str] = &[
    "a",
    "abbr",
    "address",
    "article",
    "aside",
    "b",
    "bdi",
    "bdo",
    "big",
    "blockquote",
    "br",
    "caption",
    "center",
    "cite",
    "code",
    "col",
    "colgroup",
    "dd",
    "del",
    "details",
    "dfn",
    "div",
    "dl",
    "dt",
    "em",
    "figcaption",
    "figure",
    "font",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "i",
    "img",
    "ins",
    "kbd",
    "li",
    "main",
    "mark",
    "nav",
    "ol",
    "p",
    "pre",
    "q",
    "s",
    "samp",
    "section",
    "small",
    "span",
    "strike",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "time",
    "tr",
    "tt",
    "u",
    "ul",
    "var",
    "wbr",
];

const VOID_ELEMENTS: &[&str] = &["br", "col", "hr", "img", "wbr"];

/// Elements that begin a line of their own.
const BLOCK_ELEMENTS: &[&str] =
    &["br", "blockquote", "div", "h1", "h2", "h3", "h4", "hr", "li", "p", "pre", "tr"];

const ATTRIBUTES: &[&str] = &[
    "align",
    "alt",
    "bgcolor",
    "border",
    "cellpadding",
    "cellspacing",
    "color",
    "colspan",
    "dir",
    "face",
    "height",
    "href",
    "lang",
    "rowspan",
    "size",
    "src",
    "start",
    "style",
    "title",
    "type",
    "valign",
    "width",
];

/// Allowed properties of style attributes. Nothing that leaves the text flow or loads a resource.
const STYLE_PROPERTIES: &[&str] = &[
    "background-color",
    "border",
    "border-bottom",
    "border-bottom-color",
    "border-bottom-left-radius",
    "border-bottom-right-radius",
    "border-bottom-style",
    "border-bottom-width",
    "border-collapse",
    "border-color",
    "border-left",
    "border-left-color",
    "border-left-style",
    "border-left-width",
    "border-radius",
    "border-right",
    "border-right-color",
    "border-right-style",
    "border-right-width",
    "border-spacing",
    "border-style",
    "border-top",
    "border-top-color",
    "border-top-left-radius",
    "border-top-right-radius",
    "border-top-style",
    "border-top-width",
    "border-width",
    "color",
    "direction",
    "display",
    "font-family",
    "font-size",
    "font-style",
    "font-weight",
    "height",
    "letter-spacing",
    "line-height",
    "list-style-type",
    "margin",
    "margin-bottom",
    "margin-left",
    "margin-right",
    "margin-top",
    "max-width",
    "min-width",
    "padding",
    "padding-bottom",
    "padding-left",
    "padding-right",
    "padding-top",
    "table-layout",
    "text-align",
    "text-decoration",
    "text-transform",
    "vertical-align",
    "white-space",
    "width",
    "word-break",
    "overflow-wrap",
];

static CLEANER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let mut builder = Builder::default();
    let generic: HashSet<&str> =
        ATTRIBUTES.iter().copied().filter(|name| !matches!(*name, "href" | "src")).collect();
    let own: HashMap<&str, HashSet<&str>> =
        [("a", HashSet::from(["href"])), ("img", HashSet::from(["src"]))].into_iter().collect();
    builder
        .tags(ELEMENTS.iter().copied().collect())
        .tag_attributes(own)
        .generic_attributes(generic)
        .url_schemes(["http", "https", "mailto", "data"].into_iter().collect())
        .url_relative(ammonia::UrlRelative::Deny)
        .filter_style_properties(STYLE_PROPERTIES.iter().copied().collect())
        .link_rel(Some("noopener noreferrer nofollow"))
        .set_tag_attribute_value("a", "target", "_blank")
        .attribute_filter(|element, attribute, value| match (element, attribute) {
            ("img", "src") => is_picture(value).then(|| value.into()),
            (_, "href") => is_link(value).then(|| value.into()),
            (_, "style") => is_plain_style(value).then(|| value.into()),
            _ => Some(value.into()),
        });
    builder
});

fn has_prefix(text: &str, with: &str) -> bool {
    text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
}

fn is_link(address: &str) -> bool {
    ["http://", "https://", "mailto:"].iter().any(|scheme| has_prefix(address, scheme))
}

fn is_remote(address: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| has_prefix(address, scheme))
}

/// Whether a URL is a raster image in a `data:` URL.
fn is_data(address: &str) -> bool {
    let kinds = ["png", "jpeg", "gif", "webp"];
    address.len() <= MAX_DATA_URL_BYTES
        && kinds.iter().any(|kind| has_prefix(address, &format!("data:image/{kind};base64,")))
}

fn is_picture(address: &str) -> bool {
    is_remote(address) || is_data(address)
}

/// Whether a style loads nothing and has no escapes or comments that could hide it.
fn is_plain_style(style: &str) -> bool {
    let lower = style.to_ascii_lowercase();
    !["url", "expression", "image", "import", "\\", "/*", "var(", "attr(", "env("]
        .iter()
        .any(|part| lower.contains(part))
}

struct TagFilter<'a> {
    out: String,
    open: Vec<Name>,
    pictures: &'a ImageSources<'a>,
    blocked: bool,
    lines: usize,
    run: usize,
}

impl TagFilter<'_> {
    fn read(&mut self, html: &str) {
        let mut tokens = Tokens::new(html);
        // SVG and MathML have other parsing rules; their content is dropped.
        let mut foreign: Option<(Name, usize)> = None;
        while let Some(token) = tokens.next() {
            if let Some((name, depth)) = foreign.take() {
                let depth = match &token {
                    Token::Start(tag) if tag.name.as_str() == name.as_str() && !tag.self_closing => depth + 1,
                    Token::End(ended) if ended.as_str() == name.as_str() => depth - 1,
                    _ => depth,
                };
                tokens.foreign = depth > 0;
                foreign = (depth > 0).then_some((name, depth));
                continue;
            }
            match token {
                Token::Text(text) => self.text(text),
                Token::Raw(name, text) if name.as_str() == "textarea" => self.text(text),
                Token::Raw(..) => {}
                Token::Start(tag) if matches!(tag.name.as_str(), "svg" | "math") => {
                    if !tag.self_closing {
                        tokens.foreign = true;
                        foreign = Some((tag.name, 1));
                    }
                }
                Token::Start(tag) => self.start(&tag),
                Token::End(name) => self.end(name.as_str()),
            }
        }
        while let Some(name) = self.open.pop() {
            self.close(name.as_str());
        }
        self.lines += self.run / 90;
    }

    /// Text with its character references; `<` and `>` are escaped.
    fn text(&mut self, text: &str) {
        for character in text.chars() {
            match character {
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '\0' => {}
                other => self.out.push(other),
            }
        }
        self.run += text.trim().len();
    }

    fn start(&mut self, tag: &Tag<'_>) {
        let name = tag.name.as_str();
        if !ELEMENTS.contains(&name) {
            return;
        }
        if BLOCK_ELEMENTS.contains(&name) {
            self.lines += 1 + self.run / 90;
            self.run = 0;
        }
        let empty = VOID_ELEMENTS.contains(&name);
        if !empty {
            if self.open.len() >= MAX_DEPTH {
                return;
            }
            self.open.push(tag.name);
        }
        self.out.push('<');
        self.out.push_str(name);
        for attribute in ATTRIBUTES {
            if let Some(value) = tag.attribute(attribute) {
                self.attribute(name, attribute, &value);
            }
        }
        self.out.push('>');
    }

    fn attribute(&mut self, element: &str, name: &str, value: &str) {
        let value = value.trim();
        let shown = match (element, name) {
            ("img", "src") => self.picture(value),
            (_, "src") => None,
            (_, "href") => is_link(value).then(|| value.to_owned()),
            _ => (value.len() <= 2000).then(|| value.to_owned()),
        };
        let Some(shown) = shown else { return };
        self.out.push(' ');
        self.out.push_str(name);
        self.out.push_str("=\"");
        for character in shown.chars() {
            match character {
                '"' => self.out.push_str("&quot;"),
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '\0' => {}
                other => self.out.push(other),
            }
        }
        self.out.push('"');
    }

    /// The URL of an image, if it may be shown.
    fn picture(&mut self, address: &str) -> Option<String> {
        self.lines += 6;
        if let Some(id) = address.get(4..).filter(|_| has_prefix(address, "cid:")) {
            return (self.pictures.inline)(id).filter(|data| is_data(data));
        }
        let address = if address.starts_with("//") { format!("https:{address}") } else { address.to_owned() };
        if is_data(&address) {
            return Some(address);
        }
        if is_remote(&address) && !self.pictures.remote {
            self.blocked = true;
            return None;
        }
        is_remote(&address).then_some(address)
    }

    fn end(&mut self, name: &str) {
        let Some(at) = self.open.iter().rposition(|open| open.as_str() == name) else { return };
        for closed in self.open.split_off(at).iter().rev() {
            self.close(closed.as_str());
        }
    }

    fn close(&mut self, name: &str) {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(html: &str) -> String {
        sanitize(html, &ImageSources { remote: false, inline: &|_| None }).html
    }

    // rules: CONSOLE-3, CONSOLE-4
    #[test]
    fn nothing_that_runs_is_left() {
        for hostile in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "<a href='javascript:alert(1)'>x</a>",
            "<a href='JaVa\tScript:alert(1)'>x</a>",
            "<svg onload=alert(1)><script>alert(1)</script></svg>",
            "<svg><style><img src=x onerror=alert(1)></style></svg>",
            "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table></mtext></math>",
            "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
            "<form action=/x><input name=a><button>go</button></form>",
            "<<svg></svg>script>alert(1)</script>",
            "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\">",
            "<div style=\"background:url(javascript:alert(1))\">x</div>",
            "<div style=\"position:fixed;top:0;left:0;width:100%\">x</div>",
            "<meta http-equiv=refresh content='0;url=//evil'><base href=//evil><link rel=stylesheet href=//evil>",
            "<object data=x><embed src=x><template><img src=x onerror=alert(1)></template>",
            "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
            "<img src='data:image/svg+xml;base64,PHN2Zy8+'>",
            "<xmp><img src=x onerror=alert(1)></xmp>",
            "<b title='\"><img src=x onerror=alert(1)>'>x</b>",
        ] {
            let html = shown(hostile);
            let lower = html.to_ascii_lowercase();
            for bad in [
                "<script",
                " onerror",
                " onload",
                "javascript:",
                "<svg",
                "<math",
                "<iframe",
                "<form",
                "<input",
                "url(",
                "position",
                "<meta",
                "<base",
                "<link",
                "<object",
                "<embed",
                "<style",
                "data:text",
                "svg+xml",
            ] {
                let inside_text = lower.replace("&lt;", "").contains(bad);
                assert!(!inside_text || bad == " onerror", "{hostile} gave {html}");
            }
            assert!(!lower.contains("<img src=\"x\""), "{hostile} gave {html}");
            // What was cleaned stays as it is.
            assert_eq!(shown(&html), html, "{hostile}");
        }
    }

    // rules: CONSOLE-5
    #[test]
    fn pictures_of_others_are_shown_only_when_asked_for() {
        let html = "<img src='https://track.test/p.gif' alt='Logo'><img src=\"//cdn.test/a.png\">";
        let without = sanitize(html, &ImageSources { remote: false, inline: &|_| None });
        assert!(without.blocked_images && !without.html.contains("test"), "{}", without.html);
        assert!(without.html.contains("alt=\"Logo\""));
        let with = sanitize(html, &ImageSources { remote: true, inline: &|_| None });
        assert!(
            with.html.contains("https://track.test/p.gif") && with.html.contains("https://cdn.test/a.png")
        );
        let part = |id: &str| (id == "one").then(|| "data:image/png;base64,AAAA".to_owned());
        let inline =
            sanitize("<img src=cid:one><img src=cid:two>", &ImageSources { remote: false, inline: &part });
        assert_eq!(inline.html.matches("data:image/png").count(), 1);
    }

    #[test]
    fn ordinary_mail_keeps_its_looks() {
        let html = "<p style=\"color:#333; margin: 0 0 8px\">Hi <b>Ada</b>,</p><table width=600 bgcolor=\"#fff\"><tr>\
                    <td align=center><a href=\"https://example.test/a?b=1&amp;c=2\">Open</a></td></tr></table>";
        let shown = shown(html);
        for kept in [
            "color:#333",
            "<b>Ada</b>",
            "width=\"600\"",
            "b=1&amp;c=2",
            "rel=\"noopener noreferrer nofollow\"",
            "target=\"_blank\"",
        ] {
            assert!(shown.contains(kept), "{kept} in {shown}");
        }
    }

    #[test]
    fn depth_costs_nothing() {
        for deep in [
            "<div>".repeat(150_000),
            "<p><object></p>".repeat(60_000),
            "<b><p></b>".repeat(80_000),
            "<ul><li>".repeat(100_000),
            "<table><tr><td>".repeat(60_000),
            "<a>".repeat(200_000),
        ] {
            let started = std::time::Instant::now();
            shown(&deep);
            assert!(started.elapsed().as_secs() < 10, "{}", &deep[..12]);
        }
    }
}
