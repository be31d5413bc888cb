//! Updates from chats: codes that link them, buttons, replies.
//!
//! Everything in an update was written by the person in the chat. It reaches a message only through a notice that was
//! sent to that very chat, and only while the chat is linked.

use std::time::Duration;

use model::{
    Role,
    audit::AuditDetails,
    drafts::NewDraft,
    emails::{EmailChange, Move},
    folders::SystemFolder,
    sending::Recipients,
};
use serde_json::{Value, json};
use store::{
    audit, emails, events,
    mailboxes::{self as stored_mailboxes, MailboxName},
    telegram::{self, LinkRecord, NoticeRecord},
};

use super::{
    bot::{self, RETRY_DELAY, WORKER},
    chat_call::{call, once, request},
    decisions,
};
use crate::{
    core::{
        app::App,
        audit::Author,
        error::{Error, ErrorKind, Result},
        ports::BotFault,
        secrets,
        settings::BotUpdates,
        supervisor::isolate,
    },
    inbox::emails as email_operations,
    outbox::drafts,
};

/// The long-poll timeout of getUpdates.
const WAIT_SECONDS: u64 = 25;
/// The lease of the polling node: longer than a poll can take.
const LEASE_SECONDS: i64 = 60;
/// How often another node checks whether it has to take over.
const STANDBY_INTERVAL: Duration = Duration::from_secs(10);
/// The kinds of updates that are handled.
const KINDS: [&str; 2] = ["message", "callback_query"];
/// Characters of a chat's name.
const MAX_TITLE_CHARS: usize = 100;
/// What the audit log calls what a chat does for itself.
pub(crate) const LINK_CHAT: &str = "linkTelegramChat";
pub(crate) const UNLINK_CHAT: &str = "unlinkTelegramChat";

