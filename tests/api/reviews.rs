//! Reviews: a message waits for a person, and the first decision about it takes effect once.

use model::{Plan, Role, Scope};
use operations::{reviews::expiry, scheduled_sends::worker::run_due, sending::worker};
use serde_json::{Value, json};
use testkit::{Answer, Engine, ServerOptions, both_engines};

use super::{
    delivery::mail,
    help::{assert_missing, assert_refuses_fields},
    mails::{plain, texts},
    people::{at, join},
    schedules::later,
    send_policies::Desk,
};

impl Desk {
    /// Sends a message that a person has to decide about, and returns the review.
    pub(super) async fn ask(&self, to: &str) -> Value {
        let sent = self.send(to).await.ok();
        assert_eq!(sent["status"], "in_review", "{sent}");
        self.review(sent["review_id"].as_str().unwrap()).await
    }

    async fn review(&self, id: &str) -> Value {
        self.session.get(&format!("{}/reviews/{id}", self.workspace)).await.ok()
    }

    fn path(&self, review: &Value, rest: &str) -> String {
        format!("{}/reviews/{}{rest}", self.workspace, review["id"].as_str().unwrap())
    }

    async fn approve(&self, review: &Value) -> Answer {
        self.session.post(&self.path(review, "/approve"), json!({ "digest": review["digest"] })).await
    }

    async fn email(&self, review: &Value) -> Value {
        self.inbox.get(&format!("emails/{}", review["email_id"].as_str().unwrap())).await
    }

    async fn event_types(&self) -> Vec<String> {
        texts(&self.events().await, "type").into_iter().filter(|kind| kind.starts_with("review.")).collect()
    }
}

async fn reviewing(engine: Engine) -> Desk {
    let desk = Desk::new(engine).await;
    desk.set(json!({ "review": "all" })).await.ok();
    desk
}

// rules: REVIEW-1, REVIEW-2, REVIEW-3, REVIEW-6, REVIEW-14
#[both_engines]
async fn an_approved_message_leaves_as_it_was_shown(engine: Engine) {
    let desk = reviewing(engine).await;
    let key = desk.inbox.key.with("prefer", "respond-async").with("idempotency-key", "once");
    let body = json!({
        "to": "a@remote.test", "bcc": "b@remote.test", "subject": "Out", "text": "Hello", "html": "<p>Hello</p>",
        "from": { "email": desk.inbox.address, "name": "Ann's agent" }, "headers": { "X-Ticket": "7" },
        "attachments": [super::drafts::file("a.txt", "text/plain", b"A")]
    });
    let path = format!("{}/emails", desk.inbox.path);
    let first = key.post(&path, body.clone()).await;
    let sent = first.ok();
    assert_eq!((first.status, &sent["status"]), (202, &json!("in_review")));
    assert_eq!(sent["fix"], "A person decides about this message. Do not send it again.");
    assert_eq!(first.header("x-credits-charged"), "5");
    let again = key.post(&path, body).await;
    assert_eq!((again.header("idempotent-replayed"), again.text()), ("true", first.text()));
    let review = desk.review(sent["review_id"].as_str().unwrap()).await;
    assert_eq!((&review["state"], &review["reasons"]), (&json!("pending"), &json!(["review_all"])));
    assert_eq!((&review["email_id"], &review["mailbox_id"]), (&sent["id"], &json!(desk.inbox.id)));
    assert_eq!(review["expires_at"], "2026-07-17T09:00:00.000Z");
    // It lies in a folder of its own, which is there only for it.
    let email = desk.email(&review).await;
    assert_eq!((&email["folder_id"], &email["body"]), (&json!("review"), &json!("<p>Hello</p>")));
    assert!(texts(&desk.inbox.get("folders").await, "id").contains(&"review".to_owned()));
    assert!(desk.handed_over().await.is_empty());
    let approved = desk.approve(&review).await.ok();
    assert_eq!((&approved["state"], &approved["digest"]), (&json!("approved"), &review["digest"]));
    assert!(approved["decided_by"].as_str().unwrap().starts_with("acc_"));
    assert_eq!(desk.handed_over().await, ["a@remote.test", "b@remote.test"]);
    let email = desk.email(&review).await;
    assert_eq!((&email["folder_id"], &email["delivery_status"]), (&json!("sent"), &json!("sent")));
    assert_eq!(email["message_id"], sent["message_id"]);
    assert!(!texts(&desk.inbox.get("folders").await, "id").contains(&"review".to_owned()));
    let raw = String::from_utf8(desk.hop.handovers()[0].message.to_vec()).unwrap();
    for part in ["X-Ticket: 7", "Ann's agent", "a.txt", "text/html"] {
        assert!(raw.contains(part), "{part}: {raw}");
    }
    desk.approve(&review).await.expect(409, "review_decided");
    desk.session.post(&desk.path(&review, "/reject"), json!({})).await.expect(409, "review_decided");
    assert_eq!(desk.event_types().await, ["review.requested", "review.approved"]);
    let events = desk.events().await;
    let asked = events.as_array().unwrap().iter().find(|event| event["type"] == "review.requested").unwrap();
    assert_eq!((&asked["data"]["review_id"], &asked["data"]["state"]), (&review["id"], &json!("pending")));
    assert_eq!(asked["data"]["reasons"], json!(["review_all"]));
}

