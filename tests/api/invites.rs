//! Invitations: made and withdrawn by admins, accepted in the console.

use std::collections::HashSet;

use model::{Limit, Plan};
use operations::ErrorKind;
use serde_json::{Value, json};
use testkit::{Answer, Engine, PASSWORD, Server, ServerOptions, Tenant, both_engines, error_text_with};

use super::people::{Person, accept, at, join, sign_up, token};

async fn start(engine: Engine) -> (Server, Tenant) {
    let mut options = ServerOptions::default();
    options.plans.free.members = Limit::of(100);
    options.plans.free.api_keys = Limit::UNLIMITED;
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Free).await;
    (server, tenant)
}

async fn invite(tenant: &Tenant, email: &str) -> Value {
    tenant.key.post(&at(tenant, "/invites"), json!({ "email": email })).await.ok()
}

async fn open_invites(tenant: &Tenant) -> Value {
    tenant.key.get(&at(tenant, "/invites")).await.ok()
}

fn gone() -> String {
    error_text_with("Invite not found", ErrorKind::NotFound)
}

/// rules: AUTH-21
fn assert_gone(answer: &Answer) {
    assert_eq!((answer.status, answer.text(), answer.header("set-cookie")), (404, gone(), ""));
}

/// rules: WS-12
#[both_engines]
async fn an_admin_invites_by_a_link_that_is_shown_once(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let answer = tenant.key.post(&at(&tenant, "/invites"), json!({ "email": " Bob@People.TEST " })).await;
    assert_eq!(answer.status, 201);
    let made = answer.json();
    let shown = json!({
        "id": made["id"],
        "email": "bob@people.test",
        "role": "member",
        "created_at": "2026-07-14T09:00:00.000Z",
        "expires_at": "2026-07-21T09:00:00.000Z",
    });
    let mut with_link = shown.clone();
    with_link["link"] = made["link"].clone();
    assert_eq!(made, with_link);
    assert!(made["id"].as_str().unwrap().starts_with("inv_"));
    assert!(made["link"].as_str().unwrap().starts_with("http://mail.test/invite#"));
    assert!(token(&made).len() >= 43);
    assert_eq!(open_invites(&tenant).await, json!([shown]));
    let admin = tenant
        .key
        .post(&at(&tenant, "/invites"), json!({ "email": "eve@people.test", "role": "admin" }))
        .await;
    assert_eq!((admin.status, &admin.json()["role"]), (201, &json!("admin")));

    let member = Person::of(&server, &accept(&server, &token(&made)).await);
    member.caller.get(&at(&tenant, "/invites")).await.expect(403, "role_required");
    member
        .caller
        .post(&at(&tenant, "/invites"), json!({ "email": "x@people.test" }))
        .await
        .expect(403, "role_required");
    // An accepted invitation is no longer open, nor is one that had its time.
    assert_eq!(open_invites(&tenant).await.as_array().unwrap().len(), 1);
    server.clock.advance(7 * 86_400);
    assert_eq!(open_invites(&tenant).await, json!([]));
}

/// rules: WS-12, ERR-3, HTTP-3
#[both_engines]
async fn a_faulty_invitation_is_refused(engine: Engine) {
    let (_server, tenant) = start(engine).await;
    for (body, field) in [
        (json!({}), "email"),
        (json!({ "email": "" }), "email"),
        (json!({ "email": "nobody" }), "email"),
        (json!({ "email": "two@at@people.test" }), "email"),
        (json!({ "email": "line\r\nbreak@people.test" }), "email"),
        (json!({ "email": "nul\u{0}@people.test" }), "email"),
        (json!({ "email": format!("{}@people.test", "a".repeat(300)) }), "email"),
        (json!({ "email": "a@people.test", "role": "owner" }), "role"),
        (json!({ "email": "a@people.test", "workspace_id": "ws_other" }), "workspace_id"),
        (json!({ "email": "a@people.test", "expires_at": "2099-01-01T00:00:00Z" }), "expires_at"),
    ] {
        let answer = tenant.key.post(&at(&tenant, "/invites"), body.clone()).await;
        assert_eq!(answer.expect(400, "validation_failed").json()["details"][0]["path"], field, "{body}");
    }
    assert_eq!(open_invites(&tenant).await, json!([]));
}

/// rules: WS-13, AUTH-21
#[both_engines]
async fn members_are_not_invited_and_a_second_invitation_replaces_the_first(engine: Engine) {
    let (server, tenant) = start(engine).await;
    for email in [tenant.email.clone(), tenant.email.to_uppercase()] {
        let answer = tenant.key.post(&at(&tenant, "/invites"), json!({ "email": email })).await;
        let refusal = answer.expect(400, "validation_failed").json();
        assert_eq!(
            refusal["details"],
            json!([{ "path": "email", "message": "this address already belongs to a member" }])
        );
    }
    let first = invite(&tenant, "bob@people.test").await;
    server.clock.advance(60);
    let body = json!({ "email": "BOB@people.test", "role": "admin" });
    let second = tenant.key.post(&at(&tenant, "/invites"), body).await.ok();
    let open = open_invites(&tenant).await;
    assert_eq!((open.as_array().unwrap().len(), &open[0]["role"]), (1, &json!("admin")));
    assert_gone(&accept(&server, &token(&first)).await);
    let bob = Person::of(&server, &accept(&server, &token(&second)).await);
    assert_eq!(bob.me["workspace_id"], tenant.workspace.as_str());
    let again = tenant.key.post(&at(&tenant, "/invites"), json!({ "email": "bob@people.test" })).await;
    again.expect(400, "validation_failed");
}

