//! On SQLite; the tests of the whole program do the same across both engines.

use std::collections::BTreeSet;

use model::Timestamp;
use tempfile::TempDir;

use super::*;
use crate::DatabaseLocation;

async fn open(folder: &TempDir, name: &str) -> Db {
    let db = Db::open(&DatabaseLocation::Sqlite(folder.path().join(name))).await.unwrap();
    db.migrate(Timestamp::from_micros(0)).await.unwrap();
    db
}

async fn fill(db: &Db, accounts: usize) {
    let filled: Result<u64> = db.system_write(async move |tx| {
        for number in 0..accounts {
            let (id, email) = (format!("acc_{number:06}"), format!("person{number}@example.com"));
            tx.run(
                "INSERT INTO account (id, email, name, password_hash, is_admin, address, created_at, updated_at)
                 VALUES ($1, $2, 'Zoë \"Z\"', 'hash', 0, $2, 1, 2)",
                &[(&id).into(), (&email).into()],
            )
            .await?;
        }
        tx.run(
            "INSERT INTO session (id, secret_hash, account_id, chosen_workspace, user_agent, created_at, expires_at)
             VALUES ('ses_1', $1, 'acc_000000', '', '', 1, 2)",
            &[Param::Bytes(&[0, 10, 255])],
        )
        .await
    })
    .await;
    filled.unwrap();
}

async fn collect(db: &Db) -> Vec<Piece> {
    let (sender, mut receiver) = mpsc::channel(1);
    let db = db.clone();
    let dumping = tokio::spawn(async move { dump(&db, sender).await });
    let mut pieces = Vec::new();
    while let Some(piece) = receiver.recv().await {
        pieces.push(piece);
    }
    assert_eq!(dumping.await.unwrap().unwrap(), Db::newest_schema());
    pieces
}

async fn put(db: &Db, pieces: Vec<Piece>) -> Result<()> {
    let (sender, receiver) = mpsc::channel(1);
    let feeding = tokio::spawn(async move {
        for piece in pieces {
            if sender.send(piece).await.is_err() {
                return;
            }
        }
    });
    let outcome = restore(db, receiver).await;
    feeding.await.unwrap();
    outcome
}

#[tokio::test(flavor = "multi_thread")]
async fn every_table_is_saved_or_left_out_on_purpose() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder, "store.db").await;
    let present: BTreeSet<String> =
        db.system_read(async |tx| tx.tables().await).await.unwrap().into_iter().collect();
    let listed: BTreeSet<String> =
        TABLES.iter().chain(EXCLUDED_TABLES).map(|name| (*name).to_owned()).collect();
    assert_eq!(present, listed, "a new table belongs into TABLES (or, with a reason, into EXCLUDED_TABLES)");
    assert_eq!(listed.len(), TABLES.len() + EXCLUDED_TABLES.len(), "no table is listed twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn parents_come_before_their_children_and_every_table_has_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder, "store.db").await;
    for (position, table) in TABLES.iter().enumerate() {
        let (parents, columns) = db
            .system_read(async move |tx| {
                let sql = "SELECT \"table\" FROM pragma_foreign_key_list($1)";
                let parents: Vec<(String,)> = tx.all(sql, &[(*table).into()]).await?;
                Ok::<_, Error>((parents, tx.columns(table).await?))
            })
            .await
            .unwrap();
        for (parent,) in parents {
            assert!(
                TABLES[..position].contains(&parent.as_str()),
                "{table} comes before its parent {parent}"
            );
        }
        assert!(!key_columns(&columns).is_empty(), "{table} has no primary key to page by");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_back_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (open(&folder, "from.db").await, open(&folder, "to.db").await);
    // More than two pieces, and not a multiple of a piece.
    fill(&from, 2 * 1000 + 7).await;
    let pieces = collect(&from).await;
    let sizes: Vec<u64> = pieces
        .iter()
        .filter_map(|piece| if let Piece::Rows { count, .. } = piece { Some(*count) } else { None })
        .collect();
    assert_eq!(sizes, [1000, 1000, 7, 1]);
    assert_eq!(pieces.last(), Some(&Piece::End));
    assert_eq!(first_filled_table(&to).await.unwrap(), None);
    put(&to, pieces.clone()).await.unwrap();
    assert_eq!(collect(&to).await, pieces);
    assert_eq!(first_filled_table(&to).await.unwrap(), Some("account"));
    let error = put(&to, pieces).await.unwrap_err().to_string();
    assert!(error.contains("table account has rows"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_breaks_off_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (open(&folder, "from.db").await, open(&folder, "to.db").await);
    fill(&from, 3).await;
    let mut pieces = collect(&from).await;
    pieces.pop();
    assert!(put(&to, pieces.clone()).await.is_err());
    assert_eq!(first_filled_table(&to).await.unwrap(), None);

    let mut other = pieces.clone();
    let Piece::Table { columns, .. } = &mut other[0] else { panic!("a dump begins with a table") };
    columns[1] = "e_mail".to_owned();
    assert!(put(&to, other).await.unwrap_err().to_string().contains("other columns"));
    let strange = vec![Piece::Table { name: "sqlite_master".to_owned(), columns: Vec::new() }];
    assert!(put(&to, strange).await.unwrap_err().to_string().contains("does not know"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dump_does_not_see_what_happens_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let db = open(&folder, "store.db").await;
    fill(&db, 1000).await;
    let (sender, mut receiver) = mpsc::channel(1);
    let dumping = tokio::spawn({
        let db = db.clone();
        async move { dump(&db, sender).await }
    });
    let mut rows = 0;
    let mut first = true;
    while let Some(piece) = receiver.recv().await {
        if std::mem::take(&mut first) {
            let gone = async |tx: &mut SystemTx| tx.run("DELETE FROM account", &[]).await;
            db.system_write(gone).await.unwrap();
        }
        if let Piece::Rows { count, .. } = piece {
            rows += count;
        }
    }
    dumping.await.unwrap().unwrap();
    assert_eq!(rows, 1001, "the accounts and the session, though both were deleted");
}
