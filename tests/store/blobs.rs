//! Blobs in a folder and in an object store: one suite for both, and the faults that only a network has.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test that calls them")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use store::blobs::{BlobError, BlobHash, BlobLocation, BlobName, BlobSuffix, Blobs, S3Settings};
use store::vault::DataKey;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::bucket::{self, Bucket};

const ACCESS: &str = "AKIATESTTESTTEST";
const SECRET: &str = "test/secret+with=signs";

/// An object store over real HTTP on a loopback port, which checks signatures and fails when told to.
struct ObjectStore {
    folder: TempDir,
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
    failures: Arc<AtomicUsize>,
}

impl ObjectStore {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("mail")).unwrap();
        let (requests, failures) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counters = (Arc::clone(&requests), Arc::clone(&failures));
        let faults = middleware::from_fn(move |request: Request, next: Next| {
            let (requests, failures) = counters.clone();
            async move { fail_or_pass(&requests, &failures, request, next).await }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = bucket::s3_server(folder.path(), ACCESS, SECRET).layer(faults);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { folder, address, requests, failures }
    }

    /// The next `count` requests are answered with an error that may pass.
    fn fail(&self, count: usize) {
        self.requests.store(0, Ordering::SeqCst);
        self.failures.store(count, Ordering::SeqCst);
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    async fn blobs(&self) -> Blobs {
        self.blobs_at("mail/some/prefix", SECRET).await
    }

    async fn blobs_at(&self, path: &str, secret: &str) -> Blobs {
        let secret = secret.replace('/', "%2F");
        s3(&format!("s3://{ACCESS}:{secret}@{}/{path}?region=eu-test-1&tls=false", self.address)).await
    }

    fn file_of(&self, space: &str, hash: &BlobHash) -> PathBuf {
        let hex = hash.as_str();
        self.folder
            .path()
            .join("mail/some/prefix")
            .join(space)
            .join(&hex[..2])
            .join(&hex[2..4])
            .join(&hex[4..])
    }
}

async fn s3(location: &str) -> Blobs {
    let settings = S3Settings::parse(location, &BTreeMap::new()).unwrap();
    Blobs::open(&BlobLocation::S3(settings)).await.unwrap()
}

async fn fail_or_pass(
    requests: &AtomicUsize,
    failures: &AtomicUsize,
    request: Request,
    next: Next,
) -> Response {
    requests.fetch_add(1, Ordering::SeqCst);
    let take = |left: usize| left.checked_sub(1);
    if failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    next.run(request).await
}

/// What every store of blobs must do.
async fn suite(blobs: &Blobs) {
    blobs.probe().await.unwrap();
    round_trips(blobs).await;
    absence(blobs).await;
    spaces_and_keys(blobs).await;
    concurrency(blobs).await;
    pages(blobs).await;
    assert_eq!(blobs.sweep_temporary(Duration::ZERO).await.unwrap(), 0, "nothing is left behind");
}

async fn round_trips(blobs: &Blobs) {
    let key = DataKey::generate().unwrap();
    let text = "From: a@example.test\r\n".repeat(5000);
    // Each byte from a hash of its own: nothing that could be packed.
    let noise: Vec<u8> = (0..50_000_u32)
        .map(|n| BlobHash::of(&n.to_le_bytes()).as_str().as_bytes()[n as usize % 64])
        .collect();
    for content in [b"".as_slice(), b"x", text.as_bytes(), &noise] {
        let put = blobs.put("round", &key, content).await.unwrap();
        assert_eq!((put.hash.clone(), put.size), (BlobHash::of(content), content.len() as u64));
        assert!(put.stored_size <= put.size + 50, "{put:?}");
        assert_eq!(blobs.get("round", &key, &put.hash).await.unwrap(), content);
        assert!(blobs.exists("round", &put.hash).await.unwrap());
        assert_eq!(blobs.verify("round", &key, &put.hash).await.unwrap(), put);

        assert_eq!(blobs.put("round", &key, content).await.unwrap(), put, "again is no change");
        assert_eq!(blobs.get("round", &key, &put.hash).await.unwrap(), content);
    }
    let packed = blobs.put("round", &key, text.as_bytes()).await.unwrap();
    assert!(packed.stored_size < packed.size / 10, "{packed:?}");
}

async fn absence(blobs: &Blobs) {
    let key = DataKey::generate().unwrap();
    let hash = BlobHash::of(b"never put");
    assert!(matches!(blobs.get("absent", &key, &hash).await, Err(BlobError::Missing { .. })));
    assert!(matches!(blobs.verify("absent", &key, &hash).await, Err(BlobError::Missing { .. })));
    assert!(!blobs.exists("absent", &hash).await.unwrap());
    blobs.delete("absent", &hash).await.unwrap();

    blobs.put("absent", &key, b"never put").await.unwrap();
    blobs.delete("absent", &hash).await.unwrap();
    assert!(!blobs.exists("absent", &hash).await.unwrap());
    assert!(matches!(blobs.get("absent", &key, &hash).await, Err(BlobError::Missing { .. })));
    assert!(blobs.list("absent", None, 10).await.unwrap().blobs.is_empty());

    for space in ["", "..", "../absent", "a/b", "Upper", ".tmp"] {
        assert!(matches!(blobs.put(space, &key, b"x").await, Err(BlobError::InvalidName(_))), "{space}");
        assert!(matches!(blobs.get(space, &key, &hash).await, Err(BlobError::InvalidName(_))), "{space}");
        assert!(matches!(blobs.exists(space, &hash).await, Err(BlobError::InvalidName(_))), "{space}");
        assert!(matches!(blobs.delete(space, &hash).await, Err(BlobError::InvalidName(_))), "{space}");
        assert!(matches!(blobs.list(space, None, 1).await, Err(BlobError::InvalidName(_))), "{space}");
    }
}

async fn spaces_and_keys(blobs: &Blobs) {
    let (ours, theirs) = (DataKey::generate().unwrap(), DataKey::generate().unwrap());
    let hash = blobs.put("ours", &ours, b"shared text").await.unwrap().hash;
    assert!(!blobs.exists("theirs", &hash).await.unwrap());
    assert!(matches!(blobs.get("ours", &theirs, &hash).await, Err(BlobError::Corrupt { .. })));
    blobs.put("theirs", &theirs, b"shared text").await.unwrap();
    blobs.delete("theirs", &hash).await.unwrap();
    assert_eq!(blobs.get("ours", &ours, &hash).await.unwrap(), "shared text");
}

async fn concurrency(blobs: &Blobs) {
    let key = DataKey::generate().unwrap();
    let mut puts = JoinSet::new();
    for number in 0..24 {
        let (blobs, key) = (blobs.clone(), key.clone());
        puts.spawn(async move {
            let content = vec![number % 3; 50_000];
            let put = blobs.put("busy", &key, &content).await.unwrap();
            assert_eq!(blobs.get("busy", &key, &put.hash).await.unwrap(), content);
        });
    }
    puts.join_all().await;
    assert_eq!(blobs.list("busy", None, 100).await.unwrap().blobs.len(), 3);
}

async fn pages(blobs: &Blobs) {
    let key = DataKey::generate().unwrap();
    let mut expected = BTreeSet::new();
    for number in 0..23 {
        let put = blobs.put("pages", &key, format!("content {number}").as_bytes()).await.unwrap();
        expected.insert((put.hash, put.stored_size));
    }
    for limit in [1, 7, 23, 24, usize::MAX] {
        let (mut seen, mut after, mut rounds) = (Vec::new(), None, 0);
        loop {
            let page = blobs.list("pages", after.as_ref(), limit).await.unwrap();
            assert!(page.blobs.len() <= limit);
            assert!(
                page.blobs.iter().all(|blob| blob.modified.is_some_and(|time| time > 1_700_000_000_000_000))
            );
            seen.extend(page.blobs.into_iter().map(|blob| (blob.name.hash, blob.stored_size)));
            rounds += 1;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert!(seen.iter().eq(&expected), "in order, each once, with pages of {limit}");
        assert_eq!(rounds, 23_usize.div_ceil(limit));
    }
}

/// rules: STORE-12
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_does_what_a_store_must() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&BlobLocation::Directory(folder.path().join("blobs"))).await.unwrap();
    suite(&blobs).await;
}

