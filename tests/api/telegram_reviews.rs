//! Messages in review in linked chats: what a person sees of them there, and who can decide.

use model::{Plan, Role};
use operations::{
    SendPolicySettings,
    telegram::{notices, updates},
};
use serde_json::{Value, json};
use testkit::{BotServer, Caller, Engine, Server, ServerOptions, Tenant, both_engines};

use super::{
    mails::Inbox,
    telegram::{CHAT, options},
};

/// A mailbox whose messages are all reviewed, linked with a chat.
struct Reviewed {
    server: Server,
    bot: BotServer,
    tenant: Tenant,
    inbox: Inbox,
    other: Inbox,
    person: Caller,
}

impl Reviewed {
    async fn new(engine: Engine) -> Self {
        Self::with(engine, SendPolicySettings::default()).await
    }

    async fn with(engine: Engine, send_policy: SendPolicySettings) -> Self {
        let bot = BotServer::start().await;
        let server = Server::with(engine, ServerOptions { send_policy, ..options(&bot) }).await;
        let tenant = server.tenant(Plan::Enterprise).await;
        let inbox = Inbox::of(&tenant).await;
        let other = inbox.another().await;
        inbox.put("send-policy", json!({ "review": "all" })).await.ok();
        let person = server.log_in(&tenant).await;
        let reviewed = Self { server, bot, tenant, inbox, other, person };
        reviewed.link(&reviewed.person).await;
        reviewed
    }

    /// Links the mailbox with the chat, by a code that this caller makes.
    async fn link(&self, caller: &Caller) {
        let made = caller.post(&format!("{}/telegram/link", self.inbox.path), json!({})).await.ok();
        self.bot.write(CHAT, &format!("/start {}", made["code"].as_str().unwrap()));
        self.hear().await;
    }

    async fn hear(&self) {
        assert!(updates::poll(&self.server.app, 0).await.unwrap());
    }

    /// Sends a message, which is in review then.
    async fn send(&self, caller: &Caller, subject: &str) -> Value {
        let mail =
            json!({ "to": self.other.address, "subject": subject, "text": "Hello /stop https://x.test" });
        let sent = caller.post(&format!("{}/emails", self.inbox.path), mail).await.ok();
        assert_eq!(sent["status"], "in_review", "{sent}");
        sent
    }

    /// The next notices.
    async fn told(&self) -> Vec<Value> {
        let before = self.bot.calls("sendMessage").len();
        notices::run_due(&self.server.app).await.unwrap();
        self.bot.calls("sendMessage").split_off(before)
    }

    async fn review(&self, sent: &Value) -> Value {
        let id = sent["review_id"].as_str().unwrap();
        self.inbox.key.get(&format!("/api/v1/workspaces/{}/reviews/{id}", self.inbox.workspace)).await.ok()
    }

    /// Presses a button, and returns the answer to it.
    async fn press(&self, data: &str) -> String {
        self.bot.press(CHAT, data);
        self.hear().await;
        let said = self.bot.calls("answerCallbackQuery").pop().unwrap();
        said["text"].as_str().unwrap().to_owned()
    }

    async fn arrived(&self) -> i64 {
        self.other.get("emails?folder=inbox").await["totalCount"].as_i64().unwrap()
    }
}

/// What the button says, by its label.
fn button(notice: &Value, label: &str) -> String {
    let row = notice["reply_markup"]["inline_keyboard"][0].as_array().unwrap();
    let found = row.iter().find(|button| button["text"] == label).unwrap();
    found["callback_data"].as_str().unwrap().to_owned()
}

