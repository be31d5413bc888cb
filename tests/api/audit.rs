//! The audit log: what entries say, who may read them, and what they never contain.

use std::net::Ipv4Addr;

use http::Method;

use model::{AccountId, Plan, Role};
use operations::{admin, domains::keys};
use serde_json::{Value, json};
use testkit::{Caller, Engine, PASSWORD, Server, ServerOptions, Tenant, both_engines};

use super::people::{at, token};

/// The entries that a query finds, newest first.
async fn entries(tenant: &Tenant, query: &str) -> Vec<Value> {
    let page = tenant.key.get(&at(tenant, &format!("/audit?limit=100{query}"))).await.ok();
    assert_eq!(page["has_more"], false, "{page}");
    page["entries"].as_array().unwrap().clone()
}

/// The newest entry of an operation.
async fn newest(tenant: &Tenant, operation: &str) -> Value {
    let mut found = entries(tenant, &format!("&operation={operation}")).await;
    assert!(!found.is_empty(), "no entry of {operation}");
    found.remove(0)
}

fn names(entries: &[Value]) -> Vec<&str> {
    entries.iter().map(|entry| entry["operation"].as_str().unwrap()).collect()
}

/// The changes of an entry as "field: from -> to".
fn changes(entry: &Value) -> Vec<String> {
    let changes = entry["changes"].as_array().unwrap();
    changes
        .iter()
        .map(|change| {
            if change["hidden"] == true {
                format!("{}: hidden", change["field"].as_str().unwrap())
            } else {
                format!("{}: {} -> {}", change["field"].as_str().unwrap(), change["from"], change["to"])
            }
        })
        .collect()
}

fn id(value: &Value) -> &str {
    value["id"].as_str().unwrap()
}

/// rules: AUDIT-2, AUDIT-4
#[both_engines]
async fn an_entry_says_who_changed_what_from_where(engine: Engine) {
    let mut options = ServerOptions { webhooks_allow_private: true, ..ServerOptions::default() };
    options.web.proxies = web::Proxies::Count(1);
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Developer).await;
    let key = tenant.key.with("x-forwarded-for", "10.9.8.7, 203.0.113.5").with("x-request-id", "req-1");
    let mailbox = key.post("/api/v1/mailboxes", json!({ "name": "Support" })).await.ok();
    let path = format!("/api/v1/mailboxes/{}", id(&mailbox));
    let settings = json!({ "forwarding": { "enabled": true, "email": "ops@people.test" } });
    key.put(&path, json!({ "name": "Help", "settings": settings })).await.ok();
    let entry = newest(&tenant, "updateMailbox").await;
    assert!(id(&entry).starts_with("aud_"), "{entry}");
    let expected = json!({
        "id": entry["id"],
        "at": "2026-07-14T09:00:00.000Z",
        "actor": { "kind": "key", "id": tenant.key_id, "name": "test" },
        "address": "203.0.113.5",
        "operation": "updateMailbox",
        "subject": path,
        "resource": { "kind": "mailbox", "id": mailbox["id"] },
        "mailbox_id": mailbox["id"],
        "request_id": "req-1",
        "changes": entry["changes"],
    });
    assert_eq!(entry, expected);
    assert_eq!(
        changes(&entry),
        [
            "name: \"Support\" -> \"Help\"",
            "settings.forwarding.enabled: false -> true",
            "settings.forwarding.email: null -> \"ops@people.test\"",
        ]
    );
    let made = newest(&tenant, "createMailbox").await;
    assert_eq!(changes(&made)[0], "name: null -> \"Support\"", "{made}");
    let hook = json!({ "url": "https://hooks.example.org/a?token=t0ken", "event_types": ["message.sent"] });
    let hook = key.post(&at(&tenant, "/webhooks"), hook).await.ok();
    let one = at(&tenant, &format!("/webhooks/{}", id(&hook)));
    key.patch(&one, json!({ "status": "paused" })).await.ok();
    key.delete(&one).await;
    let about = entries(&tenant, &format!("&resource={}", id(&hook))).await;
    assert_eq!(names(&about), ["deleteWebhook", "updateWebhook", "createWebhook"]);
    assert_eq!(changes(&about[1]), ["status: \"active\" -> \"paused\""]);
    assert_eq!(changes(&about[2])[0], "url: null -> \"https://hooks.example.org/a?…\"");
    assert_eq!(about[0]["resource"], json!({ "kind": "webhook", "id": hook["id"] }));
}

