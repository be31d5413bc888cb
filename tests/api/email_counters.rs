//! Everything that is counted about mail equals a recount, after any sequence of changes.

use model::{EmailId, WorkspaceId};
use serde_json::{Value, json};
use testkit::{Engine, Server, both_engines};

use super::mails::{Inbox, flagged, message, new_label, with_file};

/// Differences between what is kept and a recount, for a whole workspace. Each statement gives a row for each of them.
const RECOUNTS: &[(&str, &str)] = &[
    (
        "folders",
        "SELECT f.mailbox_id, f.id FROM folder f WHERE f.workspace_id = $1 AND (f.total_count, f.unread_count) <>
         (SELECT count(*), CAST(coalesce(sum(1 - e.read), 0) AS BIGINT) FROM email e
          WHERE e.workspace_id = $1 AND e.mailbox_id = f.mailbox_id AND e.folder_id = f.id)",
    ),
    (
        "homeless mails",
        "SELECT e.mailbox_id, e.id FROM email e WHERE e.workspace_id = $1 AND NOT EXISTS (SELECT 1 FROM folder f
         WHERE f.workspace_id = $1 AND f.mailbox_id = e.mailbox_id AND f.id = e.folder_id)",
    ),
    (
        "listed",
        "SELECT mailbox_id, id FROM email WHERE workspace_id = $1
         AND listed <> CASE WHEN folder_id IN ('trash', 'spam') THEN 0 ELSE 1 END",
    ),
    (
        "stored bytes and objects",
        "SELECT m.id, c.name FROM mailbox m JOIN mailbox_counter c ON c.workspace_id = $1 AND c.mailbox_id = m.id
         WHERE m.workspace_id = $1 AND c.name IN ('storage_bytes', 'blob_count') AND c.value <>
         (SELECT CAST(coalesce(sum(CASE WHEN c.name = 'storage_bytes' THEN k.size ELSE 1 +
            CASE WHEN k.body_blob IS NULL THEN 0 ELSE 1 END + CASE WHEN k.safe_blob IS NULL THEN 0 ELSE 1 END END), 0)
            AS BIGINT) FROM email e JOIN content k ON k.workspace_id = $1 AND k.id = e.content_id
          WHERE e.workspace_id = $1 AND e.mailbox_id = m.id)",
    ),
    (
        "unread by category",
        "SELECT c.mailbox_id, c.name FROM mailbox_counter c WHERE c.workspace_id = $1 AND c.name LIKE 'inbox_unread.%'
         AND c.value <> (SELECT count(*) FROM email e WHERE e.workspace_id = $1 AND e.mailbox_id = c.mailbox_id
         AND e.folder_id = 'inbox' AND e.read = 0 AND 'inbox_unread.' || e.category = c.name)",
    ),
    (
        "threads",
        "SELECT t.mailbox_id, t.id FROM thread t WHERE t.workspace_id = $1 AND (t.mail_count < 1 OR t.mail_count <>
         (SELECT count(*) FROM email e WHERE e.workspace_id = $1 AND e.mailbox_id = t.mailbox_id AND e.thread_id = t.id))",
    ),
    (
        "threads in folders",
        "SELECT f.folder_id, f.thread_id FROM thread_folder f WHERE f.workspace_id = $1
         AND (f.mail_count, f.unread_count, f.newest_at) <>
         (SELECT count(*), CAST(coalesce(sum(1 - e.read), 0) AS BIGINT), coalesce(max(e.date), 0) FROM email e
          WHERE e.workspace_id = $1 AND e.mailbox_id = f.mailbox_id AND e.thread_id = f.thread_id
          AND (e.folder_id = f.folder_id OR (f.folder_id = '' AND e.listed = 1)))",
    ),
    (
        "the newest of threads in folders",
        "SELECT f.folder_id, f.thread_id FROM thread_folder f WHERE f.workspace_id = $1 AND f.newest_email <>
         (SELECT e.id FROM email e
          WHERE e.workspace_id = $1 AND e.mailbox_id = f.mailbox_id AND e.thread_id = f.thread_id
          AND (e.folder_id = f.folder_id OR (f.folder_id = '' AND e.listed = 1)) ORDER BY e.date DESC, e.id DESC LIMIT 1)",
    ),
    (
        "threads missing in folders",
        "SELECT e.folder_id, e.thread_id FROM email e WHERE e.workspace_id = $1 AND (NOT EXISTS
         (SELECT 1 FROM thread_folder f WHERE f.workspace_id = $1 AND f.mailbox_id = e.mailbox_id
          AND f.thread_id = e.thread_id AND f.folder_id = e.folder_id) OR (e.listed = 1 AND NOT EXISTS
         (SELECT 1 FROM thread_folder f WHERE f.workspace_id = $1 AND f.mailbox_id = e.mailbox_id
          AND f.thread_id = e.thread_id AND f.folder_id = '')))",
    ),
    (
        "how many threads folders have",
        "SELECT c.mailbox_id, c.name FROM mailbox_counter c WHERE c.workspace_id = $1 AND c.name LIKE 'threads.%'
         AND c.value <> (SELECT count(*) FROM thread_folder f WHERE f.workspace_id = $1
         AND f.mailbox_id = c.mailbox_id AND 'threads.' || f.folder_id = c.name)",
    ),
    (
        "threads in folders without a counter",
        "SELECT f.mailbox_id, f.folder_id FROM thread_folder f WHERE f.workspace_id = $1 AND NOT EXISTS
         (SELECT 1 FROM mailbox_counter c WHERE c.workspace_id = $1 AND c.mailbox_id = f.mailbox_id
          AND c.name = 'threads.' || f.folder_id)",
    ),
    (
        "labels",
        "SELECT e.mailbox_id, e.id FROM email e WHERE e.workspace_id = $1 AND e.label_count <> (SELECT count(*)
         FROM email_label l WHERE l.workspace_id = $1 AND l.mailbox_id = e.mailbox_id AND l.email_id = e.id)",
    ),
    (
        "attachments",
        "SELECT e.mailbox_id, e.id FROM email e WHERE e.workspace_id = $1 AND e.attachment_count <> (SELECT count(*)
         FROM attachment a WHERE a.workspace_id = $1 AND a.mailbox_id = e.mailbox_id AND a.email_id = e.id)",
    ),
    (
        "contents that nothing uses",
        "SELECT k.workspace_id, k.id FROM content k WHERE k.workspace_id = $1 AND NOT EXISTS
         (SELECT 1 FROM email e WHERE e.workspace_id = $1 AND e.content_id = k.id)",
    ),
];

