//! Calls of workspaces that call now and then.

use model::{Limit, Plan};
use testkit::{Engine, Server, ServerOptions};

const READ: &str = "/api/v1/mailboxes";

fn options(seed: u64) -> ServerOptions {
    let mut options = ServerOptions { background: false, seed, ..ServerOptions::default() };
    options.plans.free.credits_per_period = Limit::of(20);
    options.plans.free.rpm = Limit::of(1000);
    options
}

/// An isolated read charges its request and its credits in one durable commit. What is returned later is repeated if the
/// store loses it, so that does not wait for the disk.
/// rules: METER-6, METER-16
#[tokio::test]
async fn an_isolated_read_costs_one_durable_commit() {
    let server = Server::with(Engine::Postgres, options(1)).await;
    let tenant = server.tenant(Plan::Free).await;
    let meter = server.app.meter();
    tenant.key.get(READ).await.ok();
    for spent in 2..5 {
        server.clock.advance(10);
        assert!(meter.commit().await);
        let before = server.app.db().statement_counts().unwrap();
        let answer = tenant.key.get(READ).await;
        assert_eq!((answer.status, answer.header("x-credits-remaining")), (200, &*(20 - spent).to_string()));
        // Its whole life: the meter works until nothing is left to do.
        for _ in 0..5 {
            server.clock.advance(2);
            assert!(meter.commit().await);
        }
        let cost = server.app.db().statement_counts().unwrap().since(&before);
        assert_eq!((cost.commits, cost.asynchronous_commits), (1, 1), "{cost:?}");
    }
    server.clock.advance(660);
    let before = server.app.db().statement_counts().unwrap();
    meter.forget_idle().await;
    let cost = server.app.db().statement_counts().unwrap().since(&before);
    assert_eq!((cost.commits, cost.asynchronous_commits), (0, 0), "{cost:?}");
}

/// The store crashes right after it has acknowledged a return of advances, and loses it: the node repeats it, and no call
/// is free.
/// rules: METER-6, METER-16
#[tokio::test]
async fn a_lost_return_is_repeated() {
    let server = Server::with(Engine::Postgres, options(1)).await;
    let tenant = server.tenant(Plan::Free).await;
    let (meter, workspace) = (server.app.meter(), &tenant.workspace);
    for _ in 0..3 {
        tenant.key.get(READ).await.ok();
    }
    let advance = "SELECT node_id, period_start, granted, reads FROM allowance_advance
                   WHERE workspace_id = $1 AND kind = 'credits'";
    let spent = "SELECT spent FROM allowance WHERE workspace_id = $1 AND kind = 'credits'";
    let (kept, charged) = server
        .app
        .db()
        .read(workspace, async move |tx| {
            let kept: Option<(String, i64, i64, i64)> = tx.one(advance, &[]).await?;
            let charged: Option<(i64,)> = tx.one(spent, &[]).await?;
            Ok::<_, store::Error>((kept.unwrap(), charged.unwrap().0))
        })
        .await
        .unwrap();
    server.clock.advance(5);
    assert!(meter.commit().await);
    // As the store was before that commit.
    server
        .app
        .db()
        .write(workspace, async move |tx| {
            let (node, period, granted, reads) = kept;
            let sql = "INSERT INTO allowance_advance
                           (workspace_id, kind, node_id, period_start, granted, reads, writes, expires_at)
                       VALUES ($1, 'credits', $2, $3, $4, $5, 0, 0)";
            let params = [node.as_str().into(), period.into(), granted.into(), reads.into()];
            tx.run(sql, &params).await?;
            let sql = "UPDATE allowance SET spent = $2 WHERE workspace_id = $1 AND kind = 'credits'";
            tx.run(sql, &[charged.into()]).await?;
            Ok::<_, store::Error>(())
        })
        .await
        .unwrap();
    server.clock.advance(660);
    meter.forget_idle().await;
    meter.forget_idle().await;
    let answer = tenant.key.get(READ).await;
    assert_eq!((answer.status, answer.header("x-credits-remaining")), (200, "16"));
    server.clock.advance(5);
    assert!(meter.commit().await);
    let read = server.app.db().read(workspace, async move |tx| tx.one::<(i64,)>(spent, &[]).await);
    assert_eq!(read.await.unwrap(), Some((4,)));
}
