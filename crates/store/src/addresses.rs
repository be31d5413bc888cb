//! Which workspace an address on a hosted domain belongs to. The table spans workspaces, because those addresses are
//! unique on the server. An address on a custom domain belongs to the workspace that verified the domain, and is not
//! in this table.

use model::MailboxId;

use crate::{SystemTx, Tx, error::Result};

/// The domain of a normalised address.
pub(crate) fn domain_of(address: &str) -> &str {
    address.rsplit_once('@').map_or("", |(_, domain)| domain)
}

/// Claims an address for a mailbox. False when another mailbox or workspace has it, or another workspace verified its
/// domain before that became a hosted one.
pub async fn claim(tx: &mut Tx, address: &str, mailbox: &MailboxId) -> Result<bool> {
    let taken = tx
        .run(
            "INSERT INTO address (owner_workspace, address, mailbox_id) SELECT $1, $2, $3
             WHERE NOT EXISTS (SELECT 1 FROM domain_claim c
                 WHERE c.domain = $4 AND c.proven_at IS NOT NULL AND c.owner_workspace <> $1)
             ON CONFLICT (address) DO UPDATE SET mailbox_id = excluded.mailbox_id
             WHERE address.owner_workspace = excluded.owner_workspace AND address.mailbox_id IS NULL",
            &[address.into(), mailbox.into(), domain_of(address).into()],
        )
        .await?;
    Ok(taken == 1)
}

/// Whether an address is or ever was in use.
pub async fn is_taken(tx: &mut SystemTx, address: &str) -> Result<bool> {
    let found: Option<(i64,)> =
        tx.one("SELECT count(*) FROM address WHERE address = $1", &[address.into()]).await?;
    Ok(found.is_some_and(|(count,)| count > 0))
}

/// Whether no workspace has an address: neither by its domain, nor on its own.
pub async fn is_foreign(tx: &mut SystemTx, address: &str, domain: &str) -> Result<bool> {
    let found: Option<(i64,)> = tx
        .one(
            "SELECT (SELECT count(*) FROM domain_claim WHERE domain = $2 AND proven_at IS NOT NULL)
               + (SELECT count(*) FROM address WHERE address = $1)",
            &[address.into(), domain.into()],
        )
        .await?;
    Ok(found.is_some_and(|(count,)| count == 0))
}

/// Detaches an address from its mailbox. It stays reserved for its workspace.
pub async fn release(tx: &mut Tx, address: &str) -> Result<()> {
    tx.run(
        "UPDATE address SET mailbox_id = NULL WHERE owner_workspace = $1 AND address = $2",
        &[address.into()],
    )
    .await?;
    Ok(())
}
