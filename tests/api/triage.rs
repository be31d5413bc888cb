//! What triagers do with mail that arrives and leaves, with a model that answers by a script.

use model::{Plan, emails::ScanStatus};
use operations::{maintenance, triage::worker};
use serde_json::{Value, json};
use testkit::{Engine, ScriptedModel, Server, ServerOptions, both_engines};

use super::{
    help::{assert_missing, assert_refuses_fields},
    mails::{Inbox, flagged, message, new_label, plain, texts},
};

/// An answer that says the same for every triager in the question.
pub(super) fn answer_all(question: &Value, said: &Value) -> Value {
    let triagers: Vec<Value> = question["triagers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|triager| {
            let mut one = said.clone();
            one["id"] = triager["id"].clone();
            one
        })
        .collect();
    json!({ "category": "other", "is_urgent": false, "labels": [], "triagers": triagers })
}

/// A service whose model says the same for every triager.
pub(super) fn saying(said: Value) -> (ScriptedModel, ServerOptions) {
    let model = ScriptedModel::answering(move |question| answer_all(question, &said));
    (model.clone(), with(model))
}

pub(super) fn with(model: ScriptedModel) -> ServerOptions {
    ServerOptions { assistant: Some(model), ..ServerOptions::default() }
}

/// Lets the worker do what is due.
pub(super) async fn run_due(server: &Server) {
    worker::run_due(&server.app).await.unwrap();
}

/// A mail that a person wrote to the mailbox.
pub(super) fn letter(inbox: &Inbox, subject: &str, more: &str, text: &str) -> String {
    let id: String = subject.chars().filter(char::is_ascii_alphanumeric).collect();
    let lines: Vec<String> = more.lines().map(|line| format!("{line}\r\n")).collect();
    let more = lines.concat();
    format!(
        "From: Ann <ann@remote.test>\r\nTo: {}\r\nSubject: {subject}\r\nMessage-ID: <{id}@remote.test>\r\n{more}\r\n{text}\r\n",
        inbox.address
    )
}

pub(super) async fn switch(inbox: &Inbox, settings: Value) {
    inbox.key.put(&inbox.path, json!({ "settings": settings })).await.ok();
}

pub(super) async fn auto_draft(inbox: &Inbox) {
    switch(inbox, json!({ "autoDraft": { "enabled": true } })).await;
}

pub(super) async fn runs(inbox: &Inbox) -> Vec<Value> {
    inbox.get("task-triager-runs/recent?limit=20").await["runs"].as_array().unwrap().clone()
}

pub(super) async fn events(inbox: &Inbox, kind: &str) -> Vec<Value> {
    let path = format!("/api/v1/workspaces/{}/events?limit=500", inbox.workspace);
    let all = inbox.key.get(&path).await.ok()["events"].as_array().unwrap().clone();
    all.into_iter().filter(|event| event["type"] == kind).collect()
}

pub(super) async fn used(inbox: &Inbox) -> i64 {
    let path = format!("/api/v1/workspaces/{}/usage/credits", inbox.workspace);
    inbox.key.get(&path).await.ok()["used"].as_i64().unwrap()
}

async fn triager(inbox: &Inbox, triggers: Value, tasks: Value) -> String {
    let body = json!({ "name": "Mine", "instructions": "Be kind.", "triggers": triggers, "tasks": tasks });
    inbox.post("task-triagers", body).await.ok()["id"].as_str().unwrap().to_owned()
}

