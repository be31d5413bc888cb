//! Telling chats of new mail, from the event log: every mail once, in order, and only what the scan gate lets through.
//!
//! A worker takes a whole link for a bounded time. A notice and the link's new place in the log are stored together after
//! the bot's server took the notice, so a crash in between repeats that one notice and forgets none.

use std::time::{Duration, Instant};

use model::{
    EmailId, MailboxId, Timestamp, WorkspaceId,
    emails::{Email, ReadOptions, ScanStatus},
    events::EventType,
};
use serde_json::{Value, json};
use store::{
    Topic, Tx,
    emails::{self, EmailRecord},
    events::{self, EventHead},
    mailboxes::{self, MailboxName},
    telegram::{self, LinkRecord, NoticeRecord},
};

use super::bot::{self, PAUSE, WORKER};
use crate::{
    core::{
        app::App,
        error::{Error, Result},
        ports::BotFault,
        secrets,
        supervisor::{ClaimGuard, isolate},
    },
    inbox::emails::present::{self, FolderNames, Presenter},
};

/// Links that are worked on at the same time.
const MAX_CONCURRENT: usize = 8;
/// Links that one search finds.
const MAX_EVENTS: i64 = 200;
/// Events that are looked through at a time.
const BATCH: i64 = 200;
/// How long one worker has a link to itself, and when it stops beginning anything with it.
const LEASE_SECONDS: i64 = 60;
const TURN: Duration = Duration::from_secs(40);
/// How often work is looked for without being told of any.
const IDLE_POLL: Duration = Duration::from_secs(2);
/// The longest time that a chat is left alone.
const MAX_REST_SECONDS: i64 = 300;
/// The longest time that the bot's server can ask for.
const MAX_RETRY_AFTER_SECONDS: i64 = 3600;
/// Characters of a mail's text, and of its sender and subject, in a notice.
const TEXT: usize = 1_500;
const LINE: usize = 200;

/// Tells chats until the task is ended.
pub(super) async fn work(app: &App) {
    let mut wakes = app.db().listen(Topic::Event);
    loop {
        if let Err(error) = run_due(app).await {
            tracing::warn!(%error, "notices wait");
            tokio::time::sleep(PAUSE).await;
        }
        // Whatever woke us, the search is cheap: most links have nothing to be told.
        let _ = tokio::time::timeout(IDLE_POLL, store::woken(&mut wakes)).await;
    }
}

/// Tells every chat what it has not been told, and gives the number of notices: what a worker does, once.
#[crate::boxed]
pub async fn run_due(app: &App) -> Result<usize> {
    let now = app.now();
    let lagging: Result<Vec<_>, store::Error> =
        app.db().system_read(async move |tx| telegram::lagging(tx, now, MAX_EVENTS).await).await;
    let mut lagging = lagging?.into_iter();
    let mut running = tokio::task::JoinSet::new();
    let mut sent = 0;
    loop {
        while running.len() < MAX_CONCURRENT
            && let Some((workspace, mailbox)) = lagging.next()
        {
            let app = app.clone();
            running.spawn(async move {
                let told = isolate(WORKER, tell(&app, &workspace, &mailbox)).await;
                told.unwrap_or_else(|error| {
                    // One that cannot be read must not keep the others waiting.
                    tracing::warn!(%workspace, %error, "a chat waits for its notices");
                    0
                })
            });
        }
        match running.join_next().await {
            Some(told) => sent += told.unwrap_or_default(),
            None => return Ok(sent),
        }
    }
}

/// How a turn with a link ended.
enum End {
    /// There is nothing more to tell, or no more time.
    Done,
    /// It goes on later.
    Later { failures: i64, at: Timestamp },
    /// The chat takes nothing any more.
    Blocked,
    /// The link is no longer what it was.
    Gone,
}

async fn tell(app: &App, workspace: &WorkspaceId, mailbox: &MailboxId) -> Result<usize> {
    let (now, wanted) = (app.now(), mailbox.clone());
    let until = now.plus_seconds(LEASE_SECONDS);
    let taken = app
        .db()
        .write(workspace, async move |tx| {
            if !telegram::take(tx, &wanted, now, until).await? {
                return Ok(None);
            }
            let link = telegram::find(tx, &wanted).await?;
            let found = mailboxes::find(tx, &MailboxName::Id(wanted)).await?;
            Ok::<_, Error>(link.zip(found.map(|mailbox| mailbox.email)))
        })
        .await?;
    let Some((link, address)) = taken else { return Ok(0) };
    let abandoned = (app.clone(), workspace.clone(), mailbox.clone());
    let claim = ClaimGuard::new(move || async move {
        let (app, workspace, mailbox) = abandoned;
        let released: Result<(), store::Error> =
            app.db().write(&workspace, async move |tx| telegram::release(tx, &mailbox, until).await).await;
        if let Err(error) = released {
            tracing::warn!(%error, "claim on a chat not released; it expires by itself");
        }
    });
    let teller = Teller { app, workspace, link, address };
    let mut sent = 0;
    let end = isolate(WORKER, teller.tell(&mut sent)).await;
    claim.done();
    let (failures, rests_until, blocked_at) = match &end {
        Ok(End::Done) | Err(_) => (0, Timestamp::from_micros(0), None),
        Ok(End::Later { failures, at }) => (*failures, *at, None),
        Ok(End::Blocked) => (0, Timestamp::from_micros(0), Some(app.now())),
        Ok(End::Gone) => return Ok(sent),
    };
    let link = teller.link.clone();
    app.db()
        .write(workspace, async move |tx| {
            telegram::leave(tx, &link, failures, rests_until, blocked_at).await.map_err(Error::from)
        })
        .await?;
    end.map(|_| sent)
}

