//! What scanners say about mail that arrives.

use std::io::Write as _;

use operations::scanning;
use serde_json::{Value, json};
use testkit::{Engine, Server, ServerOptions, both_engines};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::mails::{Inbox, flagged, html, plain, skipped, with_file};

async fn status(server: &Server, inbox: &Inbox, raw: String) -> Value {
    let id = server.receive(&inbox.address, raw).await;
    inbox.get(&format!("emails/{id}")).await["scan_status"].clone()
}

// rules: SCAN-1, SCAN-2, SCAN-3, SCAN-4
#[both_engines]
async fn the_built_in_scanner_judges_every_mail(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let link = |target: &str, text: &str| html("Link", &format!("<p>Hi</p><a href=\"{target}\">{text}</a>"));
    for (raw, expected) in [
        (plain("Hello", "See https://example.com/a"), "clean"),
        (link("https://example.com/", "our page"), "clean"),
        (link("https://evil.example/", "https://bank.example/"), "flagged"),
        (link("https://user:pass@bank.example/", "here"), "flagged"),
        (flagged("Virus"), "flagged"),
        (with_file("Program", "tool.exe", "application/octet-stream", b"MZ\0\0"), "flagged"),
        (with_file("Twice", "report.pdf.exe", "application/pdf", b"x"), "flagged"),
        (with_file("Table", "a.csv", "text/csv", b"1;2"), "clean"),
        (skipped("Odd"), "skipped"),
        ("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nno end\r\n".to_owned(), "skipped"),
    ] {
        assert_eq!(status(&server, &inbox, raw.clone()).await, expected, "{raw}");
    }
}

// rules: SCAN-7
#[both_engines]
async fn a_block_list_is_taken_up_without_a_restart(engine: Engine) {
    let mut list = tempfile::NamedTempFile::new().unwrap();
    writeln!(list, "# hosts\nblocked.example # a comment\nhttps://half.example/bad").unwrap();
    let options = ServerOptions { blocklists: vec![list.path().to_owned()], ..ServerOptions::default() };
    let server = Server::with(engine, options).await;
    let inbox = Inbox::new(&server).await;
    let of = |url: &str| plain("Link", &format!("Look at {url} now"));
    for (url, expected) in [
        ("https://blocked.example/x", "flagged"),
        ("https://half.example/bad/page", "flagged"),
        ("https://half.example/good", "clean"),
        ("https://later.example/", "clean"),
    ] {
        assert_eq!(status(&server, &inbox, of(url)).await, expected, "{url}");
    }
    writeln!(list, "later.example").unwrap();
    let written = list.as_file().metadata().unwrap().modified().unwrap();
    let later = written + std::time::Duration::from_secs(5);
    list.as_file().set_modified(later).unwrap();
    server.app.scanning().reload();
    assert_eq!(status(&server, &inbox, of("https://later.example/")).await, "flagged");
}

/// A virus scanner that finds what says of itself that it is infected.
async fn fake_clamd() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut said = Vec::new();
            let mut piece = vec![0; 65_536];
            while !said.ends_with(&[0, 0, 0, 0]) {
                match stream.read(&mut piece).await {
                    Ok(0) | Err(_) => break,
                    Ok(length) => said.extend_from_slice(&piece[..length]),
                }
            }
            let infected = said.windows(8).any(|eight| eight == b"Infected");
            let verdict: &[u8] = if infected { b"stream: Test.Virus FOUND\0" } else { b"stream: OK\0" };
            let _ = stream.write_all(verdict).await;
        }
    });
    address
}

/// Until an external scanner has spoken, a mail is not clean; what it says is told.
// rules: SCAN-1, SCAN-6, SCAN-10, EVENT-6
#[both_engines]
async fn an_external_scanner_has_the_last_word(engine: Engine) {
    let clamd = Some(fake_clamd().await.parse().unwrap());
    let server = Server::with(engine, ServerOptions { clamd, ..ServerOptions::default() }).await;
    let inbox = Inbox::new(&server).await;
    let good = server.receive(&inbox.address, plain("Good", "needle")).await;
    let bad = server.receive(&inbox.address, plain("Bad", "Infected needle")).await;
    for id in [&good, &bad] {
        let email = inbox.get(&format!("emails/{id}?require_scan_status=clean")).await;
        assert_eq!((&email["scan_status"], &email["content_omitted"]), (&Value::Null, &json!(true)));
        let context = inbox.get(&format!("emails/{id}/context")).await;
        assert_eq!(context["email"]["content_omission_reason"], "scan_status_not_clean");
    }
    // What the built-in scanner flags needs no second opinion.
    assert_eq!(status(&server, &inbox, flagged("Virus")).await, "flagged");
    let waiting = inbox.post(
        "emails/wait",
        json!({ "after": "2026-07-01T00:00:00Z", "subject": "good", "timeout_seconds": 20 }),
    );
    let judge = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        scanning::scan_pending(&server.app).await.unwrap()
    };
    let (found, judged) = tokio::join!(waiting, judge);
    assert_eq!((judged, &found.ok()["outcome"]), (2, &json!("matched")));
    assert_eq!(inbox.get(&format!("emails/{good}")).await["scan_status"], "clean");
    let email = inbox.get(&format!("emails/{bad}")).await;
    assert_eq!(
        (&email["scan_status"], &email["scan_threats"][0]["threat_type"]),
        (&json!("flagged"), &json!("malware:Test.Virus"))
    );
    let events = inbox.key.get(&format!("/api/v1/workspaces/{}/events?after=4", inbox.workspace)).await.ok();
    let mut scanned: Vec<(&Value, &Value)> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["type"], &one["data"]["content_omitted"]))
        .collect();
    // Several are asked about at once, so either verdict may come first.
    scanned.sort_by_key(|(_, omitted)| omitted.as_bool());
    assert_eq!(
        scanned,
        [(&json!("message.scanned"), &json!(false)), (&json!("message.scanned"), &json!(true))]
    );
    assert_eq!(scanning::scan_pending(&server.app).await.unwrap(), 0);
}

// rules: SCAN-6
#[both_engines]
async fn a_scanner_that_is_away_makes_nothing_clean(engine: Engine) {
    let clamd = Some("127.0.0.1:1".parse().unwrap());
    let server = Server::with(engine, ServerOptions { clamd, ..ServerOptions::default() }).await;
    let inbox = Inbox::new(&server).await;
    let id = server.receive(&inbox.address, plain("Good", "text")).await;
    assert_eq!(scanning::scan_pending(&server.app).await.unwrap(), 1);
    assert_eq!(inbox.get(&format!("emails/{id}")).await["scan_status"], "skipped");
}
