//! Backups: made beside a running server, restored into either engine, refused when anything is not right.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt, path::Path};

use serde_json::{Value, json};
use store::{
    Db, SystemTx,
    blobs::{BlobHash, BlobLocation, BlobName, BlobSuffix, Blobs},
    dump::{self, Piece},
    vault::DataKey,
};

use super::{Finished, Home, PASSWORD};
use crate::bucket;

/// A home with an account, a key, mailboxes and folders, made by a server that has ended.
fn furnished(home: Home) -> (Home, String) {
    let server = home.serve();
    let workspace = home.create_account("ada@example.com", "developer");
    let (_, key) = home.create_key(&workspace, &[]);
    for name in ["Zoë \"Z\" O'Neil", "Plain", "日本語"] {
        let made = server.call(&key, "POST", "/api/v1/mailboxes", &json!({ "name": name }));
        assert_eq!(made.status, 201, "{}", made.body);
    }
    server.stop();
    (home, key)
}

fn copy_key(from: &Home, to: &Home) {
    fs::create_dir_all(to.data()).unwrap();
    fs::set_permissions(to.data(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::copy(from.data().join("master.key"), to.data().join("master.key")).unwrap();
}

fn restore(home: &Home, backup: &Path) -> Finished {
    home.run(&["restore", backup.to_str().unwrap()])
}

/// All rows of a store, table by table, sorted: engines need not agree on an order.
fn rows(home: &Home) -> Vec<(String, Vec<String>)> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let db = Db::open(&home.database()).await.unwrap();
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        let dumping = tokio::spawn(async move { dump::dump(&db, sender).await });
        let mut tables = Vec::new();
        while let Some(piece) = receiver.recv().await {
            match piece {
                Piece::Table { name, .. } => tables.push((name, Vec::new())),
                Piece::Rows { lines, .. } => {
                    let lines = String::from_utf8(lines).unwrap();
                    tables.last_mut().unwrap().1.extend(lines.lines().map(ToOwned::to_owned));
                }
                Piece::End => {}
            }
        }
        dumping.await.unwrap().unwrap();
        for (_, rows) in &mut tables {
            rows.sort_unstable();
        }
        tables
    })
}

/// rules: CLI-11
#[test]
fn a_store_comes_back_as_it_was_on_and_across_engines() {
    for number in 0..4 {
        let (from_postgres, to_postgres) = (number / 2 == 1, number % 2 == 1);
        let home = |postgres: bool| if postgres { Home::postgres() } else { Some(Home::sqlite()) };
        let (Some(from), Some(to)) = (home(from_postgres), home(to_postgres)) else { continue };
        let (from, key) = furnished(from);
        let backup = from.folder.path().join("saved/today");
        let saved = from.run(&["backup", backup.to_str().unwrap()]).succeeded();
        assert!(saved.stdout.contains("The master key is not part of the backup"), "{}", saved.stdout);
        copy_key(&from, &to);
        restore(&to, &backup).succeeded();
        let (before, after) = (rows(&from), rows(&to));
        assert_eq!(before, after);
        assert!(before.iter().any(|(name, rows)| name == "mailbox" && rows.len() == 3));

        let server = to.serve();
        let mailboxes = server.call(&key, "GET", "/api/v1/mailboxes", &Value::Null);
        assert_eq!((mailboxes.status, mailboxes.json().as_array().unwrap().len()), (200, 3));
        let made = server.call(&key, "POST", "/api/v1/mailboxes", &json!({ "name": "After" }));
        assert_eq!(made.status, 201, "{}", made.body);
        server.stop();
        to.run(&["doctor"]).succeeded();
    }
}

#[test]
fn a_backup_is_whole_though_the_server_goes_on() {
    for home in Home::on_each_engine() {
        let server = home.serve();
        let workspace = home.create_account("ada@example.com", "enterprise");
        let (_, key) = home.create_key(&workspace, &[]);
        let backup = home.folder.path().join("saved");
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                let body = json!({ "name": "Busy" });
                (0..60)
                    .map(|_| server.call(&key, "POST", "/api/v1/mailboxes", &body).status)
                    .collect::<Vec<_>>()
            });
            home.run(&["backup", backup.to_str().unwrap()]).succeeded();
            assert_eq!(writing.join().unwrap(), [201; 60]);
        });
        let copy = Home::sqlite();
        copy_key(&home, &copy);
        // Foreign keys are checked on the way in: half a mailbox would not be taken.
        restore(&copy, &backup).succeeded();
        copy.run(&["doctor"]).succeeded();
    }
}

