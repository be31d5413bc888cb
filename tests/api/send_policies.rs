//! Send policies: how they are set, what they let out, and that no way of sending avoids them.

use model::{Plan, Scope, sending::OutboundMode};
use operations::{scheduled_sends::worker::run_due, sending::worker};
use serde_json::{Value, json};
use testkit::{Answer, Caller, Engine, Hop, Server, ServerOptions, Tenant, both_engines};

use super::{
    delivery::{self, forward, mail},
    help::{assert_missing, assert_refuses_fields, encoded},
    mails::{Inbox, message, plain, texts},
    schedules::later,
};

/// A workspace that can send to other servers, with a mailbox and a logged-in admin.
pub(super) struct Desk {
    pub(super) server: Server,
    pub(super) hop: Hop,
    pub(super) tenant: Tenant,
    pub(super) inbox: Inbox,
    pub(super) session: Caller,
    pub(super) workspace: String,
}

impl Desk {
    pub(super) async fn new(engine: Engine) -> Self {
        let (server, hop) = delivery::server(engine, OutboundMode::Relay).await;
        Self::on(server, hop).await
    }

    pub(super) async fn with(engine: Engine, options: ServerOptions) -> Self {
        let hop = Hop::default();
        let outbound = operations::Outbound::new(OutboundMode::Relay);
        let options = ServerOptions { outbound, next_hop: Some(hop.clone()), ..options };
        Self::on(Server::with(engine, options).await, hop).await
    }

    async fn on(server: Server, hop: Hop) -> Self {
        let tenant = server.tenant(Plan::Developer).await;
        let inbox = Inbox::of(&tenant).await;
        let session = server.log_in(&tenant).await;
        let workspace = format!("/api/v1/workspaces/{}", tenant.workspace);
        Self { server, hop, tenant, inbox, session, workspace }
    }

    pub(super) async fn set(&self, policy: Value) -> Answer {
        self.session.put(&format!("{}/send-policy", self.workspace), policy).await
    }

    pub(super) async fn set_of_mailbox(&self, policy: Value) -> Answer {
        self.session.put(&format!("{}/send-policy", self.inbox.path), policy).await
    }

    /// Sends without waiting for the next hop.
    pub(super) async fn send(&self, to: impl Into<Value>) -> Answer {
        let key = self.inbox.key.with("prefer", "respond-async");
        key.post(&format!("{}/emails", self.inbox.path), mail(to)).await
    }

    pub(super) async fn check(&self, to: impl Into<Value>) -> Value {
        self.session.post(&format!("{}/send-policy/check", self.inbox.path), mail(to)).await.ok()
    }

    /// The recipients that the next hop was given, in their order.
    pub(super) async fn handed_over(&self) -> Vec<String> {
        worker::run_due(&self.server.app).await.unwrap();
        self.hop.handovers().into_iter().flat_map(|one| one.recipients).collect()
    }

    /// A message that may be answered automatically.
    async fn receive_from(&self, sender: &str) {
        let raw = message(&format!("From {sender}"), &format!("From: {sender}"), "x")
            .replace("me@agents.test", &self.inbox.address);
        let received = self.server.try_receive(Some(sender), &self.inbox.address, raw).await;
        received.unwrap();
    }

    pub(super) async fn events(&self) -> Value {
        self.session.get(&format!("{}/events?limit=500", self.workspace)).await.ok()["events"].clone()
    }

    pub(super) async fn used(&self) -> i64 {
        self.session.get(&format!("{}/usage/credits", self.workspace)).await.ok()["used"].as_i64().unwrap()
    }
}

