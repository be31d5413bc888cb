//! Mail on its way into the index for search: it waits for others, and nothing of that is seen or lost.

use std::time::Duration;

use model::EmailId;
use operations::storage;
use serde_json::json;
use store::search;
use testkit::{Engine, Server};

use super::mails::{Inbox, plain, texts};

/// How many texts the index holds, and how many wait.
async fn indexed_and_waiting(server: &Server) -> (i64, i64) {
    let sql = "SELECT (SELECT count(*) FROM email_text), (SELECT count(*) FROM email_text_pending)";
    let read = server.app.db().system_read(async move |tx| tx.one(sql, &[]).await);
    let found: Result<Option<(i64, i64)>, store::Error> = read.await;
    found.unwrap().unwrap()
}

async fn receive_some(server: &Server, inbox: &Inbox, count: usize) -> Vec<EmailId> {
    let mut ids = Vec::new();
    for number in 0..count {
        ids.push(server.receive(&inbox.address, plain(&format!("Number {number}"), "needle")).await);
    }
    ids
}

/// Puts the store into the state that a process leaves that ended before it indexed the last mails.
async fn lose_texts(server: &Server) {
    server.app.db().index_texts().await.unwrap();
    let lose = server.app.db().system_write(async |tx| {
        tx.run("DELETE FROM email_text", &[]).await?;
        tx.run(
            "INSERT INTO email_text_pending (id, workspace_id, mailbox_id, email_id)
             SELECT text_row, workspace_id, mailbox_id, id FROM email",
            &[],
        )
        .await
    });
    let lost: Result<u64, store::Error> = lose.await;
    lost.unwrap();
}

