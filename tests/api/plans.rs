//! Plans: their limits, and that nothing passes them.

use std::collections::BTreeMap;

use model::{Limit, Plan, Plans, Role, api_keys::NewApiKey};
use operations::admin;
use serde_json::{Map, Value, json};
use testkit::{Answer, Caller, Engine, Server, ServerOptions, Tenant, both_engines};

use super::people::{accept, at, join, token};

/// The plans of the default configuration, before a test changes anything.
fn default_plans() -> Plans {
    let mut plans: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    let mut plan = None;
    for line in include_str!("../../config.default.toml").lines() {
        if let Some(name) = line.strip_prefix('[') {
            plan = name.strip_prefix("plans.").map(|name| name.trim_end_matches(']').to_owned());
        } else if let (Some(plan), Some((name, value)), false) =
            (&plan, line.split_once(" = "), line.starts_with('#'))
        {
            let value = serde_json::from_str(&value.replace('_', "")).unwrap();
            plans.entry(plan.clone()).or_default().insert(name.to_owned(), value);
        }
    }
    serde_json::from_value(json!(plans)).unwrap()
}

async fn start(engine: Engine) -> Server {
    Server::with(engine, ServerOptions { plans: default_plans(), ..ServerOptions::default() }).await
}

/// A workspace on Enterprise that becomes `plan` when it is furnished: the clock moves on so that no window closes.
async fn tenant_with_session(server: &Server, plan: Plan) -> (Tenant, Caller) {
    server.clock.advance(60);
    let tenant = server.tenant(plan).await;
    let session = server.log_in(&tenant).await;
    (tenant, session)
}

/// rules: PLAN-1, PLAN-2, PLAN-4
#[both_engines]
async fn the_defaults_are_as_published(engine: Engine) {
    let server = start(engine).await;
    for (plan, name, credits, rpm) in [
        (Plan::Free, "Free", Some(1000), "60"),
        (Plan::Developer, "Developer", Some(50_000), "300"),
        (Plan::Enterprise, "Enterprise", None, ""),
    ] {
        let (tenant, session) = tenant_with_session(&server, plan).await;
        for kind in ["credits", "email"] {
            let answer = tenant.key.get(&at(&tenant, &format!("/usage/{kind}"))).await;
            let usage = answer.json();
            assert_eq!((&usage["plan_name"], &usage["plan"]), (&json!(name), &json!(name.to_lowercase())));
            assert_eq!(answer.header("ratelimit-limit"), rpm);
            if kind == "credits" {
                assert_eq!(usage["limit"], json!(credits));
            }
        }
        assert_eq!(session.get("/api/console/me").await.ok()["workspaces"][0]["plan"], name.to_lowercase());
    }
}

async fn new_key(tenant: &Tenant, session: &Caller) -> Answer {
    session.post(&at(tenant, "/api-keys"), json!({ "name": "K" })).await
}

async fn new_mailbox(tenant: &Tenant) -> Answer {
    tenant.key.post("/api/v1/mailboxes", json!({ "name": "M" })).await
}

async fn new_invite(tenant: &Tenant, number: usize) -> Answer {
    tenant.key.post(&at(tenant, "/invites"), json!({ "email": format!("p{number}@people.test") })).await
}

fn assert_full(answer: &Answer, what: &str) {
    answer.expect(403, "quota_exceeded");
    assert_eq!(answer.json()["error"], format!("The workspace reached its plan's limit of {what}."));
    assert_eq!(answer.header("x-credits-charged"), "0");
}

