//! The configuration files of docs/scaling, each started as it stands: only addresses, ports and secrets are the test's.

use std::path::{Path, PathBuf};

use super::{
    Home, Server,
    backup::object_store,
    faults::OwnPostgres,
    mail::{Inbox, Smtp, message},
};

/// One of the files.
fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/scaling").join(name);
    path.canonicalize().unwrap().to_str().unwrap().to_owned()
}

/// What keeps a test to itself: name servers that nobody is behind. The welcome tells the tests the port of a server
/// without a public URL only.
fn kept_to_itself(home: Home) -> Home {
    let home = home.with("INBOUND__DNS_SERVERS", "127.0.0.1:9").with("OUTBOUND__DNS_SERVERS", "127.0.0.1:9");
    home.with("HTTP__PUBLIC_URL", "")
}

fn serve(home: &Home, name: &str) -> Server {
    home.run(&["--config", &file(name), "config", "check"]).succeeded();
    home.serve_with(&["--config", &file(name), "serve"])
}

/// A message that arrives at one server can be read from the other.
fn passes(home: &Home, (first, second): (&Server, &Server)) {
    let inbox = Inbox::new(home, first, "enterprise");
    assert!(inbox.address.ends_with("@agents.example.org"), "{}", inbox.address);
    let sent = Smtp::connect(first.smtp).send(&inbox.address, &message("Scaled", "some words")).unwrap();
    assert_eq!(sent.0, 250, "{}", sent.1);
    let listed = inbox.only(second, "Scaled");
    let raw = inbox.raw(second, listed["id"].as_str().unwrap());
    assert!(String::from_utf8_lossy(&raw).contains("some words"));
}

#[test]
fn one_machine() {
    let home = kept_to_itself(Home::sqlite());
    let server = serve(&home, "one-machine.toml");
    passes(&home, (&server, &server));
}

/// A bucket and a master key for nodes.
fn shared(home: Home, runtime: &tokio::runtime::Runtime, folder: &Path) -> Home {
    std::fs::create_dir(folder.join("mail")).unwrap();
    let home = kept_to_itself(home).with("BLOBS__URL", &object_store(runtime, folder));
    home.with("VAULT__MASTER_KEY", &"5a".repeat(32)).with("HTTP__METRICS_LISTEN", "127.0.0.1:0")
}

#[test]
fn nodes_with_a_bucket() {
    if std::env::var_os("AGENT_MAILBOX_TEST_POSTGRES").is_none() {
        return;
    }
    let postgres = OwnPostgres::with_settings(&file("postgresql.conf"));
    let (runtime, folder) = (tokio::runtime::Runtime::new().unwrap(), tempfile::tempdir().unwrap());
    let home = shared(Home::postgres_at(&postgres.url), &runtime, folder.path());
    let (one, two) = (serve(&home, "node.toml"), serve(&home, "node.toml"));
    passes(&home, (&one, &two));
    assert_eq!(home.admin(&["nodes"])["nodes"].as_array().unwrap().len(), 2);
}

#[test]
fn nodes_behind_a_pooler() {
    let Some(home) = Home::postgres() else { return };
    let pooler = std::env::var("AGENT_MAILBOX_TEST_POOLER").expect("run tests with scripts/pgbouncer");
    let prepares = std::env::var("AGENT_MAILBOX_TEST_POOLER_PREPARES").unwrap();
    let (runtime, folder) = (tokio::runtime::Runtime::new().unwrap(), tempfile::tempdir().unwrap());
    let home = shared(home, &runtime, folder.path()).behind(&pooler);
    let home = home.with("DATABASE__PREPARED_STATEMENTS", &prepares);
    let (one, two) = (serve(&home, "node-behind-pooler.toml"), serve(&home, "node-behind-pooler.toml"));
    passes(&home, (&one, &two));
}
