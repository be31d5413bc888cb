//! Passwords cannot be guessed: what is counted, for whom, over which doors, and who is not locked out by it.

use axum::body::Body;
use http::Method;
use model::Plan;
use serde_json::json;
use testkit::{Answer, Caller, Engine, PASSWORD, Server, ServerOptions, Tenant, both_engines};

use super::people::{at, sign_up, token};

const LOGIN: &str = "/api/console/login";
const WRONG: &str = "a wrong password";

fn options() -> ServerOptions {
    let mut options = ServerOptions::default();
    options.web.proxies = web::Proxies::Count(1);
    options
}

async fn start(engine: Engine) -> (Server, Tenant) {
    let server = Server::with(engine, options()).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    (server, tenant)
}

/// A client with an address of its own.
fn client(server: &Server, number: usize) -> Caller {
    server.anonymous().with("x-forwarded-for", &format!("127.1.{}.{}", number / 256, number % 256))
}

async fn log_in(caller: &Caller, email: &str, password: &str) -> Answer {
    caller.post(LOGIN, json!({ "email": email, "password": password })).await
}

/// How long a refused caller has to wait.
#[track_caller]
fn pause(answer: &Answer) -> i64 {
    let refused = answer.expect(429, "rate_limited");
    assert_eq!(refused.json()["error"], "Too many requests");
    refused.header("retry-after").parse().unwrap()
}

/// The cookies that an answer sets, by name.
fn device_cookie(answer: &Answer) -> String {
    let mut all = answer.headers.get_all("set-cookie").iter().map(|one| one.to_str().unwrap());
    all.rfind(|one| one.starts_with("agent_mailbox_device=")).unwrap().to_owned()
}

/// A browser in which somebody has signed in before, from an address that strangers have, too.
fn device(caller: &Caller, answer: &Answer) -> Caller {
    caller.with("cookie", device_cookie(answer).split(';').next().unwrap())
}

/// rules: AUTH-24
#[both_engines]
async fn an_account_pauses_for_longer_and_longer(engine: Engine) {
    let (server, tenant) = start(engine).await;
    for email in [tenant.email.as_str(), "nobody@people.test"] {
        // Every guess comes from elsewhere.
        let mut number = email.len() * 100;
        let mut guess = async |password: &str| {
            number += 1;
            log_in(&client(&server, number), email, password).await
        };
        for _ in 0..10 {
            guess(WRONG).await.expect(401, "unauthorized");
        }
        for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600] {
            // Neither the right password nor asking again changes anything.
            assert_eq!(pause(&guess(PASSWORD).await), seconds);
            assert_eq!(pause(&guess(WRONG).await), seconds);
            server.clock.advance(seconds);
            guess(WRONG).await.expect(401, "unauthorized");
        }
        assert_eq!(pause(&guess(WRONG).await), 3600);
    }
    server.clock.advance(3600);
    log_in(&client(&server, 1), &tenant.email, PASSWORD).await.ok();
    // A right password starts again.
    for number in 2..12 {
        log_in(&client(&server, number), &tenant.email, WRONG).await.expect(401, "unauthorized");
    }
    pause(&log_in(&client(&server, 12), &tenant.email, PASSWORD).await);
    // A day after the last one failures do not count any more, and upkeep removes them.
    server.clock.advance(86_400);
    log_in(&client(&server, 12), &tenant.email, WRONG).await.expect(401, "unauthorized");
    log_in(&client(&server, 12), &tenant.email, PASSWORD).await.ok();
    server.clock.advance(86_400);
    operations::maintenance::run(&server.app).await.unwrap();
    assert_eq!(counters(&server).await, 0);
}

async fn counters(server: &Server) -> i64 {
    let sql = "SELECT count(*) FROM password_guess";
    let found = server.app.db().system_read(async |tx| tx.one::<(i64,)>(sql, &[]).await).await;
    found.unwrap().unwrap().0
}

/// rules: AUTH-24
#[both_engines]
async fn a_client_is_counted_over_accounts(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let own = server.tenant(Plan::Free).await;
    let stranger = client(&server, 1);
    for number in 0..20 {
        let email = format!("p{number}@people.test");
        log_in(&stranger, &email, WRONG).await.expect(401, "unauthorized");
        if number < 19 {
            // An account of one's own does not pay for guesses at those of others.
            log_in(&stranger, &own.email, PASSWORD).await.ok();
        }
    }
    assert_eq!(pause(&log_in(&stranger, &tenant.email, PASSWORD).await), 1);
    log_in(&client(&server, 2), &tenant.email, PASSWORD).await.ok();
    server.clock.advance(1);
    log_in(&stranger, "p99@people.test", WRONG).await.expect(401, "unauthorized");
    assert_eq!(pause(&log_in(&stranger, &own.email, PASSWORD).await), 2);
}

/// However many come at once, no more are answered than one after the other.
/// rules: AUTH-24
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn guesses_at_once_are_counted_too(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..40 {
        let (caller, email) = (client(&server, number), tenant.email.clone());
        calls.spawn(async move { log_in(&caller, &email, WRONG).await.status });
    }
    let statuses = calls.join_all().await;
    let answered = statuses.iter().filter(|status| **status == 401).count();
    assert!(answered <= 10, "{answered}");
    assert!(statuses.iter().all(|status| [401, 429].contains(status)), "{statuses:?}");
}

