//! Signing mail on its way out with the keys of its domain.

use bytes::Bytes;
use model::WorkspaceId;
use store::outbound::OutboundRecord;

use crate::{App, Result};

/// Signs a message with the keys of its sender's domain, where there are some.
///
/// This is the one place that signs: hosted domains have no keys of their own yet, so mail from them goes as it is.
#[expect(clippy::unused_async, reason = "looking keys up waits for the store")]
pub(super) async fn sign(
    _app: &App,
    _workspace: &WorkspaceId,
    _mail: &OutboundRecord,
    message: Bytes,
) -> Result<Bytes> {
    Ok(message)
}
