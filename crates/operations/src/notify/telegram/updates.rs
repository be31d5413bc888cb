//! What comes back from chats: codes that link them, buttons, answers.
//!
//! Everything in an update was written by whoever sits in the chat. It reaches a mail only by way of a notice that was
//! sent to that very chat, and only while the chat is linked.

use std::{sync::Arc, time::Duration};

use model::{
    Plan, Role, WorkspaceId,
    drafts::NewDraft,
    emails::{EmailChange, Move},
    folders::SystemFolder,
    sending::Recipients,
};
use serde_json::{Value, json};
use store::{
    emails, events,
    mailboxes::{self as stored_mailboxes, MailboxName},
    telegram::{self, LinkRecord, NoticeRecord},
    workspaces,
};

use super::bot::{self, PAUSE, WORKER};
use crate::{
    core::{
        app::App,
        call::{Call, IdempotencyClaim},
        caller::{Access, Caller},
        error::{Error, ErrorKind, Result},
        operation::Operation,
        ports::BotFault,
        secrets,
        settings::BotUpdates,
        supervisor::isolate,
    },
    inbox::emails as email_operations,
    outbox::drafts,
};

/// How long the bot's server waits for news before it answers with none.
const WAIT_SECONDS: u64 = 25;
/// How long a node has the asking to itself: longer than it can take.
const LEASE_SECONDS: i64 = 60;
/// How often a node looks whether it has to take over.
const STAND_BY: Duration = Duration::from_secs(10);
/// The kinds of updates that matter.
const KINDS: [&str; 2] = ["message", "callback_query"];
/// Characters of a chat's name.
const TITLE: usize = 100;

