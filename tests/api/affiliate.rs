//! Affiliates: the account, the link, sign-ups through it.

use model::Plan;
use serde_json::{Value, json};
use testkit::{Answer, Engine, PASSWORD, Server, Tenant, both_engines};

use super::people::Person;

const ME: &str = "/api/v1/affiliate/me";
const SIGN_UP: &str = "/api/v1/affiliate/signup";
pub(super) const ANALYTICS: &str = "/api/v1/affiliate/analytics";
pub(super) const COMMISSIONS: &str = "/api/v1/affiliate/commissions";
pub(super) const PAYOUTS: &str = "/api/v1/affiliate/payouts";

/// A tenant whose affiliate code is `friends`.
pub(super) async fn start(engine: Engine) -> (Server, Tenant) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let made = tenant.key.post(SIGN_UP, json!({ "code": "friends" })).await;
    assert_eq!(made.status, 201);
    (server, tenant)
}

pub(super) async fn click(server: &Server, code: &str) -> Answer {
    server.anonymous().get(&format!("/api/affiliate/track?code={code}")).await
}

async fn figures(tenant: &Tenant) -> [i64; 3] {
    let found = tenant.key.get(ANALYTICS).await.ok();
    ["clicks", "sign_ups", "conversions"].map(|name| found[name].as_i64().unwrap())
}

/// Somebody who signs up through the link; gives their workspace.
pub(super) async fn referred(server: &Server, email: &str, code: &str) -> model::WorkspaceId {
    let body = json!({ "email": email, "password": PASSWORD, "affiliate_code": code });
    let person = Person::of(server, &server.anonymous().post("/api/console/sign-up", body).await);
    person.me["workspace_id"].as_str().unwrap().into()
}

/// rules: AFF-1
#[both_engines]
async fn signing_up_gives_a_code_and_a_link(engine: Engine) {
    let server = Server::start(engine).await;
    let (one, two) = (server.tenant(Plan::Free).await, server.tenant(Plan::Free).await);
    let answer =
        one.key.post(SIGN_UP, json!({ "code": "my-code-7", "payout_email": "Pay@People.test" })).await;
    let made = answer.json();
    let expected = json!({
        "id": made["id"],
        "code": "my-code-7",
        "link": "http://mail.test/api/affiliate/track?code=my-code-7",
        "payout_email": "pay@people.test",
        "commission_percent": 20,
        "created_at": "2026-07-14T09:00:00.000Z",
        "updated_at": "2026-07-14T09:00:00.000Z",
    });
    assert_eq!((answer.status, &made), (201, &expected));
    assert!(made["id"].as_str().unwrap().starts_with("aff_"));
    assert_eq!(one.key.get(ME).await.ok(), expected);
    // Every field is optional, and so is the body.
    let three = server.tenant(Plan::Free).await;
    let bare = three.key.send(axum::http::Method::POST, SIGN_UP, None).await;
    assert_eq!(bare.status, 201, "{}", bare.text());
    one.key.post(SIGN_UP, json!({})).await.expect(409, "affiliate_exists");
    one.key.post(SIGN_UP, json!({ "code": "another" })).await.expect(409, "affiliate_exists");
    let taken = two.key.post(SIGN_UP, json!({ "code": "my-code-7" })).await;
    assert_eq!(
        taken.expect(409, "affiliate_exists").json()["error"],
        "This affiliate account or code already exists."
    );

    let made = two.key.post(SIGN_UP, json!({})).await.ok();
    let code = made["code"].as_str().unwrap();
    assert!(
        (3..=40).contains(&code.len())
            && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    );
    assert_eq!((&made["payout_email"], made["link"].as_str().unwrap().ends_with(code)), (&Value::Null, true));
    assert_eq!(one.key.get(ME).await.ok(), expected);
}

/// rules: AFF-1, AFF-2, ERR-3
#[both_engines]
async fn a_faulty_code_is_refused(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let other = server.tenant(Plan::Free).await;
    for (body, field) in [
        (json!({ "code": "ab" }), "code"),
        (json!({ "code": "" }), "code"),
        (json!({ "code": "a".repeat(41) }), "code"),
        (json!({ "code": "With-Case" }), "code"),
        (json!({ "code": "with space" }), "code"),
        (json!({ "code": "a;b=c" }), "code"),
        (json!({ "code": "ümläut" }), "code"),
        (json!({ "code": "nul\u{0}" }), "code"),
        (json!({ "payout_email": "nobody" }), "payout_email"),
        (json!({ "commission_percent": 90 }), "commission_percent"),
    ] {
        let made = other.key.post(SIGN_UP, body.clone()).await;
        let changed = tenant.key.patch(ME, body.clone()).await;
        for answer in [made, changed] {
            assert_eq!(answer.expect(400, "validation_failed").json()["details"][0]["path"], field, "{body}");
        }
    }
    for (caller, code) in [(&other, "abc"), (&server.tenant(Plan::Free).await, &"z".repeat(40))] {
        caller.key.post(SIGN_UP, json!({ "code": code })).await.ok();
    }
}