/// rules: WS-14, AUTH-21
#[both_engines]
async fn renewing_and_withdrawing_stop_the_old_link(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let first = invite(&tenant, "bob@people.test").await;
    let path = at(&tenant, &format!("/invites/{}", first["id"].as_str().unwrap()));
    server.clock.advance(6 * 86_400);
    let renewed = tenant.key.send(http::Method::POST, &format!("{path}/resend"), None).await.ok();
    let mut expected = first.clone();
    expected["expires_at"] = json!("2026-07-27T09:00:00.000Z");
    expected["link"] = renewed["link"].clone();
    assert_eq!(renewed, expected);
    assert_ne!(token(&renewed), token(&first));
    assert_gone(&accept(&server, &token(&first)).await);
    // The last moment of the old time is long over; the new link still works.
    server.clock.set("2026-07-27T08:59:59Z");
    let open = open_invites(&tenant).await;
    assert_eq!((open.as_array().unwrap().len(), &open[0]["expires_at"]), (1, &expected["expires_at"]));
    accept(&server, &token(&renewed)).await.ok();
    tenant.key.post(&format!("{path}/resend"), json!({})).await.expect(404, "not_found");

    let other = invite(&tenant, "eve@people.test").await;
    let path = at(&tenant, &format!("/invites/{}", other["id"].as_str().unwrap()));
    let withdrawn = tenant.key.delete(&path).await;
    assert_eq!((withdrawn.status, withdrawn.bytes.len()), (204, 0));
    assert_gone(&accept(&server, &token(&other)).await);
    assert_eq!(tenant.key.delete(&path).await.expect(404, "not_found").json()["error"], "Invite not found");
    assert_eq!(open_invites(&tenant).await, json!([]));
}

/// rules: WS-14, HTTP-5
#[both_engines]
async fn other_peoples_invitations_do_not_exist_here(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let other = server.tenant(Plan::Free).await;
    let theirs = invite(&other, "bob@people.test").await;
    let foreign = theirs["id"].as_str().unwrap();
    for id in [foreign, "inv_none", "%00", foreign.to_uppercase().as_str()] {
        let delete = tenant.key.delete(&at(&tenant, &format!("/invites/{id}"))).await;
        let resend = tenant.key.post(&at(&tenant, &format!("/invites/{id}/resend")), json!({})).await;
        assert_eq!((delete.status, delete.text()), (404, gone()), "{id}");
        assert_eq!((resend.status, resend.text()), (404, gone()), "{id}");
    }
    assert_eq!(accept(&server, &token(&theirs)).await.status, 200);
}

/// rules: AUTH-20
#[both_engines]
async fn accepting_joins_with_the_role_and_logs_in(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let made = tenant
        .key
        .post(&at(&tenant, "/invites"), json!({ "email": "new@people.test", "role": "admin" }))
        .await
        .ok();
    let body = json!({ "token": token(&made), "password": "a password of mine", "name": "New Person" });
    let new = Person::of(&server, &server.anonymous().post("/api/console/invites/accept", body).await);
    assert_eq!(
        (&new.me["account"]["email"], &new.me["account"]["name"]),
        (&json!("new@people.test"), &json!("New Person"))
    );
    assert_eq!(
        (&new.me["account"]["is_admin"], &new.me["workspace_id"]),
        (&json!(false), &json!(tenant.workspace.as_str()))
    );
    let here =
        new.me["workspaces"].as_array().unwrap().iter().find(|one| one["id"] == tenant.workspace.as_str());
    assert_eq!(here.unwrap()["role"], "admin");
    new.caller.get(&at(&tenant, "/invites")).await.ok();
    let login = json!({ "email": "new@people.test", "password": "a password of mine" });
    server.anonymous().post("/api/console/login", login).await.ok();
}

