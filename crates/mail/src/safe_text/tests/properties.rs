//! What holds for every text, tried with many.

use proptest::prelude::*;

use super::super::{SafeText, body, is_forbidden, snippet};
use super::text_of;

/// Text with many of the characters that must go.
fn odd_text() -> impl Strategy<Value = String> {
    let odd = prop_oneof![
        any::<char>(),
        proptest::char::range('\0', '\u{ff}'),
        proptest::char::range('\u{300}', '\u{36f}'),
        proptest::char::range('\u{2000}', '\u{206f}'),
        proptest::char::range('\u{1100}', '\u{11ff}'),
        proptest::char::range('\u{900}', '\u{d7f}'),
        proptest::sample::select(vec![
            ' ',
            '\n',
            '\r',
            ':',
            '/',
            '.',
            'h',
            't',
            'p',
            '\u{e0041}',
            '\u{fe0f}',
            '\u{338}'
        ]),
    ];
    let words = prop_oneof![
        4 => odd.prop_map(String::from),
        1 => proptest::sample::select(vec!["http://", "https://", "é.com", ".com", "xn--"]).prop_map(str::to_owned),
    ];
    proptest::collection::vec(words, 0..60).prop_map(|parts| parts.concat())
}

/// Pieces of HTML.
const PIECES: &[&str] = &[
    "<",
    ">",
    "</",
    "/>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?",
    "&",
    "&amp;",
    "&#x202e;",
    "&#0;",
    "&zwj;",
    "=",
    "'",
    "\"",
    " ",
    "\n",
    "\0",
    "<div>",
    "</div>",
    "<p>",
    "</p>",
    "<b style='display:none'>",
    "</b>",
    "<table>",
    "<tr>",
    "<td>",
    "</td>",
    "</table>",
    "<a href='",
    "https://é.example/",
    "</a>",
    "<style>",
    ".x{display:none}",
    ":is(.x,:not(b > i)) ~ p{",
    "nth-last-child(2n+1)",
    "@keyframes k{to{opacity:0}}",
    "animation:k 1s infinite;",
    "overflow:hidden;height:9px;",
    "calc(1px + 2em)",
    "{",
    "}",
    ":",
    "/*",
    "*/",
    "url(",
    ")",
    "</style>",
    "<svg>",
    "</svg>",
    "<script>",
    "</script>",
    "<li>",
    "<ol>",
    "<br>",
    "<pre>",
    "<details>",
    "<summary>",
    "<select>",
    "<img alt='",
    " class=x ",
    " style='",
    "color:#fff;",
    "é",
    "\u{301}",
    "\u{200d}",
    "text",
    "<title>",
    "<blockquote>",
    "</blockquote>",
    "<font color=white>",
    "</font>",
    "<textarea>",
    "<template>",
    "</template>",
    "<base href='",
];

/// Pieces of HTML, in any order.
fn html_like() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![9 => proptest::sample::select(PIECES).prop_map(str::to_owned), 1 => odd_text()],
        0..80,
    )
    .prop_map(|parts| parts.concat())
}

/// Ways to hide a word, with `{}` where it stands.
const TRICKS: &[&str] = &[
    "<div style='display:none'>{}</div>",
    "<span style=\"visibility:hidden\">{}</span>",
    "<p style='opacity:0'>{}</p>",
    "<b style='font-size:1px'>{}</b>",
    "<div style='position:absolute;left:-9999px'>{}</div>",
    "<font color=white>{}</font>",
    "<div hidden>{}</div>",
    "<!-- {} -->",
    "<template>{}</template>",
    "<i class=hide>{}</i>",
    "<script>{}</script>",
    "<div style='max-height:0;overflow:hidden'><p>{}<table><tr><td>{}</table></div>",
    "<svg><text>{}</text></svg>",
    "<details><summary></summary>{}</details>",
    "<span style='color:transparent'>{}</span>",
    "<title>{}</title>",
    "<p><q class=is>{}</q></p>",
    "<p><u>x</u><u>{}</u></p>",
    "<p><s>{}</s></p>",
    "<p class=fades>{}</p>",
    "<p style='font-size:calc(3px - 2px)'>{}</p>",
    "<div style='height:20px;overflow:hidden'><p>x</p><p>y</p><p>{}</p></div>",
    "<div style='width:90px;overflow:hidden'><p style='margin-left:99px'>{}</p></div>",
];

