//! Adds to the counters what messages have inserted for them, on PostgreSQL.

use crate::core::{app::App, error::Result};

/// Adds everything, and returns how many additions that were. Nothing is lost with a commit that is lost: it deletes what
/// it adds.
#[crate::boxed]
pub async fn fold(app: &App) -> Result<usize> {
    let (mut total, mut after) = (0, String::new());
    // Most of the time there is nothing, and a read needs no commit.
    if !app.db().system_read(async |tx| store::counters::has_additions(tx).await).await? {
        return Ok(0);
    }
    loop {
        let from = after.clone();
        let folding = async move |tx: &mut store::SystemTx| store::counters::fold(tx, &from).await;
        let (folded, next) = app.db().asynchronous_system_write(folding).await?;
        total += folded;
        match next {
            Some(last) => last.as_str().clone_into(&mut after),
            None => return Ok(total),
        }
    }
}
