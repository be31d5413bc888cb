//! The second wall around workspaces: PostgreSQL's row-level security, and statements that name their workspace.

use model::{MailboxId, Plan, Timestamp, WorkspaceId, affiliate::PayoutStatus};
use operations::admin;
use serde_json::json;
use store::{
    Param, Tx,
    telegram::{LinkRecord, NoticeRecord},
};
use testkit::{Engine, PASSWORD, ScriptedModel, Server, ServerOptions, Tenant};

/// Tables with a column that says whose a row is, asked of the catalogue: a new table cannot be forgotten.
async fn tenant_tables(server: &Server) -> Vec<String> {
    // The index of words stands outside, since PostgreSQL could not use it otherwise; it leads to mails alone.
    let sql = "SELECT table_name FROM information_schema.columns
               WHERE table_schema = current_schema() AND column_name = 'workspace_id'
               AND table_name <> 'email_text' ORDER BY table_name";
    let read = server.app.db().system_read(async |tx| tx.all::<(String,)>(sql, &[]).await);
    read.await.unwrap().into_iter().map(|(name,)| name).collect()
}

/// A mail that leaves a row in every table about mail.
const MAIL: &str = "From: a@remote.test\r\nSubject: S\r\nMessage-ID: <1@remote.test>\r\nContent-Type: text/csv\r\n\
                    Content-Disposition: attachment; filename=a.csv\r\n\r\n1;2\r\n";

/// A server on which everything can be made.
async fn furnishable() -> Server {
    let options = ServerOptions {
        assistant: Some(ScriptedModel::saying("Hello")),
        webhooks_allow_private: true,
        ..ServerOptions::default()
    };
    Server::with(Engine::Postgres, options).await
}

/// Rows in every table, by the ways that make them.
async fn furnish(server: &Server, code: &str) -> Tenant {
    let tenant = server.tenant(Plan::Enterprise).await;
    let (key, in_workspace) = (&tenant.key, format!("/api/v1/workspaces/{}", tenant.workspace));
    let mailbox =
        key.with("idempotency-key", "k").post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
    let inside = format!("/api/v1/mailboxes/{}", mailbox["id"].as_str().unwrap());
    let label = json!({ "name": "L", "rules": "has:attachment" });
    key.post(&format!("{inside}/custom-labels"), label).await.ok();
    server.receive(mailbox["email"].as_str().unwrap(), MAIL).await;
    let away = json!({ "settings": { "autoReply": { "enabled": true, "message": "Back soon." } } });
    key.put(&inside, away).await.ok();
    key.post(&format!("{inside}/drafts"), json!({ "body": "T" })).await.ok();
    let id = MailboxId::from(mailbox["id"].as_str().unwrap());
    let (now, name) = (server.clock.now(), code.to_owned());
    let write = server.app.db().write(&tenant.workspace, async move |tx| tokens(tx, &id, &name, now).await);
    write.await.unwrap();
    // A mail from another mailbox, which the one that is away answers.
    let other = key.post("/api/v1/mailboxes", json!({ "name": "B" })).await.ok();
    let emails = format!("/api/v1/mailboxes/{}/emails", other["id"].as_str().unwrap());
    key.post(&emails, json!({ "to": mailbox["email"], "subject": "S", "text": "T" })).await.ok();
    key.post(&format!("{in_workspace}/invites"), json!({ "email": "open@people.test" })).await.ok();
    let domain = json!({ "domain": format!("{code}.example.org") });
    key.post(&format!("{in_workspace}/email-domains"), domain).await.ok();
    let hook = json!({ "url": "https://hooks.example.org/", "event_types": ["message.received"] });
    let hook = key.post(&format!("{in_workspace}/webhooks"), hook).await.ok();
    let trial = format!("{in_workspace}/webhooks/{}/test", hook["id"].as_str().unwrap());
    key.send(http::Method::POST, &trial, None).await.ok();
    let talk = key.post(&format!("{inside}/agent-conversations"), json!({})).await.ok();
    let talk = format!("{inside}/agent-conversations/{}/messages", talk["id"].as_str().unwrap());
    key.post(&talk, json!({ "content": "Hello" })).await.ok();
    let tools = json!({ "name": "Tools", "url": "http://127.0.0.1:9/" });
    key.post("/api/v1/integrations/connections", tools).await.ok();
    key.post("/api/v1/rag/remember", json!({ "text": "T" })).await.ok();
    key.post("/api/v1/rag/documents", json!({ "name": "D", "type": "text", "text": "T" })).await.ok();
    server.index_memory().await;
    key.post("/api/v1/affiliate/signup", json!({ "code": code })).await.ok();
    let body =
        json!({ "email": format!("{code}@people.test"), "password": PASSWORD, "affiliate_code": code });
    let referred = server.anonymous().post("/api/console/sign-up", body).await.ok();
    let referred = WorkspaceId::from(referred["workspace_id"].as_str().unwrap());
    admin::set_plan(&server.app, referred, Plan::Developer, &testkit::operator()).await.unwrap();
    let now = server.clock.now();
    let payout = admin::NewPayout {
        workspace: tenant.workspace.clone(),
        amount_cents: 1,
        currency: "USD".to_owned(),
        status: PayoutStatus::Pending,
        period_start: now.plus_seconds(-60),
        period_end: now,
        reference: None,
    };
    admin::add_payout(&server.app, payout, &testkit::operator()).await.unwrap();
    tenant
}

