//! Triagers of a mailbox: making, changing, deleting them.

use model::Plan;
use serde_json::{Value, json};
use testkit::{Engine, Server, both_engines};

use super::{
    help::{assert_missing, assert_refused, assert_refuses_fields},
    mails::Inbox,
};

const NOW: &str = "2026-07-14T09:00:00.000Z";

fn id(value: &Value) -> String {
    value["id"].as_str().unwrap().to_owned()
}

/// rules: TRIAGE-1, TRIAGE-2
#[both_engines]
async fn every_mailbox_has_a_default_triager_that_stays(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let all = inbox.get("task-triagers").await;
    assert_eq!(all.as_array().unwrap().len(), 1);
    let first = &all[0];
    assert!(id(first).starts_with("trg_"));
    assert_eq!(
        *first,
        json!({
            "id": first["id"], "mailbox_id": inbox.id, "name": "E-mail response", "instructions": "",
            "is_default": true, "enabled": true,
            "triggers": [{
                "id": first["triggers"][0]["id"], "kind": "mail.received", "enabled": true, "mailDomains": [],
                "onlyInbox": true, "filter": "",
            }],
            "tasks": [{
                "id": first["tasks"][0]["id"], "kind": "draft_response", "enabled": true, "config": {},
            }],
            "created_at": NOW, "updated_at": NOW,
        })
    );
    let default = format!("task-triagers/{}", id(first));
    assert_eq!(inbox.get(&default).await, *first);
    let refused = inbox.delete(&default).await;
    refused.expect(409, "triager_protected");
    assert_eq!(refused.header("x-credits-charged"), "0");

    // Another one becomes the default; then the first can go.
    let other = inbox.post("task-triagers", json!({ "name": "Other" })).await.ok();
    assert_eq!(other["is_default"], false);
    let one = format!("task-triagers/{}", id(&other));
    let made = inbox.key.send(http::Method::POST, &format!("{}/{one}/default", inbox.path), None).await;
    assert_eq!((made.status, made.header("x-credits-charged")), (200, "2"));
    assert_eq!(made.json()["is_default"], true);
    let again = inbox.key.send(http::Method::POST, &format!("{}/{one}/default", inbox.path), None).await;
    assert_eq!(again.ok()["is_default"], true);
    let listed = inbox.get("task-triagers").await;
    let marks: Vec<bool> =
        listed.as_array().unwrap().iter().map(|one| one["is_default"].as_bool().unwrap()).collect();
    assert_eq!((marks, id(&listed[0])), (vec![true, false], id(&other)));
    inbox.delete(&one).await.expect(409, "triager_protected");
    let gone = inbox.delete(&default).await;
    assert_eq!((gone.status, gone.bytes.len()), (204, 0));
    assert_missing(&inbox.try_get(&default).await, "Triager");
}

