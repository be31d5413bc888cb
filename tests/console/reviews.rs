//! Reviews and send policies in the console: the queue, decisions in it and by a link, and the forms of policies.

use model::{Plan, Role, sending::OutboundMode};
use operations::{Outbound, SendPolicySettings, admin, sending::worker};
use serde_json::{Value, json};
use testkit::{Engine, PASSWORD, Server, ServerOptions, Tenant, both_engines};

use super::{
    person::{Mailbox, Person, cookies, form},
    writing::compose,
};

/// A server that takes messages to other servers.
fn sending() -> ServerOptions {
    ServerOptions { outbound: Outbound::new(OutboundMode::Sandbox), ..ServerOptions::default() }
}

/// Sets the policy of the workspace.
async fn set_policy(person: &Person, policy: Value) {
    let path = format!("/api/v1/workspaces/{}/send-policy", person.tenant.workspace);
    person.tenant.key.put(&path, policy).await.ok();
}

/// A message that a key sends and that is held for review: the review.
async fn held(person: &Person, mailbox: &Mailbox, subject: &str, more: Value) -> Value {
    let mut message = json!({ "to": "Grace <grace@remote.test>", "subject": subject, "text": "Dear Grace,\nit is done.\n" });
    for (name, value) in more.as_object().into_iter().flatten() {
        message[name] = value.clone();
    }
    let sent = person.tenant.key.post(&format!("/api/v1/mailboxes/{}/emails", mailbox.id), message).await;
    assert_eq!((sent.status, &sent.json()["status"]), (202, &json!("in_review")), "{}", sent.text());
    review(person, sent.json()["review_id"].as_str().unwrap()).await
}

async fn review(person: &Person, id: &str) -> Value {
    let path = format!("/api/v1/workspaces/{}/reviews/{id}", person.tenant.workspace);
    person.tenant.key.get(&path).await.ok()
}

fn id(review: &Value) -> &str {
    review["id"].as_str().unwrap()
}

fn at(review: &Value, rest: &str) -> String {
    format!("/console/reviews/{}{rest}", id(review))
}

fn digest(review: &Value) -> (&str, &str) {
    ("digest", review["digest"].as_str().unwrap())
}

/// What an answer leaves to be said on the next page.
fn flash(answer: &testkit::Answer) -> String {
    let all = cookies(answer);
    let flash = all.iter().find(|one| one.starts_with("flash=")).cloned().unwrap_or_default();
    let fields = url::form_urlencoded::parse(flash.as_bytes()).map(|(name, value)| format!("{name}={value}"));
    fields.collect::<Vec<_>>().concat()
}

