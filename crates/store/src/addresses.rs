//! Which workspace an address belongs to. The table spans workspaces, because addresses are unique on the server.

use model::MailboxId;

use crate::{SystemTx, Tx, error::Result};

/// Takes an address for a mailbox. False when another mailbox or another workspace has it.
pub async fn claim(tx: &mut Tx, address: &str, mailbox: &MailboxId) -> Result<bool> {
    let taken = tx
        .run(
            "INSERT INTO address (owner_workspace, address, mailbox_id) VALUES ($1, $2, $3)
             ON CONFLICT (address) DO UPDATE SET mailbox_id = excluded.mailbox_id
             WHERE address.owner_workspace = excluded.owner_workspace AND address.mailbox_id IS NULL",
            &[address.into(), mailbox.into()],
        )
        .await?;
    Ok(taken == 1)
}

/// Whether anybody has an address, or had it.
pub async fn is_taken(tx: &mut SystemTx, address: &str) -> Result<bool> {
    let found: Option<(i64,)> =
        tx.one("SELECT count(*) FROM address WHERE address = $1", &[address.into()]).await?;
    Ok(found.is_some_and(|(count,)| count > 0))
}

/// Leaves an address without a mailbox. It stays reserved for its workspace.
pub async fn release(tx: &mut Tx, address: &str) -> Result<()> {
    tx.run(
        "UPDATE address SET mailbox_id = NULL WHERE owner_workspace = $1 AND address = $2",
        &[address.into()],
    )
    .await?;
    Ok(())
}
