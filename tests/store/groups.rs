//! Transactions that share a commit: each succeeds or fails alone, and none is acknowledged that is not there.

use std::{collections::BTreeSet, time::Duration};

use model::{Plan, Timestamp, WorkspaceId};
use store::{Db, Error, Result, SystemTx, metering};
use testkit::{Engine, Server, both_engines};

const INSERT: &str = "INSERT INTO usage_day (workspace_id, day, metric, amount) VALUES ($1, $2, 'group', 1)";

/// How one of the transactions ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Well,
    /// It gives up after it has written.
    Refused,
    /// A statement that nobody waited for fails: the row is there already.
    Twice,
    /// A statement fails that somebody waited for.
    Wrong,
}

async fn work(tx: &mut SystemTx, workspace: WorkspaceId, number: i64, end: End) -> Result<i64> {
    let tx = tx.enter(&workspace);
    tx.pipeline(INSERT, &[number.into()]).await?;
    match end {
        End::Well => Ok(number),
        End::Refused => Err(Error::Unavailable("refused".into())),
        End::Twice => tx.pipeline(INSERT, &[number.into()]).await.map(|()| number),
        End::Wrong => tx.run("INSERT INTO usage_day (workspace_id) VALUES ($1)", &[]).await.map(|_| number),
    }
}

async fn shared(db: Db, workspace: WorkspaceId, number: i64, end: End) -> Result<i64> {
    db.shared_write(async move |tx| work(tx, workspace.clone(), number, end).await).await
}

/// The numbers that are there.
async fn kept(db: &Db, workspace: &WorkspaceId) -> BTreeSet<i64> {
    let sql = "SELECT day FROM usage_day WHERE workspace_id = $1 AND metric = 'group'";
    let found: Result<Vec<(i64,)>> = db.read(workspace, async move |tx| tx.all(sql, &[]).await).await;
    found.unwrap().into_iter().map(|(number,)| number).collect()
}

#[both_engines]
async fn those_who_share_a_commit_fail_alone(engine: Engine) {
    let server = Server::start(engine).await;
    let workspace = server.tenant(Plan::Enterprise).await.workspace;
    let db = server.app.db();
    let end = |number: i64| match number % 5 {
        1 => End::Refused,
        2 => End::Twice,
        3 => End::Wrong,
        _ => End::Well,
    };
    let all = (0..150).map(|number| {
        let work = tokio::spawn(shared(db.clone(), workspace.clone(), number, end(number)));
        async move { (number, work.await.unwrap()) }
    });
    let mut succeeded = BTreeSet::new();
    for (number, outcome) in futures_util::future::join_all(all).await {
        assert_eq!(outcome.is_ok(), end(number) == End::Well, "{number}: {outcome:?}");
        succeeded.extend(outcome.ok());
    }
    assert_eq!(kept(db, &workspace).await, succeeded, "exactly what was acknowledged is there");
}

#[both_engines]
async fn whoever_goes_away_leaves_the_others_their_turn(engine: Engine) {
    let server = Server::start(engine).await;
    let workspace = server.tenant(Plan::Enterprise).await.workspace;
    let db = server.app.db();
    let mut acknowledged = BTreeSet::new();
    for round in 0..20_i64 {
        let start = |number: i64| tokio::spawn(shared(db.clone(), workspace.clone(), number, End::Well));
        let works: Vec<_> = (0..12).map(|number| start(round * 100 + number)).collect();
        // At another moment each time: before the transaction, in the middle, while the commit is under way.
        tokio::time::sleep(Duration::from_micros(u64::try_from(round).unwrap() * 250)).await;
        works.iter().step_by(3).for_each(tokio::task::JoinHandle::abort);
        for work in works {
            if let Ok(Ok(number)) = work.await {
                acknowledged.insert(number);
            }
        }
        let after = shared(db.clone(), workspace.clone(), round * 100 + 99, End::Well);
        let after = tokio::time::timeout(Duration::from_secs(20), after).await;
        acknowledged.insert(after.expect("nobody waits for ever").expect("the next one goes well"));
    }
    let kept = kept(db, &workspace).await;
    assert!(acknowledged.is_subset(&kept), "lost: {:?}", acknowledged.difference(&kept));
}

/// Adds one to a figure, and gives up afterwards if told to.
async fn add(tx: &mut SystemTx, workspace: &WorkspaceId, well: bool) -> Result<()> {
    metering::add_usage(tx.enter(workspace), Timestamp::from_micros(0).day(), "sum", 1).await?;
    if well { Ok(()) } else { Err(Error::Unavailable("refused".into())) }
}

async fn sum(tx: &mut SystemTx, workspace: &WorkspaceId) -> Result<i64> {
    let sql = "SELECT amount FROM usage_day WHERE workspace_id = $1 AND metric = 'sum'";
    Ok(tx.enter(workspace).one(sql, &[]).await?.map_or(0, |(amount,)| amount))
}

#[both_engines]
async fn what_is_added_in_a_shared_commit_is_exact(engine: Engine) {
    let server = Server::start(engine).await;
    let workspace = server.tenant(Plan::Enterprise).await.workspace;
    let db = server.app.db();
    let all = (0..200).map(|number| {
        let (db, workspace, well) = (db.clone(), workspace.clone(), number % 7 != 3);
        tokio::spawn(async move {
            if number % 4 != 0 {
                let body = async move |tx: &mut SystemTx| add(tx, &workspace, well).await.map(|()| 1);
                return db.shared_write(body).await;
            }
            // Whoever may look at the figure sees what it adds itself.
            let body = async move |tx: &mut SystemTx| {
                add(tx, &workspace, true).await?;
                let once = sum(tx, &workspace).await?;
                add(tx, &workspace, well).await?;
                assert_eq!(sum(tx, &workspace).await?, once + 1);
                Ok(2)
            };
            db.system_write(body).await
        })
    });
    let mut acknowledged = 0;
    for outcome in futures_util::future::join_all(all).await {
        acknowledged += outcome.unwrap().unwrap_or(0);
    }
    let added = db.system_read(async move |tx| sum(tx, &workspace).await).await;
    assert!(acknowledged > 150, "{acknowledged} were acknowledged");
    assert_eq!(added.unwrap(), acknowledged);
}
