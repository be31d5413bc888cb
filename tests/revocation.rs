//! A revoked key under load: within a second nobody gets in with it any more, on any node.

use std::time::{Duration, Instant};

use model::Plan;
use testkit::{Engine, Server, ServerOptions, both_engines};

/// rules: AUTH-10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_dies_everywhere_within_a_second() {
    both_engines(async |engine| {
        let server = Server::start(engine).await;
        let tenant = server.tenant(Plan::Enterprise).await;
        let session = server.log_in(&tenant).await;
        let mut nodes = vec![server.key(tenant.key.secret())];
        let other = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => {
                Some(server.another_node(ServerOptions { seed: 7, ..ServerOptions::default() }).await)
            }
        };
        nodes.extend(other.as_ref().map(|node| node.key(tenant.key.secret())));

        let mut callers = tokio::task::JoinSet::new();
        for number in 0..8 {
            let caller = nodes[number % nodes.len()].clone();
            callers.spawn(async move {
                let mut admitted = (0, None);
                let started = Instant::now();
                while started.elapsed() < Duration::from_secs(4) {
                    let answer = caller.get("/api/v1/rag/credentials").await;
                    if answer.status == 200 {
                        admitted = (admitted.0 + 1, Some(Instant::now()));
                    } else {
                        answer.expect(401, "unauthorized");
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                admitted
            });
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let path = format!("/api/v1/workspaces/{}/api-keys/{}", tenant.workspace, tenant.key_id);
        assert_eq!(session.delete(&path).await.status, 204);
        let revoked = Instant::now();
        for (admitted, last) in callers.join_all().await {
            let last = last.expect("the key worked before");
            assert!(admitted > 0);
            assert!(last < revoked + Duration::from_secs(1), "still admitted {:?} later", last - revoked);
        }
    })
    .await;
}
