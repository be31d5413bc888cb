//! Indexes mail for memory after it arrived, in the background: a mailbox at a time, in the order of arrival, and only
//! what was found clean or was sent from here. Several messages are embedded together, which takes far less time where
//! they are short, and then stored one by one.
//!
//! A mailbox's position is in the store, so nothing is lost when a process ends. Passages refer to their email and
//! are deleted with it.

use model::{EmailId, MailboxId, WorkspaceId, emails::ScanStatus};
use store::{
    contents,
    emails::EmailRecord,
    memory::{self, NewPassage, Owner},
};

use super::{own_text::own_text, passages};
use crate::{
    core::{
        app::App,
        error::Result,
        ports::Urgency,
        supervisor::{ClaimGuard, catch_item_panic},
    },
    inbox::emails::present::{self, EmailContent},
};

/// Messages per step of a mailbox.
const BATCH: i64 = 32;
/// Passages after which the messages at hand are embedded: about a second of work, and enough to fill the model's
/// batches where messages are short.
const GROUP_PASSAGES: usize = 16;
/// Passages per message: the first few pages.
const MAX_PASSAGES: usize = 8;
/// Characters of a message that are used for them.
const MAX_CHARS: usize = 20_000;
/// The lease of a mailbox; a node that dies blocks it for no longer.
pub const CLAIM_SECONDS: i64 = 20;
/// Mailboxes per read when all are checked.
const PAGE: i64 = 200;

/// A mailbox with mail that is not indexed.
pub type PendingMailbox = (WorkspaceId, MailboxId);

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There may be more to do now.
    More,
    /// There is nothing to do until the next event.
    Done,
    /// Another node has it, or had it and died: retry after [`CLAIM_SECONDS`].
    Claimed,
}

/// Whether mail is indexed at all.
pub fn is_on(app: &App) -> bool {
    app.settings().memory.mail && app.embedder().is_some()
}

/// All mailboxes with mail that is not indexed.
#[crate::boxed]
pub async fn list_pending(app: &App) -> Result<Vec<PendingMailbox>> {
    let mut behind = Vec::new();
    let mut after = (WorkspaceId::from(""), MailboxId::from(""));
    loop {
        let (workspace, mailbox) = after.clone();
        let page = app
            .db()
            .system_read(async move |tx| memory::mailboxes_behind(tx, (&workspace, &mailbox), PAGE).await)
            .await?;
        let Some((workspace, mailbox, _)) = page.last() else { return Ok(behind) };
        after = (workspace.clone(), mailbox.clone());
        behind.extend(
            page.into_iter()
                .filter(|(_, _, is_behind)| *is_behind)
                .map(|(workspace, mailbox, _)| (workspace, mailbox)),
        );
    }
}

/// Indexes the next messages of a mailbox.
#[crate::boxed]
pub async fn index_some(app: &App, (workspace, mailbox): &PendingMailbox) -> Result<Progress> {
    // Most events are about something else; finding that out writes nothing.
    let id = mailbox.clone();
    let next = app
        .db()
        .read(workspace, async move |tx| {
            let arrival = memory::cursor(tx, &id).await?;
            memory::emails_after(tx, &id, arrival, 1).await
        })
        .await?;
    if next.first().is_none_or(is_waiting) {
        return Ok(Progress::Done);
    }
    let (now, id) = (app.now(), mailbox.clone());
    let until = now.plus_seconds(CLAIM_SECONDS);
    let claim = app.db().write(workspace, async move |tx| memory::claim_mailbox(tx, &id, now, until).await);
    let Some(arrival) = claim.await? else { return Ok(Progress::Claimed) };
    let abandoned = (app.clone(), workspace.clone(), mailbox.clone());
    let claim = ClaimGuard::new(move || async move {
        let (app, workspace, id) = abandoned;
        let now = app.now();
        let released: Result<(), store::Error> =
            app.db().write(&workspace, async move |tx| memory::move_cursor(tx, &id, 0, now).await).await;
        if let Err(error) = released {
            tracing::warn!(%error, "mailbox claim not released; it will expire");
        }
    });
    let outcome = index_from(app, workspace, mailbox, arrival).await;
    claim.done();
    // In any case the next step may be another node's.
    let (id, now) = (mailbox.clone(), app.now());
    app.db().write(workspace, async move |tx| memory::move_cursor(tx, &id, 0, now).await).await?;
    outcome
}

async fn index_from(
    app: &App,
    workspace: &WorkspaceId,
    mailbox: &MailboxId,
    arrival: i64,
) -> Result<Progress> {
    let id = mailbox.clone();
    let emails =
        app.db().read(workspace, async move |tx| memory::emails_after(tx, &id, arrival, BATCH).await).await?;
    let mut progress = Ok(if emails.is_empty() { Progress::Done } else { Progress::More });
    let mut group = Vec::new();
    // Unwanted messages are skipped together with the next wanted one.
    let mut skipped = None;
    for mail in emails {
        if is_waiting(&mail) {
            // Its scan wakes this worker again.
            progress = Ok(Progress::Done);
            break;
        }
        if !is_wanted(&mail) {
            skipped = Some(mail.arrival);
            continue;
        }
        match catch_item_panic("mail-memory", prepare(app, workspace, &mail)).await {
            Ok(Ok(prepared)) => {
                group.push(prepared);
                skipped = None;
            }
            // Those before it are indexed nevertheless.
            Ok(Err(error)) => {
                progress = Err(error);
                break;
            }
            // One that panics must not block the next ones.
            Err(_) => skipped = Some(mail.arrival),
        }
        if group.iter().map(|mail: &PreparedMessage| mail.texts.len()).sum::<usize>() >= GROUP_PASSAGES {
            index_group(app, workspace, mailbox, &std::mem::take(&mut group)).await?;
        }
    }
    index_group(app, workspace, mailbox, &group).await?;
    advance(app, workspace, mailbox, skipped).await?;
    progress
}

