//! A PgBouncer in transaction mode between nodes and PostgreSQL: transactions of all clients take turns on a few server
//! connections, and none of them may meet what another one set there.

use model::{Plan, WorkspaceId};
use store::{Db, SystemTx, Topic, Tx};
use testkit::{Engine, Server, Tenant};

/// Clients at a time: many more than PgBouncer has connections to the server.
const CLIENTS: usize = 24;
/// Transactions of each.
const TRANSACTIONS: usize = 40;
/// Starts of each.
const STARTS: usize = 5;

async fn behind_pooler(server: &Server) -> Db {
    Db::open(&server.location_behind_pooler()).await.unwrap()
}

/// A tenant with a mailbox.
async fn tenant(server: &Server) -> Tenant {
    let tenant = server.tenant(Plan::Enterprise).await;
    tenant.key.post("/api/v1/mailboxes", serde_json::json!({ "name": "A" })).await.ok();
    tenant
}

/// The workspace that a transaction is set to, and the workspaces whose mailboxes it can see.
async fn visible(tx: &mut Tx) -> store::Result<(String, Vec<String>)> {
    let set = tx.one::<(String,)>("SELECT current_setting('mailbox.workspace')", &[]).await?;
    let seen = tx.all::<(String,)>("SELECT DISTINCT workspace_id FROM mailbox WHERE $1 <> ''", &[]).await?;
    Ok((set.unwrap_or_default().0, seen.into_iter().map(|(id,)| id).collect()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_meets_the_setting_of_another_workspace() {
    let server = Server::start(Engine::Postgres).await;
    let (one, other) = (tenant(&server).await, tenant(&server).await);
    let (node, neighbour) = (behind_pooler(&server).await, behind_pooler(&server).await);
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        let own: WorkspaceId = if client % 2 == 0 { &one } else { &other }.workspace.clone();
        let db = if client % 3 == 0 { neighbour.clone() } else { node.clone() };
        clients.spawn(async move {
            for turn in 0..TRANSACTIONS {
                let seen = match turn % 3 {
                    0 => db.write(&own, async |tx: &mut Tx| visible(tx).await).await,
                    1 => db.read(&own, async |tx: &mut Tx| visible(tx).await).await,
                    _ => {
                        // A transaction that fails halfway leaves nothing behind either.
                        let failing = db.write(&own, async |tx: &mut Tx| {
                            tx.run("SELECT 1 / 0 WHERE $1 <> ''", &[]).await
                        });
                        assert!(failing.await.is_err());
                        db.short_read(&own, async |tx: &mut Tx| visible(tx).await).await
                    }
                };
                assert_eq!(seen.unwrap(), (own.to_string(), vec![own.to_string()]));
            }
        });
    }
    while let Some(done) = clients.join_next().await {
        done.unwrap();
    }
}

/// What a node asks when it starts is asked outside of transactions, so each question goes to any connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_at_once_do_not_disturb_each_other() {
    let server = Server::start(Engine::Postgres).await;
    let mut starting = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let location = server.location_behind_pooler();
        starting.spawn(async move {
            for _ in 0..STARTS {
                Db::open(&location).await.unwrap();
            }
        });
    }
    while let Some(done) = starting.join_next().await {
        done.unwrap();
    }
}

/// What a transaction needs is set for it alone, and no session of the server keeps it.
#[tokio::test]
async fn a_transaction_brings_its_limits_and_takes_them_along() {
    let server = Server::start(Engine::Postgres).await;
    let db = behind_pooler(&server).await;
    let limits = async |tx: &mut SystemTx| {
        let sql = "SELECT current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout')";
        tx.one::<(String, String)>(sql, &[]).await
    };
    let inside: store::Result<_> = db.system_read(limits).await;
    assert_eq!(inside.unwrap(), Some(("15s".to_owned(), "10s".to_owned())));
    let direct: store::Result<_> = server.app.db().system_read(limits).await;
    assert_eq!(direct.unwrap(), Some(("15s".to_owned(), "10s".to_owned())));
    let store::DatabaseLocation::Postgres(location) = server.location_behind_pooler() else { unreachable!() };
    let (client, connection) = tokio_postgres::connect(&location.url, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    // Of all server connections.
    for _ in 0..20 {
        let rows = client.simple_query(
            "SELECT current_setting('statement_timeout'), current_setting('mailbox.workspace', true)",
        );
        for message in rows.await.unwrap() {
            if let tokio_postgres::SimpleQueryMessage::Row(row) = message {
                assert_eq!((row.get(0), row.get(1).unwrap_or_default()), (Some("0"), ""));
            }
        }
    }
    drop(client);
    let _ = connection.await;
}

/// LISTEN goes around the pooler, so that a node hears of what another one has stored.
#[tokio::test]
async fn a_wake_up_reaches_a_node_behind_the_pooler() {
    let server = Server::start(Engine::Postgres).await;
    let (node, neighbour) = (behind_pooler(&server).await, behind_pooler(&server).await);
    let tenant = tenant(&server).await;
    let mut wakes = neighbour.listen(Topic::Queue);
    // Its LISTEN may come later than the first wake-up.
    let heard = async {
        loop {
            let write = async |tx: &mut Tx| {
                tx.wake(Topic::Queue, None);
                tx.run("SELECT 1 WHERE $1 <> ''", &[]).await
            };
            node.write(&tenant.workspace, write).await.unwrap();
            let wake = tokio::time::timeout(std::time::Duration::from_millis(200), wakes.recv()).await;
            if let Ok(Ok(wake)) = wake {
                return wake;
            }
        }
    };
    let wake = tokio::time::timeout(std::time::Duration::from_secs(30), heard).await.expect("it is heard");
    assert_eq!(wake.workspace, tenant.workspace);
}
