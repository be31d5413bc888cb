//! Pools across rests, restarts, months, minutes, changed plans and clocks that are set back.

use model::{Limit, Plan};
use operations::admin;
use serde_json::{Value, json};
use testkit::{Caller, Engine, Server, ServerOptions, Tenant, both_engines};

const READ: &str = "/api/v1/mailboxes";

fn options(credits: u64, rpm: u64) -> ServerOptions {
    let mut options = ServerOptions::default();
    options.plans.free.credits_per_period = Limit::of(credits);
    options.plans.free.rpm = Limit::of(rpm);
    options.plans.free.mailboxes = Limit::UNLIMITED;
    options.plans.developer.credits_per_period = Limit::of(10 * credits);
    options
}

/// Reads until one is refused, and tells how many were answered and what the refusal was.
async fn read_all(key: &Caller) -> (i64, u16) {
    let mut answered = 0;
    loop {
        let answer = key.get(READ).await;
        if answer.status != 200 {
            return (answered, answer.status);
        }
        answered += 1;
    }
}

async fn used(key: &Caller, workspace: &model::WorkspaceId) -> Value {
    key.get(&format!("/api/v1/workspaces/{workspace}/usage/credits")).await.ok()["used"].clone()
}

/// A workspace rests between calls for longer than the meter remembers it, several times over: nothing is lost.
/// rules: METER-16, METER-6
#[both_engines]
async fn a_rest_changes_nothing(engine: Engine) {
    let server = Server::with(engine, options(100, 100_000)).await;
    server.clock.set("2026-07-02T09:00:00Z");
    let tenant = server.tenant(Plan::Free).await;
    for rest in [660, 25 * 3600, 660, 9 * 86_400] {
        for _ in 0..5 {
            tenant.key.get(READ).await.ok();
        }
        tenant.key.post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
        server.app.meter().commit().await;
        server.clock.advance(rest);
        server.app.meter().commit().await;
        server.app.meter().forget_idle().await;
    }
    let answer = tenant.key.get(READ).await;
    assert_eq!((answer.status, answer.header("x-credits-remaining")), (200, "39"));
    assert_eq!(read_all(&tenant.key).await, (39, 402));
    // The next month is another pool.
    server.clock.advance(32 * 86_400);
    server.app.meter().forget_idle().await;
    assert_eq!(read_all(&tenant.key).await, (100, 402));
}

/// rules: METER-8, METER-16
#[both_engines]
async fn a_minute_goes_on_after_a_rest_within_it(engine: Engine) {
    let server = Server::with(engine, options(1000, 30)).await;
    let tenant = server.tenant(Plan::Free).await;
    for _ in 0..10 {
        tenant.key.get(READ).await.ok();
    }
    server.clock.advance(40);
    server.app.meter().commit().await;
    assert_eq!(read_all(&tenant.key).await, (20, 429));
    server.clock.advance(20);
    assert_eq!(read_all(&tenant.key).await, (30, 429));
}

/// A larger plan has room at once; a smaller one is measured by its own limit, with what was used before.
/// rules: METER-4
#[both_engines]
async fn a_changed_plan_counts_with_the_next_call(engine: Engine) {
    let server = Server::with(engine, options(50, 100_000)).await;
    let tenant = server.tenant(Plan::Free).await;
    assert_eq!(read_all(&tenant.key).await, (50, 402));
    let change = async |plan| {
        admin::set_plan(&server.app, tenant.workspace.clone(), plan, &testkit::operator()).await.unwrap();
    };
    change(Plan::Developer).await;
    for _ in 0..60 {
        tenant.key.get(READ).await.ok();
    }
    change(Plan::Free).await;
    tenant.key.get(READ).await.expect(402, "credits_exhausted");
    assert_eq!(used(&tenant.key, &tenant.workspace).await, 110);
    change(Plan::Enterprise).await;
    for _ in 0..10 {
        tenant.key.get(READ).await.ok();
    }
    change(Plan::Developer).await;
    assert_eq!(read_all(&tenant.key).await, (380, 402));
}

