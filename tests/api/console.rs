//! Signing up and logging in.

use axum::body::Body;
use http::Method;
use model::{Plan, WorkspaceId, accounts::Account};
use operations::{ErrorKind, HashingCost};
use serde_json::{Value, json};
use testkit::{Answer, Caller, Engine, PASSWORD, Server, ServerOptions, both_engines};

use super::people::{Person, sign_up};

const SIGN_UP: &str = "/api/console/sign-up";
const LOGIN: &str = "/api/console/login";

async fn workspaces(server: &Server) -> usize {
    operations::admin::list_workspaces(&server.app, WorkspaceId::from(""), 1000).await.unwrap().len()
}

async fn accounts(server: &Server) -> i64 {
    server.app.db().system_read(async |tx| store::system::counts(tx).await).await.unwrap().0
}

/// rules: AUTH-11, AUTH-19, PLAN-1
#[both_engines]
async fn signing_up_makes_an_account_and_its_workspace(engine: Engine) {
    let server = Server::start(engine).await;
    let body = json!({
        "email": "Ada.L+x@People.TEST", "password": PASSWORD, "name": "Ada", "workspace_name": "Engines",
    });
    let answer = server.anonymous().with("user-agent", "browser/1").post(SIGN_UP, body).await;
    assert_eq!(answer.status, 201);
    let me = answer.json();
    let expected = json!({
        "account": {
            "id": me["account"]["id"],
            "email": "ada.l+x@people.test",
            "name": "Ada",
            "is_admin": true,
            "address": me["account"]["address"],
            "created_at": "2026-07-14T09:00:00.000Z",
        },
        "workspace_id": me["workspace_id"],
        "workspaces": [{ "id": me["workspace_id"], "name": "Engines", "role": "admin", "plan": "free" }],
    });
    assert_eq!(me, expected);
    let ada = Person::of(&server, &answer);
    assert_eq!(ada.caller.get("/api/console/me").await.ok(), expected);
    let workspace = ada.caller.get("/api/v1/workspaces").await.ok()["workspaces"][0].clone();
    assert_eq!(
        (&workspace["owner_address"], &workspace["role"]),
        (&me["account"]["address"], &json!("admin"))
    );
    // The first account operates the server, and no later one.
    for number in 0..3 {
        let later = sign_up(&server, &format!("later{number}@people.test")).await;
        assert_eq!(later.me["account"]["is_admin"], false);
        assert_eq!(later.me["workspaces"][0]["name"], format!("later{number}'s workspace"));
    }
}

/// Many sign up on a fresh server at once; whoever comes first operates it, alone.
/// rules: AUTH-11
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_first_accounts_is_the_operator(engine: Engine) {
    for seed in 1..4 {
        let server = Server::with(engine, ServerOptions { seed, ..ServerOptions::default() }).await;
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..12 {
            let (caller, email) = (server.anonymous(), format!("p{number}@people.test"));
            calls.spawn(async move {
                caller.post(SIGN_UP, json!({ "email": email, "password": PASSWORD })).await
            });
        }
        let answers = calls.join_all().await;
        let operators = answers.iter().filter(|answer| answer.ok()["account"]["is_admin"] == true).count();
        assert_eq!(operators, 1);
    }
}

/// The first account is being stored by another node, and not yet for all to see.
/// rules: AUTH-11
#[tokio::test]
async fn an_account_that_comes_second_waits_for_the_first() {
    let server = Server::start(Engine::Postgres).await;
    let account = Account {
        id: server.app.new_id(),
        email: "first@people.test".to_owned(),
        name: "First".to_owned(),
        is_admin: true,
        address: "0x00".to_owned(),
        created_at: server.clock.now(),
    };
    let (stored, is_stored) = tokio::sync::oneshot::channel();
    let (finish, finished) = tokio::sync::oneshot::channel::<()>();
    let db = server.app.db().clone();
    let first = tokio::spawn(async move {
        let write = db.system_write(async move |tx| {
            store::accounts::insert(tx, &account, "no password").await?;
            stored.send(()).unwrap();
            finished.await.unwrap();
            Ok::<_, store::Error>(())
        });
        write.await
    });
    is_stored.await.unwrap();
    let caller = server.anonymous();
    let body = json!({ "email": "second@people.test", "password": PASSWORD });
    let second = tokio::spawn(async move { caller.post(SIGN_UP, body).await });
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    finish.send(()).unwrap();
    first.await.unwrap().unwrap();
    assert_eq!(second.await.unwrap().ok()["account"]["is_admin"], false);
}