/// rules: AUTH-24
#[tokio::test]
async fn nodes_count_together() {
    let (one, tenant) = start(Engine::Postgres).await;
    let two = one.another_node(ServerOptions { seed: 2, ..options() }).await;
    for (number, server) in [&one, &two].into_iter().cycle().take(10).enumerate() {
        log_in(&client(server, number), &tenant.email, WRONG).await.expect(401, "unauthorized");
    }
    for server in [&one, &two] {
        pause(&log_in(&client(server, 100), &tenant.email, PASSWORD).await);
    }
}

/// rules: AUTH-24
#[both_engines]
async fn the_settings_page_is_a_door_too(engine: Engine) {
    let (server, tenant) = start(engine).await;
    // A session without its device: one that was stolen, say.
    let session = server.log_in(&tenant).await.with("x-forwarded-for", "127.2.0.1");
    let change = async |current: &str| {
        let body = format!("current={}&password=a+new+and+better+one", current.replace(' ', "+"));
        let kind = Some("application/x-www-form-urlencoded");
        let answer =
            session.send_raw(Method::POST, "/console/account/password", kind, Body::from(body)).await;
        // What is refused comes back as the form, with the mistake at its field or above it.
        let says_why = |text: &str| text.contains("aria-invalid=\"true\"") || text.contains("role=\"alert\"");
        let refused = [400, 429].contains(&answer.status) && says_why(&answer.text());
        assert!(refused || answer.status == 303, "{}", answer.text());
        if refused { None } else { Some(answer.header("location").to_owned()) }
    };
    for _ in 0..10 {
        assert_eq!(change(WRONG).await, None);
    }
    assert_eq!(change(PASSWORD).await, None, "the right one does not work either");
    assert_eq!(pause(&log_in(&client(&server, 1), &tenant.email, PASSWORD).await), 1);
    server.clock.advance(1);
    assert_eq!(change(PASSWORD).await.as_deref(), Some("/console/login"));
}

/// rules: AUTH-25
#[both_engines]
async fn strangers_do_not_lock_out_a_browser_that_signed_in_before(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let other = server.tenant(Plan::Free).await;
    let browser = client(&server, 1);
    let first = log_in(&browser, &tenant.email, PASSWORD).await;
    let cookie = device_cookie(&first);
    assert!(cookie.contains("; HttpOnly; SameSite=Lax; Max-Age=34560000"), "{cookie}");
    let owner = device(&browser, &first);
    let of_other = device(&browser, &log_in(&browser, &other.email, PASSWORD).await);
    // It is kept at the next login, and opens nothing by itself.
    assert_eq!(device_cookie(&log_in(&owner, &tenant.email, PASSWORD).await), cookie);
    owner.get("/api/console/me").await.expect(401, "unauthorized");
    // A stranger guesses, from the owner's own network.
    for number in 0..12 {
        log_in(&client(&server, 1 + number % 2), &tenant.email, WRONG).await;
    }
    for stranger in [&browser, &of_other, &browser.with("cookie", "agent_mailbox_device=x.y")] {
        pause(&log_in(stranger, &tenant.email, PASSWORD).await);
    }
    log_in(&owner, &tenant.email, PASSWORD).await.ok();
    // The browser has a counter of its own.
    for _ in 0..10 {
        log_in(&owner, &tenant.email, WRONG).await.expect(401, "unauthorized");
    }
    assert_eq!(pause(&log_in(&owner, &tenant.email, PASSWORD).await), 1);
    server.clock.advance(1);
    log_in(&owner, &tenant.email, PASSWORD).await.ok();
}

/// An invitation that one wrote oneself says nothing about the account of the invited address.
/// rules: AUTH-12, AUTH-20, AUTH-24
#[both_engines]
async fn invitations_and_sign_ups_are_no_way_to_guess(engine: Engine) {
    let (server, tenant) = start(engine).await;
    sign_up(&server, "victim@people.test").await;
    let body = json!({ "email": "victim@people.test" });
    let link = token(&tenant.key.post(&at(&tenant, "/invites"), body).await.ok());
    let attacker = client(&server, 1);
    for number in 0..20 {
        let password = if number == 7 { PASSWORD } else { WRONG };
        let answer = if number % 2 == 0 {
            let body = json!({ "email": "victim@people.test", "password": password });
            attacker.post("/api/console/sign-up", body).await
        } else {
            let body = json!({ "token": link, "password": password });
            attacker.post("/api/console/invites/accept", body).await
        };
        assert_eq!(answer.expect(409, "account_exists").header("set-cookie"), "", "{number}");
    }
    let body = json!({ "token": link, "password": PASSWORD });
    assert_eq!(pause(&attacker.post("/api/console/invites/accept", body).await), 1);
    let body = json!({ "email": "new@people.test", "password": PASSWORD });
    assert_eq!(pause(&attacker.post("/api/console/sign-up", body.clone()).await), 1);
    // Others sign up, and the account itself has nothing to do with it.
    client(&server, 2).post("/api/console/sign-up", body).await.ok();
    log_in(&attacker, "victim@people.test", PASSWORD).await.ok();
}

/// rules: AUTH-24
#[both_engines]
async fn counters_are_few_and_the_fullest_stay(engine: Engine) {
    let (server, tenant) = start(engine).await;
    for number in 0..5 {
        log_in(&client(&server, number), &tenant.email, WRONG).await.expect(401, "unauthorized");
    }
    assert_eq!(counters(&server).await, 6);
    let trimmed = server.app.db().system_write(async |tx| store::password_guesses::trim(tx, 2).await).await;
    assert_eq!((trimmed.unwrap(), counters(&server).await), (4, 2));
    for number in 5..10 {
        log_in(&client(&server, number), &tenant.email, WRONG).await.expect(401, "unauthorized");
    }
    pause(&log_in(&client(&server, 11), &tenant.email, PASSWORD).await);
}
