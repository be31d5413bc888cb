//! New passwords, by mail and with the present one.

use operations::{SignUpPolicy, sending::worker};
use testkit::{Caller, Engine, PASSWORD, Server, ServerOptions, both_engines};

use super::person::{Person, cookies, form};

/// Somebody whose account has the address of a mailbox here, so that mail to it can be read.
async fn reachable(server: &Server) -> (Person, String) {
    let ada = Person::admin(server).await;
    let mailbox = ada.mailbox("Own").await;
    let browser = server.anonymous().with("sec-fetch-site", "same-origin");
    let fields = [("email", mailbox.address.as_str()), ("password", PASSWORD)];
    assert_eq!(form(&browser, "/console/sign-up", &fields).await.status, 303);
    (ada, mailbox.address)
}

/// The tokens of all links that were mailed.
async fn tokens(server: &Server, ada: &Person) -> Vec<String> {
    // The answer comes before the work.
    for _ in 0..50 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        worker::run_due(&server.app).await.unwrap();
        let boxes = ada.tenant.key.get("/api/v1/mailboxes").await.ok();
        let id = boxes[0]["id"].as_str().unwrap().to_owned();
        let mails = ada.tenant.key.get(&format!("/api/v1/mailboxes/{id}/emails")).await.ok();
        let mut found = Vec::new();
        for mail in mails["emails"].as_array().unwrap() {
            let path = format!("/api/v1/mailboxes/{id}/emails/{}", mail["id"].as_str().unwrap());
            let body = ada.tenant.key.get(&path).await.ok()["body"].as_str().unwrap().to_owned();
            let token = body.split("/console/reset#").nth(1).unwrap();
            found.push(token.split_whitespace().next().unwrap().to_owned());
        }
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

async fn ask(browser: &Caller, email: &str) -> String {
    let answer = form(browser, "/console/forgot", &[("email", email)]).await;
    assert_eq!(answer.status, 200);
    answer.text()
}

/// rules: AUTH-25, CONSOLE-13, CONSOLE-14
#[both_engines]
async fn a_link_sets_a_new_password_once_within_an_hour(engine: Engine) {
    let server = Server::start(engine).await;
    let (ada, email) = reachable(&server).await;
    let browser = server.anonymous().with("sec-fetch-site", "same-origin");
    let login = |password: &'static str| {
        let (browser, email) = (browser.clone(), email.clone());
        async move { form(&browser, "/console/login", &[("email", &email), ("password", password)]).await }
    };
    let session = server.cookie(&login(PASSWORD).await.session_secret());
    assert_eq!(ask(&browser, &email).await, ask(&browser, "nobody@people.test").await);
    let token = tokens(&server, &ada).await.pop().unwrap();
    let short = form(&browser, "/console/reset", &[("token", &token), ("password", "short")]).await;
    assert_eq!(short.status, 400);
    let fields = [("token", token.as_str()), ("password", "a new and better one")];
    let set = form(&browser, "/console/reset", &fields).await;
    assert_eq!((set.status, set.header("location")), (303, "/console/login"));
    assert_eq!(session.get("/console").await.status, 303, "sessions of before have ended");
    assert_eq!(login(PASSWORD).await.status, 401);
    assert_eq!(login("a new and better one").await.status, 303);
    assert_eq!(form(&browser, "/console/reset", &fields).await.status, 404, "a link works once");
    // Who has shown to be the owner is not kept out by the guesses of others.
    for _ in 0..11 {
        login(PASSWORD).await;
    }
    assert_eq!(login("a new and better one").await.status, 429);
    let device = cookies(&set).into_iter().find(|one| one.starts_with("agent_mailbox_device=")).unwrap();
    let owner = browser.with("cookie", device.split(';').next().unwrap());
    let fields = [("email", email.as_str()), ("password", "a new and better one")];
    assert_eq!(form(&owner, "/console/login", &fields).await.status, 303);
}

/// rules: CONSOLE-14
#[both_engines]
async fn a_link_stops_working_and_few_are_sent(engine: Engine) {
    let server = Server::start(engine).await;
    let (ada, email) = reachable(&server).await;
    let browser = server.anonymous().with("sec-fetch-site", "same-origin");
    for _ in 0..6 {
        ask(&browser, &email).await;
        tokio::time::sleep(std::time::Duration::from_millis(60)).await;
    }
    tokens(&server, &ada).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let sent = tokens(&server, &ada).await;
    assert_eq!(sent.len(), 3, "nobody's mailbox is flooded");
    server.clock.advance(3601);
    let fields = [("token", sent[0].as_str()), ("password", "a new and better one")];
    assert_eq!(form(&browser, "/console/reset", &fields).await.status, 404);
}

#[both_engines]
async fn the_present_password_sets_a_new_one(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let wrong = [("current", "not the password"), ("password", "a new and better one")];
    let answer = ada.form("/console/account/password", &wrong).await;
    assert_eq!((answer.status, answer.header("location")), (400, ""));
    assert!(answer.text().contains("role=\"alert\""), "{}", answer.text());
    let right = [("current", PASSWORD), ("password", "a new and better one")];
    let answer = ada.form("/console/account/password", &right).await;
    assert_eq!(answer.header("location"), "/console/login");
    assert_eq!(ada.get("/console").await.status, 303);
}

/// rules: AUTH-26
#[both_engines]
async fn the_console_verifies_addresses_too(engine: Engine) {
    let sign_up = SignUpPolicy { verify: true, ..SignUpPolicy::default() };
    let options = ServerOptions { sign_up, ..ServerOptions::default() };
    let server = Server::with(engine, options).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Own").await;
    let browser = server.anonymous().with("sec-fetch-site", "same-origin");
    let page = browser.get("/console/sign-up").await.text();
    assert!(page.contains("Email me a link") && !page.contains("type=\"password\""), "{page}");
    let asked = form(&browser, "/console/sign-up", &[("email", &mailbox.address)]).await;
    assert_eq!((asked.status, cookies(&asked).len()), (200, 0));
    let known = form(&browser, "/console/sign-up", &[("email", &ada.tenant.email)]).await;
    assert_eq!(known.text(), asked.text().replace(&mailbox.address, &ada.tenant.email));
    worker::run_due(&server.app).await.unwrap();
    let path = format!("/api/v1/mailboxes/{}/emails", mailbox.id);
    let email = ada.tenant.key.get(&path).await.ok()["emails"][0]["id"].as_str().unwrap().to_owned();
    let body = ada.tenant.key.get(&format!("{path}/{email}")).await.ok()["body"].as_str().unwrap().to_owned();
    let token = body.split("/console/verify#").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let short = form(&browser, "/console/verify", &[("token", &token), ("password", "short")]).await;
    assert_eq!(short.status, 400);
    let made = form(&browser, "/console/verify", &[("token", &token), ("password", PASSWORD)]).await;
    assert_eq!((made.status, made.header("location")), (303, "/console"));
    assert_eq!(server.cookie(&made.session_secret()).get("/console").await.status, 200);
}
