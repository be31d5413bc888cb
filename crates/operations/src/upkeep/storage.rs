//! Storage checks: unused blobs are deleted, and everything stored is read back regularly.

use std::time::Duration;

use futures_util::StreamExt;
use model::{EmailId, MailboxId, WorkspaceId};
use store::{
    SystemTx, Tx,
    blobs::{BlobError, BlobHash, ListedBlob},
    contents::{self, ContentRecord, Part, StoredPart, Texts},
    emails, knowledge, mailboxes,
    search::{self, IndexMarker, IndexableEmail, IndexedText},
    system,
};

use crate::{
    core::{app::App, error::Result, supervisor::isolate},
    inbox::emails::present::{self, EmailContent},
};

/// Younger blobs may belong to a message that is just arriving, or to a running backup.
const MIN_BLOB_AGE_SECONDS: i64 = 24 * 3600;
/// How long after new names have begun in a bucket nobody puts anything under a former name any more.
const MAX_PUT_SECONDS: i64 = 3600;
/// Workspaces, blobs or contents per step.
const BATCH: i64 = 100;
/// Between two steps of merging the search index.
const MERGE_PAUSE: Duration = Duration::from_millis(5);

/// The result of a scrub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// Contents that were read back.
    pub checked: u64,
    /// Damaged contents: workspace, content and reason.
    pub damaged: Vec<(WorkspaceId, String, String)>,
}

/// Reads back every content of every workspace and returns what is damaged.
#[crate::boxed]
pub async fn scrub(app: &App) -> Result<ScrubReport> {
    let mut found = ScrubReport::default();
    let mut workspace = String::new();
    loop {
        let after = workspace.clone();
        let next =
            app.db().system_read(async move |tx| system::workspaces_after(tx, &after, BATCH).await).await?;
        let Some(last) = next.last() else { return Ok(found) };
        workspace = last.as_str().to_owned();
        for id in &next {
            scrub_workspace(app, id, &mut found).await?;
        }
    }
}

