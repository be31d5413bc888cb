//! Every way we know to put text into HTML that its reader does not see.

use super::text_of;

/// Around each trick stands text that must stay; `SECRET` must go.
fn check(cases: &[&str]) {
    let mut faults = Vec::new();
    for case in cases {
        let html = format!("<p>before</p>{case}<p>after</p>");
        let text = text_of(&html);
        if text.contains("SECRET") {
            faults.push(format!("shown: {case}\n   as: {text:?}"));
        }
        if !text.contains("before") || !text.contains("after") {
            faults.push(format!("lost the rest: {case}\n   as: {text:?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

// rules: SAFE-6
#[test]
fn hidden_by_an_inline_style() {
    check(&[
        "<div style='display:none'>SECRET</div>",
        "<div style='DISPLAY : NONE !important'>SECRET</div>",
        "<div style='display:none;display:nonsense'>SECRET</div>",
        "<div style='display:none!important;display:block'>SECRET</div>",
        "<div style='display:/* x */none'>SECRET</div>",
        r"<div style='d\69splay:none'>SECRET</div>",
        r"<div style='display:n\00006fne'>SECRET</div>",
        "<div style='display&#58;none'>SECRET</div>",
        "<div style=display:none>SECRET</div>",
        "<div style='--d:none;display:var(--d)'>SECRET</div>",
        "<div style='display:var(--nope, none)'>SECRET</div>",
        "<span style='visibility:hidden'>SECRET</span>",
        "<span style='visibility:collapse'>SECRET</span>",
        "<span style='opacity:0'>SECRET</span>",
        "<span style='opacity:0.01'>SECRET</span>",
        "<span style='opacity:1%'>SECRET</span>",
        "<div style='opacity:.3'><div style='opacity:.3'>SECRET</div></div>",
        "<span style='font-size:0'>SECRET</span>",
        "<span style='font-size:1px'>SECRET</span>",
        "<span style='font-size:0.05em'>SECRET</span>",
        "<span style='font-size:1%'>SECRET</span>",
        "<span style='font-size:.5pt'>SECRET</span>",
        "<div style='font-size:2em'><span style='font-size:0rem'>SECRET</span></div>",
        "<span style='font-size:calc(1px * 0)'>SECRET</span>",
        "<span style='font-size:min(0px, 1vw)'>SECRET</span>",
        "<span style='font:0/0 a'>SECRET</span>",
        "<span style='font:normal 1px/1px sans-serif'>SECRET</span>",
        "<div style='font-size:0.5em'><p style='font-size:0.3em'><b style='font-size:.3em'>SECRET</b></p></div>",
    ]);
}

// rules: SAFE-6
#[test]
fn hidden_by_size_and_place() {
    check(&[
        "<div style='width:0;overflow:hidden'>SECRET</div>",
        "<div style='height:0px;overflow:hidden'>SECRET</div>",
        "<div style='height:1px;width:1px;overflow:hidden'>SECRET</div>",
        "<div style='max-height:0;overflow:hidden'>SECRET</div>",
        "<div style='max-height:0px'>SECRET</div>",
        "<div style='max-width:0;overflow:hidden'>SECRET</div>",
        "<div style='line-height:0;overflow:hidden'>SECRET</div>",
        "<div style='position:absolute;left:-9999px'>SECRET</div>",
        "<div style='position:fixed;top:-1000px'>SECRET</div>",
        "<div style='position:absolute;left:-100vw'>SECRET</div>",
        "<div style='position:absolute;right:-5000px'>SECRET</div>",
        "<div style='position:relative;left:-999em'>SECRET</div>",
        "<div style='position:absolute;left:99999px'>SECRET</div>",
        "<div style='position:absolute;inset:-9999px'>SECRET</div>",
        "<div style='text-indent:-9999px'>SECRET</div>",
        "<div style='margin-left:-9999px'>SECRET</div>",
        "<div style='margin:0 0 0 -9999px'>SECRET</div>",
        "<div style='position:absolute;clip:rect(0 0 0 0)'>SECRET</div>",
        "<div style='position:absolute;clip:rect(1px,1px,1px,1px)'>SECRET</div>",
        "<div style='position:fixed;left:100vw'>SECRET</div>",
        "<div style='position:absolute;top:-200%'>SECRET</div>",
        "<div style='text-indent:100%;white-space:nowrap;overflow:hidden'>SECRET</div>",
        "<div style='text-indent:9999px;overflow:hidden'>SECRET</div>",
        "<div style='height:0;overflow:auto'>SECRET</div>",
        "<div style='clip-path:inset(50%)'>SECRET</div>",
        "<div style='clip-path:inset(0 100% 0 0)'>SECRET</div>",
        "<div style='clip-path:circle(0)'>SECRET</div>",
        "<div style='-webkit-clip-path:polygon(0 0,0 0,0 0)'>SECRET</div>",
        "<div style='transform:scale(0)'>SECRET</div>",
        "<div style='transform:scaleX(0.001)'>SECRET</div>",
        "<div style='transform:translateX(-9999px)'>SECRET</div>",
        "<div style='transform:rotateY(90deg)'>SECRET</div>",
        "<div style='transform:matrix(0,0,0,0,0,0)'>SECRET</div>",
        "<div style='scale:0'>SECRET</div>",
        "<div style='zoom:0.01'>SECRET</div>",
        "<div style='filter:opacity(0)'>SECRET</div>",
        "<div style='filter:blur(99px)'>SECRET</div>",
        "<div style='-webkit-text-security:disc'>SECRET</div>",
        "<div style='mask-image:linear-gradient(transparent,transparent)'>SECRET</div>",
        "<div style='mask-image:linear-gradient(to right, rgba(0,0,0,0), rgba(0,0,0,0))'>SECRET</div>",
        "<div style='-webkit-mask:url(x.png)'>SECRET</div>",
        "<div style='filter:alpha(opacity=0)'>SECRET</div>",
        "<div style='mso-hide:all'>SECRET</div>",
        "<div style='content-visibility:hidden'>SECRET</div>",
        "<div style='letter-spacing:-100px'>SECRET</div>",
    ]);
}

// rules: SAFE-6
#[test]
fn hidden_by_its_colour() {
    check(&[
        "<span style='color:white'>SECRET</span>",
        "<span style='color:#fff'>SECRET</span>",
        "<span style='color:#FFFFFF'>SECRET</span>",
        "<span style='color:#fefefe'>SECRET</span>",
        "<span style='color:#ffffff00'>SECRET</span>",
        "<span style='color:rgb(255,255,255)'>SECRET</span>",
        "<span style='color:rgb(100% 100% 100%)'>SECRET</span>",
        "<span style='color:rgba(0,0,0,0)'>SECRET</span>",
        "<span style='color:rgba(0,0,0,.02)'>SECRET</span>",
        "<span style='color:hsl(0,0%,100%)'>SECRET</span>",
        "<span style='color:hsl(210 50% 99%)'>SECRET</span>",
        "<span style='color:transparent'>SECRET</span>",
        "<span style='-webkit-text-fill-color:transparent'>SECRET</span>",
        "<span style='color:snow'>SECRET</span>",
        "<font color=white>SECRET</font>",
        "<font color='#FFFFFE'>SECRET</font>",
        "<font color=ffffff>SECRET</font>",
        "<div style='background:#000;color:#000'>SECRET</div>",
        "<div style='background-color:navy'><span style='color:#000080'>SECRET</span></div>",
        "<div style='background-color:red;color:rgb(254,1,1)'>SECRET</div>",
        "<table bgcolor=black><tr><td><font color=black>SECRET</font></td></tr></table>",
        "<table><tr><td bgcolor='#112233' style='color:#112233'>SECRET</td></tr></table>",
        "<div style='background:linear-gradient(#fff,#fff);color:#fff'>SECRET</div>",
        "<div style='color:white'><div><div>SECRET</div></div></div>",
        "<div style='background:#000;color:#fff'><div style='background:#fff'>SECRET</div></div>",
        "<a href='https://example.com' style='color:#fff'>SECRET</a>",
        "<p style='color:white'><a href='https://example.com' style='color:inherit'>SECRET</a></p>",
    ]);
}

// rules: SAFE-6
#[test]
fn hidden_by_a_style_sheet() {
    check(&[
        "<style>.x{display:none}</style><div class=x>SECRET</div>",
        "<style>.X{DISPLAY:NONE}</style><div class='a x b'>SECRET</div>",
        "<style>#x{visibility:hidden}</style><div id=x>SECRET</div>",
        "<style>em{font-size:0}</style><em>SECRET</em>",
        "<style>div.x, .y{opacity:0}</style><div class=x>SECRET</div>",
        "<style>.a .b{display:none}</style><div class=a><p><b class=b>SECRET</b></p></div>",
        "<style>.a > .b{display:none}</style><div class=a><b class=b>SECRET</b></div>",
        "<style>[data-x]{display:none}</style><b data-x>SECRET</b>",
        "<style>[class~='x']{display:none}</style><b class='y x'>SECRET</b>",
        "<style>[class^=\"pre\"]{display:none}</style><b class=preheader>SECRET</b>",
        "<style>b:first-child{display:none}</style><div><b>SECRET</b></div>",
        "<style>i:nth-child(2n){display:none}</style><div><i>one</i><i>SECRET</i></div>",
        "<style>b:not(.shown){display:none}</style><b>SECRET</b>",
        "<style>.x{display:none!important}</style><div class=x style='display:block'>SECRET</div>",
        "<style>b.x{display:none} .x{display:block}</style><b class=x>SECRET</b>",
        "<style>.x{display:block}.x{display:none}</style><b class=x>SECRET</b>",
        "<style>@media screen{.x{display:none}}</style><b class=x>SECRET</b>",
        "<style>@media (min-width:1px){.x{display:none}}</style><b class=x>SECRET</b>",
        "<style>@media (min-width:500px){.x{display:none}}</style><b class=x>SECRET</b>",
        "<style>@media not print{.x{display:none}}</style><b class=x>SECRET</b>",
        "<style>@supports (display:grid){.x{display:none}}</style><b class=x>SECRET</b>",
        "<style>.x{display:none}@media (max-width:600px){.x{display:block!important}}</style><b class=x>SECRET</b>",
        "<style>.x{display:none}@media (min-width:600px){.x{display:block!important}}</style><b class=x>SECRET</b>",
        "<style><!-- .x{display:none} --></style><b class=x>SECRET</b>",
        "<style>/* } */ .x{/* ; */display:none}</style><b class=x>SECRET</b>",
        "<style>.y{content:'}'} .x{display:none}</style><b class=x>SECRET</b>",
        r"<style>.sm\:x{display:none}</style><b class='sm:x'>SECRET</b>",
        "<style>[data-x] .y{display:none}</style><div data-x><b class=y>SECRET</b></div>",
        "<style>h2 + .y{display:none}</style><h2>a</h2><b class=y>SECRET</b>",
        "<style>div{.y{display:none}}</style><div><b class=y>SECRET</b></div>",
        "<style>body{background:#123456}</style><b style='color:#123456'>SECRET</b>",
        "<style>:root{--c:#fff} .x{color:var(--c)}</style><b class=x>SECRET</b>",
    ]);
    assert!(!text_of("shown <b class=x>SECRET</b> <style>.x{display:none").contains("SECRET"));
    assert!(!text_of("shown <b class=x>SECRET</b> <style>.x{display:none}</style>").contains("SECRET"));
}

// rules: SAFE-6
#[test]
fn hidden_by_its_element() {
    check(&[
        "<div hidden>SECRET</div>",
        "<div hidden='until-found'>SECRET</div>",
        "<div popover>SECRET</div>",
        "<template>SECRET</template>",
        "<noscript>SECRET</noscript>",
        "<details><summary>line</summary>SECRET</details>",
        "<details><p>SECRET</p></details>",
        "<details><summary>line</summary><summary>SECRET</summary></details>",
        "<dialog>SECRET</dialog>",
        "<!-- SECRET -->",
        "<!-- > SECRET -->",
        "<!--[if mso]><p>SECRET</p><![endif]-->",
        "<!--[if !mso]>SECRET<![endif]-->",
        "<!-- a --!> <!-- SECRET -->",
        "<?php SECRET ?>",
        "<![CDATA[SECRET]]>",
        "</ SECRET>",
        "<script>SECRET</script>",
        "<script><!--<script></script>SECRET--></script>",
        "<SCRIPT type=x>SECRET</SCRIPT >",
        "<style>SECRET</style>",
        "<title>SECRET</title>",
        "<meta name=description content=SECRET>",
        "<iframe srcdoc='SECRET'>SECRET</iframe>",
        "<object data=x>SECRET</object>",
        "<svg><text>SECRET</text></svg>",
        "<svg><title>SECRET</title><desc>SECRET</desc></svg>",
        "<svg><foreignObject><div>SECRET</div></foreignObject></svg>",
        "<math><mtext>SECRET</mtext></math>",
        "<select><option>SECRET</option></select>",
        "<datalist><option>SECRET</option></datalist>",
        "<input type=hidden value=SECRET>",
        "<video>SECRET</video><audio>SECRET</audio><canvas>SECRET</canvas>",
        "<img src=x alt='SECRET' width=1 height=1>",
        "<img src=x alt='SECRET' style='display:none'>",
        "<p title=SECRET data-x=SECRET aria-label=SECRET>shown</p>",
        "<a href='javascript:SECRET'>shown</a>",
        "<a href='data:text/plain,SECRET'>shown</a>",
        "<a href='https://example.com/SECRET'></a>",
        "<a href='mailto:a@example.com?body=SECRET'>shown</a>",
        "<ruby>a<rp>SECRET</rp></ruby>",
        "<noembed>SECRET</noembed><noframes>SECRET</noframes>",
        "<p style='background:url(SECRET)'>shown</p>",
    ]);
}

// rules: SAFE-6
#[test]
fn hidden_in_broken_markup() {
    check(&[
        "<div style='display:none'><p>SECRET</div>",
        "<div style='display:none'><b>SECRET</i></b></div>",
        "<span style='display:none'><div></span>SECRET</div></span>",
        "<div style='display:none'><table><tr><td></div>SECRET</table></div>",
        "<div><b style='display:none'></div>SECRET</b>",
        "<p><font color=white></p>SECRET</font>",
        "<p><font color=white>x<p>SECRET</font></p>",
        "<div style='display:none'></span></p></b>SECRET</div>",
        "<div style='display:none'></body></html>SECRET</div>",
        "<div style='display:none' style='display:block'>SECRET</div>",
        "<div style='display:none'/>SECRET</div>",
        "<div\nstyle\n=\n'display:none'\n>SECRET</div>",
        "<div/style=display:none>SECRET</div>",
        "<div a='>' style='display:none'>SECRET</div>",
        "<div a=\"'\" style='display:none'>SECRET</div>",
        "<ul><li style='display:none'>SECRET<li>shown</ul>",
        "<table><tr><td style='display:none'>SECRET<td>shown</table>",
        "<div style='display:none'><svg><p>SECRET</p></svg></div>",
        "<div style='visibility:hidden'>SECRET<b style='visibility:visible'>shown</b>SECRET</div>",
        "<style>.x{display:none}</style><b class='&#120;'>SECRET</b>",
    ]);
    for depth in [300, 5_000] {
        let nest = "<div>".repeat(depth);
        check(&[&format!("{nest}<b style='display:none'>SECRET</b>{}", "</div>".repeat(depth))]);
        check(&[&format!("<div style='display:none'>{nest}SECRET{}</div>", "</div>".repeat(depth))]);
    }
}
