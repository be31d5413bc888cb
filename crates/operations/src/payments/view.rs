//! Payments as operators see them.

use model::payments::{Payment, PaymentState};
use pay::Address;
use serde::Serialize;
use store::payments::{self as stored, PaymentRecord};

use crate::core::{app::App, error::Result};

/// The number and sum of the payments in a state.
#[derive(Debug, Serialize)]
pub struct PaymentTotals {
    /// The state.
    pub state: String,
    /// The number.
    pub count: i64,
    /// The sum, in US dollars.
    pub amount: String,
}

/// Payments with a price, newest first.
#[crate::boxed]
pub async fn list(
    app: &App,
    state: Option<PaymentState>,
    payer: Option<&str>,
    limit: i64,
) -> Result<Vec<Payment>> {
    let payer = payer.map(str::to_ascii_lowercase);
    let records =
        app.db().system_read(async move |tx| stored::list(tx, state, payer.as_deref(), limit).await).await?;
    Ok(records.into_iter().map(show).collect())
}

/// Totals by state.
#[crate::boxed]
pub async fn totals(app: &App) -> Result<Vec<PaymentTotals>> {
    let found = app.db().system_read(async |tx| stored::totals(tx).await).await?;
    let total = |(state, count, amount)| PaymentTotals { state, count, amount: dollars(amount) };
    Ok(found.into_iter().map(total).collect())
}

/// An amount of the smallest unit as dollars.
fn dollars(amount: i64) -> String {
    format!("{}.{:06}", amount / 1_000_000, amount % 1_000_000)
}

fn show(record: PaymentRecord) -> Payment {
    let payer = Address::parse(&record.key.payer);
    Payment {
        id: record.id,
        state: record.state,
        reason: record.reason,
        protocol: record.protocol,
        payer: payer.map_or(record.key.payer, Address::to_checksum),
        workspace_id: record.workspace_id,
        amount: dollars(record.amount),
        network: record.key.network,
        asset: record.key.asset,
        nonce: record.key.nonce,
        transaction: record.reference,
        operation: record.operation,
        path: record.subject,
        created_at: record.created_at,
        updated_at: record.updated_at,
    }
}
