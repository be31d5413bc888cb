//! Suppressions, the classes of failures, and managed unsubscribing.

use axum::body::Body;
use http::Method;
use model::Scope;
use operations::{ports::HandoverOutcome, scheduled_sends, sending::worker};
use serde_json::{Value, json};
use testkit::{Answer, Engine, both_engines};

use super::{delivery::bounce, mails::message, schedules::later, send_policies::Desk};

impl Desk {
    async fn suppressed(&self) -> Vec<(String, String)> {
        let page = self.session.get(&format!("{}/suppressions", self.workspace)).await.ok();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let all = page["suppressions"].as_array().unwrap();
        all.iter().map(|one| (text(&one["address"]), text(&one["reason"]))).collect()
    }

    async fn suppress(&self, body: Value) -> Answer {
        self.session.post(&format!("{}/suppressions", self.workspace), body).await
    }

    async fn delivery(&self, sent: &Value) -> Vec<(String, Value, Value)> {
        let path = format!("emails/{}/delivery", sent["id"].as_str().unwrap());
        let delivery = self.inbox.get(&path).await;
        let all = delivery["recipients"].as_array().unwrap();
        let one = |one: &Value| {
            (one["recipient"].as_str().unwrap().to_owned(), one["state"].clone(), one["class"].clone())
        };
        all.iter().map(one).collect()
    }
}

fn pair(address: &str, reason: &str) -> (String, String) {
    (address.to_owned(), reason.to_owned())
}

// rules: SUPPRESS-1, SUPPRESS-2, SUPPRESS-4
#[both_engines]
async fn of_five_recipients_the_one_that_does_not_exist_is_suppressed(engine: Engine) {
    let desk = Desk::new(engine).await;
    let replies = [
        ("gone@remote.test", HandoverOutcome::Refused("550 5.1.1 User unknown".to_owned())),
        ("full@remote.test", HandoverOutcome::Refused("552 5.2.2 Mailbox full".to_owned())),
        (
            "wary@remote.test",
            HandoverOutcome::Refused("550 5.7.1 Blocked, IP is listed at a blocklist for spam".to_owned()),
        ),
        ("later@remote.test", HandoverOutcome::Deferred("451 4.7.1 Greylisted, try again later".to_owned())),
    ];
    for (address, reply) in replies {
        desk.hop.answer(address, reply);
    }
    let to = json!([
        "gone@remote.test",
        "full@remote.test",
        "wary@remote.test",
        "later@remote.test",
        "ok@remote.test"
    ]);
    let sent = desk.send(to.clone()).await.ok();
    worker::run_due(&desk.server.app).await.unwrap();
    let delivery = desk.delivery(&sent).await;
    let of = |address: &str| {
        delivery.iter().find(|one| one.0 == address).map(|one| (one.1.clone(), one.2.clone()))
    };
    for (address, state, class) in [
        ("gone@remote.test", "bounced", json!("hard")),
        ("full@remote.test", "bounced", json!("full")),
        ("wary@remote.test", "bounced", json!("block")),
        ("later@remote.test", "queued", json!("soft")),
        ("ok@remote.test", "sent", json!(null)),
    ] {
        assert_eq!(of(address), Some((json!(state), class)), "{address}");
    }
    assert_eq!(desk.suppressed().await, [pair("gone@remote.test", "hard_bounce")]);
    let again = desk.send(to).await.ok();
    assert_eq!(again["suppressed"], json!(["gone@remote.test"]));
    worker::run_due(&desk.server.app).await.unwrap();
    assert_eq!(desk.delivery(&again).await[0].1, "suppressed");
    let handed: Vec<String> = desk.hop.handovers().into_iter().flat_map(|one| one.recipients).collect();
    assert_eq!(handed.iter().filter(|one| *one == "gone@remote.test").count(), 1, "{handed:?}");
    let events = desk.events().await;
    let bounced = events.as_array().unwrap().iter().filter(|one| one["type"] == "message.bounced");
    assert_eq!(bounced.count(), 1, "none about an address that was left out");
}

