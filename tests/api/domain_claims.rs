//! Several workspaces that claim one domain: the first proof wins, and what becomes of the others.

use model::{MailboxId, Plan, WorkspaceId};
use serde_json::{Value, json};
use testkit::{Engine, NameServer, Server, ServerOptions, Tenant, both_engines};

use super::{
    domains::{EXISTS, add, all, delete, verify, with_names, zone},
    help::path_of,
};

const MAIL: &str = "From: a@remote.test\r\nSubject: Hello\r\n\r\nHello\r\n";
const LOST: &str = "Another workspace has this domain now.";

async fn make(tenant: &Tenant, email: &str) -> testkit::Answer {
    tenant.key.post("/api/v1/mailboxes", json!({ "name": "Box", "email": email })).await
}

async fn mails_in(tenant: &Tenant, mailbox: &Value) -> Value {
    tenant.key.get(&format!("{}/emails", path_of(mailbox))).await.ok()["totalCount"].clone()
}

async fn only_domain(tenant: &Tenant) -> Value {
    tenant.key.get(&all(tenant)).await.ok()[0].clone()
}

async fn refused_at_rcpt(server: &Server, to: &str) -> (u16, &'static str) {
    let refused = server.try_receive(Some("a@remote.test"), to, MAIL).await.unwrap_err();
    (refused.code, refused.enhanced)
}

/// A mailbox as those who lost its domain see it.
async fn assert_lost(tenant: &Tenant, domain: &Value, mailbox: &Value, since: &str) {
    let shown = only_domain(tenant).await;
    assert_eq!((&shown["id"], &shown["status"]), (&domain["id"], &json!("failed")));
    assert_eq!((&shown["last_error"], &shown["verified_at"]), (&json!(LOST), &Value::Null));
    let shown = tenant.key.get(&path_of(mailbox)).await.ok();
    assert_eq!((&shown["can_receive"], &shown["receiving_status"]), (&json!(false), &json!("disabled")));
    assert_eq!((&shown["disabled_reason"], &shown["disabled_at"]), (&json!("domain_claimed"), &json!(since)));
    assert_eq!(tenant.key.get("/api/v1/mailboxes").await.ok()[0]["disabled_reason"], "domain_claimed");
}

/// Puts a message into a mailbox that takes none from outside.
async fn import(server: &Server, mailbox: &Value) {
    let target = operations::admin::find_mailbox(&server.app, mailbox["id"].as_str().unwrap()).await.unwrap();
    operations::admin::import_message(&server.app, target, MAIL.into()).await.unwrap();
}

// rules: DOMAIN-5, DOMAIN-10, DOMAIN-12, DOMAIN-13
#[both_engines]
async fn a_claim_without_proof_blocks_nobody(engine: Engine) {
    let (server, names) = with_names(engine).await;
    let (squatter, owner) = (server.tenant(Plan::Developer).await, server.tenant(Plan::Developer).await);
    let claimed = add(&squatter, "example.com").await;
    let taken = make(&squatter, "info@example.com").await.ok();
    import(&server, &taken).await;
    // The owner claims it too, with a proof and keys of its own, and the same addresses.
    let domain = add(&owner, "Example.com").await;
    for record in [0, 3, 4] {
        assert_ne!(domain["dns_records"][record]["value"], claimed["dns_records"][record]["value"]);
    }
    let mailbox = make(&owner, "info@example.com").await.ok();
    make(&owner, "info@example.com").await.expect(409, "mailbox_exists");
    for (tenant, own) in [(&squatter, &taken), (&owner, &mailbox)] {
        let found = tenant.key.get("/api/v1/mailboxes/info@example.com").await.ok();
        assert_eq!((&found["id"], &found["receiving_status"]), (&own["id"], &json!("unavailable")));
    }
    assert_eq!(refused_at_rcpt(&server, "info@example.com").await, (550, "5.7.1"));

    names.set(&zone(&domain, &[]));
    assert_eq!(verify(&squatter, &claimed).await["status"], "pending", "that is not its proof");
    server.clock.advance(60);
    assert_eq!(verify(&owner, &domain).await["status"], "verified");
    let at = "2026-07-14T09:01:00.000Z";
    assert_lost(&squatter, &claimed, &taken, at).await;
    assert_eq!(mails_in(&squatter, &taken).await, 1, "its mail stays");
    server.receive("info@example.com", MAIL).await;
    assert_eq!((mails_in(&owner, &mailbox).await, mails_in(&squatter, &taken).await), (json!(1), json!(1)));

    // For good: neither looks nor records that come later change it, and nothing new is made on it.
    names.set(&format!("{}{}", zone(&domain, &["spf"]), zone(&claimed, &["mx"])));
    assert_eq!(verify(&squatter, &claimed).await["status"], "failed");
    server.clock.advance(2 * 86_400);
    operations::domains::check_due(&server.app).await.unwrap();
    assert_lost(&squatter, &claimed, &taken, at).await;
    assert_eq!(only_domain(&owner).await["status"], "verified");
    make(&squatter, "other@example.com").await.expect(400, "validation_failed");
    let send = json!({ "to": "a@remote.test", "subject": "S", "text": "T" });
    let sent = squatter.key.post(&format!("{}/emails", path_of(&taken)), send).await;
    sent.expect(403, "sender_not_allowed");
    let again = async || {
        let answer = squatter.key.post(&all(&squatter), json!({ "domain": "example.com" })).await;
        assert_eq!((answer.status, answer.text()), (409, EXISTS.to_owned()));
    };
    again().await;
    delete(&squatter, &claimed).await.expect(409, "domain_in_use");
    squatter.key.delete(&path_of(&taken)).await.ok();
    delete(&squatter, &claimed).await.ok();
    again().await;
    server.receive("info@example.com", MAIL).await;
    assert_eq!(mails_in(&owner, &mailbox).await, 2);
}