/// What an agent and a chat hold.
async fn tokens(tx: &mut Tx, mailbox: &MailboxId, name: &str, now: Timestamp) -> store::Result<()> {
    store::confirmations::insert(tx, name.as_bytes(), b"call", now).await?;
    store::telegram::upsert_code(tx, mailbox, name.as_bytes(), now, "acc_1").await?;
    let link = LinkRecord {
        mailbox_id: mailbox.clone(),
        chat_id: 1,
        chat_title: "Chat".to_owned(),
        linked_at: now,
        sequence: 0,
        blocked_at: None,
        failures: 0,
        created_by: None,
    };
    store::telegram::upsert(tx, &link).await?;
    let notice = NoticeRecord {
        id: name.to_owned(),
        workspace_id: tx.workspace().clone(),
        mailbox_id: mailbox.clone(),
        email_id: "eml_1".into(),
        chat_id: 1,
        message_id: 1,
        created_at: now,
    };
    store::telegram::insert_notice(tx, &notice).await
}

/// Rows of tables that nothing fills yet, or that the meter empties at its own time: made once it rests.
async fn furnish_rest(server: &Server, tenant: &Tenant) {
    let now = server.clock.now();
    let write = server.app.db().write(&tenant.workspace, async move |tx| transient_rows(tx, now).await);
    write.await.unwrap();
}

async fn transient_rows(tx: &mut Tx, now: Timestamp) -> store::Result<()> {
    let advance = "INSERT INTO allowance_advance
                       (workspace_id, kind, node_id, period_start, granted, reads, writes, expires_at)
                   VALUES ($1, 'test', 'node', $2, 1, 0, 0, 1)";
    tx.run(advance, &[now.into()]).await?;
    let ledger = "INSERT INTO credit_ledger (workspace_id, id, period_start, day, class, amount, node_id)
                  VALUES ($1, 'entry', $2, 0, 'read', 0, 'node')";
    tx.run(ledger, &[now.into()]).await?;
    // Only plans with rolling limits keep these.
    let counted = "INSERT INTO counter_addition (workspace_id, name, mailbox_id, day, amount)
                   VALUES ($1, 'mails_out', '', 1, 1)";
    tx.run(counted, &[]).await?;
    let used = "INSERT INTO send_use (workspace_id, id, mailbox_id, at, recipients) VALUES ($1, 'use', 'mbx', $2, 1)";
    tx.run(used, &[now.into()]).await?;
    // Only a policy leads to these.
    let owner = "(SELECT min(id) FROM mailbox WHERE workspace_id = $1)";
    for sql in [
        "INSERT INTO send_policy (workspace_id, mailbox_id, policy, version, updated_at)
           VALUES ($1, '', '{}', 1, $2)".to_owned(),
        "INSERT INTO suppression (workspace_id, id, address, mailbox_id, reason, created_at)
           VALUES ($1, 'sup', 'a@remote.test', '', 'manual', $2)"
            .to_owned(),
        "INSERT INTO cap_use (workspace_id, message_id, recipient, mailbox_id, is_new, at)
           VALUES ($1, 'use', 'a@remote.test', 'mbx', 0, $2)".to_owned(),
        format!("INSERT INTO review (workspace_id, id, mailbox_id, email_id, state, reasons, findings, requested_by,
             request, digest, expires_at, created_at)
           VALUES ($1, 'rev', {owner}, 'eml', 'pending', '[]', '[]', 'key', '{{}}', 'd', $2, $2)"),
    ] {
        tx.run(&sql, &[now.into()]).await?;
    }
    let link = "INSERT INTO review_link (workspace_id, token_hash, review_id, account_id) VALUES ($1, $2, 'rev', 'acc')";
    tx.run(link, &[tx.workspace().as_str().to_owned().as_bytes().into()]).await?;
    // Only a model leads to these.
    for (table, columns, values) in [
        (
            "triage_job",
            "id, email_id, outgoing, attempts, failures, version, due_at, created_at",
            "'job', 'eml', 0, 0, 0, 0, $2, $2",
        ),
        (
            "triager_run",
            "id, job_id, triager_id, triager_name, source_kind, email_id, status, summary, tasks, started_at",
            "'run', 'job', 'tri', 'T', 'manual', 'eml', 'RUNNING', '', '[]', $2",
        ),
        (
            "task",
            "id, title, priority, status, email_id, triager_id, created_at, updated_at",
            "'tsk', 'T', 'low', 'open', 'eml', 'tri', $2, $2",
        ),
        ("calendar_event", "uid, sequence, job_id, kind, updated_at", "'uid', 0, 'job', 'kind', $2"),
    ] {
        let sql = format!(
            "INSERT INTO {table} (workspace_id, mailbox_id, {columns}) VALUES ($1, {owner}, {values})"
        );
        tx.run(&sql, &[now.into()]).await?;
    }
    Ok(())
}

