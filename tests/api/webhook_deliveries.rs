//! Events on their way to webhooks: signed, at least once, again after failures, and never held up by others.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use model::Plan;
use operations::webhooks::outbox;
use serde_json::{Value, json};
use sha2::Sha256;
use std::time::Duration;
use testkit::{Engine, ReceivedRequest, Receiver, Reply, Server, ServerOptions, Tenant, both_engines};

use super::{
    help::{new_mailbox, path_of},
    webhooks::{all, one},
};

const MAIL: &str = "From: a@remote.test\r\nSubject: Hello\r\n\r\nHello\r\n";

fn options() -> ServerOptions {
    let mut options = ServerOptions { webhooks_allow_private: true, ..ServerOptions::default() };
    options.plans.free.mailboxes = model::Limit::UNLIMITED;
    options.webhook_time_limit = Duration::from_millis(700);
    options
}

async fn start(engine: Engine) -> (Server, Tenant, Receiver) {
    let server = Server::with(engine, options()).await;
    let tenant = server.tenant(Plan::Free).await;
    (server, tenant, Receiver::start().await)
}

async fn hook(tenant: &Tenant, url: &str, types: &[&str]) -> Value {
    tenant.key.post(&all(tenant), json!({ "url": url, "event_types": types })).await.ok()
}

async fn deliveries(tenant: &Tenant, hook: &Value) -> Vec<Value> {
    let page = tenant.key.get(&format!("{}/deliveries", one(tenant, hook))).await.ok();
    page["deliveries"].as_array().unwrap().clone()
}

async fn post(tenant: &Tenant, path: &str) -> testkit::Answer {
    tenant.key.send(http::Method::POST, path, None).await
}

async fn run(server: &Server) -> usize {
    outbox::run_due(&server.app).await.unwrap()
}

/// Checks a signature by the words of the standard, with nothing of the service's own.
fn is_signed(request: &ReceivedRequest, secret: &str) -> bool {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    let content = format!("{}.{}.", request.header("webhook-id"), request.header("webhook-timestamp"));
    mac.update(&[content.as_bytes(), &request.body[..]].concat());
    let wanted = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    request.header("webhook-signature").split(' ').any(|one| one == wanted)
}

// rules: HOOK-2, HOOK-7
#[both_engines]
async fn an_event_is_told_in_its_envelope_and_signed(engine: Engine) {
    let (server, tenant, receiver) = start(engine).await;
    new_mailbox(&tenant.key, "Before").await;
    let hook = hook(&tenant, &receiver.url(), &["message.received", "mailbox.created"]).await;
    let mailbox = new_mailbox(&tenant.key, "Inbox").await;
    server.receive(mailbox["email"].as_str().unwrap(), MAIL).await;
    tenant.key.delete(&path_of(&mailbox)).await.ok();
    assert_eq!((run(&server).await, run(&server).await), (2, 0));
    let received = receiver.received();
    let events =
        tenant.key.get(&format!("/api/v1/workspaces/{}/events?after=1", tenant.workspace)).await.ok();
    let mut told: Vec<Value> = received.iter().map(ReceivedRequest::json).collect();
    told.sort_by_key(|event| event["sequence"].as_i64());
    assert_eq!(json!(told), json!(events["events"].as_array().unwrap()[..2]));
    for request in &received {
        assert!(is_signed(request, hook["secret"].as_str().unwrap()));
        assert!(!is_signed(request, &format!("whsec_{}", STANDARD.encode([0; 32]))));
        assert_eq!(request.header("webhook-id"), request.json()["id"]);
        let seconds: i64 = request.header("webhook-timestamp").parse().unwrap();
        assert_eq!(seconds, server.clock.now().as_micros() / 1_000_000);
        assert_eq!(request.header("content-type"), "application/json");
        assert!(request.header("user-agent").starts_with("agent-mailbox/"));
        assert_eq!(request.path, "/hook");
    }
    let log = deliveries(&tenant, &hook).await;
    assert!(log.iter().all(
        |delivery| delivery["status"] == "delivered" && delivery["attempts"][0]["response_status"] == 200
    ));
    assert_eq!(log[0]["attempts"][0]["response_excerpt"], "thanks");
    assert_eq!(
        log.iter().map(|delivery| &delivery["event_type"]).collect::<Vec<_>>(),
        ["message.received", "mailbox.created"]
    );
}