/// rules: AFF-1
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn sign_ups_at_once_leave_one_account_and_one_owner_of_a_code(engine: Engine) {
    let server = Server::start(engine).await;
    for round in 0..5 {
        let (one, two) = (server.tenant(Plan::Free).await, server.tenant(Plan::Free).await);
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..10 {
            let key = one.key.clone();
            calls.spawn(
                async move { key.post(SIGN_UP, json!({ "code": format!("r{round}-{number}") })).await },
            );
        }
        let mut statuses: Vec<u16> = calls.join_all().await.iter().map(|answer| answer.status).collect();
        statuses.sort_unstable();
        assert_eq!((statuses[0], &statuses[1..]), (201, &[409; 9][..]));

        let three = server.tenant(Plan::Free).await;
        let body = json!({ "code": format!("shared-{round}") });
        let (first, second) =
            tokio::join!(two.key.post(SIGN_UP, body.clone()), three.key.post(SIGN_UP, body));
        let mut statuses = [first.status, second.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409]);
    }
}

/// rules: AFF-2
#[both_engines]
async fn a_workspace_reads_and_changes_its_own_account(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let other = server.tenant(Plan::Free).await;
    assert_eq!(other.key.get(ME).await.expect(404, "not_found").json()["error"], "Affiliate not found");
    other.key.patch(ME, json!({ "code": "mine" })).await.expect(404, "not_found");
    assert_eq!(figures(&other).await, [0, 0, 0]);
    assert_eq!(
        (other.key.get(COMMISSIONS).await.ok(), other.key.get(PAYOUTS).await.ok()),
        (json!([]), json!([]))
    );

    server.clock.advance(60);
    let mut expected = tenant.key.get(ME).await.ok();
    let changed = tenant.key.patch(ME, json!({ "payout_email": "pay@people.test" })).await.ok();
    expected["payout_email"] = json!("pay@people.test");
    expected["updated_at"] = json!("2026-07-14T09:01:00.000Z");
    assert_eq!(changed, expected);
    let changed = tenant.key.patch(ME, json!({ "code": "new-friends" })).await.ok();
    assert_eq!(
        (&changed["code"], &changed["payout_email"]),
        (&json!("new-friends"), &json!("pay@people.test"))
    );
    assert_eq!(tenant.key.get(ME).await.ok(), changed);

    // The old link counts nothing, and its code is free for others.
    assert_eq!(click(&server, "friends").await.header("set-cookie"), "");
    assert_eq!(figures(&tenant).await, [0, 0, 0]);
    click(&server, "new-friends").await;
    assert_eq!(figures(&tenant).await, [1, 0, 0]);
    other.key.post(SIGN_UP, json!({ "code": "friends" })).await.ok();
    other.key.patch(ME, json!({ "code": "new-friends" })).await.expect(409, "affiliate_exists");
    assert_eq!(other.key.get(ME).await.ok()["code"], "friends");
    tenant.key.patch(ME, json!({ "code": "new-friends" })).await.ok();
}

/// rules: AFF-3
#[both_engines]
async fn the_link_counts_a_click_and_leads_to_signing_up(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let answer = click(&server, "friends").await;
    assert_eq!((answer.status, answer.header("location")), (302, "/sign-up"));
    let cookie = answer.header("set-cookie");
    assert!(cookie.starts_with("affiliate=friends; ") && cookie.contains("SameSite=Lax"), "{cookie}");
    for code in [
        "unknown",
        "",
        "FRIENDS",
        "friends%20",
        "friends%00",
        "a%3Bb",
        "%0d%0aset-cookie:x=y",
        &"x".repeat(500),
        "friends&code=friends",
    ] {
        let answer = click(&server, code).await;
        assert_eq!(
            (answer.status, answer.header("location"), answer.header("set-cookie")),
            (302, "/sign-up", ""),
            "{code}"
        );
    }
    let answer = server.anonymous().get("/api/affiliate/track").await;
    assert_eq!((answer.status, answer.header("set-cookie")), (302, ""));
    assert_eq!(figures(&tenant).await, [1, 0, 0]);
    let answer = click(&server, "friends&utm_source=letter").await;
    assert_eq!(answer.status, 302);
    assert!(answer.header("set-cookie").starts_with("affiliate=friends;"));
    assert_eq!(figures(&tenant).await, [2, 0, 0]);
}

/// rules: AFF-4
#[both_engines]
async fn sign_ups_count_by_cookie_and_by_code(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let sign_up = async |cookie: &str, body: Value| {
        let mut body = body;
        body["password"] = json!(PASSWORD);
        server.anonymous().with("cookie", cookie).post("/api/console/sign-up", body).await
    };
    let cookie = click(&server, "friends").await.header("set-cookie").split(';').next().unwrap().to_owned();
    sign_up(&cookie, json!({ "email": "a@people.test" })).await.ok();
    sign_up("", json!({ "email": "b@people.test", "affiliate_code": "friends" })).await.ok();
    // Nobody is turned away for a code that means nothing, and nothing is counted.
    sign_up("affiliate=unknown", json!({ "email": "c@people.test" })).await.ok();
    sign_up(&format!("affiliate={}", "x".repeat(100)), json!({ "email": "d@people.test" })).await.ok();
    sign_up("", json!({ "email": "e@people.test", "affiliate_code": "unknown" })).await.ok();
    // A refused sign-up does not count either.
    sign_up(&cookie, json!({ "email": "a@people.test" })).await.expect(409, "account_exists");
    assert_eq!(figures(&tenant).await, [1, 2, 0]);
}