/// A link that this worker has to itself.
struct Teller<'a> {
    app: &'a App,
    workspace: &'a WorkspaceId,
    link: LinkRecord,
    /// The mailbox's address.
    address: String,
}

/// A mail to be told of.
struct NoticeEmail {
    mail: EmailRecord,
    email: Email,
}

impl Teller<'_> {
    async fn tell(&self, sent: &mut usize) -> Result<End> {
        let began = Instant::now();
        let mut place = self.link.sequence;
        loop {
            let heads: Result<Vec<EventHead>, store::Error> = self
                .app
                .db()
                .read(self.workspace, async move |tx| events::list_heads_after(tx, place, BATCH).await)
                .await;
            let heads = heads?;
            let Some(last) = heads.last().map(|head| head.sequence) else { return Ok(End::Done) };
            for head in heads.iter().filter(|head| self.wants(head)) {
                if began.elapsed() > TURN {
                    return Ok(End::Done);
                }
                let Some(told) = self.read(head).await? else { continue };
                if let Some(until) =
                    told.mail.held_until.filter(|_| present::is_held(&told.mail, self.app.now()))
                {
                    return Ok(End::Later { failures: 0, at: until });
                }
                match self.send(&told).await {
                    Ok((id, message)) => {
                        if !self.note(head.sequence, &told.mail.id, id, message).await? {
                            return Ok(End::Gone);
                        }
                        *sent += 1;
                    }
                    Err(fault) => {
                        if let Some(end) = self.judge(&fault) {
                            return Ok(end);
                        }
                        // It will never be taken: the next ones may.
                        tracing::warn!(%fault, email = %told.mail.id, "a notice was refused");
                    }
                }
            }
            if !self.pass(last).await? {
                return Ok(End::Gone);
            }
            place = last;
            if i64::try_from(heads.len()).is_ok_and(|count| count < BATCH) {
                return Ok(End::Done);
            }
        }
    }

    fn wants(&self, head: &EventHead) -> bool {
        matches!(head.kind, EventType::MessageReceived | EventType::MessageScanned)
            && head.mailbox_id.as_ref() == Some(&self.link.mailbox_id)
    }

    /// The mail of an event as it may be shown, unless there is nothing to tell of it.
    async fn read(&self, head: &EventHead) -> Result<Option<NoticeEmail>> {
        let key = self.app.data_key(self.workspace).await?;
        let (sequence, kind, mailbox) = (head.sequence, head.kind, self.link.mailbox_id.clone());
        let workspace = self.workspace.clone();
        let found = self
            .app
            .db()
            .read(self.workspace, async move |tx| {
                let Some(record) = events::find(tx, sequence).await? else { return Ok(None) };
                let event = crate::core::events::show(&workspace, &key, record)?;
                let Some(id) = event.data["email_id"].as_str() else { return Ok(None) };
                look(tx, &mailbox, &id.into(), kind).await
            })
            .await?;
        let Some((mail, names, fetched)) = found else { return Ok(None) };
        let options = safe();
        let presenter = Presenter { folders: &names, options: &options };
        let email = presenter.open_and_show(self.app, self.workspace, mail.clone(), fetched).await?;
        Ok(Some(NoticeEmail { mail, email }))
    }

    /// Hands a notice to the bot's server; gives the name of its buttons and its number in the chat.
    async fn send(&self, told: &NoticeEmail) -> Result<(String, i64), BotFault> {
        let id = secrets::new_token(self.app);
        let body = notice(self.link.chat_id, &self.address, &told.email, &id);
        let answer = bot::call(self.app, "sendMessage", body, bot::REQUEST_TIMEOUT).await?;
        Ok((id, answer["message_id"].as_i64().unwrap_or_default()))
    }

    /// Stores a notice that was sent with the link's new place.
    async fn note(&self, sequence: i64, email: &EmailId, id: String, message_id: i64) -> Result<bool> {
        let (link, now) = (self.link.clone(), self.app.now());
        let notice = NoticeRecord {
            id,
            workspace_id: self.workspace.clone(),
            mailbox_id: link.mailbox_id.clone(),
            email_id: email.clone(),
            chat_id: link.chat_id,
            message_id,
            created_at: now,
        };
        let write = self.app.db().write(self.workspace, async move |tx| {
            // A link that was removed meanwhile must not leave a notice behind that still works.
            if !telegram::set_sequence(tx, &link, sequence).await? {
                return Ok(false);
            }
            telegram::insert_notice(tx, &notice).await?;
            Ok::<_, Error>(true)
        });
        write.await
    }

    async fn pass(&self, sequence: i64) -> Result<bool> {
        let link = self.link.clone();
        let write = self.app.db().write(self.workspace, async move |tx| {
            telegram::set_sequence(tx, &link, sequence).await.map_err(Error::from)
        });
        write.await
    }

    /// What a failure means for the link; nothing when only this notice is at fault.
    fn judge(&self, fault: &BotFault) -> Option<End> {
        let now = self.app.now();
        let failures = self.link.failures + 1;
        let growing = || {
            let seconds = 1_i64 << u32::try_from(failures).unwrap_or(16).min(16);
            now.plus_seconds(seconds.min(MAX_REST_SECONDS))
        };
        match fault {
            BotFault::Refused { retry_after: Some(seconds), .. } => {
                let seconds = i64::try_from(*seconds)
                    .unwrap_or(MAX_RETRY_AFTER_SECONDS)
                    .clamp(1, MAX_RETRY_AFTER_SECONDS);
                Some(End::Later { failures, at: now.plus_seconds(seconds) })
            }
            BotFault::Refused { code: 403, .. } => Some(End::Blocked),
            BotFault::Refused { code: 400, description, .. } if description.contains("chat not found") => {
                Some(End::Blocked)
            }
            BotFault::Refused { code: 400, .. } => None,
            // The token is wrong, or the server is in trouble: both may be mended.
            BotFault::Unreachable(_) | BotFault::Refused { .. } => {
                Some(End::Later { failures, at: growing() })
            }
        }
    }
}

