//! Storing a message in its mailboxes, all in one transaction, which it shares with others to the same workspace.
//!
//! Locks are taken in the same order everywhere: mailboxes, reported messages, the event log, contents.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use mail::message::{self, Message};
use model::{EmailId, Timestamp, WorkspaceId, emails::SenderAuthentication};
use store::{Db, SystemTx, Tx, idempotency, mailboxes};

use super::{
    Arrival, PreparedMessage,
    content::{Content, SealedContent},
    delivery::{Delivery, MailboxDelivery, store_all},
    prepare,
};
use crate::core::{
    app::App,
    arriving::Recipient,
    compute::{MAX_INLINE_BYTES, caught},
    error::{Error, Result},
};

/// Parses and analyses a message, a long one on a blocking thread.
pub(crate) async fn read(app: &App, raw: Bytes) -> Result<PreparedMessage> {
    let blocklist = app.scanning().blocklist();
    let _turn = app.scanning().turn().await;
    let bytes = raw.clone();
    parsed(raw, move |message| prepare::analyse(&bytes, message, &blocklist)).await
}

/// Parses a message and works on it; on a blocking thread if it is long or has files, which may contain archives.
async fn parsed<T: Send + 'static>(
    raw: Bytes,
    work: impl FnOnce(Message) -> T + Send + 'static,
) -> Result<T> {
    let short = if raw.len() <= MAX_INLINE_BYTES { Some(caught(|| message::read(&raw))?) } else { None };
    match short {
        Some(message) if message.files.is_empty() && message.inner.is_empty() => caught(|| work(message)),
        read => {
            let work = move || work(read.unwrap_or_else(|| message::read(&raw)));
            tokio::task::spawn_blocking(work).await.map_err(Error::internal)
        }
    }
}

/// Parses and analyses a message and seals it for its workspaces; a long one on a blocking thread.
pub(crate) async fn prepare_and_seal(
    app: &App,
    raw: &Bytes,
    workspaces: impl Iterator<Item = &WorkspaceId>,
) -> Result<(Arc<PreparedMessage>, BTreeMap<WorkspaceId, Content>)> {
    let mut keys = BTreeMap::new();
    for workspace in workspaces {
        if !keys.contains_key(workspace) {
            keys.insert(workspace.clone(), app.data_key(workspace).await?);
        }
    }
    let (blocklist, bytes) = (app.scanning().blocklist(), raw.clone());
    let turn = app.scanning().turn().await;
    let finish = move |message: Message| -> Result<_> {
        let prepared = prepare::analyse(&bytes, message, &blocklist);
        let mut sealed = Vec::with_capacity(keys.len());
        for (workspace, key) in keys {
            let content = SealedContent::new(key, &workspace, &prepared, &bytes)?;
            sealed.push((workspace, content));
        }
        Ok((prepared, sealed))
    };
    let (prepared, sealed) = parsed(raw.clone(), finish).await??;
    drop(turn);
    let mut contents = BTreeMap::new();
    for (workspace, sealed) in sealed {
        contents.insert(workspace, Content::store(app, sealed).await?);
    }
    Ok((Arc::new(prepared), contents))
}

/// A prepared message with everything that its delivery needs.
struct PreparedDelivery {
    app: App,
    arrival: Arrival,
    authentication: SenderAuthentication,
    name: Option<String>,
    prepared: Arc<PreparedMessage>,
    contents: BTreeMap<WorkspaceId, Content>,
    ids: Vec<EmailId>,
}