/// rules: TRIAGE-4, TRIAGE-6, TRIAGE-7, HOOK-9
#[both_engines]
#[expect(clippy::too_many_lines, reason = "one story from beginning to end")]
async fn an_answer_is_drafted_for_review_while_the_mail_is_held(engine: Engine) {
    let (model, options) = saying(json!({
        "summary": "She asks for an offer.", "reply": "Dear Ann,\n\nthank you.\n\nBye",
    }));
    let server = Server::with(engine, options).await;
    let inbox = Inbox::new(&server).await;
    // Nobody asked for drafts: nothing is held, and nothing runs.
    server.receive(&inbox.address, letter(&inbox, "Before", "", "Hello")).await;
    run_due(&server).await;
    assert_eq!((runs(&inbox).await.len(), inbox.get("drafts").await["totalCount"].clone()), (0, json!(0)));
    auto_draft(&inbox).await;
    server.clock.advance(1);
    let mail = server.receive(&inbox.address, letter(&inbox, "Offer", "", "Please send an offer.")).await;
    assert_missing(&inbox.try_get(&format!("emails/{mail}")).await, "Email");
    assert_eq!(texts(&inbox.get("emails").await["emails"], "subject"), ["Before"]);
    assert_eq!(inbox.search("offer").await, Vec::<String>::new());
    let shown = inbox.get(&format!("emails/{mail}?include_held=true")).await;
    let held = events(&inbox, "message.held").await;
    assert_eq!(held.len(), 1);
    assert_eq!(
        (&held[0]["data"]["email_id"], &held[0]["data"]["held_until"]),
        (&json!(mail), &json!("2026-07-14T09:05:01.000Z"))
    );
    server.clock.advance(2);
    let before = used(&inbox).await;
    run_due(&server).await;
    // Asking for the figure costs 1 itself.
    assert_eq!(used(&inbox).await - before, 25 + 1);
    assert_eq!(inbox.get(&format!("emails/{mail}")).await["id"], json!(mail), "the hold ends with the run");

    let drafts = inbox.get("drafts").await;
    assert_eq!(drafts["totalCount"], 1);
    let draft = &drafts["drafts"][0];
    assert_eq!(
        (&draft["subject"], &draft["to"], &draft["status"], &draft["thread_id"], &draft["in_reply_to"]),
        (
            &json!("Re: Offer"),
            &json!(["Ann <ann@remote.test>"]),
            &json!("draft"),
            &shown["thread_id"],
            &json!("Offer@remote.test")
        )
    );
    assert_eq!(draft["body"], "Dear Ann,\n\nthank you.\n\nBye");
    assert_eq!(inbox.get("emails?folder=sent").await["totalCount"], 0, "it never sends");
    let all = runs(&inbox).await;
    let default = inbox.get("task-triagers").await[0].clone();
    assert_eq!(
        all,
        [json!({
            "id": all[0]["id"], "triager": { "id": default["id"], "name": "E-mail response" },
            "source": { "kind": "mail.received", "email_id": mail },
            "status": "SUCCEEDED", "summary": "She asks for an offer.",
            "tasks": [{
                "kind": "draft_response", "done": true, "draft_id": draft["id"], "requires_approval": true,
            }],
            "started_at": "2026-07-14T09:00:03.000Z", "finished_at": "2026-07-14T09:00:03.000Z",
        })]
    );
    let finished = events(&inbox, "triager.run_finished").await;
    assert_eq!(finished.len(), 1);
    let data = &finished[0]["data"];
    assert_eq!(
        (&data["run_id"], &data["status"], &data["email_id"], &data["tasks"]),
        (&all[0]["id"], &json!("SUCCEEDED"), &json!(mail), &all[0]["tasks"])
    );
    assert_eq!(events(&inbox, "draft.created").await.len(), 1);
    // Nothing is left to do, and nothing is done twice.
    run_due(&server).await;
    assert_eq!((runs(&inbox).await.len(), model.asked().len()), (1, 2));
    assert_refuses_fields(&inbox.try_get("task-triager-runs/recent?limit=21").await, &["limit"]);
    assert_refuses_fields(&inbox.try_get("task-triager-runs/recent?limit=0").await, &["limit"]);
}

/// rules: TRIAGE-7
#[both_engines]
async fn a_hold_ends_by_itself_after_five_minutes(engine: Engine) {
    let (_, options) = saying(json!({ "reply": "Hi" }));
    let server = Server::with(engine, options).await;
    let inbox = Inbox::new(&server).await;
    auto_draft(&inbox).await;
    let mail = server.receive(&inbox.address, letter(&inbox, "Held", "", "Hello")).await;
    server.clock.advance(299);
    assert_missing(&inbox.try_get(&format!("emails/{mail}")).await, "Email");
    server.clock.advance(1);
    inbox.get(&format!("emails/{mail}")).await;
    // Without a model nothing is held and nothing waits.
    let plain_server = server.another_node(ServerOptions { seed: 9, ..ServerOptions::default() }).await;
    let free = plain_server.receive(&inbox.address, letter(&inbox, "Free", "", "Hello")).await;
    inbox.get(&format!("emails/{free}")).await;
    worker::run_due(&plain_server.app).await.unwrap();
    assert_eq!(runs(&inbox).await.len(), 0);
    assert_eq!(events(&inbox, "message.held").await.len(), 1);
}

