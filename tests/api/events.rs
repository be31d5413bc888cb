//! The event log: pages, long polls, the stream.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Engine, Server, both_engines};

use super::{
    help::{assert_refuses_fields, keys},
    mails::{Inbox, flagged, plain, skipped},
};

fn log(inbox: &Inbox) -> String {
    format!("/api/v1/workspaces/{}/events", inbox.workspace)
}

async fn events(inbox: &Inbox, query: &str) -> Value {
    inbox.key.get(&format!("{}?{query}", log(inbox))).await.ok()
}

// rules: EVENT-1, EVENT-4, EVENT-5, EVENT-6, EVENT-7
#[both_engines]
#[expect(clippy::too_many_lines, reason = "one story from beginning to end")]
async fn events_tell_what_happened(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let clean = server.receive(&inbox.address, plain("Cle\u{202e}an", "All is well.")).await;
    let bad = server.receive(&inbox.address, flagged("Bad")).await;
    let odd = server.receive(&inbox.address, skipped("Odd")).await;
    let other = inbox.another().await;
    inbox.key.delete(&other.path).await.ok();
    let page = events(&inbox, "").await;
    assert_eq!((&page["has_more"], &page["next_after"]), (&json!(false), &json!(6)));
    let all = page["events"].as_array().unwrap();
    let kinds: Vec<&str> = all.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let received = "message.received";
    assert_eq!(
        kinds,
        ["mailbox.created", received, received, received, "mailbox.created", "mailbox.deleted"]
    );
    for (number, event) in all.iter().enumerate() {
        let mut fields = keys(event);
        fields.sort_unstable();
        assert_eq!(fields, ["data", "id", "mailbox_id", "occurred_at", "sequence", "type", "workspace_id"]);
        assert_eq!(event["sequence"], number + 1);
        assert_eq!(event["workspace_id"], json!(inbox.workspace));
        let owner = if number < 4 { &inbox.id } else { &other.id };
        assert_eq!(event["mailbox_id"], json!(owner));
        assert!(event["id"].as_str().unwrap().starts_with("evt_"));
    }
    let data = &all[1]["data"];
    assert_eq!(
        (&data["email_id"], &data["subject"], &data["snippet"]),
        (&json!(clean), &json!("Clean"), &json!("All is well."))
    );
    assert_eq!((&data["content_omitted"], data.get("content_omission_reason")), (&json!(false), None));
    for (event, id, status) in [(&all[2], &bad, "flagged"), (&all[3], &odd, "skipped")] {
        let data = &event["data"];
        assert_eq!((&data["email_id"], &data["scan_status"]), (&json!(id), &json!(status)));
        assert_eq!(
            (&data["content_omitted"], &data["content_omission_reason"]),
            (&json!(true), &json!("scan_status_not_clean"))
        );
        assert!(data.get("snippet").is_none() && data.get("body").is_none());
    }
    assert_eq!(
        (&all[5]["data"]["mailbox_id"], &all[5]["data"]["email"]),
        (&json!(other.id), &json!(other.address))
    );
    // A part of it, and what is refused.
    let part = events(&inbox, "after=1&limit=2").await;
    assert_eq!(
        (&part["has_more"], &part["next_after"], &part["events"][0]),
        (&json!(true), &json!(3), &all[1])
    );
    assert_eq!(events(&inbox, "after=99").await["events"], json!([]));
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("wait=61", "wait"),
        ("after=-1", "after"),
        ("from=1", "from"),
    ] {
        assert_refuses_fields(&inbox.key.get(&format!("{}?{query}", log(&inbox))).await, &[field]);
    }
    let stranger = Inbox::new(&server).await;
    stranger.key.get(&log(&inbox)).await.expect(403, "workspace_scope_denied");
    // After 30 days they go, and the numbers go on.
    server.clock.advance(30 * 86_400);
    operations::maintenance::run(&server.app).await.unwrap();
    server.receive(&inbox.address, plain("Late", "x")).await;
    let page = events(&inbox, "").await;
    assert_eq!((page["events"].as_array().unwrap().len(), &page["events"][0]["sequence"]), (1, &json!(7)));
}

