//! Getting in, getting out, and what roles may do.

use model::Plan;
use serde_json::json;
use testkit::{Engine, PASSWORD, Server, both_engines};

use super::person::{Person, cookies, form};

/// rules: CONSOLE-7
#[both_engines]
async fn whoever_is_not_logged_in_is_led_to_the_login_and_back(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let answer = server.anonymous().get("/console/usage?days=7").await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, "/console/login?next=%2Fconsole%2Fusage%3Fdays%3D7")
    );
    let browser = server.anonymous().with("sec-fetch-site", "same-origin");
    for (next, target) in [
        ("/console/usage?days=7", "/console/usage?days=7"),
        ("https://evil.test/", "/console"),
        ("//evil.test/", "/console"),
        ("/\\evil.test", "/console"),
        ("/console/../../evil", "/console"),
    ] {
        let fields = [("email", tenant.email.as_str()), ("password", PASSWORD), ("next", next)];
        let answer = form(&browser, "/console/login", &fields).await;
        assert_eq!((answer.status, answer.header("location")), (303, target), "{next}");
        assert!(cookies(&answer)[0].starts_with("agent_mailbox="));
    }
    // A page that is open is told where to go; a request for a part of it is no page to come back to.
    let partial = server.anonymous().with("hx-request", "true").get("/console/usage").await;
    assert_eq!((partial.status, partial.header("hx-redirect")), (200, "/console/login"));
    // Unknown addresses and wrong passwords look the same.
    let wrong = [("email", tenant.email.as_str()), ("password", "not the password")];
    let unknown = [("email", "nobody@people.test"), ("password", "not the password")];
    let (wrong, unknown) =
        (form(&browser, "/console/login", &wrong).await, form(&browser, "/console/login", &unknown).await);
    assert_eq!((wrong.status, unknown.status), (401, 401));
    assert_eq!(wrong.text().replace(&tenant.email, "nobody@people.test"), unknown.text());
    assert!(cookies(&wrong).is_empty());
}

/// rules: AUTH-11, AUTH-17
#[both_engines]
async fn people_sign_up_and_log_out_with_forms(engine: Engine) {
    let server = Server::start(engine).await;
    let browser = server.anonymous().with("sec-fetch-site", "same-origin");
    let fields =
        [("email", "ada@people.test"), ("password", PASSWORD), ("name", "Ada"), ("workspace_name", "")];
    let answer = form(&browser, "/console/sign-up", &fields).await;
    assert_eq!((answer.status, answer.header("location")), (303, "/console"));
    let ada = server.cookie(&answer.session_secret());
    let page = ada.get("/console").await;
    assert!(page.text().contains("First steps"), "{}", page.text());
    // Once more with the same address, and with a password that is too short: the form says why and keeps the rest.
    let again = form(&browser, "/console/sign-up", &fields).await;
    assert_eq!(again.status, 409);
    assert!(again.text().contains("value=\"ada@people.test\""));
    let short = [("email", "eve@people.test"), ("password", "short")];
    assert_eq!(form(&browser, "/console/sign-up", &short).await.status, 400);
    let out = form(&ada, "/console/logout", &[]).await;
    assert_eq!((out.status, out.header("location")), (303, "/console/login"));
    assert_eq!(ada.get("/console").await.status, 303);
    // The page after says so, once.
    let told = cookies(&out).into_iter().find(|one| one.starts_with("flash=")).unwrap();
    let told = told.split(';').next().unwrap().to_owned();
    let login = server.anonymous().with("cookie", &told).get("/console/login").await;
    assert!(login.text().contains("You are logged out."));
    assert!(cookies(&login).iter().any(|one| one.starts_with("flash=;")));
}

/// rules: CONSOLE-12, AUTH-22, AUTH-23
#[both_engines]
async fn forms_of_other_sites_do_nothing(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let fields = [("name", "Stolen"), ("role", "admin")];
    let silent = ada.caller.without("sec-fetch-site").with("host", "mail.test");
    for caller in [
        silent.clone(),
        silent.with("sec-fetch-site", "cross-site"),
        silent.with("sec-fetch-site", "same-site"),
        silent.with("origin", "https://evil.test"),
        silent.with("origin", "null"),
    ] {
        let answer = form(&caller, "/console/keys", &fields).await;
        assert_eq!(answer.status, 403, "{}", answer.text());
    }
    assert!(!ada.page("/console/keys").await.contains("Stolen"));
    let own = silent.with("origin", "http://mail.test");
    assert_eq!(form(&own, "/console/keys", &fields).await.status, 200);
    // Neither is a key a person.
    let key = ada.tenant.key.get("/console").await;
    assert_eq!((key.status, key.header("location")), (303, "/console/login"));
    // Nor does the login take a form of another site, which would log somebody in as somebody else.
    let login = [("email", ada.tenant.email.as_str()), ("password", PASSWORD)];
    let foreign = server.anonymous().with("sec-fetch-site", "cross-site");
    assert_eq!(form(&foreign, "/console/login", &login).await.status, 403);
}

