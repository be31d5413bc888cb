//! What looks like a trick and is none: text that a reader sees and an agent must get.

use super::text_of;

fn check(cases: &[&str]) {
    let faults: Vec<String> = cases
        .iter()
        .map(|case| (case, text_of(case)))
        .filter(|(_, text)| !text.contains("SHOWN"))
        .map(|(case, text)| format!("lost: {case}\n  as: {text:?}"))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

// rules: SAFE-6
#[test]
fn styles_that_hide_nothing() {
    check(&[
        "<div style='display:block'>SHOWN</div>",
        "<div style='display:inline-block;width:0'>SHOWN</div>",
        "<span style='font-size:10px'>SHOWN</span>",
        "<span style='font-size:8pt'>SHOWN</span>",
        "<span style='font-size:0.7em'>SHOWN</span>",
        "<span style='font-size:75%'>SHOWN</span>",
        "<span style='font-size:xx-small'>SHOWN</span>",
        "<div style='font-size:0'><span style='font-size:14px'>SHOWN</span></div>",
        "<div style='visibility:hidden'><span style='visibility:visible'>SHOWN</span></div>",
        "<div style='opacity:.5'>SHOWN</div>",
        "<div style='line-height:0'>SHOWN</div>",
        "<div style='overflow:hidden'>SHOWN</div>",
        "<div style='overflow:hidden;height:20px'>SHOWN</div>",
        "<div style='overflow:hidden;width:100%'>SHOWN</div>",
        "<td style='width:1px;overflow:hidden'>SHOWN</td>",
        "<table><tr><td style='width:1px;overflow:hidden'>SHOWN</td></tr></table>",
        "<table width=0 height=0><tr><td height=1>SHOWN</td></tr></table>",
        "<div style='overflow:hidden;line-height:0;font-size:0'><b style='font-size:14px;line-height:20px'>SHOWN</b></div>",
        "<div style='left:-9999px'>SHOWN</div>",
        "<div style='position:relative;left:-20px'>SHOWN</div>",
        "<div style='position:absolute;top:0;left:0'>SHOWN</div>",
        "<div style='text-indent:20px'>SHOWN</div>",
        "<div style='margin:-10px 0'>SHOWN</div>",
        "<div style='clip:rect(0,0,0,0)'>SHOWN</div>",
        "<div style='clip-path:inset(10%)'>SHOWN</div>",
        "<div style='transform:scale(0.9)'>SHOWN</div>",
        "<div style='transform:translate(-50%,-50%)'>SHOWN</div>",
        "<div style='letter-spacing:-1px'>SHOWN</div>",
        "<div style='zoom:1'>SHOWN</div>",
        "<div style='display:none;display:block'>SHOWN</div>",
        "<div hidden style='display:block'>SHOWN</div>",
        "<div aria-hidden=true>SHOWN</div>",
        "<div style='mso-hide:none;mso-line-height-rule:exactly'>SHOWN</div>",
        "<p style='/* display:none */'>SHOWN</p>",
        "<p style='content:\"display:none\"'>SHOWN</p>",
    ]);
}

// rules: SAFE-6
#[test]
fn colours_that_can_be_read() {
    check(&[
        "<div style='background:#000;color:#fff'>SHOWN</div>",
        "<table bgcolor='#003366'><tr><td><font color=white>SHOWN</font></td></tr></table>",
        "<body bgcolor=black text=white>SHOWN</body>",
        "<div style='background-color:rgb(0,0,0)'><p style='color:white'>SHOWN</p></div>",
        "<span style='color:#ccc'>SHOWN</span>",
        "<span style='color:lightgray'>SHOWN</span>",
        "<span style='color:#999999'>SHOWN</span>",
        "<span style='color:yellow'>SHOWN</span>",
        "<span style='color:rgba(0,0,0,.6)'>SHOWN</span>",
        "<span style='color:hsl(120,100%,25%)'>SHOWN</span>",
        "<div style='background:#f00;color:#0f0'>SHOWN</div>",
        "<div style='color:#fff'><a href='https://example.com'>SHOWN</a></div>",
        "<div style='color:#fff'><span style='color:#333'>SHOWN</span></div>",
        "<div style='background:url(https://example.com/dark.jpg);color:#fff'>SHOWN</div>",
        "<div style='background-image:linear-gradient(90deg,#111,#444);color:#fff'>SHOWN</div>",
        "<td background='dark.jpg' style='color:white'>SHOWN</td>",
        "<a href='https://example.com' style='background:#0a0;color:#fff;padding:9px'>SHOWN</a>",
        "<button style='background:#00f;color:white'>SHOWN</button>",
        "<div style='color:oklch(60% 0.2 20)'>SHOWN</div>",
        "<div style='color:white;color:notacolour;color:black'>SHOWN</div>",
        "<span style='color:white;background:rgba(0,0,0,.8)'>SHOWN</span>",
        "<b style='background:linear-gradient(#f00,#00f);-webkit-background-clip:text;color:transparent'>SHOWN</b>",
    ]);
}

// rules: SAFE-6
#[test]
fn style_sheets_that_hide_nothing_here() {
    check(&[
        "<style>@media (max-width:600px){.x{display:none}}</style><b class=x>SHOWN</b>",
        "<style>@media only screen and (max-width:480px){.x{display:none!important}}</style><b class=x>SHOWN</b>",
        "<style>@media print{.x{display:none}}</style><b class=x>SHOWN</b>",
        "<style media=print>.x{display:none}</style><b class=x>SHOWN</b>",
        "<style>@media (prefers-color-scheme:dark){.x{color:#fff}}</style><b class=x>SHOWN</b>",
        "<style>.x:hover{display:none}</style><b class=x>SHOWN</b>",
        "<style>.x::after{display:none}</style><b class=x>SHOWN</b>",
        "<style>.x{display:none}</style><b class=xx>SHOWN</b>",
        "<style>.x{display:none}</style><b class=x style='display:inline!important'>SHOWN</b>",
        "<style>.x{display:none} b.x{display:inline}</style><b class=x>SHOWN</b>",
        "<style>.x{display:none} #y{display:inline}</style><b class=x id=y>SHOWN</b>",
        "<style>.a .x{display:none}</style><b class=x>SHOWN</b>",
        "<style>.a > .x{display:none}</style><div class=a><p><b class=x>SHOWN</b></p></div>",
        "<style>b:not(.x){display:none}</style><b class=x>SHOWN</b>",
        "<style>i:nth-child(2){display:none}</style><i>SHOWN</i><i>other</i>",
        "<style>[data-ogsc] .x{color:#fff}@font-face{font-family:x}</style><b>SHOWN</b>",
        "<style>[data-ogsc] .x{color:#fff!important}</style><div><b class=x>SHOWN</b></div>",
        "<style>u + .body .x{display:none}</style><div class=body><b class=x>SHOWN</b></div>",
        "<style>body{background:#222;color:#eee}</style><b style='color:white'>SHOWN</b>",
        "<style>html{background:#000}body{color:#fff}</style><html><b>SHOWN</b></html>",
        "<style>a[x-apple-data-detectors]{display:none}</style><a href='https://example.com'>SHOWN</a>",
        "<!-- <style>b{display:none}</style> --><b>SHOWN</b>",
        "<style>/* b{display:none} */</style><b>SHOWN</b>",
        "<style>@keyframes k{from{opacity:0}to{opacity:1}}</style><b>SHOWN</b>",
        "<style>}}} .y{display:none}</style><b>SHOWN</b>",
    ]);
}

// rules: SAFE-6
#[test]
fn markup_that_hides_nothing() {
    check(&[
        "<details open><summary>line</summary>SHOWN</details>",
        "<details><summary>SHOWN</summary>more</details>",
        "<dialog open>SHOWN</dialog>",
        "<p style='display:none'>x<div>SHOWN</div>",
        "<p>one<p style='display:none'>two<p>SHOWN",
        "<ul><li style='display:none'>a<li>SHOWN</ul>",
        "<b style='display:none'><div>x</b>SHOWN</div>",
        "<![if !mso]>SHOWN<![endif]>",
        "<!-->SHOWN<!-- -->",
        "<svg><circle/></svg>SHOWN",
        "<svg><path d='M0'><p>SHOWN",
        "<svg/>SHOWN",
        "<html><head><title>t</title></head><body>SHOWN</body></html>",
        "<head><meta charset=utf-8><p>SHOWN",
        "<html><body>one</body></html>SHOWN",
        "a < b and SHOWN",
        "a <3 SHOWN",
        "<div a=1 a=2 b c='d' =e>SHOWN</div>",
        "<unknown-element>SHOWN</unknown-element>",
        "<img src=x alt='SHOWN'>",
        "<input type=submit value=SHOWN>",
        "<textarea>SHOWN</textarea>",
        "<pre>SHOWN</pre>",
        "<xmp><b>SHOWN</xmp>",
        "<plaintext>SHOWN",
        "<marquee>SHOWN</marquee>",
        "<p style='display:none'>x</p>SHOWN",
        "<div><span style='display:none'>x</div>SHOWN",
        "<table>SHOWN<tr><td>x</td></tr></table>",
        "\0<p>SHOWN\0</p>",
    ]);
    check(&[&format!("{}SHOWN", "<div>".repeat(50_000)), &format!("{}SHOWN", "<ul><li>".repeat(20_000))]);
}