// rules: DOMAIN-10, DOMAIN-11, DOMAIN-12, DOMAIN-13
#[both_engines]
async fn a_lost_proof_is_open_to_the_next(engine: Engine) {
    let (server, names) = with_names(engine).await;
    let (one, two) = (server.tenant(Plan::Developer).await, server.tenant(Plan::Developer).await);
    let first = add(&one, "example.com").await;
    let old = make(&one, "info@example.com").await.ok();
    names.set(&zone(&first, &[]));
    verify(&one, &first).await;
    server.receive("info@example.com", MAIL).await;
    two.key.post(&all(&two), json!({ "domain": "example.com" })).await.expect(409, "domain_exists");
    // Without its records it is nobody's, and its first owner may prove it again.
    names.set("");
    assert_eq!(verify(&one, &first).await["status"], "failed");
    assert_eq!(refused_at_rcpt(&server, "info@example.com").await, (550, "5.7.1"));
    let second = add(&two, "example.com").await;
    let new = make(&two, "info@example.com").await.ok();
    assert_eq!(one.key.get(&path_of(&old)).await.ok()["receiving_status"], "unavailable");
    names.set(&zone(&first, &[]));
    assert_eq!(verify(&one, &first).await["status"], "verified");
    server.receive("info@example.com", MAIL).await;
    assert_eq!((mails_in(&one, &old).await, mails_in(&two, &new).await), (json!(2), json!(0)));
    assert_lost(&two, &second, &new, "2026-07-14T09:00:00.000Z").await;

    // Whoever lost begins again: with another proof than before.
    two.key.delete(&path_of(&new)).await.ok();
    delete(&two, &second).await.ok();
    names.set("");
    verify(&one, &first).await;
    let third = add(&two, "example.com").await;
    assert_ne!(third["dns_records"][0]["value"], second["dns_records"][0]["value"]);
    let new = make(&two, "info@example.com").await.ok();
    names.set(&zone(&second, &[]));
    assert_eq!(verify(&two, &third).await["status"], "pending", "the old proof is worth nothing");
    names.set(&zone(&third, &[]));
    assert_eq!(verify(&two, &third).await["status"], "verified");
    assert_lost(&one, &first, &old, "2026-07-14T09:00:00.000Z").await;
    server.receive("info@example.com", MAIL).await;
    assert_eq!((mails_in(&one, &old).await, mails_in(&two, &new).await), (json!(2), json!(1)));
    // A domain that its owner deletes is free for new claims; those that ended stay so.
    two.key.delete(&path_of(&new)).await.ok();
    delete(&two, &third).await.ok();
    names.set(&zone(&first, &[]));
    assert_eq!(verify(&one, &first).await["status"], "failed");
    let three = server.tenant(Plan::Developer).await;
    let fourth = add(&three, "example.com").await;
    names.set(&zone(&fourth, &[]));
    assert_eq!(verify(&three, &fourth).await["status"], "verified");
}

// rules: DOMAIN-12
#[both_engines(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_proofs_at_once_exactly_one_wins(engine: Engine) {
    let (server, names) = with_names(engine).await;
    let other = server.another_node(node(&names, 2)).await;
    let mut tenants = Vec::new();
    // More keys than these would not fit into an answer of the name server.
    for _ in 0..2 {
        tenants.push(server.tenant(Plan::Developer).await);
    }
    for round in 0..5 {
        let name = format!("round{round}.example.com");
        let mut published = String::new();
        let mut claims = Vec::new();
        for (n, tenant) in tenants.iter().enumerate() {
            let domain = add(tenant, &name).await;
            make(tenant, &format!("info@{name}")).await.ok();
            // All say the same about MX and SPF; two policies for SPF would be none.
            let without: &[&str] = if n == 0 { &[] } else { &["mx", "spf", "dmarc"] };
            published.push_str(&zone(&domain, without));
            claims.push(domain);
        }
        names.set(&published);
        let mut verifying = tokio::task::JoinSet::new();
        server.clock.advance(61);
        for (tenant, domain) in tenants.iter().zip(&claims) {
            let key = tenant.key.clone();
            let path = format!("{}/{}/verify", all(tenant), domain["id"].as_str().unwrap());
            verifying
                .spawn(async move { key.send(http::Method::POST, &path, None).await.ok()["status"].clone() });
        }
        // Another node looks at the same domains by itself.
        let (mut answers, _) = tokio::join!(verifying.join_all(), operations::domains::check_due(&other.app));
        answers.sort_by_key(ToString::to_string);
        assert_eq!(answers, ["failed", "verified"], "{name}");
        assert_eq!(proven(&server, &name).await.len(), 1);
        server.receive(&format!("info@{name}"), MAIL).await;
    }
}

