//! What linked chats are told, and what they can do with it.

use model::EmailId;
use operations::telegram::{notices, updates};
use serde_json::{Value, json};
use testkit::{Engine, ServerOptions, both_engines};

use super::{
    mails::{flagged, html, plain, skipped},
    telegram::{CHAT, Linked, options},
};

impl Linked {
    async fn receive(&self, subject: &str, text: &str) -> EmailId {
        self.server.receive(&self.inbox.address, plain(subject, text)).await
    }

    async fn tell(&self) -> usize {
        notices::run_due(&self.server.app).await.unwrap()
    }
}

fn button(notice: &Value, index: usize) -> &str {
    notice["reply_markup"]["inline_keyboard"][0][index]["callback_data"].as_str().unwrap()
}

/// rules: TELE-5
#[both_engines]
async fn a_linked_chat_is_told_of_new_mail(engine: Engine) {
    let linked = Linked::unlinked(engine).await;
    linked.receive("Before", "Not to be told").await;
    let code = linked.code().await;
    linked.bot.write(CHAT, &format!("/start {code}"));
    linked.hear().await;
    assert_eq!(linked.tell().await, 0);
    linked.receive("Lunch?", "Noon at https://cafe.example/menu or /stop").await;
    let other = linked.inbox.another().await;
    linked.server.receive(&other.address, plain("Other", "Another mailbox")).await;
    assert_eq!((linked.tell().await, linked.tell().await), (1, 0));
    let notice = linked.bot.notices(CHAT).remove(0);
    let text = notice["text"].as_str().unwrap();
    let head = format!("New mail to {}\n", linked.inbox.address);
    assert_eq!(
        text,
        format!("{head}Ann <ann@remote.test>\nLunch?\n\nNoon at https://cafe.example/menu or /stop")
    );
    // Nothing in it can be tapped, and nothing is looked up.
    assert_eq!(notice["link_preview_options"], json!({ "is_disabled": true }));
    assert!(notice.get("parse_mode").is_none());
    let block = &notice["entities"][0];
    assert_eq!((&block["type"], &block["offset"]), (&json!("pre"), &json!(head.len())));
    assert_eq!(block["length"], text.len() - head.len());
    assert!(button(&notice, 0).len() <= 64);
}

