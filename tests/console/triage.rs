//! The page of triagers: making and changing them, what they found, and the switch for drafts.

use operations::triage::worker;
use serde_json::json;
use testkit::{Engine, ScriptedModel, Server, ServerOptions, both_engines};

use super::person::Person;

fn options() -> ServerOptions {
    let model = ScriptedModel::answering(|question| {
        let triagers: Vec<_> = question["triagers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| {
                json!({
                    "id": one["id"], "summary": "Found <script>alert(1)</script>", "reply": "Thank you.",
                    "tasks": [{ "title": "Pay the <b>bill</b>", "due_at": "2026-07-20T10:00:00Z", "priority": "high" }],
                })
            })
            .collect();
        json!({ "triagers": triagers })
    });
    ServerOptions { assistant: Some(model), ..ServerOptions::default() }
}

/// rules: CONSOLE-1
#[both_engines]
#[expect(clippy::too_many_lines, reason = "one story from beginning to end")]
async fn triagers_are_made_changed_and_watched_in_the_console(engine: Engine) {
    let server = Server::with(engine, options()).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    let page = ada.page(&mailbox.at("triage")).await;
    assert!(page.contains("E-mail response") && page.contains("No runs yet"), "{page}");
    assert!(!page.contains("No language model"));

    // A new one, first with a mistake.
    let fields = [
        ("name", "Bills"),
        ("instructions", "Mind the dates."),
        ("enabled", "on"),
        ("t0_kind", "mail.received"),
        ("t0_enabled", "on"),
        ("t0_inbox", "on"),
        ("t0_domains", "remote.test, Other.test"),
        ("t0_filter", "from:@"),
        ("t1_kind", ""),
        ("extract_tasks_on", "on"),
        ("extract_tasks_limit", "3"),
        ("label_labels", "money"),
    ];
    let refused = ada.form(&mailbox.at("triage/new"), &fields).await;
    assert_eq!(refused.status, 400);
    let shown = refused.text();
    assert!(shown.contains("column ") && shown.contains("value=\"Bills\""), "{shown}");
    let mut right = fields;
    right[7].1 = "subject:bill";
    let made = ada.form(&mailbox.at("triage/new"), &right).await;
    assert_eq!((made.status, made.header("location")), (303, mailbox.at("triage").as_str()));
    let triagers = format!("/api/v1/mailboxes/{}/task-triagers", mailbox.id);
    let all = ada.tenant.key.get(&triagers).await.ok();
    let own = all[1].clone();
    assert_eq!(own["triggers"][0]["mailDomains"], json!(["remote.test", "other.test"]));
    assert_eq!(own["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(own["tasks"][0]["config"], json!({ "limit": 3 }));
    let id = own["id"].as_str().unwrap();

    // Its form says what it is, and saving it unchanged changes nothing.
    let form = ada.page(&mailbox.at(&format!("triage/{id}"))).await;
    assert!(form.contains("subject:bill") && form.contains("remote.test, other.test"), "{form}");
    let trigger = own["triggers"][0]["id"].as_str().unwrap();
    let task = own["tasks"][0]["id"].as_str().unwrap();
    let same = [
        ("name", "Bills"),
        ("instructions", "Mind the dates."),
        ("enabled", "on"),
        ("t0_id", trigger),
        ("t0_kind", "mail.received"),
        ("t0_enabled", "on"),
        ("t0_inbox", "on"),
        ("t0_domains", "remote.test, other.test"),
        ("t0_filter", "subject:bill"),
        ("extract_tasks_id", task),
        ("extract_tasks_on", "on"),
        ("extract_tasks_limit", "3"),
    ];
    assert_eq!(ada.form(&mailbox.at(&format!("triage/{id}")), &same).await.status, 303);
    assert_eq!(ada.tenant.key.get(&format!("{triagers}/{id}")).await.ok(), own);

    // The switch, a mail, and what came of it.
    let settings = [("automations", "on"), ("drafts", "on"), ("approval", "on")];
    assert_eq!(ada.form(&mailbox.at("triage/auto-draft"), &settings).await.status, 303);
    let mail = format!(
        "From: Ann <ann@remote.test>\r\nTo: {}\r\nSubject: Your bill\r\nMessage-ID: <1@remote.test>\r\n\r\nPlease pay.\r\n",
        mailbox.address
    );
    let mail = server.receive(&mailbox.address, mail).await;
    worker::run_due(&server.app).await.unwrap();
    let page = ada.page(&mailbox.at("triage")).await;
    assert!(page.contains("Open draft") && page.contains("checked"), "{page}");
    assert!(!page.contains("<script>alert") && !page.contains("<b>bill"), "{page}");
    assert!(page.contains("Pay the"), "{page}");
    let to_mail = ada.get(&mailbox.at(&format!("e/{mail}"))).await;
    assert_eq!(to_mail.status, 303);
    ada.page(to_mail.header("location")).await;
    let tasks = format!("/api/v1/mailboxes/{}/tasks", mailbox.id);
    let found = ada.tenant.key.get(&tasks).await.ok()["tasks"][0].clone();
    let path = mailbox.at(&format!("triage-tasks/{}", found["id"].as_str().unwrap()));
    assert_eq!(ada.form(&path, &[("status", "done")]).await.status, 303);
    assert!(!ada.page(&mailbox.at("triage")).await.contains("Pay the"));
    assert!(ada.page(&mailbox.at("triage?status=done")).await.contains("Pay the"));

    // Off, default, and gone.
    let at = |rest: &str| mailbox.at(&format!("triage/{id}/{rest}"));
    ada.form(&at("enabled"), &[("enabled", "false")]).await;
    assert_eq!(ada.tenant.key.get(&format!("{triagers}/{id}")).await.ok()["enabled"], false);
    ada.form(&at("default"), &[]).await;
    assert_eq!(ada.tenant.key.get(&format!("{triagers}/{id}")).await.ok()["is_default"], true);
    ada.form(&at("delete"), &[("confirmed", "1")]).await;
    assert_eq!(ada.tenant.key.get(&format!("{triagers}/{id}")).await.status, 200, "the default one stays");
    let first = all[0]["id"].as_str().unwrap();
    ada.form(&mailbox.at(&format!("triage/{first}/delete")), &[("confirmed", "1")]).await;
    assert_eq!(ada.tenant.key.get(&format!("{triagers}/{first}")).await.status, 404);
}
