//! Custom domains: claiming, proving, losing and deleting them, against a name server of the test.

use std::fmt::Write as _;

use model::{Limit, Plan, Role};
use serde_json::{Value, json};
use testkit::{Caller, Engine, NameServer, Server, ServerOptions, Tenant, both_engines};

use super::help::{assert_refuses_fields, keys};

pub(super) const EXISTS: &str = r#"{"error":"This domain is already in use.","code":"domain_exists"}"#;

/// A server that asks a name server of the test's own.
pub(super) async fn with_names(engine: Engine) -> (Server, NameServer) {
    let names = NameServer::start("").await;
    let options = ServerOptions { dns_servers: vec![names.address()], ..ServerOptions::default() };
    (Server::with(engine, options).await, names)
}

pub(super) fn all(tenant: &Tenant) -> String {
    format!("/api/v1/workspaces/{}/email-domains", tenant.workspace)
}

pub(super) async fn add(tenant: &Tenant, domain: &str) -> Value {
    tenant.key.post(&all(tenant), json!({ "domain": domain })).await.ok()
}

pub(super) async fn verify(tenant: &Tenant, domain: &Value) -> Value {
    let path = format!("{}/{}/verify", all(tenant), domain["id"].as_str().unwrap());
    tenant.key.send(http::Method::POST, &path, None).await.ok()
}

pub(super) async fn delete(tenant: &Tenant, domain: &Value) -> testkit::Answer {
    tenant.key.delete(&format!("{}/{}", all(tenant), domain["id"].as_str().unwrap())).await
}

/// The lines of a zone that publishes the records of a domain, those of some purposes left out.
pub(super) fn zone(domain: &Value, without: &[&str]) -> String {
    let mut lines = String::new();
    for record in domain["dns_records"].as_array().unwrap() {
        if without.contains(&record["purpose"].as_str().unwrap()) {
            continue;
        }
        let text = |name: &str| record[name].as_str().unwrap();
        let priority = record["priority"].as_u64().map(|priority| format!("{priority} ")).unwrap_or_default();
        let _ = writeln!(lines, "{} {} {priority}{}", text("name"), text("type"), text("value"));
    }
    lines
}

fn statuses(domain: &Value) -> Vec<(&str, &str)> {
    let records = domain["dns_records"].as_array().unwrap().iter();
    records.map(|record| (record["purpose"].as_str().unwrap(), record["status"].as_str().unwrap())).collect()
}