// rules: REVIEW-11
#[both_engines]
async fn who_asked_cannot_decide(engine: Engine) {
    let desk = reviewing(engine).await;
    let review = desk.ask("a@remote.test").await;
    let decide = |rest: &str| (desk.path(&review, rest), json!({ "digest": review["digest"] }));
    let (approve, body) = decide("/approve");
    desk.inbox.key.post(&approve, body.clone()).await.expect(403, "decision_forbidden");
    desk.inbox.key.post(&desk.path(&review, "/reject"), json!({})).await.expect(403, "decision_forbidden");
    let workspace = &desk.tenant.workspace;
    let narrow = desk.server.narrowed(workspace, Some(&[Scope::Read, Scope::Send]), None).await;
    narrow.post(&approve, body.clone()).await.expect(403, "scope_required");
    let member = desk.server.key(&desk.server.new_key(workspace, Role::Member).await.key);
    member.post(&approve, body.clone()).await.expect(403, "role_required");
    // Nor can a key that the requester has made.
    let path = format!("{}/emails", desk.inbox.path);
    let own = desk.session.with("prefer", "respond-async").post(&path, mail("b@remote.test")).await.ok();
    let own = desk.review(own["review_id"].as_str().unwrap()).await;
    let made = desk.session.post(&format!("{}/api-keys", desk.workspace), json!({ "name": "K" })).await.ok();
    let made = desk.server.key(made["key"].as_str().unwrap());
    let digest = json!({ "digest": own["digest"] });
    made.post(&desk.path(&own, "/approve"), digest).await.expect(403, "decision_forbidden");
    // That key can decide about the other key's message, and a person about their own.
    made.post(&approve, body).await.ok();
    desk.approve(&own).await.ok();
    let mut handed = desk.handed_over().await;
    handed.sort();
    assert_eq!(handed, ["a@remote.test", "b@remote.test"]);
}

// rules: REVIEW-11
#[both_engines]
async fn with_a_second_person_nobody_decides_about_their_own(engine: Engine) {
    let mut options = ServerOptions::default();
    options.send_policy.second_person = true;
    let desk = Desk::with(engine, options).await;
    desk.set(json!({ "review": "all" })).await.ok();
    let path = format!("{}/emails", desk.inbox.path);
    let own = desk.session.with("prefer", "respond-async").post(&path, mail("b@remote.test")).await.ok();
    let own = desk.review(own["review_id"].as_str().unwrap()).await;
    desk.approve(&own).await.expect(403, "decision_forbidden");
    let second = join(&desk.server, &desk.tenant, "bob@people.test", "admin").await.caller;
    second.post(&desk.path(&own, "/approve"), json!({ "digest": own["digest"] })).await.ok();
    let of_key = desk.ask("c@remote.test").await;
    desk.approve(&of_key).await.ok();
}

