//! The Telegram page of a mailbox.

use operations::{BotUpdates, telegram::updates};
use testkit::{BotServer, Engine, Server, ServerOptions, both_engines};

use super::person::Person;

/// rules: TELE-1, TELE-2, TELE-3
#[both_engines]
async fn a_chat_is_linked_and_unlinked_by_hand(engine: Engine) {
    let bot = BotServer::start().await;
    let telegram = Some((bot.url(), BotUpdates::Polling));
    let server = Server::with(engine, ServerOptions { telegram, ..ServerOptions::default() }).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    assert!(ada.page(&mailbox.at("telegram")).await.contains("No chat linked"));
    let made = ada.form(&mailbox.at("telegram/link"), &[]).await;
    assert_eq!(made.status, 200);
    let text = made.text();
    let code = text.split("https://t.me/agent_test_bot?start=").nth(1).unwrap().split('"').next().unwrap();
    assert!(text.contains(&format!("/start {code}")));
    assert!(!ada.page(&mailbox.at("telegram")).await.contains(code), "it is shown once");
    bot.write(5, &format!("/start {code}"));
    updates::poll(&server.app, 0).await.unwrap();
    let page = ada.page(&mailbox.at("telegram")).await;
    assert!(page.contains("Ada L") && page.contains("Active"), "{page}");
    assert_eq!(ada.form(&mailbox.at("telegram/unlink"), &[("confirmed", "1")]).await.status, 303);
    assert!(ada.page(&mailbox.at("telegram")).await.contains("No chat linked"));
    // Without a bot the page says so.
    let server = Server::start(engine).await;
    let ada = Person::admin(&server).await;
    let mailbox = ada.mailbox("Support").await;
    assert!(ada.page(&mailbox.at("telegram")).await.contains("telegram.bot_token"));
    let refused = ada.form(&mailbox.at("telegram/link"), &[]).await.text();
    assert!(refused.contains("no Telegram bot"), "{refused}");
}