/// rules: AUTH-11
#[both_engines]
async fn signing_up_is_all_or_nothing(engine: Engine) {
    let server = Server::start(engine).await;
    sign_up(&server, "first@people.test").await;
    let before = (accounts(&server).await, workspaces(&server).await);
    // The last statement of signing up is the session's.
    server.app.db().system_write(async |tx| tx.run("DROP TABLE session", &[]).await).await.unwrap();
    let input = json!({ "email": "bob@people.test", "password": PASSWORD });
    let input = serde_json::from_value(input).unwrap();
    let network = std::net::Ipv4Addr::LOCALHOST.into();
    let client = operations::Client {
        network,
        device: None,
        user_agent: "browser/1".to_owned(),
        request: operations::RequestInfo::default(),
    };
    let failed = operations::accounts::sign_up::sign_up(&server.app, input, &client).await;
    assert_eq!(failed.err().unwrap().kind(), ErrorKind::Internal);
    assert_eq!((accounts(&server).await, workspaces(&server).await), before);
}

/// rules: AUTH-12, ERR-3, HTTP-3
#[both_engines]
async fn a_faulty_sign_up_makes_nothing(engine: Engine) {
    let server = Server::start(engine).await;
    sign_up(&server, "taken@people.test").await;
    let before = (accounts(&server).await, workspaces(&server).await);
    for email in ["taken@people.test", "TAKEN@People.test", " taken@people.test. "] {
        let answer = server.anonymous().post(SIGN_UP, json!({ "email": email, "password": PASSWORD })).await;
        assert_eq!(
            answer.expect(409, "account_exists").json()["error"],
            "An account with this address already exists."
        );
        assert_eq!(answer.header("set-cookie"), "");
    }
    let with = |field: &str, value: Value| {
        let mut body = json!({ "email": "bob@people.test", "password": PASSWORD });
        body[field] = value;
        body
    };
    for (body, field) in [
        (with("email", json!("nobody")), "email"),
        (with("email", json!("a b@people.test")), "email"),
        (with("email", json!("nul\u{0}@people.test")), "email"),
        (with("password", json!("123456789")), "password"),
        (with("password", json!("ä".repeat(9))), "password"),
        (with("password", json!("x".repeat(201))), "password"),
        (with("password", json!(1_234_567_890)), "password"),
        (with("name", json!("")), "name"),
        (with("name", json!("two\nlines")), "name"),
        (with("workspace_name", json!("x".repeat(81))), "workspace_name"),
        (with("is_admin", json!(true)), "is_admin"),
        (with("plan", json!("enterprise")), "plan"),
        (with("role", json!("admin")), "role"),
        (json!({ "email": "bob@people.test" }), "password"),
    ] {
        let answer = server.anonymous().post(SIGN_UP, body.clone()).await;
        assert_eq!(answer.expect(400, "validation_failed").json()["details"][0]["path"], field, "{body}");
    }
    let nul = server.anonymous().post(SIGN_UP, with("affiliate_code", json!("a\u{0}b"))).await.status;
    assert!([201, 400].contains(&nul), "{nul}");
    let text = Body::from(with("name", json!("B")).to_string());
    let answer = server.anonymous().send_raw(Method::POST, SIGN_UP, Some("text/plain"), text).await;
    answer.expect(415, "unsupported_media_type");
    let one_more = (before.0 + i64::from(nul == 201), before.1 + usize::from(nul == 201));
    assert_eq!((accounts(&server).await, workspaces(&server).await), one_more);
}

