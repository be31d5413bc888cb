//! Custom labels of a mailbox.

use model::Plan;
use serde_json::{Value, json};
use testkit::{Caller, Engine, Server, both_engines};

use super::help::{assert_missing, assert_refused, assert_refuses_fields, new_mailbox, path_of};

pub(super) async fn labels_of(key: &Caller) -> String {
    format!("{}/custom-labels", path_of(&new_mailbox(key, "Inbox").await))
}

fn ids(labels: &Value) -> Vec<String> {
    labels.as_array().unwrap().iter().map(|label| label["id"].as_str().unwrap().to_owned()).collect()
}

const EXISTS: &str = r#"{"error":"A label with this name already exists.","code":"label_exists"}"#;

/// rules: LBL-1, LBL-2
#[both_engines]
async fn labels_are_listed_in_the_order_they_were_made(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let mailbox = new_mailbox(&tenant.key, "Inbox").await;
    let labels = format!("{}/custom-labels", path_of(&mailbox));
    assert_eq!(tenant.key.get(&labels).await.text(), "[]");
    let answer = tenant
        .key
        .post(&labels, json!({ "name": " VIP & Söhne ", "rules": " from:@acme.com ", "color": "#1F6feb" }))
        .await;
    assert_eq!(answer.status, 201);
    let first = answer.json();
    assert!(first["id"].as_str().unwrap().starts_with("lbl_"));
    let now = "2026-07-14T09:00:00.000Z";
    assert_eq!(
        first,
        json!({
            "id": first["id"], "mailbox_id": mailbox["id"], "name": "VIP & Söhne", "slug": "vip-söhne",
            "rules": " from:@acme.com ", "color": "#1f6feb", "sort_order": 0, "created_at": now, "updated_at": now,
        })
    );
    let second = tenant.key.post(&labels, json!({ "name": "Aaa" })).await.ok();
    assert_eq!((&second["rules"], &second["sort_order"]), (&json!(""), &json!(1)));
    let third = tenant.key.post(&labels, json!({ "name": "1" })).await.ok();
    assert_eq!(tenant.key.get(&labels).await.ok(), json!([first, second, third]));
    // A new label goes last also after one before it has gone.
    tenant.key.delete(&format!("{labels}/{}", second["id"].as_str().unwrap())).await.ok();
    let fourth = tenant.key.post(&labels, json!({ "name": "Aaa" })).await.ok();
    assert_eq!(tenant.key.get(&labels).await.ok(), json!([first, third, fourth]));
    assert!(fourth["sort_order"].as_i64() > third["sort_order"].as_i64());
}

/// rules: LBL-2, LBL-3, LBL-4
#[both_engines]
async fn names_rules_and_colours_are_checked(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let labels = labels_of(&tenant.key).await;
    let made = tenant.key.post(&labels, json!({ "name": "Kept", "color": "#abcdef" })).await.ok();
    let one = format!("{labels}/{}", made["id"].as_str().unwrap());
    let colour = "expected a colour such as #1f6feb";
    for (field, value, message) in [
        ("name", json!(""), "must not be empty"),
        ("name", json!("   "), "must not be empty"),
        ("name", json!("ü".repeat(81)), "must have at most 80 characters"),
        ("name", json!("a\nb"), "must not contain control characters"),
        ("name", json!("!!"), "needs at least one letter or digit"),
        ("rules", json!("ü".repeat(501)), "length is greater than 500"),
        ("color", json!("red"), colour),
        ("color", json!("#12345"), colour),
        ("color", json!("#1234567"), colour),
        ("color", json!("#12345g"), colour),
        ("color", json!("123456"), colour),
        ("color", json!("#ÄÖÜ"), colour),
        ("color", json!(" #123456"), colour),
        ("color", json!("#123456;background:url(//x)"), colour),
        ("color", json!(""), colour),
    ] {
        let mut body = json!({ "name": "New" });
        body[field] = value.clone();
        assert_refused(&tenant.key.post(&labels, body).await, &[(field, message)]);
        assert_refused(&tenant.key.put(&one, json!({ field: value })).await, &[(field, message)]);
    }
    for (body, faulty) in [
        (json!({}), vec!["name"]),
        (json!({ "name": 1, "rules": 2, "color": 3 }), vec!["name", "rules", "color"]),
        (json!({ "name": "", "rules": "from:", "color": "" }), vec!["name", "color"]),
        (json!({ "name": "", "rules": "from:@", "color": "" }), vec!["name", "rules", "color"]),
        (json!({ "name": "A", "slug": "b", "sort_order": 4 }), vec!["slug", "sort_order"]),
        (json!({ "name": "A", "mailbox_id": "mbx_1", "id": "lbl_1" }), vec!["mailbox_id", "id"]),
    ] {
        assert_refuses_fields(&tenant.key.post(&labels, body).await, &faulty);
    }
    assert_eq!(tenant.key.get(&labels).await.ok(), json!([made]));
    let widest = json!({ "name": "ü".repeat(80), "rules": "ü".repeat(500), "color": "#000000" });
    let widest = tenant.key.post(&labels, widest).await.ok();
    assert_eq!(widest["slug"], "ü".repeat(80));
    tenant.key.put(&one, json!({ "name": "😀".repeat(79) + "a", "rules": "😀".repeat(500) })).await.ok();
}