/// rules: TRIAGE-8
#[both_engines]
async fn machines_and_unclean_mail_get_no_answer(engine: Engine) {
    let (model, options) = saying(json!({ "summary": "x", "reply": "Hi" }));
    let server = Server::with(engine, options).await;
    let inbox = Inbox::new(&server).await;
    auto_draft(&inbox).await;
    for (number, more) in [
        "List-Id: <news.remote.test>",
        "List-Unsubscribe: <https://remote.test/u>",
        "Precedence: bulk",
        "Auto-Submitted: auto-replied",
        "Auto-Submitted: auto-generated",
        "X-Autoreply: yes",
    ]
    .iter()
    .enumerate()
    {
        let mail = letter(&inbox, &format!("Machine {number}"), more, "Hello");
        let mail = server.receive(&inbox.address, mail).await;
        inbox.get(&format!("emails/{mail}")).await;
    }
    let null = server.try_receive(None, &inbox.address, letter(&inbox, "Null", "", "Hello")).await.unwrap();
    let program = letter(&inbox, "Program", "", "Hello").replace("ann@remote.test", "no-reply@remote.test");
    let program = server.receive(&inbox.address, program).await;
    let blind = server.receive(&inbox.address, plain("Blind", "To somebody else")).await;
    let bad = flagged("Bad").replace("me@agents.test", &inbox.address);
    let bad = server.receive(&inbox.address, bad).await;
    for mail in [&null, &program, &blind, &bad] {
        inbox.get(&format!("emails/{mail}")).await;
    }
    run_due(&server).await;
    let all = runs(&inbox).await;
    assert_eq!(all.len(), 10);
    for run in &all {
        assert_eq!(run["status"], "SKIPPED", "{run}");
        assert_eq!(
            (&run["tasks"][0]["done"], &run["tasks"][0]["kind"]),
            (&json!(false), &json!("draft_response"))
        );
    }
    assert_eq!(inbox.get("drafts").await["totalCount"], 0);
    assert_eq!(events(&inbox, "message.held").await.len(), 0);
    // What the model is asked is only what the mails are about, and never about the one that is not clean.
    assert!(model.asked().iter().all(|asked| !format!("{asked:?}").contains("Bad")));
    let manual = inbox.get("task-triagers").await[0]["id"].as_str().unwrap().to_owned();
    for mail in [&program, &blind, &bad] {
        let answer = inbox.post(&format!("task-triagers/{manual}/run"), json!({ "email_id": mail })).await;
        assert_eq!((answer.status, answer.header("x-credits-charged")), (200, "0"));
        assert_eq!(answer.json()["status"], "SKIPPED");
    }
    assert_eq!(inbox.get("drafts").await["totalCount"], 0);
}