/// rules: PLAN-3, ERR-5
#[both_engines]
async fn one_more_than_the_plan_allows_is_refused(engine: Engine) {
    let server = start(engine).await;
    for (plan, keys, mailboxes, members) in [(Plan::Free, 1, 2, 2), (Plan::Developer, 5, 10, 5)] {
        let (tenant, session) = tenant_with_session(&server, plan).await;
        // The tenant comes with one key and one member.
        for _ in 1..keys {
            assert_eq!(new_key(&tenant, &session).await.status, 201);
        }
        assert_full(&new_key(&tenant, &session).await, &format!("{keys} API keys"));
        for _ in 0..mailboxes {
            assert_eq!(new_mailbox(&tenant).await.status, 201);
        }
        assert_full(&new_mailbox(&tenant).await, &format!("{mailboxes} mailboxes"));
        for number in 1..members {
            assert_eq!(new_invite(&tenant, number).await.status, 201);
        }
        assert_full(&new_invite(&tenant, 99).await, &format!("{members} members"));
        // Inviting an invited address again needs no further place.
        assert_eq!(new_invite(&tenant, 1).await.status, 201);
        let key = NewApiKey::new("K", Role::Admin);
        let by_operator =
            admin::create_key(&server.app, tenant.workspace.clone(), key, &testkit::operator()).await;
        assert_eq!(by_operator.err().unwrap().kind().code(), "quota_exceeded");
    }
    let (tenant, session) = tenant_with_session(&server, Plan::Enterprise).await;
    for number in 0..12 {
        for answer in
            [new_key(&tenant, &session).await, new_mailbox(&tenant).await, new_invite(&tenant, number).await]
        {
            assert_eq!(answer.status, 201);
        }
    }
}

/// rules: PLAN-3, PLAN-5
#[both_engines]
async fn what_is_gone_frees_its_place(engine: Engine) {
    let server = start(engine).await;
    let (tenant, session) = tenant_with_session(&server, Plan::Free).await;
    let first = new_mailbox(&tenant).await.ok();
    new_mailbox(&tenant).await.ok();
    tenant.key.delete(&format!("/api/v1/mailboxes/{}", first["id"].as_str().unwrap())).await.ok();
    new_mailbox(&tenant).await.ok();
    assert_full(&new_mailbox(&tenant).await, "2 mailboxes");

    let invite = new_invite(&tenant, 1).await.ok();
    tenant.key.delete(&at(&tenant, &format!("/invites/{}", invite["id"].as_str().unwrap()))).await.ok();
    let bob = join(&server, &tenant, "bob@people.test", "member").await;
    assert_full(&new_invite(&tenant, 2).await, "2 members");
    tenant.key.delete(&at(&tenant, &format!("/members/{}", bob.id))).await.ok();
    new_invite(&tenant, 3).await.ok();
    // An invitation that had its time holds no place.
    server.clock.advance(7 * 86_400);
    new_invite(&tenant, 4).await.ok();

    assert_full(&new_key(&tenant, &session).await, "1 API keys");
    session.delete(&at(&tenant, &format!("/api-keys/{}", tenant.key_id))).await.ok();
    let body = json!({ "name": "Short", "expires_at": server.clock.now().plus_seconds(60).to_string() });
    session.post(&at(&tenant, "/api-keys"), body).await.ok();
    assert_full(&new_key(&tenant, &session).await, "1 API keys");
    // Only working keys count.
    server.clock.advance(60);
    assert_eq!(new_key(&tenant, &session).await.status, 201);
}

/// An invitation that had its time and is renewed needs a place like a new one.
/// rules: PLAN-3, PLAN-5
#[both_engines]
async fn renewing_an_old_invitation_does_not_pass_the_limit(engine: Engine) {
    let server = start(engine).await;
    let (tenant, _) = tenant_with_session(&server, Plan::Free).await;
    let old = new_invite(&tenant, 1).await.ok();
    server.clock.advance(7 * 86_400);
    let young = new_invite(&tenant, 2).await.ok();
    let resend = at(&tenant, &format!("/invites/{}/resend", old["id"].as_str().unwrap()));
    assert_full(&tenant.key.post(&resend, json!({})).await, "2 members");
    // The open one may be renewed: it has its place.
    let open = at(&tenant, &format!("/invites/{}/resend", young["id"].as_str().unwrap()));
    let young = tenant.key.post(&open, json!({})).await.ok();
    accept(&server, &token(&young)).await.ok();
    assert_full(&tenant.key.post(&resend, json!({})).await, "2 members");
    assert_eq!(tenant.key.get(&at(&tenant, "/members")).await.ok().as_array().unwrap().len(), 2);
}