#[test]
fn blobs_are_carried_as_they_are() {
    let (home, _) = furnished(Home::sqlite());
    let space = home.admin(&["workspace", "list"])[0]["id"].as_str().unwrap().to_owned();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let open = |data: std::path::PathBuf| BlobLocation::Directory(data.join("blobs"));
    let key = DataKey::generate().unwrap();
    let contents: Vec<Vec<u8>> = (0..25_u8).map(|number| vec![number; 1000 * usize::from(number)]).collect();
    let hashes: Vec<BlobHash> = runtime.block_on(async {
        let blobs = Blobs::open(&open(home.data())).await.unwrap();
        let mut hashes = Vec::new();
        for content in &contents {
            hashes.push(blobs.put(&space, &key, content).await.unwrap().hash);
        }
        hashes
    });
    let backup = home.folder.path().join("saved");
    let saved = home.run(&["backup", backup.to_str().unwrap()]).succeeded();
    assert!(saved.stdout.contains("25 blobs"), "{}", saved.stdout);
    let copy = Home::sqlite();
    copy_key(&home, &copy);
    restore(&copy, &backup).succeeded();
    runtime.block_on(async {
        let blobs = Blobs::open(&open(copy.data())).await.unwrap();
        for (hash, content) in hashes.iter().zip(&contents) {
            assert_eq!(blobs.get(&space, &key, hash).await.unwrap(), *content);
        }
    });

    let name = hashes[7].as_str();
    let damaged = backup.join(format!("blobs/{space}/{}/{}/{}", &name[..2], &name[2..4], &name[4..]));
    fs::write(&damaged, "something else").unwrap();
    let other = Home::sqlite();
    copy_key(&home, &other);
    let refused = restore(&other, &backup).failed(1);
    assert!(refused.stderr.contains("is damaged in the backup"), "{}", refused.stderr);
    assert!(rows(&other).iter().all(|(_, rows)| rows.is_empty()), "no row without its blob");
}

/// An object store over HTTP on a loopback port, which checks signatures; its buckets are folders.
pub fn object_store(runtime: &tokio::runtime::Runtime, folder: &Path) -> String {
    let server = bucket::s3_server(folder, "AKIATEST", "hush");
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move { axum::serve(listener, server).await });
    format!("s3://AKIATEST:hush@{address}/mail/PREFIX?tls=false")
}

#[test]
fn blobs_move_between_a_bucket_and_a_folder() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let objects = tempfile::tempdir().unwrap();
    fs::create_dir(objects.path().join("mail")).unwrap();
    let url = object_store(&runtime, objects.path());
    let (from, to) = (url.replace("PREFIX", "from"), url.replace("PREFIX", "to"));
    let (home, _) = furnished(Home::sqlite().with("BLOBS__URL", &from));
    let space = home.admin(&["workspace", "list"])[0]["id"].as_str().unwrap().to_owned();
    let location = |url: &str| BlobLocation::parse(url, &BTreeMap::default()).unwrap();
    let key = DataKey::generate().unwrap();
    let put = async {
        let blobs = Blobs::open(&location(&from)).await.unwrap();
        let suffix = BlobSuffix::of_id(&[7; 16]);
        let hash = blobs.put_with(&space, &key, b"a mail", Some(&suffix)).await.unwrap().hash;
        assert_eq!(blobs.put(&space, &key, b"a mail").await.unwrap().hash, hash);
        [BlobName { hash: hash.clone(), suffix: Some(suffix) }, hash.into()]
    };
    let names = runtime.block_on(put);
    home.run(&["doctor"]).succeeded();
    let backup = home.folder.path().join("saved");
    let saved = home.run(&["backup", backup.to_str().unwrap()]).succeeded();
    assert!(saved.stdout.contains("2 blobs ("), "{}", saved.stdout);
    let folder = Home::sqlite();
    let at = folder.data().join("blobs").display().to_string();
    for (copy, place) in [(folder, &at), (Home::sqlite().with("BLOBS__URL", &to), &to)] {
        copy_key(&home, &copy);
        restore(&copy, &backup).succeeded();
        for name in &names {
            let got = async { Blobs::open(&location(place)).await.unwrap().get(&space, &key, name).await };
            assert_eq!(runtime.block_on(got).unwrap(), b"a mail".as_slice());
        }
        // A program that would not find all of them does not start.
        let sql = "SELECT usable_since FROM migration WHERE version = 35";
        let usable_since = runtime.block_on(async {
            let db = Db::open(&copy.database()).await.unwrap();
            let found = async move |tx: &mut SystemTx| tx.one::<(i64,)>(sql, &[]).await;
            let found: store::Result<_> = db.system_read(found).await;
            found.unwrap()
        });
        assert_eq!(usable_since, Some((35,)));
    }
}