/// rules: REVIEW-17, REVIEW-18, REVIEW-19
#[both_engines]
async fn a_person_decides_in_the_chat_they_linked(engine: Engine) {
    let reviewed = Reviewed::new(engine).await;
    let sent = reviewed.send(&reviewed.inbox.key, "Offer").await;
    let notice = reviewed.told().await.remove(0);
    let text = notice["text"].as_str().unwrap();
    let head = format!("A message from {} needs a decision\n", reviewed.inbox.address);
    let review = reviewed.review(&sent).await;
    let quoted =
        format!("By: test\nTo: {}\nSubject: Offer\n\nHello /stop https://x.test", reviewed.other.address);
    let tail = format!(
        "\nWhy: all messages are reviewed.\nWithout a decision it is rejected at 2026-07-17 09:00 UTC.\n{}/console/reviews/{}",
        reviewed.server.app.settings().public_url,
        review["id"].as_str().unwrap()
    );
    assert_eq!(text, format!("{head}{quoted}{tail}"));
    // Nothing that was written can be tapped.
    assert_eq!(notice["entities"], json!([{ "type": "pre", "offset": head.len(), "length": quoted.len() }]));
    let (approve, reject) = (button(&notice, "Approve"), button(&notice, "Reject"));
    assert!(approve.len() <= 64 && reject.len() <= 64);
    assert_eq!(reviewed.arrived().await, 0);

    assert_eq!(reviewed.press(&approve).await, "Approved. It is on its way.");
    assert_eq!(reviewed.arrived().await, 1);
    let review = reviewed.review(&sent).await;
    assert_eq!((&review["state"], &review["decided_by"]), (&json!("approved"), &json!("telegram:Ada L")));
    for data in [&approve, &reject] {
        assert_eq!(reviewed.press(data).await, "Decided already: it was approved.");
    }
    assert_eq!(reviewed.arrived().await, 1);
    // Nor is a message of the mailbox itself answered.
    reviewed.bot.reply(CHAT, reviewed.bot.last_message(), "Better not");
    reviewed.hear().await;
    assert!(
        reviewed.bot.texts(CHAT).pop().unwrap().starts_with("This is about a message of the mailbox itself")
    );

    let sent = reviewed.send(&reviewed.inbox.key, "Second").await;
    let notice = reviewed.told().await.remove(0);
    let pressed = reviewed.bot.press(CHAT, &button(&notice, "Reject"));
    reviewed.hear().await;
    updates::handle(&reviewed.server.app, &pressed).await.unwrap();
    let answers = reviewed.bot.calls("answerCallbackQuery");
    let said = &answers[answers.len() - 2]["text"];
    assert_eq!(said, "Rejected. It is a draft again, and not sent.");
    assert_eq!(reviewed.review(&sent).await["state"], "rejected");
    assert_eq!(reviewed.arrived().await, 1);
}

/// rules: REVIEW-18
#[both_engines]
async fn only_an_admin_decides_by_a_chat(engine: Engine) {
    let reviewed = Reviewed::new(engine).await;
    reviewed.link(&reviewed.inbox.key).await;
    let first = reviewed.send(&reviewed.inbox.key, "First").await;
    let notice = reviewed.told().await.remove(0);
    assert!(notice.get("reply_markup").is_none(), "a key linked it");
    assert!(notice["text"].as_str().unwrap().contains("This chat cannot decide"), "{notice}");

    reviewed.link(&reviewed.person).await;
    let second = reviewed.send(&reviewed.inbox.key, "Second").await;
    let approve = button(&reviewed.told().await.remove(0), "Approve");
    let (workspace, account) = (&reviewed.tenant.workspace, reviewed.tenant.account.clone());
    let demoted = reviewed
        .server
        .app
        .db()
        .write(workspace, async move |tx| store::members::set_role(tx, &account, Role::Member).await);
    demoted.await.unwrap();
    assert_eq!(reviewed.press(&approve).await, "This chat cannot decide. Decide in the console.");
    for sent in [first, second] {
        assert_eq!(reviewed.review(&sent).await["state"], "pending");
    }
    reviewed.send(&reviewed.inbox.key, "Third").await;
    assert!(reviewed.told().await.remove(0).get("reply_markup").is_none(), "a member linked it");
}

/// rules: REVIEW-11, REVIEW-18
#[both_engines]
async fn a_second_person_decides_about_what_the_first_one_sent(engine: Engine) {
    let settings = SendPolicySettings { second_person: true, ..SendPolicySettings::default() };
    let reviewed = Reviewed::with(engine, settings).await;
    reviewed.send(&reviewed.person, "Own").await;
    assert!(reviewed.told().await.remove(0).get("reply_markup").is_none());
    reviewed.send(&reviewed.inbox.key, "By a key").await;
    assert!(reviewed.told().await.remove(0).get("reply_markup").is_some());
}

