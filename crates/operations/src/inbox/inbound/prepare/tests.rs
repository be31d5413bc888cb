//! What the most expensive messages cost that a stranger may send: each is read in a process of its own, which tells
//! how much processor time and memory it took beyond holding the message.

use std::{fs, io::Write as _, process::Command};

use super::*;

/// The default maximum message size.
const LARGEST: usize = 40 * 1024 * 1024;
/// Processor time for one message, in milliseconds; one with archives may be looked into for longer.
const TIME: u64 = 1000;
const TIME_WITH_ARCHIVES: u64 = 5000;
/// Memory for one message beyond its own bytes, in KiB.
const MEMORY: u64 = 200 * 1024;
/// The limits are those of the program as it is run. What the compiler has not improved, and checks at every step, is
/// allowed to take longer.
const SLOWER: u64 = if cfg!(debug_assertions) { 5 } else { 1 };
/// Tells the process that reads a message which one.
const CASE: &str = "AGENT_MAILBOX_HOSTILE_MAIL";

const CASES: &[&str] = &[
    "words",
    "one word",
    "links",
    "page of divs",
    "page of anchors",
    "page of styles",
    "page of entities",
    "base64 text",
    "quoted-printable text",
    "two byte text",
    "headers",
    "addresses",
    "nested messages",
    "nested parts",
    "parts",
    "dashes",
    "file",
    "files",
    "archives",
];

/// A message of the largest size, from a beginning and something that goes on and on.
fn filled(head: &str, unit: &str) -> Vec<u8> {
    let mut raw = format!("From: a@b.test\r\nTo: c@d.test\r\nSubject: s\r\n{head}").into_bytes();
    let times = (LARGEST - raw.len()) / unit.len();
    raw.extend_from_slice(unit.repeat(times).as_bytes());
    raw
}

fn html(unit: &str) -> Vec<u8> {
    filled("Content-Type: text/html; charset=utf-8\r\n\r\n", unit)
}

fn encoded(encoding: &str, charset: &str, unit: &str) -> Vec<u8> {
    let head = format!(
        "Content-Type: text/plain; charset={charset}\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n"
    );
    filled(&head, unit)
}

/// Files one after the other, of the same bytes.
fn files(kind: &str, name: &str, bytes: &str) -> Vec<u8> {
    let part = format!(
        "--b\r\nContent-Type: {kind}; name={name}\r\nContent-Disposition: attachment; filename={name}\r\n\
         Content-Transfer-Encoding: base64\r\n\r\n{bytes}\r\n"
    );
    let mut raw = filled("MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n", &part);
    raw.extend_from_slice(b"--b--\r\n");
    raw
}

/// Zeros that unpack to a hundred times what they take, in lines of base64.
fn bomb() -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..300 {
        packed.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let text = STANDARD.encode(packed.finish().unwrap());
    text.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line) + "\r\n").collect()
}

fn mail(case: &str) -> Vec<u8> {
    let base64_line = format!("{}\r\n", "QUJD".repeat(19));
    match case {
        "words" => filled("\r\n", "some words and a number 12345 in a line\r\n"),
        "one word" => filled("\r\n", "word"),
        "links" => {
            filled("\r\n", "https://user:secret@host.example/a?b=c https://xn--bcher-kva.example/\r\n")
        }
        "page of divs" => html("<div>"),
        "page of anchors" => {
            html("<a href=\"https://other.example/path?query\">https://shown.example</a>\r\n")
        }
        "page of styles" => {
            html("<style>.a .b:not(.c){color:red}</style><p class='a b' style='color:#fff;x:y'>x")
        }
        "page of entities" => html("&amp;&#x200b;&copy&nbsp;<b><p></b>"),
        "base64 text" => encoded("base64", "utf-8", &base64_line),
        "quoted-printable text" => encoded("quoted-printable", "utf-8", "=C3=A4=E2=82=AC=20=\r\n"),
        "two byte text" => encoded("8bit", "gb18030", "abc \u{fffd}\u{fffd}\r\n"),
        "headers" => filled("", "X-A: =?utf-8?q?=41?= =?utf-8?b?QQ==?=\r\n"),
        "addresses" => filled("Cc: a@b.test", ",\r\n \"Somebody\" <some.body@example.test>"),
        "nested messages" => filled("", "Content-Type: message/rfc822\r\n\r\n"),
        "nested parts" => filled("", "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n"),
        "parts" => filled("Content-Type: multipart/mixed; boundary=b\r\n\r\n", "--b\r\n\r\nx\r\n"),
        "dashes" => filled("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n", "--c\r\n"),
        "file" => filled(
            "Content-Type: application/octet-stream; name=a.bin\r\nContent-Transfer-Encoding: base64\r\n\r\n",
            &base64_line,
        ),
        "files" => files("application/octet-stream", "a.bin", &base64_line),
        "archives" => files("application/gzip", "a.gz", &bomb()),
        _ => panic!("there is no mail called {case}"),
    }
}

/// A field of `/proc/self/status` in KiB.
fn status(field: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
}

/// Processor time of this process in milliseconds, from its count of hundredths of a second.
fn processor_time() -> u64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()) * 10
}

/// Reads one message and tells what it took; for the test below.
#[test]
#[ignore = "the test below starts it, for a mail each"]
fn reads_one_mail() {
    let raw = mail(&std::env::var(CASE).unwrap());
    // Reset the peak.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let (memory, time) = (status("VmRSS:"), processor_time());
    let prepared = analyse(&raw, message::read(&raw), &Arc::default());
    let (memory, time) = (status("VmHWM:") - memory, processor_time() - time);
    assert!(prepared.body.len() <= LARGEST);
    println!("measured {time} {memory}");
}

// rules: RECV-13, RECV-30
#[test]
fn the_largest_mails_cost_little() {
    let mut over = Vec::new();
    let (_, module) = module_path!().split_once("::").unwrap();
    let reader = format!("{module}::reads_one_mail");
    for case in CASES {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &reader, "--ignored", "--nocapture"])
            .env(CASE, case)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout);
        let found = text.lines().find_map(|line| line.split_once("measured ")).map(|(_, numbers)| numbers);
        let Some((time, memory)) = found.and_then(|numbers| numbers.split_once(' ')) else {
            panic!("{case}: {}\n{text}\n{}", child.status, String::from_utf8_lossy(&child.stderr));
        };
        let (time, memory): (u64, u64) = (time.parse().unwrap(), memory.trim().parse().unwrap());
        println!("{case}: {time} ms, {} MiB", memory / 1024);
        let most = if *case == "archives" { TIME_WITH_ARCHIVES } else { TIME };
        if time > most * SLOWER || memory > MEMORY {
            over.push(format!("{case}: {time} ms, {} MiB", memory / 1024));
        }
    }
    assert!(over.is_empty(), "{over:#?}");
}