async fn advance(
    app: &App,
    workspace: &WorkspaceId,
    mailbox: &MailboxId,
    arrival: Option<i64>,
) -> Result<()> {
    let Some(arrival) = arrival else { return Ok(()) };
    let (id, until) = (mailbox.clone(), app.now().plus_seconds(CLAIM_SECONDS));
    Ok(app.db().write(workspace, async move |tx| memory::move_cursor(tx, &id, arrival, until).await).await?)
}

/// Whether a message is not scanned yet.
fn is_waiting(mail: &EmailRecord) -> bool {
    !mail.outgoing && mail.scan_status.is_none()
}

/// Whether a message is indexed: only clean ones, and those sent from here.
fn is_wanted(mail: &EmailRecord) -> bool {
    mail.outgoing || mail.scan_status == Some(ScanStatus::Clean)
}

/// A message that is ready to be embedded.
struct PreparedMessage {
    id: EmailId,
    arrival: i64,
    /// The texts of its passages.
    texts: Vec<String>,
}

async fn prepare(app: &App, workspace: &WorkspaceId, mail: &EmailRecord) -> Result<PreparedMessage> {
    let text = text_of(app, workspace, mail).await?;
    let subject = ::mail::safe_text::SafeText::line(&mail.subject).into_string();
    let mut pieces = passages::cut(app, text, MAX_PASSAGES).await?;
    if pieces.is_empty() {
        pieces.push(String::new());
    }
    // The subject gives every passage its context.
    let texts = pieces.into_iter().map(|piece| format!("{subject}\n{piece}").trim().to_owned()).collect();
    Ok(PreparedMessage { id: mail.id.clone(), arrival: mail.arrival, texts })
}

/// Indexes messages together, or one by one where that fails: one must not block those before it, and one that panics
/// none at all.
async fn index_group(
    app: &App,
    workspace: &WorkspaceId,
    mailbox: &MailboxId,
    group: &[PreparedMessage],
) -> Result<()> {
    let index = |some| catch_item_panic("mail-memory", index_together(app, workspace, mailbox, some));
    if group.len() > 1 && matches!(index(group).await, Ok(Ok(()))) {
        return Ok(());
    }
    for mail in group {
        match index(std::slice::from_ref(mail)).await {
            Ok(indexed) => indexed?,
            Err(_) => advance(app, workspace, mailbox, Some(mail.arrival)).await?,
        }
    }
    Ok(())
}

/// Embeds messages in one request, and stores them one by one: a transaction that locks several emails could deadlock
/// with one that deletes them.
async fn index_together(
    app: &App,
    workspace: &WorkspaceId,
    mailbox: &MailboxId,
    group: &[PreparedMessage],
) -> Result<()> {
    let key = app.data_key(workspace).await?;
    let texts = group.iter().flat_map(|mail| mail.texts.clone()).collect();
    let mut passages = passages::make(app, &key, texts, 0, Urgency::Idle).await?.into_iter();
    for mail in group {
        let of_mail = (0..).zip(passages.by_ref().take(mail.texts.len()));
        let of_mail = of_mail.map(|(position, passage)| NewPassage { position, ..passage }).collect();
        store_passages(app, workspace, mailbox, mail, of_mail).await?;
    }
    Ok(())
}

/// Stores the passages of a message and advances the mailbox's position, all or nothing.
async fn store_passages(
    app: &App,
    workspace: &WorkspaceId,
    mailbox: &MailboxId,
    mail: &PreparedMessage,
    passages: Vec<NewPassage>,
) -> Result<()> {
    let (owner, arrival) = (Owner::Email(mailbox.clone(), mail.id.clone()), mail.arrival);
    let (id, email, until) = (mailbox.clone(), mail.id.clone(), app.now().plus_seconds(CLAIM_SECONDS));
    app.db()
        .write(workspace, async move |tx| {
            // It may have been deleted, or another node was faster.
            if memory::lock_email(tx, &id, &email).await? {
                memory::insert_passages(tx, &owner, &passages).await?;
            }
            memory::move_cursor(tx, &id, arrival, until).await
        })
        .await?;
    metrics::counter!("memory_emails_total").increment(1);
    Ok(())
}

/// The text of a message that its author wrote.
async fn text_of(app: &App, workspace: &WorkspaceId, mail: &EmailRecord) -> Result<String> {
    let content = mail.content_id.clone();
    let texts = app
        .db()
        .read(workspace, async move |tx| contents::find_view::<contents::Texts>(tx, &content).await)
        .await?;
    let Some(texts) = texts else { return Ok(String::new()) };
    let text = match present::open(app, workspace, texts.into()).await {
        Ok(EmailContent::Safe(text)) => text,
        Ok(_) => String::new(),
        Err(error) => {
            // It is still found by its subject; a damaged text must not block the next messages.
            tracing::error!(%workspace, email = %mail.id, %error, "message text unreadable; indexing its subject only");
            String::new()
        }
    };
    Ok(present::cut(own_text(&text), MAX_CHARS).0)
}