/// How many rows of a table belong to whom, as the operator's own statements see them.
async fn owners(server: &Server, table: &str) -> Vec<(String, i64)> {
    let sql = format!("SELECT workspace_id, count(*) FROM {table} GROUP BY workspace_id");
    server.app.db().system_read(async move |tx| tx.all(&sql, &[]).await).await.unwrap()
}

/// What a transaction of one workspace reads, changes and deletes when its statements forget to say which one.
struct Reach {
    read: Vec<(String, i64)>,
    changed: u64,
    deleted: u64,
}

async fn forgetful(server: &Server, workspace: &WorkspaceId, table: &str) -> Reach {
    // Statements of a workspace always get its id as $1; these only mention it.
    let ignored = "CAST($1 AS TEXT) IS NOT NULL";
    let read = format!("SELECT workspace_id, count(*) FROM {table} WHERE {ignored} GROUP BY workspace_id");
    let update = format!("UPDATE {table} SET workspace_id = workspace_id WHERE {ignored}");
    let delete = format!("DELETE FROM {table} WHERE {ignored}");
    // Contents cannot go before the mails that consist of them.
    let first: &[&str] = if table == "content" { &["outbound", "email"] } else { &[] };
    let first: Vec<String> =
        first.iter().map(|table| format!("DELETE FROM {table} WHERE {ignored}")).collect();
    let (report, reported) = std::sync::mpsc::channel();
    let outcome = server.app.db().write(workspace, async move |tx| {
        let read = tx.all(&read, &[]).await?;
        let changed = tx.run(&update, &[]).await?;
        for sql in &first {
            tx.run(sql, &[]).await?;
        }
        let deleted = tx.run(&delete, &[]).await?;
        report.send(Reach { read, changed, deleted }).unwrap();
        // Everything is rolled back.
        Err::<(), _>(store::Error::Overloaded)
    });
    assert!(matches!(outcome.await, Err(store::Error::Overloaded)), "{table}");
    reported.recv().unwrap()
}