/// rules: TELE-5
#[both_engines]
async fn what_is_not_clean_is_withheld(engine: Engine) {
    let linked = Linked::new(engine).await;
    let page = "<p>Hello</p><p style=\"display:none\">HIDDEN words</p>";
    linked.server.receive(&linked.inbox.address, html("Shown", page)).await;
    linked.server.receive(&linked.inbox.address, flagged("Evil subject")).await;
    linked.server.receive(&linked.inbox.address, skipped("Odd subject")).await;
    let waiting = linked.receive("Waiting", "For the scanner").await;
    linked.inbox.set_scan(&linked.server, &waiting, None).await;
    let spam = linked.receive("Spam", "Buy!").await;
    linked.inbox.post(&format!("emails/{spam}/move"), json!({ "folderId": "spam" })).await.ok();
    assert_eq!(linked.tell().await, 3);
    let texts = linked.bot.texts(CHAT).split_off(1);
    assert!(texts[0].contains("Hello") && !texts[0].contains("HIDDEN"), "{texts:?}");
    for text in &texts[1..] {
        assert!(text.contains("is withheld"), "{text}");
        for secret in ["subject", "remote.test", "EICAR", "file"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
    // A long text is cut, letters of any kind count right.
    linked.receive("Long 😀", &"wörds 😀 ".repeat(3_000)).await;
    linked.tell().await;
    let notice = linked.bot.notices(CHAT).pop().unwrap();
    let text = notice["text"].as_str().unwrap();
    let units = text.encode_utf16().count();
    assert!(units < 4096 && text.ends_with('…'), "{units}");
    let block = &notice["entities"][0];
    assert_eq!(block["offset"].as_u64().unwrap() + block["length"].as_u64().unwrap(), units as u64);
}

/// rules: TELE-5
#[both_engines]
async fn buttons_and_answers_act_on_the_mail(engine: Engine) {
    let linked = Linked::new(engine).await;
    let one = linked.receive("Lunch?", "Noon?").await;
    linked.tell().await;
    let notice = linked.bot.notices(CHAT).remove(0);
    let message = linked.bot.last_message();
    let used = async || {
        let path = format!("/api/v1/workspaces/{}/usage/credits", linked.inbox.workspace);
        linked.inbox.key.get(&path).await.ok()["used"].as_i64().unwrap()
    };
    let before = used().await;
    linked.bot.press(CHAT, button(&notice, 0));
    linked.hear().await;
    let read = async || linked.inbox.get(&format!("emails/{one}")).await["read"].clone();
    assert_eq!(read().await, true);
    linked.bot.press(CHAT, button(&notice, 1));
    linked.hear().await;
    assert_eq!(linked.inbox.get(&format!("emails/{one}")).await["folder_id"], "archive");
    let said: Vec<Value> =
        linked.bot.calls("answerCallbackQuery").into_iter().map(|call| call["text"].clone()).collect();
    assert_eq!(said, ["Marked as read.", "Archived."]);

    let reply = linked.bot.reply(CHAT, message, "Yes, gladly.");
    linked.hear().await;
    // An update that comes again does nothing again.
    updates::handle(&linked.server.app, &reply).await.unwrap();
    let drafts = linked.inbox.get("drafts").await;
    let drafts = drafts["drafts"].as_array().unwrap();
    assert_eq!(drafts.len(), 1);
    let draft = linked.inbox.get(&format!("drafts/{}", drafts[0]["id"].as_str().unwrap())).await;
    assert_eq!((&draft["subject"], &draft["body"]), (&json!("Re: Lunch?"), &json!("Yes, gladly.")));
    assert!(draft["to"].to_string().contains("ann@remote.test"), "{draft}");
    let original = linked.inbox.get(&format!("emails/{one}")).await;
    assert_eq!(draft["thread_id"], original["thread_id"]);
    assert!(linked.bot.texts(CHAT).last().unwrap().contains("Saved as a draft"));
    assert_eq!(used().await - before, 6, "only our own looks were charged");

    // Made-up buttons and messages of others lead nowhere.
    for data in ["r:", "r:made-up", "x", "", "a:%"] {
        linked.bot.press(CHAT, data);
    }
    linked.bot.reply(CHAT, 999, "To nobody");
    linked.bot.reply(99, message, "From a stranger");
    linked.bot.write(CHAT, "just words");
    linked.hear().await;
    assert_eq!(linked.inbox.get("drafts").await["drafts"].as_array().unwrap().len(), 1);
    linked.inbox.delete(&format!("emails/{one}?permanent=true")).await.ok();
    linked.bot.press(CHAT, button(&notice, 0));
    linked.bot.reply(CHAT, message, "Too late");
    linked.hear().await;
    assert_eq!(linked.bot.calls("answerCallbackQuery").last().unwrap()["text"], "The mail is gone.");
    assert_eq!(linked.bot.texts(CHAT).last().unwrap(), "The mail is gone.");
}

/// rules: TELE-5
#[both_engines]
async fn faults_of_the_bots_server_lose_and_repeat_nothing(engine: Engine) {
    let linked = Linked::new(engine).await;
    for number in 1..=3 {
        linked.receive(&format!("Mail {number}"), "Text").await;
    }
    let limited = json!({ "ok": false, "error_code": 429, "description": "Too Many Requests", "parameters": { "retry_after": 30 } });
    linked.bot.fail("sendMessage", 429, limited);
    assert_eq!(linked.tell().await, 0);
    linked.server.clock.advance(29);
    assert_eq!(linked.tell().await, 0, "the server asked for 30 seconds");
    linked.server.clock.advance(1);
    linked.bot.fail("sendMessage", 500, json!("oops"));
    assert_eq!(linked.tell().await, 0);
    linked.server.clock.advance(10);
    assert_eq!(linked.tell().await, 3);
    // A notice that is never taken is passed over.
    linked.receive("Mail 4", "Text").await;
    linked.receive("Mail 5", "Text").await;
    linked.bot.fail(
        "sendMessage",
        400,
        json!({ "ok": false, "error_code": 400, "description": "Bad Request: message is too long" }),
    );
    assert_eq!(linked.tell().await, 1);
    let subjects: Vec<String> =
        linked.bot.texts(CHAT)[1..].iter().map(|text| text.lines().nth(2).unwrap().to_owned()).collect();
    assert_eq!(subjects, ["Mail 1", "Mail 2", "Mail 3", "Mail 5"]);
}

/// rules: TELE-1, TELE-5
#[both_engines]
async fn a_chat_that_blocks_the_bot_is_shown_and_left_alone(engine: Engine) {
    let linked = Linked::new(engine).await;
    linked.receive("Mail 1", "Text").await;
    let blocked =
        json!({ "ok": false, "error_code": 403, "description": "Forbidden: bot was blocked by the user" });
    linked.bot.fail("sendMessage", 403, blocked);
    assert_eq!(linked.tell().await, 0);
    let link = linked.link().await;
    assert_eq!((&link["linked"], &link["status"]), (&json!(true), &json!("blocked")));
    linked.server.clock.advance(3600);
    assert_eq!(linked.tell().await, 0);
    linked.bot.write(CHAT, "/start");
    linked.hear().await;
    assert_eq!(linked.link().await["status"], "active");
    linked.receive("Mail 2", "Text").await;
    assert_eq!(linked.tell().await, 1);
    assert!(linked.bot.texts(CHAT).last().unwrap().contains("Mail 2"));
}

/// Several nodes and many mails: every one is told once, in order.
/// rules: TELE-5
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_share_the_work_without_repeating_it(engine: Engine) {
    let linked = Linked::new(engine).await;
    let second = linked.server.another_node(ServerOptions { seed: 2, ..options(&linked.bot) }).await;
    for number in 0..12 {
        linked.receive(&format!("Mail {number}"), "Text").await;
        let (one, two) = tokio::join!(notices::run_due(&linked.server.app), notices::run_due(&second.app));
        one.unwrap();
        two.unwrap();
    }
    linked.tell().await;
    let subjects: Vec<String> =
        linked.bot.texts(CHAT)[1..].iter().map(|text| text.lines().nth(2).unwrap().to_owned()).collect();
    assert_eq!(subjects, (0..12).map(|number| format!("Mail {number}")).collect::<Vec<_>>());
}
