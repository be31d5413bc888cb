//! Properties of HTML elements: how they close each other, how they are laid out, which are never shown.

/// Traits of an element, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traits(u16);

impl Traits {
    /// On lines of its own.
    pub(super) const BLOCK: Self = Self(1);
    /// With an empty line around it.
    pub(super) const SPACED: Self = Self(1 << 1);
    /// Stops the end tag of an ordinary element outside it.
    pub(super) const SPECIAL: Self = Self(1 << 2);
    /// Continues after the block in which it was left open.
    pub(super) const FORMATTING: Self = Self(1 << 3);
    /// Has no content.
    pub(super) const VOID: Self = Self(1 << 4);
    /// Stops the end tag of a block outside it.
    pub(super) const SCOPE: Self = Self(1 << 5);
    /// Ends the scope of formatting elements that were opened in it.
    pub(super) const MARKER: Self = Self(1 << 6);
    /// Its content is not shown.
    pub(super) const NOT_RENDERED: Self = Self(1 << 7);
    /// Ends an open paragraph.
    pub(super) const CLOSES_P: Self = Self(1 << 8);
    /// Means nothing outside a table.
    pub(super) const TABLE_PART: Self = Self(1 << 9);
    /// A heading.
    pub(super) const HEADING: Self = Self(1 << 10);

    /// Open elements with this trait are counted.
    pub(super) const TRACKED: Self = Self(1 << 11);

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of these are among them.
    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The traits of an element.
    ///
    /// `noscript` counts as never shown: mail clients differ, and messages have nothing to say there. The same goes for
    /// `MathML`, SVG, fallback content of media, and the options of a list box.
    pub(super) fn of(name: &str) -> Self {
        const FLOW: Traits = Traits::BLOCK.and(Traits::SPECIAL).and(Traits::CLOSES_P);
        const CELL: Traits = Traits::SPECIAL.and(Traits::SCOPE).and(Traits::MARKER).and(Traits::TABLE_PART);
        const EMBEDDED: Traits =
            Traits::SPECIAL.and(Traits::SCOPE).and(Traits::MARKER).and(Traits::NOT_RENDERED);
        match name {
            "p" | "blockquote" | "pre" | "listing" | "figure" => FLOW.and(Self::SPACED),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => FLOW.and(Self::SPACED).and(Self::HEADING),
            "div" | "section" | "article" | "header" | "footer" | "main" | "nav" | "aside" | "center"
            | "address" | "figcaption" | "fieldset" | "form" | "details" | "summary" | "dl" | "dt" | "dd"
            | "hgroup" | "dir" | "menu" | "search" | "dialog" | "ul" | "ol" | "li" => FLOW,
            "legend" | "textarea" | "xmp" | "plaintext" => Self::BLOCK.and(Self::SPECIAL),
            "table" => Self::BLOCK.and(Self::SPECIAL).and(Self::SCOPE).and(Self::TRACKED),
            "tr" => Self::BLOCK.and(Self::SPECIAL).and(Self::TABLE_PART),
            "td" | "th" => CELL,
            "caption" => CELL.and(Self::BLOCK),
            "tbody" | "thead" | "tfoot" => Self::SPECIAL.and(Self::TABLE_PART),
            "a" | "b" | "big" | "code" | "em" | "font" | "i" | "nobr" | "s" | "small" | "strike"
            | "strong" | "tt" | "u" => Self::FORMATTING,
            "br" | "img" | "image" | "input" | "hr" | "wbr" | "meta" | "link" | "base" | "area" | "embed"
            | "param" | "source" | "track" | "bgsound" | "basefont" | "frame" | "keygen" => Self::VOID,
            "col" | "colgroup" => Self::VOID.and(Self::TABLE_PART),
            "object" | "applet" | "template" => EMBEDDED,
            "marquee" => EMBEDDED.without(Self::NOT_RENDERED),
            "head" => Self::SPECIAL.and(Self::NOT_RENDERED).and(Self::TRACKED),
            "script" | "style" | "title" | "iframe" | "noembed" | "noframes" | "noscript" | "select"
            | "frameset" => Self::SPECIAL.and(Self::NOT_RENDERED),
            "svg" | "math" => Self::NOT_RENDERED.and(Self::TRACKED),
            "datalist" | "video" | "audio" | "canvas" | "rp" | "meter" | "progress" => Self::NOT_RENDERED,
            "foreignobject" | "annotation-xml" => Self::TRACKED,
            "html" => Self::SPECIAL.and(Self::SCOPE),
            "body" | "button" => Self::SPECIAL,
            _ => Self(0),
        }
    }

