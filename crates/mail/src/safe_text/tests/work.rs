//! Documents built to be expensive. None of these tests looks at a clock: work that is not linear would not end.

use super::super::render::MAX_HTML;
use super::super::writer::MAX_OUTPUT_BYTES;
use super::super::{SafeText, body};

/// Repeats a text up to a size at which quadratic work would already take minutes.
fn fill(unit: &str) -> String {
    unit.repeat(MAX_HTML / 4 / unit.len())
}

// rules: SAFE-11
#[test]
fn large_documents_of_any_shape_are_read() {
    let units = [
        "<div>",
        "<b>",
        "</b>",
        "<p>",
        "<ul><li>",
        "<table><tr><td>",
        "<a href=x>",
        "<",
        "<!--",
        "<!-- -->",
        "</",
        "<a ",
        "<a b=",
        "<a b='",
        "&",
        "&#",
        "&amp",
        "<svg>",
        "<svg><b>",
        "<b><p></b>",
        "<p><b></p>x",
        "<font color=red><div></font>",
        "<script>",
        "<style>",
        "<title>",
        "<template>",
        "<blockquote>x",
        "<i></div>",
        "<x><y></x>",
        "\u{300}",
        "\u{200b}",
        "a\n\n",
        "<br>",
        "<details>",
        "<select><option>",
        "<li><object></li>",
        "<a href=http://a.example>x</a>",
        "<img alt=x>",
        "<td>",
        "<h1>",
        "<a><b><i><u><p></a></b>x",
        "://é",
        "<p style=display:none>",
        "<p style='color:red;font-size:3px'>x",
    ];
    for unit in units {
        let text = SafeText::from_html(&fill(unit));
        assert!(text.as_str().len() <= MAX_OUTPUT_BYTES * 2, "{unit}");
    }
}

// rules: SAFE-11
#[test]
fn the_deepest_document_is_read() {
    for unit in ["<b>", "<div>", "<ul><li>"] {
        let deep = unit.repeat(MAX_HTML / unit.len() - 2);
        assert!(SafeText::from_html(&format!("{deep}shown")).as_str().ends_with("shown"));
    }
}

// rules: SAFE-11
#[test]
fn large_style_sheets_are_read() {
    let half = MAX_HTML / 8;
    let rules = [
        ".a{color:red}",
        ".a .b .c{color:red}",
        ".a{",
        "@media screen{",
        ":not(",
        ".a:not(.b){opacity:0}",
        "/*",
        "'",
        "\\",
        ".a.a.a.a.a.a{color:red}",
        "a,",
        "--a:b;",
        ".a{color:var(--a)}",
        "[a=b]{color:red}",
        "*{color:red}",
        "}",
        "(",
        "a>",
    ];
    for rule in rules {
        let css = rule.repeat(half / rule.len());
        let elements = "<b class='a b c' a=b>".repeat(half / 22);
        SafeText::from_html(&format!("<style>{css}</style>{elements}shown"));
        SafeText::from_html(&format!("<p style=\"{}\">shown", css.replace('"', "")));
    }
    // The same rule over and over is no work.
    let work = format!("<style>{}</style>{}", ".a .x{color:red}".repeat(9_000), "<b class=x>".repeat(50_000));
    let hidden = format!("<style>.s{{display:none}}</style>{work}<i class=s>SECRET</i>");
    assert!(!SafeText::from_html(&hidden).as_str().contains("SECRET"));
}

/// So many comparisons that they are not all made: then nothing more is hidden, and the message is marked.
// rules: SAFE-11, SAFE-14
#[test]
fn a_document_that_asks_for_too_much_is_marked() {
    let rules: Vec<String> = (0..9_000).map(|n| format!(".a{n} .x{{color:red}}")).collect();
    let rules = rules.concat();
    let html = format!(
        "<style>.s{{display:none}}{rules}</style>{}<i class=s>SHOWN</i>",
        "<b class=x>".repeat(50_000)
    );
    let seen = body(None, Some(&html));
    assert!(seen.text.as_str().contains("SHOWN") && seen.divergent);
}

// rules: SAFE-11
#[test]
fn selectors_and_values_built_to_be_expensive_are_read() {
    let size = MAX_HTML / 8;
    let many = |unit: &dyn Fn(usize) -> String| {
        let mut all = String::new();
        for n in 0.. {
            all.push_str(&unit(n));
            if all.len() > size {
                break;
            }
        }
        all
    };
    let sheets = [
        many(&|n| format!(":is(.a{n},.b):not(.c{n} .d){{opacity:0}}")),
        many(&|n| format!(".a{n} + .b{n} ~ b{{opacity:0}}")),
        many(&|n| format!("b:nth-last-child({n}n+1){{opacity:0}}")),
        many(&|n| format!("#i{n}{{.b &{{opacity:0}}}}")),
        many(&|n| format!("@keyframes k{n}{{to{{opacity:0}}}}")),
        format!(
            "@keyframes k{{{}}} b{{animation:k 1s infinite}}",
            many(&|n| format!("{}%{{opacity:0}}", n % 101))
        ),
        format!("b{{{}}}", many(&|n| format!("opacity:.{n};"))),
        format!("b{{opacity:{}}}", "calc(".repeat(size / 5)),
        format!("b{{opacity:calc({}1)}}", "1 + ".repeat(size / 4)),
        format!("b{{transform:{}}}", "scale(1)".repeat(size / 8)),
        ":is(".repeat(size / 4),
        ":not(:is(".repeat(size / 9),
        "@media not ".to_owned() + &"not ".repeat(size / 4) + "print{b{opacity:0}}",
        "b{".repeat(size / 2),
        ".a{.b &".repeat(size / 7),
        ("a>".repeat(size / 2)) + "b{opacity:0}",
        format!("b{{opacity:{}1{}}}", "var(--a,".repeat(size / 10), ")".repeat(size / 10)),
    ];
    for css in sheets {
        for element in ["<b class='b d'>", "<b class='b d'></b>", "<b id=i1 class='a1 b1 c1'>x<br>"] {
            let elements = element.repeat(size / element.len());
            SafeText::from_html(&format!("<style>{css}</style>{elements}shown"));
        }
    }
    for style in
        ["overflow:hidden;height:9px", "overflow:auto;width:1%;height:1em", "animation:k 1s infinite"]
    {
        let element = format!("<div style='{style}'>x");
        SafeText::from_html(&element.repeat(size / element.len()));
    }
}

// rules: SAFE-11
#[test]
fn what_lies_beyond_the_bound_is_not_read() {
    let text = SafeText::from_html(&format!("first {} last", "é ".repeat(MAX_HTML / 3)));
    assert!(text.as_str().starts_with("first é"));
    let text = SafeText::from_html(&format!("first{} last", " ".repeat(MAX_HTML)));
    assert_eq!(text.as_str(), "first");
    let many = "<base href='https://example.com/".to_owned()
        + &"a".repeat(250)
        + "/'>"
        + &"<a href=b>c</a>".repeat(60_000);
    assert!(SafeText::from_html(&many).as_str().len() <= MAX_OUTPUT_BYTES + 4_096);
}
