//! Notifies chats of new mail and of messages in review, from the event log: every message once, in order, and of what
//! arrived only what the scan gate lets through.
//!
//! A worker claims a link for a bounded time. A notice and the link's new position in the log are stored together
//! after the bot API accepted the notice, so a crash in between repeats that one notice and loses none.

use std::time::{Duration, Instant};

use model::{
    EmailId, MailboxId, Timestamp, WorkspaceId,
    emails::{Email, ReadOptions, ScanStatus},
    events::EventType,
};
use serde_json::Value;
use store::{
    Topic, Tx,
    emails::{self, EmailRecord},
    events::{self, EventHead},
    mailboxes::{self, MailboxName},
    telegram::{self, LinkRecord, NoticeRecord},
};

use super::{
    bot::{self, RETRY_DELAY, WORKER},
    notice_text::{self, MAX_LINE_CHARS, MAX_TEXT_CHARS, cut},
    review_notices::{self, ReviewNotice},
};
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

/// Links that are processed at the same time.
const MAX_CONCURRENT: usize = 8;
/// Links per search.
const MAX_LINKS: i64 = 200;
/// Events per read.
const BATCH: i64 = 200;
/// The lease of a link, and when its worker stops starting new work.
const LEASE_SECONDS: i64 = 60;
const MAX_TURN: Duration = Duration::from_secs(40);
/// How often links are polled without a notification.
const IDLE_POLL: Duration = Duration::from_secs(2);
/// Maximum pause of a failing chat.
const MAX_PAUSE_SECONDS: i64 = 300;
/// Maximum pause that the bot API can ask for.
const MAX_RETRY_AFTER_SECONDS: i64 = 3600;

/// Sends notices until the task is aborted.
pub(super) async fn work(app: &App) {
    let mut wakes = app.db().listen_for_work(Topic::Event);
    loop {
        if let Err(error) = run_due(app).await {
            tracing::warn!(%error, "Telegram notices failed; retrying");
            tokio::time::sleep(RETRY_DELAY).await;
        }
        // The search is cheap: most links have nothing new.
        let _ = tokio::time::timeout(IDLE_POLL, store::wait_for_wake(&mut wakes)).await;
    }
}

/// Sends all pending notices once, and returns their number.
#[crate::boxed]
pub async fn run_due(app: &App) -> Result<usize> {
    let now = app.now();
    let lagging: Result<Vec<_>, store::Error> =
        app.db().system_read(async move |tx| telegram::lagging(tx, now, MAX_LINKS).await).await;
    let mut lagging = lagging?.into_iter();
    let mut running = tokio::task::JoinSet::new();
    let mut sent = 0;
    loop {
        while running.len() < MAX_CONCURRENT
            && let Some((workspace, mailbox)) = lagging.next()
        {
            let app = app.clone();
            running.spawn(async move {
                let sent = isolate(WORKER, notify(&app, &workspace, &mailbox)).await;
                sent.unwrap_or_else(|error| {
                    // One that fails must not block the others.
                    tracing::warn!(%workspace, %error, "Telegram notices of a chat failed; retrying");
                    0
                })
            });
        }
        match running.join_next().await {
            Some(count) => sent += count.unwrap_or_default(),
            None => return Ok(sent),
        }
    }
}

/// How the work on a link ended.
enum WorkOutcome {
    /// No more events, or no more time.
    Done,
    /// It continues later.
    Deferred { failures: i64, at: Timestamp },
    /// The chat blocked the bot.
    Blocked,
    /// The link was changed or removed.
    Gone,
}

async fn notify(app: &App, workspace: &WorkspaceId, mailbox: &MailboxId) -> Result<usize> {
    let (now, wanted) = (app.now(), mailbox.clone());
    let until = now.plus_seconds(LEASE_SECONDS);
    let claimed = app
        .db()
        .write(workspace, async move |tx| {
            if !telegram::claim(tx, &wanted, now, until).await? {
                return Ok(None);
            }
            let link = telegram::find(tx, &wanted).await?;
            let found = mailboxes::find(tx, &MailboxName::Id(wanted)).await?;
            Ok::<_, Error>(link.zip(found.map(|mailbox| mailbox.email)))
        })
        .await?;
    let Some((link, address)) = claimed else { return Ok(0) };
    let abandoned = (app.clone(), workspace.clone(), mailbox.clone());
    let claim = ClaimGuard::new(move || async move {
        let (app, workspace, mailbox) = abandoned;
        let released: Result<(), store::Error> =
            app.db().write(&workspace, async move |tx| telegram::release(tx, &mailbox, until).await).await;
        if let Err(error) = released {
            tracing::warn!(%error, "chat claim not released; it will expire");
        }
    });
    let worker = LinkWorker { app, workspace, link, address };
    let mut sent = 0;
    let end = isolate(WORKER, worker.run(&mut sent)).await;
    claim.done();
    let (failures, rests_until, blocked_at) = match &end {
        Ok(WorkOutcome::Done) | Err(_) => (0, Timestamp::from_micros(0), None),
        Ok(WorkOutcome::Deferred { failures, at }) => (*failures, *at, None),
        Ok(WorkOutcome::Blocked) => (0, Timestamp::from_micros(0), Some(app.now())),
        Ok(WorkOutcome::Gone) => return Ok(sent),
    };
    let link = worker.link.clone();
    app.db()
        .write(workspace, async move |tx| {
            telegram::defer(tx, &link, failures, rests_until, blocked_at).await.map_err(Error::from)
        })
        .await?;
    end.map(|_| sent)
}

