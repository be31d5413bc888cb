//! The credentials of the memory store.

use model::Plan;
use serde_json::json;
use testkit::{Server, both_engines};

use super::people::{break_blobs, break_data_key, mend_blobs};

const PATH: &str = "/api/v1/rag/credentials";

/// rules: MEM-1
#[tokio::test]
async fn credentials_are_ready_by_default() {
    both_engines(async |engine| {
        let server = Server::start(engine).await;
        let tenant = server.tenant(Plan::Free).await;
        let answer = tenant.key.get(PATH).await;
        assert_eq!((answer.status, answer.json()), (200, json!({ "status": "ready" })));
        assert_eq!(answer.header("x-credits-charged"), "1");
        assert_eq!(server.log_in(&tenant).await.get(PATH).await.ok(), json!({ "status": "ready" }));
        server.anonymous().get(PATH).await.expect(401, "unauthorized");
    })
    .await;
}

/// rules: MEM-1
#[tokio::test]
async fn credentials_are_unavailable_without_the_data_key() {
    both_engines(async |engine| {
        let server = Server::start(engine).await;
        let (tenant, other) = (server.tenant(Plan::Free).await, server.tenant(Plan::Free).await);
        break_data_key(&server, &tenant.workspace).await;
        assert_eq!(tenant.key.get(PATH).await.ok(), json!({ "status": "unavailable" }));
        assert_eq!(other.key.get(PATH).await.ok(), json!({ "status": "ready" }));
    })
    .await;
}

/// rules: MEM-1
#[tokio::test]
async fn credentials_are_unavailable_without_the_blob_store() {
    both_engines(async |engine| {
        let server = Server::start(engine).await;
        let tenant = server.tenant(Plan::Free).await;
        break_blobs(&server);
        operations::upkeep::run(&server.app).await.unwrap();
        assert_eq!(tenant.key.get(PATH).await.ok(), json!({ "status": "unavailable" }));
        mend_blobs(&server);
        operations::upkeep::run(&server.app).await.unwrap();
        assert_eq!(tenant.key.get(PATH).await.ok(), json!({ "status": "ready" }));
    })
    .await;
}