/// rules: AUTH-12
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn one_address_signs_up_once(engine: Engine) {
    let server = Server::start(engine).await;
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..12 {
        let email = if number % 2 == 0 { "same@people.test" } else { "SAME@people.test" };
        let caller = server.anonymous();
        calls.spawn(
            async move { caller.post(SIGN_UP, json!({ "email": email, "password": PASSWORD })).await },
        );
    }
    let mut statuses: Vec<u16> = calls.join_all().await.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!((statuses[0], &statuses[1..]), (201, &[409; 11][..]));
    assert_eq!((accounts(&server).await, workspaces(&server).await), (1, 1));
}

/// rules: AUTH-13
#[both_engines]
async fn passwords_are_kept_as_argon2id_hashes(engine: Engine) {
    let options = ServerOptions { hashing_cost: HashingCost::default(), ..ServerOptions::default() };
    let server = Server::with(engine, options).await;
    let mut hashes = Vec::new();
    for (number, password) in
        ["1234567890".to_owned(), "ü€🔑".repeat(50) + &"x".repeat(50)].iter().enumerate()
    {
        let email = format!("p{number}@people.test");
        let body = json!({ "email": email, "password": password });
        server.anonymous().post(SIGN_UP, body.clone()).await.ok();
        server.anonymous().post(LOGIN, body).await.ok();
        let found =
            server.app.db().system_read(async move |tx| store::accounts::find_by_email(tx, &email).await);
        let hash = found.await.unwrap().unwrap().password_hash;
        let mut parts = hash.split('$').skip(1);
        assert_eq!((parts.next(), parts.next()), (Some("argon2id"), Some("v=19")));
        let costs = parts.next().unwrap().replace(['m', 't', 'p', '='], "");
        let costs: Vec<u32> = costs.split(',').map(|cost| cost.parse().unwrap()).collect();
        assert!(costs[0] >= 19 * 1024 && costs[1] >= 2, "{hash}");
        hashes.push(parts.next().unwrap().to_owned());
    }
    // Each hash has a salt of its own.
    assert_ne!(hashes[0], hashes[1]);
}

async fn log_in(caller: &Caller, email: &str, password: &str) -> Answer {
    caller.post(LOGIN, json!({ "email": email, "password": password })).await
}

/// rules: AUTH-14, ERR-4
#[both_engines]
async fn a_wrong_password_and_an_unknown_address_look_the_same(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let caller = server.anonymous().with("x-request-id", "same");
    let wrong = log_in(&caller, &tenant.email, "not the password").await;
    let fix = "Check the email address and the password.";
    let body = json!({ "error": "Unauthorized", "code": "unauthorized", "fix": fix });
    assert_eq!((wrong.status, wrong.json()), (401, body));
    for (email, password) in [
        ("nobody@people.test", PASSWORD),
        ("no address", PASSWORD),
        ("", ""),
        (tenant.email.as_str(), ""),
        (tenant.email.as_str(), &PASSWORD.to_uppercase()),
        (tenant.email.as_str(), &format!("{PASSWORD} ")),
    ] {
        let answer = log_in(&caller, email, password).await;
        assert_eq!((answer.status, &answer.bytes), (wrong.status, &wrong.bytes), "{email}");
        assert_eq!(answer.headers, wrong.headers, "{email}");
    }
    // Refused for what it is, before anybody is looked for.
    log_in(&caller, "nul\u{0}@people.test", PASSWORD).await.expect(400, "validation_failed");
    log_in(&caller, &tenant.email.to_uppercase(), PASSWORD).await.ok();
}

/// Guesses at once, each by a client of its own: the limits for clients and accounts are not what is tested here.
async fn guess(server: &Server, emails: &[&str], calls: usize) -> Vec<Answer> {
    server.clock.advance(86_400);
    let mut running = tokio::task::JoinSet::new();
    for call in 0..calls {
        let caller = server.anonymous().with("x-forwarded-for", &format!("127.0.1.{call}"));
        let email = emails.get(call).map_or(format!("nobody{call}@people.test"), |email| (*email).to_owned());
        running.spawn(async move { log_in(&caller, &email, "not the password").await });
    }
    running.join_all().await
}