// rules: REVIEW-5, REVIEW-9, REVIEW-15
#[both_engines]
async fn edits_change_the_message_and_its_digest(engine: Engine) {
    let desk = reviewing(engine).await;
    let review = desk.ask("a@remote.test").await;
    let path = desk.path(&review, "/approve");
    desk.session.post(&path, json!({ "digest": "0".repeat(64) })).await.expect(409, "review_changed");
    assert_refuses_fields(&desk.session.post(&path, json!({})).await, &["digest"]);
    let edits = |edits: Value| json!({ "digest": review["digest"], "edits": edits });
    assert_refuses_fields(
        &desk.session.post(&path, edits(json!({ "to": "x@remote.test" }))).await,
        &["edits.to"],
    );
    let broken = edits(json!({ "subject": "A\r\nBcc: x@remote.test" }));
    assert_eq!(desk.session.post(&path, broken).await.status, 400);
    assert_eq!(desk.review(review["id"].as_str().unwrap()).await["state"], "pending");
    let approved =
        desk.session.post(&path, edits(json!({ "subject": "Better", "text": "Kinder" }))).await.ok();
    assert_ne!(approved["digest"], review["digest"]);
    desk.handed_over().await;
    let raw = String::from_utf8(desk.hop.handovers()[0].message.to_vec()).unwrap();
    assert!(raw.contains("Subject: Better") && raw.contains("Kinder") && !raw.contains("Hello"), "{raw}");
    let log = desk.session.get(&format!("{}/audit?operation=approveReview", desk.workspace)).await.ok();
    let changes = log["entries"][0]["changes"].as_array().unwrap();
    let change = |field: &str| changes.iter().find(|change| change["field"] == field).unwrap();
    assert_eq!(
        (&change("digest")["from"], &change("digest")["to"]),
        (&review["digest"], &approved["digest"])
    );
    assert_eq!((&change("text")["hidden"], &change("subject")["hidden"]), (&json!(true), &json!(true)));
    assert!(!log.to_string().contains("Kinder"));
}

// rules: REVIEW-10, REVIEW-12, REVIEW-13, REVIEW-15, POLICY-7
#[both_engines]
async fn what_does_not_leave_is_a_draft_again_and_refunded(engine: Engine) {
    let desk = Desk::new(engine).await;
    let signature = json!({ "settings": { "signature": { "enabled": true, "text": "Ann" } } });
    desk.inbox.key.put(&desk.inbox.path, signature).await.ok();
    desk.set(json!({ "review": "all", "caps": { "per_day": 1 } })).await.ok();
    for (rest, state) in [("/reject", "rejected"), ("/withdraw", "withdrawn"), ("", "expired")] {
        let used = desk.used().await;
        let review = desk.ask("a@remote.test").await;
        // It counts from the moment it was accepted.
        desk.send("b@remote.test").await.expect(429, "send_cap_exceeded");
        assert_eq!(desk.used().await, used + 5 + 1 + 1, "sent, and two reads");
        let ended = match rest {
            "/reject" => {
                desk.session.post(&desk.path(&review, rest), json!({ "reason": "Too early" })).await.ok()
            }
            "/withdraw" => desk.inbox.key.post(&desk.path(&review, rest), json!({})).await.ok(),
            _ => {
                desk.server.clock.advance(72 * 3600);
                let next = expiry::run_due(&desk.server.app).await.unwrap();
                assert_eq!(next, None);
                desk.review(review["id"].as_str().unwrap()).await
            }
        };
        assert_eq!(ended["state"], state);
        let id = review["email_id"].as_str().unwrap();
        let draft = desk.inbox.get(&format!("drafts/{id}")).await;
        assert_eq!(
            (&draft["status"], &draft["body"]),
            (&json!("draft"), &json!("Hello")),
            "without its signature"
        );
        assert_eq!(desk.email(&review).await["folder_id"], "draft");
        if state == "expired" {
            let log =
                desk.session.get(&format!("{}/audit?operation=expireReview", desk.workspace)).await.ok();
            assert_eq!(log["entries"][0]["actor"]["kind"], "service");
        } else {
            // What the send cost is back; a write and five reads are not.
            assert_eq!(desk.used().await, used + 2 + 5, "{state}");
        }
        desk.inbox.key.delete(&format!("{}/drafts/{id}", desk.inbox.path)).await;
    }
    assert_eq!(
        desk.event_types().await,
        [
            "review.requested",
            "review.rejected",
            "review.requested",
            "review.withdrawn",
            "review.requested",
            "review.expired"
        ]
    );
    assert!(desk.handed_over().await.is_empty());
}

