//! Sign-ups with conditions: a verified address, and the code of a public server for its first account.

use model::Plan;
use operations::{SignUpPolicy, accounts::sign_up::first_account_code, admin, sending::worker};
use serde_json::{Value, json};
use testkit::{Engine, PASSWORD, Server, ServerOptions, Tenant, both_engines};

use super::people::{Person, at, token};

const SIGN_UP: &str = "/api/console/sign-up";
const COMPLETE: &str = "/api/console/sign-up/complete";

/// A server that verifies addresses, its operator, and the operator's mailbox, which new people have the address of.
async fn start(engine: Engine) -> (Server, Tenant, Value) {
    let sign_up = SignUpPolicy { verify: true, ..SignUpPolicy::default() };
    let options = ServerOptions { sign_up, ..ServerOptions::default() };
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let mailbox = tenant.key.post("/api/v1/mailboxes", json!({ "name": "Own" })).await.ok();
    (server, tenant, mailbox)
}

/// The texts of all messages in the mailbox, newest first.
async fn messages(server: &Server, tenant: &Tenant, mailbox: &Value) -> Vec<String> {
    worker::run_due(&server.app).await.unwrap();
    let all = format!("/api/v1/mailboxes/{}/emails", mailbox["id"].as_str().unwrap());
    let mut texts = Vec::new();
    for email in tenant.key.get(&all).await.ok()["emails"].as_array().unwrap() {
        let one = tenant.key.get(&format!("{all}/{}", email["id"].as_str().unwrap())).await.ok();
        texts.push(one["body"].as_str().unwrap().to_owned());
    }
    texts
}

fn link(text: &str) -> Option<String> {
    let rest = text.split("/console/verify#").nth(1)?;
    Some(rest.split_whitespace().next().unwrap().to_owned())
}

/// rules: AUTH-26
#[both_engines]
async fn a_link_makes_the_account_and_nothing_tells_who_has_one(engine: Engine) {
    let (server, tenant, mailbox) = start(engine).await;
    let address = mailbox["email"].as_str().unwrap();
    let body = json!({ "email": address, "password": "not the one in the end", "workspace_name": "Fresh" });
    let asked = server.anonymous().post(SIGN_UP, body.clone()).await;
    let sent = json!({ "email": address, "expires_at": "2026-07-15T09:00:00.000Z" });
    assert_eq!((asked.status, asked.json(), asked.header("set-cookie")), (202, sent, ""));
    let found = messages(&server, &tenant, &mailbox).await;
    let token = link(&found[0]).unwrap();
    let login = |password: &str| json!({ "email": address, "password": password });
    let log_in = async |password: &str| server.anonymous().post("/api/console/login", login(password)).await;
    log_in("not the one in the end").await.expect(401, "unauthorized");

    // Who follows the link chooses the password.
    let complete = json!({ "token": token, "password": PASSWORD });
    server
        .anonymous()
        .post(COMPLETE, json!({ "token": token, "password": "short" }))
        .await
        .expect(400, "validation_failed");
    let made = server.anonymous().post(COMPLETE, complete.clone()).await;
    assert_eq!(made.status, 201);
    let person = Person::of(&server, &made);
    assert_eq!(
        (&person.me["workspaces"][0]["name"], &person.me["account"]["is_admin"]),
        (&json!("Fresh"), &json!(false))
    );
    person.caller.get("/api/console/me").await.ok();
    log_in("not the one in the end").await.expect(401, "unauthorized");
    log_in(PASSWORD).await.ok();
    server.anonymous().post(COMPLETE, complete).await.expect(404, "not_found");

    // Now there is an account: the answer is the same, the message another one.
    let again = server.anonymous().post(SIGN_UP, body.clone()).await;
    assert_eq!((again.status, again.text()), (202, asked.text()));
    let found = messages(&server, &tenant, &mailbox).await;
    assert!(found.len() == 2 && found.iter().any(|text| text.contains("You already have one")), "{found:?}");
    // Nobody's mailbox is flooded.
    for _ in 0..5 {
        assert_eq!(server.anonymous().post(SIGN_UP, body.clone()).await.text(), asked.text());
    }
    assert_eq!(messages(&server, &tenant, &mailbox).await.len(), 4);
}

/// rules: AUTH-26
#[both_engines]
async fn a_link_has_its_time_and_works_once(engine: Engine) {
    let (server, tenant, mailbox) = start(engine).await;
    let body = json!({ "email": mailbox["email"], "password": PASSWORD });
    server.anonymous().post(SIGN_UP, body.clone()).await.ok();
    server.clock.advance(86_400);
    let old = link(&messages(&server, &tenant, &mailbox).await[0]).unwrap();
    let complete = |token: &str| json!({ "token": token, "password": PASSWORD });
    server.anonymous().post(COMPLETE, complete(&old)).await.expect(404, "not_found");
    for _ in 0..2 {
        server.anonymous().post(SIGN_UP, body.clone()).await.ok();
    }
    let found = messages(&server, &tenant, &mailbox).await;
    let links: Vec<String> = found.iter().filter_map(|text| link(text)).filter(|one| *one != old).collect();
    let mut statuses = Vec::new();
    for token in &links {
        statuses.push(server.anonymous().post(COMPLETE, complete(token)).await.status);
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 404]);
    operations::maintenance::run(&server.app).await.unwrap();
    let faulty = json!({ "email": "nobody", "password": PASSWORD });
    server.anonymous().post(SIGN_UP, faulty).await.expect(400, "validation_failed");
}

