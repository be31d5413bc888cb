//! Telegram: a chat that is notified of a mailbox's new mail, and can reply.
//!
//! A chat is linked by a code that works once. From then on it gets notices (`notices.rs`), and its updates
//! (`updates.rs`) act on the messages of those notices alone. If an admin made the code, it also decides about messages in
//! review (`decisions.rs`). Deleting the link's row ends all of that.

mod bot;
mod chat_call;
mod decisions;
mod notice_text;
pub mod notices;
mod review_notices;
pub mod updates;

use model::telegram::{TelegramCode, TelegramLink, TelegramStatus, TelegramUnlinked};
use store::telegram;

use crate::{
    core::{
        app::App,
        call::Call,
        error::{ErrorKind, Result},
        operation::Operation,
        secrets,
    },
    mailbox::mailboxes,
};

/// Reads the link.
pub const GET: Operation =
    Operation::read("getTelegramLink", "Shows whether a mailbox is linked to a Telegram chat.")
        .errors(&[ErrorKind::NotFound])
        .tagged();
/// Makes a code.
pub const LINK: Operation = Operation::write(
    "linkTelegram",
    "Creates a code that links a Telegram chat to a mailbox. It works once, for 10 minutes, and replaces an earlier one.",
)
.errors(&[ErrorKind::NotFound, ErrorKind::TelegramUnavailable]);
/// Removes the link.
pub const UNLINK: Operation = Operation::write(
    "unlinkTelegram",
    "Unlinks a mailbox from its Telegram chat, which ends all access from the chat.",
)
.errors(&[ErrorKind::NotFound]);

pub(crate) use self::updates::{LINK_CHAT, UNLINK_CHAT};

pub(crate) const OPERATIONS: &[&Operation] = &[&GET, &LINK, &UNLINK];

/// How long a code works.
const CODE_SECONDS: i64 = 600;

/// Reads the link of a mailbox.
#[crate::boxed]
pub async fn get(app: &App, call: &Call, mailbox: &str) -> Result<TelegramLink> {
    let named = mailboxes::name(call, mailbox);
    let found = app
        .read(call, async move |tx| {
            let mailbox = mailboxes::find_id(tx, &named).await?;
            Ok(telegram::find(tx, &mailbox).await?)
        })
        .await?;
    Ok(found.map_or_else(TelegramLink::default, |link| TelegramLink {
        linked: true,
        chat_title: Some(link.chat_title),
        linked_at: Some(link.linked_at),
        status: Some(match link.blocked_at {
            None => TelegramStatus::Active,
            Some(_) => TelegramStatus::Blocked,
        }),
    }))
}

/// Makes a code for a mailbox.
#[crate::boxed]
pub async fn link(app: &App, call: &Call, mailbox: &str) -> Result<TelegramCode> {
    let named = mailboxes::name(call, mailbox);
    let wanted = named.clone();
    app.read(call, async move |tx| mailboxes::find_id(tx, &wanted).await).await?;
    let name = bot::name(app).await?;
    let code = secrets::new_token(app);
    let (hash, expires_at) = (secrets::hash(&code), call.now.plus_seconds(CODE_SECONDS));
    let url = format!("https://t.me/{name}?start={code}");
    let creator = call.caller.actor.id().to_owned();
    app.write(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        telegram::upsert_code(tx, &mailbox, &hash, expires_at, &creator).await?;
        Ok(TelegramCode { code, url, expires_at })
    })
    .await
}

/// Removes the link of a mailbox.
#[crate::boxed]
pub async fn unlink(app: &App, call: &Call, mailbox: &str) -> Result<TelegramUnlinked> {
    let named = mailboxes::name(call, mailbox);
    app.write(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        telegram::delete(tx, &mailbox).await?;
        Ok(TelegramUnlinked {})
    })
    .await
}

/// Whether a bot is configured.
pub fn is_available(app: &App) -> bool {
    app.bot().is_some()
}

/// Sends notices and handles updates, until the task is aborted.
#[crate::boxed]
pub async fn work(app: App) {
    tokio::join!(notices::work(&app), updates::work(&app));
}
