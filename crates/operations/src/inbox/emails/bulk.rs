//! Bulk changes of emails, each in one transaction.

use model::{
    EmailId, MailboxId, Timestamp,
    drafts::DraftState,
    emails::{BulkDelete, BulkMove, BulkRead, BulkResult, Emptied, Move},
    folders::SystemFolder,
};
use store::{
    Tx, drafts,
    emails::{self, Brief},
    mailboxes::MailboxName,
};

use super::guards::{cancellation_result, lock_mailbox, refuse_drafts, require_folder};
use crate::{
    core::{
        app::App,
        call::Call,
        error::{Error, Result},
    },
    mailbox::mailboxes,
};

/// Emails that one transaction deletes, so that it never blocks other writers for long.
const MAX_BATCH_EMAILS: i64 = 500;

/// Marks many emails as read or unread.
#[crate::boxed]
pub async fn bulk_read(app: &App, call: &Call, mailbox: &str, input: BulkRead) -> Result<BulkResult> {
    let named = mailboxes::name(call, mailbox);
    app.write(call, async move |tx| {
        let mailbox = lock_mailbox(tx, &named).await?;
        let (records, not_found) = find_all(tx, &mailbox, &input.ids).await?;
        emails::set_read(tx, &mailbox, &records, input.read).await?;
        Ok(BulkResult { updated: count(&records), not_found, ..BulkResult::default() })
    })
    .await
}

/// Moves many emails.
#[crate::boxed]
pub async fn bulk_move(app: &App, call: &Call, mailbox: &str, input: BulkMove) -> Result<BulkResult> {
    let named = mailboxes::name(call, mailbox);
    app.write(call, async move |tx| {
        let mailbox = lock_mailbox(tx, &named).await?;
        require_folder(tx, &mailbox, &Move { folder_id: input.folder_id.clone() }).await?;
        let (records, not_found) = find_all(tx, &mailbox, &input.ids).await?;
        refuse_drafts(&records)?;
        emails::move_to(tx, &mailbox, &records, &input.folder_id).await?;
        Ok(BulkResult { updated: count(&records), not_found, ..BulkResult::default() })
    })
    .await
}

/// Deletes many emails.
#[crate::boxed]
pub async fn bulk_delete(app: &App, call: &Call, mailbox: &str, input: BulkDelete) -> Result<BulkResult> {
    let (named, now) = (mailboxes::name(call, mailbox), call.now);
    app.write(call, async move |tx| {
        let mailbox = lock_mailbox(tx, &named).await?;
        let (records, not_found) = find_all(tx, &mailbox, &input.ids).await?;
        let discarded = discard(tx, &mailbox, &records, input.permanent, now).await?;
        Ok(BulkResult {
            updated: count(&records),
            not_found,
            deleted_count: Some(discarded.deleted),
            trashed_count: Some(discarded.trashed),
            cancelled_scheduled_count: Some(discarded.cancelled),
        })
    })
    .await
}

/// Deletes everything in Trash. A large folder takes several transactions; the last one has the charge and the
/// response.
#[crate::boxed]
pub async fn empty_trash(app: &App, call: &Call, mailbox: &str) -> Result<Emptied> {
    let mut deleted = 0;
    loop {
        let named = mailboxes::name(call, mailbox);
        let deleted_records =
            app.db().write(&call.workspace, async move |tx| delete_trash_batch(tx, &named).await).await?;
        deleted += deleted_records;
        if deleted_records < MAX_BATCH_EMAILS {
            break;
        }
    }
    let named = mailboxes::name(call, mailbox);
    app.write(call, async move |tx| {
        Ok(Emptied { deleted_count: deleted + delete_trash_batch(tx, &named).await? })
    })
    .await
}

/// Deletes a batch of Trash, and returns how many.
async fn delete_trash_batch(tx: &mut Tx, named: &MailboxName) -> Result<i64> {
    let mailbox = lock_mailbox(tx, named).await?;
    let records = emails::folder_batch(tx, &mailbox, &SystemFolder::Trash.into(), MAX_BATCH_EMAILS).await?;
    emails::delete(tx, &mailbox, &records).await?;
    Ok(count(&records))
}

/// How many emails were deleted, trashed or unscheduled.
pub(crate) struct DiscardCounts {
    pub(crate) deleted: i64,
    pub(crate) trashed: i64,
    pub(crate) cancelled: i64,
}

/// Moves emails to Trash; those already there, and drafts, are deleted for good. Scheduled ones become drafts again, and one
/// that a person decides about is refused: it is withdrawn first.
pub(crate) async fn discard(
    tx: &mut Tx,
    mailbox: &MailboxId,
    records: &[Brief],
    permanent: bool,
    now: Timestamp,
) -> Result<DiscardCounts> {
    if records.iter().any(|mail| mail.folder_id == SystemFolder::Review) {
        return Err(Error::draft_locked(DraftState::InReview));
    }
    let (scheduled, records): (Vec<Brief>, Vec<Brief>) =
        records.iter().cloned().partition(|mail| mail.folder_id == SystemFolder::Scheduled);
    for mail in &scheduled {
        cancellation_result(drafts::cancel_schedule(tx, mailbox, &mail.id, now).await?)?;
    }
    if records.iter().any(|mail| mail.folder_id == SystemFolder::Review) {
        return Err(Error::draft_locked(DraftState::InReview));
    }
    let for_good = |mail: &&Brief| {
        permanent
            || matches!(SystemFolder::of(&mail.folder_id), Some(SystemFolder::Trash | SystemFolder::Drafts))
    };
    let deleted_records: Vec<Brief> = records.iter().filter(for_good).cloned().collect();
    let trashed_records: Vec<Brief> = records.iter().filter(|mail| !for_good(mail)).cloned().collect();
    emails::delete(tx, mailbox, &deleted_records).await?;
    emails::move_to(tx, mailbox, &trashed_records, &SystemFolder::Trash.into()).await?;
    Ok(DiscardCounts {
        deleted: count(&deleted_records),
        trashed: count(&trashed_records),
        cancelled: count(&scheduled),
    })
}

/// The emails with these ids, without duplicates, and the ids that do not exist.
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

fn count(records: &[Brief]) -> i64 {
    i64::try_from(records.len()).unwrap_or(i64::MAX)
}
