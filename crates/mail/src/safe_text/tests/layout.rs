//! How pages become lines, and how links are shown.

use super::super::{SafeText, snippet};
use super::text_of;

fn check(cases: &[(&str, &str)]) {
    for (html, expected) in cases {
        assert_eq!(text_of(html), *expected, "{html}");
    }
}

// rules: SAFE-6
#[test]
fn blocks_become_lines() {
    check(&[
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("one<br>two<br/>three", "one\ntwo\nthree"),
        ("one<br><br><br><br>two", "one\n\ntwo"),
        ("<div>one</div><div>two</div>", "one\ntwo"),
        ("<h1>Head</h1>text", "Head\n\ntext"),
        ("<ul><li>one<li>two</ul>", "- one\n- two"),
        ("<ol start=3><li>three</li><li>four</li></ol>", "3. three\n4. four"),
        ("<ul><li>one<ul><li>inner</ul><li>two</ul>", "- one\n- inner\n- two"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>", "a | b\nc | d"),
        ("<table><tr><td></td><td>b</td></tr></table>", "b"),
        ("<blockquote>one<br>two</blockquote>three", "> one\n> two\n\nthree"),
        ("<blockquote>a<blockquote>b</blockquote></blockquote>", "> a\n> >\n> > b"),
        ("<pre>one\n  two\n\n\nthree</pre>", "one\ntwo\n\nthree"),
        ("  a \n\t b  <b> c</b>d ", "a b cd"),
        ("a&nbsp;&nbsp;b&#160;c", "a b c"),
        ("<span style='display:block'>a</span>b", "a\nb"),
        ("<img alt='A  logo' src=x> text", "[image: A logo] text"),
        ("one<hr>two", "one\n\ntwo"),
        (
            "Fish &amp; chips &lt;3 &euro;5 &#8364;6 &#x20AC;7 &copy 2026 &hellip;",
            "Fish & chips <3 €5 €6 €7 © 2026 …",
        ),
        ("&amp;lt;b&amp;gt; &unknown; &; &#; &#xzz; &#150;", "&lt;b&gt; &unknown; &; &#; &#xzz; –"),
    ]);
}

// rules: SAFE-8
#[test]
fn links_show_their_real_targets() {
    check(&[
        ("<a href='https://example.com/a?b=1&amp;c=2'>go</a>", "go (https://example.com/a?b=1&c=2)"),
        ("<a href='https://example.com/'>https://example.com</a>", "https://example.com"),
        (
            "<a href='https://evil.example/'>https://bank.example</a>",
            "https://bank.example (https://evil.example/)",
        ),
        ("<a href='https://аррӏе.com/x'>apple</a>", "apple (https://xn--80ak6aa92e.com/x)"),
        ("<a href='HTTPS://EXAMPLE.COM/A'>go</a>", "go (https://example.com/A)"),
        ("<a href='http://2130706433/'>go</a>", "go (http://127.0.0.1/)"),
        ("<a href='https://bank.example@evil.example/'>go</a>", "go (https://bank.example@evil.example/)"),
        ("<a href='h\nttps://example.com/ '>go</a>", "go (https://example.com/)"),
        ("<a href='javascript:alert(1)'>go</a>", "go"),
        ("<a href=' JavaScript:alert(1)'>go</a>", "go"),
        (
            "<a href='data:text/html,x'>go</a> <a href='file:///x'>f</a> <a href='/x'>r</a> <a>n</a>",
            "go f r n",
        ),
        ("<base href='https://example.com/d/'><a href='x'>go</a>", "go (https://example.com/d/x)"),
        ("<a href='//example.com/x'>go</a>", "go (https://example.com/x)"),
        ("<a href='mailto:a@example.com?subject=x'>write</a>", "write (mailto:a@example.com)"),
        ("<a href='mailto:a@bücher.example'>write</a>", "write (mailto:a@xn--bcher-kva.example)"),
        ("<a href='mailto:a@example.com'>a@example.com</a>", "a@example.com"),
        ("<a href='tel:+49 30 1234'>call</a>", "call (tel:+49301234)"),
        ("<a href='https://example.com/'><p>go</p></a>next", "go (https://example.com/)\n\nnext"),
        ("<a href='https://example.com/'><img alt=Shop src=x></a>", "[image: Shop] (https://example.com/)"),
        (
            "<a href='https://a.example/'>one<a href='https://b.example/'>two</a>",
            "one (https://a.example/)two (https://b.example/)",
        ),
    ]);
    assert_eq!(
        SafeText::from_plain("see https://аррӏе.com/x.").as_str(),
        "see https://xn--80ak6aa92e.com/x."
    );
    assert_eq!(SafeText::from_plain("见https://example.com请点击").as_str(), "见https://example.com请点击");
    let long = format!("<a href='https://example.com/{}'>go</a>", "x".repeat(5_000));
    assert!(text_of(&long).chars().count() < 2_100);
}

// rules: SAFE-10, SAFE-12
#[test]
fn text_is_cut_between_characters() {
    let text = SafeText::from_plain("äöü€𝄞x");
    assert_eq!(text.char_count(), 6);
    assert_eq!(text.cut(6), ("äöü€𝄞x", None));
    assert_eq!(text.cut(5), ("äöü€𝄞", Some(6)));
    assert_eq!(text.cut(0), ("", Some(6)));
    let body =
        SafeText::from_html("<div style='display:none'>SECRET</div><p>Hello\u{200b} there</p><p>friend</p>");
    assert_eq!(snippet(&body, 200), "Hello there friend");
    assert_eq!(snippet(&body, 6), "Hello");
    assert_eq!(snippet(&SafeText::from_plain("a\n\nb\n\nc\n\nd"), 7), "a b c d");
    assert_eq!(SafeText::line("Re:\r\n a\u{202e}b\u{7}\tc").as_str(), "Re: ab c");
}
