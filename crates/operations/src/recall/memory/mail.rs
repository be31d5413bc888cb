//! Takes mail into memory after it arrived, beside everything else: a mailbox at a time, a mail at a time, in the order of
//! their arrival, and only what was found clean or was sent from here.
//!
//! How far a mailbox is stands in the store, so that nothing is forgotten when a process ends. What is taken goes with its
//! mail: passages refer to their email.

use model::{MailboxId, WorkspaceId, emails::ScanStatus};
use store::{
    contents,
    emails::EmailRecord,
    memory::{self, Owner},
};

use super::passages;
use crate::{
    core::{
        app::App,
        error::Result,
        ports::Urgency,
        supervisor::{ClaimGuard, catch_item_panic},
    },
    inbox::emails::present::{self, EmailContent},
};

/// Mails of a mailbox that one step looks at.
const STEP: i64 = 20;
/// Pieces of a mail that are taken: the first few pages.
const MAX_PASSAGES: usize = 8;
/// Characters of a mail that are looked at for them.
const MAX_CHARS: usize = 20_000;
/// How long a mailbox is taken on for; a node that ends leaves it for no longer.
pub const CLAIM_SECONDS: i64 = 20;
/// Mailboxes that one look at all of them reads at once.
const PAGE: i64 = 200;

/// A mailbox with mail that waits.
pub type Behind = (WorkspaceId, MailboxId);

/// What came of a look at a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There may be more to do now.
    More,
    /// There is nothing to do until something happens.
    Done,
    /// Another node has it, or had it and is no more: look again after [`CLAIM_SECONDS`].
    Held,
}

/// Whether mail is taken into memory at all.
pub fn is_on(app: &App) -> bool {
    app.settings().memory.mail && app.embedder().is_some()
}

/// All mailboxes whose mail is not all in memory.
#[crate::boxed]
pub async fn all_behind(app: &App) -> Result<Vec<Behind>> {
    let mut behind = Vec::new();
    let mut place = (WorkspaceId::from(""), MailboxId::from(""));
    loop {
        let (workspace, mailbox) = place.clone();
        let page = app
            .db()
            .system_read(async move |tx| memory::mailboxes_behind(tx, (&workspace, &mailbox), PAGE).await)
            .await?;
        let Some((workspace, mailbox, _)) = page.last() else { return Ok(behind) };
        place = (workspace.clone(), mailbox.clone());
        behind.extend(
            page.into_iter()
                .filter(|(_, _, is_behind)| *is_behind)
                .map(|(workspace, mailbox, _)| (workspace, mailbox)),
        );
    }
}

/// Takes the next mails of a mailbox into memory.
#[crate::boxed]
pub async fn take_some(app: &App, (workspace, mailbox): &Behind) -> Result<Progress> {
    // Most news are about something else; finding that out writes nothing.
    let id = mailbox.clone();
    let next = app
        .db()
        .read(workspace, async move |tx| {
            let arrival = memory::cursor(tx, &id).await?;
            memory::mails_after(tx, &id, arrival, 1).await
        })
        .await?;
    if next.first().is_none_or(is_waiting) {
        return Ok(Progress::Done);
    }
    let (now, id) = (app.now(), mailbox.clone());
    let until = now.plus_seconds(CLAIM_SECONDS);
    let claim = app.db().write(workspace, async move |tx| memory::claim_mailbox(tx, &id, now, until).await);
    let Some(arrival) = claim.await? else { return Ok(Progress::Held) };
    let abandoned = (app.clone(), workspace.clone(), mailbox.clone());
    let claim = ClaimGuard::new(move || async move {
        let (app, workspace, id) = abandoned;
        let now = app.now();
        let released: Result<(), store::Error> =
            app.db().write(&workspace, async move |tx| memory::move_cursor(tx, &id, 0, now).await).await;
        if let Err(error) = released {
            tracing::warn!(%error, "claim on a mailbox not released; it expires by itself");
        }
    });
    let outcome = take_from(app, workspace, mailbox, arrival).await;
    claim.done();
    // Whatever came of it, the next look may be somebody else's.
    let (id, now) = (mailbox.clone(), app.now());
    app.db().write(workspace, async move |tx| memory::move_cursor(tx, &id, 0, now).await).await?;
    outcome
}

