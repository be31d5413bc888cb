//! Bringing the schema up to date.

use model::{MailboxId, Plan, Timestamp, WorkspaceId, triagers::Triager};
use serde_json::json;
use store::{DatabaseLocation, Db};
use testkit::{Engine, Server, both_engines};

fn now() -> Timestamp {
    "2026-07-14T09:00:00Z".parse().unwrap()
}

/// A store without a schema, in the place of a server that is used for nothing else.
async fn empty_store(engine: Engine) -> (Server, DatabaseLocation) {
    let server = Server::start(engine).await;
    if engine == Engine::Sqlite {
        let location = DatabaseLocation::Sqlite(server.folder().join("empty.db"));
        return (server, location);
    }
    let drop = server.app.db().system_write(async |tx| {
        let sql = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()";
        for (table,) in tx.all::<(String,)>(sql, &[]).await? {
            tx.run(&format!("DROP TABLE {table} CASCADE"), &[]).await?;
        }
        Ok::<_, store::Error>(())
    });
    drop.await.unwrap();
    let location = server.location().clone();
    (server, location)
}

async fn history(db: &Db) -> Vec<(i64, String)> {
    let sql = "SELECT version, checksum FROM schema_migration UNION SELECT version, checksum FROM migration
        ORDER BY version";
    db.system_read(async move |tx| tx.all(sql, &[]).await).await.unwrap()
}

/// rules: STORE-16
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_together_migrate_once(engine: Engine) {
    let (_server, location) = empty_store(engine).await;
    let mut starts = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let location = location.clone();
        starts.spawn(async move {
            let db = Db::open(&location).await?;
            db.migrate(now()).await?;
            db.schema_version().await
        });
    }
    for version in starts.join_all().await {
        assert_eq!(version.unwrap(), Db::newest_schema());
    }
    let db = Db::open(&location).await.unwrap();
    assert_eq!(history(&db).await.len(), usize::try_from(Db::newest_schema()).unwrap());
    assert_eq!(db.system_read(async |tx| store::system::counts(tx).await).await.unwrap(), (0, 0));
}

/// rules: STORE-16
#[both_engines]
async fn a_store_without_a_schema_says_so(engine: Engine) {
    let (_server, location) = empty_store(engine).await;
    let db = Db::open(&location).await.unwrap();
    assert_eq!(db.schema_version().await.unwrap(), 0);
    db.migrate_to(1, now()).await.unwrap();
    assert_eq!(db.schema_version().await.unwrap(), 1);
    db.migrate(now()).await.unwrap();
    assert_eq!(db.schema_version().await.unwrap(), Db::newest_schema());
}

/// rules: STORE-16
#[both_engines]
async fn data_is_kept_over_a_start(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    tenant.key.post("/api/v1/mailboxes", json!({ "name": "Kept" })).await.ok();
    let before = tenant.key.get("/api/v1/mailboxes").await.bytes;
    let db = Db::open(server.location()).await.unwrap();
    let known = history(&db).await;
    db.migrate(now()).await.unwrap();
    assert_eq!(history(&db).await, known);
    assert_eq!(tenant.key.get("/api/v1/mailboxes").await.bytes, before);
}

/// rules: STORE-16
#[both_engines]
async fn a_newer_store_is_refused(engine: Engine) {
    let server = Server::start(engine).await;
    let newer = Db::newest_schema() + 1;
    let sql =
        "INSERT INTO schema_migration (version, name, checksum, applied_at) VALUES ($1, 'future', 'x', 0)";
    server.app.db().system_write(async move |tx| tx.run(sql, &[newer.into()]).await).await.unwrap();
    let db = Db::open(server.location()).await.unwrap();
    let refused = db.migrate(now()).await.unwrap_err().to_string();
    let expected = format!(
        "the store has schema version {newer}, this program knows up to {}: run a newer program",
        newer - 1
    );
    assert!(refused.ends_with(&expected), "{refused}");
    assert_eq!(db.schema_version().await.unwrap(), newer);
}

