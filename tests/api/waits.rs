//! Waiting for a mail.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use store::faults::Moment;
use testkit::{Engine, Server, ServerOptions, both_engines};

use super::{
    help::assert_refuses_fields,
    mails::{Inbox, flagged, message, plain, skipped},
};

const START: &str = "2026-07-01T00:00:00Z";

/// Waits with a body and a time limit of a second.
async fn wait(inbox: &Inbox, body: Value) -> Value {
    let mut body = body;
    if body["timeout_seconds"].is_null() {
        body["timeout_seconds"] = json!(1);
    }
    inbox.post("emails/wait", body).await.ok()
}

// rules: READ-22
#[both_engines]
async fn a_wait_ends_in_four_ways(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let begun = Instant::now();
    let nothing = wait(&inbox, json!({})).await;
    assert_eq!(
        (&nothing["outcome"], &nothing["matches"], nothing.get("email")),
        (&json!("timeout"), &json!([]), None)
    );
    assert!(begun.elapsed() >= Duration::from_millis(950));
    let one = server.receive(&inbox.address, plain("Your code", "It is 482913.")).await;
    // Now is the default, so what is there already does not count.
    assert_eq!(wait(&inbox, json!({})).await["outcome"], "timeout");
    let matched = wait(&inbox, json!({ "after": nothing["cursor"] })).await;
    assert_eq!((&matched["outcome"], &matched["matches"]), (&json!("matched"), &json!([one])));
    let email = &matched["email"];
    assert_eq!((&email["agent_safe_content"], &email["body"]), (&json!(true), &json!("It is 482913.")));
    assert!(email.get("raw_headers").is_none() && email.get("attachments").is_none());
    let two = server.receive(&inbox.address, plain("Your code again", "It is 1234.")).await;
    let both = wait(&inbox, json!({ "after": nothing["cursor"] })).await;
    assert_eq!((&both["outcome"], &both["matches"]), (&json!("ambiguous"), &json!([one, two])));
    assert!(both.get("email").is_none());
    assert_eq!(wait(&inbox, json!({ "after": both["cursor"] })).await["outcome"], "timeout");
    for (raw, status) in [(flagged("Bad"), "flagged"), (skipped("Odd"), "skipped")] {
        let bad = server.receive(&inbox.address, raw).await;
        let held = wait(&inbox, json!({ "after": both["cursor"] })).await;
        assert_eq!((&held["outcome"], held.get("email")), (&json!("held"), None), "{status}");
        let wanted = json!({ "after": both["cursor"], "require_scan_status": status });
        let found = wait(&inbox, wanted).await;
        assert_eq!((&found["outcome"], &found["matches"]), (&json!("matched"), &json!([bad])), "{status}");
        // It is told of, but what it says is not.
        let email = &found["email"];
        assert_eq!((&email["scan_status"], &email["content_omitted"]), (&json!(status), &json!(true)));
        assert_eq!(email["content_omission_reason"], "scan_status_not_clean", "{email}");
        assert!(email.get("body").is_none() && email.get("snippet").is_none(), "{email}");
    }
}

// rules: READ-22
#[both_engines]
async fn a_wait_knows_sender_recipient_subject_and_time(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let tagged = inbox.address.replace('@', "+shop@");
    let one =
        server.receive(&tagged, message("Welcome To The SHOP", "From: Shop <Info@Shop.test>", "hi")).await;
    server.clock.advance(60);
    let two = server.receive(&inbox.address, plain("Other", "hi")).await;
    for (body, matches) in [
        (json!({ "from": "info@shop.test" }), json!([one])),
        (json!({ "from": "INFO@SHOP.TEST" }), json!([one])),
        (json!({ "from": "ann@remote.test" }), json!([two])),
        (json!({ "to": tagged }), json!([one])),
        (json!({ "to": inbox.address }), json!([two])),
        (json!({ "subject": "the shop" }), json!([one])),
        (json!({ "subject": "shop", "from": "ann@remote.test" }), json!([])),
        (json!({ "from": "nfo@shop.test" }), json!([])),
    ] {
        let mut asked = body.clone();
        asked["after"] = json!(START);
        assert_eq!(wait(&inbox, asked).await["matches"], matches, "{body}");
    }
    let late = json!({ "after": "2026-07-14T09:00:30Z" });
    assert_eq!(wait(&inbox, late).await["matches"], json!([two]));
    for (body, field) in [
        (json!({ "timeout_seconds": 0 }), "timeout_seconds"),
        (json!({ "timeout_seconds": 121 }), "timeout_seconds"),
        (json!({ "from": "no address" }), "from"),
        (json!({ "require_scan_status": "any" }), "require_scan_status"),
        (json!({ "sender": "a@b.test" }), "sender"),
    ] {
        assert_refuses_fields(&inbox.post("emails/wait", body).await, &[field]);
    }
    inbox.post("emails/wait", json!({ "after": "soon" })).await.expect(400, "invalid_cursor");
    let long = json!({ "after": "A".repeat(2049) });
    inbox.post("emails/wait", long).await.expect(400, "invalid_cursor");
    let other = Inbox::new(&server).await;
    let cursor = wait(&inbox, json!({ "after": START })).await["cursor"].clone();
    other.post("emails/wait", json!({ "after": cursor })).await.expect(400, "invalid_cursor");
}