/// Calls at once, on two nodes where there can be two.
async fn race(
    engine: Engine,
    server: &Server,
    path: &str,
    caller: &Caller,
    body: impl Fn(usize) -> Value,
) -> usize {
    let mut options = ServerOptions { plans: default_plans(), seed: 7, ..ServerOptions::default() };
    options.plans.developer.rpm = Limit::UNLIMITED;
    let second = if engine == Engine::Postgres { Some(server.another_node(options).await) } else { None };
    let far = second.as_ref().map(|node| match caller.secret().split_once('=') {
        Some((_, cookie)) => node.cookie(cookie),
        None => node.key(caller.secret()),
    });
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..20 {
        let caller =
            if number % 2 == 0 { far.clone().unwrap_or_else(|| caller.clone()) } else { caller.clone() };
        let (path, body) = (path.to_owned(), body(number));
        calls.spawn(async move { caller.post(&path, body).await });
    }
    let answers = calls.join_all().await;
    let made = answers.iter().filter(|answer| answer.status == 201).count();
    for refused in answers.iter().filter(|answer| answer.status != 201) {
        refused.expect(403, "quota_exceeded");
    }
    made
}

/// rules: PLAN-5
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn racing_calls_never_pass_a_limit(engine: Engine) {
    let server = start(engine).await;
    let (tenant, session) = tenant_with_session(&server, Plan::Developer).await;
    let keys = at(&tenant, "/api-keys");
    assert_eq!(race(engine, &server, &keys, &session, |_| json!({ "name": "K" })).await, 4);
    assert_eq!(session.get(&keys).await.ok().as_array().unwrap().len(), 5);
    server.clock.advance(60);
    assert_eq!(race(engine, &server, "/api/v1/mailboxes", &tenant.key, |_| json!({ "name": "M" })).await, 10);
    assert_eq!(tenant.key.get("/api/v1/mailboxes").await.ok().as_array().unwrap().len(), 10);
    server.clock.advance(60);
    let invite = |number: usize| json!({ "email": format!("p{number}@people.test") });
    assert_eq!(race(engine, &server, &at(&tenant, "/invites"), &tenant.key, invite).await, 4);
    assert_eq!(tenant.key.get(&at(&tenant, "/invites")).await.ok().as_array().unwrap().len(), 4);
}

/// rules: PLAN-6
#[both_engines]
async fn a_smaller_plan_takes_nothing_away(engine: Engine) {
    let server = start(engine).await;
    let (tenant, session) = tenant_with_session(&server, Plan::Developer).await;
    let mut keys = Vec::new();
    let mut mailboxes = Vec::new();
    for _ in 0..3 {
        keys.push(new_key(&tenant, &session).await.ok());
        mailboxes.push(new_mailbox(&tenant).await.ok());
    }
    let bob = join(&server, &tenant, "bob@people.test", "member").await;
    let open = new_invite(&tenant, 1).await.ok();
    admin::set_plan(&server.app, tenant.workspace.clone(), Plan::Free, &testkit::operator()).await.unwrap();
    assert_eq!(tenant.key.get(&at(&tenant, "/usage/credits")).await.ok()["plan"], "free");
    for key in &keys {
        let listed = server.key(key["key"].as_str().unwrap()).get("/api/v1/mailboxes").await.ok();
        assert_eq!(listed.as_array().unwrap().len(), 3);
    }
    bob.caller.get(&at(&tenant, "")).await.ok();
    assert_full(&new_key(&tenant, &session).await, "1 API keys");
    assert_full(&new_mailbox(&tenant).await, "2 mailboxes");
    assert_full(&new_invite(&tenant, 9).await, "2 members");
    let one = |mailbox: &Value| format!("/api/v1/mailboxes/{}", mailbox["id"].as_str().unwrap());
    tenant.key.put(&one(&mailboxes[0]), json!({ "name": "Still mine" })).await.ok();
    // Back under the limit, new things are taken again.
    for mailbox in &mailboxes[..2] {
        tenant.key.delete(&one(mailbox)).await.ok();
    }
    assert_eq!(new_mailbox(&tenant).await.status, 201);
    tenant.key.delete(&at(&tenant, &format!("/invites/{}", open["id"].as_str().unwrap()))).await.ok();
    assert_full(&new_invite(&tenant, 9).await, "2 members");
    tenant.key.delete(&at(&tenant, &format!("/members/{}", bob.id))).await.ok();
    assert_eq!(new_invite(&tenant, 9).await.status, 201);
    admin::set_plan(&server.app, tenant.workspace.clone(), Plan::Developer, &testkit::operator())
        .await
        .unwrap();
    assert_eq!(new_mailbox(&tenant).await.status, 201);
}