// rules: POLICY-1, POLICY-2, POLICY-18
#[both_engines]
async fn a_policy_is_set_shown_and_deleted(engine: Engine) {
    let desk = Desk::new(engine).await;
    let (whole, own) =
        (format!("{}/send-policy", desk.workspace), format!("{}/send-policy", desk.inbox.path));
    let defaults = desk.session.get(&whole).await.ok();
    assert_eq!(defaults["recipients"], json!({ "mode": "open", "allow": [], "block": [] }));
    assert_eq!((&defaults["review"], &defaults["hold"]["hours"]), (&json!("none"), &json!(72)));
    assert_eq!(desk.session.get(&own).await.ok(), defaults);
    let set = desk.set(json!({ "new_recipient": "review", "caps": { "per_day": 20 } })).await.ok();
    assert_eq!((&set["new_recipient"], &set["caps"]["per_day"]), (&json!("review"), &json!(20)));
    assert_eq!(desk.session.get(&whole).await.ok(), set);
    let of_mailbox = desk.set_of_mailbox(json!({ "review": "all" })).await.ok();
    assert_eq!((&of_mailbox["review"], &of_mailbox["caps"]["per_day"]), (&json!("all"), &json!(20)));
    // What is shown can be set again.
    assert_eq!(desk.set_of_mailbox(of_mailbox.clone()).await.ok(), of_mailbox);
    assert_eq!(desk.session.delete(&own).await.status, 204);
    assert_eq!(desk.session.get(&own).await.ok(), set);
    desk.session.delete(&own).await.expect(404, "not_found");
    assert_eq!(desk.set(json!({})).await.ok(), defaults);
    let log = desk.session.get(&format!("{}/audit?operation=setSendPolicy", desk.workspace)).await.ok();
    let changes = &log["entries"][1]["changes"];
    assert_eq!((&changes[0]["field"], &changes[0]["to"]), (&json!("new_recipient"), &json!("review")));
}

// rules: POLICY-17
#[both_engines]
async fn a_policy_is_for_admins_with_manage(engine: Engine) {
    let desk = Desk::new(engine).await;
    let (whole, own) =
        (format!("{}/send-policy", desk.workspace), format!("{}/send-policy", desk.inbox.path));
    let workspace = &desk.tenant.workspace;
    let agent = desk.server.narrowed(workspace, Some(&[Scope::Read, Scope::Send]), None).await;
    for path in [&whole, &own] {
        agent.get(path).await.expect(403, "scope_required");
        agent.put(path, json!({})).await.expect(403, "scope_required");
    }
    agent.post(&format!("{own}/check"), mail("a@remote.test")).await.expect(403, "scope_required");
    let member = desk.server.key(&desk.server.new_key(workspace, model::Role::Member).await.key);
    member.put(&whole, json!({})).await.expect(403, "role_required");
    member.put(&own, json!({})).await.expect(403, "role_required");
    let narrowed = desk.server.narrowed(workspace, None, Some(&[&desk.inbox.address])).await;
    narrowed.get(&whole).await.expect(403, "scope_required");
    narrowed.get(&own).await.ok();
    let other = desk.inbox.another().await;
    assert_missing(&narrowed.get(&format!("{}/send-policy", other.path)).await, "Mailbox");
}

// rules: POLICY-3, POLICY-4, POLICY-8
#[both_engines]
async fn faulty_policies_name_their_fields_and_change_nothing(engine: Engine) {
    let desk = Desk::new(engine).await;
    let quiet = |zone: &str, from: &str, to: &str| json!({ "quiet_hours": { "timezone": zone, "from": from, "to": to } });
    let before = desk.set(json!({
        "recipients": { "mode": "known", "allow": ["@ok.test"] }, "caps": { "per_hour": 5 }, "new_recipient": "review",
        "quiet_hours": { "timezone": "UTC", "from": "22:00", "to": "07:00" }
    }));
    let before = before.await.ok();
    for (policy, field) in [
        (json!({ "recipients": { "mode": "everyone" } }), "recipients.mode"),
        (json!({ "recipients": { "allow": ["*@x.test"] } }), "recipients.allow[0]"),
        (json!({ "recipients": { "block": ["a@x.test", "@x.*"] } }), "recipients.block[1]"),
        (json!({ "recipients": { "deny": [] } }), "recipients.deny"),
        (json!({ "caps": { "per_hour": -1 } }), "caps.per_hour"),
        (json!({ "scan": { "other_correspondents": "block" } }), "scan.other_correspondents"),
        (json!({ "hold": { "hours": 721 } }), "hold.hours"),
        (json!({ "review": true }), "review"),
        (json!({ "polite": true }), "polite"),
        (quiet("Mars/Olympus", "22:00", "07:00"), "quiet_hours.timezone"),
        (quiet("UTC", "22:00", "22:00"), "quiet_hours.to"),
        (quiet("UTC", "24:00", "07:00"), "quiet_hours.from"),
    ] {
        assert_refuses_fields(&desk.set(policy.clone()).await, &[field]);
        assert_refuses_fields(&desk.set_of_mailbox(policy).await, &[field]);
    }
    for (wider, field) in [
        (json!({ "recipients": { "mode": "open" } }), "recipients.mode"),
        (json!({ "caps": { "per_hour": null } }), "caps.per_hour"),
        (json!({ "caps": { "per_hour": 6 } }), "caps.per_hour"),
        (json!({ "new_recipient": "allow" }), "new_recipient"),
        (json!({ "hold": { "hours": 73 } }), "hold.hours"),
        (json!({ "quiet_hours": null }), "quiet_hours"),
        (quiet("UTC", "23:00", "08:00"), "quiet_hours"),
    ] {
        assert_refuses_fields(&desk.set_of_mailbox(wider).await, &[field]);
    }
    let whole = format!("{}/send-policy", desk.workspace);
    assert_eq!(desk.session.get(&whole).await.ok(), before);
    assert_eq!(desk.session.get(&format!("{}/send-policy", desk.inbox.path)).await.ok(), before);
}