// rules: SUPPRESS-4, SUPPRESS-5
#[both_engines]
async fn no_way_of_sending_reaches_a_suppressed_address(engine: Engine) {
    let desk = Desk::new(engine).await;
    desk.suppress(json!({ "address": "No@Remote.test" })).await.ok();
    let refused = desk.send("no@remote.test").await;
    assert_eq!(
        refused.expect(422, "recipient_suppressed").json()["details"],
        json!([
            { "path": "to[0]", "message": "recipient_suppressed" }
        ])
    );
    assert_eq!(desk.check("no@remote.test").await["verdict"], "block");
    let used = desk.used().await;
    // A scheduled one is asked about when it is due.
    let at = desk.server.clock.now().plus_seconds(60).to_string();
    let due = desk.inbox.post("scheduled-sends", later("later@remote.test", &at)).await.ok();
    desk.suppress(json!({ "address": "later@remote.test" })).await.ok();
    desk.server.clock.advance(61);
    scheduled_sends::worker::run_due(&desk.server.app).await.unwrap();
    let shown = desk.inbox.get(&format!("scheduled-sends/{}", due["id"].as_str().unwrap())).await;
    assert_eq!(shown["status"], "failed", "{shown}");
    assert!(shown["last_error"].as_str().unwrap().contains("suppressed"), "{shown}");
    assert!(desk.used().await <= used + 4, "the scheduled send is refunded");
    // What was forwarded by a setting.
    super::delivery::forward(&desk.inbox, "no@remote.test").await;
    let raw = message("News", "From: ada@people.test", "x").replace("me@agents.test", &desk.inbox.address);
    desk.server.try_receive(Some("ada@people.test"), &desk.inbox.address, raw).await.unwrap();
    assert_eq!(desk.handed_over().await, Vec::<String>::new());
}

// rules: SUPPRESS-5
#[both_engines]
async fn what_waits_in_the_queue_does_not_leave_for_an_address_that_was_suppressed_since(engine: Engine) {
    let desk = Desk::new(engine).await;
    desk.hop.answer("a@remote.test", HandoverOutcome::Deferred("451 4.3.0 Later".to_owned()));
    desk.hop.answer("b@remote.test", HandoverOutcome::Deferred("451 4.3.0 Later".to_owned()));
    let sent = desk.send(json!(["a@remote.test", "b@remote.test"])).await.ok();
    worker::run_due(&desk.server.app).await.unwrap();
    desk.suppress(json!({ "address": "a@remote.test", "mailbox_id": desk.inbox.id })).await.ok();
    desk.hop.answer("a@remote.test", HandoverOutcome::Accepted("250 ok".to_owned()));
    desk.hop.answer("b@remote.test", HandoverOutcome::Accepted("250 ok".to_owned()));
    desk.server.clock.advance(3600);
    worker::run_due(&desk.server.app).await.unwrap();
    let states: Vec<Value> = desk.delivery(&sent).await.into_iter().map(|one| one.1).collect();
    assert_eq!(states, ["suppressed", "sent"]);
}

// rules: SUPPRESS-9
#[both_engines]
async fn an_address_of_this_server_is_written_to_again_once_it_exists(engine: Engine) {
    let desk = Desk::new(engine).await;
    let sent = desk.send("someday@agents.test").await.ok();
    assert_eq!(desk.delivery(&sent).await[0].2, "hard");
    assert_eq!(desk.suppressed().await, [pair("someday@agents.test", "hard_bounce")]);
    desk.send("someday@agents.test").await.expect(422, "recipient_suppressed");
    desk.tenant
        .key
        .post("/api/v1/mailboxes", json!({ "name": "Someday", "email": "someday@agents.test" }))
        .await
        .ok();
    let sent = desk.send("someday@agents.test").await.ok();
    assert_eq!(desk.delivery(&sent).await[0].1, "sent");
}

