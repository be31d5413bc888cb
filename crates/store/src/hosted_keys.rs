//! The DKIM keys of this server's own domains.

use crate::{SystemTx, domains::KeyRecord, error::Result};

/// The keys of a domain, oldest first.
pub async fn list(tx: &mut SystemTx, domain: &str) -> Result<Vec<KeyRecord>> {
    tx.all(
        "SELECT selector, algorithm, private, public_record, published, created_at FROM hosted_key
         WHERE domain = $1 ORDER BY created_at, algorithm DESC",
        &[domain.into()],
    )
    .await
}

/// Adds a key, unless another node already did.
pub async fn insert(tx: &mut SystemTx, domain: &str, key: &KeyRecord) -> Result<()> {
    tx.run(
        "INSERT INTO hosted_key (domain, selector, algorithm, private, public_record, published, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (domain, selector) DO NOTHING",
        &[
            domain.into(),
            (&key.selector).into(),
            (&key.algorithm).into(),
            (&key.private).into(),
            (&key.public_record).into(),
            key.published.into(),
            key.created_at.into(),
        ],
    )
    .await?;
    Ok(())
}

/// Records whether the public half of a key is in DNS.
pub async fn set_published(tx: &mut SystemTx, domain: &str, selector: &str, published: bool) -> Result<()> {
    tx.run(
        "UPDATE hosted_key SET published = $3 WHERE domain = $1 AND selector = $2",
        &[domain.into(), selector.into(), published.into()],
    )
    .await?;
    Ok(())
}

/// Deletes a key.
pub async fn delete(tx: &mut SystemTx, domain: &str, selector: &str) -> Result<()> {
    tx.run("DELETE FROM hosted_key WHERE domain = $1 AND selector = $2", &[domain.into(), selector.into()])
        .await?;
    Ok(())
}