// rules: REVIEW-3
#[both_engines]
async fn a_message_in_review_is_locked(engine: Engine) {
    let desk = reviewing(engine).await;
    let review = desk.ask("a@remote.test").await;
    let id = review["email_id"].as_str().unwrap();
    let key = &desk.inbox.key;
    let path = |rest: &str| format!("{}/{rest}", desk.inbox.path);
    key.post(&path(&format!("drafts/{id}/send")), json!({})).await.expect(409, "draft_locked");
    key.post(&path("drafts"), json!({ "draft_id": id, "body": "Other" })).await.expect(409, "draft_locked");
    key.delete(&path(&format!("drafts/{id}"))).await.expect(409, "draft_locked");
    key.delete(&path(&format!("scheduled-sends/{id}"))).await.expect(404, "not_found");
    key.delete(&path(&format!("emails/{id}"))).await.expect(409, "draft_locked");
    key.delete(&path(&format!("emails/{id}?permanent=true"))).await.expect(409, "draft_locked");
    key.post(&path("emails/bulk-delete"), json!({ "ids": [id] })).await.expect(409, "draft_locked");
    key.post(&path(&format!("emails/{id}/move")), json!({ "folderId": "inbox" }))
        .await
        .expect(400, "folder_protected");
    key.post(&path(&format!("emails/{id}/reply")), json!({ "text": "x" })).await.expect(404, "not_found");
    let source = json!({ "to": "b@remote.test", "subject": "S", "source_draft_id": id });
    key.post(&path("emails"), source).await.expect(409, "draft_locked");
    let mine = desk.server.receive(&desk.inbox.address, plain("In", "x")).await;
    let to_review = json!({ "folderId": "review" });
    key.post(&path(&format!("emails/{mine}/move")), to_review).await.expect(400, "folder_unknown");
    key.post(&path("folders"), json!({ "name": "Review" })).await.expect(409, "folder_exists");
    assert_eq!(desk.review(review["id"].as_str().unwrap()).await["state"], "pending");
    assert_eq!(desk.email(&review).await["folder_id"], "review");
}

