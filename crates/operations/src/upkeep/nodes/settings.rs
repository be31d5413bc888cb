//! What a node says about the settings that must be the same on all nodes: digests, so that nobody learns them from the
//! table, under a key of the master key.

use hmac::Mac;
use store::{nodes::SettingDigests, vault::hex};

use crate::core::{app::App, error::Result, secrets::keyed};

/// The name under which the master key is compared. With another one all other digests differ as well.
pub(super) const MASTER_KEY: &str = "vault.master_key";
/// Bytes of a digest: enough to tell a few settings apart.
const DIGEST_BYTES: usize = 8;

/// A digest of each such setting, by its name in the configuration.
pub(super) fn digests(app: &App) -> Result<SettingDigests> {
    let settings = app.settings();
    let mut texts = vec![
        (MASTER_KEY, String::new()),
        ("hosted_domains", settings.hosted_domains.join(" ")),
        ("plans", format!("{:?}", settings.plans)),
        ("outbound.mode", settings.outbound.mode.to_string()),
        ("inbound.http_secret", settings.inbound_secret.clone().unwrap_or_default()),
        ("payments", format!("{:?}", settings.payments)),
    ];
    // A folder may be mounted in another place on each machine.
    if settings.blob_provider != "local" {
        texts.push(("blobs.url", settings.blob_bucket.clone()));
    }
    texts.into_iter().map(|(name, text)| Ok((name.to_owned(), digest(app, name, &text)?))).collect()
}

fn digest(app: &App, name: &str, text: &str) -> Result<String> {
    let tag = keyed(app, "settings of nodes", &[name, text])?.finalize().into_bytes();
    Ok(hex(&tag[..DIGEST_BYTES]))
}
