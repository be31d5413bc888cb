//! Where mail lies: contents that are shared, blobs that are swept, damage that is found.

use std::path::{Path, PathBuf};

use operations::storage;
use serde_json::json;
use testkit::{Engine, Server, both_engines};

use super::mails::{Inbox, message, plain};

async fn contents(server: &Server, inbox: &Inbox) -> Vec<(String, i64)> {
    let sql = "SELECT id, CASE WHEN message IS NULL OR body_blob IS NOT NULL THEN 1 ELSE 0 END FROM content
         WHERE workspace_id = $1 ORDER BY id";
    server.app.db().read(&inbox.workspace, async move |tx| tx.all(sql, &[]).await).await.unwrap()
}

/// The files of the blob store that hold something.
fn blobs(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(blobs(&path));
        } else if path.metadata().unwrap().len() > 10_000 {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A message that is too large for a row, whatever packs it.
pub(super) fn large(seed: u64) -> String {
    let mut state = seed;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'A' + u8::try_from((state >> 33) % 58).unwrap())
    };
    let lines: Vec<String> = (0..8000).map(|_| (0..60).map(|_| next()).collect()).collect();
    message(&format!("Large {seed}"), "", &lines.join("\r\n"))
}

// rules: RECV-3
#[both_engines]
async fn mailboxes_of_a_workspace_share_one_content(engine: Engine) {
    let server = Server::start(engine).await;
    let (inbox, foreign) = (Inbox::new(&server).await, Inbox::new(&server).await);
    let other = inbox.another().await;
    let raw = plain("Same", "text");
    let mut ids = Vec::new();
    for one in [&inbox, &other, &foreign] {
        ids.push(server.receive(&one.address, raw.clone()).await);
    }
    assert_eq!((contents(&server, &inbox).await.len(), contents(&server, &foreign).await.len()), (1, 1));
    inbox.delete(&format!("emails/{}?permanent=true", ids[0])).await.ok();
    assert_eq!(contents(&server, &inbox).await.len(), 1);
    assert_eq!(other.try_get(&format!("emails/{}/raw", ids[1])).await.text(), raw);
    other.delete(&format!("emails/{}?permanent=true", ids[1])).await.ok();
    assert_eq!((contents(&server, &inbox).await.len(), contents(&server, &foreign).await.len()), (0, 1));
    assert_eq!(foreign.try_get(&format!("emails/{}/raw", ids[2])).await.text(), raw);
    let used = foreign.get("storage").await;
    assert_eq!((used["storage_gb"].as_f64().unwrap() * 1e9).round().to_string(), raw.len().to_string());
}

// rules: RECV-3, READ-19
#[both_engines]
async fn large_mail_lies_in_the_blob_store_until_nothing_needs_it(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let folder = server.folder().join("blobs");
    let (first, second) = (large(1), large(2));
    let one = server.receive(&inbox.address, first.clone()).await;
    let two = server.receive(&inbox.address, second.clone()).await;
    assert!(contents(&server, &inbox).await.iter().all(|(_, outside)| *outside == 1));
    let kept = blobs(&folder).len();
    assert!(kept >= 2, "{kept}");
    for (id, raw) in [(&one, &first), (&two, &second)] {
        assert!(inbox.try_get(&format!("emails/{id}/raw")).await.text() == *raw);
        let email = inbox.get(&format!("emails/{id}")).await;
        assert!(
            email["body"].as_str().unwrap().len() > 400_000
                && email["raw_headers"].as_str().unwrap().contains("Large")
        );
    }
    assert!(inbox.get("storage").await["blob_count"].as_i64().unwrap() >= 2);
    inbox.delete(&format!("emails/{one}?permanent=true")).await.ok();
    assert_eq!(storage::sweep_blobs(&server.app).await.unwrap(), 0, "they are young");
    assert_eq!(blobs(&folder).len(), kept);
    // Times of files are those of the machine, so the clock of the service goes a day beyond them.
    server.clock.set("2100-01-01T00:00:00Z");
    let gone = storage::sweep_blobs(&server.app).await.unwrap();
    assert_eq!((gone >= 1, blobs(&folder).len()), (true, kept - usize::try_from(gone).unwrap()));
    assert_eq!(storage::sweep_blobs(&server.app).await.unwrap(), 0);
    assert!(inbox.try_get(&format!("emails/{two}/raw")).await.text() == second);
    assert_eq!(storage::scrub(&server.app).await.unwrap().damaged, []);
}