/// rules: STORE-9
#[tokio::test]
async fn a_statement_that_forgets_its_workspace_meets_no_other() {
    let server = furnishable().await;
    let (one, two) = (furnish(&server, "one").await, furnish(&server, "two").await);
    let wall = server.app.db().system_read(async |tx| store::system::bypasses_row_security(tx).await);
    assert!(!wall.await.unwrap(), "the tests must run as an ordinary role");
    let tables = tenant_tables(&server).await;
    assert!(tables.len() >= 17, "{tables:?}");
    // The meter writes in the background; what it holds must not change between two looks.
    server.app.meter().close().await;
    furnish_rest(&server, &one).await;
    furnish_rest(&server, &two).await;
    for table in &tables {
        let all = owners(&server, table).await;
        for tenant in [&one, &two] {
            let own = all
                .iter()
                .find(|(id, _)| *id == tenant.workspace.as_str())
                .unwrap_or_else(|| panic!("{table} is empty"));
            let reach = forgetful(&server, &tenant.workspace, table).await;
            assert_eq!(reach.read, std::slice::from_ref(own), "{table}");
            assert_eq!(
                (reach.changed, reach.deleted),
                (own.1.unsigned_abs(), own.1.unsigned_abs()),
                "{table}"
            );
        }
        assert_eq!(forgetful(&server, &WorkspaceId::from(""), table).await.read, [], "{table}");
        assert_eq!(forgetful(&server, &WorkspaceId::from("ws_none"), table).await.read, [], "{table}");
        assert_eq!(owners(&server, table).await.len(), all.len());
    }
}

/// rules: STORE-9
#[tokio::test]
async fn a_row_cannot_be_put_into_another_workspace() {
    let server = furnishable().await;
    let (one, two) = (furnish(&server, "one").await, furnish(&server, "two").await);
    let foreign = two.workspace.clone();
    let sql = "INSERT INTO usage_day (workspace_id, day, metric, amount) VALUES ($2, 1, $1, 1)";
    let insert =
        server.app.db().write(&one.workspace, async move |tx| tx.run(sql, &[(&foreign).into()]).await);
    let refused = insert.await.unwrap_err().to_string();
    assert!(refused.contains("row-level security"), "{refused}");
    let foreign = two.workspace.clone();
    let sql = "UPDATE usage_day SET workspace_id = $2 WHERE workspace_id = $1";
    let moved =
        server.app.db().write(&one.workspace, async move |tx| tx.run(sql, &[(&foreign).into()]).await);
    let refused = moved.await.unwrap_err().to_string();
    assert!(refused.contains("row-level security"), "{refused}");
}

/// rules: STORE-9
#[tokio::test]
async fn every_table_with_a_workspace_is_walled_in() {
    let server = Server::start(Engine::Postgres).await;
    let sql = "SELECT relname FROM pg_class WHERE relrowsecurity AND relforcerowsecurity
               AND relnamespace = CAST(current_schema() AS regnamespace) AND relkind = 'r' ORDER BY relname";
    let read =
        server.app.db().system_read(async move |tx| tx.all::<(String,)>(sql, &[] as &[Param<'_>]).await);
    let walled: Vec<String> = read.await.unwrap().into_iter().map(|(name,)| name).collect();
    assert_eq!(walled, tenant_tables(&server).await);
}

/// A connection keeps the workspace of its last read. One that is cancelled half-way must not leave its own behind.
/// rules: STORE-9
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_read_leaves_no_workspace_behind() {
    let server = furnishable().await;
    let mut tenants = Vec::new();
    for _ in 0..3 {
        tenants.push(server.tenant(Plan::Enterprise).await.workspace);
    }
    let mut reads = tokio::task::JoinSet::new();
    for round in 0..600_u32 {
        let (db, workspace) = (server.app.db().clone(), tenants[(round % 3) as usize].clone());
        reads.spawn(async move {
            let wanted = workspace.clone();
            let read = db.read(&workspace, async move |tx| {
                // The statement forgets its workspace: row-level security alone decides what it sees.
                let sql = "SELECT workspace_id FROM member WHERE CAST($1 AS TEXT) IS NOT NULL";
                tx.all::<(String,)>(sql, &[]).await
            });
            // Every second one is cut off, at any moment.
            let timeout = std::time::Duration::from_micros(u64::from(round % 40) * 20);
            let seen = if round % 2 == 0 {
                match tokio::time::timeout(timeout, read).await {
                    Ok(seen) => seen,
                    Err(_) => return,
                }
            } else {
                read.await
            };
            let seen = seen.unwrap();
            assert!(!seen.is_empty() && seen.iter().all(|(id,)| id == wanted.as_str()), "{wanted}: {seen:?}");
        });
    }
    while let Some(read) = reads.join_next().await {
        read.unwrap();
    }
}