/// A deleted key and a person who left can still be recognised.
/// rules: AUDIT-2, AUDIT-4
#[both_engines]
async fn the_names_of_those_who_left_stay(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let session = server.log_in(&tenant).await;
    let made =
        session.post(&at(&tenant, "/api-keys"), json!({ "name": "Robot", "role": "member" })).await.ok();
    let robot = server.key(made["key"].as_str().unwrap());
    let mailbox = tenant.key.post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
    let folders = format!("/api/v1/mailboxes/{}/folders", id(&mailbox));
    robot.post(&folders, json!({ "name": "Done" })).await.ok();
    session.delete(&at(&tenant, &format!("/api-keys/{}", id(&made)))).await;
    let entry = newest(&tenant, "createFolder").await;
    assert_eq!(entry["actor"], json!({ "kind": "key", "id": made["id"], "name": "Robot" }));
    let revoked = newest(&tenant, "revokeApiKey").await;
    assert_eq!(changes(&revoked), ["name: \"Robot\" -> null", "role: \"member\" -> null"]);
    let person = json!({ "kind": "person", "id": tenant.account, "name": tenant.email });
    assert_eq!(revoked["actor"], person);
}

/// rules: AUDIT-6
#[both_engines]
async fn what_people_do_with_their_accounts_is_in_all_their_workspaces(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let invites = at(&tenant, "/invites");
    let invite =
        tenant.key.post(&invites, json!({ "email": "bob@people.test", "role": "member" })).await.ok();
    let body = json!({ "token": token(&invite), "password": PASSWORD });
    let joined = server.anonymous().post("/api/console/invites/accept", body).await;
    let bob = joined.ok();
    let entry = newest(&tenant, "acceptInvite").await;
    assert_eq!(
        (&entry["actor"]["name"], &entry["address"]),
        (&json!("bob@people.test"), &json!("127.0.0.1"))
    );
    assert_eq!(changes(&entry), ["email: null -> \"bob@people.test\"", "role: null -> \"member\""]);
    assert_eq!(entry["resource"], json!({ "kind": "member", "id": bob["account"]["id"] }));

    let own = bob["workspaces"].as_array().unwrap().iter().find(|one| one["role"] == "admin").unwrap();
    let log_in = async || {
        let body = json!({ "email": "bob@people.test", "password": PASSWORD });
        let answer = server.anonymous().post("/api/console/login", body).await;
        assert_eq!(answer.status, 200);
        server.cookie(&answer.session_secret())
    };
    let first = log_in().await;
    let sessions = first.get("/api/console/sessions").await.ok();
    let other = sessions.as_array().unwrap().iter().find(|one| one["current"] == false).unwrap();
    assert_eq!(first.delete(&format!("/api/console/sessions/{}", id(other))).await.status, 204);
    assert_eq!(first.post("/api/console/logout", json!({})).await.status, 204);
    let second = log_in().await;
    let path = format!("/api/v1/workspaces/{}/audit?limit=100", id(own));
    let seen = second.get(&path).await.ok()["entries"].as_array().unwrap().clone();
    assert_eq!(names(&seen), ["logIn", "logOut", "endSession", "logIn", "signUp"]);
    assert_eq!(second.post("/api/console/logout-everywhere", json!({})).await.status, 204);
    let account = bob["account"]["id"].as_str().unwrap();
    let found = entries(&tenant, &format!("&actor={account}")).await;
    assert_eq!(names(&found), ["logOutEverywhere", "logIn", "logOut", "endSession", "logIn", "acceptInvite"]);
    let wrong = json!({ "email": "bob@people.test", "password": "not the password" });
    server.anonymous().post("/api/console/login", wrong).await.expect(401, "unauthorized");
    assert_eq!(entries(&tenant, &format!("&actor={account}")).await.len(), found.len());
}