// rules: HOOK-1
#[both_engines]
async fn only_wanted_types_and_mailboxes_are_told(engine: Engine) {
    let (server, tenant, receiver) = start(engine).await;
    let (one_box, two_box) = (new_mailbox(&tenant.key, "One").await, new_mailbox(&tenant.key, "Two").await);
    let body =
        json!({ "url": receiver.url(), "event_types": ["message.received"], "mailbox_ids": [one_box["id"]] });
    tenant.key.post(&all(&tenant), body).await.ok();
    let stranger = server.tenant(Plan::Free).await;
    let foreign = new_mailbox(&stranger.key, "Foreign").await;
    for mailbox in [&one_box, &two_box, &foreign] {
        server.receive(mailbox["email"].as_str().unwrap(), MAIL).await;
    }
    new_mailbox(&tenant.key, "Three").await;
    assert_eq!(run(&server).await, 1);
    assert_eq!(receiver.received()[0].json()["mailbox_id"], one_box["id"]);
}

// rules: HOOK-3, HOOK-5, HOOK-7
#[both_engines]
async fn failures_are_tried_again_under_the_same_id(engine: Engine) {
    let (server, tenant, receiver) = start(engine).await;
    let hook = hook(&tenant, &receiver.url(), &["mailbox.created"]).await;
    receiver.reply(Reply::Status(503, "busy".to_owned()));
    new_mailbox(&tenant.key, "Inbox").await;
    assert_eq!((run(&server).await, run(&server).await), (1, 0));
    server.clock.advance(6);
    receiver.reply(Reply::Hang);
    assert_eq!((run(&server).await, run(&server).await), (1, 0));
    let log = deliveries(&tenant, &hook).await;
    assert_eq!((log.len(), &log[0]["status"]), (1, &json!("pending")));
    let attempts = log[0]["attempts"].as_array().unwrap();
    assert_eq!(
        (&attempts[0]["response_status"], &attempts[0]["response_excerpt"]),
        (&json!(503), &json!("busy"))
    );
    assert!(attempts[1]["error"].as_str().unwrap().starts_with("There was no answer within"));
    assert!(attempts[1]["duration_ms"].as_u64().unwrap() >= 500);
    // The log tells the next attempt, which is in the future and never before the webhook's own pause ends.
    let next: model::Timestamp = log[0]["next_attempt_at"].as_str().unwrap().parse().unwrap();
    assert!(next > server.clock.now() && next <= server.clock.now().plus_seconds(30), "{next:?}");
    server.clock.advance(31);
    receiver.reply(Reply::Status(200, String::new()));
    assert_eq!(run(&server).await, 1);
    let log = deliveries(&tenant, &hook).await;
    assert_eq!((&log[0]["status"], &log[0]["next_attempt_at"]), (&json!("delivered"), &Value::Null));
    let received = receiver.received();
    assert_eq!(received.len(), 3);
    assert!(
        received
            .iter()
            .all(|one| one.body == received[0].body && is_signed(one, hook["secret"].as_str().unwrap()))
    );
    assert!(received.iter().all(|one| one.header("webhook-id") == log[0]["event_id"]));
    assert_ne!(received[0].header("webhook-timestamp"), received[2].header("webhook-timestamp"));
    // What was delivered can be sent again.
    let again = format!("{}/deliveries/{}/retry", one(&tenant, &hook), log[0]["id"].as_str().unwrap());
    assert_eq!(post(&tenant, &again).await.ok()["status"], "pending");
    assert_eq!(run(&server).await, 1);
    assert_eq!(receiver.received()[3].header("webhook-id"), log[0]["event_id"]);
    assert_eq!(deliveries(&tenant, &hook).await[0]["attempts"].as_array().unwrap().len(), 4);
    let none = format!("{}/deliveries/dlv_none/retry", one(&tenant, &hook));
    super::help::assert_missing(&post(&tenant, &none).await, "Delivery");
}