// rules: REVIEW-7, REVIEW-8, POLICY-9
#[both_engines]
async fn an_approval_asks_the_rest_of_the_policy_again(engine: Engine) {
    let desk = reviewing(engine).await;
    let review = desk.ask("a@remote.test").await;
    desk.set(json!({ "review": "all", "recipients": { "block": ["@remote.test"] } })).await.ok();
    desk.approve(&review).await.expect(409, "review_blocked");
    desk.set(json!({ "review": "all", "caps": { "per_hour": 0 } })).await.ok();
    desk.approve(&review).await.expect(429, "send_cap_exceeded");
    assert_eq!(desk.review(review["id"].as_str().unwrap()).await["state"], "pending");
    let quiet = json!({ "timezone": "UTC", "from": "08:00", "to": "10:00" });
    desk.set(json!({ "review": "all", "quiet_hours": quiet })).await.ok();
    let approved = desk.approve(&review).await.ok();
    assert_eq!(approved["scheduled_send_at"], "2026-07-14T10:00:00.000Z");
    assert!(desk.handed_over().await.is_empty());
    assert_eq!(desk.email(&review).await["folder_id"], "scheduled");
    // It is not asked about once more when it leaves, even if another policy asks for that by then.
    desk.set(json!({ "review": "all", "new_recipient": "review" })).await.ok();
    desk.server.clock.set("2026-07-14T10:00:00Z");
    run_due(&desk.server.app).await.unwrap();
    assert_eq!(desk.handed_over().await, ["a@remote.test"]);
    // An approval ends with the schedule that it made.
    desk.set(
        json!({ "review": "all", "quiet_hours": { "timezone": "UTC", "from": "09:00", "to": "12:00" } }),
    )
    .await
    .ok();
    let review = desk.ask("b@remote.test").await;
    desk.approve(&review).await.ok();
    let id = review["email_id"].as_str().unwrap();
    desk.inbox.delete(&format!("scheduled-sends/{id}")).await.ok();
    assert_eq!(desk.review(review["id"].as_str().unwrap()).await["state"], "withdrawn");
    let key = desk.inbox.key.with("prefer", "respond-async");
    let sent = key.post(&format!("{}/drafts/{id}/send", desk.inbox.path), json!({})).await.ok();
    assert_eq!(sent["status"], "in_review");
}

// rules: REVIEW-1, POLICY-12
#[both_engines]
async fn a_schedule_is_reviewed_when_it_is_due(engine: Engine) {
    let desk = reviewing(engine).await;
    let item = desk.inbox.post("scheduled-sends", later("a@remote.test", "2026-07-14T10:00:00Z")).await.ok();
    assert_eq!(item["status"], "scheduled");
    desk.server.clock.set("2026-07-14T10:00:00Z");
    run_due(&desk.server.app).await.unwrap();
    let reviews = desk.session.get(&format!("{}/reviews?state=pending", desk.workspace)).await.ok();
    let review = reviews["reviews"][0].clone();
    assert_eq!(
        (&review["email_id"], &review["scheduled_send_at"]),
        (&item["id"], &json!("2026-07-14T10:00:00.000Z"))
    );
    let requester = review["requested_by"].as_str().unwrap();
    assert!(requester.starts_with("key_"), "who scheduled it");
    desk.inbox
        .key
        .post(&desk.path(&review, "/approve"), json!({ "digest": review["digest"] }))
        .await
        .expect(403, "decision_forbidden");
    desk.approve(&review).await.ok();
    worker::run_due(&desk.server.app).await.unwrap();
    let read = desk.inbox.get(&format!("scheduled-sends/{}", item["id"].as_str().unwrap())).await;
    assert_eq!(read["status"], "sent");
    assert!(texts(&desk.events().await, "type").contains(&"schedule.sent".to_owned()));
}

