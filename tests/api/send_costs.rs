//! What a message to another server costs on PostgreSQL, and the counters that it only adds to.

use std::{sync::Arc, time::Duration};

use model::{Limit, Plan, sending::OutboundMode};
use operations::{Outbound, sending::worker};
use serde_json::{Value, json};
use store::{StatementCounts, faults::Moment};
use testkit::{Caller, Engine, Hop, Server, ServerOptions, both_engines};
use tokio::sync::Semaphore;

use super::{
    delivery::{mail, server, states},
    mails::Inbox,
};

/// Statements of one message to one recipient elsewhere, from the call until its attempt is recorded.
const MAX_STATEMENTS: u64 = 35;

/// The same of a message among many that are sent at once: what each call reads, and its part of a batch.
const MAX_SHARED_STATEMENTS: u64 = 12;

fn counts(server: &Server) -> StatementCounts {
    server.app.db().statement_counts().unwrap()
}

/// Sends a message, and delivers it as the worker does after a wake-up.
async fn send_and_deliver(server: &Server, inbox: &Inbox) -> String {
    let at_once = inbox.key.with("prefer", "respond-async");
    let sent = at_once.post(&format!("{}/emails", inbox.path), mail("a@remote.test")).await.ok();
    let round = worker::run_round(&server.app).await.unwrap();
    for task in round.tasks {
        task.await.unwrap();
    }
    sent["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_message_takes_few_statements() {
    let (server, hop) = server(Engine::Postgres, OutboundMode::Relay).await;
    let inbox = Inbox::new(&server).await;
    // Statements are prepared, and credits are charged ahead.
    for _ in 0..3 {
        send_and_deliver(&server, &inbox).await;
    }
    let mut cheapest: Option<StatementCounts> = None;
    for _ in 0..5 {
        let before = counts(&server);
        let id = send_and_deliver(&server, &inbox).await;
        let cost = counts(&server).since(&before);
        assert_eq!(states(&inbox, &id).await.0, "sent");
        // Now and then the key of the caller is looked up again, or an advance of credits has run out.
        if cheapest.is_none_or(|cheapest| cost.statements < cheapest.statements) {
            cheapest = Some(cost);
        }
    }
    assert_eq!(hop.handovers().len(), 8);
    let cost = cheapest.unwrap();
    println!("{cost:?}");
    assert!(cost.statements <= MAX_STATEMENTS, "{cost:?}");
    // The message, its claim and its attempt.
    assert!(cost.commits <= 3, "{cost:?}");
}

/// Messages that a workspace sends at once, from several mailboxes, are stored with the same statements and commits, and so
/// are the outcomes of their delivery.
#[tokio::test]
async fn messages_sent_at_once_share_statements() {
    const MESSAGES: u64 = 60;
    let (server, hop) = server(Engine::Postgres, OutboundMode::Relay).await;
    let inbox = Inbox::new(&server).await;
    let at_once = inbox.key.with("prefer", "respond-async");
    let mut paths = vec![format!("{}/emails", inbox.path)];
    for name in ["B", "C"] {
        let made = inbox.key.post("/api/v1/mailboxes", json!({ "name": name })).await.ok();
        paths.push(format!("/api/v1/mailboxes/{}/emails", made["id"].as_str().unwrap()));
    }
    for _ in 0..3 {
        send_and_deliver(&server, &inbox).await;
    }
    let before = counts(&server);
    let mut calls = tokio::task::JoinSet::new();
    for path in paths.iter().cycle().take(usize::try_from(MESSAGES).unwrap()) {
        let (key, path) = (at_once.clone(), path.clone());
        calls.spawn(async move { key.post(&path, mail("a@remote.test")).await.ok()["id"].clone() });
    }
    let ids: std::collections::BTreeSet<String> =
        calls.join_all().await.iter().map(|id| id.as_str().unwrap().to_owned()).collect();
    worker::run_due(&server.app).await.unwrap();
    let cost = counts(&server).since(&before);
    println!("{cost:?}");
    assert_eq!((ids.len() as u64, hop.handovers().len() as u64), (MESSAGES, MESSAGES + 3));
    assert!(cost.statements <= MESSAGES * MAX_SHARED_STATEMENTS, "{cost:?}");
    assert!(cost.commits <= MESSAGES, "{cost:?}");
    // Each is there with everything, in an event log without gaps.
    let events =
        inbox.key.get(&format!("/api/v1/workspaces/{}/events?limit=200", inbox.workspace)).await.ok();
    let sent = events["events"].as_array().unwrap().iter().filter(|event| event["type"] == "message.sent");
    let told: std::collections::BTreeSet<String> =
        sent.map(|event| event["data"]["email_id"].as_str().unwrap().to_owned()).collect();
    assert!(ids.is_subset(&told), "{:?}", ids.difference(&told));
    let numbers: Vec<i64> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["sequence"].as_i64().unwrap())
        .collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    for path in paths {
        let folder = format!("{path}?folder=sent&limit=50");
        let listed = inbox.key.get(&folder).await.ok();
        let listed = listed["emails"].as_array().unwrap();
        assert!(
            listed.len() >= 20 && listed.iter().all(|mail| mail["delivery_status"] == "sent"),
            "{listed:?}"
        );
    }
}