/// Hears what comes back until the task is ended.
pub(super) async fn work(app: &App) {
    begin(app).await;
    if app.settings().telegram != BotUpdates::Polling {
        return;
    }
    loop {
        match poll(app, WAIT_SECONDS).await {
            Ok(true) => {}
            // Another node does it.
            Ok(false) => tokio::time::sleep(STAND_BY).await,
            Err(error) => {
                tracing::warn!(%error, "the bot hears nothing");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Tells the bot's server how updates come: it keeps that, and does one thing or the other.
async fn begin(app: &App) {
    loop {
        let told = match &app.settings().telegram {
            BotUpdates::Polling => bot::call(app, "deleteWebhook", json!({}), bot::REQUEST_TIMEOUT).await,
            BotUpdates::Webhook(secret) => {
                let url = format!("{}/hooks/telegram", app.settings().public_url);
                let body = json!({ "url": url, "secret_token": secret, "allowed_updates": KINDS });
                bot::call(app, "setWebhook", body, bot::REQUEST_TIMEOUT).await
            }
        };
        match told {
            Ok(_) => return,
            Err(fault) => {
                tracing::warn!(%fault, "the bot is not set up");
                tokio::time::sleep(STAND_BY).await;
            }
        }
    }
}

/// Asks once for updates and deals with them. False when another node does that.
#[crate::boxed]
pub async fn poll(app: &App, wait: u64) -> Result<bool> {
    let (now, holder) = (app.now(), app.node().to_owned());
    let held: Result<_, store::Error> = app
        .db()
        .system_write(async move |tx| {
            telegram::hold_poll(tx, &holder, now, now.plus_seconds(LEASE_SECONDS)).await
        })
        .await;
    let Some(next) = held? else { return Ok(false) };
    let body = json!({ "offset": next, "timeout": wait, "allowed_updates": KINDS });
    let patience = bot::REQUEST_TIMEOUT + Duration::from_secs(wait);
    let updates = match bot::call(app, "getUpdates", body, patience).await {
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
        match isolate(WORKER, hear(app, update)).await {
            // The one that made code panic would come again and again, and those behind it never.
            Err(error) if error.kind() == ErrorKind::Internal => {
                tracing::error!(update = id, %error, "Telegram update failed; giving up on it");
            }
            heard => heard?,
        }
        let stored: Result<(), store::Error> =
            app.db().system_write(async move |tx| telegram::set_next_update(tx, id + 1).await).await;
        stored?;
    }
    Ok(true)
}

/// Deals with one update. It may come twice, and is done once. An error means that it is to come again.
#[crate::boxed]
pub async fn hear(app: &App, update: &Value) -> Result<()> {
    let number = update["update_id"].as_i64().unwrap_or_default();
    let outcome = match (&update["message"], &update["callback_query"]) {
        (message @ Value::Object(_), _) => hear_message(app, number, message).await,
        (_, pressed @ Value::Object(_)) => hear_button(app, number, pressed).await,
        _ => Ok(()),
    };
    match outcome {
        Err(error) if matches!(error.kind(), ErrorKind::StorageUnavailable | ErrorKind::Overloaded) => {
            Err(error)
        }
        Err(error) => {
            // Coming again would not mend it.
            tracing::warn!(%error, number, "an update was passed over");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

async fn hear_message(app: &App, number: i64, message: &Value) -> Result<()> {
    let Some(chat) = message["chat"]["id"].as_i64() else { return Ok(()) };
    let text = message["text"].as_str().unwrap_or_default().trim();
    let (command, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    // In a group others would read the mail, and whoever joins later too.
    if message["chat"]["type"] != "private" {
        if command.starts_with("/start") {
            bot::say(app, chat, "Mail is told of in private chats only. Open the link there.").await;
        }
        return Ok(());
    }
    match (command, rest.trim()) {
        ("/start", "") => greet(app, chat).await,
        ("/start", code) => link(app, chat, &title(&message["chat"]), code).await,
        ("/stop", _) => stop(app, chat).await,
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

const HELP: &str = "This bot tells you of new mail. Reply to a notice to save your words as a draft answer: it is never sent from here. \
/stop ends all notices. To link a mailbox, make a code for it in the console.";

fn title(chat: &Value) -> String {
    let part = |name: &str| chat[name].as_str().unwrap_or_default().trim();
    let name = format!("{} {}", part("first_name"), part("last_name"));
    let name = if name.trim().is_empty() { part("username") } else { name.trim() };
    let clean: String = name.chars().filter(|letter| !letter.is_control()).take(TITLE).collect();
    if clean.is_empty() { "Telegram".to_owned() } else { clean }
}

/// Links a chat by a code.
async fn link(app: &App, chat: i64, title: &str, code: &str) -> Result<()> {
    let (hash, now, title) = (secrets::hash(code), app.now(), title.to_owned());
    let linked = app
        .db()
        .system_write(async move |tx| {
            let Some((workspace, mailbox)) = telegram::take_code(tx, &hash, now).await? else {
                return Ok(None);
            };
            let tx = tx.enter(&workspace);
            let Some(found) = stored_mailboxes::find(tx, &MailboxName::Id(mailbox.clone())).await? else {
                return Ok(None);
            };
            // What was there before is not told of, and notices of an earlier chat lead nowhere any more.
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
            };
            telegram::put(tx, &link).await?;
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

/// Somebody opened the bot again, maybe after having blocked it.
async fn greet(app: &App, chat: i64) -> Result<()> {
    let count = app
        .db()
        .system_write(async move |tx| {
            let linked = telegram::of_chat(tx, chat).await?;
            for (workspace, mailbox) in &linked {
                let tx = tx.enter(workspace);
                let sequence = events::last_sequence(tx).await?;
                telegram::revive(tx, mailbox, sequence).await?;
            }
            Ok::<_, Error>(linked.len())
        })
        .await?;
    let begin = if count == 0 { "This chat is linked with no mailbox. " } else { "" };
    bot::say(app, chat, &format!("{begin}{HELP}")).await;
    Ok(())
}

/// Ends all links of a chat.
async fn stop(app: &App, chat: i64) -> Result<()> {
    app.db()
        .system_write(async move |tx| {
            for (workspace, mailbox) in telegram::of_chat(tx, chat).await? {
                telegram::delete(tx.enter(&workspace), &mailbox).await?;
            }
            Ok::<_, Error>(())
        })
        .await?;
    bot::say(app, chat, "This chat gets no more notices, and can do nothing with mail any more.").await;
    Ok(())
}

/// A button of a notice was pressed.
async fn hear_button(app: &App, number: i64, pressed: &Value) -> Result<()> {
    let chat = pressed["message"]["chat"]["id"].as_i64().unwrap_or_default();
    let query = pressed["id"].as_str().unwrap_or_default();
    let (what, id) = pressed["data"].as_str().and_then(|data| data.split_once(':')).unwrap_or_default();
    let wanted = id.to_owned();
    let notice = app.db().system_read(async move |tx| telegram::find_notice(tx, chat, &wanted).await).await;
    let notice: Option<NoticeRecord> = notice.map_err(Error::from)?;
    let said = match notice {
        None => "This notice does not work any more.",
        Some(notice) => match press(app, number, what, &notice).await {
            Ok(said) => said,
            Err(error) if error.kind() == ErrorKind::NotFound => "The mail is gone.",
            Err(error) => return Err(error),
        },
    };
    let body = json!({ "callback_query_id": query, "text": said });
    if let Err(fault) = bot::call(app, "answerCallbackQuery", body, bot::REQUEST_TIMEOUT).await {
        tracing::debug!(%fault, "a button could not be answered");
    }
    Ok(())
}

async fn press(app: &App, number: i64, what: &str, notice: &NoticeRecord) -> Result<&'static str> {
    let mailbox = notice.mailbox_id.as_str();
    let email = notice.email_id.clone();
    match what {
        "r" => {
            let call = call(app, &email_operations::UPDATE, number, notice).await?;
            let change = EmailChange {
                read: Some(true),
                starred: None,
                is_urgent: None,
                category: None,
                custom_labels: None,
            };
            once(email_operations::update(app, &call, mailbox, email, change).await)?;
            Ok("Marked as read.")
        }
        "a" => {
            let call = call(app, &email_operations::MOVE, number, notice).await?;
            let target = Move { folder_id: SystemFolder::Archive.into() };
            once(email_operations::move_one(app, &call, mailbox, email, target).await)?;
            Ok("Archived.")
        }
        _ => Ok("This notice does not work any more."),
    }
}

/// An answer to a notice becomes a draft in the mail's thread.
async fn answer(app: &App, number: i64, chat: i64, answered: i64, text: &str) -> Result<()> {
    let found: Result<Option<NoticeRecord>, store::Error> = app
        .db()
        .system_read(async move |tx| telegram::find_notice_by_message(tx, chat, answered).await)
        .await;
    let Some(notice) = found? else {
        bot::say(app, chat, "This notice does not work any more.").await;
        return Ok(());
    };
    if text.is_empty() {
        bot::say(app, chat, "Only text can become a draft.").await;
        return Ok(());
    }
    let said = match save(app, number, &notice, text).await {
        Ok(()) => "Saved as a draft. It is not sent.",
        Err(error) if error.kind() == ErrorKind::NotFound => "The mail is gone.",
        Err(error) if error.kind() == ErrorKind::QuotaExceeded => "The mailbox has no room for a draft.",
        Err(error) => return Err(error),
    };
    bot::say(app, chat, said).await;
    Ok(())
}

async fn save(app: &App, number: i64, notice: &NoticeRecord, text: &str) -> Result<()> {
    let call = call(app, &drafts::SAVE, number, notice).await?;
    let (mailbox, id) = (notice.mailbox_id.clone(), notice.email_id.clone());
    let mail = app
        .read(&call, async move |tx| {
            let found = emails::find(tx, &mailbox, &id).await?;
            found.ok_or_else(|| Error::not_found("Email not found"))
        })
        .await?;
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
    once(drafts::save(app, &call, notice.mailbox_id.as_str(), draft).await).map(|_| ())
}

/// A call on behalf of a chat. Its idempotency key is the update's number, so that an update that comes twice acts once.
async fn call(app: &App, operation: &'static Operation, number: i64, notice: &NoticeRecord) -> Result<Call> {
    let workspace: &WorkspaceId = &notice.workspace_id;
    let found: Result<_, store::Error> =
        app.db().read(workspace, async |tx| workspaces::find(tx).await).await;
    let plan: Plan = found?.ok_or_else(|| Error::not_found("Workspace not found"))?.plan;
    let access = Access { workspace: workspace.clone(), name: String::new(), role: Role::Member, plan };
    let caller = Arc::new(Caller::chat(notice.chat_id, access.clone()));
    let (id, subject) = (format!("telegram-{number}"), format!("/hooks/telegram/{}", notice.chat_id));
    let mut call = Call::new(operation, caller, access, app.now(), id, subject);
    let key = format!("telegram update {number}");
    call.idempotency = Some(IdempotencyClaim {
        fingerprint: secrets::hash(&key),
        key,
        data_key: app.data_key(workspace).await?,
    });
    Ok(call)
}

/// What was done before is done.
fn once<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::AlreadyAnswered => Ok(None),
        Err(error) => Err(error),
    }
}
