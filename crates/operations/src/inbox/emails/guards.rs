//! Guards of changes to emails: the lock of their mailbox, and what a change can be refused for.

use model::{MailboxId, emails::Move, folders::is_unsent};
use store::{
    Tx,
    drafts::CancelOutcome,
    emails::Brief,
    folders,
    mailboxes::{self as stored_mailboxes, MailboxName},
};

use crate::{
    core::error::{Error, ErrorKind, Result},
    mailbox::mailboxes,
};

/// Finds the named mailbox and locks its row until the end of the transaction.
pub(crate) async fn lock_mailbox(tx: &mut Tx, named: &MailboxName) -> Result<MailboxId> {
    let mailbox = mailboxes::find_id(tx, named).await?;
    stored_mailboxes::lock(tx, &mailbox).await?;
    Ok(mailbox)
}

/// Refuses a folder that emails cannot be moved to.
pub(crate) async fn require_folder(tx: &mut Tx, mailbox: &MailboxId, target: &Move) -> Result<()> {
    let found = folders::find(tx, mailbox, &target.folder_id).await?;
    if found.is_none() || is_unsent(&target.folder_id) {
        let fix =
            "List the folders of the mailbox; an email cannot be moved to Drafts, Scheduled or In review.";
        return Err(Error::new(ErrorKind::FolderUnknown).with_fix(fix));
    }
    Ok(())
}

/// Refuses to move drafts: they leave their folder by being sent or deleted.
pub(crate) fn refuse_drafts(records: &[Brief]) -> Result<()> {
    if records.iter().any(|mail| is_unsent(&mail.folder_id)) {
        let fix = "Send the draft, delete it, cancel its schedule, or withdraw its review.";
        return Err(Error::new(ErrorKind::FolderProtected).with_fix(fix));
    }
    Ok(())
}

/// The result of cancelling a schedule, as an error for the caller.
pub(crate) fn cancellation_result(outcome: CancelOutcome) -> Result<()> {
    match outcome {
        CancelOutcome::Done => Ok(()),
        CancelOutcome::Missing => Err(Error::not_found("Scheduled send not found")),
        CancelOutcome::Locked(state) => Err(Error::draft_locked(state)),
    }
}
