//! Files of emails, and messages as they came.

use serde_json::json;
use testkit::{Engine, Server, both_engines};

use super::{
    help::assert_missing,
    mails::{Inbox, flagged, message, plain, with_file},
};

/// What a file of 3,000 bytes does not have costs nothing.
async fn refuses_ranges_beyond(inbox: &Inbox, path: &str) {
    let used = format!("/api/v1/workspaces/{}/usage/credits", inbox.workspace);
    let before = inbox.key.get(&used).await.ok()["used"].as_i64().unwrap();
    for range in ["bytes=3000-", "bytes=-0", "bytes=3000-4000"] {
        let beyond = inbox.key.with("range", range).get(path).await;
        beyond.expect(416, "range_not_satisfiable");
        assert_eq!(beyond.header("content-range"), "bytes */3000");
        assert_eq!(beyond.header("x-credits-charged"), "0");
    }
    let after = inbox.key.get(&used).await.ok()["used"].as_i64().unwrap();
    assert_eq!(after - before, 1, "the look at the usage itself");
}

// rules: READ-19, READ-20
#[both_engines]
async fn a_file_is_downloaded_as_it_is(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let bytes: Vec<u8> = (0..=255_u8).cycle().take(3000).collect();
    let raw = with_file("File", "../../e\u{202e}vil \"x\".bin", "application/x-thing", &bytes);
    let id = server.receive(&inbox.address, raw.clone()).await;
    // Such a name is flagged, which is not what this is about.
    inbox.set_scan(&server, &id, Some("clean")).await;
    let email = inbox.get(&format!("emails/{id}")).await;
    let file = &email["attachments"][0];
    assert_eq!(
        (&file["mimetype"], &file["size"], &file["disposition"]),
        (&json!("application/x-thing"), &json!(3000), &json!("attachment"))
    );
    let name = file["filename"].as_str().unwrap();
    assert!(!name.contains(['/', '\\', '\u{202e}']), "{name}");
    let file = file["id"].as_str().unwrap();
    for path in [format!("attachments/{file}"), format!("emails/{id}/attachments/{file}")] {
        let answer = inbox.try_get(&path).await;
        assert_eq!((answer.status, answer.bytes.as_ref()), (200, bytes.as_slice()));
        assert_eq!(answer.header("content-type"), "application/x-thing");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("accept-ranges"), "bytes");
        assert_eq!(answer.header("cache-control"), "no-store");
        let disposition = answer.header("content-disposition");
        assert!(
            disposition.starts_with("attachment; filename=\"") && !disposition.contains('/'),
            "{disposition}"
        );
        let full = format!("{}/{path}", inbox.path);
        for (range, status, part) in [
            ("bytes=0-9", 206, 0..10),
            ("bytes=2990-", 206, 2990..3000),
            ("bytes=-5", 206, 2995..3000),
            ("bytes=0-1,5-6", 200, 0..3000),
            ("bytes=3-1", 200, 0..3000),
            ("bytes=4000-3500", 200, 0..3000),
            ("bytes=x", 200, 0..3000),
        ] {
            let answer = inbox.key.with("range", range).get(&full).await;
            assert_eq!((answer.status, answer.bytes.as_ref()), (status, &bytes[part]), "{range}");
            assert_eq!(answer.header("x-credits-charged"), "1", "{range}");
        }
        refuses_ranges_beyond(&inbox, &full).await;
    }
    let raw_path = format!("{}/emails/{id}/raw", inbox.path);
    let part = inbox.key.with("range", "bytes=0-9").get(&raw_path).await;
    assert_eq!((part.status, part.text().as_str()), (206, &raw[..10]));
    // Another mail's file is not this mail's.
    let other = server.receive(&inbox.address, plain("Other", "x")).await;
    assert_missing(&inbox.try_get(&format!("emails/{other}/attachments/{file}")).await, "Attachment");
    assert_missing(&inbox.try_get(&format!("emails/eml_none/attachments/{file}")).await, "Email");
    assert_missing(&inbox.try_get("attachments/att_none").await, "Attachment");
}

// rules: READ-20
#[both_engines]
async fn only_harmless_images_are_shown_inline(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let png = b"\x89PNG\r\n\x1a\n1234";
    for (name, kind, bytes, shown, place) in [
        ("a.png", "image/png", &png[..], "image/png", "inline"),
        ("a.txt", "text/plain", &png[..], "image/png", "inline"),
        ("a.png", "image/png", b"<svg onload=x>", "image/png", "attachment"),
        ("a.svg", "image/svg+xml", b"<svg/>", "image/svg+xml", "attachment"),
        ("notes.txt", "text/plain", b"hello", "text/plain", "attachment"),
    ] {
        let id = server.receive(&inbox.address, with_file("File", name, kind, bytes)).await;
        inbox.set_scan(&server, &id, Some("clean")).await;
        let file = inbox.get(&format!("emails/{id}")).await["attachments"][0]["id"].clone();
        let answer = inbox.try_get(&format!("attachments/{}", file.as_str().unwrap())).await;
        assert_eq!(answer.header("content-type"), shown, "{name} {kind}");
        assert!(answer.header("content-disposition").starts_with(place), "{name} {kind}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
}

// rules: SCAN-9, SCAN-3
#[both_engines]
async fn what_is_flagged_is_withheld_and_nothing_else(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let id = server.receive(&inbox.address, flagged("Bad")).await;
    let file = inbox.get(&format!("emails/{id}")).await["attachments"][0]["id"].clone();
    let file = file.as_str().unwrap();
    for path in
        [format!("emails/{id}/raw"), format!("attachments/{file}"), format!("emails/{id}/attachments/{file}")]
    {
        for (status, answered) in [
            (Some("flagged"), 403),
            (Some("skipped"), 200),
            (None, 200),
            (Some("clean"), 200),
            (Some("flagged"), 403),
        ] {
            inbox.set_scan(&server, &id, status).await;
            let answer = inbox.try_get(&path).await;
            assert_eq!(answer.status, answered, "{path} {status:?}");
            if answered == 403 {
                answer.expect(403, "content_withheld");
                assert_eq!(answer.header("x-credits-charged"), "0");
            }
        }
    }
}

/// The bytes of a message are never changed, however odd they are.
// rules: READ-19
#[both_engines]
async fn a_message_is_kept_byte_for_byte(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let odd: Vec<Vec<u8>> = vec![
        b"\r\n\r\n".to_vec(),
        b"no headers at all".to_vec(),
        b"Subject: bare\n\nlines\n".to_vec(),
        (0..=255_u8).collect(),
        message("8 bit", "", "caf\u{e9}").into_bytes(),
        [b"Subject: latin\r\n\r\n".to_vec(), vec![0xe9, 0xff, 0x00, 0x0d]].concat(),
        plain("Large", &"x".repeat(3_000_000)).into_bytes(),
    ];
    for raw in odd {
        let id = server.receive(&inbox.address, raw.clone()).await;
        let answer = inbox.try_get(&format!("emails/{id}/raw")).await;
        assert!(
            answer.bytes.as_ref() == raw.as_slice(),
            "{:?}",
            String::from_utf8_lossy(&raw[..raw.len().min(99)])
        );
        inbox.get(&format!("emails/{id}")).await;
        inbox.get(&format!("emails/{id}/context")).await;
    }
}
