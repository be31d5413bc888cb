//! Signatures on mail that leaves: whose keys, from when on, and how keys take turns.

use model::{Plan, sending::OutboundMode};
use operations::{Outbound, domains::keys, sending::worker};
use serde_json::json;
use testkit::{Engine, Hop, NameServer, Server, ServerOptions, both_engines};

use super::{
    domains::{add, verify, zone},
    mails::Inbox,
    sending::header_lines,
};

async fn start(engine: Engine) -> (Server, NameServer, Hop) {
    let (names, hop) = (NameServer::start("").await, Hop::default());
    let options = ServerOptions {
        dns_servers: vec![names.address()],
        outbound: Outbound::new(OutboundMode::Relay),
        next_hop: Some(hop.clone()),
        ..ServerOptions::default()
    };
    (Server::with(engine, options).await, names, hop)
}

/// A zone with keys: those whose names contain one of the texts.
fn keys_in_zone(keys: &[keys::PublicKey], which: &[&str]) -> String {
    let wanted = keys.iter().filter(|key| which.iter().any(|text| key.name.contains(text)));
    let lines: Vec<String> = wanted.map(|key| format!("{} TXT {}", key.name, key.value)).collect();
    lines.join("\n")
}

/// Sends a mail to another server and tells which selectors signed it, and for which domains.
async fn signers(server: &Server, hop: &Hop, inbox: &Inbox) -> Vec<(String, String)> {
    let key = inbox.key.with("prefer", "respond-async");
    let mail = json!({ "to": "ann@remote.test", "subject": "S", "text": "Hello\n \n" });
    key.post(&format!("{}/emails", inbox.path), mail).await.ok();
    worker::run_due(&server.app).await.unwrap();
    let message = hop.handovers().last().unwrap().message.clone();
    let lines = header_lines(&String::from_utf8_lossy(&message));
    let tag = |line: &str, name: &str| {
        let mut tags = line.split([';', ':']).map(str::trim);
        tags.find_map(|one| one.strip_prefix(&format!("{name}="))).unwrap().to_owned()
    };
    lines
        .iter()
        .filter(|line| line.starts_with("DKIM-Signature:"))
        .map(|line| (tag(line, "s"), tag(line, "d")))
        .collect()
}

fn pairs(found: &[(&str, &str)]) -> Vec<(String, String)> {
    found.iter().map(|(selector, domain)| ((*selector).to_owned(), (*domain).to_owned())).collect()
}

// rules: SEND-27, SEND-31
#[both_engines]
async fn a_domain_of_this_server_signs_once_its_keys_are_in_dns(engine: Engine) {
    let (server, names, hop) = start(engine).await;
    let inbox = Inbox::new(&server).await;
    assert_eq!(signers(&server, &hop, &inbox).await, [], "there are no keys");
    keys::check_all_hosted(&server.app).await.unwrap();
    let made = keys::list(&server.app, "agents.test").await.unwrap();
    assert_eq!(
        made.iter().map(|key| (key.name.as_str(), key.published)).collect::<Vec<_>>(),
        [
            ("agentmailbox-rsa1._domainkey.agents.test", false),
            ("agentmailbox-ed1._domainkey.agents.test", false)
        ]
    );
    assert_eq!(keys::list(&server.app, "agents.test").await.unwrap(), made, "they are made once");
    assert_eq!(signers(&server, &hop, &inbox).await, [], "nobody could check them");
    names.set(&keys_in_zone(&made, &["rsa1"]));
    keys::check_all_hosted(&server.app).await.unwrap();
    assert_eq!(signers(&server, &hop, &inbox).await, pairs(&[("agentmailbox-rsa1", "agents.test")]));

    // The next keys wait until they are seen; then they take over.
    server.clock.advance(60);
    let both = keys::rotate(&server.app, "agents.test", &testkit::operator()).await.unwrap();
    assert_eq!(both.len(), 4);
    assert_eq!(signers(&server, &hop, &inbox).await, pairs(&[("agentmailbox-rsa1", "agents.test")]));
    let refused =
        keys::rotate(&server.app, "agents.test", &testkit::operator()).await.unwrap_err().to_string();
    assert!(refused.contains("publish that key first"), "{refused}");
    names.set(&keys_in_zone(&both, &["rsa1", "rsa2", "ed2"]));
    keys::check_all_hosted(&server.app).await.unwrap();
    let second = pairs(&[("agentmailbox-rsa2", "agents.test"), ("agentmailbox-ed2", "agents.test")]);
    let mut found = signers(&server, &hop, &inbox).await;
    found.sort_by_key(|(selector, _)| !selector.contains("rsa"));
    assert_eq!(found, second);
    // The turn after that takes the first one's place.
    server.clock.advance(60);
    let third = keys::rotate(&server.app, "agents.test", &testkit::operator()).await.unwrap();
    assert_eq!(third.len(), 4);
    let first =
        |keys: &[keys::PublicKey]| keys.iter().find(|key| key.name.contains("rsa1")).cloned().unwrap();
    assert_ne!(first(&third).value, first(&both).value);
    let unknown =
        keys::rotate(&server.app, "elsewhere.test", &testkit::operator()).await.unwrap_err().to_string();
    assert!(unknown.contains("not found"), "{unknown}");
}

// rules: SEND-27, SEND-31
#[both_engines]
async fn a_custom_domain_signs_with_its_own_keys_which_take_turns(engine: Engine) {
    let (server, names, hop) = start(engine).await;
    let tenant = server.tenant(Plan::Developer).await;
    let domain = add(&tenant, "example.org").await;
    let published = zone(&domain, &[]);
    names.set(&published);
    assert_eq!(verify(&tenant, &domain).await["status"], "verified");
    let made = tenant.key.post("/api/v1/mailboxes", json!({ "name": "A", "email": "a@example.org" })).await;
    let inbox = Inbox::made(&tenant.key, &tenant.workspace, &made.ok());
    let selectors = async |server: &Server, hop: &Hop| {
        let mut found: Vec<String> =
            signers(server, hop, &inbox).await.into_iter().map(|(selector, _)| selector).collect();
        found.sort();
        found
    };
    assert_eq!(selectors(&server, &hop).await, ["agentmailbox-ed1", "agentmailbox-rsa1"]);

    server.clock.advance(60);
    let both = keys::rotate(&server.app, "example.org", &testkit::operator()).await.unwrap();
    // A key that is not published yet takes nothing from the domain.
    let looked = verify(&tenant, &domain).await;
    assert_eq!((&looked["status"], &looked["last_error"]), (&json!("verified"), &json!(null)));
    assert_eq!(selectors(&server, &hop).await, ["agentmailbox-ed1", "agentmailbox-rsa1"]);
    let next = keys_in_zone(&both, &["rsa2", "ed2"]);
    names.set(&format!("{published}{next}"));
    verify(&tenant, &domain).await;
    assert_eq!(selectors(&server, &hop).await, ["agentmailbox-ed2", "agentmailbox-rsa2"]);
    // Nor does the old one when it goes.
    names.set(&format!("{}{next}", zone(&domain, &["dkim"])));
    assert_eq!(verify(&tenant, &domain).await["status"], "verified");
    assert_eq!(selectors(&server, &hop).await, ["agentmailbox-ed2", "agentmailbox-rsa2"]);
    names.set(&zone(&domain, &["dkim"]));
    verify(&tenant, &domain).await;
    assert_eq!(verify(&tenant, &domain).await["status"], "failed", "one of them has to be there");
}
