//! Sending, answering and passing on, between mailboxes of this server.

use model::{Limit, Plan};
use serde_json::{Value, json};
use testkit::{Answer, Engine, Server, ServerOptions, both_engines};

use super::{
    drafts::file,
    help::{assert_missing, assert_refuses_fields},
    mails::{Inbox, flagged, message, plain, texts, with_file},
};

/// The lines of a header block, unfolded.
pub(super) fn header_lines(raw: &str) -> Vec<String> {
    let block = raw.split("\r\n\r\n").next().unwrap();
    block.replace("\r\n ", " ").replace("\r\n\t", " ").split("\r\n").map(ToOwned::to_owned).collect()
}

// rules: SEND-1, SEND-2, SEND-6, SEND-8, SEND-9, SEND-11
#[both_engines]
async fn a_mail_to_a_mailbox_here_arrives_at_once(engine: Engine) {
    let server = Server::start(engine).await;
    let (one, two) = (Inbox::new(&server).await, Inbox::new(&server).await);
    let input = json!({
        "to": format!("Two <{}>", two.address), "cc": [one.address.clone()],
        "bcc": two.address.replace('@', "+blind@"),
        "subject": "Grüße", "text": "Hello", "html": "<p>Hello</p>", "headers": { "X-Job": "7" },
    });
    let answer = one.post("emails", input).await;
    assert_eq!((answer.status, answer.header("x-credits-charged")), (202, "5"));
    let sent = answer.ok();
    assert_eq!(sent["status"], "sent");
    let id = sent["id"].as_str().unwrap();
    let email = one.get(&format!("emails/{id}")).await;
    assert_eq!(email["delivery_status"], "sent");
    assert_eq!((&email["folder_id"], &email["read"]), (&json!("sent"), &json!(true)));
    assert_eq!((&email["message_id"], &email["thread_id"]), (&sent["message_id"], &sent["thread_id"]));
    assert_eq!(email["body"], "<p>Hello</p>");
    assert_eq!(email["bcc"], two.address.replace('@', "+blind@"));
    let delivery = one.get(&format!("emails/{id}/delivery")).await;
    assert_eq!(delivery["delivery_status"], "sent");
    assert_eq!(texts(&delivery["recipients"], "line"), ["to", "cc", "bcc"]);
    assert_eq!(texts(&delivery["recipients"], "state"), ["sent", "sent", "sent"]);
    assert_eq!(delivery["recipients"][0]["attempts"], 1);

    let arrived = two.get("emails?sortColumn=recipient&sortDirection=ASC").await;
    assert_eq!(arrived["totalCount"], 2);
    let first = &arrived["emails"][1];
    assert_eq!((&first["subject"], &first["delivery_status"]), (&json!("Grüße"), &Value::Null));
    assert_eq!((&first["sender"], &first["message_id"]), (&json!(one.address), &sent["message_id"]));
    assert_eq!(first["recipient"], two.address);
    let raw = two.try_get(&format!("emails/{}/raw", first["id"].as_str().unwrap())).await.text();
    assert!(!raw.contains("+blind"), "{raw}");
    let lines = header_lines(&raw);
    assert!(lines.contains(&"X-Job: 7".to_owned()), "{lines:?}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("Message-ID:")).count(), 1);
    // The sender is in Cc: one copy in the inbox, one among what was sent, in one thread.
    let own = one.get("emails?folder=inbox").await;
    assert_eq!((&own["totalCount"], &own["emails"][0]["thread_id"]), (&json!(1), &sent["thread_id"]));
    let usage = one.key.get(&format!("/api/v1/workspaces/{}/usage/email", one.workspace)).await.ok();
    assert_eq!((&usage["used"], &usage["mailboxes"][0]["received"]), (&json!(1), &json!(1)));
    let events = one.key.get(&format!("/api/v1/workspaces/{}/events", one.workspace)).await.ok();
    let kinds = texts(&events["events"], "type");
    assert_eq!(kinds, ["mailbox.created", "message.sent", "message.received"]);
}

// rules: SEND-2, SEND-4, SEND-5
#[both_engines]
async fn what_is_missing_or_not_allowed_is_refused(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let to = inbox.address.clone();
    let refused = async |change: Value, paths: &[&str]| {
        let mut input = json!({ "to": to, "subject": "S", "text": "T" });
        for (name, value) in change.as_object().unwrap() {
            input[name] = value.clone();
        }
        assert_refuses_fields(&inbox.post("emails", input).await, paths);
    };
    refused(json!({ "to": null }), &["to"]).await;
    refused(json!({ "to": [] }), &["to"]).await;
    refused(json!({ "to": "nobody" }), &["to"]).await;
    refused(json!({ "to": [to.clone(), "x@"] }), &["to[1]"]).await;
    refused(json!({ "to": 7 }), &["to"]).await;
    refused(json!({ "subject": null }), &["subject"]).await;
    refused(json!({ "text": null }), &["text"]).await;
    refused(json!({ "text": "", "html": "" }), &["text"]).await;
    refused(json!({ "subject": "x".repeat(999) }), &["subject"]).await;
    refused(json!({ "subject": "ü".repeat(500) }), &["subject"]).await;
    refused(json!({ "bbc": "a@b.test" }), &["bbc"]).await;
    refused(json!({ "headers": { "Bcc": "a@b.test" } }), &["headers.Bcc"]).await;
    refused(json!({ "headers": { "X-A: b\r\nBcc": "a@b.test" } }), &["headers.X-A: b\r\nBcc"]).await;
    let many: serde_json::Map<String, Value> = (0..21).map(|n| (format!("X-{n}"), json!("v"))).collect();
    refused(json!({ "headers": many }), &["headers"]).await;
    refused(json!({ "in_reply_to": "two words" }), &["in_reply_to"]).await;
    refused(json!({ "in_reply_to": "eml_01m7gky7freexvbe6wpb22q7pm" }), &["in_reply_to"]).await;
    refused(json!({ "to": ["nobody"] }), &["to[0]"]).await;
    refused(json!({ "cc": ["nobody"] }), &["cc[0]"]).await;
    refused(json!({ "headers": { "X-A": "a\nb" } }), &["headers.X-A"]).await;
    let file = |kind: &str| json!([{ "filename": "a.bin", "type": kind, "content": "eA==" }]);
    refused(json!({ "attachments": file("bad") }), &["attachments[0].type"]).await;
    let list = json!({ "to": [to.clone(), "\"Doe, J.\" <", to.clone()], "subject": "S", "text": "T" });
    inbox.post("emails", list).await.expect(400, "validation_failed");
    let foreign = async |from: Value| {
        let input = json!({ "to": to, "subject": "S", "text": "T", "from": from });
        inbox.post("emails", input).await
    };
    foreign(json!("ceo@bank.test")).await.expect(403, "sender_not_allowed");
    foreign(json!({ "email": inbox.another().await.address })).await.expect(403, "sender_not_allowed");
    foreign(json!({ "email": to, "name": "Me", "role": "x" })).await.expect(400, "validation_failed");
    let own = foreign(json!({ "email": to.replace('@', "+news@"), "name": "Me" })).await.ok();
    let email = inbox.get(&format!("emails/{}", own["id"].as_str().unwrap())).await;
    assert_eq!(email["sender"], format!("Me <{}>", to.replace('@', "+news@")));
    // Several in one text, and names with commas.
    let input = json!({ "to": format!("\"Doe, J.\" <{to}>, {}", to.replace('@', "+b@")), "subject": "S", "text": "T" });
    let sent = inbox.post("emails", input).await.ok();
    let delivery = inbox.get(&format!("emails/{}/delivery", sent["id"].as_str().unwrap())).await;
    assert_eq!(delivery["recipients"].as_array().unwrap().len(), 2);
    assert_missing(
        &inbox.post("emails", json!({ "to": to, "subject": "S", "text": "T", "thread_id": "thr_x" })).await,
        "Thread",
    );
}

// rules: SEND-3, SEND-13
#[expect(clippy::too_many_lines, reason = "a table of fields")]
#[both_engines]
async fn no_field_can_add_a_header_or_a_recipient(engine: Engine) {
    let server = Server::start(engine).await;
    let (inbox, victim) = (Inbox::new(&server).await, Inbox::new(&server).await);
    let tricks = [
        "\r\nBcc: X",
        "\nBcc: X",
        "\rBcc: X",
        "\r\n\r\nBody",
        "\u{0}",
        "\u{85}Bcc: X",
        "\r\n.\r\nMAIL FROM:<X>",
    ];
    let address = &inbox.address;
    for trick in tricks {
        let trick = trick.replace('X', &victim.address);
        let fields = [
            ("to", json!(format!("{address}{trick}"))),
            ("to", json!(format!("A{trick} <{address}>"))),
            ("to", json!(format!("\"A{trick}\" <{address}>"))),
            ("cc", json!([format!("{address}{trick}")])),
            ("bcc", json!([format!("{address}{trick}")])),
            ("from", json!(format!("Me{trick} <{address}>"))),
            ("from", json!({ "email": address, "name": format!("Me{trick}") })),
            ("subject", json!(format!("S{trick}"))),
            ("in_reply_to", json!(format!("<a@b>{trick}"))),
            ("references", json!(format!("<a@b>{trick}"))),
            ("references", json!([format!("a@b{trick}")])),
            ("headers", json!({ "X-A": format!("v{trick}") })),
            ("headers", json!({ format!("X-A{trick}"): "v" })),
            (
                "attachments",
                json!([{ "filename": format!("a{trick}"), "type": "text/plain", "content": "eA==" }]),
            ),
            (
                "attachments",
                json!([{ "filename": "a", "type": format!("text/plain{trick}"), "content": "eA==" }]),
            ),
        ];
        for (name, value) in fields {
            let mut input = json!({ "to": address, "subject": "S", "text": "T" });
            input[name] = value;
            let answer = inbox.post("emails", input.clone()).await;
            assert_eq!(answer.status, 400, "{input}: {}", answer.text());
        }
        // Bodies may hold anything; it stays a body.
        let body = format!("Hi{trick}\r\n.\r\nEnd");
        let input = json!({ "to": address, "subject": "S", "text": body, "html": body });
        let answer = inbox.post("emails", input).await;
        if trick.contains('\u{0}') {
            assert_eq!(answer.status, 400);
            continue;
        }
        let sent = answer.ok();
        let raw = inbox.try_get(&format!("emails/{}/raw", sent["id"].as_str().unwrap())).await.text();
        let names: Vec<String> =
            header_lines(&raw).iter().map(|line| line.split(':').next().unwrap().to_lowercase()).collect();
        for name in &names {
            let known = ["date", "from", "to", "subject", "message-id", "mime-version", "content-type"];
            assert!(known.contains(&name.as_str()), "{names:?}");
        }
        let stray = raw.replace("\r\n", "");
        assert!(!stray.contains(['\r', '\n', '\0']), "{raw:?}");
    }
    assert_eq!(victim.get("emails").await["totalCount"], 0);
}

// rules: SEND-12
#[both_engines]
async fn local_mode_has_no_way_out(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let input = json!({ "to": [inbox.address.clone(), "x@remote.test"], "subject": "S", "text": "T" });
    let answer = inbox.post("emails", input).await;
    answer.expect(422, "outbound_not_configured");
    assert_eq!(answer.header("x-credits-charged"), "0");
    assert_eq!(inbox.get("emails").await["totalCount"], 0, "all or nothing");
    // An address here that nobody has: the mail is sent and comes back.
    let input = json!({ "to": [inbox.address.clone(), "nobody@agents.test"], "subject": "S", "text": "T" });
    let sent = inbox.post("emails", input).await.ok();
    assert_eq!(sent["status"], "queued");
    let delivery = inbox.get(&format!("emails/{}/delivery", sent["id"].as_str().unwrap())).await;
    assert_eq!(delivery["delivery_status"], "partial");
    assert_eq!(texts(&delivery["recipients"], "state"), ["sent", "bounced"]);
    assert!(delivery["recipients"][1]["last_reply"].as_str().unwrap().starts_with("550 5.1.1"));
}

// rules: SEND-17
#[both_engines]
async fn a_reply_takes_what_it_is_not_told_from_the_original(engine: Engine) {
    let server = Server::start(engine).await;
    let (me, ann, bob) = (Inbox::new(&server).await, Inbox::new(&server).await, Inbox::new(&server).await);
    let headers = format!(
        "From: Ann <{}>\nTo: Me <{}>, Bob <{}>\nReferences: <first@remote.test>",
        ann.address, me.address, bob.address
    );
    let raw = message("Hello there", &headers, "Hi\r\n").replace("To: Me <me@agents.test>\r\n", "");
    let id = server.receive(&me.address, raw).await;
    let original = me.get(&format!("emails/{id}")).await;
    let sent = me.post(&format!("emails/{id}/reply"), json!({ "text": "Yes" })).await;
    assert_eq!((sent.status, sent.header("x-credits-charged")), (202, "5"));
    let sent = sent.ok();
    assert_eq!((&sent["status"], &sent["thread_id"]), (&json!("sent"), &original["thread_id"]));
    let email = me.get(&format!("emails/{}", sent["id"].as_str().unwrap())).await;
    assert_eq!(
        (&email["subject"], &email["to"]),
        (&json!("Re: Hello there"), &json!(format!("Ann <{}>", ann.address)))
    );
    assert_eq!(email["in_reply_to"], original["message_id"]);
    let references = format!("first@remote.test {}", original["message_id"].as_str().unwrap());
    assert_eq!(email["email_references"], references);
    assert_eq!(
        (ann.get("emails").await["totalCount"].clone(), bob.get("emails").await["totalCount"].clone()),
        (json!(1), json!(0))
    );

    // A subject that would be too long behind its mark is cut, since nobody chose it.
    let from = format!("From: Ann <{}>", ann.address);
    let long =
        server.receive(&me.address, message(&format!("{}end", "long ".repeat(199)), &from, "Hi\r\n")).await;
    let sent = me.post(&format!("emails/{long}/reply"), json!({ "text": "Yes" })).await.ok();
    let subject = me.get(&format!("emails/{}", sent["id"].as_str().unwrap())).await["subject"].clone();
    let subject = subject.as_str().unwrap();
    assert!(subject.starts_with("Re: long long") && subject.ends_with("..."), "{subject}");
    let forward = json!({ "to": bob.address, "text": "See" });
    me.post(&format!("emails/{long}/forward"), forward).await.ok();

    let all =
        me.post(&format!("emails/{id}/reply"), json!({ "text": "Yes, all", "reply_all": true })).await.ok();
    let delivery = me.get(&format!("emails/{}/delivery", all["id"].as_str().unwrap())).await;
    let mut to = texts(&delivery["recipients"], "recipient");
    to.sort();
    let mut wanted = vec![ann.address.clone(), bob.address.clone()];
    wanted.sort();
    assert_eq!(to, wanted, "never to oneself");
    // The answer to that comes back into the same thread.
    let arrived = ann.get("emails").await["emails"][0]["id"].as_str().unwrap().to_owned();
    ann.post(&format!("emails/{arrived}/reply"), json!({ "text": "Thanks" })).await.ok();
    let thread = me.get(&format!("threads/{}", original["thread_id"].as_str().unwrap())).await;
    assert_eq!(texts(&thread, "subject").last().unwrap(), "Re: Hello there");
    assert_eq!(thread.as_array().unwrap().len(), 4);
    // Given recipients and subject win.
    let own = json!({ "to": bob.address, "subject": "Else", "text": "x" });
    let sent = me.post(&format!("emails/{id}/reply"), own).await.ok();
    let email = me.get(&format!("emails/{}", sent["id"].as_str().unwrap())).await;
    assert_eq!((&email["subject"], &email["to"]), (&json!("Else"), &json!(bob.address)));
    assert_missing(&me.post("emails/eml_none/reply", json!({ "text": "x" })).await, "Email");
}

// rules: SEND-18, SEND-19
#[both_engines]
async fn a_forward_carries_the_original_and_its_files(engine: Engine) {
    let server = Server::start(engine).await;
    let (me, ann) = (Inbox::new(&server).await, Inbox::new(&server).await);
    let id =
        server.receive(&me.address, with_file("Invoice", "bill.pdf", "application/pdf", b"%PDF 1")).await;
    let forward = async |input: Value| -> Answer { me.post(&format!("emails/{id}/forward"), input).await };
    let answer = forward(json!({ "to": ann.address, "text": "For you" })).await;
    assert_eq!((answer.status, answer.ok()["status"].clone()), (202, json!("sent")));
    let arrived = ann.get("emails").await["emails"][0]["id"].as_str().unwrap().to_owned();
    let email = ann.get(&format!("emails/{arrived}")).await;
    assert_eq!(
        (&email["subject"], &email["attachments"][0]["filename"]),
        (&json!("Fwd: Invoice"), &json!("bill.pdf"))
    );
    let body = email["body"].as_str().unwrap();
    assert!(
        body.starts_with("For you")
            && body.contains("From: Ann <ann@remote.test>")
            && body.contains("See the file."),
        "{body}"
    );
    forward(json!({ "to": ann.address, "attachments": [] })).await.ok();
    forward(json!({ "to": ann.address, "attachments": [file("n.txt", "text/plain", b"n")] })).await.ok();
    let counts: Vec<i64> = ann.get("emails").await["emails"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mail| mail["attachment_count"].as_i64().unwrap())
        .collect();
    assert_eq!(counts.iter().filter(|count| **count == 0).count(), 1);
    assert_refuses_fields(&forward(json!({ "text": "x" })).await, &["to"]);
    // What is unsafe is not passed on.
    let bad = server.receive(&me.address, flagged("Virus")).await;
    let input = json!({ "to": ann.address });
    me.post(&format!("emails/{bad}/forward"), input).await.expect(403, "content_withheld");
    let unsafe_file = me.get(&format!("emails/{bad}")).await["attachments"][0]["id"].clone();
    let input = json!({ "to": ann.address, "subject": "S", "text": "T", "attachments": [{ "attachment_id": unsafe_file }] });
    me.post("emails", input).await.expect(403, "content_withheld");
    let good = me.get(&format!("emails/{id}")).await["attachments"][0]["id"].clone();
    let input =
        json!({ "to": ann.address, "subject": "S", "text": "T", "attachments": [{ "attachment_id": good }] });
    me.post("emails", input.clone()).await.ok();
    assert_missing(&ann.post("emails", input).await, "Attachment");
}

// rules: SEND-10
#[both_engines]
async fn one_request_makes_one_mail_however_often_it_comes(engine: Engine) {
    let server = Server::start(engine).await;
    let (one, two) = (Inbox::new(&server).await, Inbox::new(&server).await);
    let input = json!({ "to": two.address, "subject": "Once", "text": "T" });
    let mut calls = Vec::new();
    let key = one.key.with("idempotency-key", "send-once");
    for _ in 0..50 {
        let (key, path, input) = (key.clone(), format!("{}/emails", one.path), input.clone());
        calls.push(tokio::spawn(async move { key.post(&path, input).await }));
    }
    let mut answers = Vec::new();
    for call in calls {
        let answer = call.await.unwrap();
        match answer.status {
            202 => answers.push(answer.text()),
            _ => {
                answer.expect(409, "idempotency_in_progress");
            }
        }
    }
    let again = key.post(&format!("{}/emails", one.path), input).await;
    assert_eq!(again.header("idempotent-replayed"), "true");
    answers.push(again.text());
    answers.dedup();
    assert_eq!(answers.len(), 1);
    assert_eq!(two.get("emails").await["totalCount"], 1);
    assert_eq!(one.get("emails?folder=sent").await["totalCount"], 1);
}

// rules: SEND-26
#[both_engines]
async fn signature_and_name_stand_in_every_mail(engine: Engine) {
    let server = Server::start(engine).await;
    let (one, two) = (Inbox::new(&server).await, Inbox::new(&server).await);
    let settings = json!({ "settings": { "fromName": "The Bot", "signature": { "enabled": true, "text": "Bot & Co" } } });
    one.key.put(&one.path, settings).await.ok();
    one.post("emails", json!({ "to": two.address, "subject": "A", "text": "Hello" })).await.ok();
    one.post("emails", json!({ "to": two.address, "subject": "B", "html": "<body><p>Hi</p></body>" }))
        .await
        .ok();
    let id = server.receive(&one.address, plain("Q", "Why?")).await;
    one.post(&format!("emails/{id}/reply"), json!({ "to": two.address, "text": "Because" })).await.ok();
    for mail in two.get("emails").await["emails"].as_array().unwrap() {
        assert_eq!(mail["sender"], format!("The Bot <{}>", one.address));
        let email = two.get(&format!("emails/{}", mail["id"].as_str().unwrap())).await;
        let body = email["body"].as_str().unwrap();
        let signed =
            if email["body_format"] == "html" { "-- <br>Bot &amp; Co</body>" } else { "-- \nBot & Co" };
        assert!(body.contains(signed), "{body:?}");
    }
}

// rules: SEND-23, SEND-24, SEND-25, ERR-8
#[both_engines]
async fn free_has_limits_of_recipients_and_mails(engine: Engine) {
    let mut options = ServerOptions::default();
    options.plans.free.mails_per_day_and_mailbox = Limit::of(9);
    options.plans.free.mails_per_month = Limit::of(12);
    let server = Server::with(engine, options).await;
    let (free, other) = (server.tenant(Plan::Free).await, Inbox::new(&server).await);
    let (inbox, friend) = (Inbox::of(&free).await, Inbox::of(&free).await);
    let tagged = |count: usize| -> Vec<String> {
        (0..count).map(|n| other.address.replace('@', &format!("+{n}@"))).collect()
    };
    let send = async |inbox: &Inbox, to: Vec<String>| {
        inbox.post("emails", json!({ "to": to, "subject": "S", "text": "T" })).await
    };
    let over =
        json!({ "to": tagged(6), "cc": tagged(4), "bcc": friend.address, "subject": "S", "text": "T" });
    inbox.post("emails", over).await.expect(400, "email_send_recipient_limit_exceeded");
    send(&inbox, tagged(6)).await.ok();
    server.clock.advance(20);
    send(&inbox, tagged(3)).await.ok();
    // Mail within the workspace does not count; one more outside fits, two do not.
    send(&inbox, vec![friend.address.clone()]).await.ok();
    let refused = send(&inbox, tagged(2)).await;
    refused.expect(429, "email_send_rate_limit_exceeded");
    assert_eq!(refused.json()["error"], "Too many requests");
    let fix = refused.json()["fix"].as_str().unwrap().to_owned();
    assert!(fix.contains("plan") && fix.contains("2026-07-14T09:01:00.000Z"), "{fix}");
    assert_eq!((refused.header("retry-after"), refused.header("x-credits-charged")), ("40", "0"));
    send(&inbox, tagged(1)).await.ok();
    send(&friend, tagged(1)).await.expect(429, "email_send_rate_limit_exceeded");
    server.clock.advance(40);
    send(&friend, tagged(2)).await.ok();
    // Nine mails a day and mailbox.
    for _ in 0..5 {
        send(&inbox, vec![friend.address.clone()]).await.ok();
    }
    let refused = send(&inbox, vec![friend.address.clone()]).await;
    refused.expect(429, "email_send_rate_limit_exceeded");
    assert_eq!(refused.header("retry-after"), (15 * 3600 - 60).to_string());
    // Twelve a month in the workspace.
    send(&friend, vec![inbox.address.clone()]).await.ok();
    server.clock.advance(86_400);
    send(&friend, vec![inbox.address.clone()]).await.ok();
    let refused = send(&friend, vec![inbox.address.clone()]).await;
    refused.expect(429, "email_send_rate_limit_exceeded");
    server.clock.set("2026-08-01T00:00:00Z");
    send(&friend, vec![inbox.address.clone()]).await.ok();
}