/// rules: STORE-12
#[tokio::test(flavor = "multi_thread")]
async fn an_object_store_does_what_a_store_must() {
    let objects = ObjectStore::start().await;
    suite(&objects.blobs().await).await;
}

/// The same with a server of other people, where scripts/test.d/40-object-stores has started one.
/// rules: STORE-12
#[tokio::test(flavor = "multi_thread")]
async fn another_object_store_does_what_a_store_must() {
    if bucket::server().is_some() {
        let objects = Bucket::start().await;
        suite(&s3(&objects.location()).await).await;
    }
}

/// A backup of a bucket that has both kinds of names can be restored into a folder.
/// rules: CLI-11
#[tokio::test]
async fn a_folder_finds_both_kinds_of_names() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Blobs::open(&BlobLocation::Directory(folder.path().join("blobs"))).await.unwrap();
    let key = DataKey::generate().unwrap();
    let suffix = BlobSuffix::of_id(&[7; 16]);
    let hash = blobs.put("ws", &key, b"twice").await.unwrap().hash;
    assert_eq!(blobs.put_with("ws", &key, b"twice", Some(&suffix)).await.unwrap().hash, hash);
    let suffixed = BlobName { hash: hash.clone(), suffix: Some(suffix) };
    let page = blobs.list("ws", None, 1).await.unwrap();
    assert_eq!((page.blobs[0].name.clone(), page.next.clone()), ((&hash).into(), Some((&hash).into())));
    let page = blobs.list("ws", page.next.as_ref(), 1).await.unwrap();
    assert_eq!((page.blobs[0].name.clone(), page.next), (suffixed.clone(), None));
    blobs.delete("ws", &hash).await.unwrap();
    assert!(!blobs.exists("ws", &hash).await.unwrap());
    assert_eq!(blobs.get("ws", &key, &suffixed).await.unwrap(), "twice");
    assert!(blobs.delete_older("ws", &suffixed, i64::MAX).await.unwrap());
    assert_eq!(blobs.list("ws", None, 9).await.unwrap().blobs, []);
}