/// rules: CONSOLE-20
#[both_engines]
async fn keys_are_narrowed_without_a_script(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    ada.mailbox("Support").await;
    let page = ada.page("/console/keys/new").await;
    let choices: Vec<&str> = page
        .split("id=\"f-access\"")
        .nth(1)
        .and_then(|rest| rest.split("</select>").next())
        .unwrap()
        .split("<option value=\"")
        .skip(1)
        .map(|option| option.split('>').nth(1).unwrap().split('<').next().unwrap())
        .collect();
    assert_eq!(choices, ["Read and send", "Read and draft", "Read only", "Full access"]);

    let key_of =
        |page: &str| page.split("id=\"fresh-key\">").nth(1).unwrap().split('<').next().unwrap().to_owned();
    let me = async |key: &str| server.key(key).get("/api/v1/me").await.ok();
    let made = ada.form("/console/keys", &[("name", "Plain")]).await.text();
    let plain = me(&key_of(&made)).await;
    assert_eq!((&plain["role"], &plain["mailbox_ids"]), (&json!("member"), &json!(null)));
    assert_eq!(plain["scopes"], json!(["read", "draft", "send"]));
    let full = [("name", "Full"), ("access", "full"), ("role", "admin"), ("expires", "")];
    let made = ada.form("/console/keys", &full).await.text();
    let full = me(&key_of(&made)).await;
    assert_eq!(
        (&full["role"], &full["scopes"], &full["expires_at"]),
        (&json!("admin"), &json!(null), &json!(null))
    );
    let none = [("name", "None"), ("some_mailboxes", "on")];
    let refused = ada.form("/console/keys", &none).await;
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("id=\"e-some_mailboxes\""), "{}", refused.text());
    let list = ada.page("/console/keys").await;
    assert!(
        list.contains("Read and send") && list.contains("Full access") && list.contains("All mailboxes"),
        "{list}"
    );
}

/// rules: CONSOLE-20
#[both_engines]
async fn a_key_is_narrowed_on_its_page(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let support = ada.mailbox("Support").await;
    ada.mailbox("Sales").await;
    let id = support.id.as_str();
    let me = async |key: &str| server.key(key).get("/api/v1/me").await.ok();
    let full = [("name", "Full"), ("access", "full"), ("role", "admin"), ("expires", "")];
    let made = ada.form("/console/keys", &full).await.text();
    let secret = made.split("id=\"fresh-key\">").nth(1).unwrap().split('<').next().unwrap().to_owned();
    let full = me(&secret).await;
    let list = ada.page("/console/keys").await;
    let path = format!("/console/keys/{}", full["id"].as_str().unwrap());
    assert!(list.contains(&format!("href=\"{path}\"")), "{list}");
    assert!(ada.page(&path).await.contains("As now: Full access"));
    let change = [
        ("name", "Narrow"),
        ("access", "read"),
        ("role", "member"),
        ("some_mailboxes", "on"),
        ("mailbox", id),
        ("expires", "30"),
    ];
    assert_eq!(ada.form(&path, &change).await.status, 303);
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    let narrowed = me(&secret).await;
    assert_eq!((&narrowed["name"], &narrowed["role"]), (&json!("Narrow"), &json!("member")));
    assert_eq!((&narrowed["scopes"], &narrowed["mailbox_ids"]), (&json!(["read"]), &json!([id])));
    assert!(narrowed["expires_at"].is_string());
    // What is left as it is stays, and nothing wider is offered or taken.
    let page = ada.page(&path).await;
    assert!(page.contains("As now: Read only") && !page.contains("Full access"), "{page}");
    assert_eq!(ada.form(&path, &[("name", "Narrow"), ("access", "full")]).await.status, 400);
    assert_eq!(ada.form(&path, &[("name", "Again"), ("access", ""), ("expires", "")]).await.status, 303);
    let again = me(&secret).await;
    assert_eq!((&again["scopes"], &again["expires_at"]), (&narrowed["scopes"], &narrowed["expires_at"]));
    assert_eq!(ada.caller.get("/console/keys/key_none").await.status, 404);
}

