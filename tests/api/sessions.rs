//! Console sessions: how long they last, where they may act, and what other sites may not do with them.

use http::Method;
use model::{Limit, Plan};
use operations::ErrorKind;
use serde_json::{Value, json};
use testkit::{Caller, Engine, PASSWORD, Server, ServerOptions, Tenant, both_engines, error_text};

use super::people::{at, join, sign_up};

const ME: &str = "/api/console/me";
const SESSIONS: &str = "/api/console/sessions";

async fn start(engine: Engine) -> (Server, Tenant) {
    let mut options = ServerOptions::default();
    options.plans.free.api_keys = Limit::UNLIMITED;
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Free).await;
    (server, tenant)
}

async fn log_in_as(server: &Server, tenant: &Tenant, agent: &str) -> Caller {
    let body = json!({ "email": tenant.email, "password": PASSWORD });
    let answer = server.anonymous().with("user-agent", agent).post("/api/console/login", body).await;
    server.cookie(&answer.session_secret())
}

/// rules: AUTH-17, ERR-4
#[both_engines]
async fn a_session_ends_after_thirty_days_for_good(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let (used, unused) = (server.log_in(&tenant).await, server.log_in(&tenant).await);
    server.clock.set("2026-08-13T08:59:59.999Z");
    used.get(ME).await.ok();
    unused.get(ME).await.ok();
    server.clock.set("2026-08-13T09:00:00Z");
    for path in [ME, SESSIONS, "/api/v1/workspaces"] {
        assert_eq!(
            used.get(path).await.expect(401, "unauthorized").text(),
            error_text(ErrorKind::Unauthorized)
        );
    }
    operations::maintenance::run(&server.app).await.unwrap();
    server.clock.set("2026-07-14T09:00:00Z");
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    for session in [&used, &unused] {
        session.get(ME).await.expect(401, "unauthorized");
    }
    server.log_in(&tenant).await.get(ME).await.ok();
}

/// A session that is met after its end is gone then and there, before any upkeep.
/// rules: AUTH-17
#[both_engines]
async fn a_clock_set_back_revives_no_session(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let session = server.log_in(&tenant).await;
    server.clock.advance(30 * 86_400);
    session.get(ME).await.expect(401, "unauthorized");
    server.clock.advance(-30 * 86_400);
    session.get(ME).await.expect(401, "unauthorized");
}

/// rules: AUTH-17
#[both_engines]
async fn logging_out_ends_the_session(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let (one, two) = (server.log_in(&tenant).await, server.log_in(&tenant).await);
    let answer = one.send(Method::POST, "/api/console/logout", None).await;
    assert_eq!((answer.status, answer.bytes.len()), (204, 0));
    assert!(
        answer.header("set-cookie").starts_with("agent_mailbox=; ")
            && answer.header("set-cookie").contains("Max-Age=0")
    );
    one.get(ME).await.expect(401, "unauthorized");
    one.get("/api/v1/workspaces").await.expect(401, "unauthorized");
    one.post("/api/console/logout", json!({})).await.expect(401, "unauthorized");
    two.get(ME).await.ok();
    assert_eq!(two.post("/api/console/logout-everywhere", json!({})).await.status, 204);
    two.get(ME).await.expect(401, "unauthorized");
}

/// rules: AUTH-17, HTTP-5
#[both_engines]
async fn a_person_lists_and_ends_own_sessions(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let phone = log_in_as(&server, &tenant, "phone/1").await;
    server.clock.advance(60);
    let laptop = log_in_as(&server, &tenant, "laptop/2").await;
    let stranger = sign_up(&server, "stranger@people.test").await;
    let listed = laptop.get(SESSIONS).await.ok();
    let expected = json!([
        {
            "id": listed[0]["id"], "current": true, "user_agent": "laptop/2",
            "created_at": "2026-07-14T09:01:00.000Z", "expires_at": "2026-08-13T09:01:00.000Z",
        },
        {
            "id": listed[1]["id"], "current": false, "user_agent": "phone/1",
            "created_at": "2026-07-14T09:00:00.000Z", "expires_at": "2026-08-13T09:00:00.000Z",
        },
    ]);
    assert_eq!(listed, expected);
    assert!(!laptop.get(SESSIONS).await.text().contains(phone.secret().split_once('=').unwrap().1));

    let of = |id: &Value| format!("{SESSIONS}/{}", id.as_str().unwrap());
    let invented = laptop.delete(&format!("{SESSIONS}/ses_none")).await;
    assert_eq!(invented.expect(404, "not_found").json()["error"], "Session not found");
    let theirs = stranger.caller.get(SESSIONS).await.ok()[0]["id"].clone();
    for path in [of(&theirs), format!("{SESSIONS}/%00")] {
        let answer = laptop.delete(&path).await;
        assert_eq!((answer.status, &answer.bytes), (404, &invented.bytes), "{path}");
    }
    stranger.caller.get(ME).await.ok();
    stranger.caller.delete(&of(&listed[1]["id"])).await.expect(404, "not_found");
    phone.get(ME).await.ok();

    assert_eq!(laptop.delete(&of(&listed[1]["id"])).await.status, 204);
    phone.get(ME).await.expect(401, "unauthorized");
    laptop.delete(&of(&listed[1]["id"])).await.expect(404, "not_found");
    assert_eq!(laptop.delete(&of(&listed[0]["id"])).await.status, 204);
    laptop.get(ME).await.expect(401, "unauthorized");
}

