//! Contents in a bucket: stored again while their former objects are deleted, with names from before, or without a row.
//!
//! scripts/test.d/40-object-stores runs these tests with the servers of other people.

use http::Method;
use operations::storage;
use store::{
    SystemTx,
    blobs::{BlobName, BlobSuffix},
    vault::DataKey,
};
use testkit::{Engine, Server, ServerOptions, both_engines};
use tokio::task::JoinHandle;

use super::{email_storage::large, knowledge, mails::Inbox};
use crate::bucket::Bucket;

/// When everything that is stored now is old, by the machine's clock as well.
const LATER: &str = "2100-01-01T00:00:00Z";
const DAY: i64 = 24 * 3600;

/// A service with its blobs in a bucket.
async fn start(engine: Engine, bucket: &Bucket) -> Server {
    Server::with(engine, options(1, bucket)).await
}

fn options(seed: u64, bucket: &Bucket) -> ServerOptions {
    ServerOptions { seed, bucket: Some(bucket.location()), ..ServerOptions::default() }
}

/// The node that stores what another one deletes: a second one, where there can be two.
async fn other_node(engine: Engine, server: &Server, bucket: &Bucket) -> Option<Server> {
    match engine {
        Engine::Postgres => Some(server.another_node(options(2, bucket)).await),
        Engine::Sqlite => None,
    }
}

async fn run(server: &Server, sql: &'static str) {
    let done: store::Result<u64> =
        server.app.db().system_write(async move |tx: &mut SystemTx| tx.run(sql, &[]).await).await;
    done.unwrap();
}

/// The names of a workspace's objects.
async fn names(server: &Server, inbox: &Inbox) -> Vec<BlobName> {
    let page = server.app.blobs().list(inbox.workspace.as_str(), None, 1000).await.unwrap();
    page.blobs.into_iter().map(|blob| blob.name).collect()
}

/// Since which schema programs can use the store.
async fn usable_since(server: &Server) -> i64 {
    let sql = "SELECT max(usable_since) FROM migration";
    let found = async move |tx: &mut SystemTx| tx.one::<(i64,)>(sql, &[]).await;
    let found: store::Result<_> = server.app.db().system_read(found).await;
    found.unwrap().unwrap().0
}

/// Deletes a message for good.
async fn destroy(inbox: &Inbox, id: &model::EmailId) {
    inbox.delete(&format!("emails/{id}?permanent=true")).await.ok();
}

async fn assert_readable(inbox: &Inbox, id: &model::EmailId, raw: &str) {
    let answer = inbox.try_get(&format!("emails/{id}/raw")).await;
    assert!(answer.status == 200 && answer.text() == raw, "{} {:.200}", answer.status, answer.text());
    let length = inbox.get(&format!("emails/{id}")).await["body"].as_str().unwrap().len();
    assert!(length > 400_000, "{length}");
}

async fn assert_sound(server: &Server) {
    assert_eq!(storage::scrub(&server.app).await.unwrap().damaged, []);
}

fn sweep(server: &Server) -> JoinHandle<u64> {
    let app = server.app.clone();
    tokio::spawn(async move { storage::sweep_blobs(&app).await.unwrap() })
}

async fn swept(server: &Server) -> u64 {
    storage::sweep_blobs(&server.app).await.unwrap()
}

/// As a store is after an upgrade: an older program has announced itself, and the schema is new.
async fn has_older_node(server: &Server) {
    run(server, "UPDATE migration SET applied_at = applied_at + 1").await;
    run(
        server,
        "INSERT INTO node (id, host, process, version, schema_version, started_at, seen_at, clock_ahead)
         VALUES ('older', 'host', 1, '0.1.0', 34, 0, 0, 0)",
    )
    .await;
}

