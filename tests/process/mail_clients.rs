//! Mail from programs that others wrote: Python's smtplib, swaks, Postfix. It arrives once and byte for byte.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use super::{
    Home, Server, free_port, head,
    mail::{Inbox, hash},
    read_bytes, text,
};

/// Sends what comes on standard input: the way, the port, the recipient.
const SMTPLIB: &str = r#"
import smtplib, ssl, sys
way, port, to = sys.argv[1], int(sys.argv[2]), sys.argv[3]
sender, options = "ann@remote.test", []
client = (smtplib.LMTP if way == "lmtp" else smtplib.SMTP)("127.0.0.1", port, local_hostname="client.test")
if way == "starttls":
    client.ehlo()
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    client.starttls(context=context)
if way == "smtputf8":
    sender, options = "jürgen@bücher.test", ["SMTPUTF8", "BODY=8BITMIME"]
refused = client.sendmail(sender, [to], sys.stdin.buffer.read(), mail_options=options)
client.quit()
assert not refused, refused
"#;

/// Runs a program with a message on its standard input.
pub(super) fn feed(program: &mut Command, raw: &[u8]) {
    let child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child =
        child.unwrap_or_else(|error| panic!("{program:?} is missing (scripts/test installs it): {error}"));
    // One that fails early does not read.
    let _ = child.stdin.take().unwrap().write_all(raw);
    super::Finished::from(child.wait_with_output().unwrap()).succeeded();
}

fn smtplib(way: &str, port: u16, to: &str, raw: &[u8]) {
    feed(Command::new("python3").args(["-c", SMTPLIB, way, &port.to_string(), to]), raw);
}

/// A message with text that looks like the end of one, in UTF-8.
fn letter(subject: &str, word: &str) -> Vec<u8> {
    format!(
        "From: Ann <ann@remote.test>\r\nTo: you@agents.localhost\r\nSubject: {subject}\r\nDate: Mon, 13 Jul 2026 10:00:00 +0000\r\n\
         Message-ID: <{word}@remote.test>\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Transfer-Encoding: 8bit\r\n\r\nThe word is {word}.\r\n.\r\n..\r\n.hidden Zoë\r\nFrom here on\r\n\r\n"
    )
    .into_bytes()
}

/// HTML with an alternative and a file, as mail programs make it.
fn parcel(subject: &str, word: &str, file: &[u8]) -> Vec<u8> {
    let head = format!(
        "From: Ann <ann@remote.test>\r\nTo: you@agents.localhost\r\nSubject: {subject}\r\nDate: Mon, 13 Jul 2026 10:00:00 +0000\r\n\
         Message-ID: <{word}@remote.test>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=outer\r\n\r\n\
         --outer\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>Here is <b>{word}</b>.</p>\r\n\
         --outer\r\nContent-Type: application/octet-stream; name=table.bin\r\n\
         Content-Disposition: attachment; filename=table.bin\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    );
    let mut raw = head.into_bytes();
    for line in base64(file).as_bytes().chunks(76) {
        raw.extend_from_slice(line);
        raw.extend_from_slice(b"\r\n");
    }
    raw.extend_from_slice(b"--outer--\r\n");
    raw
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    assert!(bytes.len().is_multiple_of(3), "no padding needed here");
    let groups = bytes.chunks(3).flat_map(|three| {
        let number = three.iter().fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        [18, 12, 6, 0].map(|shift| char::from(LETTERS[number >> shift & 63]))
    });
    groups.collect()
}

fn attachment(server: &Server, inbox: &Inbox, id: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.address).unwrap();
    let path = format!("{}/attachments/{id}", inbox.path);
    stream.write_all(head("GET", &path, &[("x-api-key", &inbox.key)], 0).as_bytes()).unwrap();
    let (status, _, body) = read_bytes(&mut stream);
    assert_eq!(status, 200);
    body
}