/// Outcomes that are written together do not meet changes of the same emails in another order, and none is lost.
#[both_engines]
async fn outcomes_are_recorded_beside_changes_of_many_emails(engine: Engine) {
    let (server, _hop) = server(engine, OutboundMode::Relay).await;
    let inbox = Inbox::new(&server).await;
    let at_once = inbox.key.with("prefer", "respond-async");
    for _ in 0..4 {
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..40 {
            let (key, path) = (at_once.clone(), format!("{}/emails", inbox.path));
            calls.spawn(async move { key.post(&path, mail("a@remote.test")).await.ok()["id"].clone() });
        }
        let mut ids: Vec<String> =
            calls.join_all().await.iter().map(|id| id.as_str().unwrap().to_owned()).collect();
        ids.sort_unstable();
        ids.reverse();
        let (gone, kept) = ids.split_at(10);
        let change = async {
            for read in [false, true, false, true] {
                inbox.post("emails/bulk-read", json!({ "ids": ids, "read": read })).await.ok();
            }
            inbox.post("emails/bulk-delete", json!({ "ids": gone, "permanent": true })).await.ok();
        };
        let (delivered, ()) = tokio::join!(worker::run_due(&server.app), change);
        delivered.unwrap();
        for id in kept {
            assert_eq!(states(&inbox, id).await.0, "sent");
        }
    }
    if engine == Engine::Postgres {
        let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
        let found: store::Result<Option<(i64,)>> =
            server.app.db().system_read(async move |tx| tx.one(sql, &[]).await).await;
        assert_eq!(found.unwrap(), Some((0,)));
    }
}

/// A message that is deleted while the next server takes it has no outcome to record, and its task ends at once.
#[both_engines]
async fn a_message_may_be_deleted_while_it_is_delivered(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Relay).await;
    let inbox = Inbox::new(&server).await;
    let gate = Arc::new(Semaphore::new(0));
    hop.gated_by(gate.clone());
    let at_once = inbox.key.with("prefer", "respond-async");
    at_once.post(&format!("{}/emails", inbox.path), mail("a@remote.test")).await.ok();
    let round = worker::run_round(&server.app).await.unwrap();
    assert_eq!(round.tasks.len(), 1);
    let workspace = inbox.workspace.clone();
    let deleted = server
        .app
        .db()
        .write(&workspace, async |tx| tx.run("DELETE FROM outbound WHERE workspace_id = $1", &[]).await);
    let deleted: store::Result<u64> = deleted.await;
    assert_eq!(deleted.unwrap(), 1);
    gate.add_permits(1);
    for task in round.tasks {
        // An error would be retried for half a minute.
        tokio::time::timeout(Duration::from_secs(25), task).await.expect("it ends").unwrap();
    }
    assert_eq!(hop.handovers().len(), 1);
}

/// The worker reads the queue once for several messages, and not again after each of them.
#[tokio::test]
async fn messages_that_are_due_together_are_claimed_together() {
    let (server, _hop) = server(Engine::Postgres, OutboundMode::Relay).await;
    let inbox = Inbox::new(&server).await;
    let at_once = inbox.key.with("prefer", "respond-async");
    for _ in 0..4 {
        at_once.post(&format!("{}/emails", inbox.path), mail("a@remote.test")).await.ok();
    }
    let before = counts(&server);
    let round = worker::run_round(&server.app).await.unwrap();
    let cost = counts(&server).since(&before);
    assert_eq!((cost.commits, round.tasks.len()), (1, 4), "{cost:?}");
    assert!(cost.statements <= 5, "{cost:?}");
    for task in round.tasks {
        task.await.unwrap();
    }
    let round = worker::run_round(&server.app).await.unwrap();
    assert!(round.tasks.is_empty() && round.next_due_at.is_none());
}

/// The worker knows when a message is due next that it has deferred.
#[both_engines]
async fn a_deferred_message_is_due_later(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Relay).await;
    let inbox = Inbox::new(&server).await;
    hop.answer("a@remote.test", operations::ports::HandoverOutcome::Deferred("450 4.2.0 Later".to_owned()));
    send_and_deliver(&server, &inbox).await;
    let round = worker::run_round(&server.app).await.unwrap();
    assert!(round.tasks.is_empty());
    assert!(round.next_due_at.is_some_and(|at| at > server.clock.now()), "{:?}", round.next_due_at);
}