/// Most of a message is its text, which is stored once, beside what surrounds it.
// rules: RECV-3
#[both_engines]
async fn every_message_comes_back_byte_for_byte(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let text = "A line of text, and another one.\r\n\r\n  Some space. \r\n.\r\n".repeat(200);
    let html = format!("<p>{}</p>", text.replace("\r\n", "<br>\r\n"));
    let parts = format!(
        "--b\r\nContent-Type: text/plain\r\n\r\n{text}\r\n--b\r\nContent-Type: text/html\r\n\r\n{html}\r\n--b--\r\n"
    );
    let of_parts =
        |kind: &str| format!("MIME-Version: 1.0\r\nContent-Type: multipart/{kind}; boundary=b\r\n");
    let messages = [
        message("Text", "", &text),
        message("No end of line", "", text.trim_end()),
        message("Bare line feeds", "", &text.replacen("\r\n", "\n", 3)),
        message("Only line feeds", "", &text).replace("\r\n", "\n"),
        message("Twice", "", &format!("{text}{text}")),
        message("Short", "", "one"),
        message("Empty", "", ""),
        message("Quoted", "Content-Transfer-Encoding: quoted-printable\r\n", &text.replace("text", "te=78t")),
        message("Latin", "Content-Type: text/plain; charset=iso-8859-1\r\n", &text),
        message("Flowed", "Content-Type: text/plain; format=flowed\r\n", &text),
        message("Page", "Content-Type: text/html\r\n", &html),
        message("Alternatives", &of_parts("alternative"), &parts),
        message("Mixed", &of_parts("mixed"), &parts),
        large(7),
    ];
    for raw in &messages {
        let id = server.receive(&inbox.address, raw.clone()).await;
        assert!(
            inbox.try_get(&format!("emails/{id}/raw")).await.text() == *raw,
            "{}",
            &raw[..200.min(raw.len())]
        );
    }
    let found = storage::scrub(&server.app).await.unwrap();
    assert_eq!((found.checked, found.damaged), (messages.len() as u64, vec![]));
}

// rules: RECV-4
#[both_engines]
async fn a_scrubber_finds_a_changed_bit(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let small = server.receive(&inbox.address, plain("Small", "text")).await;
    let big = server.receive(&inbox.address, large(3)).await;
    let found = storage::scrub(&server.app).await.unwrap();
    assert_eq!((found.checked, found.damaged), (2, vec![]));
    let blob = blobs(&server.folder().join("blobs")).remove(0);
    let whole = std::fs::read(&blob).unwrap();
    let mut bytes = whole.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&blob, &bytes).unwrap();
    let found = storage::scrub(&server.app).await.unwrap();
    assert_eq!((found.checked, found.damaged.len()), (2, 1));
    // Damage is told as such, and never shown as a message.
    let answer = inbox.key.meets_faults().get(&format!("{}/emails/{big}/raw", inbox.path)).await;
    assert!(answer.status >= 500, "{}", answer.status);
    std::fs::write(&blob, &whole).unwrap();
    assert_eq!(storage::scrub(&server.app).await.unwrap().damaged, []);
    for column in ["message", "headers", "body"] {
        let sql = format!("SELECT id, {column} FROM content WHERE workspace_id = $1 AND body IS NOT NULL");
        let read = server
            .app
            .db()
            .read(&inbox.workspace, async move |tx| tx.one::<(String, Vec<u8>)>(&sql, &[]).await);
        let (id, sealed) = read.await.unwrap().unwrap();
        for changed in [true, false] {
            let mut bytes = sealed.clone();
            let last = bytes.len() - 20;
            bytes[last] ^= u8::from(changed);
            let sql = format!("UPDATE content SET {column} = $3 WHERE workspace_id = $1 AND id = $2");
            let id = id.clone();
            let write = server.app.db().write(&inbox.workspace, async move |tx| {
                tx.run(&sql, &[(&id).into(), (&bytes).into()]).await
            });
            assert_eq!(write.await.unwrap(), 1);
            let damaged = storage::scrub(&server.app).await.unwrap().damaged;
            assert_eq!(damaged.len(), usize::from(changed), "{column}: {damaged:?}");
        }
    }
    assert_eq!(inbox.get(&format!("emails/{small}")).await["body"], json!("text\n"));
}

/// The same message, deleted in one mailbox while it arrives in another, is always whole.
// rules: RECV-3
#[both_engines]
async fn a_content_that_goes_and_comes_at_once_is_whole(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let other = inbox.another().await;
    let raw = plain("Same", "text");
    for _ in 0..25 {
        let old = server.receive(&inbox.address, raw.clone()).await;
        let path = format!("emails/{old}?permanent=true");
        let (gone, new) = tokio::join!(inbox.delete(&path), server.receive(&other.address, raw.clone()));
        gone.ok();
        assert_eq!(other.try_get(&format!("emails/{new}/raw")).await.text(), raw);
        other.delete(&format!("emails/{new}?permanent=true")).await.ok();
    }
    assert_eq!(contents(&server, &inbox).await, []);
    super::email_counters::assert_counted(&server, &inbox.workspace, "at the end").await;
}
