//! Wake-ups: they come after the commit, on every node, and never for what was rolled back.

use model::{MailboxId, Plan, WorkspaceId};
use store::{Db, Error, Result, Topic, Tx, Wake};
use testkit::{Engine, Server, ServerOptions, both_engines};
use tokio::sync::broadcast::Receiver;

/// Changes something, wakes, and commits or not.
async fn change(db: &Db, workspace: &WorkspaceId, mailbox: &str, commits: bool) {
    let mailbox = MailboxId::from(mailbox);
    let outcome: Result<()> = db
        .write(workspace, async move |tx: &mut Tx| {
            tx.run(
                "INSERT INTO usage_day (workspace_id, day, metric, amount) VALUES ($1, 1, $2, 1)",
                &[(&mailbox).into()],
            )
            .await?;
            tx.wake(Topic::Document, Some(&mailbox));
            if commits { Ok(()) } else { Err(Error::Unavailable("refused".into())) }
        })
        .await;
    assert_eq!(outcome.is_ok(), commits);
}

/// The mailboxes of the next wake-ups, up to the last.
async fn heard(wakes: &mut Receiver<Wake>, last: &str) -> Vec<String> {
    let mut all = Vec::new();
    while all.last().is_none_or(|mailbox| mailbox != last) {
        let wake = wakes.recv().await.unwrap();
        all.push(wake.mailbox.unwrap().to_string());
    }
    all
}

#[both_engines]
async fn only_what_is_committed_wakes(engine: Engine) {
    let server = Server::start(engine).await;
    let workspace = server.tenant(Plan::Enterprise).await.workspace;
    let db = server.app.db();
    let mut wakes = db.listen(Topic::Document);
    for (mailbox, commits) in [("mbx_1", true), ("mbx_2", false), ("mbx_3", true)] {
        change(db, &workspace, mailbox, commits).await;
    }
    assert_eq!(heard(&mut wakes, "mbx_3").await, ["mbx_1", "mbx_3"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_nodes_are_woken_and_none_twice() {
    let one = Server::start(Engine::Postgres).await;
    let two = one.another_node(ServerOptions { seed: 2, ..ServerOptions::default() }).await;
    let workspace = one.tenant(Plan::Enterprise).await.workspace;
    let mut wakes = [one.app.db().listen(Topic::Document), two.app.db().listen(Topic::Document)];
    // The node may not listen yet; from the first that it hears on it does.
    let mut number = 0;
    while wakes[1].is_empty() {
        change(one.app.db(), &workspace, &format!("mbx_early_{number}"), true).await;
        number += 1;
        tokio::task::yield_now().await;
    }
    for mailbox in ["mbx_1", "mbx_2", "mbx_3", "mbx_last"] {
        change(one.app.db(), &workspace, mailbox, mailbox != "mbx_2").await;
    }
    for (node, wakes) in wakes.iter_mut().enumerate() {
        let mut late = heard(wakes, "mbx_last").await;
        late.retain(|mailbox| !mailbox.starts_with("mbx_early"));
        late.sort();
        assert!(
            late.contains(&"mbx_last".to_owned()) && !late.contains(&"mbx_2".to_owned()),
            "{node}: {late:?}"
        );
        let mut once = late.clone();
        once.dedup();
        assert_eq!(once, late, "node {node}");
    }
}

/// Commits a wake-up of a topic.
async fn wake(db: &Db, workspace: &WorkspaceId, topic: Topic, mailbox: &str) {
    let mailbox = MailboxId::from(mailbox);
    let outcome: Result<u64> = db
        .write(workspace, async move |tx: &mut Tx| {
            tx.wake(topic, Some(&mailbox));
            tx.run("UPDATE usage_day SET amount = 1 WHERE workspace_id = $1 AND day = 1", &[]).await
        })
        .await;
    outcome.unwrap();
}

/// Where a node has workers for what happened there, the others need not look: their workers hear nothing of it, and those
/// who wait for it do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_hear_of_other_nodes_only_where_those_have_none() {
    let one = Server::start(Engine::Postgres).await;
    let two = one.another_node(ServerOptions { seed: 2, ..ServerOptions::default() }).await;
    let workspace = one.tenant(Plan::Enterprise).await.workspace;
    let (here, there) = (one.app.db(), two.app.db());
    let (mut waiting, mut working) = (there.listen(Topic::Document), there.listen_for_work(Topic::Document));
    let mut queue = there.listen_for_work(Topic::Queue);
    let mut number = 0;
    while waiting.is_empty() {
        wake(here, &workspace, Topic::Document, &format!("mbx_early_{number}")).await;
        number += 1;
        tokio::task::yield_now().await;
    }
    let of_one = (here.listen_for_work(Topic::Document), here.listen_for_work(Topic::Queue));
    wake(here, &workspace, Topic::Queue, "mbx_queue").await;
    wake(here, &workspace, Topic::Document, "mbx_1").await;
    heard(&mut waiting, "mbx_1").await;
    drop(of_one);
    wake(here, &workspace, Topic::Queue, "mbx_queue_2").await;
    wake(here, &workspace, Topic::Document, "mbx_2").await;
    heard(&mut waiting, "mbx_2").await;
    let mut worked = heard(&mut working, "mbx_2").await;
    worked.retain(|mailbox| !mailbox.starts_with("mbx_early"));
    assert_eq!(worked, ["mbx_2"]);
    assert_eq!(heard(&mut queue, "mbx_queue_2").await, ["mbx_queue_2"]);
    // A node with more than it can do asks the others.
    here.wake_other_nodes(Topic::Queue);
    assert_eq!(queue.recv().await.unwrap().mailbox, None);
}
