//! What displayed HTML may contain: elements, attributes, style properties and URLs.
//!
//! The tag filter and the cleaner use the same lists, so that neither lets through what the other drops.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use ammonia::Builder;

/// The longest image in a `data:` URL.
const MAX_DATA_URL_BYTES: usize = 3 << 20;

/// Allowed elements. No `style`, SVG, `MathML`, forms or frames.
pub(super) const ELEMENTS: &[&str] = &[
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

/// Elements without content.
pub(super) const VOID_ELEMENTS: &[&str] = &["br", "col", "hr", "img", "wbr"];

/// Elements that begin a line of their own.
pub(super) const BLOCK_ELEMENTS: &[&str] =
    &["br", "blockquote", "div", "h1", "h2", "h3", "h4", "hr", "li", "p", "pre", "tr"];

/// Allowed attributes.
pub(super) const ATTRIBUTES: &[&str] = &[
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

/// The second pass.
pub(super) static CLEANER: LazyLock<Builder<'static>> = LazyLock::new(|| {
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

pub(super) fn has_prefix(text: &str, with: &str) -> bool {
    text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
}

pub(super) fn is_link(address: &str) -> bool {
    ["http://", "https://", "mailto:"].iter().any(|scheme| has_prefix(address, scheme))
}

pub(super) fn is_remote(address: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| has_prefix(address, scheme))
}

/// Whether a URL is a raster image in a `data:` URL.
pub(super) fn is_data(address: &str) -> bool {
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
