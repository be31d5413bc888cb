//! Mailboxes on custom domains: made before the proof, reached after it, and never inherited.

use model::Plan;
use serde_json::{Value, json};
use testkit::{Engine, Server, Tenant, both_engines};

use super::{
    domains::{add, delete, verify, with_names, zone},
    help::{assert_refused, path_of},
};

const MAIL: &str = "From: a@remote.test\r\nSubject: Hello\r\n\r\nHello\r\n";

async fn make(tenant: &Tenant, email: &str) -> testkit::Answer {
    tenant.key.post("/api/v1/mailboxes", json!({ "name": "Box", "email": email })).await
}

async fn code_at_rcpt(server: &Server, to: &str) -> (u16, &'static str) {
    let refused = server.try_receive(Some("a@remote.test"), to, MAIL).await.unwrap_err();
    (refused.code, refused.enhanced)
}

// rules: DOMAIN-7, SEND-34
#[both_engines]
async fn a_mailbox_waits_for_its_domain(engine: Engine) {
    let (server, names) = with_names(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    let domain = add(&tenant, "bücher.example").await;
    let mailbox = make(&tenant, "Jo@BÜCHER.example").await.ok();
    assert_eq!(mailbox["email"], "jo@xn--bcher-kva.example");
    assert_eq!(mailbox["email_domain_id"], domain["id"]);
    let state = |mailbox: &Value| (mailbox["can_receive"].clone(), mailbox["receiving_status"].clone());
    assert_eq!(state(&mailbox), (json!(false), json!("unavailable")));
    assert_eq!(code_at_rcpt(&server, "jo@xn--bcher-kva.example").await, (550, "5.7.1"));
    let send = async || {
        let mail = json!({ "to": "jo@xn--bcher-kva.example", "subject": "S", "text": "T" });
        tenant.key.post(&format!("{}/emails", path_of(&mailbox)), mail).await
    };
    send().await.expect(403, "sender_not_allowed");
    names.set(&zone(&domain, &[]));
    verify(&tenant, &domain).await;
    assert_eq!(send().await.status, 202);
    let shown = tenant.key.get(&path_of(&mailbox)).await.ok();
    assert_eq!(state(&shown), (json!(true), json!("ready")));
    let listed = tenant.key.get("/api/v1/mailboxes").await.ok();
    assert_eq!((&listed[0]["can_receive"], &listed[0]["email_domain_id"]), (&json!(true), &domain["id"]));
    server.receive("jo@bücher.example", MAIL).await;
    server.receive("JO+tag@xn--bcher-kva.example.", MAIL).await;
    let emails = tenant.key.get(&format!("{}/emails", path_of(&mailbox))).await.ok();
    assert_eq!(emails["totalCount"], 4, "two from outside, one to itself and its copy");
    // Others on the domain are unknown; the operator is reached on every domain that is served.
    assert_eq!(code_at_rcpt(&server, "nobody@xn--bcher-kva.example").await, (550, "5.1.1"));
    assert_eq!(code_at_rcpt(&server, "nobody@sub.xn--bcher-kva.example").await, (550, "5.7.1"));
    // Once the proof is gone, mail for it is none of our business.
    names.set("");
    verify(&tenant, &domain).await;
    send().await.expect(403, "sender_not_allowed");
    assert_eq!(code_at_rcpt(&server, "jo@xn--bcher-kva.example").await, (550, "5.7.1"));
    assert_eq!(state(&tenant.key.get(&path_of(&mailbox)).await.ok()), (json!(false), json!("unavailable")));
}

// rules: DOMAIN-7, MBX-4
#[both_engines]
async fn addresses_on_domains_of_others_are_refused_alike(engine: Engine) {
    let (server, _names) = with_names(engine).await;
    let (one, two) = (server.tenant(Plan::Developer).await, server.tenant(Plan::Developer).await);
    add(&one, "example.com").await;
    for (email, domain) in [("a@example.com", "example.com"), ("a@nowhere.example", "nowhere.example")] {
        let message = format!("this server serves agents.test, second.test, not {domain}");
        assert_refused(&make(&two, email).await, &[("email", &message)]);
    }
    // Short and reserved names are the owner's to give; tags are not.
    make(&one, "jo@example.com").await.ok();
    make(&one, "admin@example.com").await.ok();
    make(&one, "jo@example.com").await.expect(409, "mailbox_exists");
    make(&one, "jo+tag@example.com").await.expect(400, "validation_failed");
    make(&one, "jo@sub.example.com").await.expect(400, "validation_failed");
}

// rules: DOMAIN-10
#[both_engines]
async fn a_later_owner_inherits_nothing(engine: Engine) {
    let (server, names) = with_names(engine).await;
    let (one, two) = (server.tenant(Plan::Developer).await, server.tenant(Plan::Developer).await);
    let domain = add(&one, "example.com").await;
    names.set(&zone(&domain, &[]));
    verify(&one, &domain).await;
    let mailbox = make(&one, "info@example.com").await.ok();
    server.receive("info@example.com", MAIL).await;
    one.key.delete(&path_of(&mailbox)).await.ok();
    delete(&one, &domain).await.ok();
    assert_eq!(code_at_rcpt(&server, "info@example.com").await, (550, "5.7.1"));
    // The old proof still stands in DNS, and proves nothing for somebody else.
    let taken = add(&two, "example.com").await;
    assert_ne!(taken["dns_records"][0]["value"], domain["dns_records"][0]["value"]);
    assert_eq!(verify(&two, &taken).await["status"], "pending");
    let fresh = make(&two, "info@example.com").await.ok();
    assert_eq!(code_at_rcpt(&server, "info@example.com").await, (550, "5.7.1"));
    names.set(&zone(&taken, &[]));
    assert_eq!(verify(&two, &taken).await["status"], "verified");
    assert_eq!(two.key.get(&format!("{}/emails", path_of(&fresh))).await.ok()["totalCount"], 0);
    server.receive("info@example.com", MAIL).await;
    assert_eq!(two.key.get(&format!("{}/emails", path_of(&fresh))).await.ok()["totalCount"], 1);
    one.key.get(&path_of(&fresh)).await.expect(404, "not_found");
}