async fn take_from(
    app: &App,
    workspace: &WorkspaceId,
    mailbox: &MailboxId,
    arrival: i64,
) -> Result<Progress> {
    let id = mailbox.clone();
    let mails =
        app.db().read(workspace, async move |tx| memory::mails_after(tx, &id, arrival, STEP).await).await?;
    let is_any = !mails.is_empty();
    // Those that are not wanted are passed over together with the next that is.
    let mut passed = None;
    for mail in mails {
        if is_waiting(&mail) {
            // Its verdict wakes us again.
            pass_over(app, workspace, mailbox, passed).await?;
            return Ok(Progress::Done);
        }
        if is_wanted(&mail) {
            passed = match catch_item_panic("mail-memory", take(app, workspace, mailbox, &mail)).await {
                Ok(taken) => taken.map(|()| None)?,
                // One that makes code panic must not keep the next ones waiting.
                Err(_) => Some(mail.arrival),
            };
        } else {
            passed = Some(mail.arrival);
        }
    }
    pass_over(app, workspace, mailbox, passed).await?;
    Ok(if is_any { Progress::More } else { Progress::Done })
}

async fn pass_over(
    app: &App,
    workspace: &WorkspaceId,
    mailbox: &MailboxId,
    arrival: Option<i64>,
) -> Result<()> {
    let Some(arrival) = arrival else { return Ok(()) };
    let (id, until) = (mailbox.clone(), app.now().plus_seconds(CLAIM_SECONDS));
    Ok(app.db().write(workspace, async move |tx| memory::move_cursor(tx, &id, arrival, until).await).await?)
}

/// Whether nobody has judged a mail yet.
fn is_waiting(mail: &EmailRecord) -> bool {
    !mail.outgoing && mail.scan_status.is_none()
}

/// Whether a mail is for memory: only what is clean, or was sent from here.
fn is_wanted(mail: &EmailRecord) -> bool {
    mail.outgoing || mail.scan_status == Some(ScanStatus::Clean)
}

/// Takes one mail into memory and moves the mailbox's place behind it, all or nothing.
async fn take(app: &App, workspace: &WorkspaceId, mailbox: &MailboxId, mail: &EmailRecord) -> Result<()> {
    let text = text_of(app, workspace, mail).await?;
    let key = app.data_key(workspace).await?;
    let subject = ::mail::safe_text::SafeText::line(&mail.subject).into_string();
    let mut pieces = passages::cut(app, text, MAX_PASSAGES).await?;
    if pieces.is_empty() {
        pieces.push(String::new());
    }
    // The subject tells what a piece is about, wherever in the mail it stands.
    let pieces = pieces.into_iter().map(|piece| format!("{subject}\n{piece}").trim().to_owned()).collect();
    let passages = passages::make(app, &key, pieces, 0, Urgency::Idle).await?;
    let (owner, arrival) = (Owner::Email(mailbox.clone(), mail.id.clone()), mail.arrival);
    let (id, email, until) = (mailbox.clone(), mail.id.clone(), app.now().plus_seconds(CLAIM_SECONDS));
    app.db()
        .write(workspace, async move |tx| {
            // It may be gone by now, or somebody else was faster.
            if memory::hold_email(tx, &id, &email).await? {
                memory::insert_passages(tx, &owner, &passages).await?;
            }
            memory::move_cursor(tx, &id, arrival, until).await
        })
        .await?;
    metrics::counter!("memory_emails_total").increment(1);
    Ok(())
}

/// What a mail says, without what it quotes of others.
async fn text_of(app: &App, workspace: &WorkspaceId, mail: &EmailRecord) -> Result<String> {
    let content = mail.content_id.clone();
    let texts = app.db().read(workspace, async move |tx| contents::find_safe(tx, &content).await).await?;
    let Some(texts) = texts else { return Ok(String::new()) };
    let text = match present::open(app, workspace, texts.into()).await {
        Ok(EmailContent::Safe(text)) => text,
        Ok(_) => String::new(),
        Err(error) => {
            // It is still found by its subject; a damaged text must not keep the next mails waiting.
            tracing::error!(%workspace, email = %mail.id, %error, "a mail's text cannot be taken into memory");
            String::new()
        }
    };
    let own: Vec<&str> = text.lines().filter(|line| !line.starts_with('>')).collect();
    Ok(present::cut(own.join("\n"), MAX_CHARS).0)
}
