//! What nodes say about themselves, and what PostgreSQL says about connections, standbys and indexes.

use std::time::Duration;

use model::Timestamp;
use store::{
    DatabaseLocation, Db, PostgresLocation, SystemTx,
    concurrent_indexes::{self, ConcurrentIndex, UnusableState},
    nodes::{self, NodeAnnouncement, NodeFigures, NodeRecord},
    replication,
};
use testkit::{Engine, Server, both_engines};
use tokio::sync::oneshot;

fn announcement(id: &str, address: &str) -> NodeAnnouncement {
    NodeAnnouncement {
        id: id.to_owned(),
        host: "machine".to_owned(),
        process: 7,
        version: "0.9.1".to_owned(),
        schema_version: 36,
        started_at: Timestamp::from_micros(1),
        sends: true,
        figures: NodeFigures {
            address: address.to_owned(),
            pool_size: 20,
            pool_in_use: 3,
            pool_wait: 5000,
            server_connections: 21,
            sending: 4,
            settings: [("plans".to_owned(), "abc".to_owned())].into(),
        },
    }
}

async fn announce(db: &Db, said: NodeAnnouncement) {
    let done: store::Result<()> = db.system_write(async move |tx| nodes::announce(tx, &said, 0).await).await;
    done.unwrap();
}

async fn list(db: &Db) -> Vec<NodeRecord> {
    let found: store::Result<_> = db.system_read(async |tx| nodes::list(tx).await).await;
    found.unwrap()
}

async fn run(db: &Db, sql: &'static str) {
    let done: store::Result<u64> =
        db.system_write(async move |tx: &mut SystemTx| tx.run(sql, &[]).await).await;
    done.unwrap();
}

#[both_engines]
async fn a_node_is_listed_with_its_figures(engine: Engine) {
    let server = Server::start(engine).await;
    let db = server.app.db();
    let mut said = announcement("one", "10.0.0.1:8080");
    announce(db, said.clone()).await;
    said.figures.pool_in_use = 9;
    said.figures.settings.clear();
    announce(db, said).await;
    let found = list(db).await;
    if engine == Engine::Sqlite {
        // One process has the store alone.
        assert!(found.is_empty() && db.take_pool_figures().is_none());
        return;
    }
    let figures = &found[0].figures;
    assert_eq!((found.len(), found[0].sends, figures.address.as_str()), (1, true, "10.0.0.1:8080"));
    assert_eq!((figures.pool_size, figures.pool_in_use, figures.pool_wait), (20, 9, 5000));
    assert_eq!((figures.server_connections, figures.sending, figures.settings.len()), (21, 4, 0));
}

#[tokio::test]
async fn a_node_that_was_replaced_is_forgotten() {
    let server = Server::start(Engine::Postgres).await;
    let db = server.app.db();
    for (id, address) in [("old", "10.0.0.1:8080"), ("other", "10.0.0.1:8081"), ("doorless", "")] {
        announce(db, announcement(id, address)).await;
    }
    let ids = async || -> Vec<String> {
        let mut ids: Vec<String> = list(db).await.into_iter().map(|node| node.id).collect();
        ids.sort();
        ids
    };
    // Both may run for a moment, such as when one port is handed over.
    announce(db, announcement("new", "10.0.0.1:8080")).await;
    assert_eq!(ids().await, ["doorless", "new", "old", "other"]);
    run(db, "UPDATE node SET seen_at = seen_at - 40000000 WHERE id <> 'new'").await;
    announce(db, announcement("new", "10.0.0.1:8080")).await;
    announce(db, announcement("another", "")).await;
    assert_eq!(ids().await, ["another", "doorless", "new", "other"]);
}

/// How long calls wait for a connection of the pool is measured, and told once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_for_a_connection_is_measured() {
    const HELD: Duration = Duration::from_millis(120);
    let server = Server::start(Engine::Postgres).await;
    let DatabaseLocation::Postgres(location) = server.location().clone() else { panic!("not PostgreSQL") };
    let db = Db::open(&DatabaseLocation::Postgres(PostgresLocation { pool: 1, ..location })).await.unwrap();
    let figures = db.take_pool_figures().unwrap();
    assert_eq!((figures.size, figures.in_use), (1, 0));
    assert!(figures.longest_wait < HELD, "{figures:?}");
    let (began, has_begun) = oneshot::channel();
    let holding = tokio::spawn({
        let db = db.clone();
        async move {
            let hold = db.system_write(async move |tx: &mut SystemTx| {
                tx.run("UPDATE schema_migration SET name = name WHERE version = 1", &[]).await?;
                let _ = began.send(());
                tokio::time::sleep(HELD * 2).await;
                Ok::<_, store::Error>(())
            });
            hold.await.unwrap();
        }
    });
    has_begun.await.unwrap();
    assert_eq!(db.take_pool_figures().unwrap().in_use, 1);
    assert!(list(&db).await.is_empty());
    holding.await.unwrap();
    let waited = db.take_pool_figures().unwrap().longest_wait;
    assert!(waited >= HELD, "{waited:?}");
    assert!(db.take_pool_figures().unwrap().longest_wait < HELD);
}

#[both_engines]
async fn connections_and_standbys_are_those_of_postgresql(engine: Engine) {
    let server = Server::start(engine).await;
    let found: store::Result<_> = server
        .app
        .db()
        .system_read(async |tx| {
            Ok((replication::max_connections(tx).await?, replication::standbys(tx).await?))
        })
        .await;
    let (allowed, _standbys) = found.expect("an ordinary role may ask");
    assert_eq!(allowed.is_some(), engine == Engine::Postgres);
    assert!(allowed.is_none_or(|allowed| allowed > 20), "{allowed:?}");
}

#[both_engines]
async fn an_index_that_is_missing_or_was_interrupted_is_found(engine: Engine) {
    let server = Server::start(engine).await;
    let db = server.app.db();
    let wanted = ["absent", "broken", "lease_holder"]
        .map(|name| ConcurrentIndex::parse(&format!("CREATE INDEX {name} ON lease (node_id);")).unwrap());
    let unusable = async || {
        let wanted = wanted.clone();
        let found: store::Result<Vec<(String, UnusableState)>> =
            db.system_read(async move |tx| concurrent_indexes::unusable(tx, &wanted).await).await;
        found.unwrap()
    };
    if engine == Engine::Sqlite {
        // It builds indexes with the migration.
        assert!(unusable().await.is_empty());
        return;
    }
    db.build_index(&wanted[2]).await.unwrap();
    run(db, "INSERT INTO lease (name, node_id, expires_at) VALUES ('a', 'same', 0), ('b', 'same', 0)").await;
    // The build fails halfway, and leaves what it has.
    let failing =
        ConcurrentIndex::parse("CREATE INDEX broken ON lease ((1 / (expires_at + length(name) - 1)));")
            .unwrap();
    assert!(db.build_index(&failing).await.is_err());
    let expected = [("absent", UnusableState::Missing), ("broken", UnusableState::Interrupted)];
    let expected = expected.map(|(name, state)| (name.to_owned(), state));
    // The server reports the failure before it has ended the build.
    while unusable().await.iter().any(|(_, state)| *state == UnusableState::Building) {
        tokio::task::yield_now().await;
    }
    assert_eq!(unusable().await, expected);
    db.build_index(&wanted[1]).await.unwrap();
    assert_eq!(unusable().await, [("absent".to_owned(), UnusableState::Missing)]);
}