/// While a newer program changes the schema in a way that this one can live with, calls go on, and so they do after this
/// program has been started again.
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_runs_beside_a_newer_schema(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let made = tenant.key.post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
    let (address, path) =
        (made["email"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned());
    let list = format!("/api/v1/mailboxes/{path}/emails?limit=100");
    let done = std::sync::atomic::AtomicBool::new(false);
    let load = async {
        let mut arrived = 0;
        while arrived < 20 || !done.load(std::sync::atomic::Ordering::Relaxed) {
            let mail = format!("Subject: {arrived}\r\nMessage-ID: <{arrived}@remote.test>\r\n\r\nx\r\n");
            server.receive(&address, mail).await;
            arrived += 1;
            tenant.key.get(&list).await.ok();
        }
        arrived
    };
    let (newer, current) = (Db::newest_schema() + 1, Db::newest_schema());
    let migrate = async {
        let migrate = server.app.db().system_write(async move |tx| {
            tx.run("ALTER TABLE email ADD COLUMN next_thing TEXT", &[]).await?;
            tx.run("CREATE INDEX email_next ON email (next_thing)", &[]).await?;
            tx.run("CREATE TABLE next_table (id TEXT NOT NULL PRIMARY KEY)", &[]).await?;
            let sql = "INSERT INTO migration (version, name, checksum, applied_at, usable_since)
                VALUES ($1, 'next', 'x', 0, $2)";
            tx.run(sql, &[newer.into(), current.into()]).await
        });
        let migrated: store::Result<u64> = migrate.await;
        migrated.unwrap();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    let (arrived, ()) = tokio::join!(load, migrate);
    let count = async |server: &Server| {
        let key = server.key(tenant.key.secret());
        key.get(&list).await.ok()["emails"].as_array().unwrap().len()
    };
    assert_eq!(count(&server).await, arrived.min(100));
    let again = Db::open(server.location()).await.unwrap();
    again.migrate(now()).await.unwrap();
    assert_eq!(again.schema_version().await.unwrap(), newer);
}

/// Programs from before the second history refuse a store in which the first has a version that they do not know.
#[both_engines]
async fn programs_of_the_first_history_can_be_started_again(engine: Engine) {
    let server = Server::start(engine).await;
    let sql = "SELECT max(version) FROM schema_migration";
    let found: Option<(i64,)> =
        server.app.db().system_read(async move |tx| tx.one(sql, &[]).await).await.unwrap();
    assert_eq!(found, Some((32,)));
}

/// rules: STORE-16
#[both_engines]
async fn a_store_with_another_history_is_refused(engine: Engine) {
    let server = Server::start(engine).await;
    let sql = "UPDATE schema_migration SET checksum = 'changed' WHERE version = 1";
    server.app.db().system_write(async move |tx| tx.run(sql, &[]).await).await.unwrap();
    let db = Db::open(server.location()).await.unwrap();
    let refused = db.migrate(now()).await.unwrap_err().to_string();
    assert!(refused.ends_with("migration 1 of the store differs from this program's"), "{refused}");
    assert_eq!(history(&db).await[0].1, "changed");
}

/// A workspace with a mailbox, as stores from the beginning have them.
async fn add_old_mailbox(db: &Db, mailbox: &MailboxId) {
    let (owner, made) = (mailbox.clone(), now());
    let write = db.system_write(async move |tx| {
        let workspace = "INSERT INTO workspace (id, name, owner_address, timezone, plan, data_key, created_at, updated_at)
            VALUES ('ws_1', 'W', 'a', 'UTC', 'free', $1, 0, 0)";
        tx.run(workspace, &[store::Param::Bytes(&[1])]).await?;
        let sql = "INSERT INTO mailbox (workspace_id, id, public_id, email, name, settings, created_at, updated_at)
            VALUES ('ws_1', $1, 'u', 'a@agents.test', 'A', '{}', $2, $2)";
        tx.run(sql, &[(&owner).into(), made.into()]).await
    });
    write.await.unwrap();
}

/// A mailbox of a store from before there were triagers gets the same one that a new mailbox is made with.
/// rules: STORE-16, TRIAGE-2
#[both_engines]
async fn older_mailboxes_get_their_triager(engine: Engine) {
    let (_server, location) = empty_store(engine).await;
    let db = Db::open(&location).await.unwrap();
    db.migrate_to(8, now()).await.unwrap();
    let mailbox = MailboxId::from("mbx_01h8xgjy4n7r2v6c0d5t9kqwez");
    add_old_mailbox(&db, &mailbox).await;
    db.migrate(now()).await.unwrap();
    let wanted = mailbox.clone();
    let workspace = WorkspaceId::from("ws_1");
    let found = db.read(&workspace, async move |tx| store::triagers::list(tx, &wanted).await);
    let found = serde_json::to_value(found.await.unwrap()).unwrap();
    assert_eq!(found, json!([Triager::first_of(&mailbox, now())]));
}

/// The rows of threads in folders are moved into a table of another order, and go with their thread as before.
/// rules: STORE-16
#[both_engines]
async fn threads_stay_in_their_folders(engine: Engine) {
    type Place = (String, String, String);
    const PLACES: &str = "SELECT folder_id, thread_id, newest_at || ' ' || newest_email || ' ' || mail_count || ' ' || unread_count
        FROM thread_folder ORDER BY folder_id, thread_id";
    let (_server, location) = empty_store(engine).await;
    let db = Db::open(&location).await.unwrap();
    db.migrate_to(17, now()).await.unwrap();
    add_old_mailbox(&db, &MailboxId::from("mbx_1")).await;
    let write = db.system_write(async |tx| {
            for thread in ["thr_1", "thr_2"] {
                let sql = "INSERT INTO thread (workspace_id, mailbox_id, id, newest_at, mail_count)
                    VALUES ('ws_1', 'mbx_1', $1, 7, 3)";
                tx.run(sql, &[thread.into()]).await?;
                for folder in ["", "fld_1"] {
                    let sql = "INSERT INTO thread_folder (workspace_id, mailbox_id, folder_id, thread_id, newest_at,
                        newest_email, mail_count, unread_count) VALUES ('ws_1', 'mbx_1', $1, $2, 7, 'eml_1', 3, 2)";
                    tx.run(sql, &[folder.into(), thread.into()]).await?;
                }
            }
            Ok::<_, store::Error>(())
        });
    write.await.unwrap();
    let places = async || db.system_read(async |tx| tx.all::<Place>(PLACES, &[]).await).await.unwrap();
    let before = places().await;
    db.migrate(now()).await.unwrap();
    assert_eq!((places().await, before.len()), (before, 4));
    let delete = async |tx: &mut store::SystemTx| tx.run("DELETE FROM thread WHERE id = 'thr_1'", &[]).await;
    db.system_write(delete).await.unwrap();
    let left: Vec<String> = places().await.into_iter().map(|place| place.1).collect();
    assert_eq!(left, ["thr_2", "thr_2"]);
}

/// Custom domains of two workspaces as stores had them while a claim kept others away.
async fn add_old_claims(db: &Db) {
    // Each: a workspace's domain, its state, who held the claim, and whether that was open.
    const DOMAINS: &[(&str, &str, &str, &str, i64)] = &[
        ("ws_1", "proven.test", "verified", "ws_1", 0),
        ("ws_1", "waiting.test", "pending", "ws_1", 0),
        ("ws_1", "gone.test", "failed", "ws_1", 1),
        ("ws_1", "taken.test", "failed", "ws_2", 0),
        ("ws_2", "taken.test", "verified", "ws_2", 0),
        ("ws_1", "retaken.test", "failed", "ws_2", 0),
        ("ws_2", "retaken.test", "pending", "ws_2", 0),
    ];
    let write = db.system_write(async |tx| {
        for workspace in ["ws_1", "ws_2"] {
            let sql = "INSERT INTO workspace (id, name, owner_address, timezone, plan, data_key, created_at, updated_at)
                VALUES ($1, 'W', $1, 'UTC', 'developer', $2, 0, 0)";
            tx.run(sql, &[workspace.into(), store::Param::Bytes(&[1])]).await?;
        }
        for (workspace, domain, status, owner, open) in DOMAINS {
            let sql = "INSERT INTO email_domain (workspace_id, id, domain, status, token, found, verified_at, next_check_at,
                created_at, updated_at) VALUES ($1, 'dom_' || $2, $2, $3, 't', '{}', $4, 0, 1, 2)";
            let verified: Option<Timestamp> = (*status == "verified").then(|| Timestamp::from_micros(7));
            tx.run(sql, &[(*workspace).into(), (*domain).into(), (*status).into(), verified.into()]).await?;
            let sql = "INSERT INTO domain_claim (domain, owner_workspace, open) VALUES ($1, $2, $3) ON CONFLICT (domain) DO NOTHING";
            tx.run(sql, &[(*domain).into(), (*owner).into(), (*open).into()]).await?;
            let sql = "INSERT INTO mailbox (workspace_id, id, public_id, email, name, settings, email_domain_id, created_at,
                updated_at) VALUES ($1, 'mbx_' || $2, $2, 'info@' || $2, 'A', '{}', 'dom_' || $2, 0, 0)";
            tx.run(sql, &[(*workspace).into(), (*domain).into()]).await?;
            if workspace == owner {
                let sql = "INSERT INTO address (owner_workspace, address, mailbox_id) VALUES ($1, 'info@' || $2, 'mbx_' || $2)";
                tx.run(sql, &[(*workspace).into(), (*domain).into()]).await?;
                let sql = "INSERT INTO address (owner_workspace, address) VALUES ($1, 'old@' || $2)";
                tx.run(sql, &[(*workspace).into(), (*domain).into()]).await?;
            }
        }
        let sql = "INSERT INTO address (owner_workspace, address) VALUES ('ws_1', 'info@agents.test'),
            ('ws_1', 'info@notproven.test')";
        tx.run(sql, &[]).await
    });
    write.await.unwrap();
}

