//! Keeping stored mail whole: blobs that nothing needs any more go, and everything that is kept is read back now and
//! then.

use model::{EmailId, MailboxId, WorkspaceId};
use store::{
    SystemTx, Tx,
    blobs::{BlobError, BlobHash},
    contents::{self, ContentRecord, Part, StoredPart},
    emails, knowledge, mailboxes,
    search::{self, Indexable, IndexedText, Pending},
    system,
};

use crate::{
    core::{app::App, error::Result, supervisor::isolate},
    inbox::emails::present::{self, EmailContent},
};

/// Blobs younger than this may belong to mail that is just arriving, or to a backup that is just being made.
const GRACE_SECONDS: i64 = 24 * 3600;
/// Workspaces, blobs or contents that one step looks at.
const STEP: i64 = 100;

/// What a look at stored mail found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// Contents that were read back.
    pub checked: u64,
    /// What is wrong: the workspace, the content and why.
    pub damaged: Vec<(WorkspaceId, String, String)>,
}

/// Reads back every content of every workspace and tells what is damaged.
#[crate::boxed]
pub async fn scrub(app: &App) -> Result<Scrubbed> {
    let mut found = Scrubbed::default();
    let mut workspace = String::new();
    loop {
        let after = workspace.clone();
        let next =
            app.db().system_read(async move |tx| system::workspaces_after(tx, &after, STEP).await).await?;
        let Some(last) = next.last() else { return Ok(found) };
        workspace = last.as_str().to_owned();
        for id in &next {
            scrub_workspace(app, id, &mut found).await?;
        }
    }
}

async fn scrub_workspace(app: &App, workspace: &WorkspaceId, found: &mut Scrubbed) -> Result<()> {
    let mut after = String::new();
    loop {
        let from = after.clone();
        let contents =
            app.db().read(workspace, async move |tx| contents::list_after(tx, &from, STEP).await).await?;
        let Some(last) = contents.last() else { return Ok(()) };
        after = last.id.clone();
        for content in &contents {
            found.checked += 1;
            if let Some(reason) = damage(app, workspace, content).await? {
                tracing::error!(%workspace, content = content.id, reason, "stored mail is damaged");
                metrics::counter!("damaged_contents_total").increment(1);
                found.damaged.push((workspace.clone(), content.id.clone(), reason));
            }
        }
        // Others come first.
        tokio::task::yield_now().await;
    }
}

/// What is wrong with a content, if anything is.
async fn damage(app: &App, workspace: &WorkspaceId, content: &ContentRecord) -> Result<Option<String>> {
    let key = app.data_key(workspace).await?;
    let raw = match present::open_raw(app, workspace, content).await {
        Ok(raw) => raw,
        Err(error) => return Ok(Some(error.to_string())),
    };
    if BlobHash::of(&raw).as_str() != content.id {
        return Ok(Some("the message is another one than its name says".to_owned()));
    }
    for (part, kept) in [(Part::Body, Some(&content.body)), (Part::Safe, content.safe.as_ref())] {
        let outcome = match kept {
            Some(StoredPart::InRow(sealed)) => contents::open(&key, &content.id, part, sealed).map(|_| ()),
            Some(StoredPart::Blob(hash)) => {
                let checked = app.blobs().verify(workspace.as_str(), &key, hash).await;
                checked.map(|_| ()).map_err(store::Error::from)
            }
            None => Ok(()),
        };
        if let Err(error) = outcome {
            return Ok(Some(error.to_string()));
        }
    }
    Ok(None)
}

/// Makes the index for search anew from the stored mails, for all workspaces, and tells how many it indexed. Mail may
/// arrive and go meanwhile. `done` hears the number so far.
pub async fn rebuild_search(app: &App, mut done: impl FnMut(u64)) -> Result<u64> {
    let (mut count, mut workspace) = (0, String::new());
    loop {
        let after = workspace.clone();
        let next =
            app.db().system_read(async move |tx| system::workspaces_after(tx, &after, STEP).await).await?;
        let Some(last) = next.last() else { return Ok(count) };
        workspace = last.as_str().to_owned();
        for id in &next {
            let mut place = (MailboxId::from(""), EmailId::from(""));
            while let Some((reached, indexed)) = index_some(app, id, place).await? {
                place = reached;
                count += indexed;
                done(count);
            }
        }
    }
}

/// Indexes the next mails of a workspace, and tells the last of them and how many they were.
async fn index_some(
    app: &App,
    workspace: &WorkspaceId,
    (mailbox, email): (MailboxId, EmailId),
) -> Result<Option<((MailboxId, EmailId), u64)>> {
    let listed = async move |tx: &mut Tx| search::list_after(tx, &mailbox, &email, STEP).await;
    let found = app.db().read(workspace, listed).await?;
    let Some(last) = found.last() else { return Ok(None) };
    let reached = (last.mailbox_id.clone(), last.id.clone());
    let mut ready = Vec::with_capacity(found.len());
    for mail in found {
        let safe = safe_text(app, workspace, &mail).await.unwrap_or_else(|error| {
            // It is still found by its subject and by who wrote it.
            tracing::error!(%workspace, email = %mail.id, %error, "a mail's text cannot be indexed");
            String::new()
        });
        let text = indexed_text(&mail, &safe);
        ready.push((mail.mailbox_id, mail.id, text));
    }
    let count = ready.len() as u64;
    let index = async move |tx: &mut Tx| {
        for (mailbox, email, text) in &ready {
            search::reindex(tx, mailbox, email, text).await?;
        }
        Ok::<_, store::Error>(())
    };
    app.db().write(workspace, index).await?;
    Ok(Some((reached, count)))
}