// rules: HOOK-5
#[both_engines]
async fn the_log_tells_when_a_failing_webhook_is_called_again(engine: Engine) {
    let server = Server::with(engine, options()).await;
    let tenant = server.tenant(Plan::Free).await;
    // Nothing listens there.
    let hook = hook(&tenant, "http://127.0.0.1:1/", &["mailbox.created"]).await;
    // Ten rounds without any answer: the webhook is left alone for minutes, whatever is new.
    for number in 0..10 {
        new_mailbox(&tenant.key, &format!("Box {number}")).await;
        server.clock.advance(300);
        assert!(run(&server).await > 0);
    }
    new_mailbox(&tenant.key, "Last").await;
    assert_eq!(run(&server).await, 0);
    let log = deliveries(&tenant, &hook).await;
    let next: model::Timestamp = log[0]["next_attempt_at"].as_str().unwrap().parse().unwrap();
    assert!(next > server.clock.now().plus_seconds(60), "{next:?}");
    server.clock.advance(60);
    assert_eq!(run(&server).await, 0, "not before");
    server.clock.set(&next.plus_seconds(1).to_string());
    assert!(run(&server).await > 0);
}

// rules: HOOK-3, HOOK-5
#[both_engines]
async fn attempts_end_after_a_day_and_the_log_after_a_week(engine: Engine) {
    let (server, tenant, receiver) = start(engine).await;
    let hook = hook(&tenant, &receiver.url(), &["mailbox.created"]).await;
    receiver.reply(Reply::Status(500, String::new()));
    new_mailbox(&tenant.key, "Inbox").await;
    for _ in 0..26 * 6 {
        run(&server).await;
        server.clock.advance(600);
    }
    let log = deliveries(&tenant, &hook).await;
    assert_eq!((&log[0]["status"], &log[0]["next_attempt_at"]), (&json!("failed"), &Value::Null));
    let count = receiver.received().len();
    assert!((8..=11).contains(&count), "{count}");
    let first: model::Timestamp = log[0]["attempts"][0]["at"].as_str().unwrap().parse().unwrap();
    let last: model::Timestamp = log[0]["updated_at"].as_str().unwrap().parse().unwrap();
    assert!(last < first.plus_seconds(86_400) && last > first.plus_seconds(16 * 3600), "{first:?} {last:?}");
    // Statuses that no repetition mends end at once.
    receiver.reply(Reply::Status(404, String::new()));
    new_mailbox(&tenant.key, "Other").await;
    assert_eq!(run(&server).await, 1);
    assert_eq!(deliveries(&tenant, &hook).await[0]["status"], "failed");
    server.clock.advance(6 * 86_400);
    operations::maintenance::run(&server.app).await.unwrap();
    assert_eq!(deliveries(&tenant, &hook).await.len(), 1);
    server.clock.advance(86_400);
    operations::maintenance::run(&server.app).await.unwrap();
    assert_eq!(deliveries(&tenant, &hook).await.len(), 0);
}

// rules: HOOK-1
#[both_engines]
async fn a_rotated_secret_is_good_for_another_day(engine: Engine) {
    let (server, tenant, receiver) = start(engine).await;
    let hook = hook(&tenant, &receiver.url(), &["mailbox.created"]).await;
    let rotated = post(&tenant, &format!("{}/rotate-secret", one(&tenant, &hook))).await.ok();
    let (old, new) = (hook["secret"].as_str().unwrap(), rotated["secret"].as_str().unwrap());
    assert_ne!(old, new);
    assert_eq!(rotated["old_secret_until"], "2026-07-15T09:00:00.000Z");
    let tell = async |count: usize| {
        new_mailbox(&tenant.key, "Inbox").await;
        run(&server).await;
        receiver.received()[count].clone()
    };
    let first = tell(0).await;
    assert!(is_signed(&first, old) && is_signed(&first, new));
    assert_eq!(first.header("webhook-signature").split(' ').count(), 2);
    server.clock.advance(86_401);
    let later = tell(1).await;
    assert!(!is_signed(&later, old) && is_signed(&later, new));
}

