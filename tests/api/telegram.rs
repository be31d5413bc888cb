//! Linking a chat with a mailbox, and ending it.

use http::Method;
use operations::{BotUpdates, telegram::updates};
use serde_json::{Value, json};
use testkit::{BotServer, Engine, Server, ServerOptions, both_engines};

use super::mails::Inbox;

pub(super) const CHAT: i64 = 4711;
const SECRET: &str = "a-secret-of-the-hook-1234";

/// A service with a bot, and a mailbox.
pub(super) struct Linked {
    pub(super) server: Server,
    pub(super) bot: BotServer,
    pub(super) inbox: Inbox,
}

pub(super) fn options(bot: &BotServer) -> ServerOptions {
    ServerOptions { telegram: Some((bot.url(), BotUpdates::Polling)), ..ServerOptions::default() }
}

impl Linked {
    /// Not linked yet.
    pub(super) async fn unlinked(engine: Engine) -> Self {
        let bot = BotServer::start().await;
        let server = Server::with(engine, options(&bot)).await;
        let inbox = Inbox::new(&server).await;
        Self { server, bot, inbox }
    }

    /// Linked with the chat.
    pub(super) async fn new(engine: Engine) -> Self {
        let linked = Self::unlinked(engine).await;
        let code = linked.code().await;
        linked.bot.write(CHAT, &format!("/start {code}"));
        linked.hear().await;
        assert_eq!(linked.link().await["linked"], true);
        linked
    }

    pub(super) async fn code(&self) -> String {
        let made = self.inbox.post("telegram/link", json!({})).await.ok();
        made["code"].as_str().unwrap().to_owned()
    }

    pub(super) async fn hear(&self) {
        assert!(updates::poll(&self.server.app, 0).await.unwrap());
    }

    pub(super) async fn link(&self) -> Value {
        self.inbox.get("telegram").await
    }
}

