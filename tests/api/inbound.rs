//! Mail on its way in: who takes it, where it goes, what is put on it.

use model::{EmailId, Plan, emails::InboundProvider};
use operations::inbound::{self, Arrival};
use serde_json::{Value, json};
use testkit::{Engine, Server, both_engines};

use super::mails::{Inbox, message, new_label, plain, texts};

// rules: RECV-5, RECV-6
#[both_engines]
async fn only_mailboxes_of_this_server_take_mail(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let (local, domain) = inbox.address.split_once('@').unwrap();
    let refused = async |to: &str| match server.try_receive(Some("a@remote.test"), to, plain("x", "y")).await
    {
        Ok(id) => panic!("{to} was taken as {id}"),
        Err(refusal) => (refusal.code, refusal.enhanced),
    };
    for unknown in [
        "nobody@agents.test".to_owned(),
        format!("{local}x@{domain}"),
        format!("{local}@second.test"),
        format!("+{local}@{domain}"),
    ] {
        assert_eq!(refused(&unknown).await, (550, "5.1.1"), "{unknown}");
    }
    for foreign in [
        "somebody@elsewhere.test".to_owned(),
        format!("{local}@sub.{domain}"),
        format!("{local}@{domain}.elsewhere.test"),
    ] {
        assert_eq!(refused(&foreign).await, (550, "5.7.1"), "{foreign}");
    }
    for trick in [
        format!("{local}%{domain}@elsewhere.test"),
        format!("@{domain}:x@elsewhere.test"),
        format!("elsewhere.test!{local}@{domain}"),
        format!("x@elsewhere.test@{domain}"),
        format!("\"x@elsewhere.test\"@{domain}"),
        format!("{local}@[127.0.0.1]"),
        format!("{local}@127.0.0.1"),
        local.to_owned(),
        String::new(),
        "@".to_owned(),
    ] {
        assert_eq!(refused(&trick).await.0, 550, "{trick}");
    }
    for (to, recipient) in [
        (inbox.address.to_uppercase(), inbox.address.clone()),
        (format!("{local}+Shop.1@{domain}"), format!("{local}+shop.1@{domain}")),
        (format!("{local}+a+b@{domain}"), format!("{local}+a+b@{domain}")),
    ] {
        let id = server.receive(&to, plain("x", "y")).await;
        let shown = inbox.get(&format!("emails/{id}")).await["recipient"].as_str().unwrap().to_owned();
        assert!(shown.eq_ignore_ascii_case(&recipient), "{shown} {recipient}");
    }
}

// rules: RECV-5
#[both_engines]
async fn a_mailbox_that_is_gone_or_disabled_takes_nothing(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let other = inbox.another().await;
    let id = other.id.clone();
    let sql = "UPDATE mailbox SET disabled_at = 1 WHERE workspace_id = $1 AND id = $2";
    let write = server.app.db().write(&inbox.workspace, async move |tx| tx.run(sql, &[(&id).into()]).await);
    write.await.unwrap();
    let refusal =
        server.try_receive(Some("a@remote.test"), &other.address, plain("x", "y")).await.unwrap_err();
    assert_eq!((refusal.code, refusal.enhanced), (550, "5.2.1"));
    // One that goes between RCPT and DATA is put off, and refused at the next attempt.
    let recipient = inbound::route(&server.app, Some("a@remote.test"), &inbox.address).await.unwrap();
    inbox.key.delete(&inbox.path).await.ok();
    let arrival = Arrival {
        provider: Some(InboundProvider::EdgeRouting),
        from: None,
        recipients: vec![recipient],
        raw: plain("x", "y").into(),
        client: None,
    };
    assert_eq!(inbound::receive(&server.app, arrival).await.unwrap_err().code, 451);
    let refusal =
        server.try_receive(Some("a@remote.test"), &inbox.address, plain("x", "y")).await.unwrap_err();
    assert_eq!((refusal.code, refusal.enhanced), (550, "5.1.1"));
}

// rules: RECV-7
#[both_engines]
async fn the_operator_gets_what_is_written_to_the_postmaster(engine: Engine) {
    let server = Server::start(engine).await;
    // The first account operates the server.
    let operator = server.tenant(Plan::Developer).await;
    server.tenant(Plan::Developer).await;
    for to in ["postmaster@agents.test", "ABUSE@agents.test", "abuse@second.test", "postmaster+x@second.test"]
    {
        server.receive(to, plain(&format!("To {to}"), "help")).await;
    }
    let mailboxes = operator.key.get("/api/v1/mailboxes").await.ok();
    assert_eq!(texts(&mailboxes, "email"), ["postmaster@agents.test"]);
    let path = format!("/api/v1/mailboxes/{}/emails", mailboxes[0]["id"].as_str().unwrap());
    assert_eq!(operator.key.get(&path).await.ok()["totalCount"], 4);
    let refusal = server.try_receive(None, "postmaster@elsewhere.test", plain("x", "y")).await.unwrap_err();
    assert_eq!(refusal.code, 550);
}

