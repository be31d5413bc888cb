//! Blobs in a folder: tests that look at the files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;

const SPACE: &str = "ws_1";

async fn open(folder: &TempDir) -> Blobs {
    Blobs::open(&BlobLocation::Directory(folder.path().join("deep/blobs"))).await.unwrap()
}

fn file_of(folder: &TempDir, hash: &BlobHash) -> PathBuf {
    folder.path().join("deep/blobs").join(object_name(SPACE, &hash.into()).unwrap())
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}

fn set_age(path: &Path, age: Duration) {
    let file = fs::File::open(path).unwrap();
    let then = file.metadata().unwrap().modified().unwrap() - age;
    file.set_modified(then).unwrap();
}

#[tokio::test]
async fn files_are_private_sealed_and_where_they_should_be() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = open(&folder).await;
    let key = DataKey::generate().unwrap();
    let content = "a line that repeats itself\n".repeat(1000);
    let put = blobs.put(SPACE, &key, content.as_bytes()).await.unwrap();
    assert_eq!(put.size, content.len() as u64);
    assert!(put.stored_size < 1000, "{put:?}");

    let hex = put.hash.to_string();
    let path = folder.path().join("deep/blobs/ws_1").join(&hex[..2]).join(&hex[2..4]).join(&hex[4..]);
    assert_eq!(fs::metadata(&path).unwrap().len(), put.stored_size);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    for parent in path.ancestors().skip(1).take(5) {
        assert_eq!(fs::metadata(parent).unwrap().permissions().mode() & 0o777, 0o700, "{}", parent.display());
    }
    assert_eq!(files_below(folder.path()), [path], "no temporary file is left");
}

#[tokio::test]
async fn every_damage_is_noticed_and_healed_by_the_next_put() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = open(&folder).await;
    let key = DataKey::generate().unwrap();
    let hash = blobs.put(SPACE, &key, b"precious bytes").await.unwrap().hash;
    let path = file_of(&folder, &hash);
    let intact = fs::read(&path).unwrap();
    let mut damaged: Vec<Vec<u8>> = (0..intact.len()).map(|length| intact[..length].to_vec()).collect();
    damaged.push([intact.as_slice(), b"x"].concat());
    for position in 0..intact.len() * 8 {
        let mut changed = intact.clone();
        changed[position / 8] ^= 1 << (position % 8);
        damaged.push(changed);
    }
    for bytes in damaged {
        fs::write(&path, &bytes).unwrap();
        assert!(matches!(blobs.get(SPACE, &key, &hash).await, Err(BlobError::Corrupt { .. })));
        assert!(matches!(blobs.verify(SPACE, &key, &hash).await, Err(BlobError::Corrupt { .. })));
    }
    blobs.put(SPACE, &key, b"precious bytes").await.unwrap();
    assert_eq!(blobs.get(SPACE, &key, &hash).await.unwrap(), "precious bytes");
}

#[tokio::test]
async fn a_file_moved_to_another_name_or_space_does_not_open() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = open(&folder).await;
    let key = DataKey::generate().unwrap();
    let one = blobs.put(SPACE, &key, b"one").await.unwrap().hash;
    let two = blobs.put(SPACE, &key, b"two").await.unwrap().hash;
    blobs.put("ws_2", &key, b"one").await.unwrap();
    let root = folder.path().join("deep/blobs");
    fs::copy(file_of(&folder, &one), root.join(object_name("ws_2", &(&one).into()).unwrap())).unwrap();
    assert!(matches!(blobs.get("ws_2", &key, &one).await, Err(BlobError::Corrupt { .. })));
    fs::copy(file_of(&folder, &two), file_of(&folder, &one)).unwrap();
    assert!(matches!(blobs.get(SPACE, &key, &one).await, Err(BlobError::Corrupt { .. })));
}