// rules: STORE-12
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_stored_again_outlives_a_deletion_that_was_decided_before(engine: Engine) {
    let bucket = Bucket::start().await;
    let server = start(engine, &bucket).await;
    let other = other_node(engine, &server, &bucket).await;
    let inbox = Inbox::new(&server).await;
    let raw = large(1);
    let first = server.receive(&inbox.address, raw.clone()).await;
    let before = names(&server, &inbox).await;
    assert!(!before.is_empty() && before.iter().all(|name| name.suffix.is_some()), "{before:?}");
    assert_readable(&inbox, &first, &raw).await;
    destroy(&inbox, &first).await;
    assert_eq!(swept(&server).await, 0, "they are young");
    server.clock.set(LATER);
    bucket.hold(Method::DELETE);
    let sweeping = sweep(&server);
    bucket.somebody_waits().await;
    // Nothing uses the first object, and its deletion is on its way.
    let again = other.as_ref().unwrap_or(&server).receive(&inbox.address, raw.clone()).await;
    bucket.release();
    assert_eq!(sweeping.await.unwrap(), before.len() as u64);
    assert_readable(&inbox, &again, &raw).await;
    assert_sound(&server).await;
    let after = names(&server, &inbox).await;
    assert!(after.len() == before.len() && after.iter().all(|name| !before.contains(name)), "{after:?}");
    server.clock.advance(2 * DAY);
    assert_eq!(swept(&server).await, 0, "they are in use");
    assert_readable(&inbox, &again, &raw).await;
}

/// The object of a row that exists stays; what is put for the same content beside it goes a day later.
// rules: STORE-12
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn a_content_that_comes_twice_keeps_its_first_objects(engine: Engine) {
    let bucket = Bucket::start().await;
    let server = start(engine, &bucket).await;
    let inbox = Inbox::new(&server).await;
    let other = inbox.another().await;
    let raw = large(2);
    let one = server.receive(&inbox.address, raw.clone()).await;
    let kept = names(&server, &inbox).await;
    server.clock.advance(60);
    let two = server.receive(&other.address, raw.clone()).await;
    assert_eq!(names(&server, &inbox).await.len(), 2 * kept.len());
    destroy(&inbox, &one).await;
    server.clock.set(LATER);
    assert_eq!(swept(&server).await, kept.len() as u64);
    assert_eq!(names(&server, &inbox).await, kept);
    assert_readable(&other, &two, &raw).await;
    assert_sound(&server).await;
}

/// While an older node may run, objects have the names that it looks for. Later they are still found, read, checked and
/// deleted, and what has their content does not share their fate.
// rules: STORE-12, STORE-16
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn objects_with_former_names_stay_until_nothing_uses_them(engine: Engine) {
    let bucket = Bucket::start().await;
    let server = start(engine, &bucket).await;
    has_older_node(&server).await;
    let inbox = Inbox::new(&server).await;
    let (used, unused, new) = (large(3), large(4), large(5));
    let kept = server.receive(&inbox.address, used.clone()).await;
    let gone = server.receive(&inbox.address, unused.clone()).await;
    let former = names(&server, &inbox).await;
    assert!(former.len() >= 2 && former.iter().all(|name| name.suffix.is_none()), "{former:?}");
    destroy(&inbox, &gone).await;
    server.clock.set(LATER);
    assert_eq!(
        (swept(&server).await, usable_since(&server).await),
        (0, 32),
        "the older node may put them again"
    );
    run(&server, "DELETE FROM node").await;
    // The first large content after that has a name that nothing had before.
    let fresh = server.receive(&inbox.address, new.clone()).await;
    assert_eq!(usable_since(&server).await, 35, "an older program would not find it");
    let all = names(&server, &inbox).await;
    assert!(all.iter().filter(|name| !former.contains(name)).all(|name| name.suffix.is_some()), "{all:?}");
    assert!(all.len() > former.len());
    assert_eq!(swept(&server).await, 0, "another node may just have put them again");
    server.clock.advance(2 * 3600);
    bucket.hold(Method::DELETE);
    let sweeping = sweep(&server);
    bucket.somebody_waits().await;
    let again = server.receive(&inbox.address, unused.clone()).await;
    bucket.release();
    assert_eq!(sweeping.await.unwrap(), former.len() as u64 / 2);
    for (id, raw) in [(&kept, &used), (&fresh, &new), (&again, &unused)] {
        assert_readable(&inbox, id, raw).await;
    }
    assert_sound(&server).await;
    for id in [&kept, &fresh, &again] {
        destroy(&inbox, id).await;
    }
    server.clock.advance(2 * DAY);
    swept(&server).await;
    assert_eq!(names(&server, &inbox).await, []);
}