#[test]
fn a_backup_gives_nothing_away() {
    let (home, key) = furnished(Home::sqlite());
    let backup = home.folder.path().join("saved");
    home.run(&["backup", backup.to_str().unwrap()]).succeeded();
    let master_key = fs::read_to_string(home.data().join("master.key")).unwrap();
    let secrets = [key.as_str(), PASSWORD, "argon2", "ada@example.com", "日本語", master_key.trim()];
    let mut folders = vec![backup];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700, "{folder:?}");
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            files += 1;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{path:?}");
            let content = fs::read(&path).unwrap();
            for secret in secrets {
                let found = content.windows(secret.len()).any(|part| part == secret.as_bytes());
                assert!(!found, "{secret} is readable in {path:?}");
            }
        }
    }
    assert_eq!(files, dump::TABLES.len() + 2, "the tables, the index of blobs, the manifest");
}

/// Changes a backup, restores it with the right key, and returns what was said. The store must have stayed empty.
fn refusal(change: impl FnOnce(&Path, &Home)) -> String {
    let (home, _) = furnished(Home::sqlite());
    let backup = home.folder.path().join("saved");
    home.run(&["backup", backup.to_str().unwrap()]).succeeded();
    let target = Home::sqlite();
    copy_key(&home, &target);
    change(&backup, &target);
    let refused = restore(&target, &backup).failed(1);
    assert!(!target.data().join("agent-mailbox.db").exists(), "the store was not even opened");
    refused.stderr
}

#[test]
fn a_damaged_backup_is_refused() {
    let flip = |path: &Path| {
        let mut content = fs::read(path).unwrap();
        let middle = content.len() / 2;
        content[middle] ^= 1;
        fs::write(path, content).unwrap();
    };
    let said = refusal(|backup, _| flip(&backup.join("tables/account")));
    assert!(said.contains("account is damaged"), "{said}");
    let said = refusal(|backup, _| fs::remove_file(backup.join("tables/workspace")).unwrap());
    assert!(said.contains("workspace"), "{said}");
    let said = refusal(|backup, _| fs::remove_file(backup.join("manifest.json")).unwrap());
    assert!(said.contains("unfinished"), "{said}");
    let said = refusal(|backup, _| {
        let path = backup.join("manifest.json");
        let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        manifest["tables"].as_array_mut().unwrap().pop();
        fs::write(&path, manifest.to_string()).unwrap();
    });
    assert!(said.contains("was changed after it was made"), "{said}");
}

#[test]
fn another_master_key_is_refused() {
    let said = refusal(|_, target| fs::write(target.data().join("master.key"), "ab".repeat(32)).unwrap());
    assert!(said.contains("made with another master key"), "{said}");
    let said = refusal(|_, target| {
        fs::remove_file(target.data().join("master.key")).unwrap();
    });
    assert!(said.contains("There is no master key at"), "{said}");
}

#[test]
fn only_an_empty_store_is_filled_and_only_an_empty_folder() {
    for home in Home::on_each_engine() {
        let (home, _) = furnished(home);
        let backup = home.folder.path().join("saved");
        let folder = backup.to_str().unwrap();
        home.run(&["backup", folder]).succeeded();
        let again = home.run(&["backup", folder]).failed(1);
        assert!(again.stderr.contains("is not empty"), "{}", again.stderr);
        let refused = restore(&home, &backup).failed(1);
        assert!(refused.stderr.contains("The store is not empty: its table account"), "{}", refused.stderr);
        if !home.is_postgres() {
            let server = home.serve();
            let refused = restore(&home, &backup).failed(1);
            assert!(refused.stderr.contains("is already served"), "{}", refused.stderr);
            server.stop();
        }
    }
    let nothing = Home::sqlite();
    assert!(nothing.run(&["backup", "saved"]).failed(1).stderr.contains("There is no Agent Mailbox store"));
}