// rules: HOOK-6
#[both_engines]
async fn tests_are_sent_and_paused_webhooks_get_nothing(engine: Engine) {
    let (server, tenant, receiver) = start(engine).await;
    let hook = hook(&tenant, &receiver.url(), &["mailbox.created"]).await;
    let (path, trial) = (one(&tenant, &hook), format!("{}/test", one(&tenant, &hook)));
    let delivery = post(&tenant, &trial).await.ok();
    assert_eq!((&delivery["event_type"], &delivery["status"]), (&json!("webhook.test"), &json!("pending")));
    run(&server).await;
    let request = receiver.received().remove(0);
    assert!(is_signed(&request, hook["secret"].as_str().unwrap()));
    let event = request.json();
    assert_eq!((&event["type"], &event["id"]), (&json!("webhook.test"), &delivery["event_id"]));
    assert_eq!(
        super::help::keys(&event),
        ["id", "type", "occurred_at", "sequence", "workspace_id", "mailbox_id", "data"]
    );

    receiver.reply(Reply::Status(500, String::new()));
    new_mailbox(&tenant.key, "Fails").await;
    run(&server).await;
    tenant.key.patch(&path, json!({ "status": "paused" })).await.ok();
    new_mailbox(&tenant.key, "Unseen").await;
    server.clock.advance(60);
    assert_eq!(run(&server).await, 0);
    post(&tenant, &trial).await.expect(409, "webhook_paused");
    let again = format!("{path}/deliveries/{}/retry", delivery["id"].as_str().unwrap());
    post(&tenant, &again).await.expect(409, "webhook_paused");
    // What waited goes on, what happened meanwhile does not come.
    receiver.reply(Reply::Status(200, String::new()));
    tenant.key.patch(&path, json!({ "status": "active" })).await.ok();
    new_mailbox(&tenant.key, "Seen").await;
    assert_eq!(run(&server).await, 2);
    let names: Vec<Value> =
        receiver.received()[2..].iter().map(|one| one.json()["data"]["name"].clone()).collect();
    assert_eq!(names.len(), 2);
    assert!(names.contains(&json!("Fails")) && names.contains(&json!("Seen")), "{names:?}");
}

/// A webhook that hangs, and one whose events come without end, take nothing from the others.
// rules: HOOK-8
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_hangs_delays_no_other(engine: Engine) {
    // Whoever hangs does so for as long as the test lasts.
    let options = ServerOptions { webhook_time_limit: Duration::from_mins(5), ..options() };
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Free).await;
    let (good, bad) = (Receiver::start().await, Receiver::start().await);
    bad.reply(Reply::Hang);
    let mut hanging = Vec::new();
    for _ in 0..10 {
        hanging.push(hook(&tenant, &bad.url(), &["mailbox.created"]).await);
    }
    let other = server.tenant(Plan::Free).await;
    hook(&other, &good.url(), &["mailbox.created"]).await;
    for _ in 0..12 {
        new_mailbox(&tenant.key, "Inbox").await;
    }
    let worker = tokio::spawn(outbox::work(server.app.clone()));
    bad.wait_for(8 * 4).await;
    new_mailbox(&other.key, "Inbox").await;
    good.wait_for(1).await;
    worker.abort();
    let _ = worker.await;
    // A few at a time for each webhook, and not all webhooks of one workspace.
    assert_eq!(bad.received().len(), 8 * 4);
    for one in &hanging {
        for delivery in deliveries(&tenant, one).await {
            assert_eq!((&delivery["status"], &delivery["attempts"]), (&json!("pending"), &json!([])));
        }
    }
}

