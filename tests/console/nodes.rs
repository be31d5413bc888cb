//! The page of nodes: for the operator alone, and what it says about nodes, their work and their faults.

use store::SystemTx;
use testkit::{Caller, Engine, PASSWORD, Server, ServerOptions, both_engines};

use super::person::{Person, form};

const PAGE: &str = "/console/operator/nodes";

/// The first account of a server: its operator's.
async fn operator(server: &Server) -> Caller {
    let browser = server.anonymous().with("sec-fetch-site", "same-origin");
    let fields = [("email", "root@people.test"), ("password", PASSWORD)];
    let first = form(&browser, "/console/sign-up", &fields).await;
    server.cookie(&first.session_secret())
}

async fn run(server: &Server, sql: &'static str) {
    let done: store::Result<u64> =
        server.app.db().system_write(async move |tx: &mut SystemTx| tx.run(sql, &[]).await).await;
    done.unwrap();
}

/// rules: CONSOLE-15
#[both_engines]
async fn only_the_operator_finds_the_page(engine: Engine) {
    let server = Server::start(engine).await;
    let root = operator(&server).await;
    let ada = Person::admin(&server).await;
    assert_eq!(ada.get(PAGE).await.status, 404);
    assert!(!ada.page("/console").await.contains(PAGE));
    assert_eq!(server.anonymous().get(PAGE).await.status, 303);
    let page = root.get(PAGE).await;
    assert_eq!(page.status, 200);
    let text = page.text();
    assert!(text.contains("Search index") && text.contains("Oldest due work"), "{text}");
    assert_eq!(text.contains("keeps its data in SQLite"), engine == Engine::Sqlite);
    assert_eq!(text.contains("No nodes yet"), engine == Engine::Postgres);
    assert!(root.get("/console").await.text().contains(PAGE));
}

#[tokio::test]
async fn the_operator_sees_nodes_and_what_is_wrong_with_them() {
    let server = Server::start(Engine::Postgres).await;
    let other = server.another_node(ServerOptions { seed: 2, ..ServerOptions::default() }).await;
    let root = operator(&server).await;
    server.app.record_address("198.51.100.7:8080".to_owned());
    for node in [&server, &other] {
        operations::nodes::announce_once(&node.app).await.unwrap();
    }
    run(&server, "UPDATE node SET clock_ahead = 0").await;
    let page = root.get(PAGE).await.text();
    let version = env!("CARGO_PKG_VERSION");
    for shown in ["198.51.100.7:8080", version, " of 20<", " allowed<", "+0 s", ">running<", "up to date"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert!(!page.contains("needs attention") && !page.contains("role=\"alert\""), "{page}");
    run(&server, "UPDATE node SET seen_at = seen_at - 90000000, host = '<b>one</b>' WHERE address <> ''")
        .await;
    run(
        &server,
        "UPDATE node SET clock_ahead = 7000000, pool_in_use = 20, pool_wait = 4000000 WHERE address = ''",
    )
    .await;
    run(&server, "INSERT INTO lease (name, node_id, expires_at) SELECT 'expiry', 'x', max(seen_at) - 60000000 FROM node")
        .await;
    let page = root.get(PAGE).await.text();
    for shown in [
        ">lost<",
        "not heard of for 9",
        "its clock is 7 s ahead of",
        "a call waited 4.0 s",
        "20 of 20",
        "no node does the work `expiry`",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert!(page.contains("needs attention") && !page.contains("<b>one</b>"), "{page}");
}
