//! URLs of pages: how names are encoded in them, and which may be followed.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters that need no encoding in a path.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

/// A name, percent-encoded for a path.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, KEPT).to_string()
}

/// Where to go after logging in: a path of this server, and nothing that a browser could read as another host.
pub(super) fn safe_next(next: &str) -> &str {
    let plain = next.starts_with('/')
        && !next.starts_with("//")
        && next.len() <= 2000
        && !next.chars().any(|c| c == '\\' || c.is_control() || c.is_whitespace());
    // Only the console's own pages: nothing else uses the cookie and shows a page.
    let inside = next == "/console" || next.starts_with("/console/") || next.starts_with("/console?");
    let ends_session = next.starts_with("/console/log");
    if plain && inside && !ends_session && !next.contains("/../") { next } else { "/console" }
}

#[cfg(test)]
mod tests {
    use super::safe_next;

    // rules: CONSOLE-7
    #[test]
    fn only_paths_of_the_console_are_followed() {
        for good in ["/console", "/console/keys", "/console/m/mbx_1/inbox?q=a%20b", "/console?x=1"] {
            assert_eq!(safe_next(good), good);
        }
        for bad in [
            "",
            "//evil.test",
            "/\\evil.test",
            "https://evil.test",
            "javascript:alert(1)",
            "/console\\..",
            "/consolex",
            "/console/../evil",
            "\t//evil.test",
            "/console/a b",
            "/console/logout",
            "/api/v1/x",
            "//console/x",
            "/console/\u{0}",
            "/console//\nevil",
        ] {
            assert_eq!(safe_next(bad), "/console", "{bad:?}");
        }
    }
}