impl PreparedDelivery {
    fn delivery(&self) -> Delivery<'_> {
        Delivery {
            app: &self.app,
            prepared: &self.prepared,
            authentication: &self.authentication,
            sender: self.arrival.from.as_deref(),
            now: self.app.now(),
            // What came by no transport was uploaded.
            imported: self.arrival.provider.is_none(),
        }
    }

    /// The workspace of all recipients, if they have the same.
    fn sole_workspace(&self) -> Option<&WorkspaceId> {
        let workspace = &self.arrival.recipients.first()?.workspace;
        self.arrival.recipients.iter().all(|one| one.workspace == *workspace).then_some(workspace)
    }

    /// Where it goes, each place once.
    fn places(&self) -> impl Iterator<Item = (&Recipient, &EmailId)> {
        let ids = self.ids.iter();
        let is_first = |(index, (_, id)): &(usize, (&Recipient, &EmailId))| !self.ids[..*index].contains(id);
        self.arrival.recipients.iter().zip(ids).enumerate().filter(is_first).map(|(_, place)| place)
    }

    fn content(&self, workspace: &WorkspaceId) -> Result<&Content> {
        let content = self.contents.get(workspace);
        content.ok_or_else(|| Error::internal("a recipient's workspace was not prepared"))
    }
}

/// Delivers to all recipients, or to none; returns the prepared message, too.
pub(super) async fn deliver(
    app: &App,
    arrival: Arrival,
    authentication: SenderAuthentication,
    name: Option<String>,
) -> Result<(Vec<EmailId>, Arc<PreparedMessage>)> {
    let workspaces = arrival.recipients.iter().map(|recipient| &recipient.workspace);
    let (prepared, contents) = prepare_and_seal(app, &arrival.raw, workspaces).await?;
    let ids = new_ids(app, &arrival.recipients);
    let delivery = Arc::new(PreparedDelivery {
        app: app.clone(),
        arrival,
        authentication,
        name,
        prepared,
        contents,
        ids,
    });
    // Keep a reference, so that the message is not dropped on the store's only writer thread.
    let kept = delivery.clone();
    let work = write(app.db().clone(), delivery);
    // The client may disconnect at any time, and other deliveries share its commit.
    let delivered = if app.db().finishes_alone() {
        work.await
    } else {
        tokio::spawn(work).await.map_err(Error::internal)?
    };
    Ok((delivered?, kept.prepared.clone()))
}

/// Stores a delivery, together with others to its workspace if possible.
async fn write(db: Db, delivery: Arc<PreparedDelivery>) -> Result<Vec<EmailId>> {
    // A report locks the row of the reported message, which the sending worker locks before the event log; other members
    // of its batch would have locked the log already. And a batch has the locks of one workspace only.
    let shared = delivery.sole_workspace().filter(|_| delivery.prepared.report.is_none()).cloned();
    let Some(workspace) = shared else {
        let body = async move |tx: &mut SystemTx| {
            let ids = deliver_all(tx, &[delivery]).await?.pop();
            ids.ok_or_else(|| Error::internal("a delivery without ids"))
        };
        return db.system_write(body).await;
    };
    let in_rows: usize = delivery.contents.values().map(Content::bytes_in_row).sum();
    let bytes = in_rows + delivery.arrival.raw.len();
    let write = |deliveries: Vec<Arc<PreparedDelivery>>| {
        async move |tx: &mut SystemTx| deliver_all(tx, &deliveries).await
    };
    db.batch_write(workspace.as_str(), delivery, bytes, write).await
}