/// rules: CONSOLE-21
#[both_engines]
async fn admins_decide_about_messages_in_a_queue(engine: Engine) {
    let server = Server::with(engine, sending()).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    assert!(ada.page("/console/reviews").await.contains("Nothing to review"));
    set_policy(&ada, json!({ "new_recipient": "review" })).await;
    let first = held(&ada, &mailbox, "First & <b>", json!({})).await;
    let html = json!({ "html": "<p>Dear <b>Grace</b></p><script>x</script>", "cc": "carol@remote.test" });
    let second = held(&ada, &mailbox, "Second", html).await;

    let page = ada.page("/console/reviews").await;
    for part in
        ["First &#38; &#60;b&#62;", "Second", "To: Grace", "New recipient", "pending: </span>2", "API key"]
    {
        assert!(page.contains(part), "{part} in {page}");
    }
    let page = ada.page(&at(&first, "")).await;
    assert!(page.contains("grace@remote.test") && page.contains("it is done."), "{page}");
    assert!(page.contains("class=\"new\"") && page.contains("data-key=\"a\""), "{page}");
    let page = ada.page(&at(&second, "")).await;
    assert!(page.contains(&format!("src=\"{}\"", at(&second, "/frame"))), "{page}");
    let frame = ada.get(&at(&second, "/frame")).await;
    assert!(frame.text().contains("<b>Grace</b>") && !frame.text().contains("<script"), "{}", frame.text());
    assert!(frame.header("content-security-policy").contains("sandbox"));
    // A part of the page for a script, and the counter in the navigation.
    let side = ada.caller.with("hx-request", "true").get("/console/side").await.text();
    assert!(side.contains("innerHTML:.reviews-count") && side.contains("</span>2"), "{side}");

    // A digest that is not that of the message.
    let answer = ada.form(&at(&first, "/approve"), &[("digest", "other")]).await;
    assert_eq!((answer.status, answer.header("location")), (303, at(&first, "").as_str()));
    assert!(flash(&answer).contains("The message changed since you opened it."), "{}", flash(&answer));
    let answer = ada.form(&at(&first, "/approve"), &[digest(&first)]).await;
    assert_eq!((answer.status, answer.header("location")), (303, at(&second, "").as_str()));
    assert!(flash(&answer).contains("Approved. It is on its way."), "{}", flash(&answer));
    assert_eq!(review(&ada, id(&first)).await["state"], "approved");
    // Once decided, a second decision says so and leaves the page usable.
    let answer = ada.form(&at(&first, "/reject"), &[]).await;
    assert!(flash(&answer).contains("decided already"), "{}", flash(&answer));
    let page = ada.page(&at(&first, "")).await;
    assert!(page.contains("Approved by") && page.contains(&ada.tenant.email), "{page}");

    let answer = ada.form(&at(&second, "/reject"), &[("reason", "Too early")]).await;
    assert_eq!((answer.status, answer.header("location")), (303, "/console/reviews"));
    let rejected = review(&ada, id(&second)).await;
    assert_eq!((&rejected["state"], &rejected["reason"]), (&json!("rejected"), &json!("Too early")));
    let page = ada.page("/console/reviews?state=decided").await;
    assert!(page.contains("Rejected") && page.contains("Approved") && page.contains("Second"), "{page}");
    assert_eq!(ada.get("/console/reviews/rev_nothing").await.status, 404);
}

/// rules: CONSOLE-21
#[both_engines]
async fn a_message_is_edited_before_it_leaves(engine: Engine) {
    let server = Server::with(engine, sending()).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    set_policy(&ada, json!({ "review": "all" })).await;
    let draft = json!({ "to": "grace@remote.test", "subject": "Hello", "body": "Dear Grace,\nyours\n" });
    let draft = ada.tenant.key.post(&format!("/api/v1/mailboxes/{}/drafts", mailbox.id), draft).await.ok();
    let more = json!({ "source_draft_id": draft["id"], "text": "Dear Grace,\nit is 100 EUR.\nyours\n" });
    let held = held(&ada, &mailbox, "Hello", more).await;
    let page = ada.page(&at(&held, "")).await;
    assert!(page.contains("Changed since the draft") && page.contains("it is 100 EUR."), "{page}");
    let page = ada.page(&at(&held, "?edit=1")).await;
    assert!(page.contains("Approve with changes") && page.contains("name=\"text_before\""), "{page}");
    let before = "Dear Grace,\r\nit is 100 EUR.\r\nyours\r\n";
    let edited = |text: &'static str| {
        vec![
            digest(&held),
            ("edited", "1"),
            ("subject_before", "Hello"),
            ("text_before", before),
            ("subject", "Hello, Grace"),
            ("text", text),
        ]
    };
    // A mistake keeps what was typed.
    let answer = ada.form(&at(&held, "/approve"), &edited("")).await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("value=\"Hello, Grace\""), "{}", answer.text());
    let answer = ada.form(&at(&held, "/approve"), &edited("Dear Grace,\r\nit is 10 EUR.\r\n")).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    let sent = review(&ada, id(&held)).await;
    let email = format!("/api/v1/mailboxes/{}/emails/{}", mailbox.id, sent["email_id"].as_str().unwrap());
    let email = ada.tenant.key.get(&email).await.ok();
    assert_eq!((&email["subject"], &email["folder_id"]), (&json!("Hello, Grace"), &json!("sent")));
    assert!(email["body"].as_str().unwrap().contains("it is 10 EUR."), "{email}");
}

