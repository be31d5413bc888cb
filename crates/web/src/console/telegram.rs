//! A mailbox's Telegram page: linking a chat, showing the link, removing it.

use askama::Template;
use axum::{
    Router,
    extract::{Path, RawQuery, Request},
    response::Response,
    routing::{get, post},
};
use model::telegram::{TelegramCode, TelegramStatus};
use operations::{Result, mailboxes, telegram};

use super::{
    confirm::{Question, confirmed},
    fields::Fields,
    links::encoded,
    page::{self, html},
    shell::Shell,
    sidebar::fill_sidebar,
    time::When,
    visit::Visit,
};
use crate::State;

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/m/{mailbox}/telegram", get(show_page))
        .route("/console/m/{mailbox}/telegram/link", post(link))
        .route("/console/m/{mailbox}/telegram/unlink", post(unlink))
}

#[derive(Template)]
#[template(path = "console/telegram.html")]
struct TelegramPage {
    shell: Shell,
    id: String,
    email: String,
    /// The linked chat, since when, and whether it takes notifications.
    linked: Option<(String, When, bool)>,
    /// Whether this server has a bot.
    available: bool,
    /// The code that was just created: its URL, itself, and its expiry.
    code: Option<(String, String, When)>,
    said: String,
    /// Whether a chat is about to be linked, so that the page polls.
    waiting: bool,
}

async fn show(
    visit: &Visit,
    mailbox: &str,
    code: Option<TelegramCode>,
    said: String,
    waits: bool,
) -> Result<Response> {
    let mut shell = visit.shell("Telegram", "telegram").await?;
    let app = visit.app();
    let found = mailboxes::get(app, &visit.call(&mailboxes::GET)?, mailbox).await?;
    fill_sidebar(visit, &mut shell, found.id.as_str()).await?;
    let link = telegram::get(app, &visit.call(&telegram::GET)?, mailbox).await?;
    let active = link.status != Some(TelegramStatus::Blocked);
    let chat = link.chat_title.zip(link.linked_at);
    html(&TelegramPage {
        waiting: chat.is_none() && (waits || code.is_some()),
        id: found.id.as_str().to_owned(),
        email: found.email,
        linked: chat.map(|(title, at)| (title, shell.zone.when(at), active)),
        available: telegram::is_available(app),
        code: code.map(|code| (code.url, code.code, shell.zone.when(code.expires_at))),
        said,
        shell,
    })
}

async fn show_page(visit: Visit, Path(mailbox): Path<String>, RawQuery(query): RawQuery) -> Response {
    let waits = Fields::parse(query.unwrap_or_default().as_bytes()).ticked("waiting");
    visit.answer(show(&visit, &mailbox, None, String::new(), waits)).await
}

/// The code is shown in this one response only.
async fn link(visit: Visit, Path(mailbox): Path<String>) -> Response {
    let made = async { telegram::link(visit.app(), &visit.call(&telegram::LINK)?, &mailbox).await };
    match made.await {
        Ok(code) => visit.answer(show(&visit, &mailbox, Some(code), String::new(), true)).await,
        Err(refused) => visit.answer(show(&visit, &mailbox, None, page::explain(&refused), false)).await,
    }
}

async fn unlink(visit: Visit, Path(mailbox): Path<String>, request: Request) -> Response {
    let back = format!("/console/m/{}/telegram", encoded(&mailbox));
    let question = Question {
        title: "Unlink this chat?",
        text: "It gets no more notifications and can no longer act on mail.",
        button: "Unlink chat",
        cancel: &back,
        typed: "",
    };
    confirmed(&visit, request, &question, |_| {
        visit.act(&back, async {
            telegram::unlink(visit.app(), &visit.call(&telegram::UNLINK)?, &mailbox).await?;
            Ok((back.clone(), "Chat unlinked.".to_owned()))
        })
    })
    .await
}