fn node(names: &NameServer, seed: u64) -> ServerOptions {
    ServerOptions { dns_servers: vec![names.address()], seed, ..ServerOptions::default() }
}

async fn proven(server: &Server, domain: &str) -> Vec<WorkspaceId> {
    let (sql, domain) = (
        "SELECT owner_workspace FROM domain_claim WHERE domain = $1 AND proven_at IS NOT NULL",
        domain.to_owned(),
    );
    let read =
        server.app.db().system_read(async move |tx| tx.all::<(WorkspaceId,)>(sql, &[(&domain).into()]).await);
    read.await.unwrap().into_iter().map(|(owner,)| owner).collect()
}

/// The store itself has no room for two owners.
// rules: DOMAIN-12
#[both_engines]
async fn a_domain_cannot_have_two_owners(engine: Engine) {
    let (server, _names) = with_names(engine).await;
    let (one, two) = (server.tenant(Plan::Developer).await, server.tenant(Plan::Developer).await);
    add(&one, "example.com").await;
    add(&two, "example.com").await;
    let now = server.clock.now();
    let prove = async |tenant: &Tenant| {
        let sql = "UPDATE domain_claim SET proven_at = $2 WHERE owner_workspace = $1";
        server.app.db().write(&tenant.workspace, async move |tx| tx.run(sql, &[now.into()]).await).await
    };
    assert_eq!(prove(&one).await.unwrap(), 1);
    assert!(prove(&two).await.is_err());
    assert_eq!(proven(&server, "example.com").await, std::slice::from_ref(&one.workspace));
    // A claim that came in the moment of the proof ends when it is looked at.
    let domain = only_domain(&two).await;
    assert_eq!(verify(&two, &domain).await["last_error"], LOST);
}

/// A domain that a workspace has proven stays its own, should the operator make it a hosted one.
// rules: DOMAIN-12
#[both_engines]
async fn nobody_gets_an_address_on_what_another_has_proven(engine: Engine) {
    let (server, names) = with_names(engine).await;
    let (one, two) = (server.tenant(Plan::Developer).await, server.tenant(Plan::Developer).await);
    let domain = add(&one, "example.com").await;
    let claim = async |tenant: &Tenant, address: &'static str| {
        let id = MailboxId::from("mbx_1");
        let write = server
            .app
            .db()
            .write(&tenant.workspace, async move |tx| store::addresses::claim(tx, address, &id).await);
        write.await.unwrap()
    };
    assert!(claim(&two, "early@example.com").await);
    names.set(&zone(&domain, &[]));
    verify(&one, &domain).await;
    assert!(!claim(&two, "late@example.com").await);
    assert!(claim(&one, "late@example.com").await);
    // Whatever was there before: the proven owner's mailbox is the one that is reached.
    let mailbox = make(&one, "early@example.com").await.ok();
    server.receive("early@example.com", MAIL).await;
    assert_eq!(mails_in(&one, &mailbox).await, 1);
}

/// By its address an operator finds only the mailbox that the address is proven for, or the only one there is.
// rules: DOMAIN-12
#[both_engines]
async fn an_import_never_guesses_whose_address_it_is(engine: Engine) {
    let (server, names) = with_names(engine).await;
    let (one, two) = (server.tenant(Plan::Developer).await, server.tenant(Plan::Developer).await);
    let domain = add(&one, "example.com").await;
    let mailbox = make(&one, "info@example.com").await.ok();
    let import = async || {
        let target = operations::admin::find_mailbox(&server.app, "info@example.com").await?;
        operations::admin::import_message(&server.app, target, MAIL.into()).await
    };
    import().await.unwrap();
    add(&two, "example.com").await;
    let other = make(&two, "info@example.com").await.ok();
    let refused = import().await.unwrap_err();
    assert_eq!(refused.kind(), operations::ErrorKind::ValidationFailed, "{refused}");
    names.set(&zone(&domain, &[]));
    verify(&one, &domain).await;
    import().await.unwrap();
    assert_eq!((mails_in(&one, &mailbox).await, mails_in(&two, &other).await), (json!(2), json!(0)));
}