/// rules: TRIAGE-1
#[both_engines]
async fn a_triager_is_made_read_and_changed(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let body = json!({
        "name": " Invoices ", "instructions": "Mind the dates.",
        "triggers": [
            { "kind": "mail.received_or_sent", "mailDomains": ["ACME.com", "acme.com", "bücher.example"],
              "filter": " from:@acme.com and has:attachment " },
            { "kind": "calendar.event_canceled", "enabled": false, "onlyInbox": false },
        ],
        "tasks": [
            { "kind": "extract_tasks", "config": { "limit": 3, "instructions": "Payments only." } },
            { "kind": "label", "enabled": false, "config": { "labels": ["money"] } },
            { "kind": "notify" },
        ],
    });
    let answer = inbox.post("task-triagers", body).await;
    assert_eq!((answer.status, answer.header("x-credits-charged")), (201, "2"));
    let made = answer.json();
    assert_eq!((&made["name"], &made["instructions"]), (&json!("Invoices"), &json!("Mind the dates.")));
    let trigger = &made["triggers"][0];
    assert_eq!(trigger["mailDomains"], json!(["acme.com", "xn--bcher-kva.example"]));
    assert_eq!(trigger["filter"], "from:@acme.com and has:attachment");
    assert_eq!((&trigger["onlyInbox"], &trigger["enabled"]), (&json!(true), &json!(true)));
    assert_eq!(made["tasks"][0]["config"], json!({ "limit": 3, "instructions": "Payments only." }));
    assert_eq!(made["tasks"][1]["config"], json!({ "labels": ["money"] }));
    let one = format!("task-triagers/{}", id(&made));
    assert_eq!(inbox.get(&one).await, made);

    server.clock.advance(5);
    let mut wanted = made.clone();
    wanted["updated_at"] = json!("2026-07-14T09:00:05.000Z");
    assert_eq!(inbox.put(&one, json!({})).await.ok(), wanted);
    wanted["enabled"] = json!(false);
    wanted["name"] = json!("Bills");
    assert_eq!(inbox.put(&one, json!({ "name": "Bills", "enabled": false })).await.ok(), wanted);
    // A list replaces a list; what is named by its id keeps it.
    let kept = id(&made["triggers"][1]);
    let change = json!({ "triggers": [{ "id": kept, "kind": "mail.sent" }], "tasks": [] });
    let changed = inbox.put(&one, change).await.ok();
    assert_eq!((id(&changed["triggers"][0]), &changed["triggers"][0]["kind"]), (kept, &json!("mail.sent")));
    assert_eq!((changed["triggers"].as_array().unwrap().len(), &changed["tasks"]), (1, &json!([])));
    for (other, path) in [(inbox.another().await, &one), (Inbox::new(&server).await, &one)] {
        assert_missing(&other.try_get(path).await, "Triager");
        assert_missing(&other.put(path, json!({ "name": "X" })).await, "Triager");
        assert_missing(&other.delete(path).await, "Triager");
    }
    assert_eq!(inbox.get(&one).await, changed);
    inbox.delete(&one).await.ok();
}

/// rules: TRIAGE-1
#[both_engines]
async fn what_a_triager_is_made_of_is_checked(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let made = inbox.post("task-triagers", json!({ "name": "Kept" })).await.ok();
    let one = format!("task-triagers/{}", id(&made));
    let trigger = |more: Value| {
        let mut all = json!({ "kind": "mail.received" });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([all])
    };
    let task = |kind: &str, config: Value| json!([{ "kind": kind, "config": config }]);
    for (field, value, faulty) in [
        ("name", json!(""), "name"),
        ("name", json!("x".repeat(81)), "name"),
        ("instructions", json!("x".repeat(4001)), "instructions"),
        ("enabled", json!("yes"), "enabled"),
        ("is_default", json!(true), "is_default"),
        ("triggers", json!(vec![json!({ "kind": "mail.sent" }); 11]), "triggers"),
        ("triggers", json!([{ "kind": "mail.lost" }]), "triggers[0].kind"),
        ("triggers", trigger(json!({ "mailDomains": ["not a domain"] })), "triggers[0].mailDomains[0]"),
        ("triggers", trigger(json!({ "mailDomains": vec!["a.test"; 51] })), "triggers[0].mailDomains"),
        ("triggers", trigger(json!({ "filter": "from:@" })), "triggers[0].filter"),
        ("triggers", trigger(json!({ "filter": "whatever seems important" })), "triggers[0].filter"),
        ("triggers", trigger(json!({ "filter": "x".repeat(501) })), "triggers[0].filter"),
        ("triggers", trigger(json!({ "id": "tgr_other" })), "triggers[0].id"),
        ("triggers", trigger(json!({ "every": "day" })), "triggers[0].every"),
        ("tasks", json!([{ "kind": "send_email" }]), "tasks[0].kind"),
        ("tasks", json!([{ "kind": "notify" }, { "kind": "notify" }]), "tasks[1].kind"),
        ("tasks", task("notify", json!({ "url": "https://x.test" })), "tasks[0].config.url"),
        ("tasks", task("notify", json!({ "labels": ["a"] })), "tasks[0].config"),
        ("tasks", task("label", json!({ "limit": 3 })), "tasks[0].config"),
        ("tasks", task("extract_tasks", json!({ "limit": 11 })), "tasks[0].config.limit"),
        ("tasks", task("extract_tasks", json!({ "limit": 0 })), "tasks[0].config.limit"),
        ("tasks", task("label", json!({ "labels": vec!["a"; 21] })), "tasks[0].config.labels"),
        (
            "tasks",
            task("notify", json!({ "instructions": "x".repeat(2001) })),
            "tasks[0].config.instructions",
        ),
        ("tasks", json!([{ "kind": "notify", "id": "stp_other" }]), "tasks[0].id"),
    ] {
        let mut body = json!({ "name": "New" });
        body[field] = value.clone();
        assert_refuses_fields(&inbox.post("task-triagers", body).await, &[faulty]);
        assert_refuses_fields(&inbox.put(&one, json!({ field: value })).await, &[faulty]);
    }
    let faulty = json!({ "name": "N", "triggers": trigger(json!({ "filter": "from:@" })) });
    let said = inbox.post("task-triagers", faulty).await.json()["details"][0]["message"].clone();
    assert!(said.as_str().unwrap().starts_with("column "), "{said}");
    assert_refused(&inbox.put(&one, json!({ "name": " " })).await, &[("name", "must not be empty")]);
    assert_eq!(inbox.get(&one).await, made);
    assert_eq!(inbox.get("task-triagers").await.as_array().unwrap().len(), 2);
}

