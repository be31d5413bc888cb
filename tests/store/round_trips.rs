//! Reads on PostgreSQL: how many round trips they cost, and what their transactions see.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, future::join_all};
use model::{Plan, WorkspaceId};
use serde_json::{Value, json};
use store::{Db, Error, Param, Traffic};
use testkit::{Engine, Server, Tenant};
use tokio::sync::oneshot;

/// Runs of a call, more than there are connections: the first on each connection prepares its statements.
const RUNS: usize = 40;

/// The round trips of a whole call over HTTP, once its connection knows the statements.
async fn round_trips(tenant: &Tenant, path: &str) -> usize {
    let mut least = usize::MAX;
    for _ in 0..RUNS {
        let (answer, traffic) = Traffic::of(tenant.key.get(path)).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        least = least.min(traffic.round_trips);
    }
    least
}

fn id(value: &Value) -> &str {
    value["id"].as_str().unwrap()
}

/// A mailbox with two threads, a label, and a folder with an email in it.
async fn furnish(server: &Server, tenant: &Tenant) -> (String, String) {
    let key = &tenant.key;
    let mailbox = key.post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
    let inside = format!("/api/v1/mailboxes/{}", id(&mailbox));
    key.post(&format!("{inside}/custom-labels"), json!({ "name": "Label" })).await.ok();
    let folder = key.post(&format!("{inside}/folders"), json!({ "name": "Own" })).await.ok();
    let mut last = String::new();
    for number in 0..4 {
        let raw = format!(
            "From: a@remote.test\r\nSubject: Plan {}\r\nMessage-ID: <{number}@remote.test>\r\n\r\nspoons\r\n",
            number % 2
        );
        last = server.receive(mailbox["email"].as_str().unwrap(), raw).await.to_string();
    }
    let label = json!({ "custom_labels": ["label"] });
    key.put(&format!("{inside}/emails/{last}"), label).await.ok();
    key.post(&format!("{inside}/emails/{last}/move"), json!({ "folderId": id(&folder) })).await.ok();
    (inside, last)
}

#[tokio::test]
async fn reads_cost_one_round_trip_and_pages_at_most_two() {
    let server = Server::start(Engine::Postgres).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let (inside, email) = furnish(&server, &tenant).await;
    let shown = tenant.key.get(&format!("{inside}/emails/{email}")).await.ok();
    let thread = shown["thread_id"].as_str().unwrap().to_owned();
    let folder = shown["folder_id"].as_str().unwrap().to_owned();
    let one = [
        format!("emails/{email}"),
        format!("emails/{email}?agent_safe_content=true"),
        format!("emails/{email}/raw"),
        format!("emails/{email}/verification"),
        "folders".to_owned(),
        "custom-labels".to_owned(),
    ];
    let two = [
        "emails".to_owned(),
        "emails?max_body_chars=100".to_owned(),
        "emails?max_body_chars=100&agent_safe_content=true".to_owned(),
        "emails?custom_label=label&max_body_chars=100".to_owned(),
        format!("emails?folder={folder}"),
        "emails?threaded=true&max_body_chars=100".to_owned(),
        "emails?threaded=true&is_read=false&max_body_chars=100".to_owned(),
        "threads".to_owned(),
        format!("threads/{thread}"),
        format!("threads/{thread}?before={email}"),
        format!("emails/{email}/context"),
        "search?query=spoons".to_owned(),
        "search?query=spoons&max_body_chars=100".to_owned(),
        "search?query=label:label".to_owned(),
        "search?query=spoons&folder=inbox".to_owned(),
    ];
    for (paths, most) in [(&one[..], 1), (&two[..], 2)] {
        for path in paths {
            let path = format!("{inside}/{path}");
            let cost = round_trips(&tenant, &path).await;
            assert!((1..=most).contains(&cost), "{path}: {cost} round trips");
        }
    }
}

/// The workspace that row-level security compares with, and that of the transaction.
async fn settings(db: &Db, workspace: &WorkspaceId) -> store::Result<(Option<String>, String)> {
    let sql = "SELECT current_setting('mailbox.workspace', true), CAST($1 AS TEXT)";
    db.read(workspace, async move |tx| Ok(tx.one(sql, &[]).await?.unwrap_or_default())).await
}

/// Many workspaces share few connections. Some of their transactions fail, and some callers go away meanwhile.
// rules: STORE-10
#[tokio::test(flavor = "multi_thread")]
async fn no_statement_meets_the_setting_of_another_workspace() {
    let server = Server::start(Engine::Postgres).await;
    let db = Arc::new(server.app.db().clone());
    let tasks = (0..64).map(|number| {
        let (db, workspace) = (db.clone(), WorkspaceId::from(format!("ws_{number}").as_str()));
        tokio::spawn(async move {
            for turn in 0..40 {
                match (number + turn) % 4 {
                    // The caller goes away, before or after the statements were sent.
                    0 => drop(settings(&db, &workspace).now_or_never()),
                    1 => {
                        let hurry = Duration::from_micros(turn * 20);
                        drop(tokio::time::timeout(hurry, settings(&db, &workspace)).await);
                    }
                    2 => {
                        let fails =
                            async |tx: &mut store::Tx| tx.run("SELECT 1 / 0 WHERE $1 <> ''", &[]).await;
                        assert!(db.read(&workspace, fails).await.is_err());
                    }
                    _ => {}
                }
                let (setting, own) = settings(&db, &workspace).await.unwrap();
                assert_eq!(setting.as_ref(), Some(&own));
                assert_eq!(own, workspace.as_str());
            }
        })
    });
    for ended in join_all(tasks).await {
        ended.unwrap();
    }
    // Nothing of it stays on a connection.
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
               AND state = 'idle in transaction' AND pid <> pg_backend_pid()";
    loop {
        let open = db.system_read(async |tx| tx.one::<(i64,)>(sql, &[]).await).await.unwrap();
        if open == Some((0,)) {
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn all_statements_of_a_read_see_one_snapshot_and_none_writes() {
    let server = Server::start(Engine::Postgres).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let db = server.app.db();
    let count = "SELECT count(*) FROM mailbox WHERE workspace_id = $1";
    let (seen, go_on) = (oneshot::channel::<()>(), oneshot::channel::<()>());
    let read = db.read(&tenant.workspace, async move |tx| {
        let before: Option<(i64,)> = tx.one(count, &[]).await?;
        let _ = seen.0.send(());
        let _ = go_on.1.await;
        Ok::<_, Error>((before, tx.one::<(i64,)>(count, &[]).await?))
    });
    let write = async {
        seen.1.await.unwrap();
        tenant.key.post("/api/v1/mailboxes", json!({ "name": "New" })).await.ok();
        go_on.0.send(()).unwrap();
    };
    let (read, ()) = tokio::join!(read, write);
    let (before, after) = read.unwrap();
    assert_eq!(before, after);
    let now = db.read(&tenant.workspace, async |tx| tx.one::<(i64,)>(count, &[]).await).await.unwrap();
    assert_ne!(now, after);
    let rename = "UPDATE mailbox SET name = $2 WHERE workspace_id = $1";
    let written = db.read(&tenant.workspace, async |tx| tx.run(rename, &[Param::from("X")]).await).await;
    assert!(written.is_err());
}