/// rules: CONSOLE-21
#[both_engines]
async fn several_are_decided_at_once_and_approvals_are_undone(engine: Engine) {
    let send_policy = SendPolicySettings { undo_seconds: 60, ..SendPolicySettings::default() };
    let server = Server::with(engine, ServerOptions { send_policy, ..sending() }).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    set_policy(&ada, json!({ "review": "all" })).await;
    let mut all = Vec::new();
    for subject in ["One", "Two", "Three"] {
        all.push(held(&ada, &mailbox, subject, json!({})).await);
    }
    let chosen: Vec<String> =
        all.iter().map(|one| format!("{}:{}", id(one), one["digest"].as_str().unwrap())).collect();
    let wrong = format!("{}:other", id(&all[2]));
    let fields =
        [("review", chosen[0].as_str()), ("review", &chosen[1]), ("review", &wrong), ("action", "approve")];
    let answer = ada.form("/console/reviews/decide", &fields).await;
    let said = flash(&answer);
    assert!(said.contains("2 messages approved. The message changed since"), "{said}");
    let fields = [("review", chosen[2].as_str()), ("action", "reject")];
    assert!(flash(&ada.form("/console/reviews/decide", &fields).await).contains("1 message rejected."));
    assert_eq!(ada.form("/console/reviews/decide", &[("action", "reject")]).await.status, 303);
    let page = ada.page(&at(&all[0], "")).await;
    assert!(page.contains("Undo approval"), "{page}");
    let answer = ada.form("/console/reviews/undo", &[("data", id(&all[0]))]).await;
    assert_eq!((answer.status, answer.header("location")), (303, at(&all[0], "").as_str()));
    let back = review(&ada, id(&all[0])).await;
    assert_eq!(back["state"], "pending");
    // The note of an approval brings the button that takes it back.
    let answer = ada.form(&at(&back, "/approve"), &[digest(&back)]).await;
    assert!(flash(&answer).contains("/console/reviews/undo"), "{}", flash(&answer));
}

/// rules: CONSOLE-22, REVIEW-16
#[both_engines]
async fn a_link_shows_without_a_session_and_decides_once(engine: Engine) {
    let server = Server::with(engine, sending()).await;
    let postbox = Person::admin(&server).await;
    let own = postbox.mailbox("Own").await;
    let ada = reachable(&server, &own.address).await;
    let mailbox = ada.mailbox("Support").await;
    assert!(ada.page("/console/reviews").await.contains("aria-pressed=\"false\" title=\"Email me"));
    assert_eq!(ada.form("/console/reviews/watch", &[("on", "1")]).await.status, 303);
    assert!(ada.page("/console/reviews").await.contains("aria-pressed=\"true\" title=\"Email me"));
    set_policy(&ada, json!({ "review": "all" })).await;
    let held = held(&ada, &mailbox, "By link", json!({})).await;
    let token = link_token(&server, &postbox, &own).await;
    let browser = server.anonymous().with("sec-fetch-site", "same-origin");
    for wrong in ["", "x", &token[1..]] {
        let answer = browser.get(&at(&held, &format!("?token={wrong}"))).await;
        if wrong.is_empty() {
            assert_eq!(answer.status, 303, "without a token it is the queue");
        } else {
            assert_eq!(answer.status, 404, "{wrong}");
            assert!(answer.text().contains("This link does not work any more"), "{}", answer.text());
        }
    }
    for _ in 0..2 {
        let answer = browser.get(&at(&held, &format!("?token={token}"))).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.text().contains("it is done.") && answer.text().contains("Approve and send"));
    }
    assert_eq!(review(&ada, id(&held)).await["state"], "pending");
    let fields = [("token", token.as_str()), digest(&held), ("action", "approve")];
    assert_eq!(form(&server.anonymous(), &at(&held, ""), &fields).await.status, 403, "from another site");
    let answer = form(&browser, &at(&held, ""), &fields).await;
    assert!(answer.status == 200 && answer.text().contains("<h1>Approved</h1>"), "{}", answer.text());
    let decided = review(&ada, id(&held)).await;
    assert_eq!((&decided["state"], &decided["decided_by"]), (&json!("approved"), &json!(ada.tenant.account)));
    assert_eq!(form(&browser, &at(&held, ""), &fields).await.status, 404);
    assert_eq!(browser.get(&at(&held, &format!("?token={token}"))).await.status, 404);
}

