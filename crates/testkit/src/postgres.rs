//! The PostgreSQL server of the tests, as its administrator sees it: databases are copied and dropped there.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// The address of the server.
pub(crate) fn server_url() -> String {
    std::env::var("AGENT_MAILBOX_TEST_POSTGRES")
        .expect("AGENT_MAILBOX_TEST_POSTGRES is not set: run the tests with ./scripts/test or `scripts/postgres cargo nextest run`")
}

/// Makes a database like another one that nobody works in, and gives its name.
pub(crate) async fn copy_database(original: &str) -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let name = format!("test_{}_{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
    let sql = format!("CREATE DATABASE {name} TEMPLATE {original} STRATEGY FILE_COPY");
    // Connections that were dropped take a moment to end.
    while let Err(error) = execute(&sql).await {
        let in_use = error.code() == Some(&tokio_postgres::error::SqlState::OBJECT_IN_USE);
        assert!(in_use, "{sql}: {error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    name
}

/// Drops a database, if that can be done at once.
///
/// PostgreSQL waits with it for every connection that is still being opened. One of the test's own may be: its runtime
/// stands still by now, so only the time limit would end that. What is left goes with the server.
pub(crate) async fn drop_database(name: &str) {
    // In statements of their own: a database is not dropped within a transaction.
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