/// Handles updates until the task is aborted.
pub(super) async fn work(app: &App) {
    configure(app).await;
    if app.settings().telegram != BotUpdates::Polling {
        return;
    }
    loop {
        match poll(app, WAIT_SECONDS).await {
            Ok(true) => {}
            // Another node does it.
            Ok(false) => tokio::time::sleep(STANDBY_INTERVAL).await,
            Err(error) => {
                tracing::warn!(%error, "Telegram getUpdates failed; retrying");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}

/// Configures how updates are delivered: the bot API does either polling or a webhook.
async fn configure(app: &App) {
    loop {
        let configured = match &app.settings().telegram {
            BotUpdates::Polling => bot::call(app, "deleteWebhook", json!({}), bot::REQUEST_TIMEOUT).await,
            BotUpdates::Webhook(secret) => {
                let url = format!("{}/hooks/telegram", app.settings().public_url);
                let body = json!({ "url": url, "secret_token": secret, "allowed_updates": KINDS });
                bot::call(app, "setWebhook", body, bot::REQUEST_TIMEOUT).await
            }
        };
        match configured {
            Ok(_) => return,
            Err(fault) => {
                tracing::warn!(%fault, "Telegram update delivery not configured; retrying");
                tokio::time::sleep(STANDBY_INTERVAL).await;
            }
        }
    }
}

/// Polls once for updates and handles them. False when another node does that.
#[crate::boxed]
pub async fn poll(app: &App, wait: u64) -> Result<bool> {
    let (now, holder) = (app.now(), app.node().to_owned());
    let claimed: Result<_, store::Error> = app
        .db()
        .system_write(async move |tx| {
            telegram::claim_poll(tx, &holder, now, now.plus_seconds(LEASE_SECONDS)).await
        })
        .await;
    let Some(next) = claimed? else { return Ok(false) };
    let body = json!({ "offset": next, "timeout": wait, "allowed_updates": KINDS });
    let timeout = bot::REQUEST_TIMEOUT + Duration::from_secs(wait);
    let updates = match bot::call(app, "getUpdates", body, timeout).await {
        Ok(updates) => updates,
        Err(fault) => {
            if let BotFault::Refused { retry_after: Some(seconds), .. } = &fault {
                tokio::time::sleep(Duration::from_secs((*seconds).min(60))).await;
            }
            return Err(Error::internal(fault.to_string()));
        }
    };
    for update in updates.as_array().into_iter().flatten() {
        let Some(id) = update["update_id"].as_i64() else { continue };
        match isolate(WORKER, handle(app, update)).await {
            // An update that panics would come again and again, and block those behind it.
            Err(error) if error.kind() == ErrorKind::Internal => {
                tracing::error!(update = id, %error, "Telegram update failed; giving up on it");
            }
            handled => handled?,
        }
        let stored: Result<(), store::Error> =
            app.db().system_write(async move |tx| telegram::set_next_update(tx, id + 1).await).await;
        stored?;
    }
    Ok(true)
}

/// Handles one update. It may come twice, and takes effect once. An error means that it must be delivered again.
#[crate::boxed]
pub async fn handle(app: &App, update: &Value) -> Result<()> {
    let number = update["update_id"].as_i64().unwrap_or_default();
    let outcome = match (&update["message"], &update["callback_query"]) {
        (message @ Value::Object(_), _) => handle_message(app, number, message).await,
        (_, pressed @ Value::Object(_)) => handle_button(app, number, pressed).await,
        _ => Ok(()),
    };
    match outcome {
        Err(error) if matches!(error.kind(), ErrorKind::StorageUnavailable | ErrorKind::Overloaded) => {
            Err(error)
        }
        Err(error) => {
            // Retrying would not help.
            tracing::warn!(%error, number, "Telegram update failed; giving up on it");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

async fn handle_message(app: &App, number: i64, message: &Value) -> Result<()> {
    let Some(chat) = message["chat"]["id"].as_i64() else { return Ok(()) };
    let text = message["text"].as_str().unwrap_or_default().trim();
    let (command, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    // In a group other people would read the mail, also those who join later.
    if message["chat"]["type"] != "private" {
        if command.starts_with("/start") {
            bot::say(app, chat, "Mail is told of in private chats only. Open the link there.").await;
        }
        return Ok(());
    }
    match (command, rest.trim()) {
        ("/start", "") => greet(app, chat).await,
        ("/start", code) => link(app, number, chat, &title(&message["chat"]), code).await,
        ("/stop", _) => stop(app, number, chat, &title(&message["chat"])).await,
        ("/help", _) => {
            bot::say(app, chat, HELP).await;
            Ok(())
        }
        _ => match message["reply_to_message"]["message_id"].as_i64() {
            Some(answered) => answer(app, number, chat, answered, text).await,
            None => Ok(()),
        },
    }
}

const EXPIRED_NOTICE: &str = "This notice does not work any more.";
const HELP: &str = "This bot tells you of new mail, and of messages in review. Reply to a notice to save your words as a draft answer: it is never sent from here. \
/stop ends all notices. To link a mailbox, make a code for it in the console.";

fn title(chat: &Value) -> String {
    let part = |name: &str| chat[name].as_str().unwrap_or_default().trim();
    let name = format!("{} {}", part("first_name"), part("last_name"));
    let name = if name.trim().is_empty() { part("username") } else { name.trim() };
    let clean: String =
        name.chars().filter(|character| !character.is_control()).take(MAX_TITLE_CHARS).collect();
    if clean.is_empty() { "Telegram".to_owned() } else { clean }
}

/// Links a chat by a code.
async fn link(app: &App, number: i64, chat: i64, title: &str, code: &str) -> Result<()> {
    let entry = app.audit_entry(&Author::chat(chat, title, &request(number, chat)), LINK_CHAT);
    let (hash, now, title) = (secrets::hash(code), app.now(), title.to_owned());
    let linked = app
        .db()
        .system_write(async move |tx| {
            let Some((workspace, mailbox, created_by)) = telegram::redeem_code(tx, &hash, now).await? else {
                return Ok(None);
            };
            let tx = tx.enter(&workspace);
            let Some(found) = stored_mailboxes::find(tx, &MailboxName::Id(mailbox.clone())).await? else {
                return Ok(None);
            };
            // Older mail is not notified, and notices of an earlier chat stop working.
            let sequence = events::last_sequence(tx).await?;
            telegram::delete(tx, &mailbox).await?;
            let link = LinkRecord {
                mailbox_id: mailbox,
                chat_id: chat,
                chat_title: title,
                linked_at: now,
                sequence,
                blocked_at: None,
                failures: 0,
                created_by,
            };
            telegram::upsert(tx, &link).await?;
            audit::insert(tx, &[(&entry, AuditDetails::default().in_mailbox(&found.id))]).await?;
            Ok::<_, Error>(Some(found.email))
        })
        .await?;
    let said = match linked {
        Some(address) => format!("This chat is told of new mail to {address} from now on. {HELP}"),
        None => "This code does not work: it was used, or is older than 10 minutes. Make a new one in the console.".to_owned(),
    };
    bot::say(app, chat, &said).await;
    Ok(())
}

/// The bot was started again, maybe after it was blocked.
async fn greet(app: &App, chat: i64) -> Result<()> {
    let count = app
        .db()
        .system_write(async move |tx| {
            let linked = telegram::list_of_chat(tx, chat).await?;
            for (workspace, mailbox) in &linked {
                let tx = tx.enter(workspace);
                let sequence = events::last_sequence(tx).await?;
                telegram::resume(tx, mailbox, sequence).await?;
            }
            Ok::<_, Error>(linked.len())
        })
        .await?;
    let begin = if count == 0 { "This chat is linked with no mailbox. " } else { "" };
    bot::say(app, chat, &format!("{begin}{HELP}")).await;
    Ok(())
}

/// Deletes all links of a chat.
async fn stop(app: &App, number: i64, chat: i64, title: &str) -> Result<()> {
    let (app_, author) = (app.clone(), Author::chat(chat, title, &request(number, chat)));
    app.db()
        .system_write(async move |tx| {
            for (workspace, mailbox) in telegram::list_of_chat(tx, chat).await? {
                let tx = tx.enter(&workspace);
                telegram::delete(tx, &mailbox).await?;
                let entry = app_.audit_entry(&author, UNLINK_CHAT);
                audit::insert(tx, &[(&entry, AuditDetails::default().in_mailbox(&mailbox))]).await?;
            }
            Ok::<_, Error>(())
        })
        .await?;
    bot::say(app, chat, "This chat gets no more notices, and can do nothing with mail any more.").await;
    Ok(())
}

/// A button of a notice was pressed.
async fn handle_button(app: &App, number: i64, pressed: &Value) -> Result<()> {
    let chat = pressed["message"]["chat"]["id"].as_i64().unwrap_or_default();
    let query = pressed["id"].as_str().unwrap_or_default();
    let (what, rest) = pressed["data"].as_str().and_then(|data| data.split_once(':')).unwrap_or_default();
    let (id, digest) = rest.split_once(':').unwrap_or((rest, ""));
    let wanted = id.to_owned();
    let notice = app.db().system_read(async move |tx| telegram::find_notice(tx, chat, &wanted).await).await;
    let notice: Option<NoticeRecord> = notice.map_err(Error::from)?;
    let said = match notice {
        None => EXPIRED_NOTICE.to_owned(),
        Some(notice) => match press(app, number, (what, digest), &notice).await {
            Ok(said) => said,
            Err(error) if error.kind() == ErrorKind::NotFound => "The mail is gone.".to_owned(),
            Err(error) => return Err(error),
        },
    };
    let body = json!({ "callback_query_id": query, "text": said });
    if let Err(fault) = bot::call(app, "answerCallbackQuery", body, bot::REQUEST_TIMEOUT).await {
        tracing::debug!(%fault, "Telegram answerCallbackQuery failed; giving up");
    }
    Ok(())
}

async fn press(
    app: &App,
    number: i64,
    (what, digest): (&str, &str),
    notice: &NoticeRecord,
) -> Result<String> {
    let mailbox = notice.mailbox_id.as_str();
    let email = notice.email_id.clone();
    match what {
        "r" => {
            let call = call(app, &email_operations::UPDATE, (number, Role::Member), notice).await?;
            let change = EmailChange {
                read: Some(true),
                starred: None,
                is_urgent: None,
                category: None,
                custom_labels: None,
            };
            once(email_operations::update(app, &call, mailbox, email, change).await)?;
            Ok("Marked as read.".to_owned())
        }
        "a" => {
            let call = call(app, &email_operations::MOVE, (number, Role::Member), notice).await?;
            let target = Move { folder_id: SystemFolder::Archive.into() };
            once(email_operations::move_one(app, &call, mailbox, email, target).await)?;
            Ok("Archived.".to_owned())
        }
        decisions::APPROVE | decisions::REJECT => {
            let said = decisions::press(app, number, (what, digest), notice).await?;
            Ok(said.unwrap_or_else(|| EXPIRED_NOTICE.to_owned()))
        }
        _ => Ok(EXPIRED_NOTICE.to_owned()),
    }
}

/// A reply to a notice becomes a draft in the message's thread.
async fn answer(app: &App, number: i64, chat: i64, answered: i64, text: &str) -> Result<()> {
    let found: Result<Option<NoticeRecord>, store::Error> = app
        .db()
        .system_read(async move |tx| telegram::find_notice_by_message(tx, chat, answered).await)
        .await;
    let Some(notice) = found? else {
        bot::say(app, chat, EXPIRED_NOTICE).await;
        return Ok(());
    };
    if text.is_empty() {
        bot::say(app, chat, "Only text can become a draft.").await;
        return Ok(());
    }
    let said = match save(app, number, &notice, text).await {
        Ok(true) => "Saved as a draft. It is not sent.",
        Ok(false) => "This is about a message of the mailbox itself. Use its buttons, or the console.",
        Err(error) if error.kind() == ErrorKind::NotFound => "The mail is gone.",
        Err(error) if error.kind() == ErrorKind::QuotaExceeded => "The mailbox has no room for a draft.",
        Err(error) => return Err(error),
    };
    bot::say(app, chat, said).await;
    Ok(())
}

/// Saves a reply to the message of a notice. False for a notice about an own message.
async fn save(app: &App, number: i64, notice: &NoticeRecord, text: &str) -> Result<bool> {
    let call = call(app, &drafts::SAVE, (number, Role::Member), notice).await?;
    let (mailbox, id) = (notice.mailbox_id.clone(), notice.email_id.clone());
    let mail = app
        .read(&call, async move |tx| {
            let found = emails::find(tx, &mailbox, &id).await?;
            found.ok_or_else(|| Error::not_found("Email not found"))
        })
        .await?;
    if mail.outgoing {
        return Ok(false);
    }
    let to = mail.reply_to.filter(|to| !to.is_empty()).unwrap_or(mail.sender_address);
    let draft = NewDraft {
        to: Some(to).filter(|to| mail::address::Address::parse(to).is_ok()).map(Recipients::Text),
        cc: None,
        bcc: None,
        subject: Some(mail::compose::quote::reply_subject(&mail.subject)),
        body: text.to_owned(),
        body_format: None,
        in_reply_to: mail.message_id,
        thread_id: Some(mail.thread_id),
        draft_id: None,
        attachments: None,
    };
    once(drafts::save(app, &call, notice.mailbox_id.as_str(), draft).await).map(|_| true)
}