/// rules: CONSOLE-9
#[both_engines]
async fn keys_are_made_shown_once_and_revoked(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let page =
        ada.form("/console/keys", &[("name", "Robot"), ("role", "admin"), ("expires", "")]).await.text();
    let key = page.split("id=\"fresh-key\">").nth(1).unwrap().split('<').next().unwrap().to_owned();
    assert!(key.starts_with("sk-proj-"), "{key}");
    for part in [
        "curl http://mail.test/api/v1/mailboxes",
        "urllib.request",
        "await fetch(",
        "mcpServers",
        "http://mail.test/mcp",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert_eq!(page.matches(&key).count(), 10, "shown and copied, once alone and in four examples: {page}");
    assert_eq!(server.key(&key).get("/api/v1/mailboxes").await.status, 200);
    let list = ada.page("/console/keys").await;
    assert!(list.contains("Robot") && !list.contains(&key));
    let row = list.split_once("Robot").unwrap().1;
    let path = row.split("action=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(ada.form(path, &[("confirmed", "1")]).await.status, 303);
    assert_eq!(server.key(&key).get("/api/v1/mailboxes").await.status, 401);
}

/// rules: CONSOLE-1, CONSOLE-9, CONSOLE-15
#[both_engines]
async fn roles_and_workspaces_hold_in_the_console(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    let invite = format!("/api/v1/workspaces/{}/invites", ada.tenant.workspace);
    let invite = ada.tenant.key.post(&invite, json!({ "email": "bob@people.test" })).await.ok();
    let token = invite["link"].as_str().unwrap().split_once('#').unwrap().1.to_owned();
    let browser = server.anonymous().with("sec-fetch-site", "same-origin");
    let joined =
        form(&browser, "/console/invite", &[("token", &token), ("password", PASSWORD), ("name", "Bob")])
            .await;
    assert_eq!((joined.status, joined.header("location")), (303, "/console"));
    let bob = server.cookie(&joined.session_secret());
    assert_eq!(bob.get(&mailbox.at("f/inbox")).await.status, 200);
    assert_eq!(bob.get("/console/members").await.status, 200);
    assert_eq!(bob.get("/console/keys").await.status, 403);
    assert_eq!(form(&bob, "/console/keys", &[("name", "x")]).await.status, 403);
    assert!(!bob.get("/console").await.text().contains("/console/keys"));
    // Only operators have the pages for operators, which others cannot tell from no page at all.
    for path in OPERATOR {
        assert_eq!(bob.get(path).await.status, 404, "{path}");
    }
    let set = format!("/console/operator/workspaces/{}/plan", ada.tenant.workspace);
    form(&bob, &set, &[("plan", "free")]).await;
    assert!(ada.page("/console/settings").await.contains("Enterprise plan"));
    // Another workspace's mailbox is not there.
    let eve = Person::admin(&server).await;
    for rest in ["f/inbox", "settings", "scheduled", "search?q=a", "compose"] {
        assert_eq!(eve.get(&mailbox.at(rest)).await.status, 404, "{rest}");
    }
}

/// rules: CONSOLE-16, AUTH-20
#[both_engines]
async fn an_invitation_is_accepted_in_the_console(engine: Engine) {
    let server = Server::start(engine).await;
    let (ada, bob, eve) =
        (Person::admin(&server).await, Person::admin(&server).await, Person::admin(&server).await);
    let invites = format!("/api/v1/workspaces/{}/invites", ada.tenant.workspace);
    let invite = ada.tenant.key.post(&invites, json!({ "email": bob.tenant.email })).await.ok();
    let token = invite["link"].as_str().unwrap().split_once('#').unwrap().1.to_owned();
    let browser = server.anonymous().with("sec-fetch-site", "same-origin");

    // Nobody is logged in: an account for this address cannot be made, and logging in leads back here.
    let page = browser.get("/console/invite").await.text();
    assert!(
        page.contains("Create account and join") && page.contains("Log in with an existing account"),
        "{page}"
    );
    let taken = form(&browser, "/console/invite", &[("token", &token), ("password", PASSWORD)]).await;
    assert_eq!((taken.status, taken.header("set-cookie")), (409, ""));
    assert!(taken.text().contains("Log in to accept") && taken.text().contains(&token));
    let login = form(&browser, "/console/invite/login", &[("token", &token)]).await;
    assert_eq!((login.status, login.header("location")), (303, "/console/login?next=%2Fconsole%2Finvite"));
    let kept = cookies(&login).into_iter().find(|one| one.starts_with("agent_mailbox_invite=")).unwrap();
    assert!(kept.contains("; Path=/console/invite; HttpOnly"), "{kept}");
    let kept = kept.split(';').next().unwrap().to_owned();
    let fields = [("email", bob.tenant.email.as_str()), ("password", PASSWORD), ("next", "/console/invite")];
    let entered = form(&browser, "/console/login", &fields).await;
    assert_eq!(entered.header("location"), "/console/invite");

    // Somebody else is logged in: the page says so, and offers another account.
    let page = eve.page("/console/invite").await;
    assert!(page.contains(&eve.tenant.email) && page.contains("Use another account"), "{page}");
    let refused = eve.form("/console/invite", &[("token", &token)]).await;
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("for another address") && refused.text().contains(&token));
    assert!(!refused.text().contains(&bob.tenant.email));
    let left = eve.form("/console/invite/login", &[("token", &token)]).await;
    assert_eq!(left.header("location"), "/console/login?next=%2Fconsole%2Finvite");
    assert_eq!(eve.get("/console").await.status, 303, "the session has ended");

    // The invited account: one button.
    let session = server.cookie(&entered.session_secret()).with("cookie", &kept);
    let page = session.get("/console/invite").await.text();
    assert!(page.contains(&bob.tenant.email) && page.contains(&token), "{page}");
    assert!(!page.contains("type=\"password\""));
    let joined = form(&session, "/console/invite", &[("token", &token)]).await;
    assert_eq!((joined.status, joined.header("location")), (303, "/console"));
    assert!(cookies(&joined).iter().any(|one| one.starts_with("agent_mailbox_invite=;")));
    assert_eq!(session.get(&format!("/api/v1/workspaces/{}", ada.tenant.workspace)).await.status, 200);
    let gone = form(&session, "/console/invite", &[("token", &token)]).await;
    assert_eq!(gone.status, 404);
    assert!(gone.text().contains("no longer valid"));
}

/// The pages for operators.
const OPERATOR: [&str; 7] = [
    "/console/operator",
    "/console/operator/nodes",
    "/console/operator/workspaces",
    "/console/operator/queue",
    "/console/operator/storage",
    "/console/operator/payments",
    "/console/operator/payouts",
];

#[both_engines]
async fn the_operator_sees_the_server(engine: Engine) {
    let server = Server::start(engine).await;
    let browser = server.anonymous().with("sec-fetch-site", "same-origin");
    let fields = [("email", "root@people.test"), ("password", PASSWORD)];
    let first = form(&browser, "/console/sign-up", &fields).await;
    let root = server.cookie(&first.session_secret());
    for path in OPERATOR {
        assert_eq!(root.get(path).await.status, 200, "{path}");
    }
    let page = root.get("/console/operator/workspaces").await.text();
    let path =
        page.split("action=\"/console/operator/").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let set = form(&root, &format!("/console/operator/{path}"), &[("plan", "developer")]).await;
    assert_eq!(set.status, 303);
    assert!(root.get("/console/settings").await.text().contains("Developer plan"));
    let workspace = path.split('/').nth(1).unwrap();
    let mut payout = vec![
        ("workspace", workspace),
        ("amount", "12.5"),
        ("currency", "usd"),
        ("status", "paid"),
        ("period_start", "2026-06-01"),
        ("period_end", "2026-07-01"),
        ("reference", "wire 7"),
    ];
    let recorded = form(&root, "/console/operator/payouts", &payout).await;
    assert_eq!(recorded.status, 303);
    let page = root.get("/console/operator/payouts").await.text();
    assert!(page.contains("12.50 USD") && page.contains("wire 7"), "{page}");
    payout[1].1 = "a lot";
    form(&root, "/console/operator/payouts", &payout).await;
    assert_eq!(root.get("/console/operator/payouts").await.text().matches("wire 7").count(), 1);
    assert!(root.get("/console/operator/storage").await.text().contains(workspace));
    assert_eq!(root.get("/console/operator/payments?state=nonsense").await.status, 400);
}

/// rules: AUTH-17
#[both_engines]
async fn sessions_are_listed_and_ended(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let other = server.log_in(&ada.tenant).await;
    let page = ada.page("/console/account").await;
    let path = page.split("action=\"/console/account/sessions/").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(
        ada.form(&format!("/console/account/sessions/{path}"), &[("confirmed", "1")]).await.status,
        303
    );
    assert_eq!(other.get("/console").await.status, 303);
    let another = server.log_in(&ada.tenant).await;
    let out = ada.form("/console/account/logout-everywhere", &[("confirmed", "1")]).await;
    assert_eq!(out.header("location"), "/console/login");
    assert_eq!(another.get("/console").await.status, 303);
    assert_eq!(ada.get("/console").await.status, 303);
}