/// rules: TRIAGE-4, TRIAGE-10
#[both_engines]
async fn a_run_can_be_asked_for(engine: Engine) {
    let (model, options) = saying(json!({
        "summary": "Two things.", "notify": "Pay by <b>Friday</b>.", "labels": ["money", "secret"],
        "tasks": [{ "title": "Pay" }, { "title": "Call", "priority": "low" }, { "title": "Third" }],
    }));
    let server = Server::with(engine, options).await;
    let inbox = Inbox::new(&server).await;
    new_label(&inbox, "Money", "subject:never").await;
    new_label(&inbox, "Secret", "subject:never").await;
    let tasks = json!([
        { "kind": "extract_tasks", "config": { "limit": 2 } }, { "kind": "notify" },
        { "kind": "label", "config": { "labels": ["money"] } }, { "kind": "draft_response" },
    ]);
    let id = triager(&inbox, json!([]), tasks).await;
    let mail = server.receive(&inbox.address, letter(&inbox, "Bill", "", "Pay 5.")).await;
    run_due(&server).await;
    assert_eq!(runs(&inbox).await.len(), 0, "it has no triggers");
    let path = format!("task-triagers/{id}/run");
    let asked = inbox.post(&path, json!({ "email_id": mail })).await;
    assert_eq!((asked.status, asked.header("x-credits-charged")), (200, "25"), "{}", asked.text());
    let run = asked.json();
    assert_eq!((&run["status"], &run["source"]["kind"]), (&json!("SUCCEEDED"), &json!("manual")));
    assert_eq!(runs(&inbox).await, std::slice::from_ref(&run));
    let found = inbox.get("tasks").await;
    assert_eq!(texts(&found["tasks"], "title"), ["Call", "Pay"], "no more than its limit");
    assert_eq!(run["tasks"][0]["task_ids"].as_array().unwrap().len(), 2);
    assert_eq!(run["tasks"][1]["notification"], "Pay by < b>Friday< /b>.");
    assert_eq!(run["tasks"][2]["labels"], json!(["money"]), "only what it may put on");
    assert_eq!(run["tasks"][3]["done"], false, "the model wrote no answer");
    assert_eq!(inbox.get(&format!("emails/{mail}")).await["custom_labels"], json!(["money"]));
    let told = events(&inbox, "triager.run_finished").await;
    assert_eq!(told[0]["data"]["tasks"][1]["notification"], "Pay by < b>Friday< /b>.");
    // Once for one key, whatever happens.
    let key = inbox.key.with("idempotency-key", "one");
    let whole = format!("{}/{path}", inbox.path);
    let first = key.post(&whole, json!({ "email_id": mail })).await;
    let questions = model.asked().len();
    let again = key.post(&whole, json!({ "email_id": mail })).await;
    assert_eq!((again.header("idempotent-replayed"), again.text()), ("true", first.text()));
    assert_eq!(model.asked().len(), questions);
    // What is not there, and what is switched off.
    assert_missing(&inbox.post(&path, json!({ "email_id": "eml_none" })).await, "Email");
    assert_refuses_fields(&inbox.post(&path, json!({})).await, &["email_id"]);
    let other = inbox.another().await;
    assert_missing(&other.post(&path, json!({ "email_id": mail })).await, "Triager");
    switch(&inbox, json!({ "agentInbox": { "automationsEnabled": false } })).await;
    let off = inbox.post(&path, json!({ "email_id": mail })).await;
    assert_eq!((&off.json()["status"], off.header("x-credits-charged")), (&json!("SKIPPED"), "0"));
    assert_eq!(model.asked().len(), questions);
    let bare = Server::start(engine).await;
    let without = Inbox::new(&bare).await;
    let id = without.get("task-triagers").await[0]["id"].as_str().unwrap().to_owned();
    let refused = without.post(&format!("task-triagers/{id}/run"), json!({ "email_id": "eml_1" })).await;
    refused.expect(503, "ai_unavailable");
    assert_eq!(refused.header("x-credits-charged"), "0");
}

