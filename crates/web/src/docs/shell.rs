//! What all pages share: the document's frame, the stylesheet, and the content security policy.

use std::sync::LazyLock;

use axum::http::HeaderValue;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};

use super::html::Html;

/// The envelope of the mark, as in the console's templates.
const MARK: &str = "M3 5.5h14v9H3z M3 6l7 5.5L17 6";

pub(super) const STYLESHEET: &str = include_str!("style.css");

/// The icon that browsers show in a tab.
pub(crate) const ICON: &str = include_str!("../../assets/icon.svg");
/// Its path.
pub(crate) const ICON_PATH: &str = "/favicon.svg";

/// Allows our stylesheet, by its hash, and our icon, and nothing else: not even style attributes.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let hash = STANDARD.encode(Sha256::digest(STYLESHEET));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// The content security policy of the pages.
pub(crate) fn content_security_policy() -> HeaderValue {
    POLICY.clone()
}

/// A whole document around the closure's output.
pub(super) fn document(title: &str, description: &str, body: impl FnOnce(&mut Html)) -> String {
    let mut inside = Html::default();
    inside.line("title", title);
    let title = inside.finish();
    let mut page = Html::default();
    page.put("body", |html| {
        html.link("a.skip", "#content", "Skip to content");
        body(html);
    });
    let mut attribute = Html::default();
    attribute.text(description);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"description\" content=\"{}\">\n\
         <link rel=\"icon\" href=\"{ICON_PATH}\">\n{title}\n<style>{STYLESHEET}</style>\n</head>\n{}\n</html>\n",
        attribute.finish(),
        page.finish(),
    )
}

/// The product's name, as a link to the welcome page.
pub(super) fn brand(html: &mut Html) {
    html.put_with("a.brand", &[("href", "/")], |html| {
        // The mark of the console, drawn in the page: it loads nothing.
        html.put_with("span.mark", &[("aria-hidden", "true")], |html| {
            html.put_with("svg", &[("viewBox", "0 0 20 20")], |html| {
                html.put_with("path", &[("d", MARK)], |_| {});
            });
        });
        html.text("Agent Mailbox");
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_the_stylesheet_and_allows_nothing_inline() {
        let policy = content_security_policy();
        let policy = policy.to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
        assert!(!policy.contains("unsafe"));
    }

    #[test]
    fn the_stylesheet_loads_nothing() {
        for forbidden in ["url(", "@import", "http:", "https:", "</"] {
            assert!(!STYLESHEET.contains(forbidden), "{forbidden}");
        }
    }
}