// rules: DOMAIN-2, DOMAIN-3
#[both_engines]
async fn a_new_domain_comes_with_the_records_to_publish(engine: Engine) {
    let (server, _names) = with_names(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    let made = tenant.key.post(&all(&tenant), json!({ "domain": "Example.COM." })).await;
    assert_eq!((made.status, made.header("x-credits-charged")), (201, "10"));
    let domain = made.json();
    assert_eq!(
        keys(&domain),
        [
            "id",
            "workspace_id",
            "domain",
            "provider",
            "status",
            "provider_domain_id",
            "region",
            "dns_records",
            "last_error",
            "verified_at",
            "created_at",
            "updated_at"
        ]
    );
    assert_eq!((&domain["domain"], &domain["status"]), (&json!("example.com"), &json!("pending")));
    let records = domain["dns_records"].as_array().unwrap();
    let shown: Vec<_> = records
        .iter()
        .map(|record| {
            let text = |name: &str| record[name].as_str().unwrap();
            (text("purpose"), text("type"), text("name"), record["required"] == true, text("status"))
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("ownership", "TXT", "_agent-mailbox.example.com", true, "pending"),
            ("mx", "MX", "example.com", true, "pending"),
            ("spf", "TXT", "example.com", true, "pending"),
            ("dkim", "TXT", "agentmailbox-rsa1._domainkey.example.com", true, "pending"),
            ("dkim", "TXT", "agentmailbox-ed1._domainkey.example.com", false, "pending"),
            ("dmarc", "TXT", "_dmarc.example.com", false, "pending"),
        ]
    );
    assert_eq!((&records[1]["value"], &records[1]["priority"]), (&json!("mx.agents.test"), &json!(10)));
    assert_eq!(records[2]["value"], "v=spf1 a:mx.agents.test ~all");
    assert!(records[3]["value"].as_str().unwrap().starts_with("v=DKIM1; k=rsa; p=MIIB"));
    assert!(records[4]["value"].as_str().unwrap().starts_with("v=DKIM1; k=ed25519; p="));
    assert_eq!(tenant.key.get(&all(&tenant)).await.ok(), json!([domain]));
    // Private halves are sealed, open only with the workspace's key, and belong to what is published.
    private_halves_are_sealed(&server, &tenant, &domain).await;
    let other = add(&tenant, "example.org").await;
    assert_ne!(other["dns_records"][3]["value"], records[3]["value"]);
    assert_ne!(other["dns_records"][0]["value"], records[0]["value"]);
}

async fn private_halves_are_sealed(server: &Server, tenant: &Tenant, domain: &Value) {
    let id = model::DomainId::from(domain["id"].as_str().unwrap());
    let stored = server.app.db().read(&tenant.workspace, async move |tx| store::domains::keys(tx, &id).await);
    let stored = stored.await.unwrap();
    let key = server.app.data_key(&tenant.workspace).await.unwrap();
    assert_eq!(stored.len(), 2);
    for (one, shown) in stored.iter().zip([3, 4]) {
        let opened = key.open("dkim key", &one.private).unwrap();
        assert!(!one.private.windows(16).any(|window| opened.windows(16).any(|plain| plain == window)));
        let algorithm =
            if one.algorithm == "rsa" { mail::sign::Algorithm::Rsa } else { mail::sign::Algorithm::Ed25519 };
        let pair = mail::sign::Key::from_private(algorithm, &opened).unwrap();
        assert_eq!(pair.record(), domain["dns_records"][shown]["value"].as_str().unwrap());
    }
}

// rules: DOMAIN-4
#[both_engines]
async fn a_domain_is_verified_by_what_dns_says_now(engine: Engine) {
    let (server, names) = with_names(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    let domain = add(&tenant, "example.com").await;
    let looked = verify(&tenant, &domain).await;
    assert_eq!(looked["status"], "pending");
    assert!(statuses(&looked).iter().all(|(_, status)| *status == "missing"), "{looked}");
    let fault = looked["last_error"].as_str().unwrap();
    assert!(fault.contains("MX example.com is missing") && !fault.contains("_dmarc"), "{fault}");

    // Without the proof of ownership, or with somebody else's, everything else proves nothing.
    names.set(&format!(
        "{}_agent-mailbox.example.com TXT agent-mailbox-verification=x\n",
        zone(&domain, &["ownership"])
    ));
    let looked = verify(&tenant, &domain).await;
    assert_eq!((&looked["status"], statuses(&looked)[0]), (&json!("pending"), ("ownership", "mismatch")));

    // A name server that was asked a moment ago is asked again: nothing is remembered.
    names.set(&zone(&domain, &["dmarc"]));
    server.clock.advance(60);
    let looked = verify(&tenant, &domain).await;
    assert_eq!(looked["status"], "verified", "{looked}");
    assert_eq!(statuses(&looked)[5], ("dmarc", "missing"));
    assert!(statuses(&looked)[..5].iter().all(|(_, status)| *status == "verified"));
    assert_eq!(
        (&looked["verified_at"], &looked["last_error"]),
        (&json!("2026-07-14T09:01:00.000Z"), &Value::Null)
    );
    assert_eq!(tenant.key.get(&all(&tenant)).await.ok(), json!([looked]));
    let keys = server
        .app
        .db()
        .read(&tenant.workspace, async |tx| store::domains::signing_keys(tx, "example.com").await);
    assert_eq!(
        keys.await.unwrap().iter().map(|key| key.algorithm.as_str()).collect::<Vec<_>>(),
        ["rsa", "ed25519"]
    );

    // One event for one change, however often it is looked at.
    verify(&tenant, &domain).await;
    let events = tenant.key.get(&format!("/api/v1/workspaces/{}/events", tenant.workspace)).await.ok();
    let events = events["events"].as_array().unwrap();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["type"], "domain.verified");
    assert_eq!(events[0]["data"], json!({ "domain_id": domain["id"], "domain": "example.com" }));

    // Name servers that fail take nothing away.
    names.set("example.com SERVFAIL\n_agent-mailbox.example.com SERVFAIL");
    let looked = verify(&tenant, &domain).await;
    assert_eq!(looked["status"], "verified");
    // A person who asks is told what is there, and keys that are not published sign nothing.
    names.set("");
    let looked = verify(&tenant, &domain).await;
    assert_eq!((&looked["status"], &looked["verified_at"]), (&json!("failed"), &Value::Null));
    let keys = server
        .app
        .db()
        .read(&tenant.workspace, async |tx| store::domains::signing_keys(tx, "example.com").await);
    assert!(keys.await.unwrap().is_empty());
}

// rules: DOMAIN-4, DOMAIN-11
#[both_engines]
async fn domains_are_looked_at_without_being_asked(engine: Engine) {
    let (server, names) = with_names(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    let domain = add(&tenant, "example.com").await;
    let look = async || operations::domains::check_due(&server.app).await.unwrap();
    let status = async || tenant.key.get(&all(&tenant)).await.ok()[0]["status"].clone();
    assert_eq!(look().await, 0, "not at once");
    server.clock.advance(61);
    assert_eq!((look().await, look().await), (1, 0));
    assert_eq!(status().await, "pending");
    names.set(&zone(&domain, &[]));
    server.clock.advance(3600);
    assert_eq!(look().await, 1);
    assert_eq!(status().await, "verified");
    // Two nodes do not look at the same domain.
    server.clock.advance(6 * 3600);
    let options = ServerOptions { dns_servers: vec![names.address()], seed: 2, ..ServerOptions::default() };
    let other = server.another_node(options).await;
    let (here, there) =
        tokio::join!(look(), async { operations::domains::check_due(&other.app).await.unwrap() });
    assert_eq!(here + there, 1);
    // Mistakes in DNS are mended: the domain is lost after three days only.
    names.set("");
    for _ in 0..71 {
        server.clock.advance(6 * 3600);
        look().await;
        if status().await != "verified" {
            break;
        }
        assert!(server.clock.now() < "2026-07-18T09:00:00Z".parse().unwrap());
    }
    assert_eq!(status().await, "failed");
    assert!(server.clock.now() > "2026-07-17T15:00:00Z".parse().unwrap());
}

// rules: DOMAIN-1, DOMAIN-6
#[both_engines]
async fn plans_and_roles_gate_domains(engine: Engine) {
    let mut options = ServerOptions::default();
    options.plans.developer.domains = Limit::of(2);
    options.plans.free.api_keys = Limit::UNLIMITED;
    let server = Server::with(engine, options).await;
    let free = server.tenant(Plan::Free).await;
    let member = server.key(&server.new_key(&free.workspace, Role::Member).await.key);
    for key in [&free.key, &member] {
        for (method, path, body) in every_operation(&free) {
            key.send(method, &path, body).await.expect(403, "plan_required");
        }
    }
    let tenant = server.tenant(Plan::Developer).await;
    let member = server.key(&server.new_key(&tenant.workspace, Role::Member).await.key);
    for (method, path, body) in every_operation(&tenant) {
        let answer = member.send(method.clone(), &path, body).await;
        if method == http::Method::GET {
            answer.ok()
        } else {
            answer.expect(403, "role_required").json()
        };
    }
    add(&tenant, "one.example.com").await;
    let two = add(&tenant, "two.example.com").await;
    let third = json!({ "domain": "three.example.com" });
    let refused = tenant.key.post(&all(&tenant), third.clone()).await;
    refused.expect(403, "quota_exceeded");
    assert_eq!(refused.json()["error"], "The workspace reached its plan's limit of 2 domains.");
    delete(&tenant, &two).await.ok();
    tenant.key.post(&all(&tenant), third).await.ok();
}

fn every_operation(tenant: &Tenant) -> Vec<(http::Method, String, Option<Value>)> {
    let all = all(tenant);
    vec![
        (http::Method::GET, all.clone(), None),
        (http::Method::POST, all.clone(), Some(json!({ "domain": "example.com" }))),
        (http::Method::POST, format!("{all}/dom_none/verify"), None),
        (http::Method::DELETE, format!("{all}/dom_none"), None),
    ]
}

// rules: DOMAIN-5
#[both_engines]
async fn a_proven_domain_belongs_to_one_workspace_in_any_spelling(engine: Engine) {
    let (server, names) = with_names(engine).await;
    let (one, two) = (server.tenant(Plan::Developer).await, server.tenant(Plan::Developer).await);
    let domain = add(&one, "bücher.example").await;
    names.set(&zone(&domain, &[]));
    assert_eq!(verify(&one, &domain).await["status"], "verified");
    for spelling in [
        "bücher.example",
        "BÜCHER.Example.",
        "xn--bcher-kva.example",
        "bu\u{308}cher.example",
        "bücher。example",
    ] {
        for tenant in [&one, &two] {
            let answer = tenant.key.post(&all(tenant), json!({ "domain": spelling })).await;
            assert_eq!((answer.status, answer.text()), (409, EXISTS.to_owned()), "{spelling}");
        }
    }
    add(&two, "other.bücher.example").await;
    for refused in [
        "agents.test",
        "AGENTS.test.",
        "sub.agents.test",
        "a.b.Second.Test",
        "ａｇｅｎｔｓ.test",
        "localhost",
        "com",
        "",
        " ",
        "127.0.0.1",
        "[127.0.0.1]",
        "example..com",
        "-example.com",
        "exa mple.com",
        "user@example.com",
        "https://example.com",
        "*.example.com",
        "_dmarc.example.com",
    ] {
        let answer = one.key.post(&all(&one), json!({ "domain": refused })).await;
        assert_refuses_fields(&answer, &["domain"]);
    }
    add(&one, "myagents.test").await;
}

// rules: DOMAIN-5
#[both_engines]
async fn of_many_claims_one_in_each_workspace_succeeds(engine: Engine) {
    let server = Server::start(engine).await;
    let tenants = [server.tenant(Plan::Developer).await, server.tenant(Plan::Developer).await];
    let claim = |key: Caller, path: String| async move {
        key.post(&path, json!({ "domain": "wanted.example" })).await.status
    };
    let claims = (0..4).map(|n| {
        let tenant = &tenants[n % 2];
        tokio::spawn(claim(tenant.key.clone(), all(tenant)))
    });
    let mut answers = Vec::new();
    for claim in claims.collect::<Vec<_>>() {
        answers.push(claim.await.unwrap());
    }
    answers.sort_unstable();
    assert_eq!(answers, [201, 201, 409, 409]);
}

// rules: DOMAIN-8, DOMAIN-9
#[both_engines]
async fn deleting_needs_a_domain_without_mailboxes(engine: Engine) {
    let (server, _names) = with_names(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    let domain = add(&tenant, "example.com").await;
    let mailbox = json!({ "name": "Info", "email": "info@example.com" });
    let mailbox = tenant.key.post("/api/v1/mailboxes", mailbox).await.ok();
    let refused = delete(&tenant, &domain).await;
    let text = r#"{"error":"Remove mailboxes from this domain before deleting it.","code":"domain_in_use"}"#;
    assert_eq!((refused.status, refused.text()), (409, text.to_owned()));
    assert_eq!(tenant.key.get(&all(&tenant)).await.ok(), json!([domain]));
    tenant.key.delete(&super::help::path_of(&mailbox)).await.ok();
    let gone = delete(&tenant, &domain).await;
    assert_eq!((gone.status, gone.json()), (200, json!({ "status": "deleted" })));
    assert_eq!(gone.header("x-credits-charged"), "2");
    assert_eq!(tenant.key.get(&all(&tenant)).await.ok(), json!([]));
    let again = delete(&tenant, &domain).await;
    super::help::assert_missing(&again, "Email domain");
}