/// rules: REVIEW-7, REVIEW-19
#[both_engines]
async fn a_button_says_why_it_has_no_effect(engine: Engine) {
    let reviewed = Reviewed::new(engine).await;
    let sent = reviewed.send(&reviewed.inbox.key, "Offer").await;
    let notice = reviewed.told().await.remove(0);
    let (approve, reject) = (button(&notice, "Approve"), button(&notice, "Reject"));
    let mut changed = approve.clone();
    changed.replace_range(changed.len() - 4.., "zzzz");
    let cut = approve.rsplit_once(':').unwrap().0.to_owned();
    for data in [changed, cut.clone(), format!("{cut}:")] {
        let said = reviewed.press(&data).await;
        assert_eq!(said, "The message changed since this notice. Look at it in the console.");
    }
    let policy = |fields: Value| {
        let mut policy = json!({ "review": "all" });
        policy.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        policy
    };
    for (fields, expected) in [
        (json!({ "recipients": { "block": ["*"] } }), "The send policy forbids it by now."),
        (json!({ "caps": { "per_day": 0 } }), "A cap of the send policy has no room for it yet."),
    ] {
        reviewed.inbox.put("send-policy", policy(fields)).await.ok();
        let said = reviewed.press(&approve).await;
        assert!(said.starts_with(expected), "{said}");
        assert_eq!(reviewed.review(&sent).await["state"], "pending");
    }
    let quiet = json!({ "timezone": "UTC", "from": "08:00", "to": "10:30" });
    reviewed.inbox.put("send-policy", policy(json!({ "quiet_hours": quiet }))).await.ok();
    assert_eq!(reviewed.press(&approve).await, "Approved. It leaves at 2026-07-14 10:30 UTC.");
    assert_eq!(reviewed.arrived().await, 0);

    // What was decided elsewhere, or nobody decides any more.
    reviewed.inbox.put("send-policy", policy(json!({}))).await.ok();
    for (verb, caller, said) in [
        ("withdraw", &reviewed.inbox.key, "It was withdrawn. Nothing is sent."),
        ("reject", &reviewed.person, "Decided already: it was rejected."),
    ] {
        let sent = reviewed.send(&reviewed.inbox.key, verb).await;
        let reject = button(&reviewed.told().await.remove(0), "Reject");
        let id = sent["review_id"].as_str().unwrap();
        let path = format!("/api/v1/workspaces/{}/reviews/{id}/{verb}", reviewed.inbox.workspace);
        caller.post(&path, json!({})).await.ok();
        assert_eq!(reviewed.press(&reject).await, said);
    }
    // It is about a message that came back as a draft, not about its next review.
    let drafts = reviewed.inbox.get("drafts").await["drafts"].clone();
    let id = drafts[0]["id"].as_str().unwrap();
    reviewed.inbox.post(&format!("drafts/{id}/send"), json!({})).await.ok();
    assert_eq!(reviewed.told().await.len(), 1);
    assert_ne!(reviewed.press(&reject).await, "Rejected. It is a draft again, and not sent.");
    // Who is told late is not asked about what is decided.
    let sent = reviewed.send(&reviewed.inbox.key, "Late").await;
    let path = format!(
        "/api/v1/workspaces/{}/reviews/{}/withdraw",
        reviewed.inbox.workspace,
        sent["review_id"].as_str().unwrap()
    );
    reviewed.inbox.key.post(&path, json!({})).await.ok();
    assert_eq!(reviewed.told().await, Vec::<Value>::new());
}

/// rules: REVIEW-17
#[both_engines]
async fn a_notice_hides_neither_recipients_nor_text(engine: Engine) {
    let reviewed = Reviewed::new(engine).await;
    let many: Vec<String> = (0..30).map(|number| format!("person-{number}@agents.test")).collect();
    let mail = json!({
        "to": many, "cc": reviewed.other.address, "subject": "😀".repeat(100), "text": "wörds 😀 ".repeat(3_000),
        "html": "<p>Something else</p>",
        "attachments": [{ "filename": "plan.txt", "type": "text/plain", "content": "aGVsbG8=" }]
    });
    reviewed.inbox.post("emails", mail).await.ok();
    let notice = reviewed.told().await.remove(0);
    let text = notice["text"].as_str().unwrap();
    assert!(text.encode_utf16().count() <= 4_096, "{}", text.len());
    for part in [
        "To (30): person-0@agents.test, ".to_owned(),
        format!("Cc: {}", reviewed.other.address),
        "Files: plan.txt".to_owned(),
        "[More in the console]".to_owned(),
        "Its plain text and its HTML differ".to_owned(),
    ] {
        assert!(text.contains(&part), "{part}: {text}");
    }
    let new = json!({ "new_recipient": "review" });
    reviewed.inbox.put("send-policy", new).await.ok();
    let mail = json!({ "to": reviewed.other.address, "subject": "Hi", "text": "Hello" });
    reviewed.inbox.post("emails", mail).await.ok();
    let notice = reviewed.told().await.remove(0);
    let why = format!("Why: never written to {} before.", reviewed.other.address);
    assert!(notice["text"].as_str().unwrap().contains(&why), "{notice}");
}