/// An admin whose account has the address of a mailbox here, so that mail to it can be read.
async fn reachable(server: &Server, address: &str) -> Person {
    let author = testkit::operator();
    let made = admin::create_account(
        &server.app,
        address.to_owned(),
        PASSWORD.to_owned(),
        None,
        Some(Plan::Enterprise),
        &author,
    );
    let made = made.await.unwrap();
    let key = server.new_key(&made.workspace_id, Role::Admin).await;
    let tenant = Tenant {
        account: made.account_id,
        email: address.to_owned(),
        workspace: made.workspace_id,
        owner_address: made.owner_address,
        key: server.key(&key.key),
        key_id: key.api_key.id,
    };
    Person { caller: server.log_in(&tenant).await, tenant }
}

/// The token of the link in the mail about a review.
async fn link_token(server: &Server, postbox: &Person, own: &Mailbox) -> String {
    worker::run_due(&server.app).await.unwrap();
    let all = postbox.tenant.key.get(&format!("/api/v1/mailboxes/{}/emails", own.id)).await.ok();
    let path = format!("/api/v1/mailboxes/{}/emails/{}", own.id, all["emails"][0]["id"].as_str().unwrap());
    let body = postbox.tenant.key.get(&path).await.ok()["body"].as_str().unwrap().to_owned();
    let (_, rest) = body.split_once("?token=").unwrap();
    rest.chars().take_while(|c| !c.is_whitespace()).collect()
}

/// rules: CONSOLE-23
#[both_engines]
async fn policies_are_set_with_a_form_and_tried_out(engine: Engine) {
    let server = Server::with(engine, sending()).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    let fields = [
        ("mode", "open"),
        ("new_recipient", "review"),
        ("allow", "@people.test\r\nno address"),
        ("block", "@evil.test"),
        ("per_hour", "5"),
        ("quiet_on", "on"),
        ("timezone", "UTC"),
        ("from", "22:00"),
        ("to", "22:00"),
        ("then", "review"),
        ("review", "none"),
        ("hours", "24"),
    ];
    let answer = ada.form("/console/send-policy", &fields).await;
    let page = answer.text();
    assert!(answer.status == 400 && page.contains("id=\"e-allow\""), "{page}");
    assert!(page.contains("no address") && page.contains("value=\"5\""), "{page}");
    let mut right = fields;
    right[2].1 = "@people.test";
    let page = ada.form("/console/send-policy", &right).await.text();
    assert!(page.contains("id=\"e-to\">"), "{page}");
    right[8].1 = "06:00";
    assert_eq!(ada.form("/console/send-policy", &right).await.header("location"), "/console/send-policy");
    let path = format!("/api/v1/workspaces/{}/send-policy", ada.tenant.workspace);
    let policy = ada.tenant.key.get(&path).await.ok();
    assert_eq!(
        policy["recipients"],
        json!({ "mode": "open", "allow": ["@people.test"], "block": ["@evil.test"] })
    );
    assert_eq!((&policy["caps"]["per_hour"], &policy["hold"]["hours"]), (&json!(5), &json!(24)));
    assert_eq!(
        policy["quiet_hours"],
        json!({ "timezone": "UTC", "from": "22:00", "to": "06:00", "then": "review" })
    );
    for (address, said) in [
        ("bob@people.test", "It would be sent at once."),
        ("bob@remote.test", "A person would decide about it first."),
        ("bob@evil.test", "It would be refused."),
    ] {
        let page = ada.page(&format!("/console/send-policy?mailbox={}&address={address}", mailbox.id)).await;
        assert!(page.contains(said), "{said} in {page}");
    }
    a_mailbox_has_a_stricter_policy(&ada, &mailbox, right.to_vec()).await;
}