/// A chain of waits, each after the last one's cursor, meets every mail exactly once.
// rules: READ-22
#[both_engines]
async fn a_chain_of_waits_misses_nothing(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let (mut cursor, mut met) = (json!(START), Vec::new());
    let mut sent = Vec::new();
    let receive = async {
        for number in 0..30 {
            sent.push(json!(server.receive(&inbox.address, plain(&format!("Mail {number}"), "x")).await));
        }
    };
    let follow = async {
        while met.len() < 30 {
            let found = wait(&inbox, json!({ "after": cursor, "timeout_seconds": 10 })).await;
            assert_ne!(found["outcome"], "timeout");
            met.extend(found["matches"].as_array().unwrap().iter().cloned());
            cursor = found["cursor"].clone();
        }
    };
    tokio::join!(receive, follow);
    assert_eq!(met, sent);
}

/// A mail that is held, or not scanned yet, is met by a later wait of the chain when it has turned out well.
// rules: READ-22, READ-24, SCAN-10
#[both_engines]
async fn a_chain_of_waits_comes_back_to_what_was_not_ready(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let fresh = server.receive(&inbox.address, plain("Fresh", "x")).await;
    inbox.set_scan(&server, &fresh, None).await;
    let held = server.receive(&inbox.address, plain("Held", "x")).await;
    inbox.hold(&server, &held, 60).await;
    let first = wait(&inbox, json!({ "after": START })).await;
    assert_eq!((&first["outcome"], &first["matches"]), (&json!("held"), &json!([fresh, held])));
    let ready = server.receive(&inbox.address, plain("Ready", "x")).await;
    let second = wait(&inbox, json!({ "after": first["cursor"] })).await;
    assert_eq!((&second["outcome"], &second["matches"]), (&json!("matched"), &json!([ready])));
    inbox.set_scan(&server, &fresh, Some("clean")).await;
    let third = wait(&inbox, json!({ "after": second["cursor"] })).await;
    assert_eq!((&third["outcome"], &third["matches"]), (&json!("matched"), &json!([fresh])));
    server.clock.advance(60);
    let fourth = wait(&inbox, json!({ "after": third["cursor"] })).await;
    assert_eq!((&fourth["outcome"], &fourth["matches"]), (&json!("matched"), &json!([held])));
    assert_eq!(wait(&inbox, json!({ "after": fourth["cursor"] })).await["outcome"], "timeout");
}

/// Nothing is written when a hold runs out, and still the wait ends then and not at its time limit.
// rules: READ-22
#[both_engines]
async fn a_hold_that_runs_out_wakes_a_wait(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let held = server.receive(&inbox.address, plain("Held", "x")).await;
    inbox.hold(&server, &held, 1).await;
    let begun = Instant::now();
    let time = async {
        tokio::time::sleep(Duration::from_millis(600)).await;
        server.clock.advance(1);
    };
    let asked = json!({ "after": START, "timeout_seconds": 60 });
    let (found, ()) = tokio::join!(wait(&inbox, asked), time);
    assert_eq!((&found["outcome"], &found["matches"]), (&json!("matched"), &json!([held])));
    assert!(begun.elapsed() < Duration::from_secs(20));
}

// rules: READ-22
#[both_engines]
async fn many_waiters_wake_at_once_and_only_for_their_mailbox(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let other = inbox.another().await;
    let waiters = futures_util::future::join_all(
        (0..50).map(|_| wait(&inbox, json!({ "after": START, "timeout_seconds": 20 }))),
    );
    let elsewhere = wait(&other, json!({ "after": START, "timeout_seconds": 2 }));
    let arrive = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let begun = Instant::now();
        (server.receive(&inbox.address, plain("One", "x")).await, begun)
    };
    let waiting = async {
        let found = waiters.await;
        (found, Instant::now())
    };
    let ((found, end), nothing, (id, begun)) = tokio::join!(waiting, elsewhere, arrive);
    assert!(found.iter().all(|one| one["outcome"] == "matched" && one["matches"] == json!([id])));
    assert!(end - begun < Duration::from_secs(10));
    assert_eq!(nothing["outcome"], "timeout");
}

// rules: READ-22, EVENT-2
#[tokio::test]
async fn mail_on_another_node_wakes_a_wait() {
    let server = Server::start(Engine::Postgres).await;
    let node = server.another_node(ServerOptions { seed: 2, ..ServerOptions::default() }).await;
    let inbox = Inbox::new(&server).await;
    let events = format!("/api/v1/workspaces/{}/events?after=1&wait=20", inbox.workspace);
    let arrive = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        node.receive(&inbox.address, plain("One", "x")).await
    };
    let begun = Instant::now();
    let (found, page, id) =
        tokio::join!(wait(&inbox, json!({ "timeout_seconds": 20 })), inbox.key.get(&events), arrive);
    assert_eq!((&found["outcome"], &found["matches"]), (&json!("matched"), &json!([id])));
    assert_eq!(page.ok()["events"][0]["data"]["email_id"], json!(id));
    assert!(begun.elapsed() < Duration::from_secs(10));
}

/// A mail that another node stores and then dies before it wakes anybody: it is found all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_finds_a_mail_of_a_node_that_died_before_it_told() {
    let server = Server::start(Engine::Postgres).await;
    let dying = server.another_node(ServerOptions { seed: 2, ..ServerOptions::default() }).await;
    let inbox = Inbox::new(&server).await;
    let begun = wait(&inbox, json!({})).await;
    let waiting = inbox.post("emails/wait", json!({ "after": begun["cursor"], "timeout_seconds": 60 }));
    let store = async {
        dying.app.db().crash_at(1, Moment::AfterCommit);
        let unanswered = dying.try_receive(None, &inbox.address, plain("Last words", "Found?")).await;
        assert!(unanswered.is_err() && dying.app.db().is_dead());
    };
    let (found, ()) = tokio::join!(waiting, store);
    let found = found.ok();
    assert_eq!((&found["outcome"], &found["email"]["subject"]), (&json!("matched"), &json!("Last words")));
}