    /// The traits of an element within SVG or `MathML`.
    pub(super) fn of_foreign(name: &str) -> Self {
        match name {
            "svg" | "math" | "foreignobject" | "annotation-xml" => Self::NOT_RENDERED.and(Self::TRACKED),
            _ => Self::NOT_RENDERED,
        }
    }

    const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// Elements that may occur in a head without ending it.
pub(super) fn belongs_in_head(name: &str) -> bool {
    matches!(
        name,
        "head"
            | "meta"
            | "link"
            | "title"
            | "style"
            | "script"
            | "base"
            | "noscript"
            | "template"
            | "basefont"
            | "bgsound"
            | "noframes"
    )
}

/// HTML elements that end the SVG or `MathML` in which they occur.
pub(super) fn breaks_out(name: &str, has_attributes: bool) -> bool {
    match name {
        "font" => has_attributes,
        "b" | "big" | "blockquote" | "body" | "br" | "center" | "code" | "dd" | "div" | "dl" | "dt"
        | "em" | "embed" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "head" | "hr" | "i" | "img" | "li"
        | "listing" | "menu" | "meta" | "nobr" | "ol" | "p" | "pre" | "ruby" | "s" | "small" | "span"
        | "strong" | "strike" | "sub" | "sup" | "table" | "tt" | "u" | "ul" | "var" => true,
        _ => false,
    }
}

/// Attributes whose values selectors compare case-insensitively.
pub(super) fn compares_any_case(name: &str) -> bool {
    matches!(
        name,
        "accept"
            | "align"
            | "alink"
            | "axis"
            | "bgcolor"
            | "charset"
            | "checked"
            | "clear"
            | "color"
            | "compact"
            | "dir"
            | "direction"
            | "disabled"
            | "enctype"
            | "face"
            | "frame"
            | "hreflang"
            | "http-equiv"
            | "lang"
            | "language"
            | "link"
            | "media"
            | "method"
            | "multiple"
            | "nohref"
            | "noshade"
            | "nowrap"
            | "readonly"
            | "rel"
            | "rev"
            | "rules"
            | "scope"
            | "scrolling"
            | "selected"
            | "shape"
            | "target"
            | "text"
            | "type"
            | "valign"
            | "valuetype"
            | "vlink"
    )
}

/// Whether a document is in quirks mode: then class names are case-insensitive.
pub(super) fn is_quirky(html: &str) -> bool {
    let mut rest = html.trim_start_matches('\u{feff}').trim_start();
    while let Some(comment) = rest.strip_prefix("<!--") {
        rest = comment.split_once("-->").map_or("", |(_, after)| after).trim_start();
    }
    let Some(("<!doctype", kind)) = rest
        .split_at_checked(9)
        .map(|(start, kind)| (if start.eq_ignore_ascii_case("<!doctype") { "<!doctype" } else { "" }, kind))
    else {
        return true;
    };
    let kind = kind.split('>').next().unwrap_or_default();
    let kind: String = kind.chars().take(200).collect::<String>().to_ascii_lowercase();
    let is_html = kind.split_ascii_whitespace().next() == Some("html");
    let old = ["html 4.0 ", "html 4.0/", "html 3.", "html 2."].iter().any(|version| kind.contains(version));
    let loose = kind.contains("html 4.01 transitional") || kind.contains("html 4.01 frameset");
    !is_html || old || (loose && !kind.contains("http://"))
}