// rules: POLICY-5, POLICY-6, POLICY-16
#[both_engines]
async fn modes_let_out_what_they_say(engine: Engine) {
    let desk = Desk::new(engine).await;
    desk.send("before@remote.test").await.ok();
    desk.server.receive(&desk.inbox.address, plain("Hi", "x")).await;
    // What a caller brings along makes nobody a correspondent, and neither does a Reply-To.
    let forged = message("Old", "From: forged@remote.test\nReply-To: other@remote.test", "x");
    desk.inbox.import("message/rfc822", forged).await.ok();
    let refused = |answer: Answer| {
        answer.expect(403, "send_blocked");
        assert_eq!(answer.json()["details"], json!([{ "path": "to[0]", "message": "recipient_blocked" }]));
    };
    desk.set(json!({ "recipients": { "mode": "correspondents", "allow": ["@vip.test"] } })).await.ok();
    for address in ["ann@remote.test", "before@remote.test", "a@vip.test"] {
        desk.send(address).await.ok();
    }
    for address in ["forged@remote.test", "other@remote.test", "a@sub.vip.test"] {
        refused(desk.send(address).await);
    }
    desk.set(json!({ "recipients": { "mode": "known" } })).await.ok();
    desk.send("before@remote.test").await.ok();
    // Writing to Ann before has made her known.
    desk.send("ann@remote.test").await.ok();
    refused(desk.send("a2@vip.test").await);
    desk.set(json!({ "recipients": { "mode": "list", "allow": ["*"], "block": ["Ann@Remote.test"] } }))
        .await
        .ok();
    refused(desk.send("ann@remote.test").await);
    desk.send("new@remote.test").await.ok();
    desk.set(json!({ "recipients": { "mode": "list" } })).await.ok();
    refused(desk.send(desk.inbox.address.clone()).await);
    desk.set(json!({ "new_recipient": "block" })).await.ok();
    let answer = desk.send(json!(["ann@remote.test", "never@remote.test"])).await;
    answer.expect(403, "send_blocked");
    assert_eq!(answer.json()["details"], json!([{ "path": "to[1]", "message": "new_recipient" }]));
    assert!(answer.json()["fix"].as_str().unwrap().contains("Do not send it in another way"));
    assert_eq!(answer.header("x-credits-charged"), "0");
    let mut handed = desk.handed_over().await;
    handed.sort();
    let (ann, before) = (["ann@remote.test"; 2], ["before@remote.test"; 3]);
    assert_eq!(handed, [&["a@vip.test"][..], &ann, &before, &["new@remote.test"]].concat());
}

