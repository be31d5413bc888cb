//! Every page: it is there, it is private, and it loads and runs nothing of others.

use testkit::{Engine, Server, ServerOptions, both_engines};

use super::person::{Mailbox, Person};

/// What a page must not hold: anything that runs or looks in a way that the policy would have to allow.
#[track_caller]
fn assert_plain(path: &str, html: &str) {
    for bad in ["<style", " style=", " onclick", " onload", " onerror=", "javascript:", "<script>"] {
        assert!(!html.contains(bad), "{bad} in {path}");
    }
    for piece in html.split(" src=\"").skip(1).chain(html.split("<link ").skip(1)) {
        let target = piece.split("href=\"").last().unwrap_or(piece);
        assert!(!target.starts_with("http") && !target.starts_with("//"), "{path} loads {target:.60}");
    }
}

/// The pages of a workspace and of a mailbox in it.
fn paths(mailbox: &Mailbox) -> Vec<String> {
    let inside = [
        "f/inbox",
        "f/sent",
        "f/draft",
        "f/archive",
        "f/trash",
        "f/spam",
        "search?q=hello",
        "search?q=nothing",
        "compose",
        "scheduled",
        "agent",
        "triage",
        "triage?status=done",
        "triage/new",
        "settings",
        "send-policy",
        "telegram",
    ];
    let outside = [
        "",
        "/keys",
        "/domains",
        "/knowledge",
        "/knowledge?q=hello",
        "/webhooks",
        "/integrations",
        "/events",
        "/sandbox",
        "/usage",
        "/usage?days=90",
        "/reviews",
        "/reviews?state=decided",
        "/send-policy",
        "/send-policy?address=a@remote.test",
        "/members",
        "/settings",
        "/account",
        "/affiliate",
        "/mailboxes/new",
    ];
    let inside = inside.iter().map(|rest| mailbox.at(rest));
    inside.chain(outside.iter().map(|rest| format!("/console{rest}"))).collect()
}

/// rules: CONSOLE-1, CONSOLE-2, CONSOLE-6
#[both_engines]
async fn every_page_is_there_private_and_plain(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    server.receive(&mailbox.address, "From: a@remote.test\r\nSubject: Hello\r\n\r\nHi\r\n").await;
    let paths = paths(&mailbox);
    for path in &paths {
        let answer = ada.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let policy = answer.header("content-security-policy");
        for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        assert_eq!(answer.header("x-frame-options"), "DENY", "{path}");
        assert_plain(path, &answer.text());
    }
    for path in [
        "/console/login",
        "/console/sign-up",
        "/console/invite",
        "/console/forgot",
        "/console/reset",
        "/console/verify",
    ] {
        let answer = server.anonymous().get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        assert_plain(path, &answer.text());
    }
}

/// rules: CONSOLE-2
#[both_engines]
async fn files_are_kept_by_browsers_and_named_by_their_content(engine: Engine) {
    let server = Server::start(engine).await;
    let page = server.anonymous().get("/console/login").await.text();
    let mut seen = 0;
    for piece in page.split("\"/console/assets/").skip(1) {
        let name = piece.split('"').next().unwrap();
        let answer = server.anonymous().get(&format!("/console/assets/{name}")).await;
        assert_eq!(answer.status, 200, "{name}");
        assert!(answer.header("cache-control").contains("immutable"), "{name}");
        seen += 1;
    }
    assert!(seen >= 4, "{page}");
    assert_eq!(server.anonymous().get("/console/assets/style.css").await.status, 404);
}

/// rules: CONSOLE-1
#[both_engines]
async fn an_unknown_page_is_a_page(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    for answer in [
        ada.get("/console/nope").await,
        ada.get("/console/m/nope/nope/nope/nope").await,
        server.anonymous().get("/console/nope").await,
    ] {
        assert_eq!((answer.status, answer.header("content-type")), (404, "text/html; charset=utf-8"));
        assert!(answer.text().contains("There is no such page."), "{}", answer.text());
    }
}

/// However a page comes, its stream goes on behind the last event before it, and does not tell the whole past again.
/// rules: CONSOLE-8
#[both_engines]
async fn pages_know_the_last_event_before_them(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    ada.mailbox("Support").await;
    let events = format!("/api/v1/workspaces/{}/events", ada.tenant.workspace);
    let last = ada.tenant.key.get(&events).await.ok()["next_after"].as_i64().unwrap();
    assert!(last > 0);
    let after = format!("data-after=\"{last}\"");
    assert!(ada.page("/console/keys").await.contains(&after));
    let made = ada.form("/console/keys", &[("name", "New"), ("role", "member")]).await;
    assert!(made.status == 200 && made.text().contains(&after), "{}", made.text());
}

/// rules: METER-13
#[both_engines]
async fn pages_cost_nothing(engine: Engine) {
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    let path = format!("/api/v1/workspaces/{}/usage/credits", ada.tenant.workspace);
    let before = ada.tenant.key.get(&path).await.ok()["used"].as_i64().unwrap();
    for _ in 0..5 {
        ada.page(&mailbox.at("f/inbox")).await;
    }
    ada.form("/console/settings", &[("name", "Engines"), ("timezone", "Europe/Berlin")]).await;
    let after = ada.tenant.key.get(&path).await.ok()["used"].as_i64().unwrap();
    assert_eq!(after, before + 1, "only the reading of the figure itself");
    assert!(ada.page("/console/settings").await.contains("Engines"));
}

/// Who runs the server says how much a page shows, and how many pages an address may ask for.
/// rules: CONSOLE-17
#[both_engines]
async fn the_limits_of_pages_are_settings(engine: Engine) {
    let mut options = ServerOptions::default();
    options.web.console = web::ConsoleLimits {
        pages_per_minute: 12,
        conversations_per_page: 2,
        rows_per_page: 1,
        newest_shown: 3,
        undo_send_seconds: 0,
    };
    let server = Server::with(engine, options).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    for number in 1..=5 {
        server.clock.advance(1);
        let raw = format!("From: a@remote.test\r\nSubject: Topic{number}\r\n\r\nwords\r\n");
        server.receive(&mailbox.address, raw).await;
    }
    let shown = |page: &str| (1..=5).filter(|number| page.contains(&format!("Topic{number}"))).count();
    for rest in ["f/inbox", "search?q=words"] {
        let page = ada.page(&mailbox.at(rest)).await;
        assert_eq!(shown(&page), 2, "{rest}: {page}");
        assert!(page.contains("cursor="), "{rest}: there is a next page");
    }
    let page = ada.page("/console/events").await;
    assert_eq!(page.matches(">message.received<").count(), 3, "{page}");
    for (name, text) in [("One", "first"), ("Two", "second")] {
        let document = serde_json::json!({ "name": name, "type": "text", "text": text });
        ada.tenant.key.post("/api/v1/rag/documents", document).await.ok();
    }
    let page = ada.page("/console/knowledge").await;
    assert_eq!(["One", "Two"].iter().filter(|name| page.contains(&format!(">{name}<"))).count(), 1, "{page}");
    let mut asked = 0;
    let refused = loop {
        let answer = ada.get("/console/settings").await;
        if answer.status != 200 {
            break answer;
        }
        asked += 1;
    };
    assert!(asked < 12, "{asked}");
    assert_eq!(refused.status, 429);
    server.clock.advance(60);
    ada.page("/console/settings").await;
}