/// rules: TRIAGE-1, TRIAGE-2
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn a_mailbox_has_ten_triagers_and_one_default(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let inbox = Inbox::of(&tenant).await;
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..14 {
        let (key, path) = (inbox.key.clone(), format!("{}/task-triagers", inbox.path));
        calls.spawn(async move { key.post(&path, json!({ "name": format!("T{number}") })).await });
    }
    let answers = calls.join_all().await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 9);
    for refused in answers.iter().filter(|answer| answer.status != 201) {
        refused.expect(403, "quota_exceeded");
    }
    let all = inbox.get("task-triagers").await;
    let mut calls = tokio::task::JoinSet::new();
    for one in all.as_array().unwrap() {
        let (key, path) = (inbox.key.clone(), format!("{}/task-triagers/{}/default", inbox.path, id(one)));
        calls.spawn(async move { key.send(http::Method::POST, &path, None).await });
    }
    assert!(calls.join_all().await.iter().all(|answer| answer.status == 200));
    let all = inbox.get("task-triagers").await;
    let defaults = all.as_array().unwrap().iter().filter(|one| one["is_default"] == true).count();
    assert_eq!(defaults, 1);
}

/// rules: TRIAGE-9, AGENT-1
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn a_triager_has_one_conversation_of_its_own(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let made = inbox.post("task-triagers", json!({ "name": "Bills" })).await.ok();
    let one = format!("task-triagers/{}", id(&made));
    let path = format!("{}/{one}/agent-conversation", inbox.path);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let (key, path) = (inbox.key.clone(), path.clone());
        calls.spawn(async move { key.send(http::Method::POST, &path, None).await });
    }
    let answers = calls.join_all().await;
    let first = answers[0].json();
    assert_eq!(first, json!({ "id": first["id"], "title": "Bills", "message_count": 0 }));
    for answer in &answers {
        assert_eq!((answer.status, answer.header("x-credits-charged")), (200, "2"), "{}", answer.text());
        assert_eq!(answer.json(), first, "made once");
    }
    let listed = inbox.get("agent-conversations").await;
    assert_eq!(listed["conversations"].as_array().unwrap().len(), 1);
    assert_eq!(listed["conversations"][0]["triager_id"], made["id"]);
    // It is the triager's: nobody renames or deletes it, and it goes with the triager.
    let talk = format!("agent-conversations/{}", id(&first));
    let renamed = inbox.key.patch(&format!("{}/{talk}", inbox.path), json!({ "title": "Mine" })).await;
    assert_eq!((renamed.status, inbox.delete(&talk).await.status), (400, 400));
    inbox.delete(&one).await.ok();
    assert_eq!(inbox.get("agent-conversations").await["conversations"], json!([]));
    assert_missing(&inbox.key.send(http::Method::POST, &path, None).await, "Triager");
    let default = inbox.get("task-triagers").await[0]["id"].as_str().unwrap().to_owned();
    let default = format!("{}/task-triagers/{default}/agent-conversation", inbox.path);
    assert_eq!(inbox.key.send(http::Method::POST, &default, None).await.ok()["title"], "E-mail response");
}