// rules: POLICY-7
#[both_engines]
async fn caps_count_recipients_in_rolling_windows(engine: Engine) {
    let desk = Desk::new(engine).await;
    let refused = |answer: &Answer, seconds: &str| {
        answer.expect(429, "send_cap_exceeded");
        assert_eq!(answer.header("retry-after"), seconds);
    };
    desk.set(json!({ "caps": { "per_hour": 3, "per_day": 5, "per_recipient_per_day": 2 } })).await.ok();
    desk.send(json!(["a@remote.test", "b@remote.test"])).await.ok();
    desk.server.clock.advance(600);
    refused(&desk.send(json!(["c@remote.test", "d@remote.test"])).await, "3000");
    desk.send("a@remote.test").await.ok();
    refused(&desk.send("c@remote.test").await, "3000");
    desk.server.clock.advance(3001);
    refused(&desk.send("a@remote.test").await, &(86_400 - 3601).to_string());
    desk.send(json!(["c@remote.test", "d@remote.test"])).await.ok();
    refused(&desk.send("e@remote.test").await, &(86_400 - 3601).to_string());
    assert_eq!(desk.check("e@remote.test").await["verdict"], "block");
    // Of another mailbox it counts towards the cap of the workspace; a cap of a mailbox is its own.
    desk.server.clock.advance(2 * 86_400);
    desk.set(json!({ "caps": { "new_recipients_per_day": 2 } })).await.ok();
    desk.set_of_mailbox(json!({ "caps": { "per_day": 2 } })).await.ok();
    let other = desk.inbox.another().await;
    let async_key = other.key.with("prefer", "respond-async");
    let from_other = async |to: &str| async_key.post(&format!("{}/emails", other.path), mail(to)).await;
    from_other("a@remote.test").await.ok();
    from_other("b@remote.test").await.ok();
    from_other("c@remote.test").await.ok();
    desk.send("x@remote.test").await.ok();
    from_other("y@remote.test").await.ok();
    from_other("z@remote.test").await.expect(429, "send_cap_exceeded");
    desk.send("a@remote.test").await.ok();
    desk.send("a@remote.test").await.expect(429, "send_cap_exceeded");
}

// rules: POLICY-8, POLICY-12
#[both_engines]
async fn in_quiet_hours_messages_wait_for_their_end(engine: Engine) {
    let desk = Desk::new(engine).await;
    desk.server.clock.set("2026-07-14T21:00:00Z");
    let night = json!({ "quiet_hours": { "timezone": "Europe/Berlin", "from": "22:00", "to": "07:00" } });
    desk.set(night).await.ok();
    let answer = desk.send("a@remote.test").await;
    let sent = answer.ok();
    assert_eq!((answer.status, &sent["status"]), (202, &json!("scheduled")));
    assert_eq!(sent["scheduled_send_at"], "2026-07-15T05:00:00.000Z");
    let id = sent["id"].as_str().unwrap();
    assert_eq!(desk.inbox.get(&format!("emails/{id}")).await["folder_id"], "scheduled");
    assert_eq!(desk.inbox.get("scheduled-sends").await["scheduled_sends"][0]["id"], id);
    assert_eq!(desk.check("a@remote.test").await["scheduled_send_at"], sent["scheduled_send_at"]);
    // One that comes due meanwhile waits as well.
    let late = desk.inbox.post("scheduled-sends", later("b@remote.test", "2026-07-14T23:00:00Z")).await.ok();
    desk.server.clock.set("2026-07-14T23:00:00Z");
    run_due(&desk.server.app).await.unwrap();
    let read = desk.inbox.get(&format!("scheduled-sends/{}", late["id"].as_str().unwrap())).await;
    assert_eq!(
        (&read["status"], &read["scheduled_send_at"]),
        (&json!("deferred"), &sent["scheduled_send_at"])
    );
    assert!(desk.handed_over().await.is_empty());
    desk.server.clock.set("2026-07-15T05:00:00Z");
    run_due(&desk.server.app).await.unwrap();
    let mut handed = desk.handed_over().await;
    handed.sort();
    assert_eq!(handed, ["a@remote.test", "b@remote.test"]);
    assert_eq!(desk.inbox.get(&format!("emails/{id}")).await["folder_id"], "sent");
}

