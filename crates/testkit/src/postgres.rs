//! The tests' PostgreSQL server, as its administrator: copies and drops databases.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use store::PostgresLocation;

/// The URL of the server.
pub(crate) fn server_url() -> String {
    std::env::var("AGENT_MAILBOX_TEST_POSTGRES")
        .expect("AGENT_MAILBOX_TEST_POSTGRES is not set: run the tests with ./scripts/test or `scripts/postgres cargo nextest run`")
}

/// A database of the server as nodes use it: through a pooler, if all tests are to do that.
pub(crate) fn location(database: &str) -> PostgresLocation {
    if std::env::var("AGENT_MAILBOX_TEST_THROUGH_POOLER").is_ok_and(|through| through == "1") {
        return location_behind_pooler(database);
    }
    PostgresLocation::new(url_of(&server_url(), database))
}

/// A database of the server behind the pooler of `scripts/pgbouncer`.
pub(crate) fn location_behind_pooler(database: &str) -> PostgresLocation {
    let pooler = std::env::var("AGENT_MAILBOX_TEST_POOLER").expect(
        "AGENT_MAILBOX_TEST_POOLER is not set: run the tests with ./scripts/test or \
         `scripts/postgres scripts/pgbouncer cargo nextest run`",
    );
    let prepares =
        std::env::var("AGENT_MAILBOX_TEST_POOLER_PREPARES").is_ok_and(|prepares| prepares == "true");
    PostgresLocation {
        listen_url: Some(url_of(&server_url(), database)),
        prepared_statements: prepares,
        ..PostgresLocation::new(url_of(&pooler, database))
    }
}

fn url_of(server: &str, database: &str) -> String {
    let mut url: url::Url = server.parse().unwrap();
    url.set_path(database);
    url.set_query(Some("sslmode=disable"));
    url.into()
}

/// Copies a database without connections, and returns the copy's name.
pub(crate) async fn copy_database(original: &str) -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let name = format!("test_{}_{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
    let sql = format!("CREATE DATABASE {name} TEMPLATE {original} STRATEGY FILE_COPY");
    // Dropped connections take a moment to close.
    while let Err(error) = execute(&sql).await {
        let in_use = error.code() == Some(&tokio_postgres::error::SqlState::OBJECT_IN_USE);
        assert!(in_use, "{sql}: {error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    name
}

/// Drops a database, if that is possible at once.
///
/// PostgreSQL would wait for every connection that is still being opened. One of the test's own may be: its runtime
/// no longer runs, so only the timeout would end that. Leftovers are removed with the server.
pub(crate) async fn drop_database(name: &str) {
    // In separate statements: a database cannot be dropped inside a transaction.
    let (client, connection) = tokio_postgres::connect(&server_url(), tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute("SET statement_timeout = '1s'").await.unwrap();
    let _ = client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
    drop(client);
    let _ = connection.await;
}

/// Runs a statement as the administrator of the test databases.
pub(crate) async fn execute(
    sql: &str,
) -> Result<Vec<tokio_postgres::SimpleQueryMessage>, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(&server_url(), tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let outcome = client.simple_query(sql).await;
    drop(client);
    let _ = connection.await;
    outcome
}