/// rules: AUTH-18, AUTH-19
#[both_engines]
async fn a_session_acts_in_each_workspace_with_its_role_there(engine: Engine) {
    let (server, tenant) = start(engine).await;
    server.clock.advance(1);
    let bob = join(&server, &tenant, "bob@people.test", "member").await;
    let joined = tenant.workspace.as_str();
    let own = bob.me["workspaces"].as_array().unwrap().iter().find(|one| one["id"] != joined).unwrap()["id"]
        .clone();
    let own = own.as_str().unwrap();
    let me = bob.caller.get(ME).await.ok();
    assert_eq!(me["workspace_id"], joined);
    let mut listed: Vec<(&str, &str, &str)> = me["workspaces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (one["id"].as_str().unwrap(), one["role"].as_str().unwrap(), one["plan"].as_str().unwrap())
        })
        .collect();
    listed.sort_unstable();
    let mut expected = [(own, "admin", "free"), (joined, "member", "free")];
    expected.sort_unstable();
    assert_eq!(listed, expected);

    // Named in the path, each workspace applies its own role, whichever is chosen.
    for chosen in [own, joined] {
        let switched =
            bob.caller.post("/api/console/workspace", json!({ "workspace_id": chosen })).await.ok();
        assert_eq!(switched["workspace_id"], chosen);
        assert_eq!(bob.caller.get(ME).await.ok(), switched);
        bob.caller.get(&format!("/api/v1/workspaces/{own}/invites")).await.ok();
        bob.caller.get(&at(&tenant, "/invites")).await.expect(403, "role_required");
        let made = bob.caller.post("/api/v1/mailboxes", json!({ "name": "M" })).await.ok();
        assert_eq!(made["workspace_id"], chosen);
        let mailboxes = bob.caller.get("/api/v1/mailboxes").await.ok();
        assert_eq!((mailboxes.as_array().unwrap().len(), &mailboxes[0]["id"]), (1, &made["id"]));
    }
    for foreign in ["ws_none", "", "*", server.tenant(Plan::Free).await.workspace.as_str()] {
        let answer = bob.caller.post("/api/console/workspace", json!({ "workspace_id": foreign })).await;
        answer.expect(403, "workspace_scope_denied");
    }
    bob.caller.post("/api/console/workspace", json!({})).await.expect(400, "validation_failed");
    assert_eq!(bob.caller.get(ME).await.ok()["workspace_id"], joined);
    // The choice belongs to the session, not to the account.
    let body = json!({ "email": "bob@people.test", "password": PASSWORD });
    let other = server.anonymous().post("/api/console/login", body).await;
    let other = server.cookie(&other.session_secret());
    other.post("/api/console/workspace", json!({ "workspace_id": own })).await.ok();
    assert_eq!(bob.caller.get(ME).await.ok()["workspace_id"], joined);
}