async fn figures(caller: &Caller, workspace: &model::WorkspaceId) -> (Value, Value) {
    let email = caller.get(&format!("/api/v1/workspaces/{workspace}/usage/email")).await.ok();
    let history = caller.get(&format!("/api/v1/workspaces/{workspace}/usage/history?days=1")).await.ok();
    (email["used"].clone(), history["days"][0]["mails_out"].clone())
}

/// Additions to counters are counted once: before they are folded, after that, and when a node dies meanwhile.
#[both_engines]
async fn a_counter_is_exact_whenever_a_fold_is_cut_off(engine: Engine) {
    let (server, _hop) = server(engine, OutboundMode::Sandbox).await;
    let inbox = Inbox::new(&server).await;
    for _ in 0..3 {
        inbox.post("emails", mail("a@remote.test")).await.ok();
    }
    let expected = (json!(3), json!(3));
    assert_eq!(figures(&inbox.key, &inbox.workspace).await, expected);
    if engine == Engine::Postgres {
        assert!(server.app.meter().commit().await);
        for moment in [Moment::BeforeCommit, Moment::AfterCommit] {
            let node =
                server.another_node(ServerOptions { background: false, ..ServerOptions::default() }).await;
            node.app.db().crash_at(1, moment);
            assert!(operations::counters::fold(&node.app).await.is_err());
            assert!(node.app.db().has_crashed());
            assert_eq!(figures(&inbox.key, &inbox.workspace).await, expected, "{moment:?}");
        }
        inbox.post("emails", mail("a@remote.test")).await.ok();
        assert_eq!(operations::counters::fold(&server.app).await.unwrap(), 2);
        assert_eq!(figures(&inbox.key, &inbox.workspace).await, (json!(4), json!(4)));
    }
    assert_eq!(operations::counters::fold(&server.app).await.unwrap(), 0);
}

/// However many send at once, and while counters are folded, no more are sent in a month than the plan allows.
#[both_engines]
async fn a_month_is_exact_under_racing_sends(engine: Engine) {
    let options = |seed| {
        let mut options = ServerOptions {
            outbound: Outbound::new(OutboundMode::Sandbox),
            next_hop: Some(Hop::default()),
            seed,
            ..ServerOptions::default()
        };
        options.plans.developer.mails_per_month = Limit::of(40);
        options
    };
    let one = Server::with(engine, options(1)).await;
    let two = if engine == Engine::Postgres { Some(one.another_node(options(2)).await) } else { None };
    let tenant = one.tenant(Plan::Developer).await;
    let mut paths = Vec::new();
    for _ in 0..2 {
        let made = tenant.key.post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
        paths.push(format!("/api/v1/mailboxes/{}/emails", made["id"].as_str().unwrap()));
    }
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..200 {
        let node = two.as_ref().filter(|_| number % 2 == 0).unwrap_or(&one);
        let (key, path) = (node.key(tenant.key.secret()), paths[number / 2 % 2].clone());
        calls.spawn(async move { key.post(&path, mail("a@remote.test")).await.status });
        if number % 20 == 0 {
            let app = node.app.clone();
            calls.spawn(async move {
                operations::counters::fold(&app).await.unwrap();
                0
            });
        }
    }
    let statuses = calls.join_all().await;
    let sent = statuses.iter().filter(|status| **status == 202).count();
    let refused = statuses.iter().filter(|status| **status == 429).count();
    assert_eq!((sent, refused), (40, 160), "{statuses:?}");
    assert_eq!(figures(&tenant.key, &tenant.workspace).await, (json!(40), json!(40)));
}

/// Messages that share a commit fail alone: one of a deleted mailbox does not take the others with it.
#[both_engines]
async fn messages_of_one_mailbox_share_commits(engine: Engine) {
    let (server, hop) = server(engine, OutboundMode::Relay).await;
    let inbox = Inbox::new(&server).await;
    let at_once = inbox.key.with("prefer", "respond-async");
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..40 {
        let (key, path) = (at_once.clone(), format!("{}/emails", inbox.path));
        // Every fourth repeats the key of the one before it.
        let key = key.with("idempotency-key", &format!("k{}", number - i32::from(number % 4 == 3)));
        calls.spawn(async move {
            let answer = key.post(&path, mail("a@remote.test")).await;
            (answer.status, answer.status < 300)
        });
    }
    let answers = calls.join_all().await;
    let accepted = answers.iter().filter(|(_, accepted)| *accepted).count();
    assert!(answers.iter().all(|(status, _)| matches!(status, 202 | 409)), "{answers:?}");
    worker::run_due(&server.app).await.unwrap();
    // A repeated key is answered with the first message, or is refused while that runs.
    assert_eq!(hop.handovers().len(), 30, "{accepted} accepted");
    assert_eq!(figures(&inbox.key, &inbox.workspace).await, (json!(30), json!(30)));
}