#[tokio::test]
async fn known_content_is_not_written_again_but_becomes_young() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = open(&folder).await;
    let key = DataKey::generate().unwrap();
    let first = blobs.put(SPACE, &key, b"again and again").await.unwrap();
    let path = file_of(&folder, &first.hash);
    let before = fs::read(&path).unwrap();
    set_age(&path, Duration::from_hours(24));
    let old = blobs.list(SPACE, None, 1).await.unwrap().blobs[0].modified.unwrap();
    let second = blobs.put(SPACE, &key, b"again and again").await.unwrap();
    assert_eq!(first, second);
    assert_eq!(fs::read(&path).unwrap(), before, "sealed anew it would differ");
    let young = blobs.list(SPACE, None, 1).await.unwrap().blobs[0].modified.unwrap();
    assert!(young - old > 86_000_000_000, "{old} {young}");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_puts_of_one_content_leave_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = open(&folder).await;
    let key = DataKey::generate().unwrap();
    let mut puts = tokio::task::JoinSet::new();
    for _ in 0..32 {
        let (blobs, key) = (blobs.clone(), key.clone());
        puts.spawn(async move { blobs.put(SPACE, &key, &vec![5; 70_000]).await.unwrap() });
    }
    let refs = puts.join_all().await;
    assert!(refs.iter().all(|put| *put == refs[0]));
    assert_eq!(files_below(folder.path()), [file_of(&folder, &refs[0].hash)]);
    assert_eq!(blobs.get(SPACE, &key, &refs[0].hash).await.unwrap(), vec![5; 70_000]);
}

#[tokio::test]
async fn a_removed_folder_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = open(&folder).await;
    let key = DataKey::generate().unwrap();
    let hash = blobs.put(SPACE, &key, b"here").await.unwrap().hash;
    fs::remove_dir_all(folder.path().join("deep/blobs/ws_1")).unwrap();
    fs::remove_dir_all(folder.path().join("deep/blobs/.tmp")).unwrap();
    assert!(matches!(blobs.get(SPACE, &key, &hash).await, Err(BlobError::Missing { .. })));
    blobs.put(SPACE, &key, b"here").await.unwrap();
    assert_eq!(blobs.get(SPACE, &key, &hash).await.unwrap(), "here");
}

#[tokio::test]
async fn only_old_temporary_files_are_swept() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = open(&folder).await;
    let key = DataKey::generate().unwrap();
    let hash = blobs.put(SPACE, &key, b"stays").await.unwrap().hash;
    set_age(&file_of(&folder, &hash), Duration::from_hours(24));
    blobs.probe().await.unwrap();
    let root = folder.path().join("deep/blobs");
    for (name, age) in [(".tmp/young", 10), (".tmp/old", 7200), (".probe/old", 7200)] {
        fs::write(root.join(name), b"half a fi").unwrap();
        set_age(&root.join(name), Duration::from_secs(age));
    }
    assert_eq!(blobs.sweep_temporary(Duration::from_hours(1)).await.unwrap(), 2);
    let mut left = files_below(&root);
    left.sort();
    assert_eq!(left, [root.join(".tmp/young"), file_of(&folder, &hash)]);
}

#[tokio::test]
async fn foreign_files_do_not_disturb_a_listing() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = open(&folder).await;
    let key = DataKey::generate().unwrap();
    let hash = blobs.put(SPACE, &key, b"ours").await.unwrap().hash;
    let file = file_of(&folder, &hash);
    fs::write(file.with_file_name("README"), b"?").unwrap();
    fs::write(file.with_file_name("F".repeat(60)), b"?").unwrap();
    fs::create_dir_all(folder.path().join("deep/blobs/ws_1/zz/00")).unwrap();
    let page = blobs.list(SPACE, None, 10).await.unwrap();
    assert_eq!(page.blobs.iter().map(|blob| &blob.name.hash).collect::<Vec<_>>(), [&hash]);
}

#[tokio::test]
async fn a_store_that_cannot_write_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = open(&folder).await;
    let key = DataKey::generate().unwrap();
    // A file in its place makes the folder fail; permissions would not stop a test that runs as root.
    fs::write(folder.path().join("deep/blobs/.tmp"), b"").unwrap();
    assert!(matches!(blobs.put(SPACE, &key, b"x").await, Err(BlobError::Folder { .. })));
    let error = blobs.probe().await.unwrap_err().to_string();
    assert!(error.starts_with("cannot write "), "{error}");
    let in_the_way = BlobLocation::Directory(folder.path().join("deep/blobs/.tmp/more"));
    assert!(matches!(Blobs::open(&in_the_way).await, Err(BlobError::Folder { .. })));
}
