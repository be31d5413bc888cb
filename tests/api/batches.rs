//! Deliveries to one workspace that come at the same time: they share statements and commits, and nothing else.

use std::{collections::BTreeSet, sync::Arc};

use model::{EmailId, emails::InboundProvider};
use operations::inbound::{self, Arrival, Recipient, Refusal};
use store::{StatementCounts, faults};
use testkit::{Engine, Server, both_engines};

use super::{
    email_counters::assert_counted,
    mails::{Inbox, flagged, message, new_label, plain, with_file},
};

async fn deliver(server: &Server, recipients: Vec<Recipient>, raw: String) -> Result<Vec<EmailId>, Refusal> {
    let provider = Some(InboundProvider::EdgeRouting);
    let arrival = Arrival { provider, from: None, recipients, raw: raw.into(), client: None };
    inbound::receive(&server.app, arrival).await?.emails.into_iter().collect()
}

async fn route(server: &Server, inbox: &Inbox) -> Recipient {
    inbound::route(&server.app, None, &inbox.address).await.unwrap()
}

/// A message that shares a thread, a content, a folder or a label with others.
fn raw(number: usize) -> String {
    match number % 6 {
        0 => message(&format!("Re: Topic {}", number % 5), "In-Reply-To: <Root@remote.test>", "more\r\n"),
        1 => message("Same subject", &format!("X-Number: {number}"), "again\r\n"),
        2 => with_file(&format!("File {number}"), "a.csv", "text/csv", b"1;2"),
        3 => plain("The same message", "twice"),
        4 if number.is_multiple_of(4) => flagged(&format!("Bad {number}")),
        _ => plain(&format!("Message {number}"), "text"),
    }
}

/// The event numbers and ids of all emails of a workspace, by number.
async fn arrivals(server: &Server, inbox: &Inbox) -> Vec<(i64, String)> {
    let sql = "SELECT arrival, id FROM email WHERE workspace_id = $1 ORDER BY arrival";
    let read = server.app.db().read(&inbox.workspace, async move |tx| tx.all(sql, &[]).await);
    read.await.unwrap()
}

async fn events(server: &Server, inbox: &Inbox) -> Vec<(i64, String)> {
    let sql = "SELECT sequence, type FROM event WHERE workspace_id = $1 ORDER BY sequence";
    let read = server.app.db().read(&inbox.workspace, async move |tx| tx.all(sql, &[]).await);
    read.await.unwrap()
}

/// Event numbers have no gap, every message is there once or not at all, and a delivery that fails fails alone.
// rules: RECV-3, RECV-17
#[both_engines(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_deliveries_to_one_workspace_succeed_or_fail_alone(engine: Engine) {
    let server = Arc::new(Server::start(engine).await);
    let inbox = Inbox::new(&server).await;
    let mut inboxes = vec![inbox.another().await, inbox.another().await, inbox.another().await];
    new_label(&inbox, "Files", "has:attachment").await;
    let deleted = inbox.another().await;
    let gone = route(&server, &deleted).await;
    deleted.key.delete(&deleted.path).await;
    inboxes.push(inbox);
    let mut routes = Vec::new();
    for inbox in &inboxes {
        routes.push(route(&server, inbox).await);
    }
    let before = events(&server, &inboxes[0]).await.len();
    let mut running = tokio::task::JoinSet::new();
    for number in 0..240 {
        let mut to = vec![routes[number % 4].clone()];
        match number % 20 {
            7 => to.push(gone.clone()),
            11 => to = vec![gone.clone()],
            13 => to.push(routes[(number + 1) % 4].clone()),
            _ => {}
        }
        let fails = to.iter().any(|one| one.mailbox == gone.mailbox);
        let server = server.clone();
        running.spawn(async move { (number, fails, deliver(&server, to, raw(number)).await) });
    }
    let mut stored = BTreeSet::new();
    for (number, fails, outcome) in running.join_all().await {
        assert_eq!(outcome.is_err(), fails, "{number}: {outcome:?}");
        stored.extend(outcome.into_iter().flatten().map(|id| id.to_string()));
    }
    assert_eq!(stored.len(), 240 - 24 + 12);
    let arrivals = arrivals(&server, &inboxes[0]).await;
    assert_eq!(arrivals.iter().map(|(_, id)| id.clone()).collect::<BTreeSet<_>>(), stored);
    let events = events(&server, &inboxes[0]).await;
    let numbers: Vec<i64> = events.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..).take(events.len()).collect::<Vec<i64>>(), "no gap");
    let received = events.iter().filter(|(_, kind)| kind == "message.received").map(|(number, _)| *number);
    let arrived: Vec<i64> = arrivals.iter().map(|(number, _)| *number).collect();
    assert_eq!(received.collect::<Vec<_>>(), arrived, "each message has the number of its event");
    assert_eq!(events.len(), before + arrived.len());
    assert_counted(&server, &inboxes[0].workspace, "after concurrent deliveries").await;
    for inbox in &inboxes {
        let about = inbox.get("threads?limit=100").await;
        let same = about["threads"].as_array().unwrap().iter();
        let same = same.filter(|thread| thread["subject"] == "Same subject").count();
        assert!(same <= 1, "messages with one subject are one thread");
    }
}