/// rules: METER-15
#[both_engines]
async fn a_clock_that_is_set_back_neither_fills_nor_blocks_a_pool(engine: Engine) {
    let server = Server::with(engine, options(40, 100_000)).await;
    let tenant = server.tenant(Plan::Free).await;
    server.clock.set("2026-08-01T00:00:05Z");
    for _ in 0..10 {
        tenant.key.get(READ).await.ok();
    }
    // Into the month before: the pool of the later one goes on.
    server.clock.advance(-60);
    for _ in 0..10 {
        tenant.key.get(READ).await.ok();
    }
    server.clock.advance(120);
    for _ in 0..10 {
        tenant.key.get(READ).await.ok();
    }
    assert_eq!(read_all(&tenant.key).await, (10, 402));
    // A clock that was wrong by a year: its pool must not stay shut.
    server.clock.advance(366 * 86_400);
    assert_eq!(read_all(&tenant.key).await, (40, 402));
    server.clock.advance(-366 * 86_400);
    assert_eq!(read_all(&tenant.key).await, (40, 402));
}

/// Kills the process and starts it again. The tenant's caller holds on to the process, so it goes too.
async fn kill(server: Server, tenant: Tenant, options: ServerOptions) -> (Server, Tenant) {
    let secret = tenant.key.secret().to_owned();
    let Tenant { account, email, workspace, owner_address, key, key_id } = tenant;
    drop(key);
    let server = server.kill_and_start(options).await;
    let key = server.key(&secret);
    (server, Tenant { account, email, workspace, owner_address, key, key_id })
}

/// What was answered before a crash stays charged, what was not does not: to the last credit, crash after crash.
/// rules: METER-6, METER-16
#[both_engines]
async fn a_crash_makes_nothing_free_and_charges_nothing(engine: Engine) {
    let node = |seed| ServerOptions { seed, ..options(1000, 300) };
    let mut server = Server::with(engine, node(1)).await;
    let mut tenant = server.tenant(Plan::Free).await;
    let (mut spent, mut requests) = (0, 0);
    for round in 0..4 {
        for call in 0..25 {
            if call % 5 == 0 {
                tenant.key.post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
                spent += 10;
            } else {
                tenant.key.get(READ).await.ok();
                spent += 1;
            }
            requests += 1;
        }
        (server, tenant) = kill(server, tenant, node(2 + round)).await;
    }
    let last = tenant.key.get(&format!("/api/v1/workspaces/{}/usage/credits", tenant.workspace)).await;
    assert_eq!(last.ok()["used"], spent + 1);
    assert_eq!(last.header("ratelimit-remaining"), (300 - requests - 1).to_string());
    server.clock.advance(60);
    let (mut served, mut status) = (0, 429);
    while status == 429 {
        let (more, ended) = read_all(&tenant.key).await;
        (served, status) = (served + more, ended);
        server.clock.advance(60);
    }
    assert_eq!((served, status), (1000 - spent - 1, 402));
    let (_server, tenant) = kill(server, tenant, node(9)).await;
    tenant.key.get(READ).await.expect(402, "credits_exhausted");
}

/// Without a limit, too, what was answered is recorded.
/// rules: METER-4, METER-16
#[both_engines]
async fn a_crash_forgets_no_use_without_a_limit(engine: Engine) {
    let mut server = Server::start(engine).await;
    let mut tenant = server.tenant(Plan::Enterprise).await;
    for seed in 2..5 {
        for _ in 0..7 {
            tenant.key.get(READ).await.ok();
        }
        tenant.key.post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
        (server, tenant) = kill(server, tenant, ServerOptions { seed, ..ServerOptions::default() }).await;
    }
    assert_eq!(used(&tenant.key, &tenant.workspace).await, 3 * 17 + 1);
}

/// A node that is lost for good: the other one goes on with all but what the lost one had charged ahead.
/// rules: METER-16
#[tokio::test]
async fn a_lost_node_keeps_at_most_a_hundredth() {
    let one = Server::with(Engine::Postgres, options(1000, 100_000)).await;
    let two = one.another_node(ServerOptions { seed: 2, ..options(1000, 100_000) }).await;
    let tenant = one.tenant(Plan::Free).await;
    let near = two.key(tenant.key.secret());
    for _ in 0..200 {
        near.get(READ).await.ok();
    }
    let log = two.folder().join("spending");
    drop((near, two));
    // Its machine is gone, and with it its log.
    for entry in std::fs::read_dir(&log).unwrap() {
        let path = entry.unwrap().path();
        let file = std::fs::File::open(&path).unwrap();
        if file.try_lock().is_ok() {
            std::fs::remove_file(path).unwrap();
        }
    }
    let (served, status) = read_all(&tenant.key).await;
    assert_eq!(status, 402);
    assert!((790..=800).contains(&served), "{served}");
}