/// A link that this worker has claimed.
struct LinkWorker<'a> {
    app: &'a App,
    workspace: &'a WorkspaceId,
    link: LinkRecord,
    /// The mailbox's address.
    address: String,
}

/// A message to notify of.
enum Notice {
    /// It arrived.
    Email(Box<NoticeEmail>),
    /// It waits for a decision.
    Review(Box<ReviewNotice>),
}

/// A message that arrived.
struct NoticeEmail {
    record: EmailRecord,
    email: Email,
}

impl Notice {
    fn email(&self) -> &EmailId {
        match self {
            Self::Email(notice) => &notice.record.id,
            Self::Review(notice) => notice.summary.email(),
        }
    }

    /// Until when it must not be shown.
    fn held_until(&self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Email(notice) => notice.record.held_until.filter(|_| present::is_held(&notice.record, now)),
            Self::Review(_) => None,
        }
    }
}

impl LinkWorker<'_> {
    async fn run(&self, sent: &mut usize) -> Result<WorkOutcome> {
        let began = Instant::now();
        let mut after = self.link.sequence;
        loop {
            let heads: Result<Vec<EventHead>, store::Error> = self
                .app
                .db()
                .read(self.workspace, async move |tx| events::list_heads_after(tx, after, BATCH).await)
                .await;
            let heads = heads?;
            let Some(last) = heads.last().map(|head| head.sequence) else { return Ok(WorkOutcome::Done) };
            for head in heads.iter().filter(|head| self.wants(head)) {
                if began.elapsed() > MAX_TURN {
                    return Ok(WorkOutcome::Done);
                }
                let Some(notice) = self.read(head).await? else { continue };
                if let Some(until) = notice.held_until(self.app.now()) {
                    return Ok(WorkOutcome::Deferred { failures: 0, at: until });
                }
                match self.send(&notice).await {
                    Ok((id, message)) => {
                        if !self.record(head.sequence, notice.email(), id, message).await? {
                            return Ok(WorkOutcome::Gone);
                        }
                        *sent += 1;
                    }
                    Err(fault) => {
                        if let Some(end) = self.judge(&fault) {
                            return Ok(end);
                        }
                        // It will never be accepted: continue with the next.
                        tracing::warn!(%fault, email = %notice.email(), "Telegram notice refused; skipping it");
                    }
                }
            }
            if !self.advance(last).await? {
                return Ok(WorkOutcome::Gone);
            }
            after = last;
            if i64::try_from(heads.len()).is_ok_and(|count| count < BATCH) {
                return Ok(WorkOutcome::Done);
            }
        }
    }

    fn wants(&self, head: &EventHead) -> bool {
        let kinds = [EventType::MessageReceived, EventType::MessageScanned, review_notices::EVENT];
        kinds.contains(&head.kind) && head.mailbox_id.as_ref() == Some(&self.link.mailbox_id)
    }

    /// The message of an event as it may be shown, unless it needs no notice.
    async fn read(&self, head: &EventHead) -> Result<Option<Notice>> {
        let key = self.app.data_key(self.workspace).await?;
        let (app, sequence, kind, link) = (self.app.clone(), head.sequence, head.kind, self.link.clone());
        let workspace = self.workspace.clone();
        let found = self
            .app
            .db()
            .read(self.workspace, async move |tx| {
                let Some(record) = events::find(tx, sequence).await? else { return Ok(None) };
                let event = crate::core::events::show(&workspace, &key, record)?;
                let id = |name: &str| event.data[name].as_str();
                if kind == review_notices::EVENT {
                    let Some(review) = id("review_id") else { return Ok(None) };
                    let notice = ReviewNotice::find(tx, &app, &key, &link, &review.into()).await?;
                    return Ok(notice.map(NoticeContent::Review));
                }
                let Some(email) = id("email_id") else { return Ok(None) };
                let rows = load(tx, &link.mailbox_id, &email.into(), kind).await?;
                Ok::<_, Error>(rows.map(NoticeContent::Email))
            })
            .await?;
        let (mail, names, fetched) = match found {
            None => return Ok(None),
            Some(NoticeContent::Review(notice)) => return Ok(Some(Notice::Review(Box::new(notice)))),
            Some(NoticeContent::Email(rows)) => rows,
        };
        let options = safe();
        let presenter = Presenter { folders: &names, options: &options };
        let email = presenter.open_and_show(self.app, self.workspace, mail.clone(), fetched).await?;
        Ok(Some(Notice::Email(Box::new(NoticeEmail { record: mail, email }))))
    }

    /// Sends a notice; returns the id of its buttons and its number in the chat.
    async fn send(&self, notice: &Notice) -> Result<(String, i64), BotFault> {
        let id = secrets::new_token(self.app);
        let chat = self.link.chat_id;
        let body = match notice {
            Notice::Email(notice) => notice_body(chat, &self.address, &notice.email, &id),
            Notice::Review(notice) => notice.body(self.app, chat, &self.address, &id),
        };
        let answer = bot::call(self.app, "sendMessage", body, bot::REQUEST_TIMEOUT).await?;
        Ok((id, answer["message_id"].as_i64().unwrap_or_default()))
    }

    /// Stores a sent notice with the link's new position.
    async fn record(&self, sequence: i64, email: &EmailId, id: String, message_id: i64) -> Result<bool> {
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
            // A link that was removed meanwhile must not leave a working notice behind.
            if !telegram::set_sequence(tx, &link, sequence).await? {
                return Ok(false);
            }
            telegram::insert_notice(tx, &notice).await?;
            Ok::<_, Error>(true)
        });
        write.await
    }

    async fn advance(&self, sequence: i64) -> Result<bool> {
        let link = self.link.clone();
        let write = self.app.db().write(self.workspace, async move |tx| {
            telegram::set_sequence(tx, &link, sequence).await.map_err(Error::from)
        });
        write.await
    }

    /// What a failure means for the link; `None` when only this notice is at fault.
    fn judge(&self, fault: &BotFault) -> Option<WorkOutcome> {
        let now = self.app.now();
        let failures = self.link.failures + 1;
        let growing = || {
            let seconds = 1_i64 << u32::try_from(failures).unwrap_or(16).min(16);
            now.plus_seconds(seconds.min(MAX_PAUSE_SECONDS))
        };
        match fault {
            BotFault::Refused { retry_after: Some(seconds), .. } => {
                let seconds = i64::try_from(*seconds)
                    .unwrap_or(MAX_RETRY_AFTER_SECONDS)
                    .clamp(1, MAX_RETRY_AFTER_SECONDS);
                Some(WorkOutcome::Deferred { failures, at: now.plus_seconds(seconds) })
            }
            BotFault::Refused { code: 403, .. } => Some(WorkOutcome::Blocked),
            BotFault::Refused { code: 400, description, .. } if description.contains("chat not found") => {
                Some(WorkOutcome::Blocked)
            }
            BotFault::Refused { code: 400, .. } => None,
            // A wrong token or an outage: both may be temporary.
            BotFault::Unreachable(_) | BotFault::Refused { .. } => {
                Some(WorkOutcome::Deferred { failures, at: growing() })
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
        max_body_chars: Some(MAX_TEXT_CHARS),
    }
}

type NoticeRows = (EmailRecord, FolderNames, Option<present::FetchedContent>);

/// What the store has for a notice.
enum NoticeContent {
    Email(NoticeRows),
    Review(ReviewNotice),
}

/// Finds a message that is worth a notice: still there, not deleted, and scanned.
async fn load(tx: &mut Tx, mailbox: &MailboxId, id: &EmailId, kind: EventType) -> Result<Option<NoticeRows>> {
    let Some(mail) = emails::find(tx, mailbox, id).await? else { return Ok(None) };
    if !store::emails::is_listed(&mail.folder_id) {
        return Ok(None);
    }
    // A message that is not scanned yet is notified after its scan.
    if kind == EventType::MessageReceived && mail.scan_status.is_none() {
        return Ok(None);
    }
    let names = FolderNames::load(tx, mailbox, [&mail]).await?;
    let options = safe();
    let fetched = Presenter { folders: &names, options: &options }.fetch(tx, &mail).await?;
    Ok(Some((mail, names, fetched)))
}

/// The notice of a message that arrived.
fn notice_body(chat: i64, address: &str, email: &Email, id: &str) -> Value {
    let (head, quoted) = if email.content_omitted {
        let why = match email.scan_status {
            Some(ScanStatus::Flagged) => "it was found unsafe",
            _ => "nobody could tell whether it is safe",
        };
        (format!("A mail to {address} is withheld: {why}."), String::new())
    } else {
        let body = email.body.as_deref().unwrap_or_default().trim();
        let more = if email.content_truncated { "\n…" } else { "" };
        let lines = [cut(&email.sender, MAX_LINE_CHARS), cut(&email.subject, MAX_LINE_CHARS)];
        (
            format!("New mail to {address}\n"),
            format!("{}\n{}\n\n{}{more}", lines[0], lines[1], cut(body, MAX_TEXT_CHARS)),
        )
    };
    let buttons = [("Mark as read", format!("r:{id}")), ("Archive", format!("a:{id}"))];
    notice_text::notice(chat, (&head, &quoted, ""), &buttons)
}