/// rules: AUTH-19
#[both_engines]
async fn an_api_key_is_nobody_in_the_console(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let session = server.log_in(&tenant).await;
    let listed = session.get(SESSIONS).await.ok();
    for caller in [&tenant.key, &server.anonymous(), &server.cookie("nonsense")] {
        caller.get(ME).await.expect(401, "unauthorized");
        caller.get(SESSIONS).await.expect(401, "unauthorized");
        caller
            .delete(&format!("{SESSIONS}/{}", listed[0]["id"].as_str().unwrap()))
            .await
            .expect(401, "unauthorized");
        let body = json!({ "workspace_id": tenant.workspace.as_str() });
        caller.post("/api/console/workspace", body).await.expect(401, "unauthorized");
        caller.post("/api/console/logout", json!({})).await.expect(401, "unauthorized");
        caller.post("/api/console/logout-everywhere", json!({})).await.expect(401, "unauthorized");
    }
    session.get(ME).await.ok();
}

/// rules: AUTH-18, AUTH-10
#[both_engines]
async fn whoever_lost_all_workspaces_can_still_log_in_and_out(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let owner = server.log_in(&tenant).await;
    let bob = join(&server, &tenant, "bob@people.test", "admin").await;
    assert_eq!(bob.caller.delete(&at(&tenant, &format!("/members/{}", tenant.account))).await.status, 204);
    for session in [owner, server.log_in(&tenant).await] {
        assert_eq!(session.get(ME).await.ok()["workspaces"], json!([]));
        session.get("/api/v1/mailboxes").await.expect(403, "workspace_scope_denied");
        session.get(&at(&tenant, "")).await.expect(403, "workspace_scope_denied");
        assert_eq!(session.post("/api/console/logout", json!({})).await.status, 204);
    }
}

/// What a browser says about a request that another site made it send.
const FOREIGN: [(&str, &str); 7] = [
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-site", "same-site"),
    ("sec-fetch-site", "nonsense"),
    ("origin", "https://evil.test"),
    ("origin", "http://mail.test.evil.test"),
    ("origin", "http://evil.mail.test"),
    ("origin", "null"),
];

/// rules: AUTH-22, ERR-5
#[both_engines]
async fn other_sites_change_nothing_with_a_cookie(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let session = server.log_in(&tenant).await.with("host", "mail.test").without("sec-fetch-site");
    let workspace = at(&tenant, "");
    let name = session.get(&workspace).await.ok()["name"].clone();
    let listed = session.get(SESSIONS).await.ok();
    let one = format!("{SESSIONS}/{}", listed[0]["id"].as_str().unwrap());
    let credentials = json!({ "email": tenant.email, "password": PASSWORD });
    for (header, value) in FOREIGN {
        let forged = session.with(header, value);
        let answers = [
            forged.put(&workspace, json!({ "name": "Forged" })).await,
            forged.post("/api/v1/mailboxes", json!({ "name": "Forged" })).await,
            forged.post(&at(&tenant, "/api-keys"), json!({ "name": "Forged" })).await,
            forged.delete(&at(&tenant, &format!("/api-keys/{}", tenant.key_id))).await,
            forged.post("/api/console/workspace", json!({ "workspace_id": tenant.workspace.as_str() })).await,
            forged.delete(&one).await,
            forged.post("/api/console/logout", json!({})).await,
            forged.post("/api/console/logout-everywhere", json!({})).await,
            // Being logged in as somebody else is an attack as well.
            server
                .anonymous()
                .with("host", "mail.test")
                .with(header, value)
                .post("/api/console/login", credentials.clone())
                .await,
        ];
        for answer in answers {
            let expected = error_text(ErrorKind::CrossSiteRequest);
            assert_eq!(
                (answer.status, answer.text(), answer.header("set-cookie")),
                (403, expected, ""),
                "{header}: {value}"
            );
        }
        // Looking is harmless: the other site does not see the answer.
        assert_eq!(forged.get(&workspace).await.ok()["name"], name);
        // A key is not something a browser sends by itself.
        tenant.key.with(header, value).put(&workspace, json!({ "timezone": "UTC" })).await.ok();
    }
    assert_eq!(session.get("/api/v1/mailboxes").await.ok(), json!([]));
    for (header, value) in [
        ("sec-fetch-site", "same-origin"),
        ("sec-fetch-site", "none"),
        ("origin", "http://mail.test"),
        ("origin", "http://MAIL.test"),
    ] {
        session.with(header, value).put(&workspace, json!({ "name": "Own" })).await.ok();
    }
    // Every browser says where it stands; a key is what programs have.
    session.put(&workspace, json!({ "name": "Silent" })).await.expect(403, "cross_site_request");
    session.post("/api/console/logout", json!({})).await.expect(403, "cross_site_request");
}