#[tokio::test]
async fn texts_are_indexed_together_and_by_themselves() {
    let server = Server::start(Engine::Sqlite).await;
    let inbox = Inbox::new(&server).await;
    receive_some(&server, &inbox, 40).await;
    let (indexed, waiting) = indexed_and_waiting(&server).await;
    assert_eq!(indexed + waiting, 40);
    assert!(waiting < 32, "no more than some wait: {waiting}");
    for _ in 0..200 {
        if indexed_and_waiting(&server).await == (40, 0) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(indexed_and_waiting(&server).await, (40, 0), "nobody asked for them");
    server.receive(&inbox.address, plain("Last", "needle")).await;
    assert_eq!(inbox.search("needle").await.len(), 41, "who searches waits for the index");
    assert_eq!(indexed_and_waiting(&server).await, (41, 0));
}

/// The parts of the index.
async fn parts(server: &Server) -> i64 {
    let sql = "SELECT count(DISTINCT segid) FROM email_text_idx";
    let read = server.app.db().system_read(async move |tx| tx.one(sql, &[]).await);
    let found: Result<Option<(i64,)>, store::Error> = read.await;
    found.unwrap().unwrap().0
}

#[tokio::test]
async fn parts_of_the_index_are_merged_and_lose_nothing() {
    let server = Server::start(Engine::Sqlite).await;
    let inbox = Inbox::new(&server).await;
    let mut ids = Vec::new();
    for _ in 0..7 {
        ids.extend(receive_some(&server, &inbox, 3).await);
        server.app.db().index_texts().await.unwrap();
    }
    assert!(parts(&server).await > 3, "one for each time");
    inbox.delete(&format!("emails/{}?permanent=true", ids[4])).await.ok();
    storage::merge_search(&server.app, || true).await.unwrap();
    assert!(parts(&server).await <= 3, "no two of a size: {}", parts(&server).await);
    assert_eq!(inbox.search("needle").await.len(), 20);
    storage::merge_search(&server.app, || true).await.unwrap();
    assert_eq!(inbox.search("needle").await.len(), 20, "nothing is left to do");
}

#[tokio::test]
async fn what_goes_before_it_is_indexed_leaves_nothing_there() {
    let server = Server::start(Engine::Sqlite).await;
    let inbox = Inbox::new(&server).await;
    let ids = receive_some(&server, &inbox, 3).await;
    inbox.delete(&format!("emails/{}?permanent=true", ids[1])).await.ok();
    server.app.db().index_texts().await.unwrap();
    assert_eq!(indexed_and_waiting(&server).await, (2, 0));
    assert_eq!(inbox.search("needle").await, ["Number 2", "Number 0"]);
}

/// The last of all is the one whose number could be given to the next.
#[tokio::test]
async fn what_comes_after_it_is_not_mistaken_for_it() {
    let server = Server::start(Engine::Sqlite).await;
    let inbox = Inbox::new(&server).await;
    let gone = server.receive(&inbox.address, plain("Gone", "old needle")).await;
    inbox.delete(&format!("emails/{gone}?permanent=true")).await.ok();
    server.receive(&inbox.address, plain("New", "new needle")).await;
    assert_eq!(inbox.search("needle").await, ["New"]);
    assert_eq!(inbox.search("old").await, Vec::<String>::new());

    let draft = inbox.post("drafts", json!({ "subject": "Draft", "body": "first words" })).await.ok();
    let again = json!({ "draft_id": draft["id"], "subject": "Draft", "body": "second words" });
    inbox.post("drafts", again).await.ok();
    let found = inbox.get("search?query=second&folder=draft").await;
    assert_eq!(texts(&found["emails"], "subject"), ["Draft"], "{found}");
    assert_eq!(inbox.get("search?query=first&folder=draft").await["emails"], json!([]));
    assert_eq!(indexed_and_waiting(&server).await, (2, 0));
}

#[tokio::test]
async fn a_single_text_that_a_process_left_is_indexed() {
    let server = Server::start(Engine::Sqlite).await;
    let inbox = Inbox::new(&server).await;
    receive_some(&server, &inbox, 1).await;
    lose_texts(&server).await;
    storage::index_lost(&server.app, i64::MAX, usize::MAX).await.unwrap();
    assert_eq!(inbox.search("needle").await, ["Number 0"]);
    assert_eq!(indexed_and_waiting(&server).await, (1, 0));
}

#[tokio::test]
async fn texts_that_a_process_left_are_indexed_once() {
    let server = Server::start(Engine::Sqlite).await;
    let inbox = Inbox::new(&server).await;
    let ids = receive_some(&server, &inbox, 3).await;
    lose_texts(&server).await;
    assert_eq!(inbox.search("needle").await, Vec::<String>::new(), "their texts are lost");
    inbox.delete(&format!("emails/{}?permanent=true", ids[0])).await.ok();
    assert_eq!(indexed_and_waiting(&server).await, (0, 2), "the mark goes with its mail");
    let new = server.receive(&inbox.address, plain("New", "needle")).await;
    assert_eq!(inbox.search("needle").await, ["New"], "its row is none of theirs");

    assert_eq!(storage::index_lost(&server.app, 0, usize::MAX).await.unwrap(), 3, "these are too young");
    assert_eq!(inbox.search("needle").await, ["New"]);
    storage::index_lost(&server.app, i64::MAX, usize::MAX).await.unwrap();
    assert_eq!(
        inbox.search("needle").await,
        ["New", "Number 2", "Number 1"],
        "in the order of their arrival"
    );
    assert_eq!(indexed_and_waiting(&server).await, (3, 0));
    storage::index_lost(&server.app, i64::MAX, usize::MAX).await.unwrap();
    assert_eq!(indexed_and_waiting(&server).await, (3, 0));
    inbox.delete(&format!("emails/{new}?permanent=true")).await.ok();
    assert_eq!(inbox.search("needle").await.len(), 2);
}

#[tokio::test]
async fn an_index_made_anew_knows_what_waited() {
    let server = Server::start(Engine::Sqlite).await;
    let inbox = Inbox::new(&server).await;
    receive_some(&server, &inbox, 3).await;
    assert_eq!(storage::rebuild_search(&server.app, |_| {}).await.unwrap(), 3);
    server.app.db().index_texts().await.unwrap();
    assert_eq!(indexed_and_waiting(&server).await, (3, 0));
    assert_eq!(inbox.search("needle").await.len(), 3);
    let coverage = server.app.db().system_read(async |tx| search::coverage(tx).await);
    let coverage: Result<(i64, i64), store::Error> = coverage.await;
    assert_eq!(coverage.unwrap(), (3, 3));
}

/// How many texts are not in PostgreSQL's index yet.
async fn marked(server: &Server) -> i64 {
    server.app.db().system_read(async |tx| search::count_marked(tx, 1000).await).await.unwrap()
}

#[tokio::test]
async fn postgres_finds_the_same_before_and_after_texts_are_indexed() {
    let server = Server::start(Engine::Postgres).await;
    let inbox = Inbox::new(&server).await;
    let other = inbox.another().await;
    for number in 0..30 {
        let text = if number % 3 == 0 { "needle and thread" } else { "hay" };
        server.receive(&inbox.address, plain(&format!("Number {number}"), text)).await;
        server.receive(&other.address, plain("Elsewhere", "needle")).await;
        if number == 9 {
            storage::index_marked(&server.app).await.unwrap();
            assert_eq!(marked(&server).await, 0);
        }
    }
    assert_eq!(marked(&server).await, 40);
    let queries = ["needle", "\"needle and thread\"", "hay -needle", "subject:number thr*", "needle hay"];
    let mut before = Vec::new();
    for query in queries {
        before.push(inbox.search(query).await);
    }
    assert_eq!(before.iter().map(Vec::len).collect::<Vec<_>>(), [10, 10, 20, 10, 0]);
    storage::index_marked(&server.app).await.unwrap();
    assert_eq!(marked(&server).await, 0);
    for (query, before) in queries.iter().zip(before) {
        assert_eq!(inbox.search(query).await, before, "{query}");
    }
}