/// rules: AUTH-20, AUTH-26
#[both_engines]
async fn an_invitation_is_accepted_by_the_owner_of_the_address(engine: Engine) {
    let (server, tenant, mailbox) = start(engine).await;
    let invite = json!({ "email": mailbox["email"], "role": "admin" });
    let invited = tenant.key.post(&at(&tenant, "/invites"), invite).await.ok();
    let accept = json!({ "token": token(&invited), "password": "of the one who invites", "name": "New" });
    let answer = server.anonymous().post("/api/console/invites/accept", accept).await;
    assert_eq!((answer.status, answer.header("set-cookie")), (202, ""));
    let found = messages(&server, &tenant, &mailbox).await;
    let token = found.iter().find_map(|text| link(text)).unwrap();
    let made = server.anonymous().post(COMPLETE, json!({ "token": token, "password": PASSWORD })).await;
    let person = Person::of(&server, &made);
    assert_eq!(
        (&person.me["workspace_id"], &person.me["account"]["name"]),
        (&json!(tenant.workspace), &json!("New"))
    );
    let role = person.caller.get(&at(&tenant, "")).await.ok()["role"].clone();
    assert_eq!(role, "admin");
}

/// rules: AUTH-11, AUTH-27
#[both_engines]
async fn the_first_account_of_a_public_server_needs_its_code(engine: Engine) {
    let sign_up = SignUpPolicy { first_account_code: true, ..SignUpPolicy::default() };
    let options = ServerOptions { sign_up, ..ServerOptions::default() };
    let server = Server::with(engine, options.clone()).await;
    let code = first_account_code(&server.app).await.unwrap().unwrap();
    assert_eq!(code.len(), 23, "{code}");
    if engine == Engine::Postgres {
        let other = server.another_node(ServerOptions { seed: 2, ..options }).await;
        assert_eq!(first_account_code(&other.app).await.unwrap(), Some(code.clone()));
    }
    let body = |code: Value| {
        let mut body = json!({ "email": "root@people.test", "password": PASSWORD });
        body["code"] = code;
        body
    };
    for wrong in [Value::Null, json!("x"), json!(code.replace('-', "0")), json!(code[1..])] {
        let refused = server.anonymous().post(SIGN_UP, body(wrong)).await;
        let answer = refused.expect(403, "role_required").json();
        assert!(answer["error"].as_str().unwrap().contains("the code that the server printed"), "{answer}");
        assert!(answer["fix"].as_str().unwrap().contains("admin account create"), "{answer}");
    }
    assert!(server.anonymous().get("/console/sign-up").await.text().contains("name=\"code\""));
    let typed = json!(code.replace('-', " ").to_lowercase());
    let root = Person::of(&server, &server.anonymous().post(SIGN_UP, body(typed)).await);
    assert_eq!(root.me["account"]["is_admin"], true);
    // From then on there is none.
    assert_eq!(first_account_code(&server.app).await.unwrap(), None);
    assert!(!server.anonymous().get("/console/sign-up").await.text().contains("name=\"code\""));
    let later = json!({ "email": "later@people.test", "password": PASSWORD });
    server.anonymous().post(SIGN_UP, later).await.ok();
}

/// The first account is the operator's own, by sign-up or by command; the plan can be chosen, and later ones start on Free.
/// rules: AUTH-27
#[both_engines]
async fn the_first_account_gets_the_operators_plan(engine: Engine) {
    let options = ServerOptions { operator_plan: Plan::Enterprise, ..ServerOptions::default() };
    let server = Server::with(engine, options.clone()).await;
    let sign_up = async |email: &str| {
        let body = json!({ "email": email, "password": PASSWORD });
        let made = server.anonymous().post(SIGN_UP, body).await;
        assert_eq!(made.status, 201);
        let session = server.cookie(&made.session_secret());
        let me = session.get("/api/console/me").await.ok();
        let workspace = format!("/api/v1/workspaces/{}", me["workspace_id"].as_str().unwrap());
        (session, workspace)
    };
    let plan_of = async |(session, workspace): &(testkit::Caller, String)| -> Value {
        session.get(&format!("{workspace}/usage/credits")).await.ok()["plan"].clone()
    };
    let root = sign_up("root@people.test").await;
    assert_eq!(plan_of(&root).await, "enterprise");
    let keys = format!("{}/api-keys", root.1);
    for number in 1..=2 {
        assert_eq!(root.0.post(&keys, json!({ "name": format!("Key {number}") })).await.status, 201);
    }
    for number in 1..=3 {
        let body = json!({ "name": format!("Box {number}") });
        assert_eq!(root.0.post("/api/v1/mailboxes", body).await.status, 201);
    }
    let later = sign_up("ada@people.test").await;
    assert_eq!(plan_of(&later).await, "free");

    let plans = async |plan: Option<Plan>| {
        let server = Server::with(engine, options.clone()).await;
        let mut found = Vec::new();
        for (email, plan) in [("root@people.test", plan), ("ada@people.test", None)] {
            let (email, password) = (email.to_owned(), PASSWORD.to_owned());
            admin::create_account(&server.app, email, password, None, plan, &testkit::operator())
                .await
                .unwrap();
        }
        for one in admin::list_workspaces(&server.app, "".into(), 10).await.unwrap() {
            found.push(one.plan);
        }
        found
    };
    assert_eq!(plans(None).await, [Plan::Enterprise, Plan::Free]);
    assert_eq!(plans(Some(Plan::Developer)).await, [Plan::Developer, Plan::Free]);
}
