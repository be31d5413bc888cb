//! Many emails at once, each time in one transaction.

use model::{
    EmailId, MailboxId, Timestamp,
    emails::{BulkDelete, BulkMove, BulkRead, BulkResult, Emptied, Move},
    folders::SystemFolder,
};
use store::{
    Tx, drafts,
    emails::{self, Brief},
    mailboxes::MailboxName,
};

use super::guards::{cancelled, hold, known_folder, refuse_drafts};
use crate::{
    core::{app::App, call::Call, error::Result},
    mailbox::mailboxes,
};

/// Messages that one transaction deletes, so that it never holds up the writers for long.
const BATCH: i64 = 500;

/// Marks many emails as read or unread.
#[crate::boxed]
pub async fn bulk_read(app: &App, call: &Call, mailbox: &str, input: BulkRead) -> Result<BulkResult> {
    let named = mailboxes::name(mailbox);
    app.write(call, async move |tx| {
        let mailbox = hold(tx, &named).await?;
        let (mails, not_found) = find_all(tx, &mailbox, &input.ids).await?;
        emails::set_read(tx, &mailbox, &mails, input.read).await?;
        Ok(BulkResult { updated: count(&mails), not_found, ..BulkResult::default() })
    })
    .await
}

/// Moves many emails.
#[crate::boxed]
pub async fn bulk_move(app: &App, call: &Call, mailbox: &str, input: BulkMove) -> Result<BulkResult> {
    let named = mailboxes::name(mailbox);
    app.write(call, async move |tx| {
        let mailbox = hold(tx, &named).await?;
        known_folder(tx, &mailbox, &Move { folder_id: input.folder_id.clone() }).await?;
        let (mails, not_found) = find_all(tx, &mailbox, &input.ids).await?;
        refuse_drafts(&mails)?;
        emails::move_to(tx, &mailbox, &mails, &input.folder_id).await?;
        Ok(BulkResult { updated: count(&mails), not_found, ..BulkResult::default() })
    })
    .await
}

/// Deletes many emails.
#[crate::boxed]
pub async fn bulk_delete(app: &App, call: &Call, mailbox: &str, input: BulkDelete) -> Result<BulkResult> {
    let (named, now) = (mailboxes::name(mailbox), call.now);
    app.write(call, async move |tx| {
        let mailbox = hold(tx, &named).await?;
        let (mails, not_found) = find_all(tx, &mailbox, &input.ids).await?;
        let discarded = discard(tx, &mailbox, &mails, input.permanent, now).await?;
        Ok(BulkResult {
            updated: count(&mails),
            not_found,
            deleted_count: Some(discarded.deleted),
            trashed_count: Some(discarded.trashed),
            cancelled_scheduled_count: Some(discarded.cancelled),
        })
    })
    .await
}

/// Deletes everything in Trash. A large one goes in several transactions; the last carries the charge and the answer.
#[crate::boxed]
pub async fn empty_trash(app: &App, call: &Call, mailbox: &str) -> Result<Emptied> {
    let mut deleted = 0;
    loop {
        let named = mailboxes::name(mailbox);
        let gone = app.db().write(&call.workspace, async move |tx| empty_some(tx, &named).await).await?;
        deleted += gone;
        if gone < BATCH {
            break;
        }
    }
    let named = mailboxes::name(mailbox);
    app.write(call, async move |tx| Ok(Emptied { deleted_count: deleted + empty_some(tx, &named).await? }))
        .await
}

/// Deletes some of what lies in Trash, and tells how much.
async fn empty_some(tx: &mut Tx, named: &MailboxName) -> Result<i64> {
    let mailbox = hold(tx, named).await?;
    let mails = emails::folder_batch(tx, &mailbox, &SystemFolder::Trash.into(), BATCH).await?;
    emails::delete(tx, &mailbox, &mails).await?;
    Ok(count(&mails))
}

/// What became of discarded messages.
pub(crate) struct Discarded {
    pub(crate) deleted: i64,
    pub(crate) trashed: i64,
    pub(crate) cancelled: i64,
}

/// Moves messages to Trash; those that are there already, and drafts, go for good. Scheduled ones become drafts again.
pub(crate) async fn discard(
    tx: &mut Tx,
    mailbox: &MailboxId,
    mails: &[Brief],
    permanent: bool,
    now: Timestamp,
) -> Result<Discarded> {
    let (scheduled, mails): (Vec<Brief>, Vec<Brief>) =
        mails.iter().cloned().partition(|mail| mail.folder_id == SystemFolder::Scheduled);
    for mail in &scheduled {
        cancelled(drafts::cancel_schedule(tx, mailbox, &mail.id, now).await?)?;
    }
    let for_good = |mail: &&Brief| {
        permanent
            || matches!(SystemFolder::of(&mail.folder_id), Some(SystemFolder::Trash | SystemFolder::Drafts))
    };
    let gone: Vec<Brief> = mails.iter().filter(for_good).cloned().collect();
    let kept: Vec<Brief> = mails.iter().filter(|mail| !for_good(mail)).cloned().collect();
    emails::delete(tx, mailbox, &gone).await?;
    emails::move_to(tx, mailbox, &kept, &SystemFolder::Trash.into()).await?;
    Ok(Discarded { deleted: count(&gone), trashed: count(&kept), cancelled: count(&scheduled) })
}

/// The messages with these ids, each once, and the ids that name nothing.
async fn find_all(tx: &mut Tx, mailbox: &MailboxId, ids: &[EmailId]) -> Result<(Vec<Brief>, Vec<EmailId>)> {
    let mut wanted = ids.to_vec();
    wanted.sort();
    wanted.dedup();
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for id in wanted {
        match emails::find_brief(tx, mailbox, &id).await? {
            Some(mail) => found.push(mail),
            None => missing.push(id),
        }
    }
    Ok((found, missing))
}

fn count(mails: &[Brief]) -> i64 {
    i64::try_from(mails.len()).unwrap_or(i64::MAX)
}