/// rules: AUDIT-7
#[both_engines]
async fn operators_leave_entries_too(engine: Engine) {
    let server = Server::start(engine).await;
    let first = server.tenant(Plan::Free).await;
    let tenant = server.tenant(Plan::Developer).await;
    let key = server.new_key(&tenant.workspace, Role::Member).await;
    let operator = testkit::operator();
    admin::revoke_key(&server.app, key.api_key.id.clone(), &operator).await.unwrap();
    admin::set_plan(&server.app, tenant.workspace.clone(), Plan::Enterprise, &operator).await.unwrap();
    let found = entries(&tenant, "").await;
    assert_eq!(names(&found), ["setPlan", "revokeApiKey", "createApiKey", "createApiKey", "createAccount"]);
    for entry in &found {
        assert_eq!(entry["actor"], json!({ "kind": "operator", "id": "operator", "name": "root" }));
        assert_eq!((&entry["address"], &entry["subject"]), (&json!("root"), &json!("test")));
    }
    assert_eq!(changes(&found[0]), ["plan: \"developer\" -> \"enterprise\""]);
    assert_eq!(changes(&found[1]), ["name: \"test\" -> null", "role: \"member\" -> null"]);
    // What is refused leaves none.
    admin::revoke_key(&server.app, key.api_key.id, &operator).await.unwrap_err();
    admin::set_plan(&server.app, "ws_none".into(), Plan::Free, &operator).await.unwrap_err();
    assert_eq!(entries(&tenant, "").await.len(), found.len());
    // The keys of the server's own domain are nobody's but the operator's.
    keys::rotate(&server.app, "agents.test", &operator).await.unwrap_err();
    assert_eq!(entries(&first, "&operation=rotateDkimKeys").await.len(), 0);
}

/// rules: AUDIT-8
#[both_engines]
async fn admins_read_pages_and_filter_them(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let mut ids = Vec::new();
    for number in 0..3 {
        server.clock.advance(60);
        let made = tenant.key.post("/api/v1/mailboxes", json!({ "name": format!("M{number}") })).await.ok();
        ids.push(id(&made).to_owned());
    }
    let (first, second) = (ids[0].clone(), ids[1].clone());
    let draft = json!({ "to": "a@people.test", "subject": "S", "body": "B" });
    tenant.key.post(&format!("/api/v1/mailboxes/{second}/drafts"), draft).await.ok();
    let all = entries(&tenant, "").await;
    let expected =
        ["saveDraft", "createMailbox", "createMailbox", "createMailbox", "createApiKey", "createAccount"];
    assert_eq!(names(&all), expected);
    // Page by page the same entries come, each once.
    let (mut paged, mut next) = (Vec::new(), String::new());
    loop {
        let page = tenant.key.get(&at(&tenant, &format!("/audit?limit=2{next}"))).await.ok();
        paged.extend(page["entries"].as_array().unwrap().iter().cloned());
        match page["next_cursor"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => break,
        }
        assert_eq!(page["has_more"], true);
    }
    assert_eq!(paged, all);
    let other = format!("{}&operation=createMailbox", next.replace("&cursor", "/audit?limit=2&cursor"));
    tenant.key.get(&at(&tenant, &other)).await.expect(400, "invalid_cursor");
    for (query, expected) in [
        ("&operation=createMailbox".to_owned(), 3),
        ("&include_routine=false".to_owned(), 5),
        ("&operation=saveDraft".to_owned(), 1),
        ("&operation=saveDraft&include_routine=false".to_owned(), 0),
        (format!("&mailbox_id={second}"), 2),
        (format!("&resource={first}"), 1),
        (format!("&actor={}", tenant.key_id), 4),
        ("&actor=operator".to_owned(), 2),
        ("&actor=key_none".to_owned(), 0),
        ("&since=2026-07-14T09:02:00Z".to_owned(), 3),
        ("&until=2026-07-14T09:02:00Z".to_owned(), 3),
        ("&since=2026-07-14T09:01:00Z&until=2026-07-14T09:01:00.001Z".to_owned(), 1),
    ] {
        assert_eq!(entries(&tenant, &query).await.len(), expected, "{query}");
    }
    for (query, field) in [
        ("operation=noSuchThing", "operation"),
        ("operation=listMembers", "operation"),
        ("mailbox_id=none", "mailbox_id"),
        ("since=yesterday", "since"),
        ("limit=0", "limit"),
        ("kind=key", "kind"),
    ] {
        let answer = tenant.key.get(&at(&tenant, &format!("/audit?{query}"))).await;
        let refused = answer.expect(400, "validation_failed").json();
        assert_eq!(refused["details"][0]["path"], field, "{query}: {refused}");
    }
}

