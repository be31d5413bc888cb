//! A revoked key under load: within a second nobody gets in with it any more, on any node.

use std::time::{Duration, Instant};

use model::Plan;
use serde_json::json;
use testkit::{Answer, Caller, Engine, Server, ServerOptions, Tenant, both_engines};
use tokio::task::JoinSet;

/// rules: AUTH-10
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_dies_everywhere_within_a_second(engine: Engine) {
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
}

/// Status, code and price of an answer.
fn how(answer: &Answer) -> String {
    let charged = answer.headers["x-credits-charged"].to_str().unwrap();
    format!("{} {} {charged}", answer.status, answer.code())
}

/// Makes a mailbox and returns its id.
async fn new_mailbox(tenant: &Tenant) -> String {
    let made = tenant.key.post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
    made["id"].as_str().unwrap().to_owned()
}

/// Lets a caller wait in every way there is, and tells how each wait ended and when.
fn wait_in_every_way(caller: &Caller, tenant: &Tenant, mailbox: &str) -> JoinSet<(String, Instant)> {
    let mut waits = JoinSet::new();
    let events = format!("/api/v1/workspaces/{}/events", tenant.workspace);
    let (polls, emails) = (caller.clone(), caller.clone());
    let path = format!("{events}?after=1000&wait=60");
    waits.spawn(async move { (how(&polls.get(&path).await), Instant::now()) });
    let path = format!("/api/v1/mailboxes/{mailbox}/emails/wait");
    waits.spawn(async move {
        let answer = emails.post(&path, json!({ "timeout_seconds": 60 })).await;
        (how(&answer), Instant::now())
    });
    let stream = caller.clone();
    waits.spawn(async move {
        let mut stream = stream.stream(&format!("{events}/stream")).await;
        assert_eq!(stream.next().await, None);
        ("401 unauthorized 0".to_owned(), Instant::now())
    });
    waits
}

/// rules: EVENT-8, AUTH-10
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_is_let_go_within_a_second(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    let bystander = server.tenant(Plan::Developer).await;
    let mailbox = new_mailbox(&tenant).await;
    let other = match engine {
        Engine::Sqlite => None,
        Engine::Postgres => {
            Some(server.another_node(ServerOptions { seed: 7, ..ServerOptions::default() }).await)
        }
    };
    let at = other.as_ref().unwrap_or(&server);

    // A key that is revoked, and a session that its owner ends.
    let revoked = server.new_key(&tenant.workspace, model::Role::Admin).await;
    let session = server.log_in(&tenant).await;
    let mut waits = vec![
        wait_in_every_way(&at.key(&revoked.key), &tenant, &mailbox),
        wait_in_every_way(&at.cookie(session.secret().split_once('=').unwrap().1), &tenant, &mailbox),
    ];
    let agent = at.key(&revoked.key).mcp();
    let named = mailbox.clone();
    waits[0].spawn(async move {
        let told = agent.call("wait_for_email", json!({ "mailboxId": named, "timeout_seconds": 60 })).await;
        let code = told["structuredContent"]["code"].as_str().unwrap();
        (format!("401 {code} 0"), Instant::now())
    });
    let others = new_mailbox(&bystander).await;
    let mut kept = wait_in_every_way(&at.key(bystander.key.secret()), &bystander, &others);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(waits.iter_mut().all(|waits| waits.try_join_next().is_none()), "nobody has been let go yet");

    operations::admin::revoke_key(&server.app, revoked.api_key.id, &testkit::operator()).await.unwrap();
    let mut ended = vec![(Instant::now(), waits.remove(0))];
    assert_eq!(session.post("/api/console/logout", json!({})).await.status, 204);
    ended.push((Instant::now(), waits.remove(0)));
    for (moment, waits) in ended {
        for (told, when) in waits.join_all().await {
            assert_eq!(told, "401 unauthorized 0");
            let after = when.saturating_duration_since(moment);
            assert!(after < Duration::from_secs(1), "let go {after:?} later");
        }
    }
    assert!(kept.try_join_next().is_none(), "others wait on");
}