/// The text of a mail that agents see.
async fn safe_text(app: &App, workspace: &WorkspaceId, mail: &Indexable) -> Result<String> {
    let content = mail.content_id.clone();
    let read = async move |tx: &mut Tx| contents::find_safe(tx, &content).await;
    Ok(match app.db().read(workspace, read).await? {
        Some(texts) => match present::open(app, workspace, texts.into()).await? {
            EmailContent::Safe(text) => text,
            _ => String::new(),
        },
        None => String::new(),
    })
}

fn indexed_text(mail: &Indexable, safe: &str) -> IndexedText {
    let recipients = match &mail.cc {
        Some(cc) => format!("{}, {cc}", mail.to_line),
        None => mail.to_line.clone(),
    };
    IndexedText::new(&mail.subject, &mail.sender, &recipients, safe)
}

/// Indexes mails whose texts waited for that in a process that ended. Looks at marks up to the given one, and tells the
/// newest: where that still stands after a while, nobody will come for it.
#[crate::boxed]
pub async fn index_lost(app: &App, up_to: i64) -> Result<i64> {
    let newest = app.db().system_read(async |tx| search::newest_pending(tx).await).await?;
    let mut after = 0;
    loop {
        let listed = async move |tx: &mut SystemTx| search::list_pending(tx, after, up_to, STEP).await;
        let lost = app.db().system_read(listed).await?;
        let Some(last) = lost.last() else { return Ok(newest) };
        after = last.id;
        for mark in lost {
            if let Err(error) = isolate("search-index", index_one(app, &mark)).await {
                let (workspace, email) = (&mark.workspace_id, &mark.email_id);
                tracing::error!(%workspace, %email, %error, "a mail that was not indexed will be looked at again");
            }
        }
    }
}

async fn index_one(app: &App, mark: &Pending) -> Result<()> {
    let (mailbox, email) = (mark.mailbox_id.clone(), mark.email_id.clone());
    let find = async move |tx: &mut Tx| search::find_indexable(tx, &mailbox, &email).await;
    let text = match app.db().read(&mark.workspace_id, find).await? {
        Some(mail) => Some(indexed_text(&mail, &safe_text(app, &mark.workspace_id, &mail).await?)),
        None => None,
    };
    let marked = mark.clone();
    let index = async move |tx: &mut Tx| search::index_marked(tx, &marked, text.as_ref()).await;
    Ok(app.db().write(&mark.workspace_id, index).await?)
}

/// Removes blobs that no content and no document lies in, except young ones. Tells how many went.
#[crate::boxed]
pub async fn sweep_blobs(app: &App) -> Result<u64> {
    let before = app.now().plus_seconds(-GRACE_SECONDS).as_micros();
    let (mut gone, mut workspace) = (0, String::new());
    loop {
        let after = workspace.clone();
        let next =
            app.db().system_read(async move |tx| system::workspaces_after(tx, &after, STEP).await).await?;
        let Some(last) = next.last() else { return Ok(gone) };
        workspace = last.as_str().to_owned();
        for id in &next {
            gone += sweep_space(app, id, before).await?;
        }
    }
}

async fn sweep_space(app: &App, workspace: &WorkspaceId, before: i64) -> Result<u64> {
    let (mut gone, mut after) = (0, None);
    loop {
        let page = app
            .blobs()
            .list(workspace.as_str(), after.as_ref(), usize::try_from(STEP).unwrap_or(100))
            .await
            .map_err(store::Error::from)?;
        for blob in page.blobs.iter().filter(|blob| blob.modified.is_some_and(|at| at < before)) {
            let hash = blob.hash.clone();
            let used = app
                .db()
                .read(workspace, async move |tx| {
                    Ok::<_, store::Error>(
                        contents::uses_blob(tx, &hash).await? || knowledge::uses_blob(tx, &hash).await?,
                    )
                })
                .await?;
            if !used && remove(app, workspace, &blob.hash, before).await? {
                gone += 1;
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(gone),
        }
    }
}

/// Removes a blob, unless it became young again since it was listed: then new mail is about to need it.
async fn remove(app: &App, workspace: &WorkspaceId, hash: &BlobHash, before: i64) -> Result<bool> {
    match app.blobs().delete_older(workspace.as_str(), hash, before).await {
        Ok(gone) => Ok(gone),
        Err(BlobError::Missing { .. }) => Ok(false),
        Err(error) => Err(store::Error::from(error).into()),
    }
}

/// Deletes mailboxes whose time of grace is over, with all their mail.
pub(crate) async fn end_mailboxes(app: &App) -> Result<()> {
    let before = app.now().plus_seconds(-app.settings().mailbox_grace_seconds);
    let doomed = app.db().system_read(async move |tx| system::doomed_mailboxes(tx, before).await).await?;
    for (workspace, mailbox) in doomed {
        end_mailbox(app, &workspace, mailbox).await?;
    }
    Ok(())
}

async fn end_mailbox(app: &App, workspace: &WorkspaceId, mailbox: MailboxId) -> Result<()> {
    loop {
        let id = mailbox.clone();
        let left = app
            .db()
            .write(workspace, async move |tx| {
                let mails = emails::any_batch(tx, &id, STEP).await?;
                emails::delete(tx, &id, &mails).await?;
                if mails.is_empty() {
                    mailboxes::delete(tx, &id).await?;
                }
                Ok::<_, store::Error>(mails.len())
            })
            .await?;
        if left == 0 {
            return Ok(());
        }
    }
}