// rules: POLICY-15
#[both_engines]
async fn the_dry_run_says_what_the_send_does(engine: Engine) {
    let desk = Desk::new(engine).await;
    desk.send("known@remote.test").await.ok();
    let quiet = json!({ "timezone": "UTC", "from": "08:00", "to": "20:00" });
    for policy in [
        json!({}),
        json!({ "new_recipient": "review" }),
        json!({ "new_recipient": "block" }),
        json!({ "recipients": { "mode": "known" } }),
        json!({ "recipients": { "mode": "list", "allow": ["@remote.test"], "block": ["new@remote.test"] } }),
        json!({ "review": "all" }),
        json!({ "quiet_hours": quiet }),
        json!({ "quiet_hours": quiet, "new_recipient": "review" }),
        json!({ "caps": { "per_hour": 0 } }),
    ] {
        desk.set(policy.clone()).await.ok();
        for to in ["known@remote.test", "new@remote.test"] {
            let checked = desk.check(to).await;
            let answer = desk.send(to).await;
            let expected = match (answer.status, answer.json()["status"].as_str()) {
                (202, Some("in_review")) => "review",
                (202, Some("scheduled")) => "schedule",
                (202, _) => "send",
                (403 | 429, _) => "block",
                (status, _) => panic!("{status}: {}", answer.text()),
            };
            assert_eq!(checked["verdict"], expected, "{policy} {to}: {}", answer.text());
            if expected == "review" {
                let path =
                    format!("{}/reviews/{}", desk.workspace, answer.json()["review_id"].as_str().unwrap());
                assert_eq!(
                    texts(&json!([{ "r": checked["reasons"][0]["code"] }]), "r"),
                    [desk.session.get(&path).await.ok()["reasons"][0].as_str().unwrap()]
                );
            }
            if to == "new@remote.test" && expected == "send" {
                break;
            }
        }
        // So that it is new again: only what was sent is known.
        let forget = "DELETE FROM correspondent WHERE workspace_id = $1 AND address = 'new@remote.test'";
        let workspace = desk.tenant.workspace.clone();
        desk.server.app.db().write(&workspace, async move |tx| tx.run(forget, &[]).await).await.unwrap();
    }
}

/// Everything that makes a mailbox send by itself or by a caller, but the mailbox agent, MCP and the keyless API, which have
/// tests of their own.
// rules: POLICY-11, POLICY-12, POLICY-13, POLICY-14
#[both_engines]
async fn no_way_of_sending_avoids_a_policy_that_forbids_it(engine: Engine) {
    let desk = Desk::new(engine).await;
    let other = desk.inbox.another().await;
    let source = desk.server.receive(&desk.inbox.address, plain("Question", "x")).await.to_string();
    let draft =
        desk.inbox.post("drafts", json!({ "to": "ann@remote.test", "subject": "D", "body": "x" })).await.ok();
    let schedule =
        desk.inbox.post("scheduled-sends", later("ann@remote.test", "2026-07-14T10:00:00Z")).await.ok();
    desk.set(json!({ "recipients": { "mode": "list" } })).await.ok();
    forward(&desk.inbox, "collector@remote.test").await;
    let settings = json!({ "settings": {
        "forwarding": { "enabled": true, "email": "collector@remote.test" },
        "autoReply": { "enabled": true, "subject": "Away", "message": "Later" }
    } });
    desk.inbox.key.put(&desk.inbox.path, settings).await.ok();
    let key = desk.inbox.key.with("prefer", "respond-async");
    let path = |rest: &str| format!("{}/{rest}", desk.inbox.path);
    for (rest, body) in [
        ("emails".to_owned(), mail("ann@remote.test")),
        ("emails".to_owned(), mail(other.address.clone())),
        (format!("emails/{source}/reply"), json!({ "text": "A" })),
        (format!("emails/{source}/forward"), json!({ "to": "ann@remote.test" })),
        (format!("drafts/{}/send", draft["id"].as_str().unwrap()), json!({})),
    ] {
        for caller in [&key, &desk.session.with("prefer", "respond-async")] {
            caller.post(&path(&rest), body.clone()).await.expect(403, "send_blocked");
        }
    }
    // A schedule is judged when it leaves.
    desk.inbox.post("scheduled-sends", later("ann@remote.test", "2026-07-14T11:00:00Z")).await.ok();
    desk.receive_from("bea@remote.test").await;
    desk.server.clock.set("2026-07-14T12:00:00Z");
    let used = desk.used().await;
    run_due(&desk.server.app).await.unwrap();
    assert!(desk.handed_over().await.is_empty());
    assert_eq!(other.get("emails").await["totalCount"], 0);
    let id = schedule["id"].as_str().unwrap();
    let read = desk.inbox.get(&format!("scheduled-sends/{id}")).await;
    assert_eq!(read["status"], "failed");
    assert!(read["last_error"].as_str().unwrap().contains("to[0]: recipient_blocked"), "{read}");
    // Both were refunded; reading cost one credit each.
    assert_eq!(desk.used().await, used + 2 + 1 - 10);
    let events = desk.events().await;
    let failed: Vec<&Value> =
        events.as_array().unwrap().iter().filter(|event| event["type"] == "schedule.failed").collect();
    assert_eq!((failed.len(), &failed[0]["data"]["code"]), (2, &json!("send_blocked")));
    // Without the policy the forwarded copy and the reply leave.
    desk.set(json!({})).await.ok();
    desk.receive_from("cem@remote.test").await;
    let mut handed = desk.handed_over().await;
    handed.sort();
    assert_eq!(handed, ["cem@remote.test", "collector@remote.test"]);
    // What would need a review is withheld, since nobody can be asked.
    desk.set(json!({ "review": "all" })).await.ok();
    desk.receive_from("dan@remote.test").await;
    assert_eq!(desk.handed_over().await.len(), 2);
}

