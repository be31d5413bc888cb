//! Style sheets as browsers read them: what they hide goes, what they do not hide stays, and what cannot be read is
//! marked.

use super::super::{body, render::render};
use super::text_of;

/// Each: what is wrong with a case, if anything is. `SECRET` must go, `SHOWN` must stay, and nothing is left unread.
fn check(cases: &[&str]) {
    let mut faults = Vec::new();
    for case in cases {
        let text = text_of(case);
        if text.contains("SECRET") || case.contains("SHOWN") && !text.contains("SHOWN") {
            faults.push(format!("wrong: {case}\n   as: {text:?}"));
        }
        if render(case).unread {
            faults.push(format!("unread: {case}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

// rules: SAFE-6
#[test]
fn lists_of_selectors_in_brackets() {
    check(&[
        "<style>:is(.x){display:none}</style><b class=x>SECRET</b><b>SHOWN</b>",
        "<style>:is(.y,.x,#z){display:none}</style><b class=x>SECRET</b><b id=z>SECRET</b><b>SHOWN</b>",
        "<style>:where(.x){display:none}</style><b class=x>SECRET</b>",
        "<style>p:is(.x):is(.y){display:none}</style><p class='x y'>SECRET</p><p class=x>SHOWN</p>",
        "<style>:is(.a,.b) > :is(i,u){display:none}</style><p class=b><u>SECRET</u><b>SHOWN</b></p>",
        "<style>:is(.a .b, .c > .d) i{display:none}</style><p class=c><b class=d><i>SECRET</i></b><i>SHOWN</i></p>",
        "<style>:not(.a .b).c{display:none}</style><p class=a><b class='b c'>SHOWN</b></p><b class=c>SECRET</b>",
        "<style>b:not(.s, :is(.t, .u)){display:none}</style><b class=u>SHOWN</b><b>SECRET</b>",
        "<style>:not(:not(.x)){display:none}</style><b class=x>SECRET</b><b>SHOWN</b>",
        "<style>b:is(){display:none}</style><b>SHOWN</b>",
        "<style>b:is(:hover){display:none}</style><b>SHOWN</b>",
        "<style>b:not(:hover){display:none}</style><b>SECRET</b>",
        // How strong they are.
        "<style>:is(#never,.x){display:none} .x.x.x{display:inline}</style><b class=x>SECRET</b>",
        "<style>:where(#never,.x){display:none} .x{display:inline}</style><b class=x>SHOWN</b>",
        "<style>b:not(#never){display:none} .x.x.x{display:inline}</style><b class=x>SECRET</b>",
        "<style>.x{display:none} :where(.x){display:inline}</style><b class=x>SECRET</b>",
    ]);
}

// rules: SAFE-6
#[test]
fn places_among_siblings() {
    check(&[
        "<style>i:nth-child(2n+1){display:none}</style><p><i>SECRET</i><i>SHOWN</i><i>SECRET</i></p>",
        "<style>i:nth-child( 2N + 1 ){display:none}</style><p><i>SECRET</i><i>SHOWN</i></p>",
        "<style>i:nth-child(-n+2){display:none}</style><p><i>SECRET</i><i>SECRET</i><i>SHOWN</i></p>",
        "<style>i:nth-child(n+2){display:none}</style><p><i>SHOWN</i><i>SECRET</i></p>",
        "<style>i:nth-child(even){display:none}</style><p><i>SHOWN</i><i>SECRET</i></p>",
        "<style>i:nth-child(+3){display:none}</style><p><b>a</b><b>b</b><i>SECRET</i></p>",
        "<style>i:nth-of-type(2){display:none}</style><p><i>SHOWN</i><b>x</b><i>SECRET</i></p>",
        "<style>i:first-of-type{display:none}</style><p><b>x</b><i>SECRET</i><i>SHOWN</i></p>",
        "<style>i:last-child{display:none}</style><p><i>SHOWN</i><i>SECRET</i></p><p><i>SHOWN</i>text<b>x</b></p>",
        "<style>i:only-child{display:none}</style><p><i>SECRET</i></p><p><i>SHOWN</i><b>x</b></p>",
        "<style>i:last-of-type{display:none}</style><p><i>SHOWN</i><i>SECRET</i><b>x</b></p>",
        "<style>i:only-of-type{display:none}</style><p><i>SECRET</i><b>x</b></p><p><i>SHOWN</i><i>x</i></p>",
        "<style>i:nth-last-child(2){display:none}</style><p><i>SHOWN</i><i>SECRET</i><i>x</i></p>",
        "<style>i:nth-last-of-type(2){display:none}</style><p><i>SECRET</i><i>x</i><b>SHOWN</b></p>",
        "<style>p:not(:empty){display:none}</style><p>SECRET</p><div>SHOWN</div>",
        "<style>p:empty + b{display:none}</style><p></p><b>SECRET</b><p>x</p><b>SHOWN</b>",
        "<style>p:empty + b{display:none}</style><p><i></i></p><b>SHOWN</b>",
        "<style>p + p{display:none}</style><p>SHOWN</p><p>SECRET</p><div>x</div><p>SHOWN</p>",
        "<style>h1 ~ p{display:none}</style><p>SHOWN</p><h1>x</h1><div>x</div><p>SECRET</p>",
        "<style>h1 ~ p{display:none}</style><div><h1>x</h1></div><p>SHOWN</p>",
        "<style>.a + .b ~ p i{display:none}</style><b class=a></b><b class=b></b><hr><p><u><i>SECRET</i></u></p>",
        "<style>tr:nth-child(2){display:none}</style><table><caption>c</caption><tr><td>SHOWN<tr><td>SECRET</table>",
        "<style>table > tr{display:none}</style><table><tr><td>SHOWN</table>",
        "<style>table > tbody > tr{display:none}</style><table><tr><td>SECRET</table>",
        "<style>body:nth-child(2) p{display:none}</style><p>SECRET</p>",
        "<style>head + body p{display:none}</style><p>SECRET</p>",
        "<style>p:first-child{display:none}</style><p>SECRET</p><p>SHOWN</p>",
        "<style>input:checked ~ p{display:none}</style><input type=checkbox checked><p>SECRET</p>",
        "<style>input:checked ~ p{display:none}</style><input type=checkbox><p>SHOWN</p>",
        "<style>.a > .b .c{display:none}</style><p class=a><u class=b><i class=b><b class=c>SECRET</b></i></u></p>",
        "<style>#a#b{display:none}</style><p id=b>SHOWN</p>",
    ]);
}

// rules: SAFE-6
#[test]
fn rules_as_browsers_take_them() {
    check(&[
        // Rules within rules belong to what is around them.
        "<style>.never{p{display:none}}</style><p>SHOWN</p>",
        "<style>.a{p{display:none}}</style><div class=a><p>SECRET</p></div>",
        "<style>.a{&.b{display:none}}</style><p class='a b'>SECRET</p><p class=b>SHOWN</p>",
        "<style>.a{.b &{display:none}}</style><div class=b><p class=a>SECRET</p></div><p class=a>SHOWN</p>",
        "<style>.a{> p{display:none}}</style><div class=a><p>SECRET</p><div><p>SHOWN</p></div></div>",
        "<style>.a{@media screen{display:none}}</style><p class=a>SECRET</p>",
        "<style>.a{color:red;b{color:red} opacity:0}</style><p class=a>SECRET</p>",
        // Case counts where the document has a type.
        "<!doctype html><style>.X{display:none}</style><p class=x>SHOWN</p><p class=X>SECRET</p>",
        "<!doctype html><style>P[data-x='A']{display:none}</style><p data-x=a>SHOWN</p><p data-x=A>SECRET</p>",
        "<style>p[data-x='A' i]{display:none}</style><p data-x=a>SECRET</p>",
        "<style>input[type=TEXT] + b{display:none}</style><input type=text><b>SECRET</b>",
        "<style>[data-x*='']{display:none}</style><p data-x=a>SHOWN</p>",
        // Pseudo-elements and states of other places.
        "<style>::-webkit-scrollbar{display:none}</style><p>SHOWN</p>",
        "<style>p:hover,p::before{display:none}</style><p>SHOWN</p>",
        "<style>p:hover,p{display:none}</style><p>SECRET</p>",
        "<style>@media not all and (min-width:99999px){p{display:none}}</style><p>SECRET</p>",
        "<style>@media (min-resolution:192dpi){p{display:none}}</style><p>SHOWN</p>",
        "<style>@font-face{font-family:x} @import 'x'; p{display:none}</style><p>SECRET</p>",
    ]);
}

// rules: SAFE-6
#[test]
fn arithmetic_of_lengths() {
    check(&[
        "<p style='font-size:calc(0px * 1)'>SECRET</p>",
        "<p style='font-size:calc(16px - 15px)'>SECRET</p>",
        "<p style='font-size:calc(1em + 1px)'>SHOWN</p>",
        "<p style='font-size:calc(1px -1px)'>SHOWN</p>",
        "<p style='text-indent:calc(-1 * 9999px)'>SECRET</p>",
        "<p style='margin:0 0 0 calc(-1 * 9999px)'>SECRET</p>",
        "<p style='position:absolute;left:calc(-100% - 9999px)'>SECRET</p>",
        "<p style='position:absolute;left:calc(50% - 300px)'>SHOWN</p>",
        "<p style='transform:translateX(calc(-2 * 5000px))'>SECRET</p>",
        "<p style='transform:rotate(1deg)translate(-9999px)'>SECRET</p>",
        "<p style='translate:calc(-1 * 9999px)'>SECRET</p>",
        "<p style='translate:0 0'>SHOWN</p>",
        "<p style='opacity:calc(1 - 1)'>SECRET</p>",
        "<p style='opacity:calc(1% * 2)'>SECRET</p>",
        "<p style='height:calc(1px - 1px);overflow:hidden'>SECRET</p>",
        "<p style='height:max(0px, 20px);overflow:hidden'>SHOWN</p>",
        "<p style='font-size:clamp(0px, 1px, 1px)'>SECRET</p>",
        "<p style='font-size:clamp(12px, 2vw, 20px)'>SHOWN</p>",
        "<p style='width:calc(100% - 20px);overflow:hidden'>SHOWN</p>",
        "<style>:root{--n:0}</style><p style='font-size:calc(var(--n) * 1px)'>SECRET</p>",
    ]);
}

// rules: SAFE-6
#[test]
fn animations_show_what_is_seen_in_the_end() {
    const OUT: &str = "<style>@keyframes k{from{opacity:1}to{opacity:0}}";
    const IN: &str = "<style>@keyframes k{from{opacity:0}to{opacity:1}} p{opacity:0}";
    let cases = [
        (OUT, "animation:k 1s forwards", "SECRET"),
        (OUT, "animation:1s ease-in 0s 1 normal both running k", "SECRET"),
        (OUT, "animation-name:k;animation-duration:500ms;animation-fill-mode:forwards", "SECRET"),
        (OUT, "-webkit-animation:k 0s forwards", "SECRET"),
        (OUT, "animation:k 1s", "SHOWN"),
        (OUT, "animation:k 1s infinite", "SHOWN"),
        (OUT, "animation:k 1s 60s forwards", "SHOWN"),
        (OUT, "animation:k 1s reverse forwards", "SHOWN"),
        (OUT, "animation:k 1s 2 alternate forwards", "SHOWN"),
        (OUT, "animation:k 1s paused forwards", "SHOWN"),
        (OUT, "animation:k 1s forwards;opacity:1!important", "SHOWN"),
        (OUT, "animation:other 1s forwards", "SHOWN"),
        (OUT, "animation:none", "SHOWN"),
        (IN, "animation:k 1s forwards", "SHOWN"),
        (IN, "animation:k 1s both", "SHOWN"),
        (IN, "animation:k 1s", "SECRET"),
        (IN, "animation:k 99999s forwards", "SECRET"),
        (IN, "animation:k 1s 99999s both", "SECRET"),
        (IN, "animation:k 1s paused both", "SECRET"),
        (IN, "animation:k 1s infinite", "SHOWN"),
        (IN, "animation:k 1s forwards;display:none", "SECRET"),
        ("<style>@keyframes k{0%,100%{opacity:0}}", "animation:k 1s infinite", "SECRET"),
        ("<style>@keyframes k{to{visibility:hidden}}", "animation:k 1s forwards", "SECRET"),
        ("<style>@keyframes k{to{font-size:0!important}}", "animation:k 1s forwards", "SHOWN"),
        ("<style>@media print{@keyframes k{to{opacity:0}}}", "animation:k 1s forwards", "SHOWN"),
    ];
    let cases = cases.map(|(css, style, word)| format!("{css}</style><p style='{style}'>{word}</p>"));
    check(&cases.each_ref().map(String::as_str));
}

// rules: SAFE-6
#[test]
fn boxes_cut_off_what_lies_outside() {
    check(&[
        "<div style='height:20px;overflow:hidden'>SHOWN<br><br><br>SECRET</div>after",
        "<div style='height:20px;overflow:hidden'><p>SHOWN</p><p>x</p><p>SECRET</p></div>",
        "<div style='max-height:20px;overflow:hidden'><div style='height:50px'></div>SECRET</div>SHOWN",
        "<div style='height:20px;overflow:hidden'><p style='margin-top:50px'>SECRET</p></div>",
        "<div style='height:20px;overflow:hidden'><p style='padding-top:50px'>SECRET</p></div>",
        "<div style='height:20px;overflow:hidden'><p style='margin-top:-60px'>SECRET</p></div>",
        "<div style='height:20px;overflow:hidden'><p style='position:relative;top:50px'>SECRET</p></div>",
        "<div style='height:20px;overflow:hidden'><p style='position:relative;bottom:60px'>SECRET</p></div>",
        "<div style='height:20px;overflow:hidden;line-height:500px'>SECRET</div>",
        "<div style='height:20px;overflow:scroll'>x<br><br><br>SECRET</div>",
        "<div style='height:20px;overflow:hidden;position:relative'><b style='position:absolute;top:40px'>SECRET</b></div>",
        "<div style='height:20px;overflow:hidden'><table><tr><td>x<br>x<br>x</td><td>x</td></tr></table>SECRET</div>",
        "<div style='height:20px;overflow:hidden'><pre>x\nx\nx\nSECRET</pre></div>",
        "<div style='width:100px;overflow:hidden'><p style='margin-left:150px'>SECRET</p></div>",
        "<div style='width:100px;overflow:hidden'><p style='position:relative;left:100%'>SECRET</p></div>",
        "<div style='overflow:hidden'><p style='position:relative;left:100%'>SECRET</p></div>",
        "<div style='overflow:hidden'><p style='margin-left:-100%'>SECRET</p></div>",
        "<div style='width:100px;overflow:hidden;white-space:nowrap;text-indent:150px'>SECRET</div>",
        "<div style='width:100px;overflow:hidden;text-indent:-200px;white-space:nowrap'>SECRET</div>",
        "<div style='width:100px;overflow:auto'><p style='padding-left:200px'>SECRET</p></div>",
        "<div style='height:20px;overflow:hidden'><div style='overflow:hidden;height:99px'>x<br>x<br>SECRET</div></div>",
        // What is seen.
        "<div style='height:200px;overflow:hidden'>x<br>x<br>SHOWN</div>",
        "<div style='height:20px'>x<br>x<br>x<br>SHOWN</div>",
        "<div style='height:20px;overflow:hidden'>x<br>x<br>x</div>SHOWN",
        "<div style='height:300px;overflow:auto'><p style='height:900px'>terms</p>SHOWN</div>",
        "<div style='height:60px;overflow:hidden'><div style='float:left;height:60px'>x</div><div>SHOWN</div></div>",
        "<div style='height:60px;overflow:hidden;display:flex'><div style='height:60px'>x</div><div>SHOWN</div></div>",
        "<div style='height:30px;overflow:hidden'><table><tr><td>a<br>b</td><td>SHOWN</td></tr></table></div>",
        "<div style='height:20px;overflow:hidden'><b style='position:absolute;top:90px'>SHOWN</b></div>",
        "<div style='height:20px;overflow:hidden'>x<br>x<br><b style='position:fixed;top:0'>SHOWN</b></div>",
        "<div style='height:90px;overflow:hidden;position:relative'>a<br>b<br>c<br>d<br>e<br>f<b style='position:absolute;top:0'>SHOWN</b></div>",
        "<div style='width:100px;overflow:hidden;text-indent:20px'>SHOWN</div>",
        "<div style='width:100px;overflow:hidden'><p style='margin-left:20px'>SHOWN</p></div>",
        "<div style='width:100%;overflow:hidden'><p style='margin-left:50%'>SHOWN</p></div>",
        "<div style='height:20px;overflow:hidden'><p style='margin-top:-10px'>SHOWN</p></div>",
        "<table><tr><td style='height:10px;overflow:hidden'>x<br>x<br>SHOWN</td></tr></table>",
    ]);
}

/// Ways to make agents and readers see different things.
// rules: SAFE-6
#[test]
fn differences_that_somebody_might_try() {
    check(&[
        // What browsers refuse changes nothing.
        "<p style='display:\"none\"'>SHOWN</p>",
        "<p style='font-size:-5px'>SHOWN</p>",
        "<p style='max-height:-1px'>SHOWN</p>",
        "<p style='padding:-9px'>SHOWN</p>",
        "<!doctype html><p style='font-size:1'>SHOWN</p>",
        "<!doctype html><p style='max-height:1;text-indent:-9999'>SHOWN</p>",
        "<p style='font-size:1'>SECRET</p>",
        "<style>p{<!--display:none}</style><p>SHOWN</p>",
        "<style>p{display:no/**/ne}</style><p>SHOWN</p>",
        "<style>p{display/**/:/**/none}</style><p>SECRET</p>",
        "<style>.a/**/.b{display:none}</style><p class='a b'>SECRET</p><p class=a><b class=b>SHOWN</b></p>",
        "<style>/**/@media/**/screen{p{display:none}}</style><p>SECRET</p>",
        "<style>p{background:url(');display:none;x:(')}</style><p>SHOWN</p>",
        "<style>p{background:url(a');display:none;x:(')}</style><p>SECRET</p>",
        "<style>p{background:url( a{b;c'd );} b{display:none}</style><p>SHOWN</p><b>SECRET</b>",
        "<style>p{background:url('a)b');} b{display:none}</style><p>SHOWN</p><b>SECRET</b>",
        r"<style>.\31 x{display:none}</style><p class=1x>SECRET</p>",
        r"<style>.\78{display:none}</style><p class=x>SECRET</p>",
        "<style>[data-x='1']{display:none}</style><p data-x=1>SECRET</p>",
        // Later and stronger.
        "<style>.a{display:none;&{display:block}}</style><p class=a>SHOWN</p>",
        "<style>.a{&{display:block} display:none}</style><p class=a>SECRET</p>",
        "<style>p{display:none}.a{all:unset}</style><p class=a>SHOWN</p>",
        "<div style='visibility:hidden'><p style='visibility:initial'>SHOWN</p></div>",
        "<div style='color:white'><p style='color:initial'>SHOWN</p></div>",
        "<div style='color:white'><p style='color:unset'>SECRET</p></div>",
        "<div style='font-size:0'><p style='font-size:initial'>SHOWN</p></div>",
        // What a child can undo, and what it cannot.
        "<div style='text-indent:-9999px'><p style='text-indent:0'>SHOWN</p><p>SECRET</p></div>",
        "<div style='letter-spacing:-99px'><p style='letter-spacing:normal'>SHOWN</p><p>SECRET</p></div>",
        "<div style='position:absolute;left:-9999px'><p style='position:fixed;top:0;left:0'>SHOWN</p></div>",
        "<div style='position:absolute;left:-9999px'><p style='position:absolute;left:0'>SECRET</p></div>",
        "<div style='height:0;overflow:hidden'><p style='position:absolute'>SHOWN</p></div>",
        "<div style='height:0;overflow:hidden;position:relative'><p style='position:absolute'>SECRET</p></div>",
        "<div style='height:0;overflow:hidden'><i style='position:relative'><p style='position:absolute'>SECRET</p></i></div>",
        "<div style='margin-left:-9999px'><p style='position:absolute'>SECRET</p></div>",
        "<div style='margin-left:-9999px'><p style='position:absolute;left:0'>SHOWN</p></div>",
        "<div style='display:none'><p style='position:fixed;display:block'>SECRET</p></div>",
        "<div style='opacity:0'><p style='position:fixed;opacity:1'>SECRET</p></div>",
    ]);
}

// rules: SAFE-14
#[test]
fn style_sheets_that_may_not_count_are_marked() {
    for html in [
        "<template><style>p{display:none}</style></template><p>SHOWN</p>",
        "<style type=text/x>p{display:none}</style><p>SHOWN</p>",
        "<style title=a>i{color:red}</style><style title=b>p{display:none}</style><p>SHOWN</p>",
        // What would show again what is hidden.
        "<style>p{display:none} p:has(b){display:block}</style><p>SECRET<b>SECRET</b></p>SHOWN",
        "<style>i/**/p{display:none}</style><p>SHOWN</p>",
        "<style>.a\u{e02e}b{display:none}</style><p class='a.b'>SHOWN</p>",
        "<style>@keyframes h{to{opacity:0}} p{animation:h 1s forwards;animation-timeline:none}</style><p>SECRET</p>SHOWN",
    ] {
        let seen = body(None, Some(html));
        assert!(seen.text.as_str().contains("SHOWN") && seen.divergent, "{html}");
        assert!(!seen.text.as_str().contains("SECRET"), "{html}");
    }
    // Where nothing is hidden there is nothing to show.
    let html = "<style>p:has(b){display:block}</style><p>SHOWN</p>";
    assert!(!body(None, Some(html)).divergent);
}

// rules: SAFE-14
#[test]
fn what_cannot_be_read_hides_nothing_and_is_marked() {
    let deep = format!("{}p{}", ":is(".repeat(40), ")".repeat(40));
    let many = format!("p{}", ".x".repeat(500));
    let long = format!("p{}", " > i".repeat(9_000));
    let mut rules: Vec<String> = [
        "p:nonsense{display:none}",
        "p:has(b){display:none}",
        "p:nth-child(2 of .x){display:none}",
        "p:nth-child(x){display:none}",
        "p,p:nonsense{display:none}",
        "p,::-webkit-foo{display:none}",
        "p:is(b,:nonsense){display:none}",
        "p:lang(en){display:none}",
        "p::first-line{opacity:0}",
        "p!{display:none}",
        ";p{display:none}",
        "}p{display:none}",
        "p >{display:none}",
        ", p{display:none}",
        ".1x, p{display:none}",
        "x|p{display:none}",
        "& p{display:none}",
        "p[a=b c]{display:none}",
        "@layer a{p{display:none}}",
        "@scope (.never){p{display:none}}",
        "@container (min-width:1px){p{display:none}}",
        "@supports (nonsense:1){p{display:none}}",
        "@supports selector(p){p{display:none}}",
        "@media (min-aspect-ratio:1/9){p{display:none}}",
        "@media (100px <= width){p{display:none}}",
        "@media not not print{p{display:none}}",
        ".a{p:nonsense{display:none}}",
    ]
    .map(ToOwned::to_owned)
    .to_vec();
    rules.extend([deep, many, long].map(|selector| format!("{selector}{{display:none}}")));
    for rule in rules {
        let html = format!("<style>{rule}</style><div class=a><p class=x>SHOWN</p></div>");
        let seen = body(None, Some(&html));
        let rule: String = rule.chars().take(80).collect();
        assert!(seen.text.as_str().contains("SHOWN"), "{rule}");
        assert!(seen.divergent, "{rule}");
        // The same goes for a message whose text part is shown.
        assert!(body(Some("SHOWN"), Some(&html)).divergent, "{rule}");
        // What hides nothing may be as strange as it likes.
        let harmless = html.replace("display:none", "color:red").replace("opacity:0", "color:red");
        assert!(!body(None, Some(&harmless)).divergent, "{rule}");
    }
    let two = "<style>@keyframes h{to{opacity:0}}</style><p style='animation:x 1s,h 1s forwards'>SHOWN</p>";
    assert!(body(None, Some(two)).divergent);
}