// rules: RECV-8
#[both_engines]
async fn the_policy_of_a_mailbox_refuses_senders(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let set = async |allow: Value, block: Value| {
        let settings = json!({ "settings": { "senderPolicy": { "allow": allow, "block": block } } });
        inbox.key.put(&inbox.path, settings).await.ok();
    };
    let taken =
        async |from: Option<&str>| match server.try_receive(from, &inbox.address, plain("x", "y")).await {
            Ok(_) => true,
            Err(refusal) => {
                assert_eq!((refusal.code, refusal.enhanced), (550, "5.7.1"));
                false
            }
        };
    set(json!([]), json!(["bad@remote.test", "@evil.test"])).await;
    assert!(!taken(Some("Bad@Remote.test")).await && !taken(Some("any@evil.test")).await);
    assert!(
        taken(Some("good@remote.test")).await && taken(Some("x@sub.evil.test")).await && taken(None).await
    );
    set(json!(["@remote.test"]), json!(["bad@remote.test"])).await;
    assert!(taken(Some("good@remote.test")).await && !taken(Some("bad@remote.test")).await);
    assert!(!taken(Some("x@elsewhere.test")).await);
    set(json!([]), json!(["*"])).await;
    assert!(!taken(Some("good@remote.test")).await && !taken(None).await);
}

// rules: RECV-12, RECV-15, RECV-16, RECV-18
#[both_engines]
async fn what_a_mail_says_of_itself_is_not_believed(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let hops = |count: usize| message("Hops", &"Received: by somewhere\n".repeat(count), "x");
    server.receive(&inbox.address, hops(50)).await;
    let refusal = server.try_receive(Some("a@remote.test"), &inbox.address, hops(51)).await.unwrap_err();
    assert_eq!((refusal.code, refusal.enhanced), (554, "5.4.6"));
    let claims = "Authentication-Results: mx.agents.test; spf=pass; dkim=pass; dmarc=pass\nReceived-SPF: pass\nX-Scan-Status: clean";
    for raw in [
        message("Claims", claims, "x"),
        message("Two", "From: Ann <ann@remote.test>\nFrom: Boss <boss@bank.test>", "x"),
        message("Space", "From: Ann <ann@remote.test>\nFrom : Boss <boss@bank.test>", "x"),
    ] {
        let id = server.receive(&inbox.address, raw).await;
        let email = inbox.get(&format!("emails/{id}")).await;
        let verdict = &email["sender_authentication"];
        for field in ["status", "spf", "dkim", "dmarc"] {
            assert_eq!(verdict[field], "unknown", "{email}");
        }
        assert!(!email["sender"].as_str().unwrap().contains("boss"), "{email}");
        if email["subject"] != "Claims" {
            assert_eq!(email["scan_status"], "skipped", "{email}");
        }
    }
    for (date, shown) in [
        ("Mon, 13 Jul 2026 10:00:00 +0200", "2026-07-13T08:00:00.000Z"),
        ("Tue, 14 Jul 2026 09:00:00 +0000", "2026-07-14T09:00:00.000Z"),
        ("Tue, 14 Jul 2026 09:00:01 +0000", "2026-07-14T09:00:00.000Z"),
        ("Fri, 1 Jan 2100 00:00:00 +0000", "2026-07-14T09:00:00.000Z"),
        ("yesterday", "2026-07-14T09:00:00.000Z"),
    ] {
        let id = server.receive(&inbox.address, message("Date", &format!("Date: {date}"), "x")).await;
        let email = inbox.get(&format!("emails/{id}")).await;
        assert_eq!(
            (&email["date"], &email["received_at"]),
            (&json!(shown), &json!("2026-07-14T09:00:00.000Z")),
            "{date}"
        );
    }
}