/// rules: TELE-1, TELE-2
#[both_engines]
async fn a_code_links_a_chat_once(engine: Engine) {
    let linked = Linked::unlinked(engine).await;
    assert_eq!(linked.link().await, json!({ "linked": false }));
    let made = linked.inbox.post("telegram/link", json!({})).await;
    assert_eq!(made.header("x-credits-charged"), "2");
    let made = made.ok();
    let code = made["code"].as_str().unwrap();
    // 43 characters of 62: 256 bits.
    assert!(code.len() == 43 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{code}");
    assert_eq!(made["url"], format!("https://t.me/agent_test_bot?start={code}"));
    assert_eq!(made["expires_at"], "2026-07-14T09:10:00.000Z");
    linked.bot.write(CHAT, "/start nonsense");
    linked.hear().await;
    assert_eq!(linked.link().await["linked"], false);
    linked.bot.write_in_group(-5, &format!("/start {code}"));
    linked.hear().await;
    assert_eq!(linked.link().await["linked"], false, "a group is no private chat");

    linked.bot.write(CHAT, &format!("/start {code}"));
    linked.hear().await;
    let link = linked.link().await;
    assert_eq!(
        link,
        json!({ "linked": true, "chat_title": "Ada L", "linked_at": "2026-07-14T09:00:00.000Z", "status": "active" })
    );
    assert!(linked.bot.texts(CHAT).last().unwrap().contains(&linked.inbox.address));
    // Once is enough.
    linked.bot.write(99, &format!("/start {code}"));
    linked.hear().await;
    assert!(linked.bot.texts(99)[0].contains("does not work"));
    linked.bot.write(CHAT, "/start");
    linked.hear().await;
    assert_eq!(linked.link().await, link);
    // Neither code nor token is stored or told in the open.
    let stored = linked.server.app.db().system_read(async |tx| {
        tx.all::<(String, String)>("SELECT chat_title, mailbox_id FROM telegram_link", &[]).await
    });
    assert_eq!(stored.await.unwrap().len(), 1);
}

/// rules: TELE-2
#[both_engines]
async fn a_code_ends_after_ten_minutes_and_with_the_next(engine: Engine) {
    let linked = Linked::unlinked(engine).await;
    let (first, second) = (linked.code().await, linked.code().await);
    linked.bot.write(CHAT, &format!("/start {first}"));
    linked.hear().await;
    assert_eq!(linked.link().await["linked"], false);
    linked.server.clock.advance(600);
    linked.bot.write(CHAT, &format!("/start {second}"));
    linked.hear().await;
    assert_eq!(linked.link().await["linked"], false);
    let third = linked.code().await;
    linked.server.clock.advance(599);
    linked.bot.write(CHAT, &format!("/start {third}"));
    linked.hear().await;
    assert_eq!(linked.link().await["linked"], true);
}

/// rules: TELE-3
#[both_engines]
async fn removing_a_link_ends_all_access(engine: Engine) {
    let linked = Linked::new(engine).await;
    let email =
        linked.server.receive(&linked.inbox.address, super::mails::plain("Hello", "How are you?")).await;
    assert_eq!(operations::telegram::notices::run_due(&linked.server.app).await.unwrap(), 1);
    let notice = linked.bot.notices(CHAT).remove(0);
    let button =
        notice["reply_markup"]["inline_keyboard"][0][0]["callback_data"].as_str().unwrap().to_owned();
    let message = linked.bot.last_message();
    let waiting = linked.code().await;

    let gone = linked.inbox.delete("telegram").await;
    assert_eq!((gone.status, gone.text(), gone.header("x-credits-charged")), (200, "{}".to_owned(), "2"));
    let again = linked.inbox.delete("telegram").await;
    assert_eq!((again.status, again.text()), (200, "{}".to_owned()));
    assert_eq!(linked.link().await, json!({ "linked": false }));

    linked.server.receive(&linked.inbox.address, super::mails::plain("More", "Secret")).await;
    assert_eq!(operations::telegram::notices::run_due(&linked.server.app).await.unwrap(), 0);
    linked.bot.press(CHAT, &button);
    linked.bot.reply(CHAT, message, "An answer");
    linked.bot.write(CHAT, &format!("/start {waiting}"));
    linked.hear().await;
    assert_eq!(linked.inbox.get(&format!("emails/{email}")).await["read"], false);
    assert_eq!(linked.inbox.get("drafts").await["drafts"], json!([]));
    assert_eq!(linked.link().await["linked"], false, "a code that was made before is gone too");
    assert_eq!(linked.bot.notices(CHAT).len(), 1);

    // The chat can end it as well, for all its mailboxes.
    let linked = Linked::new(engine).await;
    linked.bot.write(CHAT, "/stop");
    linked.hear().await;
    assert_eq!(linked.link().await, json!({ "linked": false }));
    linked.inbox.post("telegram", json!({})).await.expect(405, "method_not_allowed");
    let missing = linked.inbox.key.delete("/api/v1/mailboxes/nobody@agents.test/telegram").await;
    missing.expect(404, "not_found");
}

/// A chat that a mailbox was linked with before has no say any more.
/// rules: TELE-3
#[both_engines]
async fn a_new_chat_takes_the_place_of_the_old_one(engine: Engine) {
    let linked = Linked::new(engine).await;
    linked.server.receive(&linked.inbox.address, super::mails::plain("Hello", "How are you?")).await;
    operations::telegram::notices::run_due(&linked.server.app).await.unwrap();
    let notice = linked.bot.notices(CHAT).remove(0);
    let button =
        notice["reply_markup"]["inline_keyboard"][0][1]["callback_data"].as_str().unwrap().to_owned();
    let code = linked.code().await;
    linked.bot.write(12, &format!("/start {code}"));
    linked.bot.press(CHAT, &button);
    // Nor does the button work from another chat.
    linked.bot.press(12, &button);
    linked.hear().await;
    let said = linked.bot.calls("answerCallbackQuery");
    assert!(
        said.len() == 2 && said.iter().all(|said| said["text"] == "This notice does not work any more."),
        "{said:?}"
    );
    linked.server.receive(&linked.inbox.address, super::mails::plain("New", "For the new chat")).await;
    operations::telegram::notices::run_due(&linked.server.app).await.unwrap();
    assert_eq!((linked.bot.notices(CHAT).len(), linked.bot.notices(12).len()), (1, 1));
}

/// rules: TELE-2
#[both_engines]
async fn without_a_bot_that_answers_there_is_no_code(engine: Engine) {
    let server = Server::start(engine).await;
    let inbox = Inbox::new(&server).await;
    let refused = inbox.post("telegram/link", json!({})).await;
    refused.expect(503, "telegram_unavailable");
    assert!(refused.json()["fix"].as_str().unwrap().contains("telegram.bot_token"));
    assert_eq!(refused.header("x-credits-charged"), "0");
    assert_eq!(inbox.get("telegram").await, json!({ "linked": false }));
    assert_eq!(inbox.delete("telegram").await.text(), "{}");

    let linked = Linked::unlinked(engine).await;
    linked.bot.fail("getMe", 502, json!("bad gateway"));
    linked.inbox.post("telegram/link", json!({})).await.expect(503, "telegram_unavailable");
    linked.code().await;
}

/// rules: TELE-4
#[both_engines]
async fn the_hook_takes_updates_with_the_secret_only(engine: Engine) {
    let bot = BotServer::start().await;
    let telegram = Some((bot.url(), BotUpdates::Webhook(SECRET.to_owned())));
    let server = Server::with(engine, ServerOptions { telegram, ..ServerOptions::default() }).await;
    let inbox = Inbox::new(&server).await;
    let made = inbox.post("telegram/link", json!({})).await.ok();
    let update = bot.write(CHAT, &format!("/start {}", made["code"].as_str().unwrap()));
    let name = "x-telegram-bot-api-secret-token";
    for caller in [
        server.anonymous(),
        server.anonymous().with(name, ""),
        server.anonymous().with(name, "a-secret-of-the-hook-1235"),
        inbox.key.clone(),
    ] {
        caller.post("/hooks/telegram", update.clone()).await.expect(401, "unauthorized");
    }
    assert_eq!(inbox.get("telegram").await["linked"], false);
    let telegram = server.anonymous().with(name, SECRET);
    for _ in 0..2 {
        let taken = telegram.post("/hooks/telegram", update.clone()).await;
        assert_eq!((taken.status, taken.text()), (200, "{}".to_owned()));
    }
    assert_eq!(inbox.get("telegram").await["linked"], true);
    for odd in [json!([]), json!({}), json!({ "update_id": "1" })] {
        telegram.post("/hooks/telegram", odd).await.expect(400, "validation_failed");
    }
    for odd in [
        json!({ "update_id": 8 }),
        json!({ "update_id": 9, "message": { "chat": 1 } }),
        json!({ "update_id": 10, "callback_query": {} }),
    ] {
        assert_eq!(telegram.post("/hooks/telegram", odd).await.status, 200);
    }
    // A bot that asks has no hook.
    let polling = Server::with(engine, options(&bot)).await;
    polling.anonymous().with(name, SECRET).post("/hooks/telegram", update).await.expect(404, "not_found");
    server.anonymous().send(Method::GET, "/hooks/telegram", None).await.expect(405, "method_not_allowed");
}

/// Only one node asks, and goes on where the last one stopped.
/// rules: TELE-4
#[both_engines]
async fn one_node_asks_at_a_time(engine: Engine) {
    let linked = Linked::unlinked(engine).await;
    let second = linked.server.another_node(ServerOptions { seed: 2, ..options(&linked.bot) }).await;
    linked.hear().await;
    assert!(!updates::poll(&second.app, 0).await.unwrap());
    let code = linked.code().await;
    linked.bot.write(CHAT, &format!("/start {code}"));
    linked.hear().await;
    // The first is lost; the second takes over without hearing anything twice.
    linked.server.clock.advance(61);
    assert!(updates::poll(&second.app, 0).await.unwrap());
    assert_eq!(linked.bot.calls("getUpdates").last().unwrap()["offset"], 2);
    assert_eq!(linked.bot.texts(CHAT).len(), 1);
}
