//! A PostgreSQL that cannot be used is named when it is opened, with what to do.

use std::sync::atomic::{AtomicU32, Ordering};

use store::{DatabaseLocation, Db, PostgresLocation};
use tokio_postgres::NoTls;
use url::Url;

/// The server as its administrator, and names of this test's own.
struct Administrator {
    url: Url,
    name: String,
}

impl Administrator {
    fn new() -> Self {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let url = std::env::var("AGENT_MAILBOX_TEST_POSTGRES_SUPERUSER")
            .expect("run the tests with ./scripts/test");
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        Self { url: url.parse().unwrap(), name: format!("needs_{}_{number}", std::process::id()) }
    }

    async fn run_in(&self, database: &str, sql: &str) {
        let mut url = self.url.clone();
        url.set_path(database);
        let (client, connection) = tokio_postgres::connect(url.as_str(), NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        for statement in sql.replace("{name}", &self.name).split(';') {
            client.batch_execute(statement).await.unwrap();
        }
        drop(client);
        let _ = connection.await;
    }

    async fn run(&self, sql: &str) {
        self.run_in("postgres", sql).await;
    }

    /// Why the store does not open as a role.
    async fn fault(&self, role: &str, password: Option<&str>, database: &str) -> String {
        let fault = self.open(role, password, database).await.err().expect("it opens").to_string();
        assert!(!fault.contains('\n'), "{fault}");
        fault
    }

    async fn open(&self, role: &str, password: Option<&str>, database: &str) -> store::Result<Db> {
        let mut url = self.url.clone();
        url.set_username(role).unwrap();
        url.set_password(password).unwrap();
        url.set_path(database);
        url.set_query(Some("sslmode=disable"));
        Db::open(&DatabaseLocation::Postgres(PostgresLocation::new(url))).await
    }
}

#[tokio::test]
async fn a_connection_that_is_refused_says_why() {
    let server = Administrator::new();
    let name = server.name.clone();
    server.run("CREATE ROLE {name} LOGIN PASSWORD 'secret'; CREATE DATABASE {name} OWNER {name}").await;
    let fault = server.fault(&name, Some("secret"), "nowhere").await;
    assert!(fault.contains("\"nowhere\" does not exist") && fault.contains("CREATE DATABASE"), "{fault}");
    let fault = server.fault(&name, Some("wrong"), &name).await;
    assert!(fault.contains(&format!("refuses the password of the role \"{name}\"")), "{fault}");
    assert!(!fault.contains("wrong") && !fault.contains("secret"), "{fault}");
    let fault = server.fault(&name, None, &name).await;
    assert!(fault.contains("wants a password"), "{fault}");
    server.run("REVOKE CONNECT ON DATABASE {name} FROM PUBLIC, {name}").await;
    let fault = server.fault(&name, Some("secret"), &name).await;
    assert!(fault.contains(&format!("GRANT CONNECT ON DATABASE \"{name}\"")), "{fault}");
    server.run("GRANT CONNECT ON DATABASE {name} TO {name}; ALTER ROLE {name} NOLOGIN").await;
    let fault = server.fault(&name, Some("secret"), &name).await;
    assert!(fault.contains("does not let the role"), "{fault}");
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut elsewhere = server.url.clone();
    elsewhere.set_port(Some(nobody.local_addr().unwrap().port())).unwrap();
    drop(nobody);
    let fault = Db::open(&DatabaseLocation::Postgres(PostgresLocation::new(elsewhere)))
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(fault.contains("no connection to PostgreSQL at 127.0.0.1:"), "{fault}");
    server.run("DROP DATABASE {name}; DROP ROLE {name}").await;
}

#[tokio::test]
async fn rights_that_are_missing_are_named() {
    let server = Administrator::new();
    let name = server.name.clone();
    server
        .run("CREATE ROLE {name} LOGIN PASSWORD 'secret'; CREATE ROLE {name}_old; CREATE DATABASE {name}")
        .await;
    server.run_in(&name, "REVOKE CREATE ON SCHEMA public FROM PUBLIC").await;
    let fault = server.fault(&name, Some("secret"), &name).await;
    assert!(fault.contains(&format!("GRANT CREATE ON SCHEMA \"public\" TO \"{name}\"")), "{fault}");
    server.run_in(&name, "ALTER ROLE {name} SET search_path = elsewhere").await;
    let fault = server.fault(&name, Some("secret"), &name).await;
    assert!(fault.contains("search_path"), "{fault}");
    server
        .run_in(&name, "ALTER ROLE {name} RESET search_path; GRANT CREATE ON SCHEMA public TO {name}")
        .await;
    server.run("ALTER DATABASE {name} SET default_transaction_read_only = on").await;
    let fault = server.fault(&name, Some("secret"), &name).await;
    assert!(fault.contains("SET default_transaction_read_only = off"), "{fault}");
    server.run("ALTER DATABASE {name} RESET default_transaction_read_only").await;
    // With everything that it needs it makes its tables.
    let db = server.open(&name, Some("secret"), &name).await.unwrap();
    db.migrate(model::Timestamp::from_micros(0)).await.unwrap();
    drop(db);
    server.run_in(&name, "ALTER TABLE label OWNER TO {name}_old").await;
    let fault = server.fault(&name, Some("secret"), &name).await;
    let expected = format!("may not read, change and alter the table \"label\" of \"{name}_old\"");
    assert!(fault.contains(&expected), "{fault}");
    server.run("GRANT {name}_old TO {name}").await;
    server.open(&name, Some("secret"), &name).await.unwrap();
    server.run("DROP DATABASE {name} WITH (FORCE); DROP ROLE {name}, {name}_old").await;
}