// rules: RECV-20, RECV-21, RECV-24
#[both_engines]
async fn category_labels_and_folder_are_set_at_arrival(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    new_label(&inbox, "Bills", "subject:invoice AND from:@shop.test").await;
    new_label(&inbox, "Files", "has:attachment").await;
    new_label(&inbox, "Manual", "").await;
    new_label(&inbox, "Instruction", "Mails in which somebody complains").await;
    let raw = message(
        "Your invoice",
        "From: Shop <info@shop.test>",
        "My order is broken, please refund it. This is urgent, our production is down!\r\n",
    );
    let id = server.receive(&inbox.address, raw).await;
    let email = inbox.get(&format!("emails/{id}")).await;
    assert_eq!(email["custom_labels"], json!(["bills"]));
    assert!(["customer_support", "technical"].contains(&email["category"].as_str().unwrap()), "{email}");
    let unread = inbox.key.get("/api/v1/mailboxes").await.ok()[0]["inbox_unread_by_category"].clone();
    assert_eq!(unread[email["category"].as_str().unwrap()], 1, "{unread}");
    let other = server.receive(&inbox.address, plain("Hello", "See you.")).await;
    let email = inbox.get(&format!("emails/{other}")).await;
    assert_eq!(
        (&email["category"], &email["is_urgent"], &email["custom_labels"]),
        (&json!("other"), &json!(false), &json!([]))
    );
    // Spam, by the string that every filter agrees to call so.
    let spam = "XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X";
    let id = server.receive(&inbox.address, plain("Offer", spam)).await;
    assert_eq!(inbox.get(&format!("emails/{id}")).await["folder_id"], "spam");
    inbox.key.put(&inbox.path, json!({ "settings": { "spam": { "toSpamFolder": false } } })).await.ok();
    let id = server.receive(&inbox.address, plain("Offer", spam)).await;
    assert_eq!(inbox.get(&format!("emails/{id}")).await["folder_id"], "inbox");
}

/// The policy counts for the author whom the mail shows, not only for the envelope; other recipients get it all the same.
/// rules: RECV-8
#[both_engines]
async fn a_blocked_author_gets_in_by_no_envelope(engine: Engine) {
    let server = Server::start(engine).await;
    let closed = Inbox::new(&server).await;
    let open = closed.another().await;
    let policy = json!({ "settings": { "senderPolicy": { "block": ["@remote.test"] } } });
    closed.key.put(&closed.path, policy).await.ok();
    for from in [Some("a@elsewhere.test"), None] {
        let refusal = server.try_receive(from, &closed.address, plain("x", "y")).await.unwrap_err();
        assert_eq!((refusal.code, refusal.enhanced), (550, "5.7.1"), "{from:?}");
        let mut recipients = Vec::new();
        for address in [&closed.address, &open.address] {
            recipients.push(inbound::route(&server.app, from, address).await.unwrap());
        }
        let arrival = Arrival {
            provider: Some(InboundProvider::EdgeRouting),
            from: from.map(ToOwned::to_owned),
            recipients,
            raw: plain("x", "y").into(),
            client: None,
        };
        let outcomes = inbound::receive(&server.app, arrival).await.unwrap().emails;
        assert_eq!(outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true]);
    }
    assert_eq!(closed.get("emails").await["totalCount"], 0);
    assert_eq!(open.get("emails").await["totalCount"], 2);
}

/// One message for several mailboxes comes to all of them or to none, and once to each.
// rules: RECV-3, RECV-6
#[both_engines]
async fn a_message_to_several_comes_to_all_or_to_none(engine: Engine) {
    let server = Server::start(engine).await;
    let (one, three) = (Inbox::new(&server).await, Inbox::new(&server).await);
    let two = one.another().await;
    let tagged = one.address.replace('@', "+tag@");
    let to = [&one.address, &three.address, &two.address, &tagged, &one.address, &one.address.to_uppercase()];
    let mut recipients = Vec::new();
    for address in to {
        recipients.push(inbound::route(&server.app, Some("a@remote.test"), address).await.unwrap());
    }
    let arrival = Arrival {
        provider: Some(InboundProvider::MailApi),
        from: Some("a@remote.test".to_owned()),
        recipients,
        raw: plain("Everybody", "text").into(),
        client: None,
    };
    let outcomes = inbound::receive(&server.app, arrival.clone()).await.unwrap().emails;
    let ids: Vec<EmailId> = outcomes.into_iter().map(Result::unwrap).collect();
    assert_eq!(ids.len(), to.len());
    assert!(ids[0] == ids[4] && ids[0] == ids[5] && ids[0] != ids[3]);
    let counts = async || {
        let mut counts = Vec::new();
        for inbox in [&one, &two, &three] {
            counts.push(inbox.get("emails").await["totalCount"].as_i64().unwrap());
            super::email_counters::assert_counted(&server, &inbox.workspace, "after").await;
        }
        counts
    };
    assert_eq!(counts().await, [2, 1, 1]);
    assert_eq!(
        three.get(&format!("emails/{}", ids[1])).await["sender_authentication"]["inbound_provider"],
        "mail_api"
    );
    // The last mailbox goes meanwhile: nobody gets the second message.
    three.key.delete(&three.path).await.ok();
    assert_eq!(inbound::receive(&server.app, arrival).await.unwrap_err().code, 451);
    let left = [one.get("emails").await["totalCount"].clone(), two.get("emails").await["totalCount"].clone()];
    assert_eq!(left, [json!(2), json!(1)]);
}