/// A mailbox does as the workspace says, unless it has a stricter policy of its own.
async fn a_mailbox_has_a_stricter_policy(
    ada: &Person,
    mailbox: &Mailbox,
    mut fields: Vec<(&'static str, &'static str)>,
) {
    assert!(ada.page(&mailbox.at("settings")).await.contains("As the workspace says"));
    let page = ada.page(&mailbox.at("send-policy")).await;
    assert!(page.contains("Set a policy of its own") && page.contains("@evil.test"), "{page}");
    let mut wider = fields.clone();
    wider[1].1 = "allow";
    let page = ada.form(&mailbox.at("send-policy"), &wider).await.text();
    assert!(page.contains("id=\"e-new_recipient\">") && page.contains("would be wider"), "{page}");
    fields[1].1 = "block";
    assert_eq!(ada.form(&mailbox.at("send-policy"), &fields).await.status, 303);
    assert!(ada.page(&mailbox.at("settings")).await.contains("has a policy of its own"));
    let asked = ada.form(&mailbox.at("send-policy/delete"), &[]).await;
    assert!(asked.text().contains("Remove this send policy?"), "{}", asked.text());
    assert_eq!(ada.form(&mailbox.at("send-policy/delete"), &[("confirmed", "1")]).await.status, 303);
    assert!(ada.page(&mailbox.at("settings")).await.contains("As the workspace says"));
}

/// rules: CONSOLE-24
#[both_engines]
async fn a_writer_is_told_what_the_policy_does_with_a_message(engine: Engine) {
    let server = Server::with(engine, sending()).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    set_policy(&ada, json!({ "new_recipient": "review", "recipients": { "block": ["@evil.test"] } })).await;
    let fields = |to: &'static str| {
        [("mode", "new"), ("to", to), ("subject", "Plans"), ("html", "<p>Hello</p>"), ("action", "send")]
    };
    let answer = compose(&ada, &mailbox, &fields("grace@remote.test"), &[]).await;
    assert!(flash(&answer).contains("Your message is in review."), "{}", flash(&answer));
    let answer = compose(&ada, &mailbox, &fields("x@evil.test"), &[]).await;
    assert_eq!(answer.status, 403);
    assert!(answer.text().contains("To: the send policy does not allow this address."), "{}", answer.text());
    // It lies in a folder of its own, with a way to the review and none to change it.
    let page = ada.page(&mailbox.at("f/review")).await;
    assert!(page.contains("In review") && page.contains("Plans"), "{page}");
    let thread = page.split("/f/review/").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let page = ada.page(&mailbox.at(&format!("f/review/{thread}"))).await;
    assert!(
        page.contains("A person decides about this message") && page.contains("/console/reviews/rev_"),
        "{page}"
    );
    assert!(!page.contains("Edit draft") && !page.contains("value=\"trash\""), "{page}");
    let emails =
        ada.tenant.key.get(&format!("/api/v1/mailboxes/{}/emails?folder=review", mailbox.id)).await.ok();
    let draft = emails["emails"][0]["id"].as_str().unwrap().to_owned();
    let answer = ada.get(&mailbox.at(&format!("compose?draft={draft}"))).await;
    assert_eq!((answer.status, answer.header("location")), (303, mailbox.at("f/review").as_str()));
}