/// Ways to show a word.
const PLAIN: &[&str] = &[
    "<p>{}</p>",
    "<div><b>{}</b></div>",
    "<table><tr><td>{}</td><td>x</td></tr></table>",
    "<ul><li>{}</ul>",
    "{}<br>",
    "<span style='color:#444;font-size:11px'>{}</span>",
    "<div style='background:#123;color:#fff'>{}</div>",
    "<a href='https://example.com/'>{}</a>",
    "<blockquote>{}</blockquote>",
    "<h2>{}</h2>",
    "<div class=show>{}</div>",
    "<p><u>{}</u><u>x</u></p>",
    "<p><s>{}</s><s>x</s></p>",
    "<p class=appears>{}</p>",
    "<div style='height:20px;overflow:hidden'>{}</div>",
    "<p style='width:calc(100% - 9px);overflow:hidden'>{}</p>",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    // rules: SAFE-7
    #[test]
    fn cleaning_twice_changes_nothing(text in odd_text()) {
        let once = SafeText::from_plain(&text);
        prop_assert_eq!(&SafeText::from_plain(once.as_str()), &once);
        let line = SafeText::line(&text);
        prop_assert_eq!(&SafeText::line(line.as_str()), &line);
        prop_assert_eq!(&SafeText::from_plain(line.as_str()), &line);
    }

    // rules: SAFE-7, SAFE-12
    #[test]
    fn nothing_forbidden_is_left(text in odd_text(), html in html_like()) {
        for safe in [SafeText::from_plain(&text), SafeText::from_html(&html), SafeText::from_html(&text)] {
            prop_assert!(!safe.as_str().chars().any(is_forbidden));
            prop_assert!(!safe.as_str().contains("\n\n\n") && !safe.as_str().contains("  "));
            prop_assert_eq!(safe.char_count(), safe.as_str().chars().count());
        }
        let line = SafeText::line(&text);
        prop_assert!(!line.as_str().chars().any(|c| is_forbidden(c) || c == '\n'));
        let short = snippet(&SafeText::from_html(&html), 50);
        prop_assert!(short.chars().count() <= 50 && !short.contains('\n'));
    }

    // rules: SAFE-10, SAFE-11
    #[test]
    fn texts_are_bounded(text in odd_text(), html in html_like(), max in 0_usize..100) {
        let safe = SafeText::from_plain(&text);
        // Hosts may grow in their ASCII form, and composing never adds characters.
        prop_assert!(safe.char_count() <= text.chars().count() * 8 + 8);
        let (part, original) = safe.cut(max);
        prop_assert_eq!(part.chars().count(), safe.char_count().min(max));
        prop_assert_eq!(original, (safe.char_count() > max).then_some(safe.char_count()));
        prop_assert!(text_of(&html).len() <= html.len() * 8 + 64);
        body(Some(&text), Some(&html));
    }

    // rules: SAFE-6
    #[test]
    fn visible_words_stay_and_hidden_words_go(
        parts in proptest::collection::vec((any::<bool>(), 0_usize..1000), 1..30),
        wrap in 0_usize..4,
    ) {
        let mut html = String::from(
            "<style>.hide{display:none}.show{display:block}:is(.no,q.is){display:none}u:nth-child(2n){display:none}\
             s:last-child:not(:nth-child(2)){display:none}@keyframes out{to{opacity:0}}@keyframes in{to{opacity:1}}\
             .fades{animation:out 1s forwards}.appears{opacity:0;animation:in 1s both}</style>",
        );
        html.push_str(&"<div>".repeat(wrap));
        for (number, (hide, choice)) in parts.iter().enumerate() {
            let forms = if *hide { TRICKS } else { PLAIN };
            let word = if *hide { format!("hidden{number}x") } else { format!("visible{number}x") };
            html.push_str(&forms[choice % forms.len()].replace("{}", &word));
        }
        let text = text_of(&html);
        prop_assert!(!text.contains("hidden"), "{html}\n{text}");
        for (number, _) in parts.iter().enumerate().filter(|(_, (hide, _))| !hide) {
            prop_assert!(text.contains(&format!("visible{number}x")), "{html}\n{text}");
        }
    }
}