/// Stores deliveries for all their recipients, and returns the ids in the order of the recipients. A recipient who got a
/// message under the same idempotency key before does not get it again.
async fn deliver_all(tx: &mut SystemTx, deliveries: &[Arc<PreparedDelivery>]) -> Result<Vec<Vec<EmailId>>> {
    // In one order for all deliveries, so that two messages to the same mailboxes cannot deadlock.
    let places = || deliveries.iter().flat_map(|delivery| delivery.places());
    let mailboxes: BTreeSet<_> = places().map(|(to, _)| (&to.workspace, &to.mailbox)).collect();
    let workspaces: BTreeSet<&WorkspaceId> = mailboxes.iter().map(|(workspace, _)| *workspace).collect();
    let is_named = deliveries.iter().any(|delivery| delivery.name.is_some());
    let has_report = deliveries.iter().any(|delivery| delivery.prepared.report.is_some());
    // All mailboxes before anything else, as in every other transaction; those of one workspace are locked with the first
    // look-up.
    if workspaces.len() > 1 || is_named || has_report {
        for (workspace, mailbox) in &mailboxes {
            mailboxes::lock(tx.enter(workspace), mailbox).await?;
        }
    }
    lock_reported(tx, deliveries).await?;
    let contexts: Vec<Delivery<'_>> = deliveries.iter().map(|delivery| delivery.delivery()).collect();
    let mut earlier_ids: BTreeMap<EmailId, EmailId> = BTreeMap::new();
    for workspace in workspaces {
        let tx = tx.enter(workspace);
        let mut stored = Vec::new();
        for (delivery, context) in deliveries.iter().zip(&contexts) {
            let content = delivery.content(workspace)?;
            let mut here: Vec<_> = delivery.places().filter(|(to, _)| to.workspace == *workspace).collect();
            here.sort_by_key(|(to, id)| (&to.mailbox, *id));
            for (recipient, id) in here {
                if let Some(name) = &delivery.name
                    && let Some(earlier) = claim(tx, content, name, recipient, id, context.now).await?
                {
                    earlier_ids.insert(id.clone(), earlier);
                    continue;
                }
                stored.push(MailboxDelivery { delivery: context, recipient, id, content });
            }
        }
        if let Some(first) = stored.first() {
            store_all(tx, first.delivery.app, &stored).await?;
        }
    }
    let given = |id: &EmailId| earlier_ids.get(id).unwrap_or(id).clone();
    Ok(deliveries.iter().map(|delivery| delivery.ids.iter().map(given).collect()).collect())
}

/// Locks reported messages before any event log, in the order of the sending worker.
async fn lock_reported(tx: &mut SystemTx, deliveries: &[Arc<PreparedDelivery>]) -> Result<()> {
    for delivery in deliveries {
        let Some(report) = &delivery.prepared.report else { continue };
        let mut places: Vec<_> = delivery.places().collect();
        places.sort_by_key(|(to, id)| (&to.workspace, &to.mailbox, *id));
        for (to, _) in places {
            for hook in delivery.app.hooks().arrival {
                hook.lock_reported(tx.enter(&to.workspace), &to.mailbox, report).await?;
            }
        }
    }
    Ok(())
}

/// Claims an idempotency key for a recipient, or finds the email that was stored under it before.
async fn claim(
    tx: &mut Tx,
    content: &Content,
    name: &str,
    recipient: &Recipient,
    id: &EmailId,
    now: Timestamp,
) -> Result<Option<EmailId>> {
    // An Idempotency-Key of a caller has no line feed.
    let key = format!("mail\n{name}\n{}", recipient.address);
    if idempotency::claim(tx, &key, &[], now).await? {
        let sealed = content.key.seal(&key, id.as_str().as_bytes()).map_err(store::Error::from)?;
        idempotency::store(tx, &key, 200, &sealed).await?;
        return Ok(None);
    }
    let kept = idempotency::find(tx, &key, now).await?;
    let kept = kept.ok_or_else(|| Error::internal("a claimed name has no answer"))?;
    let plain = content.key.open(&key, &kept.answer).map_err(store::Error::from)?;
    Ok(Some(EmailId::from(String::from_utf8_lossy(&plain).as_ref())))
}

/// An id for each recipient; a duplicate recipient gets the message once.
fn new_ids(app: &App, recipients: &[Recipient]) -> Vec<EmailId> {
    let mut ids: Vec<EmailId> = Vec::with_capacity(recipients.len());
    for (index, recipient) in recipients.iter().enumerate() {
        let same =
            |other: &Recipient| other.mailbox == recipient.mailbox && other.address == recipient.address;
        let earlier = recipients[..index].iter().position(same);
        ids.push(earlier.map_or_else(|| app.new_id(), |earlier| ids[earlier].clone()));
    }
    ids
}