/// The same work is done for an unknown address: it waits for the same places.
/// rules: AUTH-14, AUTH-15, ERR-8
#[both_engines]
async fn hashing_takes_a_place_for_known_and_unknown_addresses(engine: Engine) {
    let hashing_cost = HashingCost::default();
    let mut options = ServerOptions { hashing_cost, ..ServerOptions::default() };
    options.web.proxies = web::Proxies::Count(1);
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Free).await;
    // Twenty-two at once are served, however slow the machine is.
    for calls in [8, 22] {
        let served = guess(&server, &[], calls).await;
        assert!(served.iter().all(|answer| answer.status == 401));
    }
    for emails in [vec![tenant.email.as_str(); 9], Vec::new()] {
        let answers = guess(&server, &emails, 50).await;
        let (hashed, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 401);
        assert!(hashed.len() >= 22 && refused.len() >= 5, "{emails:?}: {} hashed", hashed.len());
        for answer in refused {
            answer.expect(429, "rate_limited");
            assert_eq!(
                (answer.json()["error"].as_str(), answer.header("retry-after")),
                (Some("Too many requests"), "1")
            );
        }
    }
    // Guesses that found no place were none.
    server.log_in(&tenant).await;
}

/// rules: AUTH-15, METER-14
#[both_engines]
async fn guessing_is_limited_by_client_address(engine: Engine) {
    let server = Server::with(engine, ServerOptions { anonymous_rpm: 5, ..ServerOptions::default() }).await;
    for _ in 0..5 {
        log_in(&server.anonymous(), "nobody@people.test", PASSWORD).await.expect(401, "unauthorized");
    }
    server.clock.advance(20);
    let refused = log_in(&server.anonymous(), "nobody@people.test", PASSWORD).await;
    assert_eq!(refused.expect(429, "rate_limited").header("retry-after"), "40");
    server.clock.advance(40);
    log_in(&server.anonymous(), "nobody@people.test", PASSWORD).await.expect(401, "unauthorized");
}

/// rules: AUTH-16
#[both_engines]
async fn the_session_cookie_is_new_at_each_login_and_guarded(engine: Engine) {
    let options = ServerOptions { public_url: "https://mail.test".to_owned(), ..ServerOptions::default() };
    let server = Server::with(engine, options).await;
    let body = json!({ "email": "bob@people.test", "password": PASSWORD });
    let first = server.anonymous().post(SIGN_UP, body.clone()).await;
    let planted = server.anonymous().with("cookie", "__Host-agent_mailbox=planted; agent_mailbox=planted");
    let kept = server.anonymous().with("cookie", &format!("__Host-agent_mailbox={}", first.session_secret()));
    let mut secrets = Vec::new();
    for answer in [first, planted.post(LOGIN, body.clone()).await, kept.post(LOGIN, body.clone()).await] {
        answer.ok();
        let cookie = answer.header("set-cookie").to_owned();
        let (pair, attributes) = cookie.split_once("; ").unwrap();
        let secret = pair.strip_prefix("__Host-agent_mailbox=").unwrap().to_owned();
        // 22 digits of base 62 hold 128 bits.
        assert!(secret.len() >= 22 && secret.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        let mut attributes: Vec<&str> = attributes.split("; ").collect();
        attributes.sort_unstable();
        assert_eq!(attributes, ["HttpOnly", "Max-Age=2592000", "Path=/", "SameSite=Lax", "Secure"]);
        assert_eq!(answer.header("cache-control"), "no-store");
        assert!(!answer.text().contains(&secret));
        secrets.push(secret);
    }
    secrets.sort_unstable();
    secrets.dedup();
    assert_eq!(secrets.len(), 3);
    let me = async |name: &str, secret: &str| {
        server
            .anonymous()
            .with("cookie", &format!("a=b; {name}={secret}"))
            .get("/api/console/me")
            .await
            .status
    };
    assert_eq!(me("__Host-agent_mailbox", &secrets[0]).await, 200);
    assert_eq!(me("agent_mailbox", &secrets[0]).await, 401);
    assert_eq!(me("__Host-agent_mailbox", "planted").await, 401);
}
