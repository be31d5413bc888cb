//! A message as the worker delivers it: from memory if it was submitted a moment ago, or else from the store.

use bytes::{Bytes, BytesMut};
use store::{
    SystemTx,
    contents::ContentRecord,
    outbound::{self, ClaimedMessage, OutboundRecord},
    queue::ClaimedDelivery,
};

use super::attempts;
use crate::{
    core::{app::App, error::Result, state::outbox::Group},
    inbox::emails::present,
};

/// The remaining lease that a handover needs to begin.
const MIN_LEASE_SECONDS: i64 = 20;

/// How long after a submission a message is sent without a look at the store.
const MAX_FRESH_SECONDS: u64 = 2;

/// A message to deliver.
pub(super) struct LoadedMessage {
    pub(super) mail: OutboundRecord,
    bytes: MessageBytes,
}

/// The bytes of a message.
enum MessageBytes {
    /// It was submitted by this process a moment ago.
    Fresh(Bytes),
    /// To be opened.
    Stored(Box<ContentRecord>),
}

/// The message; `None` when it is gone, or another node has it. Recipients that other nodes have are left out.
pub(super) async fn load(app: &App, group: &mut Group) -> Result<Option<LoadedMessage>> {
    // It was claimed after it was submitted, so the claim cannot have expired, and no address was suppressed since.
    if let Some((mail, bytes)) = app.outbox().fresh_messages().take(&group.workspace, &group.outbound)
        && mail.created_at.seconds_until(app.now()) <= MAX_FRESH_SECONDS
    {
        return Ok(Some(LoadedMessage { mail, bytes: MessageBytes::Fresh(bytes) }));
    }
    let (id, node) = (group.outbound.clone(), app.outbox().node().to_owned());
    let (workspace, until) = (group.workspace.clone(), app.now().plus_seconds(MIN_LEASE_SECONDS));
    // As the worker's other reads, so that the connection needs no other setting; the statement names the workspace.
    let read =
        async move |tx: &mut SystemTx| outbound::find_claimed(tx.enter(&workspace), &id, &node, until).await;
    let found = app.db().system_read(read).await?;
    let Some(ClaimedMessage { mail, content, claimed, suppressed }) = found else { return Ok(None) };
    group.records.retain(|record| claimed.contains(&record.position));
    let is_suppressed = |record: &mut ClaimedDelivery| suppressed.contains(&record.position);
    let left_out: Vec<ClaimedDelivery> = group.records.extract_if(.., is_suppressed).collect();
    if !left_out.is_empty() {
        attempts::record_suppressed(app, group, &mail, left_out).await?;
    }
    let bytes = MessageBytes::Stored(Box::new(content));
    Ok((!group.records.is_empty()).then_some(LoadedMessage { mail, bytes }))
}

impl LoadedMessage {
    /// The bytes of the message as they go over the wire.
    pub(super) async fn open(&self, app: &App, group: &Group) -> Result<Bytes> {
        let raw = match &self.bytes {
            MessageBytes::Fresh(raw) => raw.clone(),
            MessageBytes::Stored(content) => present::open_raw(app, &group.workspace, content).await?.into(),
        };
        if self.mail.prefix.is_empty() {
            return Ok(raw);
        }
        let mut message = BytesMut::with_capacity(self.mail.prefix.len() + raw.len());
        message.extend_from_slice(self.mail.prefix.as_bytes());
        message.extend_from_slice(&raw);
        Ok(message.freeze())
    }
}
