//! Webhooks of the real program: told by its own worker, also after a crash, and understood by somebody else's library.

use std::process::Command;

use serde_json::{Value, json};
use testkit::{ReceivedRequest, Receiver, Reply};

use super::{Home, Server, text};

/// A server whose webhooks may lead to this host, and a key.
fn start(home: Home) -> (Home, Server, String, String) {
    let home = home.with("WEBHOOKS__ALLOW_PRIVATE", "true");
    let workspace = home.create_account("owner@people.test", "developer");
    let (_, key) = home.create_key(&workspace, &[]);
    let server = home.serve();
    (home, server, workspace, key)
}

fn new_hook(server: &Server, workspace: &str, key: &str, receiver: &Receiver) -> Value {
    let body = json!({ "url": receiver.url(), "event_types": ["mailbox.created"] });
    let made = server.call(key, "POST", &format!("/api/v1/workspaces/{workspace}/webhooks"), &body);
    assert_eq!(made.status, 201, "{}", made.body);
    made.json()
}

fn new_mailbox(server: &Server, key: &str) {
    assert_eq!(server.call(key, "POST", "/api/v1/mailboxes", &json!({ "name": "Inbox" })).status, 201);
}

// rules: HOOK-7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_reach_webhooks_also_after_a_crash() {
    let receiver = Receiver::start().await;
    let (home, server, workspace, key) = start(Home::sqlite());
    new_hook(&server, &workspace, &key, &receiver);
    new_mailbox(&server, &key);
    receiver.wait_for(1).await;
    receiver.reply(Reply::Hang);
    new_mailbox(&server, &key);
    receiver.wait_for(2).await;
    server.signal("KILL");
    drop(server);
    receiver.reply(Reply::Status(200, String::new()));
    let _server = home.serve();
    let received = receiver.wait_for(3).await;
    assert_eq!(received[1].header("webhook-id"), received[2].header("webhook-id"));
    assert_eq!(received[1].body, received[2].body);
    assert_ne!(received[0].header("webhook-id"), received[1].header("webhook-id"));
}

/// Checks a delivery with the standard's own library: the secret, then headers and body as JSON.
const LIBRARY: &str = "
import json, sys
from standardwebhooks import Webhook
given = json.load(sys.stdin)
event = Webhook(given['secret']).verify(given['body'], given['headers'])
assert event['type'] == 'mailbox.created', event
";

fn verify_elsewhere(library: &str, secret: &str, request: &ReceivedRequest) {
    let headers: Value = ["webhook-id", "webhook-timestamp", "webhook-signature"]
        .iter()
        .map(|name| ((*name).to_owned(), json!(request.header(name))))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let body = String::from_utf8(request.body.to_vec()).unwrap();
    let given = json!({ "secret": secret, "headers": headers, "body": body }).to_string();
    let mut python = Command::new("python3");
    python.args(["-c", LIBRARY]).env("PYTHONPATH", library);
    super::mail_clients::feed(&mut python, given.as_bytes());
}

// rules: HOOK-2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_library_of_the_standard_accepts_deliveries() {
    let Ok(library) = std::env::var("AGENT_MAILBOX_STANDARDWEBHOOKS") else {
        println!("skipped: AGENT_MAILBOX_STANDARDWEBHOOKS is not set (scripts/standardwebhooks prints it)");
        return;
    };
    for home in Home::on_each_engine() {
        let receiver = Receiver::start().await;
        let (_home, server, workspace, key) = start(home);
        let hook = new_hook(&server, &workspace, &key, &receiver);
        new_mailbox(&server, &key);
        verify_elsewhere(&library, &text(&hook, "secret"), &receiver.wait_for(1).await[0]);
        let path = format!("/api/v1/workspaces/{workspace}/webhooks/{}/rotate-secret", text(&hook, "id"));
        let rotated = server.call(&key, "POST", &path, &Value::Null).json();
        new_mailbox(&server, &key);
        let received = receiver.wait_for(2).await;
        for secret in [&hook, &rotated].map(|shown| text(shown, "secret")) {
            verify_elsewhere(&library, &secret, &received[1]);
        }
    }
}