/// rules: LBL-3
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn a_slug_is_unique_in_its_mailbox(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let (labels, others) = (labels_of(&tenant.key).await, labels_of(&tenant.key).await);
    tenant.key.post(&labels, json!({ "name": "To do" })).await.ok();
    let second = tenant.key.post(&labels, json!({ "name": "Second" })).await.ok();
    let second = format!("{labels}/{}", second["id"].as_str().unwrap());
    for name in ["To do", "to-do", "  TO DO!! "] {
        for answer in [
            tenant.key.post(&labels, json!({ "name": name })).await,
            tenant.key.put(&second, json!({ "name": name })).await,
        ] {
            assert_eq!((answer.status, answer.text().as_str()), (409, EXISTS));
        }
    }
    assert_eq!(tenant.key.post(&others, json!({ "name": "To do" })).await.status, 201);
    // Its own slug is no obstacle for a label.
    assert_eq!(tenant.key.put(&second, json!({ "name": "SECOND!" })).await.ok()["slug"], "second");

    // Many at once: made, and renamed to.
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (key, labels) = (tenant.key.clone(), labels.clone());
        calls.spawn(async move { key.post(&labels, json!({ "name": "Race" })).await });
    }
    let answers = calls.join_all().await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
    assert!(answers.iter().all(|answer| answer.status == 201 || answer.text() == EXISTS));
    let mut calls = tokio::task::JoinSet::new();
    for id in ids(&tenant.key.get(&labels).await.ok()) {
        let (key, one) = (tenant.key.clone(), format!("{labels}/{id}"));
        calls.spawn(async move { key.put(&one, json!({ "name": "Goal" })).await });
    }
    let statuses: Vec<u16> = calls.join_all().await.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
}

/// rules: LBL-5, ERR-5
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn a_mailbox_has_twenty_labels_and_no_more(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    for _ in 0..3 {
        let labels = labels_of(&tenant.key).await;
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..25 {
            let (key, labels) = (tenant.key.clone(), labels.clone());
            calls.spawn(async move { key.post(&labels, json!({ "name": format!("L{number}") })).await });
        }
        let answers = calls.join_all().await;
        assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 20);
        let refused = answers.iter().find(|answer| answer.status != 201).unwrap();
        refused.expect(403, "quota_exceeded");
        assert!(refused.json()["error"].as_str().unwrap().contains("20 labels"), "{}", refused.text());
        let listed = tenant.key.get(&labels).await.ok();
        let places: Vec<i64> =
            listed.as_array().unwrap().iter().map(|label| label["sort_order"].as_i64().unwrap()).collect();
        assert_eq!(places, (0..20).collect::<Vec<_>>());
        tenant.key.delete(&format!("{labels}/{}", ids(&listed)[7])).await.ok();
        assert_eq!(tenant.key.post(&labels, json!({ "name": "One more" })).await.status, 201);
        tenant.key.post(&labels, json!({ "name": "Too many" })).await.expect(403, "quota_exceeded");
    }
}

