//! Many emails at once, Trash, and folders that go with mail in them.

use model::EmailId;
use serde_json::{Value, json};
use testkit::{Engine, Server, both_engines};

use super::{
    help::assert_refuses_fields,
    mails::{Inbox, plain, texts},
};

async fn receive(server: &Server, inbox: &Inbox, count: usize) -> Vec<EmailId> {
    let mut ids = Vec::new();
    for number in 0..count {
        ids.push(server.receive(&inbox.address, plain(&format!("Mail {number}"), "text")).await);
    }
    ids
}

// rules: READ-14
#[both_engines]
async fn many_are_changed_in_one_call(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let ids = receive(&server, &inbox, 4).await;
    let some = json!([ids[0], "eml_none", ids[1], ids[0]]);
    let read = inbox.post("emails/bulk-read", json!({ "ids": some, "read": true })).await.ok();
    assert_eq!(read, json!({ "updated": 2, "not_found": ["eml_none"] }));
    assert_eq!(inbox.get("emails?is_read=true").await["totalCount"], 2);
    inbox.post("emails/bulk-read", json!({ "ids": [ids[0]], "read": false })).await.ok();
    assert_eq!(inbox.get("emails?is_read=true").await["totalCount"], 1);
    let moved = inbox.post("emails/bulk-move", json!({ "ids": some, "folderId": "archive" })).await.ok();
    assert_eq!(moved, json!({ "updated": 2, "not_found": ["eml_none"] }));
    assert_eq!(inbox.get("emails?folder=archive").await["totalCount"], 2);
    let unknown = inbox.post("emails/bulk-move", json!({ "ids": [ids[2]], "folderId": "nowhere" })).await;
    unknown.expect(400, "folder_unknown");
    inbox.delete(&format!("emails/{}", ids[3])).await.ok();
    let gone = inbox.post("emails/bulk-delete", json!({ "ids": [ids[0], ids[3], "eml_none"] })).await.ok();
    assert_eq!(
        gone,
        json!({ "updated": 2, "not_found": ["eml_none"], "deletedCount": 1, "trashedCount": 1, "cancelledScheduledCount": 0 })
    );
    let gone =
        inbox.post("emails/bulk-delete", json!({ "ids": [ids[1], ids[2]], "permanent": true })).await.ok();
    assert_eq!((&gone["deletedCount"], &gone["trashedCount"]), (&json!(2), &json!(0)));
    assert_eq!(inbox.get("emails").await["totalCount"], 0);
    let names = |count: usize| (0..count).map(|number| format!("eml_{number}")).collect::<Vec<_>>();
    for (name, more) in [
        ("bulk-read", json!({ "read": true })),
        ("bulk-move", json!({ "folderId": "archive" })),
        ("bulk-delete", json!({})),
    ] {
        for count in [0, 501] {
            let mut body: Value = more.clone();
            body["ids"] = json!(names(count));
            assert_refuses_fields(&inbox.post(&format!("emails/{name}"), body).await, &["ids"]);
        }
        let mut body: Value = more.clone();
        body["ids"] = json!(names(500));
        let answer = inbox.post(&format!("emails/{name}"), body).await.ok();
        assert_eq!(answer["not_found"].as_array().unwrap().len(), 500);
    }
}

/// More than one transaction takes at once.
// rules: READ-15
#[both_engines]
async fn emptying_trash_deletes_everything_in_it(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let messages: Vec<String> =
        (0..1101).map(|number| format!("From a\nSubject: Mail {number}\n\nx\n\n")).collect();
    let mbox = messages.concat();
    let ids = inbox.import("application/mbox", mbox).await.ok()["ids"].clone();
    assert_eq!(ids.as_array().unwrap().len(), 1000);
    let kept = server.receive(&inbox.address, plain("Kept", "text")).await;
    for ids in ids.as_array().unwrap().chunks(500) {
        inbox.post("emails/bulk-delete", json!({ "ids": ids })).await.ok();
    }
    assert_eq!(inbox.get("emails?folder=trash").await["totalCount"], 1000);
    let key = inbox.key.with("idempotency-key", "empty");
    let path = format!("{}/trash/empty", inbox.path);
    let emptied = key.post(&path, json!({})).await;
    assert_eq!((emptied.ok(), emptied.header("x-credits-charged")), (json!({ "deletedCount": 1000 }), "2"));
    assert_eq!(key.post(&path, json!({})).await.bytes, emptied.bytes);
    assert_eq!(inbox.post("trash/empty", json!({})).await.ok(), json!({ "deletedCount": 0 }));
    assert_eq!(inbox.get("emails?folder=trash").await["totalCount"], 0);
    assert_eq!(inbox.get("emails").await["totalCount"], 102);
    assert_eq!(inbox.get(&format!("emails/{kept}")).await["folder_id"], "inbox");
}

// rules: READ-16
#[both_engines]
async fn a_folder_that_goes_leaves_its_mail_in_archive(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let ids = receive(&server, &inbox, 3).await;
    inbox.post("folders", json!({ "name": "Mine" })).await.ok();
    inbox.post("emails/bulk-move", json!({ "ids": ids[..2], "folderId": "mine" })).await.ok();
    inbox.put(&format!("emails/{}", ids[0]), json!({ "read": true })).await.ok();
    inbox.delete("folders/mine").await.ok();
    let folders = inbox.get("folders").await;
    let of = |id: &str| folders.as_array().unwrap().iter().find(|one| one["id"] == id).cloned();
    assert_eq!(of("mine"), None);
    let archive = of("archive").unwrap();
    assert_eq!((&archive["totalCount"], &archive["unreadCount"]), (&json!(2), &json!(1)));
    assert_eq!(
        texts(&inbox.get("emails?folder=archive").await["emails"], "folder_name"),
        ["Archive", "Archive"]
    );
    assert_eq!(inbox.get("threads?folder=archive").await["totalCount"], 2);
}