/// The operator's floor holds for every workspace, and none can be wider.
// rules: POLICY-4, POLICY-19
#[both_engines]
async fn the_operators_floor_holds_everywhere(engine: Engine) {
    let mut options = ServerOptions::default();
    options.send_policy.floor = serde_json::from_value::<model::send_policies::NewSendPolicy>(json!({
        "recipients": { "block": ["@never.test"] }, "caps": { "per_hour": 2 }
    }))
    .unwrap()
    .alone();
    let desk = Desk::with(engine, options).await;
    let shown = desk.session.get(&format!("{}/send-policy", desk.workspace)).await.ok();
    assert_eq!(
        (&shown["recipients"]["block"], &shown["caps"]["per_hour"]),
        (&json!(["@never.test"]), &json!(2))
    );
    assert_refuses_fields(&desk.set(json!({ "caps": { "per_hour": 3 } })).await, &["caps.per_hour"]);
    desk.send("a@never.test").await.expect(403, "send_blocked");
    desk.send(json!(["a@remote.test", "b@remote.test"])).await.ok();
    desk.send("c@remote.test").await.expect(429, "send_cap_exceeded");
}

/// A key that is narrowed to other mailboxes sees nothing of a mailbox's policy or reviews.
// rules: POLICY-17, REVIEW-4
#[both_engines]
async fn an_excluded_mailbox_has_no_policy(engine: Engine) {
    let desk = Desk::new(engine).await;
    let other = desk.inbox.another().await;
    let narrowed = desk.server.narrowed(&desk.tenant.workspace, None, Some(&[&other.address])).await;
    desk.set(json!({ "review": "all" })).await.ok();
    let review = desk.send("a@remote.test").await.ok()["review_id"].as_str().unwrap().to_owned();
    let missing = narrowed.get(&format!("{}/reviews/rev_none", desk.workspace)).await;
    for (method, rest) in [("GET", ""), ("POST", "/approve"), ("POST", "/reject"), ("POST", "/withdraw")] {
        let path = format!("{}/reviews/{review}{rest}", desk.workspace);
        let answer = match method {
            "GET" => narrowed.get(&path).await,
            _ => {
                narrowed
                    .post(&path, if rest == "/approve" { json!({ "digest": "x" }) } else { json!({}) })
                    .await
            }
        };
        assert_eq!((answer.status, answer.text()), (missing.status, missing.text()), "{rest}");
    }
    assert_eq!(narrowed.get(&format!("{}/reviews", desk.workspace)).await.ok()["reviews"], json!([]));
    let named = format!("{}/reviews?mailbox_id={}", desk.workspace, encoded(&desk.inbox.address));
    assert_missing(&narrowed.get(&named).await, "Mailbox");
    assert_eq!(desk.session.get(&named).await.ok()["reviews"][0]["id"], json!(review));
}