/// rules: STORE-13
#[tokio::test]
async fn damaged_objects_give_an_error_and_never_wrong_bytes() {
    let objects = ObjectStore::start().await;
    let blobs = objects.blobs().await;
    let key = DataKey::generate().unwrap();
    let hash = blobs.put("ws", &key, b"precious").await.unwrap().hash;
    let path = objects.file_of("ws", &hash);
    let intact = std::fs::read(&path).unwrap();
    assert!(!intact.windows(8).any(|window| window == b"precious"), "the store sees no plaintext");
    let mut flipped = intact.clone();
    flipped[intact.len() / 2] ^= 4;
    for damaged in [flipped.as_slice(), &intact[..intact.len() - 1], b""] {
        std::fs::write(&path, damaged).unwrap();
        assert!(matches!(blobs.get("ws", &key, &hash).await, Err(BlobError::Corrupt { .. })));
        assert!(matches!(blobs.verify("ws", &key, &hash).await, Err(BlobError::Corrupt { .. })));
    }
    blobs.put("ws", &key, b"precious").await.unwrap();
    assert_eq!(blobs.get("ws", &key, &hash).await.unwrap(), "precious");
}

#[tokio::test]
async fn wrong_credentials_are_not_missing_blobs() {
    let objects = ObjectStore::start().await;
    let blobs = objects.blobs_at("mail", "wrong").await;
    let error = blobs.probe().await.unwrap_err().to_string();
    assert_eq!(error, "the blob store did not store an object: status 403 (SignatureDoesNotMatch)");
    refuses_everything(&blobs).await;
}

#[tokio::test]
async fn a_missing_bucket_is_not_an_empty_one() {
    let objects = ObjectStore::start().await;
    let blobs = objects.blobs_at("nowhere", SECRET).await;
    assert!(matches!(blobs.exists("ws", &BlobHash::of(b"x")).await, Err(BlobError::Service { .. })));
    let error = blobs.list("ws", None, 1).await.unwrap_err().to_string();
    assert_eq!(error, "the blob store did not list objects: status 404 (NoSuchBucket)");
}

#[tokio::test]
async fn a_web_server_without_objects_is_not_an_empty_store() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, Router::new()).await });
    refuses_everything(&s3(&format!("s3://{ACCESS}:hush@{address}/mail?tls=false")).await).await;
}

async fn refuses_everything(blobs: &Blobs) {
    let key = DataKey::generate().unwrap();
    let hash = BlobHash::of(b"x");
    assert!(matches!(blobs.probe().await, Err(BlobError::Service { .. })));
    assert!(matches!(blobs.put("ws", &key, b"x").await, Err(BlobError::Service { .. })));
    assert!(matches!(blobs.get("ws", &key, &hash).await, Err(BlobError::Service { .. })));
    assert!(matches!(blobs.verify("ws", &key, &hash).await, Err(BlobError::Service { .. })));
    assert!(matches!(blobs.exists("ws", &hash).await, Err(BlobError::Service { .. })));
    assert!(matches!(blobs.delete("ws", &hash).await, Err(BlobError::Service { .. })));
    assert!(matches!(blobs.list("ws", None, 1).await, Err(BlobError::Service { .. })));
}

/// rules: STORE-14
#[tokio::test]
async fn passing_failures_are_tried_again_and_lasting_ones_are_not_hidden() {
    let objects = ObjectStore::start().await;
    let blobs = objects.blobs().await;
    let key = DataKey::generate().unwrap();
    objects.fail(3);
    let hash = blobs.put("ws", &key, b"stubborn").await.unwrap().hash;
    assert_eq!(objects.requests(), 4);
    objects.fail(1);
    assert_eq!(blobs.get("ws", &key, &hash).await.unwrap(), "stubborn");
    assert_eq!(objects.requests(), 2);

    objects.fail(usize::MAX);
    let error = blobs.get("ws", &key, &hash).await.unwrap_err();
    assert_eq!(error.to_string(), "the blob store did not give an object: status 503");
    assert_eq!(objects.requests(), 4);
    objects.fail(0);
    assert_eq!(blobs.get("ws", &key, &hash).await.unwrap(), "stubborn", "it heals without a restart");
}

#[tokio::test]
async fn a_closed_port_is_an_error_without_secrets() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let blobs = s3(&format!("s3://{ACCESS}:hush@{address}/mail?tls=false")).await;
    let error = format!("{0} {0:?}", blobs.probe().await.unwrap_err());
    assert!(error.contains("onnect"), "{error}");
    assert!(!error.contains("X-Amz") && !error.contains(ACCESS) && !error.contains("hush"), "{error}");
}