// rules: REVIEW-4, REVIEW-12
#[both_engines]
async fn admins_see_all_reviews_and_others_their_own(engine: Engine) {
    let desk = reviewing(engine).await;
    let (first, second) = (desk.ask("a@remote.test").await, desk.ask("b@remote.test").await);
    let member = desk.server.key(&desk.server.new_key(&desk.tenant.workspace, Role::Member).await.key);
    let path = format!("{}/emails", desk.inbox.path);
    let own = member.with("prefer", "respond-async").post(&path, mail("c@remote.test")).await.ok();
    let all = format!("{}/reviews", desk.workspace);
    let ids = |page: &Value| texts(&page["reviews"], "id");
    let own_id = own["review_id"].as_str().unwrap();
    assert_eq!(ids(&member.get(&all).await.ok()), [own_id]);
    assert_missing(&member.get(&desk.path(&first, "")).await, "Review");
    member.post(&desk.path(&first, "/withdraw"), json!({})).await.expect(404, "not_found");
    let id = |review: &Value| review["id"].as_str().unwrap().to_owned();
    assert_eq!(ids(&desk.session.get(&all).await.ok()), [own_id.to_owned(), id(&second), id(&first)]);
    let page = desk.session.get(&format!("{all}?limit=2")).await.ok();
    assert_eq!((page["has_more"].clone(), ids(&page).len()), (json!(true), 2));
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = desk.session.get(&format!("{all}?limit=2&cursor={cursor}")).await.ok();
    assert_eq!((ids(&rest), &rest["next_cursor"]), (vec![id(&first)], &Value::Null));
    desk.session.post(&desk.path(&first, "/reject"), json!({})).await.ok();
    assert_eq!(ids(&desk.session.get(&format!("{all}?state=rejected")).await.ok()), [id(&first)]);
    desk.session.post(&desk.path(&second, "/withdraw"), json!({})).await.expect(403, "decision_forbidden");
    let stranger = desk.server.tenant(Plan::Enterprise).await;
    assert_missing(&stranger.key.get(&at(&stranger, &format!("/reviews/{}", id(&second)))).await, "Review");
}

// rules: REVIEW-8
#[both_engines]
async fn an_approval_can_be_taken_back_until_it_leaves(engine: Engine) {
    let mut options = ServerOptions::default();
    options.send_policy.undo_seconds = 30;
    let desk = Desk::with(engine, options).await;
    desk.set(json!({ "review": "all" })).await.ok();
    let review = desk.ask("a@remote.test").await;
    let approved = desk.approve(&review).await.ok();
    assert_eq!(approved["scheduled_send_at"], "2026-07-14T09:00:30.000Z");
    run_due(&desk.server.app).await.unwrap();
    assert!(desk.handed_over().await.is_empty());
    let rejected = desk.session.post(&desk.path(&review, "/reject"), json!({})).await.ok();
    assert_eq!(rejected["state"], "rejected");
    let kept = desk.ask("b@remote.test").await;
    desk.approve(&kept).await.ok();
    desk.server.clock.advance(31);
    run_due(&desk.server.app).await.unwrap();
    assert_eq!(desk.handed_over().await, ["b@remote.test"]);
    desk.session.post(&desk.path(&kept, "/reject"), json!({})).await.expect(409, "review_decided");
}

/// Twenty decisions at once: one takes effect, and the message leaves at most once.
// rules: REVIEW-2
#[both_engines]
async fn the_first_decision_wins(engine: Engine) {
    let desk = reviewing(engine).await;
    for round in 0..5 {
        let review = desk.ask(&format!("r{round}@remote.test")).await;
        let decisions = (0..20).map(|number| {
            let (session, desk, review) = (desk.session.clone(), &desk, &review);
            async move {
                let rest = if number % 2 == 0 { "/approve" } else { "/reject" };
                let body = if rest == "/approve" { json!({ "digest": review["digest"] }) } else { json!({}) };
                session.post(&desk.path(review, rest), body).await
            }
        });
        let answers = futures_util::future::join_all(decisions).await;
        let taken: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 200).collect();
        assert_eq!(taken.len(), 1);
        for answer in answers.iter().filter(|answer| answer.status != 200) {
            answer.expect(409, "review_decided");
        }
        let state = taken[0].json()["state"].clone();
        assert_eq!(desk.review(review["id"].as_str().unwrap()).await["state"], state);
        let expected = if state == "approved" { "sent" } else { "draft" };
        assert_eq!(desk.email(&review).await["folder_id"], expected);
    }
    let decided = desk.event_types().await;
    assert_eq!(decided.len(), 10);
    let handed = desk.handed_over().await.len();
    assert_eq!(handed, decided.iter().filter(|kind| *kind == "review.approved").count());
}