/// rules: RECV-1, RECV-2
#[test]
fn what_smtplib_and_swaks_send_arrives_as_it_was_sent() {
    for home in Home::on_each_engine() {
        let lmtp = free_port();
        let home = home.with("SMTP__LMTP_LISTEN", &format!("127.0.0.1:{lmtp}"));
        let server = home.serve();
        let inbox = Inbox::new(&home, &server, "enterprise");
        for (way, port) in [
            ("smtp", server.smtp.port()),
            ("starttls", server.smtp.port()),
            ("smtputf8", server.smtp.port()),
            ("lmtp", lmtp),
        ] {
            let subject = if way == "smtputf8" { "Grüße".to_owned() } else { format!("By {way}") };
            let raw = letter(&subject, &format!("{way}word"));
            smtplib(way, port, &inbox.address, &raw);
            let mail = inbox.assert_readable(&server, &subject, &raw, &format!("{way}word"));
            let provider = if way == "lmtp" { "mail_api" } else { "edge_routing" };
            assert_eq!(mail["sender_authentication"]["inbound_provider"], provider);
        }
        let file: Vec<u8> = (0..=255).cycle().take(30_000).collect();
        let raw = parcel("With a file", "parcelword", &file);
        smtplib("smtp", server.smtp.port(), &inbox.address, &raw);
        let mail = inbox.assert_readable(&server, "With a file", &raw, "parcelword");
        assert_eq!(
            (text(&mail, "body_format").as_str(), &mail["attachments"][0]["filename"]),
            ("html", &"table.bin".into())
        );
        assert_eq!(
            hash(&attachment(&server, &inbox, mail["attachments"][0]["id"].as_str().unwrap())),
            hash(&file)
        );

        for (name, options) in [("plain", &[][..]), ("tls", &["--tls"][..])] {
            let raw = letter(&format!("By swaks {name}"), &format!("swaks{name}"));
            let path = home.folder.path().join(name);
            // It ends the last line itself.
            fs::write(&path, raw.strip_suffix(b"\r\n").unwrap()).unwrap();
            let mut swaks = Command::new("swaks");
            swaks.args([
                "--server",
                &server.smtp.to_string(),
                "--from",
                "ann@remote.test",
                "--to",
                &inbox.address,
            ]);
            swaks.args(["--data", &format!("@{}", path.display())]).args(options);
            feed(&mut swaks, b"");
            inbox.assert_readable(&server, &format!("By swaks {name}"), &raw, &format!("swaks{name}"));
        }
        server.stop();
    }
}

/// A Postfix that passes on to a port; gone when dropped.
struct Postfix {
    script: Child,
    port: u16,
}

impl Postfix {
    /// Nothing where it cannot run.
    fn start(relay: u16) -> Option<Self> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/postfix");
        let mut script = Command::new(script)
            .arg(relay.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(script.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Ok(port) = line.trim().parse() else {
            assert_eq!(script.wait().unwrap().code(), Some(3), "Postfix does not start");
            println!("skipped: no Postfix here, or no right to run it");
            return None;
        };
        Some(Self { script, port })
    }
}

impl Drop for Postfix {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}

/// rules: RECV-1, RECV-2
#[test]
fn what_postfix_relays_arrives_as_it_was_sent() {
    for home in Home::on_each_engine() {
        let server = home.serve();
        let inbox = Inbox::new(&home, &server, "enterprise");
        let Some(postfix) = Postfix::start(server.smtp.port()) else { return };
        let file: Vec<u8> = (0..=255).rev().cycle().take(300_000).collect();
        let mails = [
            ("Letter", "relayword", letter("Letter", "relayword")),
            ("Parcel", "freightword", parcel("Parcel", "freightword", &file)),
        ];
        for (_, _, raw) in &mails {
            smtplib("smtp", postfix.port, &inbox.address, raw);
        }
        let started = Instant::now();
        while inbox.list(&server).len() < mails.len() {
            assert!(started.elapsed() < Duration::from_secs(30), "Postfix does not bring it");
            std::thread::sleep(Duration::from_millis(100));
        }
        for (subject, word, raw) in &mails {
            let id = text(&inbox.only(&server, subject), "id");
            let stored = inbox.raw(&server, &id);
            let added = stored.len().checked_sub(raw.len()).unwrap();
            assert_eq!(
                hash(&stored[added..]),
                hash(raw),
                "{}",
                String::from_utf8_lossy(&stored[..2000.min(stored.len())])
            );
            let added = String::from_utf8(stored[..added].to_vec()).unwrap();
            assert!(
                added.starts_with("Received: from client.test") && added.contains("by sender.test (Postfix)"),
                "{added}"
            );
            assert!(added.lines().skip(1).all(|line| line.starts_with(['\t', ' '])), "{added}");
            inbox.assert_readable(&server, subject, &stored, word);
        }
        let mail = inbox.only(&server, "Parcel");
        assert_eq!(
            hash(&attachment(&server, &inbox, mail["attachments"][0]["id"].as_str().unwrap())),
            hash(&file)
        );
    }
}