/// A workspace that had no webhook for a while gets its first: what happens from then on is told at once.
// rules: HOOK-7
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_webhook_of_a_workspace_is_noticed(engine: Engine) {
    let (server, tenant, receiver) = start(engine).await;
    let worker = tokio::spawn(outbox::work(server.app.clone()));
    for _ in 0..3 {
        new_mailbox(&tenant.key, "Inbox").await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    hook(&tenant, &receiver.url(), &["mailbox.created"]).await;
    new_mailbox(&tenant.key, "Inbox").await;
    // The search for what nobody told of comes every ten seconds.
    let told = tokio::time::timeout(Duration::from_secs(8), receiver.wait_for(1)).await;
    assert_eq!(told.expect("it is not left to the next search").len(), 1);
    worker.abort();
}

/// Workers of several nodes share the work: every event is told, and by one of them.
// rules: HOOK-7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_share_the_work() {
    let (server, tenant, receiver) = start(Engine::Postgres).await;
    let other = server.another_node(ServerOptions { seed: 2, ..options() }).await;
    hook(&tenant, &receiver.url(), &["mailbox.created"]).await;
    let workers = [&server, &other].map(|node| tokio::spawn(outbox::work(node.app.clone())));
    for _ in 0..25 {
        new_mailbox(&tenant.key, "Inbox").await;
    }
    let received = receiver.wait_for(25).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    for worker in workers {
        worker.abort();
    }
    let mut ids: Vec<&str> = received.iter().map(|one| one.header("webhook-id")).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), receiver.received().len()), (25, 25));
}

/// Works in a process that dies at a moment, with everything that it was doing.
async fn die_at_work(server: &Server, moment: impl AsyncFnOnce()) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let app = server.app.clone();
    runtime.spawn(async move { outbox::run_due(&app).await });
    moment().await;
    let end = move || runtime.shutdown_timeout(Duration::from_secs(10));
    tokio::task::spawn_blocking(end).await.unwrap();
}

/// A worker that dies between sending and noting it: the event is told again, under the same id.
// rules: HOOK-7
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_worker_had_is_sent_again(engine: Engine) {
    let (server, tenant, receiver) = start(engine).await;
    let hook = hook(&tenant, &receiver.url(), &["mailbox.created"]).await;
    receiver.reply(Reply::Hang);
    new_mailbox(&tenant.key, "Inbox").await;
    die_at_work(&server, async || drop(receiver.wait_for(1).await)).await;
    receiver.reply(Reply::Status(200, String::new()));
    assert_eq!(run(&server).await, 0, "another worker may still have it");
    server.clock.advance(31);
    assert_eq!(run(&server).await, 1);
    let received = receiver.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].header("webhook-id"), received[1].header("webhook-id"));
    assert_eq!(deliveries(&tenant, &hook).await[0]["status"], "delivered");
    // Where no other process can have it, a new start waits for nothing.
    if engine == Engine::Sqlite {
        receiver.reply(Reply::Hang);
        new_mailbox(&tenant.key, "Other").await;
        die_at_work(&server, async || drop(receiver.wait_for(3).await)).await;
        receiver.reply(Reply::Status(200, String::new()));
        let worker = tokio::spawn(outbox::work(server.app.clone()));
        receiver.wait_for(4).await;
        worker.abort();
    }
}

// rules: HOOK-5
#[both_engines]
async fn the_log_is_read_page_by_page(engine: Engine) {
    let (server, tenant, receiver) = start(engine).await;
    let hook = hook(&tenant, &receiver.url(), &["mailbox.created"]).await;
    for _ in 0..5 {
        new_mailbox(&tenant.key, "Inbox").await;
    }
    run(&server).await;
    receiver.reply(Reply::Status(410, String::new()));
    new_mailbox(&tenant.key, "Inbox").await;
    run(&server).await;
    let log = format!("{}/deliveries", one(&tenant, &hook));
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = tenant.key.get(&format!("{log}?limit=2{cursor}")).await.ok();
        ids.extend(
            page["deliveries"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next_cursor"].as_str() else { break };
        assert_eq!(page["has_more"], true);
        cursor = format!("&cursor={next}");
    }
    assert_eq!(ids.len(), 6);
    assert!(ids.is_sorted_by(|a, b| a > b), "newest first");
    let failed = tenant.key.get(&format!("{log}?status=failed")).await.ok();
    assert_eq!(failed["deliveries"][0]["id"], ids[0].as_str());
    assert_eq!(failed["deliveries"].as_array().unwrap().len(), 1);
    tenant.key.get(&format!("{log}?status=delivered{cursor}")).await.expect(400, "invalid_cursor");
    tenant.key.get(&format!("{log}?limit=0")).await.expect(400, "validation_failed");
}
