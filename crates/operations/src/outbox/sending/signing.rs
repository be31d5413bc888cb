//! Signs outgoing messages (DKIM) with the keys of their domain.

use bytes::Bytes;
use mail::{
    address::Address,
    message,
    sign::{self, Identity},
};
use model::{WorkspaceId, outbound::OutboundKind};
use store::outbound::OutboundRecord;

use crate::{
    core::{
        app::App,
        error::{Error, Result},
    },
    mailbox::domains,
};

/// Signs a message with the keys of its author's domain: one of this server, or a verified one of the workspace.
pub(super) async fn sign(
    app: &App,
    workspace: &WorkspaceId,
    mail: &OutboundRecord,
    message: Bytes,
) -> Result<Bytes> {
    // A forwarded message has another author, who may have signed it.
    if mail.kind == OutboundKind::Forward {
        return Ok(message);
    }
    let Some(domain) = author_domain(message.clone()).await? else { return Ok(message) };
    let keys = domains::keys::signing_keys(app, workspace, &domain).await?;
    if keys.is_empty() {
        return Ok(message);
    }
    let now = app.now().as_micros() / 1_000_000;
    let work = move || {
        let identities: Vec<Identity<'_>> =
            keys.iter().map(|(selector, key)| Identity { domain: &domain, selector, key }).collect();
        sign::signed(&message, &identities, now).map(Bytes::from)
    };
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)?.map_err(Error::internal)
}

/// The domain of the From address, normalised.
async fn author_domain(message: Bytes) -> Result<Option<String>> {
    let read = tokio::task::spawn_blocking(move || message::read(&message).from).await;
    let from = read.map_err(Error::internal)?;
    Ok(from.and_then(|from| Address::parse(&from.address).ok()).map(|from| from.domain().to_owned()))
}
