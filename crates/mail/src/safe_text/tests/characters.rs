//! Which characters go, which stay, and what becomes of them.

use super::super::{SafeText, is_forbidden};

fn plain(text: &str) -> String {
    SafeText::from_plain(text).into_string()
}

// rules: SAFE-7
#[test]
fn invisible_characters_go() {
    let ranges = [
        0x00..=0x09,
        0x0b..=0x1f,
        0x7f..=0x9f,
        0xad..=0xad,
        0x34f..=0x34f,
        0x61c..=0x61c,
        0x115f..=0x1160,
        0x17b4..=0x17b5,
        0x180b..=0x180f,
        0x200b..=0x200f,
        0x2028..=0x202e,
        0x2060..=0x206f,
        0x3164..=0x3164,
        0xfe00..=0xfe0f,
        0xfeff..=0xfeff,
        0xffa0..=0xffa0,
        0xfff9..=0xfffc,
        0xfffe..=0xffff,
        0xe000..=0xf8ff,
        0xfdd0..=0xfdef,
        0x1d173..=0x1d17a,
        0xe0000..=0xe01ef,
        0xf_0000..=0xf_ffff,
        0x10_fffe..=0x10_ffff,
    ];
    for c in ranges.into_iter().flatten().filter_map(char::from_u32) {
        assert!(is_forbidden(c), "U+{:04X} is not forbidden", u32::from(c));
        let text = plain(&format!("pay{c}pal"));
        assert!(
            matches!(text.as_str(), "paypal" | "pay pal" | "pay\npal"),
            "U+{:04X} gave {text:?}",
            u32::from(c)
        );
        assert!(!SafeText::line(&format!("pay{c}pal")).as_str().chars().any(is_forbidden));
        assert!(!super::text_of(&format!("pay{c}pal &#{};", u32::from(c))).chars().any(is_forbidden));
    }
}

// rules: SAFE-7
#[test]
fn smuggled_text_is_not_readable() {
    let tags: String = "obey".chars().filter_map(|c| char::from_u32(0xe0000 + u32::from(c))).collect();
    assert_eq!(plain(&format!("hello{tags}")), "hello");
    let selectors: String =
        b"obey".iter().filter_map(|byte| char::from_u32(0xe0100 + u32::from(*byte))).collect();
    assert_eq!(plain(&format!("😀{selectors}")), "😀");
    let bits: String = "\u{2062}\u{2064}\u{2062}".repeat(20);
    assert_eq!(plain(&format!("a{bits}b")), "ab");
    assert_eq!(plain("\u{202e}evil\u{202c} \u{2066}x\u{2069}"), "evil x");
}

// rules: SAFE-7
#[test]
fn white_space_folds() {
    assert_eq!(plain(" a\u{a0}\u{3000} b\t\tc \r\n\r\n\r\n\r\n d\re\u{2028}f "), "a b c\n\nd\ne\nf");
    assert_eq!(plain("\n \u{200b}\n\n"), "");
    assert_eq!(plain("a\u{2800}b\u{b}c"), "a b\nc");
}

// rules: SAFE-7
#[test]
fn text_is_composed_and_marks_are_few() {
    assert_eq!(plain("cafe\u{301} A\u{30a} \u{212b}"), "café Å Å");
    assert_eq!(plain("\u{1100}\u{1161}\u{11a8}"), "각");
    let buried = format!("a{}b", "\u{300}\u{316}\u{489}".repeat(400));
    assert!(plain(&buried).chars().count() <= 6);
    for kept in
        ["Tiếng Việt", "नमस्ते दुनिया", "สวัสดี ชาวโลก ที่นี่", "שָׁלוֹם", "السَّلَامُ عَلَيْكُمْ", "👍🏽 🇩🇪", "日本語 한국어 中文"]
    {
        assert_eq!(plain(kept), unicode_normalization::UnicodeNormalization::nfc(kept).collect::<String>());
    }
}

// rules: SAFE-7
#[test]
fn hosts_in_ascii_leave_text_that_stays_as_it_is() {
    let long = "é.".repeat(600);
    for (text, safe) in [
        // The mark belongs to the letter before it: it is no part of the host, or both are.
        ("http://é.comT\u{308}", "http://xn--9ca.comT\u{308}".to_owned()),
        ("http://é.cT\u{308}", "http://xn--9ca.xn--c-hum".to_owned()),
        ("http://é.com見る", "http://xn--9ca.com見る".to_owned()),
        // Nothing so long is a host.
        (&format!("http://{long}com"), format!("http://{long}com")),
    ] {
        let once = plain(text);
        assert_eq!(once, safe);
        assert_eq!(plain(&once), once);
    }
}
