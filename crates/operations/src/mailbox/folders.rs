//! Folders of a mailbox: list, create, rename, delete.

use model::{
    FolderId, Limit, Scope,
    folders::SystemFolder,
    folders::{Folder, FolderName, is_system_name, slug},
};
use store::{Tx, folders, mailboxes::MailboxFigure};

use crate::{
    core::{
        app::App,
        call::Call,
        error::{Error, ErrorKind, Result},
        input::clean_name,
        operation::Operation,
    },
    mailbox::mailboxes,
};

/// Lists the folders.
pub const LIST: Operation =
    Operation::read("listFolders", "Lists the folders of a mailbox with their counts.")
        .errors(&[ErrorKind::NotFound]);
/// Makes a folder.
pub const CREATE: Operation =
    Operation::write("createFolder", "Creates a folder; its id is the slug of its name.")
        .scope(Scope::Organize)
        .created()
        .errors(&[ErrorKind::NotFound, ErrorKind::FolderExists, ErrorKind::QuotaExceeded]);
/// Renames a folder.
pub const RENAME: Operation = Operation::write("renameFolder", "Renames a folder; its id stays the same.")
    .scope(Scope::Organize)
    .errors(&[ErrorKind::NotFound, ErrorKind::FolderProtected, ErrorKind::FolderExists]);
/// Deletes a folder.
pub const DELETE: Operation =
    Operation::write("deleteFolder", "Deletes a folder; its emails move to the archive.")
        .scope(Scope::Organize)
        .empty()
        .errors(&[ErrorKind::NotFound, ErrorKind::FolderProtected]);

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST, &CREATE, &RENAME, &DELETE];

/// The sort order of custom folders: after the system folders, then by name.
const CUSTOM_FOLDER_ORDER: i64 = 100;
/// Maximum custom folders, which bounds the cost of a list.
const MAX_FOLDERS_PER_MAILBOX: u64 = 1000;

/// Lists the folders.
#[crate::boxed]
pub async fn list(app: &App, call: &Call, mailbox: &str) -> Result<Vec<Folder>> {
    let named = mailboxes::name(call, mailbox);
    app.short_read(call, async move |tx| folders::list(tx, &named).await?.ok_or_else(mailboxes::missing))
        .await
}

/// Makes a folder.
#[crate::boxed]
pub async fn create(app: &App, call: &Call, mailbox: &str, input: FolderName) -> Result<Folder> {
    let name = clean_name("name", &input.name)?;
    let id = slug(&name);
    if id.is_empty() {
        return Err(Error::invalid("name", "needs at least one letter or digit"));
    }
    let folder = Folder { id: id.into(), name, unread_count: 0, total_count: 0, system: false };
    let named = mailboxes::name(call, mailbox);
    app.write(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        store::mailboxes::lock(tx, &mailbox).await?;
        let limit = Limit::of(MAX_FOLDERS_PER_MAILBOX);
        if !limit.has_room(u64::try_from(folders::count(tx, &mailbox).await?).unwrap_or_default()) {
            return Err(Error::quota("folders", limit));
        }
        refuse_system_name(&folder.name)?;
        tx.audit().about("folder", &folder.id);
        if !folders::insert(tx, &mailbox, &folder, CUSTOM_FOLDER_ORDER).await? {
            return Err(Error::new(ErrorKind::FolderExists));
        }
        Ok(folder)
    })
    .await
}

/// Renames a folder.
#[crate::boxed]
pub async fn rename(
    app: &App,
    call: &Call,
    mailbox: &str,
    id: FolderId,
    input: FolderName,
) -> Result<Folder> {
    let name = clean_name("name", &input.name)?;
    let named = mailboxes::name(call, mailbox);
    app.write(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        let folder = get_changeable(tx, &mailbox, &id).await?;
        tx.audit().about("folder", &id);
        refuse_system_name(&name)?;
        folders::rename(tx, &mailbox, &id, &name).await?;
        Ok(Folder { name, ..folder })
    })
    .await
}

/// Deletes a folder.
#[crate::boxed]
pub async fn delete(app: &App, call: &Call, mailbox: &str, id: FolderId) -> Result<()> {
    let named = mailboxes::name(call, mailbox);
    app.write(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        store::mailboxes::lock(tx, &mailbox).await?;
        tx.audit().about("folder", &id);
        get_changeable(tx, &mailbox, &id).await?;
        let moved = store::emails::folder_batch(tx, &mailbox, &id, i64::MAX).await?;
        store::emails::move_to(tx, &mailbox, &moved, &SystemFolder::Archive.into()).await?;
        Ok(folders::delete(tx, &mailbox, &id).await?)
    })
    .await
}

/// A custom folder named like a system folder would be confused with it.
fn refuse_system_name(name: &str) -> Result<()> {
    if !is_system_name(name) {
        return Ok(());
    }
    let fix = "Every mailbox has a folder with this name; choose another.";
    Err(Error::new(ErrorKind::FolderExists).with_fix(fix))
}

/// The mailbox that was found, if it has the folder that was asked for.
pub(crate) fn require(found: Option<MailboxFigure>) -> Result<MailboxFigure> {
    let found = found.ok_or_else(mailboxes::missing)?;
    if found.has_requested { Ok(found) } else { Err(Error::new(ErrorKind::FolderUnknown)) }
}

async fn get_changeable(tx: &mut Tx, mailbox: &model::MailboxId, id: &FolderId) -> Result<Folder> {
    let folder = folders::find(tx, mailbox, id).await?.ok_or_else(|| Error::not_found("Folder not found"))?;
    if folder.system {
        return Err(Error::new(ErrorKind::FolderProtected));
    }
    Ok(folder)
}