/// A store that was new when it got this schema needs no day, and another one does.
// rules: STORE-16
#[both_engines]
async fn names_are_new_a_day_after_an_upgrade(engine: Engine) {
    let bucket = Bucket::start().await;
    let server = start(engine, &bucket).await;
    run(&server, "UPDATE migration SET applied_at = applied_at + 1").await;
    let inbox = Inbox::new(&server).await;
    for (seed, after, suffixed) in [(6, 0, false), (7, DAY - 60, false), (8, 120, true)] {
        let known = names(&server, &inbox).await;
        server.clock.advance(after);
        server.receive(&inbox.address, large(seed)).await;
        let mut new = names(&server, &inbox).await;
        new.retain(|name| !known.contains(name));
        assert!(
            !new.is_empty() && new.iter().all(|name| name.suffix.is_some() == suffixed),
            "{seed}: {new:?}"
        );
    }
    assert_eq!(usable_since(&server).await, 35);
    assert_sound(&server).await;
}

/// Objects whose rows never came are deleted once they are old, by both clocks.
// rules: STORE-12
#[both_engines]
async fn objects_without_a_row_go_when_they_are_old(engine: Engine) {
    let bucket = Bucket::start().await;
    let server = start(engine, &bucket).await;
    let inbox = Inbox::new(&server).await;
    let key = DataKey::generate().unwrap();
    let put = async |text: &str| {
        let suffix = BlobSuffix::of_id(server.app.new_uuid().as_bytes());
        let space = inbox.workspace.as_str();
        server.app.blobs().put_with(space, &key, text.as_bytes(), Some(&suffix)).await.unwrap();
        suffix
    };
    let old = put("put before").await;
    server.clock.advance(2 * DAY);
    assert_eq!(swept(&server).await, 0, "young by the clock of the bucket");
    server.clock.set(LATER);
    let young = put("put now").await;
    assert_eq!(swept(&server).await, 1);
    let left: Vec<_> = names(&server, &inbox).await.into_iter().filter_map(|name| name.suffix).collect();
    assert!(left == [young] && !left.contains(&old), "young by the clock of its node: {left:?}");
    server.clock.advance(DAY + 1);
    assert_eq!(swept(&server).await, 1);
    assert_eq!(names(&server, &inbox).await, []);
}

/// A process that was stopped between object and row may come back after the object was deleted.
// rules: STORE-12
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_put_long_ago_gets_no_row(engine: Engine) {
    let bucket = Bucket::start().await;
    let server = start(engine, &bucket).await;
    let inbox = Inbox::new(&server).await;
    let raw = large(9);
    bucket.hold(Method::PUT);
    let stopped = async {
        bucket.somebody_waits().await;
        server.clock.advance(DAY);
        bucket.release();
    };
    let receiving = server.try_receive(Some("sender@remote.test"), &inbox.address, raw.clone());
    let (received, ()) = tokio::join!(receiving, stopped);
    assert!(received.is_err(), "it is refused for now");
    assert_eq!(inbox.get("emails").await["emails"].as_array().unwrap().len(), 0);
    let id = server.receive(&inbox.address, raw.clone()).await;
    assert_readable(&inbox, &id, &raw).await;
}

// rules: STORE-12
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_is_added_again_outlives_a_deletion_that_was_decided_before(engine: Engine) {
    let bucket = Bucket::start().await;
    let server = start(engine, &bucket).await;
    let inbox = Inbox::new(&server).await;
    let bytes = large(10).into_bytes();
    let add = async || knowledge::path(&knowledge::add(&inbox.key, "Notes", "text", &bytes).await);
    let first = add().await;
    let before = names(&server, &inbox).await;
    assert!(before.len() == 1 && before[0].suffix.is_some(), "{before:?}");
    inbox.key.delete(&first).await.ok();
    server.clock.set(LATER);
    bucket.hold(Method::DELETE);
    let sweeping = sweep(&server);
    bucket.somebody_waits().await;
    let again = add().await;
    bucket.release();
    assert_eq!(sweeping.await.unwrap(), 1);
    server.clock.advance(2 * DAY);
    assert_eq!(swept(&server).await, 0);
    assert!(inbox.key.get(&format!("{again}/download")).await.bytes == bytes);
}