/// rules: PLAN-4
#[both_engines]
async fn every_limit_is_a_number_or_unlimited(engine: Engine) {
    let mut names = Vec::new();
    let whole = json!({
        "credits_per_period": 1, "rpm": 2, "api_keys": 3, "mailboxes": 4, "members": 5, "domains": 6, "storage_bytes": 7,
        "recipients_per_request": 8, "recipients_per_minute": 9, "recipients_per_hour": 10, "recipients_per_day": 11,
        "mails_per_month": 12, "mails_per_day_and_mailbox": 13, "price_cents": 14,
    });
    let read = |limits: Value| serde_json::from_value::<model::plans::PlanLimits>(limits);
    assert!(read(whole.clone()).is_ok());
    names.extend(whole.as_object().unwrap().keys().filter(|name| *name != "price_cents").cloned());
    for name in names {
        for (value, taken) in [
            (json!("unlimited"), true),
            (json!(0), true),
            (json!(-1), false),
            (json!(1.5), false),
            (json!("many"), false),
            (json!("7"), false),
            (json!(null), false),
            (json!(true), false),
        ] {
            let mut limits = whole.clone();
            limits[&name] = value.clone();
            assert_eq!(read(limits).is_ok(), taken, "{name} = {value}");
        }
    }
    let mut options = ServerOptions { plans: default_plans(), ..ServerOptions::default() };
    options.plans.free.credits_per_period = Limit::UNLIMITED;
    options.plans.free.rpm = Limit::of(7);
    options.plans.free.mailboxes = Limit::of(0);
    options.plans.free.members = Limit::of(1);
    options.plans.enterprise.api_keys = Limit::of(2);
    let server = Server::with(engine, options).await;
    let (tenant, _) = tenant_with_session(&server, Plan::Free).await;
    let usage = tenant.key.get(&at(&tenant, "/usage/credits")).await;
    assert_eq!((usage.header("ratelimit-limit"), &usage.json()["limit"]), ("7", &Value::Null));
    assert_full(&new_mailbox(&tenant).await, "0 mailboxes");
    assert_full(&new_invite(&tenant, 1).await, "1 members");
    let (tenant, session) = tenant_with_session(&server, Plan::Enterprise).await;
    new_key(&tenant, &session).await.ok();
    assert_full(&new_key(&tenant, &session).await, "2 API keys");
}

/// rules: PLAN-7
#[both_engines]
async fn every_operation_but_domains_is_open_to_all_plans(engine: Engine) {
    for operation in operations::catalog() {
        let about_domains = operation.id.to_lowercase().contains("domain");
        assert_eq!(operation.plan > Plan::Free, about_domains, "{}", operation.id);
    }
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let session = server.log_in(&tenant).await;
    for endpoint in web::endpoints().iter().filter(|endpoint| !endpoint.path.contains("domain")) {
        let mut path = endpoint.path.replace("{workspaceId}", tenant.workspace.as_str());
        for name in ["mailboxId", "folderId", "labelId", "memberId", "inviteId", "keyId"] {
            path = path.replace(&format!("{{{name}}}"), "none");
        }
        let answer = session.send(endpoint.method.clone(), &path, Some(json!({}))).await;
        assert_ne!(answer.status, 403, "{} {path}: {}", endpoint.method, answer.text());
    }
}