fn safe() -> ReadOptions {
    ReadOptions {
        metadata_only: false,
        include_held: true,
        require_scan_status: Some(ScanStatus::Clean),
        agent_safe_content: true,
        max_body_chars: Some(TEXT),
    }
}

type NoticeRows = (EmailRecord, FolderNames, Option<present::FetchedContent>);

/// Finds a mail that is worth a notice: one that is still there, not thrown away, and judged by the scanners.
async fn look(tx: &mut Tx, mailbox: &MailboxId, id: &EmailId, kind: EventType) -> Result<Option<NoticeRows>> {
    let Some(mail) = emails::find(tx, mailbox, id).await? else { return Ok(None) };
    if !store::emails::is_listed(&mail.folder_id) {
        return Ok(None);
    }
    // A mail that waits for a scanner is told of when that has spoken.
    if kind == EventType::MessageReceived && mail.scan_status.is_none() {
        return Ok(None);
    }
    let names = FolderNames::load(tx, mailbox).await?;
    let options = safe();
    let fetched = Presenter { folders: &names, options: &options }.fetch(tx, &mail).await?;
    Ok(Some((mail, names, fetched)))
}

/// A notice as the bot's server takes it.
///
/// What comes from the mail stands in a block of plain letters: nothing in it can be tapped, neither a link nor one of the
/// bot's own commands.
fn notice(chat: i64, address: &str, email: &Email, id: &str) -> Value {
    let (head, quoted) = if email.content_omitted {
        let why = match email.scan_status {
            Some(ScanStatus::Flagged) => "it was found unsafe",
            _ => "nobody could tell whether it is safe",
        };
        (format!("A mail to {address} is withheld: {why}."), String::new())
    } else {
        let body = email.body.as_deref().unwrap_or_default().trim();
        let more = if email.content_truncated { "\n…" } else { "" };
        let lines = [cut(&email.sender, LINE), cut(&email.subject, LINE)];
        (
            format!("New mail to {address}\n"),
            format!("{}\n{}\n\n{}{more}", lines[0], lines[1], cut(body, TEXT)),
        )
    };
    let units = |text: &str| text.encode_utf16().count();
    let mut entities = Vec::new();
    if !quoted.is_empty() {
        entities.push(json!({ "type": "pre", "offset": units(&head), "length": units(&quoted) }));
    }
    json!({
        "chat_id": chat,
        "text": format!("{head}{quoted}"),
        "entities": entities,
        "link_preview_options": { "is_disabled": true },
        "reply_markup": { "inline_keyboard": [[
            { "text": "Mark as read", "callback_data": format!("r:{id}") },
            { "text": "Archive", "callback_data": format!("a:{id}") },
        ]] },
    })
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
