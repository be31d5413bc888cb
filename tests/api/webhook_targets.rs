//! Where webhooks may lead: nowhere near this host, in whichever way it is named.

use std::collections::BTreeSet;

use model::Plan;
use serde_json::{Value, json};
use testkit::{Engine, NameServer, Receiver, Reply, Server, ServerOptions, Tenant, both_engines};

use super::{
    help::assert_refuses_fields,
    webhooks::{all, one},
};

async fn last_delivery(tenant: &Tenant, hook: &Value) -> Value {
    tenant.key.get(&format!("{}/deliveries", one(tenant, hook))).await.ok()["deliveries"][0].clone()
}

async fn try_out(server: &Server, tenant: &Tenant, hook: &Value) -> Value {
    tenant.key.send(http::Method::POST, &format!("{}/test", one(tenant, hook)), None).await.ok();
    operations::webhooks::outbox::run_due(&server.app).await.unwrap();
    last_delivery(tenant, hook).await
}

// rules: HOOK-4
#[both_engines]
async fn private_addresses_are_refused_when_a_webhook_is_made_or_changed(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let body = |url: &str| json!({ "url": url, "event_types": ["mailbox.created"] });
    let hook = tenant.key.post(&all(&tenant), body("https://hooks.example.org/")).await.ok();
    for url in [
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://[::ffff:169.254.169.254]/",
        "http://168.63.129.16/",
        "http://2822734096/",
        "http://[64:ff9b::a83f:8110]/",
        "http://100.100.100.200/",
        "http://[::1]:80/",
        "http://localhost/",
        "http://user:pass@example.org/",
        "https://example.org:8443/",
        "ftp://example.org/",
    ] {
        assert_refuses_fields(&tenant.key.post(&all(&tenant), body(url)).await, &["url"]);
        assert_refuses_fields(&tenant.key.patch(&one(&tenant, &hook), json!({ "url": url })).await, &["url"]);
    }
    assert_eq!(tenant.key.get(&one(&tenant, &hook)).await.ok()["url"], "https://hooks.example.org/");
}

/// Names that lead, alone or among others, to where nobody may be called.
const CLOSED: &str = "plain.example A 127.0.0.1
    mixed.example A 93.184.215.14
    mixed.example A 10.0.0.1
    meta.example A 169.254.169.254
    azure.example A 168.63.129.16
    google.example A 199.36.153.8
    alibaba.example A 100.100.100.200
    oracle.example A 192.0.0.192
    aws.example AAAA fd00:ec2::254
    translated.example AAAA 64:ff9b::a83f:8110
    relayed.example AAAA 2002:a83f:8110::1
    six.example AAAA ::1
    mapped.example AAAA ::ffff:127.0.0.1
    nat.example AAAA 64:ff9b::7f00:1
    half.example A 93.184.215.14
    half.example AAAA fd00::1";

/// A name can lead anywhere, and somewhere else each time: what it leads to is checked when it is called. Should the check
/// ever fail, the client of tests connects to this machine only.
// rules: HOOK-4
#[both_engines]
async fn names_that_lead_to_private_addresses_are_not_called(engine: Engine) {
    let names = NameServer::start(&format!("{CLOSED}\n public.example A 93.184.215.14")).await;
    let options = ServerOptions { dns_servers: vec![names.address()], ..ServerOptions::default() };
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Free).await;
    let hosts: BTreeSet<&str> = CLOSED.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(hosts.len(), 14);
    for host in hosts {
        let body = json!({ "url": format!("http://{host}/"), "event_types": ["mailbox.created"] });
        let hook = tenant.key.post(&all(&tenant), body).await.ok();
        let delivery = try_out(&server, &tenant, &hook).await;
        assert_eq!(delivery["status"], "failed", "{host}: {delivery}");
        let attempt = &delivery["attempts"][0];
        assert_eq!(attempt["error"], "The host does not lead to public addresses only.", "{host}");
        assert_eq!((&attempt["response_status"], &attempt["response_excerpt"]), (&Value::Null, &Value::Null));
    }
    // What may be called, a test does not connect to.
    let body = json!({ "url": "http://public.example/", "event_types": ["mailbox.created"] });
    let hook = tenant.key.post(&all(&tenant), body).await.ok();
    let delivery = try_out(&server, &tenant, &hook).await;
    let error = "There was no answer: This client connects to this machine only..";
    assert_eq!(delivery["attempts"][0]["error"], error);
    // A name that leads nowhere may lead somewhere later.
    let body = json!({ "url": "http://nowhere.example/", "event_types": ["mailbox.created"] });
    let hook = tenant.key.post(&all(&tenant), body).await.ok();
    let delivery = try_out(&server, &tenant, &hook).await;
    assert_eq!(
        (&delivery["status"], &delivery["attempts"][0]["error"]),
        (&json!("pending"), &json!("There was no answer: the host has no address."))
    );
}

/// What the operator allowed once may be forbidden by now.
// rules: HOOK-4
#[tokio::test]
async fn a_webhook_from_freer_times_is_not_called() {
    let receiver = Receiver::start().await;
    let open = ServerOptions { webhooks_allow_private: true, ..ServerOptions::default() };
    let server = Server::with(Engine::Postgres, open).await;
    let tenant = server.tenant(Plan::Free).await;
    let body = json!({ "url": receiver.url(), "event_types": ["mailbox.created"] });
    let hook = tenant.key.post(&all(&tenant), body).await.ok();
    let strict = server.another_node(ServerOptions { seed: 2, ..ServerOptions::default() }).await;
    let delivery = try_out(&strict, &tenant, &hook).await;
    assert_eq!((&delivery["status"], receiver.received().len()), (&json!("failed"), 0));
}

// rules: HOOK-3
#[both_engines]
async fn redirects_are_not_followed_and_answers_are_read_in_part(engine: Engine) {
    let (receiver, secret) = (Receiver::start().await, Receiver::start().await);
    let options = ServerOptions { webhooks_allow_private: true, ..ServerOptions::default() };
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Free).await;
    let body = json!({ "url": receiver.url(), "event_types": ["mailbox.created"] });
    let hook = tenant.key.post(&all(&tenant), body).await.ok();
    receiver.reply(Reply::Redirect(secret.url()));
    let delivery = try_out(&server, &tenant, &hook).await;
    assert_eq!((&delivery["status"], secret.received().len()), (&json!("failed"), 0));
    let attempt = &delivery["attempts"][0];
    assert_eq!(
        (&attempt["response_status"], &attempt["error"]),
        (&json!(307), &json!("Redirects are not followed."))
    );
    receiver.reply(Reply::Endless);
    let delivery = try_out(&server, &tenant, &hook).await;
    assert_eq!(delivery["status"], "delivered");
    assert_eq!(delivery["attempts"][0]["response_excerpt"].as_str().unwrap().len(), 1024);
    receiver.reply(Reply::Status(400, "a\0b\u{1F4A9}".to_owned()));
    let delivery = try_out(&server, &tenant, &hook).await;
    assert_eq!(delivery["attempts"][0]["response_excerpt"], "a\u{fffd}b\u{1F4A9}");
}