/// A batch whose last statement fails leaves nothing, not even a number.
// rules: RECV-3
#[both_engines(flavor = "multi_thread", worker_threads = 4)]
async fn a_batch_that_fails_leaves_nothing(engine: Engine) {
    let server = Arc::new(Server::start(engine).await);
    let inbox = Inbox::new(&server).await;
    let to = route(&server, &inbox).await;
    let before = events(&server, &inbox).await;
    faults::fail_statement(&inbox.workspace, "INSERT INTO event ", 1);
    let mut running = tokio::task::JoinSet::new();
    for number in 0..20 {
        let (server, to) = (server.clone(), to.clone());
        running.spawn(async move { deliver(&server, vec![to], plain(&format!("No {number}"), "x")).await });
    }
    for outcome in running.join_all().await {
        assert_eq!(outcome.unwrap_err(), Refusal::TRY_LATER);
    }
    assert!(faults::stop_failing(&inbox.workspace));
    assert_eq!((events(&server, &inbox).await, arrivals(&server, &inbox).await), (before.clone(), vec![]));
    assert_counted(&server, &inbox.workspace, "after failed deliveries").await;
    deliver(&server, vec![to], plain("Yes", "x")).await.unwrap();
    assert_eq!(events(&server, &inbox).await.len(), before.len() + 1);
}

/// What a number of deliveries at once sends to the server.
async fn statements_of(server: &Arc<Server>, inboxes: &[Inbox], count: usize) -> StatementCounts {
    let mut routes = Vec::new();
    for inbox in inboxes {
        routes.push(route(server, inbox).await);
    }
    let before = server.app.db().statement_counts().unwrap();
    let mut running = tokio::task::JoinSet::new();
    for number in 0..count {
        let (server, to) = (server.clone(), routes[number % routes.len()].clone());
        let raw = plain(&format!("Number {number} after {}", before.statements), "x");
        running.spawn(async move { deliver(&server, vec![to], raw).await });
    }
    for outcome in running.join_all().await {
        outcome.unwrap();
    }
    server.app.db().statement_counts().unwrap().since(&before)
}

/// A message takes two round trips: one for all that it has to know, one for all that it writes and the commit. Those
/// that come together share both.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_delivery_takes_few_round_trips() {
    let server = Arc::new(Server::start(Engine::Postgres).await);
    let inbox = Inbox::new(&server).await;
    let inboxes = [inbox.another().await, inbox.another().await, inbox];
    statements_of(&server, &inboxes, 3).await;
    let mut alone = Vec::new();
    for _ in 0..21 {
        alone.push(statements_of(&server, &inboxes, 1).await);
    }
    // Beside some of them something else is asked: a route is looked up again, or credits are stored.
    alone.sort_unstable_by_key(|counts| counts.round_trips);
    let alone = alone[alone.len() / 2];
    let together = statements_of(&server, &inboxes, 200).await;
    println!("a message alone: {alone:?}; 200 together: {together:?}");
    assert!(alone.round_trips <= 2, "{alone:?}");
    assert!(alone.statements <= 20, "{alone:?}");
    // Batches are as large as it happens.
    assert!(together.round_trips <= 200, "{together:?}");
    assert!(together.statements <= 200 * 6, "{together:?}");
}