/// rules: TRIAGE-3
#[both_engines]
async fn triggers_fire_on_mail_received_and_sent_within_their_bounds(engine: Engine) {
    let (_, options) = saying(json!({ "summary": "Seen.", "notify": "Look." }));
    let server = Server::with(engine, options).await;
    let inbox = Inbox::new(&server).await;
    let notify = json!([{ "kind": "notify" }]);
    for (name, trigger) in [
        ("received", json!({ "kind": "mail.received" })),
        ("sent", json!({ "kind": "mail.sent" })),
        ("both", json!({ "kind": "mail.received_or_sent" })),
        ("domain", json!({ "kind": "mail.received", "mailDomains": ["acme.test"] })),
        ("filter", json!({ "kind": "mail.received", "filter": "subject:invoice and not from:@acme.test" })),
        ("off", json!({ "kind": "mail.received", "enabled": false })),
    ] {
        let body = json!({ "name": name, "triggers": [trigger], "tasks": notify });
        inbox.post("task-triagers", body).await.ok();
    }
    let disabled = json!({
        "name": "disabled", "enabled": false, "triggers": [{ "kind": "mail.received" }], "tasks": notify,
    });
    inbox.post("task-triagers", disabled).await.ok();
    let fired = async || {
        server.clock.advance(10);
        run_due(&server).await;
        let now = server.clock.now().to_string();
        let mut names: Vec<String> = runs(&inbox)
            .await
            .iter()
            .filter(|run| run["started_at"] == now.as_str())
            .map(|run| run["triager"]["name"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    server.receive(&inbox.address, letter(&inbox, "Plain", "", "Hello")).await;
    assert_eq!(fired().await, ["both", "received"]);
    server.receive(&inbox.address, letter(&inbox, "Invoice 1", "", "Hello")).await;
    assert_eq!(fired().await, ["both", "filter", "received"]);
    let acme = letter(&inbox, "Invoice 2", "", "Hello").replace("@remote.test>", "@acme.test>");
    server.receive(&inbox.address, acme).await;
    assert_eq!(fired().await, ["both", "domain", "received"]);
    let other = inbox.another().await;
    inbox.post("emails", json!({ "to": other.address, "subject": "Out", "text": "Hi" })).await.ok();
    assert_eq!(fired().await, ["both", "sent"]);
    // What is imported did not arrive now, and what lies in Spam is nobody's business by default.
    inbox.import("message/rfc822", letter(&inbox, "Old", "", "Hello")).await.ok();
    let spam = "XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X";
    server.receive(&inbox.address, letter(&inbox, "Spam", "", spam)).await;
    assert_eq!(fired().await, Vec::<String>::new());
    switch(&inbox, json!({ "agentInbox": { "automationsEnabled": false } })).await;
    server.receive(&inbox.address, letter(&inbox, "Quiet", "", "Hello")).await;
    inbox.post("emails", json!({ "to": other.address, "subject": "Out", "text": "Hi" })).await.ok();
    assert_eq!(fired().await, Vec::<String>::new());
}

fn invitation(inbox: &Inbox, subject: &str, method: &str, uid: &str, sequence: u32) -> String {
    let body = format!(
        "--cut\r\nContent-Type: text/plain\r\n\r\nSee the invitation.\r\n--cut\r\nContent-Type: text/calendar; method={method}; \
         charset=utf-8\r\n\r\nBEGIN:VCALENDAR\r\nVERSION:2.0\r\nMETHOD:{method}\r\nBEGIN:VEVENT\r\nUID:{uid}\r\nSEQUENCE:{sequence}\r\n\
         SUMMARY:Lunch\r\nDTSTART:20260715T100000Z\r\nORGANIZER:mailto:ann@remote.test\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n--cut--\r\n"
    );
    letter(inbox, subject, "MIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=cut", &body)
}

/// rules: TRIAGE-3
#[both_engines]
async fn calendar_events_are_created_updated_and_canceled(engine: Engine) {
    let (model, options) = saying(json!({ "summary": "Seen.", "notify": "Look." }));
    let server = Server::with(engine, options).await;
    let inbox = Inbox::new(&server).await;
    let (one, two) = (inbox.another().await, Inbox::new(&server).await);
    for inbox in [&inbox, &one, &two] {
        for kind in ["created", "updated", "canceled"] {
            let trigger = json!([{ "kind": format!("calendar.event_{kind}") }]);
            let body = json!({ "name": kind, "triggers": trigger, "tasks": [{ "kind": "notify" }] });
            inbox.post("task-triagers", body).await.ok();
        }
    }
    for (number, (owner, method, uid, sequence, fires)) in [
        (&inbox, "REQUEST", "a", 0, Some("created")),
        (&inbox, "REQUEST", "a", 0, None),
        (&inbox, "REQUEST", "a", 1, Some("updated")),
        (&inbox, "REQUEST", "b", 0, Some("created")),
        (&inbox, "REQUEST", "c", 4, Some("updated")),
        (&inbox, "REPLY", "a", 1, None),
        (&inbox, "CANCEL", "a", 2, Some("canceled")),
        (&inbox, "CANCEL", "d", 0, Some("canceled")),
        // Another mailbox, another workspace: what is known there is theirs.
        (&one, "REQUEST", "a", 0, Some("created")),
        (&two, "REQUEST", "a", 0, Some("created")),
    ]
    .into_iter()
    .enumerate()
    {
        server.clock.advance(10);
        let mail = invitation(owner, &format!("Invitation {number}"), method, uid, sequence);
        let mail = server.receive(&owner.address, mail).await;
        run_due(&server).await;
        let found = runs(owner).await;
        let newest = found.iter().find(|run| run["source"]["email_id"] == json!(mail));
        let kind = newest.map(|run| run["source"]["kind"].as_str().unwrap().to_owned());
        assert_eq!(kind, fires.map(|kind| format!("calendar.event_{kind}")), "case {number}");
    }
    let asked = format!("{:?}", model.asked().last().unwrap());
    assert!(asked.contains("Lunch") && asked.contains("20260715T100000Z"), "{asked}");
}

/// rules: TRIAGE-11
#[both_engines]
async fn the_model_sorts_mail_and_decides_about_labels_that_are_instructions(engine: Engine) {
    let model = ScriptedModel::answering(|question| {
        let slugs: Vec<Value> =
            question["labels"].as_array().unwrap().iter().map(|label| label["slug"].clone()).collect();
        assert!(question["mail"]["text"].as_str().unwrap().contains("It is down"));
        let mut labels = slugs;
        labels.push(json!("by-rule"));
        labels.push(json!("unknown"));
        json!({ "category": "partnership", "is_urgent": true, "labels": labels, "triagers": [] })
    });
    let server = Server::with(engine, with(model.clone())).await;
    let inbox = Inbox::new(&server).await;
    new_label(&inbox, "By rule", "subject:never").await;
    new_label(&inbox, "Angry", "The writer is angry").await;
    new_label(&inbox, "Empty", "").await;
    let mail = server.receive(&inbox.address, letter(&inbox, "Server", "", "It is down")).await;
    let seen = inbox.get(&format!("emails/{mail}")).await;
    assert_eq!((&seen["is_urgent"], &seen["custom_labels"]), (&json!(false), &json!([])));
    let before = used(&inbox).await;
    run_due(&server).await;
    assert_eq!(used(&inbox).await - before, 1, "sorting costs nothing");
    let seen = inbox.get(&format!("emails/{mail}")).await;
    assert_eq!(
        (&seen["category"], &seen["is_urgent"], &seen["custom_labels"]),
        (&json!("partnership"), &json!(true), &json!(["angry"]))
    );
    assert_eq!(model.asked().len(), 1, "one question for all of it");
    assert_eq!(runs(&inbox).await.len(), 0);
    let unread = inbox.key.get(&format!("/api/v1/workspaces/{}/mailboxes", inbox.workspace)).await.ok();
    assert_eq!(unread[0]["inbox_unread_by_category"]["partnership"], 1, "what is counted follows");
    assert_eq!(inbox.get("emails?category=partnership").await["totalCount"], 1);
}

/// rules: TRIAGE-11
#[both_engines]
async fn an_answer_of_the_model_that_says_nothing_changes_nothing(engine: Engine) {
    let nonsense = json!({ "category": "spam", "is_urgent": 1, "labels": "all", "triagers": {} });
    let model = ScriptedModel::answering(move |_| nonsense.clone());
    let server = Server::with(engine, with(model)).await;
    let inbox = Inbox::new(&server).await;
    let mail = server.receive(&inbox.address, letter(&inbox, "Server", "", "It is down")).await;
    let before = inbox.get(&format!("emails/{mail}")).await;
    run_due(&server).await;
    assert_eq!(inbox.get(&format!("emails/{mail}")).await, before);
}

/// rules: TRIAGE-4, TRIAGE-12
#[both_engines]
async fn an_empty_pool_skips_runs_and_mail_goes_on(engine: Engine) {
    let (model, mut options) = saying(json!({ "summary": "x", "reply": "Hi" }));
    options.plans.free.credits_per_period = model::Limit::of(20);
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Free).await;
    let inbox = Inbox::of(&tenant).await;
    auto_draft(&inbox).await;
    let mail = server.receive(&inbox.address, letter(&inbox, "Poor", "", "Hello")).await;
    run_due(&server).await;
    let all = runs(&inbox).await;
    assert_eq!((all.len(), &all[0]["status"]), (1, &json!("SKIPPED")));
    let summary = all[0]["summary"].as_str().unwrap();
    assert!(summary.starts_with("This call costs 25 credits; "), "{summary}");
    inbox.get(&format!("emails/{mail}")).await;
    assert_eq!(model.asked().len(), 1, "what it is about is asked all the same");
}

/// rules: TRIAGE-4, SEND-17
#[both_engines]
async fn a_long_subject_keeps_no_answer_from_being_drafted(engine: Engine) {
    let (_, options) = saying(json!({ "summary": "x", "reply": "Hi" }));
    let server = Server::with(engine, options).await;
    let inbox = Inbox::new(&server).await;
    auto_draft(&inbox).await;
    let subject = "ü".repeat(900);
    server.receive(&inbox.address, letter(&inbox, &subject, "", "Hello")).await;
    run_due(&server).await;
    let all = runs(&inbox).await;
    assert_eq!(
        (&all[0]["status"], &all[0]["tasks"][0]["done"]),
        (&json!("SUCCEEDED"), &json!(true)),
        "{all:?}"
    );
    let drafts = inbox.get("drafts").await;
    let drafted = drafts["drafts"][0]["subject"].as_str().unwrap();
    assert!(drafted.starts_with("Re: üü") && drafted.ends_with('…'), "{drafted}");
}

/// rules: TRIAGE-8
#[both_engines]
async fn mail_that_is_not_clean_is_left_alone_where_the_mailbox_asks_for_that(engine: Engine) {
    let (model, options) = saying(json!({ "summary": "x", "notify": "Look" }));
    let server = Server::with(engine, options).await;
    let inbox = Inbox::new(&server).await;
    triager(&inbox, json!([{ "kind": "mail.received" }]), json!([{ "kind": "notify" }])).await;
    let mail = server.receive(&inbox.address, flagged("Evil instructions")).await;
    run_due(&server).await;
    let all = runs(&inbox).await;
    assert_eq!(
        (&all[0]["status"], &all[0]["summary"]),
        (&json!("SKIPPED"), &json!("The mail is not clean."))
    );
    assert_eq!(model.asked().len(), 0);
    // Where the mailbox does not ask for it, the model hears of the mail, but not what it says.
    let settings = json!({ "agentInbox": { "requireCleanScanForAutomation": false } });
    switch(&inbox, settings).await;
    server.clock.advance(1);
    server.receive(&inbox.address, flagged("Evil again")).await;
    run_due(&server).await;
    assert_eq!(runs(&inbox).await[0]["status"], "SUCCEEDED");
    let asked = format!("{:?}", model.asked()[0]);
    assert!(asked.contains("content_omitted") && !asked.contains("See the file"), "{asked}");
    assert_eq!(inbox.get(&format!("emails/{mail}")).await["scan_status"], json!(ScanStatus::Flagged));
    // What happened goes after a month.
    server.clock.advance(31 * 86_400);
    maintenance::run(&server.app).await.unwrap();
    assert_eq!(runs(&inbox).await.len(), 0);
}

/// A mail that waits for its scan is held, and looked at once it has passed.
/// rules: TRIAGE-7, TRIAGE-8
#[both_engines]
async fn mail_that_waits_for_its_scan_waits_for_its_answer_too(engine: Engine) {
    let (model, options) = saying(json!({ "summary": "x", "reply": "Hi" }));
    let server = Server::with(engine, options).await;
    let inbox = Inbox::new(&server).await;
    auto_draft(&inbox).await;
    let mail = server.receive(&inbox.address, letter(&inbox, "Unscanned", "", "Hello")).await;
    inbox.set_scan(&server, &mail, None).await;
    run_due(&server).await;
    assert_eq!((runs(&inbox).await.len(), model.asked().len()), (0, 0));
    assert_missing(&inbox.try_get(&format!("emails/{mail}")).await, "Email");
    inbox.set_scan(&server, &mail, Some("clean")).await;
    server.clock.advance(1);
    run_due(&server).await;
    assert_eq!(runs(&inbox).await[0]["status"], "SUCCEEDED");
    inbox.get(&format!("emails/{mail}")).await;
    // One that never gets a verdict is not clean.
    let late = server.receive(&inbox.address, letter(&inbox, "Never", "", "Hello")).await;
    inbox.set_scan(&server, &late, None).await;
    server.clock.advance(301);
    run_due(&server).await;
    assert_eq!(runs(&inbox).await[0]["status"], "SKIPPED");
}

/// Earlier mails of the thread are shown to the model, those of other mailboxes are not.
#[both_engines]
async fn the_model_sees_the_thread_and_nothing_else(engine: Engine) {
    let (model, options) = saying(json!({ "summary": "x", "reply": "Hi" }));
    let server = Server::with(engine, options).await;
    let inbox = Inbox::new(&server).await;
    let other = inbox.another().await;
    server.receive(&other.address, letter(&other, "Topic", "", "other-mailbox")).await;
    server.receive(&inbox.address, letter(&inbox, "Unrelated", "", "unrelated-mail")).await;
    server.receive(&inbox.address, letter(&inbox, "Topic", "", "first-mail")).await;
    run_due(&server).await;
    auto_draft(&inbox).await;
    server.clock.advance(5);
    let reply = message("Re: Topic", "In-Reply-To: <Topic@remote.test>", "second-mail\r\n");
    server.receive(&inbox.address, reply.replace("me@agents.test", &inbox.address)).await;
    run_due(&server).await;
    let asked = format!("{:?}", model.asked().last().unwrap());
    assert!(asked.contains("first-mail") && asked.contains("second-mail"), "{asked}");
    assert!(!asked.contains("unrelated-mail") && !asked.contains("other-mailbox"), "{asked}");
}
