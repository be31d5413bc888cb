//! The addresses that a workspace has sent to and got messages from. They stay when the messages are deleted.

use std::collections::BTreeSet;

use crate::{
    Param, Tx,
    error::Result,
    sql::{Insert, long_list_params, long_list_placeholders},
};

/// Which way a message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// To the address.
    Sent,
    /// From the address.
    Received,
}

impl Direction {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Received => "received",
        }
    }
}

/// Addresses that are known already, by direction.
pub type Known = BTreeSet<(Direction, String)>;

/// Records addresses, which must be in lower case, with the next statement. In their order, since each new one is locked.
pub async fn record(tx: &mut Tx, direction: Direction, addresses: &BTreeSet<String>) -> Result<()> {
    let rows = addresses.iter().map(|address| {
        Insert::into("correspondent")
            .column("direction", direction.as_str())
            .column("address", address)
            .unless_same("workspace_id, direction, address")
    });
    Insert::pipeline_all(tx, rows.collect()).await
}

/// Which of these addresses, in lower case, the workspace has sent to or got messages from.
pub async fn find(tx: &mut Tx, addresses: &[String]) -> Result<Known> {
    if addresses.is_empty() {
        return Ok(Known::new());
    }
    let sql = format!(
        "SELECT direction, address FROM correspondent WHERE workspace_id = $1 AND direction IN ('sent', 'received')
         AND address IN ({})",
        long_list_placeholders(2, addresses.len())
    );
    let nothing = String::new();
    let params: Vec<Param<'_>> = long_list_params(addresses, &nothing).collect();
    let found: Vec<(String, String)> = tx.all(&sql, &params).await?;
    let direction = |name: &str| if name == "sent" { Direction::Sent } else { Direction::Received };
    Ok(found.into_iter().map(|(name, address)| (direction(&name), address)).collect())
}