/// Reads back every content of a workspace.
pub(super) async fn scrub_workspace(
    app: &App,
    workspace: &WorkspaceId,
    found: &mut ScrubReport,
) -> Result<()> {
    let mut after = String::new();
    loop {
        let from = after.clone();
        let contents =
            app.db().read(workspace, async move |tx| contents::list_after(tx, &from, BATCH).await).await?;
        let Some(last) = contents.last() else { return Ok(()) };
        after = last.id.clone();
        for content in &contents {
            found.checked += 1;
            if let Some(reason) = damage(app, workspace, content).await? {
                tracing::error!(%workspace, content = content.id, reason, "stored message damaged; operator action needed");
                metrics::counter!("damaged_contents_total").increment(1);
                found.damaged.push((workspace.clone(), content.id.clone(), reason));
            }
        }
        // Other tasks come first.
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
    let headers = content.headers.as_ref().map(|sealed| StoredPart::InRow(sealed.clone()));
    let parts = [
        (Part::Headers, headers.as_ref()),
        (Part::Body, Some(&content.body)),
        (Part::Safe, content.safe.as_ref()),
    ];
    for (part, kept) in parts {
        let outcome = match kept {
            Some(StoredPart::InRow(_)) if part == Part::Safe => {
                let parts = (Some(&content.body), kept);
                contents::open_safe_start(&key, &content.id, parts, &mut |_| false).map(|_| ())
            }
            Some(StoredPart::InRow(sealed)) => contents::open(&key, &content.id, part, sealed).map(|_| ()),
            Some(StoredPart::Blob(name)) => {
                let checked = app.blobs().verify(workspace.as_str(), &key, name).await;
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

/// Merges parts of the search index in small steps, as long as the caller has nothing better to do.
pub async fn merge_search(app: &App, idle: impl Fn() -> bool) -> Result<()> {
    while app.db().system_write(async |tx| search::merge_some(tx).await).await? && idle() {
        // Other writes come first.
        tokio::time::sleep(MERGE_PAUSE).await;
    }
    Ok(())
}

/// Indexes the texts that wait for it on PostgreSQL.
#[crate::boxed]
pub async fn index_marked(app: &App) -> Result<()> {
    while app.db().system_write(async |tx| search::index_marked(tx).await).await? {}
    Ok(())
}

/// Rebuilds the search index from the stored messages of all workspaces, and returns how many it indexed. Mail may
/// arrive and be deleted meanwhile. `done` gets the count so far.
pub async fn rebuild_search(app: &App, mut done: impl FnMut(u64)) -> Result<u64> {
    let (mut count, mut workspace) = (0, String::new());
    loop {
        let after = workspace.clone();
        let next =
            app.db().system_read(async move |tx| system::workspaces_after(tx, &after, BATCH).await).await?;
        let Some(last) = next.last() else { return Ok(count) };
        workspace = last.as_str().to_owned();
        for id in &next {
            let mut after = (MailboxId::from(""), EmailId::from(""));
            while let Some((reached, indexed)) = index_some(app, id, after).await? {
                after = reached;
                count += indexed;
                done(count);
            }
        }
    }
}

/// Indexes the next messages of a workspace, and returns the last of them and their number.
async fn index_some(
    app: &App,
    workspace: &WorkspaceId,
    (mailbox, email): (MailboxId, EmailId),
) -> Result<Option<((MailboxId, EmailId), u64)>> {
    let listed = async move |tx: &mut Tx| search::list_after(tx, &mailbox, &email, BATCH).await;
    let found = app.db().read(workspace, listed).await?;
    let Some(last) = found.last() else { return Ok(None) };
    let reached = (last.mailbox_id.clone(), last.id.clone());
    let mut ready = Vec::with_capacity(found.len());
    for mail in found {
        let safe = safe_text(app, workspace, &mail).await.unwrap_or_else(|error| {
            // It is still found by its subject and sender.
            tracing::error!(%workspace, email = %mail.id, %error, "message text unreadable; indexing its headers only");
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

/// The text of a message that agents see.
async fn safe_text(app: &App, workspace: &WorkspaceId, mail: &IndexableEmail) -> Result<String> {
    let content = mail.content_id.clone();
    let read = async move |tx: &mut Tx| contents::find_view::<Texts>(tx, &content).await;
    Ok(match app.db().read(workspace, read).await? {
        Some(texts) => match present::open(app, workspace, texts.into()).await? {
            EmailContent::Safe(text) => text,
            _ => String::new(),
        },
        None => String::new(),
    })
}

fn indexed_text(mail: &IndexableEmail, safe: &str) -> IndexedText {
    let recipients = match &mail.cc {
        Some(cc) => format!("{}, {cc}", mail.to_line),
        None => mail.to_line.clone(),
    };
    IndexedText::new(&mail.subject, &mail.sender, &recipients, safe)
}

/// Messages that are indexed at the same time.
const INDEXED_AT_ONCE: usize = 16;

/// Indexes messages that an ended process had left pending, or that an upgrade of the index marked. Handles entries up
/// to the given one, at most about so many, and returns the newest: an entry that is still pending a while later has no
/// owner. Where it has one after all, whoever comes second finds it done.
#[crate::boxed]
pub async fn index_lost(app: &App, up_to: i64, most: usize) -> Result<i64> {
    let newest = app.db().system_read(async |tx| search::newest_pending(tx).await).await?;
    let (mut after, mut indexed, up_to) = (0, 0, up_to.min(newest));
    loop {
        if indexed >= most {
            return Ok(newest);
        }
        let listed = async move |tx: &mut SystemTx| search::list_pending(tx, after, up_to, BATCH).await;
        let lost = app.db().system_read(listed).await?;
        let Some(last) = lost.last() else { return Ok(newest) };
        after = last.id;
        indexed += lost.len();
        // Some at once, so that they share commits.
        let index = async |pending: IndexMarker| {
            if let Err(error) = isolate("search-index", index_one(app, &pending)).await {
                let (workspace, email) = (&pending.workspace_id, &pending.email_id);
                tracing::error!(%workspace, %email, %error, "message not indexed; retrying");
            }
        };
        futures_util::stream::iter(lost).for_each_concurrent(INDEXED_AT_ONCE, index).await;
    }
}

async fn index_one(app: &App, pending: &IndexMarker) -> Result<()> {
    let (mailbox, email) = (pending.mailbox_id.clone(), pending.email_id.clone());
    let find = async move |tx: &mut Tx| search::find_indexable(tx, &mailbox, &email).await;
    let text = match app.db().read(&pending.workspace_id, find).await? {
        Some(mail) => Some(indexed_text(&mail, &safe_text(app, &pending.workspace_id, &mail).await?)),
        None => None,
    };
    let entry = pending.clone();
    let index = async move |tx: &mut Tx| search::index_pending(tx, &entry, text.as_ref()).await;
    Ok(app.db().write(&pending.workspace_id, index).await?)
}

/// Deletes blobs that no content and no document uses, except young ones. Returns how many.
#[crate::boxed]
pub async fn sweep_blobs(app: &App) -> Result<u64> {
    let (mut deleted, mut workspace) = (0, String::new());
    loop {
        let after = workspace.clone();
        let next =
            app.db().system_read(async move |tx| system::workspaces_after(tx, &after, BATCH).await).await?;
        let Some(last) = next.last() else { return Ok(deleted) };
        workspace = last.as_str().to_owned();
        for id in &next {
            deleted += sweep_workspace(app, id).await?;
        }
    }
}

/// The same in one workspace.
pub(super) async fn sweep_workspace(app: &App, workspace: &WorkspaceId) -> Result<u64> {
    let may_go = DeletionRule::new(app).await?;
    let (mut deleted, mut after) = (0, None);
    loop {
        let page = app
            .blobs()
            .list(workspace.as_str(), after.as_ref(), usize::try_from(BATCH).unwrap_or(100))
            .await
            .map_err(store::Error::from)?;
        for blob in page.blobs.iter().filter(|blob| may_go.allows(blob)) {
            let name = blob.name.clone();
            let used = app
                .db()
                .read(workspace, async move |tx| {
                    Ok::<_, store::Error>(
                        contents::uses_blob(tx, &name).await? || knowledge::uses_blob(tx, &name).await?,
                    )
                })
                .await?;
            if !used && remove(app, workspace, blob, may_go.before).await? {
                deleted += 1;
            }
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(deleted),
        }
    }
}

/// Which unused blobs may be deleted. What this says once of a name must hold for ever: the deletion may come late.
struct DeletionRule {
    before: i64,
    /// Whether names without a suffix are not given to anything any more, or a folder spares what is written again.
    unsuffixed: bool,
}

impl DeletionRule {
    async fn new(app: &App) -> Result<Self> {
        let now = app.now();
        let unsuffixed = !app.blobs().is_bucket()
            || app.fresh_names_since().await?.is_some_and(|since| since.plus_seconds(MAX_PUT_SECONDS) < now);
        Ok(Self { before: now.plus_seconds(-MIN_BLOB_AGE_SECONDS).as_micros(), unsuffixed })
    }

    /// A blob is old by the clock of the bucket and by that of the node that put it: one of them may be wrong.
    fn allows(&self, blob: &ListedBlob) -> bool {
        blob.modified.is_some_and(|at| at < self.before)
            && blob.name.suffix.as_ref().map_or(self.unsuffixed, |suffix| suffix.made_at() < self.before)
    }
}

/// Deletes a blob, unless it was renewed since it was listed: then a new message is about to use it.
async fn remove(app: &App, workspace: &WorkspaceId, blob: &ListedBlob, before: i64) -> Result<bool> {
    match app.blobs().delete_older(workspace.as_str(), &blob.name, before).await {
        Ok(deleted) => Ok(deleted),
        Err(BlobError::Missing { .. }) => Ok(false),
        Err(error) => Err(store::Error::from(error).into()),
    }
}

/// Deletes mailboxes whose grace period is over, with all their mail.
pub(crate) async fn delete_expired_mailboxes(app: &App) -> Result<()> {
    let before = app.now().plus_seconds(-app.settings().mailbox_grace_seconds);
    let doomed = app.db().system_read(async move |tx| system::expired_mailboxes(tx, before).await).await?;
    for (workspace, mailbox) in doomed {
        delete_mailbox(app, &workspace, mailbox).await?;
    }
    Ok(())
}

async fn delete_mailbox(app: &App, workspace: &WorkspaceId, mailbox: MailboxId) -> Result<()> {
    loop {
        let id = mailbox.clone();
        let left = app
            .db()
            .write(workspace, async move |tx| {
                let batch = emails::any_batch(tx, &id, BATCH).await?;
                emails::delete(tx, &id, &batch).await?;
                if batch.is_empty() {
                    mailboxes::delete(tx, &id).await?;
                }
                Ok::<_, store::Error>(batch.len())
            })
            .await?;
        if left == 0 {
            return Ok(());
        }
    }
}