/// Checks that every kept figure of a workspace is right.
pub(super) async fn assert_counted(server: &Server, workspace: &WorkspaceId, when: &str) {
    for (what, sql) in RECOUNTS {
        let read =
            server.app.db().read(workspace, async move |tx| tx.all::<(String, String)>(sql, &[]).await);
        assert_eq!(read.await.unwrap(), [], "{what} {when}");
    }
    let texts = "SELECT (SELECT count(*) FROM email_text) - (SELECT count(*) FROM email)";
    server.app.db().index_texts().await.unwrap();
    let read = server.app.db().system_read(async move |tx| tx.one::<(i64,)>(texts, &[]).await);
    assert_eq!(read.await.unwrap(), Some((0,)), "the index {when}");
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.roll(all.len())]
    }
}

async fn arrive(server: &Server, inboxes: &[Inbox; 2], dice: &mut Dice) {
    let number = dice.roll(12);
    let subject =
        if dice.roll(3) == 0 { "urgent invoice question".to_owned() } else { format!("Mail {number}") };
    let headers = format!(
        "References: <{}@remote.test>\nDate: {} Jul 2026 10:00 +0000",
        dice.roll(6),
        1 + dice.roll(3)
    );
    let raw = match dice.roll(10) {
        0 => flagged(&subject),
        1 => with_file(&subject, "a.csv", "text/csv", b"1;2"),
        // Large enough for the blob store, and the same each time.
        2 => message("Large", &headers, &noise(200_000)),
        _ => message(&subject, &headers, "Please help with the refund of my order.\r\n"),
    };
    server.receive(&dice.pick(inboxes).address, raw).await;
}

/// Text that does not pack well.
fn noise(length: usize) -> String {
    let mut dice = Dice(7);
    (0..length)
        .map(|at| if at % 70 == 69 { '\n' } else { char::from(b'!' + u8::try_from(dice.roll(90)).unwrap()) })
        .collect::<String>()
        .replace('\n', "\r\n")
}

async fn change(inbox: &Inbox, dice: &mut Dice) {
    let list = inbox.get("emails?limit=100").await;
    let trash = inbox.get("emails?limit=100&folder=trash").await;
    let mut all: Vec<Value> = list["emails"].as_array().unwrap().clone();
    all.extend(trash["emails"].as_array().unwrap().iter().cloned());
    if all.is_empty() {
        return;
    }
    let email = dice.pick(&all).clone();
    let path = format!("emails/{}", email["id"].as_str().unwrap());
    let thread = format!("threads/{}", email["thread_id"].as_str().unwrap());
    let some: Vec<EmailId> = (0..4).map(|_| dice.pick(&all)["id"].as_str().unwrap().into()).collect();
    let folders: Vec<String> = super::mails::texts(&inbox.get("folders").await, "id");
    let folders: Vec<String> =
        folders.into_iter().filter(|id| !matches!(id.as_str(), "draft" | "scheduled")).collect();
    let folder = dice.pick(&folders).clone();
    let category = *dice.pick(&["technical", "other", "customer_support"]);
    let read = dice.roll(2) == 0;
    match dice.roll(14) {
        0 => drop(inbox.put(&path, json!({ "read": read, "category": category })).await.ok()),
        1 => drop(inbox.put(&path, json!({ "category": category, "starred": read })).await.ok()),
        2 => drop(
            inbox.put(&path, json!({ "custom_labels": if read { json!(["red"]) } else { json!([]) } })).await,
        ),
        3 => drop(inbox.post(&format!("{path}/move"), json!({ "folderId": folder })).await.ok()),
        4 => drop(inbox.delete(&path).await.ok()),
        5 => drop(inbox.delete(&format!("{path}?permanent={read}")).await.ok()),
        6 => drop(inbox.post("emails/bulk-read", json!({ "ids": some, "read": read })).await.ok()),
        7 => drop(inbox.post("emails/bulk-move", json!({ "ids": some, "folderId": folder })).await.ok()),
        8 => drop(inbox.post("emails/bulk-delete", json!({ "ids": some, "permanent": read })).await.ok()),
        9 => drop(inbox.post(&format!("{thread}/read"), json!({})).await.ok()),
        10 => drop(inbox.post(&format!("{thread}/move"), json!({ "folderId": folder })).await.ok()),
        11 if dice.roll(4) == 0 => drop(inbox.post("trash/empty", json!({})).await.ok()),
        12 => {
            // One of both works, whichever it is.
            inbox.delete("folders/mine").await;
            inbox.post("folders", json!({ "name": "Mine" })).await;
        }
        13 => {
            let labels = inbox.get("custom-labels").await;
            if let Some(id) = labels[0]["id"].as_str() {
                inbox.delete(&format!("custom-labels/{id}")).await.ok();
            }
            new_label(inbox, "Red", "subject:invoice").await;
        }
        _ => {}
    }
}

