//! What a change of emails begins with: the lock of their mailbox, and what it can be refused for.

use model::{MailboxId, emails::Move, folders::is_unsent};
use store::{
    Tx,
    drafts::Cancelled,
    emails::Brief,
    folders,
    mailboxes::{self as stored_mailboxes, MailboxName},
};

use crate::{
    core::error::{Error, ErrorKind, Result},
    mailbox::mailboxes,
};

/// The mailbox that a call names, held until the end of the transaction.
pub(crate) async fn hold(tx: &mut Tx, named: &MailboxName) -> Result<MailboxId> {
    let mailbox = mailboxes::find_id(tx, named).await?;
    stored_mailboxes::lock(tx, &mailbox).await?;
    Ok(mailbox)
}

/// Refuses a folder that message cannot be moved to.
pub(crate) async fn known_folder(tx: &mut Tx, mailbox: &MailboxId, target: &Move) -> Result<()> {
    let found = folders::find(tx, mailbox, &target.folder_id).await?;
    if found.is_none() || is_unsent(&target.folder_id) {
        let fix = "List the folders of the mailbox; drafts and scheduled mails cannot be moved to.";
        return Err(Error::new(ErrorKind::FolderUnknown).with_fix(fix));
    }
    Ok(())
}

/// Refuses to move what is still being written: it leaves its folder by being sent or deleted.
pub(crate) fn refuse_drafts(mails: &[Brief]) -> Result<()> {
    if mails.iter().any(|mail| is_unsent(&mail.folder_id)) {
        let fix = "Send the draft, delete it, or cancel its schedule.";
        return Err(Error::new(ErrorKind::FolderProtected).with_fix(fix));
    }
    Ok(())
}

/// What cancelling a schedule came to, as callers see it.
pub(crate) fn cancelled(outcome: Cancelled) -> Result<()> {
    match outcome {
        Cancelled::Done => Ok(()),
        Cancelled::Missing => Err(Error::not_found("Scheduled send not found")),
        Cancelled::Locked(state) => Err(Error::draft_locked(state)),
    }
}