/// A call that fails leaves no event, and many at once leave no gap.
// rules: EVENT-1, EVENT-4
#[both_engines]
async fn sequences_have_no_gaps(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let other = inbox.another().await;
    let taken = json!({ "name": "Again", "email": other.address });
    let arrivals = futures_util::future::join_all((0..40).map(|number| {
        let to = if number % 2 == 0 { &inbox.address } else { &other.address };
        server.receive(to, plain(&format!("Mail {number}"), "x"))
    }));
    let refusals =
        futures_util::future::join_all((0..5).map(|_| inbox.key.post("/api/v1/mailboxes", taken.clone())));
    let mut seen: Vec<i64> = Vec::new();
    let follow = async {
        // A reader that follows meets no event late.
        while seen.len() < 42 {
            let after = seen.last().copied().unwrap_or(0);
            let page = events(&inbox, &format!("after={after}&wait=20&limit=7")).await;
            seen.extend(
                page["events"].as_array().unwrap().iter().map(|one| one["sequence"].as_i64().unwrap()),
            );
        }
    };
    let (_, refused, ()) = tokio::join!(arrivals, refusals, follow);
    assert!(refused.iter().all(|answer| answer.status == 409));
    assert_eq!(seen, (1..=42).collect::<Vec<i64>>());
    assert_eq!(events(&inbox, "after=42").await["events"], json!([]));
}

// rules: EVENT-2
#[both_engines]
async fn a_long_poll_wakes_when_something_happens(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let begun = Instant::now();
    assert_eq!(events(&inbox, "after=1&wait=1").await["events"], json!([]));
    assert!(begun.elapsed() >= Duration::from_millis(950));
    let begun = Instant::now();
    let arrive = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.receive(&inbox.address, plain("One", "x")).await
    };
    let (page, id) = tokio::join!(events(&inbox, "after=1&wait=30"), arrive);
    assert_eq!(page["events"][0]["data"]["email_id"], json!(id));
    assert!(begun.elapsed() < Duration::from_secs(10));
    let begun = Instant::now();
    assert_eq!(events(&inbox, "wait=30").await["next_after"], 2);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

// rules: EVENT-3
#[both_engines]
async fn the_stream_resumes_where_it_broke_off(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let path = format!("{}/stream", log(&inbox));
    let next = async |stream: &mut testkit::EventStream| {
        tokio::time::timeout(Duration::from_secs(10), stream.next()).await.unwrap()
    };
    // From now on, unless told otherwise.
    let mut live = inbox.key.stream(&path).await;
    let mut whole = inbox.key.stream(&format!("{path}?after=0")).await;
    for number in 0..5 {
        server.receive(&inbox.address, plain(&format!("Mail {number}"), "x")).await;
    }
    let logged = events(&inbox, "").await["events"].as_array().unwrap().clone();
    for event in &logged {
        assert_eq!(next(&mut whole).await, Some((event["sequence"].as_i64().unwrap(), event.clone())));
    }
    assert_eq!(next(&mut live).await.unwrap().0, 2);
    assert_eq!(next(&mut live).await.unwrap().0, 3);
    drop(live);
    let mut again = inbox.key.with("last-event-id", "3").stream(&format!("{path}?after=0")).await;
    for sequence in 4..=6 {
        assert_eq!(next(&mut again).await.unwrap().0, sequence);
    }
    server.receive(&inbox.address, plain("Last", "x")).await;
    assert_eq!(next(&mut again).await.unwrap().0, 7);
    assert_eq!(next(&mut whole).await.unwrap().0, 7);
    for wrong in ["x", "-1", "1.5", "evt_01m7gm3nryfw6r170gfx6b1xjd"] {
        let answer = inbox.key.with("last-event-id", wrong).get(&path).await;
        answer.expect(400, "validation_failed");
        assert!(answer.text().contains("expected the sequence of an event"), "{}", answer.text());
    }
    // A key that is revoked ends its streams; nothing that comes later is told.
    let revoked = server.new_key(&inbox.workspace, model::Role::Admin).await;
    let mut ending = server.key(&revoked.key).stream(&path).await;
    operations::admin::revoke_key(&server.app, revoked.api_key.id, &testkit::operator()).await.unwrap();
    server.receive(&inbox.address, plain("After", "x")).await;
    assert_eq!(next(&mut ending).await, None);
    assert_eq!(next(&mut whole).await.unwrap().0, 8);
}