// rules: SUPPRESS-6, SUPPRESS-7, SUPPRESS-8
#[both_engines]
async fn suppressions_are_listed_added_and_removed(engine: Engine) {
    let desk = Desk::new(engine).await;
    let all = format!("{}/suppressions", desk.workspace);
    for number in 0..5 {
        desk.suppress(json!({ "address": format!("user{number}@remote.test"), "note": "asked" })).await.ok();
    }
    let first = desk.session.get(&format!("{all}?limit=2&q=USER")).await.ok();
    assert_eq!(
        (&first["has_more"], &first["suppressions"][0]["address"]),
        (&json!(true), &json!("user4@remote.test"))
    );
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = desk.session.get(&format!("{all}?limit=2&q=USER&cursor={cursor}")).await.ok();
    assert_eq!(second["suppressions"][0]["address"], "user2@remote.test");
    desk.session.get(&format!("{all}?limit=2&cursor={cursor}")).await.expect(400, "invalid_cursor");
    let found = desk.session.get(&format!("{all}?q=r3%40")).await.ok();
    assert_eq!(found["suppressions"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(desk.session.get(&format!("{all}?q=%25")).await.ok()["suppressions"], json!([]));
    let one = desk.suppress(json!({ "address": "USER3@remote.test" })).await;
    assert_eq!((one.status, &one.json()["id"]), (201, &found["suppressions"][0]["id"]));
    for (body, path) in [
        (json!({ "address": "nobody" }), "address"),
        (json!({ "address": "a@x.test", "reason": "complaint" }), "reason"),
        (json!({ "address": "a@x.test", "scope": "mailbox" }), "mailbox_id"),
        (json!({ "address": "a@x.test", "scope": "workspace", "mailbox_id": desk.inbox.id }), "mailbox_id"),
    ] {
        let answer = desk.suppress(body).await;
        let refused = answer.expect(400, "validation_failed").json();
        assert_eq!(refused["details"][0]["path"], path, "{refused}");
    }
    let reader = desk.server.narrowed(&desk.tenant.workspace, Some(&[Scope::Read]), None).await;
    reader.post(&all, json!({ "address": "a@x.test" })).await.expect(403, "scope_required");
    let path = format!("{all}/{}", one.json()["id"].as_str().unwrap());
    assert_eq!(desk.session.delete(&format!("{path}?reason=Fixed+by+phone")).await.status, 204);
    desk.session.delete(&path).await.expect(404, "not_found");
    let log = desk.session.get(&format!("{}/audit?operation=deleteSuppression", desk.workspace)).await.ok();
    let changes = &log["entries"][0]["changes"];
    assert_eq!(
        (&changes[0]["from"], &changes[3]["to"]),
        (&json!("user3@remote.test"), &json!("Fixed by phone")),
        "{changes}"
    );
}

/// The link of a message that was sent with managed unsubscribing.
fn link(message: &[u8]) -> String {
    let text = String::from_utf8_lossy(message).replace("\r\n ", "").replace("\r\n\t", "");
    let line = text.lines().find(|line| line.starts_with("List-Unsubscribe: ")).unwrap().to_owned();
    assert!(text.contains("List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"), "{text}");
    let url = line.trim_start_matches("List-Unsubscribe: <").trim_end_matches('>').to_owned();
    url[url.find("/unsubscribe/").unwrap()..].to_owned()
}

// rules: SUPPRESS-10, SUPPRESS-11
#[both_engines]
async fn recipients_unsubscribe_by_a_link_without_an_account(engine: Engine) {
    let desk = Desk::new(engine).await;
    let send = async |to: Value, scope: &str, headers: Value| {
        let body = json!({
            "to": to, "subject": "News", "text": "T", "headers": headers,
            "unsubscribe": { "mode": "managed", "scope": scope },
        });
        let key = desk.inbox.key.with("prefer", "respond-async");
        key.post(&format!("{}/emails", desk.inbox.path), body).await
    };
    let several = send(json!(["a@remote.test", "b@remote.test"]), "mailbox", json!({})).await;
    assert_eq!(several.expect(400, "validation_failed").json()["details"][0]["path"], "unsubscribe");
    let own =
        send(json!("a@remote.test"), "mailbox", json!({ "List-Unsubscribe": "<mailto:x@y.test>" })).await;
    own.expect(400, "validation_failed");
    send(json!("a@remote.test"), "mailbox", json!({})).await.ok();
    worker::run_due(&desk.server.app).await.unwrap();
    let path = link(&desk.hop.handovers()[0].message);
    let anyone = desk.server.anonymous();
    for _ in 0..2 {
        let page = anyone.get(&path).await;
        assert!(page.status == 200 && page.text().contains("Unsubscribe?"), "{}", page.text());
    }
    assert_eq!(desk.suppressed().await, []);
    let post = async |path: &str| {
        let kind = Some("application/x-www-form-urlencoded");
        anyone.send_raw(Method::POST, path, kind, Body::from("List-Unsubscribe=One-Click")).await
    };
    let done = post(&path).await;
    assert!(done.status == 200 && done.text().contains("Unsubscribed"), "{}", done.text());
    assert_eq!(post(&path).await.status, 200);
    assert_eq!(desk.suppressed().await, [pair("a@remote.test", "unsubscribe")]);
    desk.send("a@remote.test").await.expect(422, "recipient_suppressed");
    let events = desk.events().await;
    let told: Vec<&Value> =
        events.as_array().unwrap().iter().filter(|one| one["type"] == "recipient.unsubscribed").collect();
    assert_eq!((told.len(), &told[0]["data"]["recipient"]), (1, &json!("a@remote.test")));
    for changed in [
        path.replace("/unsubscribe/ws_", "/unsubscribe/ws_x"),
        format!("{path}A"),
        "/unsubscribe/x".to_owned(),
    ] {
        assert_eq!(post(&changed).await.status, 404, "{changed}");
        assert_eq!(anyone.get(&changed).await.status, 404, "{changed}");
    }
}

// rules: SUPPRESS-2, SUPPRESS-3
#[both_engines]
async fn reports_suppress_only_recipients_of_messages_that_were_sent(engine: Engine) {
    let desk = Desk::new(engine).await;
    let sent = desk.send(json!(["a@remote.test", "b@remote.test"])).await.ok();
    worker::run_due(&desk.server.app).await.unwrap();
    let message_id = sent["message_id"].as_str().unwrap();
    let report = async |raw: String| {
        let raw = raw.replace("me@agents.test", &desk.inbox.address);
        desk.server.try_receive(None, &desk.inbox.address, raw).await.unwrap();
    };
    // Forged: of another message, and about somebody else.
    report(bounce("made.up@agents.test", "a@remote.test", "failed")).await;
    report(bounce(message_id, "victim@remote.test", "failed")).await;
    assert_eq!(desk.suppressed().await, []);
    report(bounce(message_id, "b@remote.test", "failed")).await;
    assert_eq!(desk.suppressed().await, [pair("b@remote.test", "hard_bounce")]);
    let complaint = message(
        "Complaint",
        "From: fbl@remote.test\nMIME-Version: 1.0\nContent-Type: multipart/report; report-type=feedback-report; boundary=cut",
        &format!(
            "--cut\r\nContent-Type: text/plain\r\n\r\nAbuse.\r\n--cut\r\nContent-Type: message/feedback-report\r\n\r\n\
             Feedback-Type: abuse\r\nUser-Agent: x/1\r\nVersion: 1\r\nOriginal-Rcpt-To: <a@remote.test>\r\n\r\n\
             --cut\r\nContent-Type: text/rfc822-headers\r\n\r\nMessage-ID: <{message_id}>\r\n\r\n--cut--\r\n"
        ),
    );
    report(complaint).await;
    assert_eq!(
        desk.suppressed().await,
        [pair("a@remote.test", "complaint"), pair("b@remote.test", "hard_bounce")]
    );
}