/// rules: LBL-6, HTTP-5
#[both_engines]
async fn a_change_leaves_alone_what_it_does_not_give(engine: Engine) {
    let server = Server::start(engine).await;
    let (tenant, other) = (server.tenant(Plan::Free).await, server.tenant(Plan::Free).await);
    let (labels, second) = (labels_of(&tenant.key).await, labels_of(&tenant.key).await);
    let body = json!({ "name": "Old", "rules": "is:urgent", "color": "#111111" });
    let made = tenant.key.post(&labels, body).await.ok();
    let id = made["id"].as_str().unwrap();
    let one = format!("{labels}/{id}");
    server.clock.advance(9);
    let mut wanted = made.clone();
    wanted["updated_at"] = json!("2026-07-14T09:00:09.000Z");
    for (change, field, value) in [
        (json!({}), "name", json!("Old")),
        (json!({ "name": null, "rules": null, "color": null }), "name", json!("Old")),
        (json!({ "color": "#ABCDEF" }), "color", json!("#abcdef")),
        (json!({ "rules": "" }), "rules", json!("")),
        (json!({ "rules": "is:read" }), "rules", json!("is:read")),
    ] {
        wanted[field] = value;
        assert_eq!(tenant.key.put(&one, change).await.ok(), wanted);
    }
    wanted["name"] = json!("Brand new");
    wanted["slug"] = json!("brand-new");
    assert_eq!(tenant.key.put(&one, json!({ "name": " Brand new " })).await.ok(), wanted);
    assert_eq!(tenant.key.get(&labels).await.ok(), json!([wanted]));

    let foreign = labels_of(&other.key).await;
    for (key, path) in [
        (&tenant.key, format!("{second}/{id}")),
        (&tenant.key, format!("{labels}/lbl_00000000000000000000000000")),
        (&tenant.key, format!("{labels}/brand-new")),
        (&tenant.key, format!("{labels}/{}", id.to_uppercase())),
        (&other.key, format!("{foreign}/{id}")),
    ] {
        assert_missing(&key.put(&path, json!({ "name": "X" })).await, "Label");
        assert_missing(&key.delete(&path).await, "Label");
    }
    assert_missing(&other.key.delete(&one).await, "Mailbox");
    assert_eq!(tenant.key.get(&labels).await.ok(), json!([wanted]));
    let deleted = tenant.key.delete(&one).await;
    assert_eq!((deleted.status, deleted.bytes.len()), (204, 0));
    assert_missing(&tenant.key.delete(&one).await, "Label");
    assert_eq!(tenant.key.get(&labels).await.text(), "[]");
}

/// rules: LBL-7
#[both_engines]
async fn reordering_names_every_label_once(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let (labels, others) = (labels_of(&tenant.key).await, labels_of(&tenant.key).await);
    let reorder = format!("{labels}/reorder");
    assert_eq!(tenant.key.post(&reorder, json!({ "ids": [] })).await.ok(), json!([]));
    for name in ["A", "B", "C"] {
        tenant.key.post(&labels, json!({ "name": name })).await.ok();
    }
    let foreign = tenant.key.post(&others, json!({ "name": "A" })).await.ok();
    let foreign = foreign["id"].as_str().unwrap().to_owned();
    let all = ids(&tenant.key.get(&labels).await.ok());
    let before = tenant.key.get(&labels).await.bytes;
    let [a, b, c] = [&all[0], &all[1], &all[2]];
    for faulty in [
        vec![],
        vec![a, b],
        vec![a, b, b],
        vec![a, b, c, c],
        vec![a, b, &foreign],
        vec![a, b, c, &foreign],
        vec![&foreign; 20],
    ] {
        let message = "must name every label of the mailbox exactly once";
        assert_refused(&tenant.key.post(&reorder, json!({ "ids": faulty })).await, &[("ids", message)]);
    }
    for (body, path) in [
        (json!({}), "ids"),
        (json!({ "ids": null }), "ids"),
        (json!({ "ids": "abc" }), "ids"),
        (json!({ "ids": [a, 5, c] }), "ids[1]"),
        (json!({ "ids": vec![a; 21] }), "ids"),
        (json!({ "ids": [a, b, c], "from": 1 }), "from"),
    ] {
        assert_refuses_fields(&tenant.key.post(&reorder, body).await, &[path]);
    }
    assert_refuses_fields(&tenant.key.post(&reorder, json!([a, b, c])).await, &[""]);
    assert_eq!(tenant.key.get(&labels).await.bytes, before);

    server.clock.advance(3);
    let ordered = tenant.key.post(&reorder, json!({ "ids": [c, b, a] })).await.ok();
    assert_eq!(ids(&ordered), [c.clone(), b.clone(), a.clone()]);
    assert_eq!(tenant.key.get(&labels).await.ok(), ordered);
    let last = tenant.key.post(&labels, json!({ "name": "Last" })).await.ok();
    assert_eq!(last["sort_order"], 3);
    assert_missing(
        &tenant.key.post("/api/v1/mailboxes/x/custom-labels/reorder", json!({ "ids": [] })).await,
        "Mailbox",
    );
}
