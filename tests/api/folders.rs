//! Folders of a mailbox.

use model::{FolderId, Plan, Role, folders::Folder};
use serde_json::{Value, json};
use testkit::{Caller, Engine, Server, both_engines};

use super::help::{assert_missing, assert_refused, assert_refuses_fields, encoded, new_mailbox, path_of};

async fn folders_of(key: &Caller) -> String {
    format!("{}/folders", path_of(&new_mailbox(key, "Inbox").await))
}

fn folder(id: &str, name: &str, system: bool) -> Value {
    json!({ "id": id, "name": name, "unreadCount": 0, "totalCount": 0, "system": system })
}

/// rules: FOLD-2, FOLD-3, FOLD-6
#[both_engines]
async fn a_folder_lives_and_dies(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let folders = folders_of(&tenant.key).await;

    let created = tenant.key.post(&folders, json!({ "name": " To do " })).await;
    assert_eq!(created.status, 201);
    assert_eq!(created.json(), folder("to-do", "To do", false));
    let again = tenant.key.post(&folders, json!({ "name": "to DO!" })).await;
    assert_eq!(again.status, 409);
    assert_eq!(again.text(), r#"{"error":"A folder with this name already exists.","code":"folder_exists"}"#);

    let one = format!("{folders}/to-do");
    let deleted = tenant.key.delete(&one).await;
    assert_eq!((deleted.status, deleted.bytes.len()), (204, 0));
    assert_missing(&tenant.key.delete(&one).await, "Folder");
    assert_missing(&tenant.key.put(&one, json!({ "name": "A" })).await, "Folder");
    assert_eq!(tenant.key.get(&folders).await.ok().as_array().unwrap().len(), 7);
    assert_eq!(tenant.key.post(&folders, json!({ "name": "To do" })).await.status, 201);
}

/// rules: FOLD-1
#[both_engines]
async fn system_folders_come_first_and_in_order(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    let folders = folders_of(&tenant.key).await;
    let system = [
        folder("inbox", "Inbox", true),
        folder("sent", "Sent", true),
        folder("draft", "Drafts", true),
        folder("scheduled", "Scheduled", true),
        folder("archive", "Archive", true),
        folder("spam", "Spam", true),
        folder("trash", "Trash", true),
    ];
    assert_eq!(tenant.key.get(&folders).await.ok(), json!(system));
    for name in ["0 first", "Aardvark", "Zebra"] {
        tenant.key.post(&folders, json!({ "name": name })).await.ok();
    }
    let listed = tenant.key.get(&folders).await.ok();
    let listed = listed.as_array().unwrap();
    assert_eq!(listed[..7], system);
    let own: Vec<&str> = listed[7..].iter().map(|folder| folder["id"].as_str().unwrap()).collect();
    assert_eq!(own, ["0-first", "aardvark", "zebra"]);
    // Any member may look and tidy up.
    let member = server.key(&server.new_key(&tenant.workspace, Role::Member).await.key);
    member.get(&folders).await.ok();
    member.delete(&format!("{folders}/zebra")).await.ok();
}

/// rules: FOLD-2
#[both_engines]
async fn the_id_is_the_slug_of_the_name(engine: Engine) {
    let long = "ä".repeat(80);
    let cases = [
        ("Invoices", "invoices"),
        ("  Two   words  ", "two-words"),
        ("--a__b..c--", "a-b-c"),
        ("Büro & Café", "büro-café"),
        ("Ärger ÄÖÜ", "ärger-äöü"),
        ("用户 2", "用户-2"),
        ("../../etc/passwd", "etc-passwd"),
        ("50% off?", "50-off"),
        ("😀 smile", "smile"),
        ("<script>", "script"),
        ("1", "1"),
        (long.as_str(), long.as_str()),
    ];
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let folders = folders_of(&tenant.key).await;
    for (name, id) in cases {
        let made = tenant.key.post(&folders, json!({ "name": name })).await.ok();
        assert_eq!(made, folder(id, name.trim(), false));
        // An id works in a path as it is, encoded.
        let one = format!("{folders}/{}", encoded(id));
        assert_eq!(tenant.key.put(&one, json!({ "name": "Renamed" })).await.ok()["id"], id);
        tenant.key.delete(&one).await.ok();
    }
    for name in ["!!", "-", "😀", "___", "…"] {
        let answer = tenant.key.post(&folders, json!({ "name": name })).await;
        assert_refused(&answer, &[("name", "needs at least one letter or digit")]);
    }
    for (name, message) in [
        (String::new(), "must not be empty"),
        (" \u{a0} ".to_owned(), "must not be empty"),
        ("ä".repeat(81), "must have at most 80 characters"),
        ("a\tb".to_owned(), "must not contain control characters"),
        ("a\u{1b}[31m".to_owned(), "must not contain control characters"),
    ] {
        let answer = tenant.key.post(&folders, json!({ "name": name })).await;
        assert_refused(&answer, &[("name", message)]);
    }
    for body in [json!({}), json!({ "name": 5 }), json!({ "name": null }), json!({ "name": {} })] {
        assert_refuses_fields(&tenant.key.post(&folders, body).await, &["name"]);
    }
    let body = json!({ "name": "A", "id": "mine", "system": true, "unreadCount": 5 });
    assert_refuses_fields(&tenant.key.post(&folders, body).await, &["id", "system", "unreadCount"]);
    assert_eq!(tenant.key.get(&folders).await.ok().as_array().unwrap().len(), 7);
}

/// rules: FOLD-3, FOLD-6, HTTP-5
#[both_engines]
async fn a_folder_belongs_to_one_mailbox(engine: Engine) {
    let server = Server::start(engine).await;
    let (tenant, other) = (server.tenant(Plan::Free).await, server.tenant(Plan::Free).await);
    let (first, second) = (folders_of(&tenant.key).await, folders_of(&tenant.key).await);
    let foreign = folders_of(&other.key).await;
    for name in ["Inbox", "inbox", "SENT", "Draft", " trash! ", "Scheduled"] {
        tenant.key.post(&first, json!({ "name": name })).await.expect(409, "folder_exists");
    }
    assert_eq!(tenant.key.post(&first, json!({ "name": "Mine" })).await.status, 201);
    tenant.key.post(&first, json!({ "name": "mine" })).await.expect(409, "folder_exists");
    for folders in [&second, &foreign] {
        let key = if *folders == foreign { &other.key } else { &tenant.key };
        assert_missing(&key.put(&format!("{folders}/mine"), json!({ "name": "A" })).await, "Folder");
        assert_missing(&key.delete(&format!("{folders}/mine")).await, "Folder");
        assert_eq!(key.post(folders, json!({ "name": "Mine" })).await.status, 201);
    }
    tenant.key.delete(&format!("{second}/mine")).await.ok();
    let names = tenant.key.get(&first).await.ok();
    assert_eq!(names[7], folder("mine", "Mine", false));
    assert_missing(&tenant.key.get(&foreign).await, "Mailbox");
    assert_eq!(other.key.get(&foreign).await.ok()[7], folder("mine", "Mine", false));
}

/// rules: FOLD-4, FOLD-5
#[both_engines]
async fn renaming_keeps_the_id_and_spares_system_folders(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let folders = folders_of(&tenant.key).await;
    tenant.key.post(&folders, json!({ "name": "To do" })).await.ok();
    let one = format!("{folders}/to-do");
    for name in ["Done", "To do", "!!", "In box", "ü"] {
        let renamed = tenant.key.put(&one, json!({ "name": format!(" {name} ") })).await.ok();
        assert_eq!(renamed, folder("to-do", name, false));
        assert_eq!(tenant.key.get(&folders).await.ok()[7], renamed);
    }
    // A name of a system folder, however it is spelt, would have mail put into the wrong one.
    for name in ["Inbox", " inbox ", "TRASH", "Drafts", "draft", "Ｓｐａｍ", "in\u{200b}box", "Sent!"] {
        let renamed = tenant.key.put(&one, json!({ "name": name })).await;
        renamed.expect(409, "folder_exists");
        tenant.key.post(&folders, json!({ "name": name })).await.expect(409, "folder_exists");
        assert_eq!(tenant.key.get(&folders).await.ok()[7]["name"], "ü", "{name}");
    }
    assert_refuses_fields(&tenant.key.put(&one, json!({ "name": "" })).await, &["name"]);
    assert_refuses_fields(&tenant.key.put(&one, json!({ "name": "a", "id": "b" })).await, &["id"]);
    let before = tenant.key.get(&folders).await.bytes;
    for id in ["inbox", "sent", "draft", "scheduled", "archive", "spam", "trash"] {
        let one = format!("{folders}/{id}");
        for answer in [tenant.key.put(&one, json!({ "name": "Mine" })).await, tenant.key.delete(&one).await] {
            assert_eq!(answer.status, 400);
            let text = r#"{"error":"This folder cannot be changed.","code":"folder_protected"}"#;
            assert_eq!(answer.text(), text);
        }
    }
    // Ids are looked up as they are.
    assert_missing(&tenant.key.delete(&format!("{folders}/INBOX")).await, "Folder");
    assert_missing(&tenant.key.delete(&format!("{folders}/To%20do")).await, "Folder");
    assert_eq!(tenant.key.get(&folders).await.bytes, before);
}

/// rules: FOLD-7, ERR-5
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn a_mailbox_holds_a_thousand_folders_and_no_more(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let mailbox = new_mailbox(&tenant.key, "Inbox").await;
    let folders = format!("{}/folders", path_of(&mailbox));
    let id = model::MailboxId::from(mailbox["id"].as_str().unwrap());
    // All but the last three, straight into the store.
    let filled = server.app.db().write(&tenant.workspace, async move |tx| {
        for number in 7..997 {
            let name = format!("folder-{number}");
            let folder = Folder {
                id: FolderId::from(name.as_str()),
                name,
                unread_count: 0,
                total_count: 0,
                system: false,
            };
            store::folders::insert(tx, &id, &folder, 7).await?;
        }
        Ok::<_, store::Error>(())
    });
    filled.await.unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..20 {
        let (key, folders) = (tenant.key.clone(), folders.clone());
        calls.spawn(async move { key.post(&folders, json!({ "name": format!("Racer {number}") })).await });
    }
    let answers = calls.join_all().await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 3);
    let refused = answers.iter().find(|answer| answer.status != 201).unwrap();
    refused.expect(403, "quota_exceeded");
    assert!(refused.json()["error"].as_str().unwrap().contains("1000 folders"), "{}", refused.text());
    assert_eq!(tenant.key.get(&folders).await.ok().as_array().unwrap().len(), 1000);
    // Another mailbox has room, and so has this one after a deletion.
    let other = folders_of(&tenant.key).await;
    assert_eq!(tenant.key.post(&other, json!({ "name": "A" })).await.status, 201);
    tenant.key.delete(&format!("{folders}/folder-7")).await.ok();
    assert_eq!(tenant.key.post(&folders, json!({ "name": "A" })).await.status, 201);
    tenant.key.post(&folders, json!({ "name": "B" })).await.expect(403, "quota_exceeded");
}
