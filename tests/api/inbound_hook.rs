//! The signed HTTP hook for mail.

use hmac::{Hmac, KeyInit, Mac};
use http::Method;
use serde_json::json;
use sha2::Sha256;
use testkit::{Answer, Engine, Logs, Server, ServerOptions, both_engines};

use super::{
    help::assert_refuses_fields,
    mails::{Inbox, plain},
};

const SECRET: &str = "a secret of the hook";

/// A request as a receiving service makes it; `change` can spoil what was signed.
struct Hook<'a> {
    server: &'a Server,
    from: String,
    to: String,
    raw: String,
}

impl Hook<'_> {
    fn signature(&self, secret: &str, time: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        // Time, sender, recipients, client and its name, a line each, then the message.
        for piece in [time, "\n", &self.from, "\n", &self.to, "\n\n\n", &self.raw] {
            mac.update(piece.as_bytes());
        }
        let bytes = mac.finalize().into_bytes();
        bytes.iter().fold("sha256=".to_owned(), |text, byte| format!("{text}{byte:02x}"))
    }

    async fn send(&self, time: &str, signature: &str) -> Answer {
        self.send_to("/inbound/v1/raw", time, signature).await
    }

    async fn send_to(&self, path: &str, time: &str, signature: &str) -> Answer {
        let caller = self
            .server
            .anonymous()
            .with("x-signature-time", time)
            .with("x-signature", signature)
            .with("x-envelope-from", &self.from)
            .with("x-envelope-to", &self.to);
        caller.send_raw(Method::POST, path, Some("message/rfc822"), self.raw.clone().into()).await
    }
}

fn options() -> ServerOptions {
    ServerOptions { inbound_secret: Some(SECRET.to_owned()), ..ServerOptions::default() }
}

// rules: RECV-1
#[both_engines]
async fn a_signed_message_is_taken(engine: Engine) {
    let server = Server::with(engine, options()).await;
    let inbox = Inbox::new(&server).await;
    let time = (server.clock.now().as_micros() / 1_000_000).to_string();
    let to = format!("{}, nobody@agents.test,{}", inbox.address, inbox.address);
    let hook = Hook { server: &server, from: "a@remote.test".to_owned(), to, raw: plain("Hooked", "text") };
    let signature = hook.signature(SECRET, &time);
    let logs = Logs::catch();
    let answer = hook.send(&time, &signature).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let body = answer.json();
    assert_eq!(body["refused"][0]["recipient"], "nobody@agents.test");
    let id = body["ids"][0].as_str().unwrap();
    let logged = logs.text();
    let line = logged.lines().find(|line| line.contains(" mail.received: ")).unwrap();
    for part in [
        "protocol=\"HTTP\" from=\"a@remote.test\" recipients=\"<nobody@agents.test> 550 5.1.1 ",
        &format!("message_id=\"Hooked@remote.test\" emails=\"{id}"),
        "result=\"stored\"",
    ] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    drop(logs);
    let email = inbox.get(&format!("emails/{id}")).await;
    assert_eq!(email["sender_authentication"]["inbound_provider"], "mail_api");
    assert_eq!(inbox.try_get(&format!("emails/{id}/raw")).await.text(), hook.raw);
    assert_eq!(inbox.get("emails").await["totalCount"], 1);
    let nobody = Hook {
        to: "nobody@agents.test".to_owned(),
        server: &server,
        from: String::new(),
        raw: "x".to_owned(),
    };
    let refused = nobody.send(&time, &nobody.signature(SECRET, &time)).await;
    refused.expect(422, "recipients_refused");
    let surprise = hook.send_to("/inbound/v1/raw?to=me", &time, &signature).await;
    assert_refuses_fields(&surprise, &["to"]);
    let none = Hook { to: " , ".to_owned(), ..nobody };
    none.send(&time, &none.signature(SECRET, &time)).await.expect(400, "validation_failed");
}