/// Claims of older stores go on as what they were: proven ones reach their mailboxes, lost ones have ended.
/// rules: STORE-16, DOMAIN-12, DOMAIN-13
#[both_engines]
async fn older_claims_become_claims_of_their_own(engine: Engine) {
    type Claim = (String, String, Option<i64>, Option<i64>);
    let (_server, location) = empty_store(engine).await;
    let db = Db::open(&location).await.unwrap();
    db.migrate_to(19, now()).await.unwrap();
    add_old_claims(&db).await;
    db.migrate(now()).await.unwrap();
    let sql = "SELECT domain, owner_workspace, proven_at, ended_at FROM domain_claim ORDER BY domain, owner_workspace";
    let claims = db.system_read(async |tx| tx.all::<Claim>(sql, &[]).await).await.unwrap();
    let claims: Vec<_> = claims.iter().map(|claim| (&*claim.0, &*claim.1, claim.2, claim.3)).collect();
    assert_eq!(
        claims,
        [
            ("gone.test", "ws_1", None, None),
            ("proven.test", "ws_1", Some(7), None),
            ("retaken.test", "ws_1", None, None),
            ("retaken.test", "ws_2", None, None),
            ("taken.test", "ws_1", None, Some(7)),
            ("taken.test", "ws_2", Some(7), None),
            ("waiting.test", "ws_1", None, None),
        ]
    );
    let sql = "SELECT address FROM address ORDER BY address";
    let left = db.system_read(async |tx| tx.all::<(String,)>(sql, &[]).await).await.unwrap();
    assert_eq!(left, [("info@agents.test".to_owned(),), ("info@notproven.test".to_owned(),)]);
    let route = async |address: &'static str| {
        let found = db.system_read(async move |tx| store::system::route(tx, address).await).await.unwrap();
        found.map(|route| route.workspace_id.as_str().to_owned())
    };
    assert_eq!(route("info@proven.test").await.as_deref(), Some("ws_1"));
    assert_eq!(route("info@taken.test").await.as_deref(), Some("ws_2"));
    for nobodys in ["info@gone.test", "info@waiting.test", "info@retaken.test", "old@proven.test"] {
        assert_eq!(route(nobodys).await, None, "{nobodys}");
    }
    let disabled = async |workspace: &str| {
        let workspace = WorkspaceId::from(workspace);
        let found = db.read(&workspace, async |tx| store::mailboxes::list(tx).await).await.unwrap();
        let reasons = found.into_iter().filter_map(|mailbox| Some((mailbox.email, mailbox.disabled_reason?)));
        reasons.collect::<Vec<_>>()
    };
    assert_eq!(disabled("ws_1").await, [("info@taken.test".to_owned(), "domain_claimed".to_owned())]);
    assert_eq!(disabled("ws_2").await, []);
}