/// rules: AUDIT-8
#[both_engines]
async fn nobody_else_reads_them(engine: Engine) {
    let server = Server::start(engine).await;
    let (tenant, other) = (server.tenant(Plan::Enterprise).await, server.tenant(Plan::Enterprise).await);
    let path = at(&tenant, "/audit");
    other.key.get(&path).await.expect(403, "workspace_scope_denied");
    server.log_in(&other).await.get(&path).await.expect(403, "workspace_scope_denied");
    let member = server.new_key(&tenant.workspace, Role::Member).await;
    server.key(&member.key).get(&path).await.expect(403, "role_required");
    server.anonymous().get(&path).await.expect(401, "unauthorized");
    for entry in entries(&other, "").await {
        assert!(!entry.to_string().contains(tenant.workspace.as_str()), "{entry}");
    }
}

/// A filter that matches few entries ends its pages early, and still finds them all.
/// rules: AUDIT-8
#[both_engines]
async fn a_page_examines_a_bounded_part(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let write = server.app.db().write(&tenant.workspace, async |tx| {
        let entry = |number: i64| store::audit::AuditEntry {
            id: format!("{:012x}{number:020x}", 1_784_019_600_000_i64),
            at: model::Timestamp::from_micros(1_784_019_600_000_000),
            actor: "key_many".to_owned(),
            actor_name: None,
            address: None,
            operation: "updateEmail".to_owned(),
            subject: String::new(),
            request_id: String::new(),
        };
        let details = model::audit::AuditDetails::default();
        for some in 0..12 {
            let many: Vec<_> = (some * 1000..(some + 1) * 1000).map(entry).collect();
            let many: Vec<_> = many.iter().map(|one| (one, &details)).collect();
            store::audit::insert(tx, &many).await?;
        }
        Ok::<_, store::Error>(())
    });
    write.await.unwrap();
    let (mut found, mut pages, mut next) = (Vec::new(), 0, String::new());
    loop {
        let page = tenant.key.get(&at(&tenant, &format!("/audit?actor=operator{next}"))).await.ok();
        found.extend(page["entries"].as_array().unwrap().iter().cloned());
        pages += 1;
        match page["next_cursor"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!((names(&found), pages), (vec!["createApiKey", "createAccount"], 2));
    // What is no everyday work has an index of its own.
    assert_eq!(entries(&tenant, "&operation=createApiKey").await.len(), 1);
    assert_eq!(entries(&tenant, "&include_routine=false").await.len(), 2);
}

/// The rows of the log as the store has them.
async fn raw_rows(server: &Server) -> String {
    let read = server.app.db().system_read(async |tx| {
        let sql = "SELECT coalesce(changes, '') || ' ' || subject || ' ' || actor || ' ' || coalesce(actor_name, '')
                   || ' ' || coalesce(address, '') || ' ' || coalesce(resource_id, '') FROM audit";
        tx.all::<(String,)>(sql, &[]).await
    });
    let rows: Result<Vec<(String,)>, store::Error> = read.await;
    rows.unwrap().into_iter().map(|(row,)| row + "\n").collect()
}

/// Makes secrets of every kind, and contents.
async fn make_secrets(server: &Server, tenant: &Tenant, session: &Caller) -> Vec<String> {
    let mut secrets = vec![PASSWORD.to_owned(), "another long password".to_owned()];
    let key = session.post(&at(tenant, "/api-keys"), json!({ "name": "K" })).await.ok();
    secrets.push(key["key"].as_str().unwrap().to_owned());
    let hook = json!({ "url": "https://hooks.example.org/?token=q0ery", "event_types": ["message.sent"] });
    let hook = session.post(&at(tenant, "/webhooks"), hook).await.ok();
    let rotate = at(tenant, &format!("/webhooks/{}/rotate-secret", id(&hook)));
    let rotated = session.send(Method::POST, &rotate, None).await.ok();
    secrets.extend([&hook, &rotated].map(|one| one["secret"].as_str().unwrap().to_owned()));
    secrets.push("q0ery".to_owned());
    let all = "/api/v1/integrations/connections";
    let tools = json!({ "name": "T", "url": "http://127.0.0.1:9/p4th", "headers": { "authorization": "Bearer cr3d" } });
    let tools = session.post(all, tools).await.ok();
    let change = json!({ "headers": { "authorization": "Bearer n3w" } });
    session.patch(&format!("{all}/{}", id(&tools)), change).await.ok();
    secrets.extend(["p4th", "cr3d", "n3w"].map(ToOwned::to_owned));
    let invite = session.post(&at(tenant, "/invites"), json!({ "email": "bob@people.test" })).await.ok();
    secrets.push(token(&invite));
    let mailbox = session.post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
    let one = format!("/api/v1/mailboxes/{}", id(&mailbox));
    let mail = json!({ "to": mailbox["email"], "subject": "Subj3ct", "text": "T3xt" });
    session.post(&format!("{one}/emails"), mail).await.ok();
    let draft = json!({ "to": mailbox["email"], "subject": "Dr4ft", "body": "B0dy" });
    session.post(&format!("{one}/drafts"), draft).await.ok();
    session.post("/api/v1/rag/remember", json!({ "text": "M3mory" })).await.ok();
    let document = json!({ "name": "D0c", "type": "text", "text": "C0ntent" });
    session.post("/api/v1/rag/documents", document).await.ok();
    secrets.extend(["Subj3ct", "T3xt", "Dr4ft", "B0dy", "M3mory", "D0c", "C0ntent"].map(ToOwned::to_owned));
    let client = operations::Client {
        network: Ipv4Addr::LOCALHOST.into(),
        device: None,
        user_agent: String::new(),
        request: operations::RequestInfo::default(),
    };
    let secret = session.secret().split_once('=').unwrap().1.to_owned();
    let caller = server.app.authenticate(&operations::Credential::Session(secret.clone())).await.unwrap();
    let change = json!({ "current": PASSWORD, "password": "another long password" });
    let change = serde_json::from_value(change).unwrap();
    operations::password_resets::change(&server.app, &caller, change, &client).await.unwrap();
    secrets.push(secret);
    secrets
}

/// rules: AUDIT-5, AUDIT-6
#[both_engines]
async fn no_entry_contains_a_secret_or_contents(engine: Engine) {
    let options = ServerOptions { webhooks_allow_private: true, ..ServerOptions::default() };
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let session = server.log_in(&tenant).await;
    let secrets = make_secrets(&server, &tenant, &session).await;
    let rows = raw_rows(&server).await + &json!(entries(&tenant, "").await).to_string();
    for secret in &secrets {
        assert!(!rows.contains(secret.as_str()), "{secret} is in the log");
    }
    let account: &AccountId = &tenant.account;
    let changed = newest(&tenant, "changePassword").await;
    assert_eq!(changes(&changed), ["password: hidden"]);
    assert_eq!(changed["resource"], json!({ "kind": "account", "id": account }));
    assert_eq!(changes(&newest(&tenant, "rotateWebhookSecret").await), ["secret: hidden"]);
    let connection = newest(&tenant, "updateIntegrationConnection").await;
    assert_eq!(changes(&connection), ["headers: hidden"]);
    assert_eq!(newest(&tenant, "sendEmail").await["changes"], json!([]));
}