/// The link is known to the person who invites, so no password goes with it.
/// rules: AUTH-20
#[both_engines]
async fn an_account_accepts_by_being_signed_in(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let (old, other) =
        (sign_up(&server, "old@people.test").await, sign_up(&server, "other@people.test").await);
    let link = token(&invite(&tenant, "old@people.test").await);
    let path = "/api/console/invites/accept";
    let with = |password: &str| json!({ "token": link, "password": password });
    // The right password and a wrong one get the same answer, which is the one of signing up.
    for password in [PASSWORD, "not my password"] {
        let answer = server.anonymous().post(path, with(password)).await;
        answer.expect(409, "account_exists");
        assert_eq!(answer.header("set-cookie"), "");
        old.caller.post(path, with(password)).await.expect(409, "account_exists");
    }
    server.anonymous().post(path, with("short")).await.expect(400, "validation_failed");
    server.anonymous().post(path, json!({ "token": link })).await.expect(401, "unauthorized");
    tenant.key.post(path, json!({ "token": link })).await.expect(401, "unauthorized");
    let refused = other.caller.post(path, json!({ "token": link })).await;
    assert_eq!(
        refused.expect(403, "role_required").json()["fix"],
        "Log in with the account of the invited address."
    );
    assert!(!refused.text().contains("old@people.test"), "{}", refused.text());
    let foreign = old.caller.without("sec-fetch-site").with("sec-fetch-site", "cross-site");
    foreign.post(path, json!({ "token": link })).await.expect(403, "cross_site_request");
    // None of these used the link up.
    let joined = old.caller.post(path, json!({ "token": link })).await;
    assert_eq!((joined.status, joined.header("set-cookie")), (200, ""));
    let me = joined.json();
    assert_eq!((&me["account"]["id"], &me["workspace_id"]), (&json!(old.id), &json!(tenant.workspace)));
    assert_eq!(me["workspaces"].as_array().unwrap().len(), 2);
    assert_eq!(old.caller.get(&at(&tenant, "")).await.ok()["role"], "member");
    assert_eq!(old.caller.get("/api/console/me").await.ok(), me);
    assert_gone(&old.caller.post(path, json!({ "token": link })).await);
}

/// rules: AUTH-12, AUTH-20
#[both_engines]
async fn a_server_by_invitation_takes_the_invited(engine: Engine) {
    let closed = operations::SignUpPolicy { open: false, ..Default::default() };
    let server = Server::with(engine, ServerOptions { sign_up: closed, ..ServerOptions::default() }).await;
    let tenant = server.tenant(Plan::Free).await;
    let body = json!({ "email": "bob@people.test", "password": PASSWORD });
    let refused = server.anonymous().post("/api/console/sign-up", body).await;
    assert_eq!(refused.expect(403, "role_required").json()["error"], "Forbidden");
    assert_eq!(refused.header("set-cookie"), "");
    assert_eq!(server.anonymous().get("/api/v1/config").await.ok()["sign_up"], "invite");
    let bob = join(&server, &tenant, "bob@people.test", "member").await;
    assert_eq!(bob.me["workspace_id"], tenant.workspace.as_str());
}

/// rules: AUTH-21
#[both_engines]
async fn spent_tokens_are_all_alike(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let used = invite(&tenant, "used@people.test").await;
    accept(&server, &token(&used)).await.ok();
    let withdrawn = invite(&tenant, "withdrawn@people.test").await;
    tenant.key.delete(&at(&tenant, &format!("/invites/{}", withdrawn["id"].as_str().unwrap()))).await.ok();
    let expired = invite(&tenant, "expired@people.test").await;
    let of_a_member = invite(&tenant, "member@people.test").await;
    sign_up(&server, "member@people.test").await;
    // The last moment is not part of the seven days.
    server.clock.advance(7 * 86_400);
    for spent in [
        token(&used),
        token(&withdrawn),
        token(&expired),
        token(&of_a_member),
        "x".to_owned(),
        "A".repeat(43),
    ] {
        assert_gone(&accept(&server, &spent).await);
    }
    // The id and the hash of a token are no tokens.
    assert_gone(&accept(&server, expired["id"].as_str().unwrap()).await);
    assert_eq!(tenant.key.get(&at(&tenant, "/members")).await.ok().as_array().unwrap().len(), 2);
    let body = json!({ "email": "expired@people.test", "password": PASSWORD });
    server.anonymous().post("/api/console/login", body).await.expect(401, "unauthorized");
}

/// Fifty people follow one link: one gets in, the others hear that it is used, or to come again.
/// rules: AUTH-21
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_lets_one_of_fifty_in(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let old = sign_up(&server, "old@people.test").await;
    for email in ["new@people.test", "old@people.test"] {
        server.clock.advance(60);
        let link = token(&invite(&tenant, email).await);
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let (caller, body) = match email {
                "old@people.test" => (old.caller.clone(), json!({ "token": link })),
                _ => (server.anonymous(), json!({ "token": link, "password": PASSWORD })),
            };
            calls.spawn(async move { caller.post("/api/console/invites/accept", body).await });
        }
        let answers = calls.join_all().await;
        let statuses: HashSet<u16> = answers.iter().map(|answer| answer.status).collect();
        assert!(statuses.is_subset(&HashSet::from([200, 404, 429])), "{statuses:?}");
        assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
        answers.iter().filter(|answer| answer.status == 404).for_each(assert_gone);
    }
    let members = tenant.key.get(&at(&tenant, "/members")).await.ok();
    let emails: Vec<&str> =
        members.as_array().unwrap().iter().map(|one| one["email"].as_str().unwrap()).collect();
    assert_eq!(emails, [tenant.email.as_str(), "new@people.test", "old@people.test"]);
    assert_eq!(members[2]["id"], old.id.as_str());
}