// rules: RECV-1
#[both_engines]
async fn anything_else_is_refused(engine: Engine) {
    let server = Server::with(engine, options()).await;
    let inbox = Inbox::new(&server).await;
    let now = server.clock.now().as_micros() / 1_000_000;
    let (time, raw) = (now.to_string(), plain("Hooked", "text"));
    let hook = |to: &str, raw: &str| Hook {
        server: &server,
        from: "a@remote.test".to_owned(),
        to: to.to_owned(),
        raw: raw.to_owned(),
    };
    let right = hook(&inbox.address, &raw);
    let signature = right.signature(SECRET, &time);
    let wrong = async |hook: &Hook<'_>, time: &str, signature: &str| {
        let answer = hook.send(time, signature).await;
        answer.expect(401, "unauthorized");
        let fix = "Sign the request with the server's inbound.http_secret, and check the clock: /docs#receiveRawMail.";
        let body = json!({ "error": "Unauthorized", "code": "unauthorized", "fix": fix });
        assert_eq!(answer.json(), body);
    };
    wrong(&hook(&inbox.address, &raw.replace("text", "test")), &time, &signature).await;
    wrong(&hook(&inbox.another().await.address, &raw), &time, &signature).await;
    wrong(&Hook { from: "b@remote.test".to_owned(), ..hook(&inbox.address, &raw) }, &time, &signature).await;
    wrong(&right, &(now + 1).to_string(), &signature).await;
    wrong(&right, &time, &right.signature("another secret", &time)).await;
    for bad in [
        "",
        "sha256=",
        "sha256=zz",
        "sha256=é",
        "md5=00",
        &signature[..20],
        &signature.replace("sha256=", ""),
    ] {
        if bad.is_ascii() {
            wrong(&right, &time, bad).await;
        }
    }
    for apart in [-301, 301, i64::from(i32::MAX)] {
        let other = (now + apart).to_string();
        wrong(&right, &other, &right.signature(SECRET, &other)).await;
    }
    let extreme = i64::MIN.to_string();
    wrong(&right, &extreme, &right.signature(SECRET, &extreme)).await;
    assert_eq!(inbox.get("emails").await["totalCount"], 0);
    let unsigned =
        server.anonymous().send_raw(Method::POST, "/inbound/v1/raw", None, raw.clone().into()).await;
    unsigned.expect(401, "unauthorized");
    // Without a secret there is no hook.
    let closed = Server::start(engine).await;
    let elsewhere = Hook { server: &closed, ..hook(&inbox.address, &raw) };
    elsewhere.send(&time, &signature).await.expect(404, "not_found");
}

/// A request that was overheard, or sent again after a broken connection.
// rules: RECV-28
#[both_engines]
async fn a_request_that_is_sent_again_delivers_nothing_twice(engine: Engine) {
    let server = Server::with(engine, options()).await;
    let (inbox, elsewhere) = (Inbox::new(&server).await, Inbox::new(&server).await);
    let time = (server.clock.now().as_micros() / 1_000_000).to_string();
    let to = format!("{},{},later@agents.test", inbox.address, elsewhere.address);
    let hook = Hook { server: &server, from: "a@remote.test".to_owned(), to, raw: plain("Once", "text") };
    let signature = hook.signature(SECRET, &time);
    let counts = async || {
        let one = inbox.get("emails").await["totalCount"].clone();
        (one, elsewhere.get("emails").await["totalCount"].clone())
    };
    let once = (json!(1), json!(1));
    // At once, one after the other, and with the signature in other letters.
    let (first, second) = tokio::join!(hook.send(&time, &signature), hook.send(&time, &signature));
    let first = first.ok();
    assert_eq!(second.ok(), first);
    server.clock.advance(299);
    let shouted = signature.to_uppercase().replace("SHA256", "sha256");
    assert_eq!(hook.send(&time, &shouted).await.ok(), first);
    assert_eq!(counts().await, once);
    // What was deleted does not come back.
    let id = first["ids"][0].as_str().unwrap();
    inbox.delete(&format!("emails/{id}?permanent=true")).await.ok();
    assert_eq!(hook.send(&time, &signature).await.ok(), first);
    assert_eq!(counts().await, (json!(0), json!(1)));
    // A mailbox that was not there before has had nothing yet.
    let late = json!({ "name": "Late", "email": "later@agents.test" });
    inbox.key.post("/api/v1/mailboxes", late).await.ok();
    let third = hook.send(&time, &signature).await.ok();
    assert_eq!((&third["ids"][0], &third["ids"][1]), (&first["ids"][0], &first["ids"][1]));
    assert_eq!(third["ids"].as_array().unwrap().len(), 3);
    assert_eq!(counts().await, (json!(0), json!(1)));
    // Signed anew it is a new message.
    let now = (server.clock.now().as_micros() / 1_000_000).to_string();
    let anew = hook.send(&now, &hook.signature(SECRET, &now)).await.ok();
    assert_ne!(anew["ids"], first["ids"]);
    assert_eq!(counts().await, (json!(1), json!(2)));
}

// rules: RECV-29
#[both_engines]
async fn wrong_signatures_are_read_only_so_often(engine: Engine) {
    let server = Server::with(engine, ServerOptions { anonymous_rpm: 3, ..options() }).await;
    let inbox = Inbox::new(&server).await;
    let time = (server.clock.now().as_micros() / 1_000_000).to_string();
    let raw = plain("Hooked", "text");
    let hook = Hook { server: &server, from: String::new(), to: inbox.address.clone(), raw };
    let signature = hook.signature(SECRET, &time);
    for _ in 0..5 {
        hook.send(&time, &signature).await.ok();
    }
    for _ in 0..3 {
        hook.send(&time, "sha256=00").await.expect(401, "unauthorized");
    }
    hook.send(&time, "sha256=00").await.expect(429, "rate_limited");
    server.clock.advance(60);
    hook.send(&time, &signature).await.ok();
}
