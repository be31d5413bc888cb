//! Indexes that are built while their table is in use: missing ones, interrupted builds, and writes meanwhile.

use model::Plan;
use serde_json::json;
use store::{
    Db,
    concurrent_indexes::{ConcurrentIndex, missing},
};
use testkit::{Engine, Server, both_engines};

async fn names_of_missing(db: &Db, wanted: &ConcurrentIndex) -> Vec<String> {
    let wanted = [wanted.clone()];
    let found = db.system_read(async move |tx| missing(tx, &wanted).await).await.unwrap();
    found.into_iter().map(|index| index.name).collect()
}

#[both_engines]
async fn an_index_is_built_while_its_table_is_written(engine: Engine) {
    let server = Server::start(engine).await;
    let db = server.app.db();
    let index =
        ConcurrentIndex::parse("CREATE INDEX folder_for_tests ON folder (workspace_id, name);").unwrap();
    if engine == Engine::Sqlite {
        assert!(names_of_missing(db, &index).await.is_empty(), "migrations build it at once");
        return;
    }
    assert_eq!(names_of_missing(db, &index).await, ["folder_for_tests"]);
    let tenant = server.tenant(Plan::Enterprise).await;
    // The build waits for transactions that began before it, and they do not wait for it.
    let (built, ()) = tokio::join!(db.build_index(&index), async {
        for number in 0..5 {
            tenant.key.post("/api/v1/mailboxes", json!({ "name": format!("Box {number}") })).await.ok();
        }
    });
    built.unwrap();
    assert!(names_of_missing(db, &index).await.is_empty());
    db.build_index(&index).await.unwrap();
    assert!(names_of_missing(db, &index).await.is_empty(), "a second build replaces it");
}

#[both_engines]
async fn an_interrupted_build_is_made_up_for(engine: Engine) {
    if engine == Engine::Sqlite {
        return;
    }
    let server = Server::start(engine).await;
    let db = server.app.db();
    let tenant = server.tenant(Plan::Free).await;
    tenant.key.post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
    // Rows that cannot be indexed leave an index that is not used, as a build does that is cut short.
    let broken =
        ConcurrentIndex::parse("CREATE INDEX interrupted ON folder ((1 / (position - position)));").unwrap();
    let refused = db.build_index(&broken).await.unwrap_err().to_string();
    assert!(refused.contains("division by zero"), "{refused}");
    assert_eq!(names_of_missing(db, &broken).await, ["interrupted"]);
    let wanted = ConcurrentIndex::parse("CREATE INDEX interrupted ON folder (position);").unwrap();
    db.build_index(&wanted).await.unwrap();
    assert!(names_of_missing(db, &wanted).await.is_empty());
}
