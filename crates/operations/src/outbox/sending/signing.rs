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
    let author = message::author(&message).and_then(|author| Address::parse(&author).ok());
    let Some(author) = author else { return Ok(message) };
    let domain = author.domain().to_owned();
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