/// Two mailboxes of one workspace, each with a label and a folder of its own.
async fn two_inboxes(server: &Server) -> [Inbox; 2] {
    let first = Inbox::new(server).await;
    let inboxes = [first.another().await, first];
    for inbox in &inboxes {
        new_label(inbox, "Red", "subject:invoice").await;
        inbox.post("folders", json!({ "name": "Mine" })).await.ok();
    }
    inboxes
}

// rules: READ-25, READ-17, RECV-3
#[both_engines]
async fn figures_equal_a_recount_after_anything(engine: Engine) {
    let server = Server::start(engine).await;
    let inboxes = two_inboxes(&server).await;
    let mut dice = Dice(2026);
    for step in 0..240 {
        if dice.roll(3) == 0 {
            arrive(&server, &inboxes, &mut dice).await;
        } else {
            change(dice.pick(&inboxes), &mut dice).await;
        }
        if step % 10 == 9 {
            assert_counted(&server, &inboxes[0].workspace, &format!("after step {step}")).await;
        }
    }
    // What the API tells is what was counted.
    let mailboxes = inboxes[0].key.get("/api/v1/mailboxes").await.ok();
    for inbox in &inboxes {
        let unread = inbox.get("emails?folder=inbox&is_read=false&limit=100").await;
        let shown = mailboxes.as_array().unwrap().iter().find(|one| one["id"] == json!(inbox.id)).unwrap();
        for category in ["customer_support", "technical", "partnership", "other"] {
            let counted =
                unread["emails"].as_array().unwrap().iter().filter(|one| one["category"] == category).count();
            assert_eq!(shown["inbox_unread_by_category"][category], counted, "{category}");
        }
    }
    let all: Vec<Value> = inboxes[0].get("emails?limit=100").await["emails"].as_array().unwrap().clone();
    let ids: Vec<&Value> = all.iter().map(|one| &one["id"]).collect();
    if !ids.is_empty() {
        inboxes[0].post("emails/bulk-delete", json!({ "ids": ids, "permanent": true })).await.ok();
    }
    inboxes[0].key.delete(&inboxes[1].path).await.ok();
    server.clock.advance(8 * 86_400);
    operations::maintenance::run(&server.app).await.unwrap();
    assert_counted(&server, &inboxes[0].workspace, "at the end").await;
}

/// Changes at the same time leave the same figures as changes one after the other.
// rules: READ-25
#[both_engines]
async fn figures_equal_a_recount_after_changes_at_once(engine: Engine) {
    let server = Server::start(engine).await;
    let inboxes = two_inboxes(&server).await;
    let work = (0..8_u64).map(async |seed| {
        let mut dice = Dice(seed + 1);
        for _ in 0..12 {
            arrive(&server, &inboxes, &mut dice).await;
            let inbox = dice.pick(&inboxes);
            let list = inbox.get("emails?limit=50").await;
            let all = list["emails"].as_array().unwrap();
            if all.is_empty() {
                continue;
            }
            let some: Vec<&Value> = (0..6).map(|_| &dice.pick(all)["id"]).collect();
            match dice.roll(4) {
                0 => inbox.post("emails/bulk-delete", json!({ "ids": some, "permanent": true })).await.ok(),
                1 => inbox
                    .post("emails/bulk-read", json!({ "ids": some, "read": dice.roll(2) == 0 }))
                    .await
                    .ok(),
                2 => inbox.post("emails/bulk-move", json!({ "ids": some, "folderId": "archive" })).await.ok(),
                _ => inbox.post("emails/bulk-delete", json!({ "ids": some })).await.ok(),
            };
        }
    });
    futures_util::future::join_all(work).await;
    assert_counted(&server, &inboxes[0].workspace, "at the end").await;
}
