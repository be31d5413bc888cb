//! Reconciles payments with an unknown outcome: after a timeout, an inconclusive answer, or a crash.
//!
//! Retrying is safe: an authorisation moves money once, however often it is submitted.

use std::time::Duration;

use model::payments::PaymentState;
use pay::facilitator::Settlement;
use store::payments::{self as stored, PaymentChange};

use super::checkout;
use crate::core::{
    app::App,
    error::{ErrorKind, Result},
    supervisor::isolate,
};

/// Payments per round.
const MAX_PER_ROUND: i64 = 50;
/// How long after its expiry an authorisation may still turn out to have moved money, in seconds.
const GIVE_UP_SECONDS: i64 = 3600;
/// How often it runs.
const INTERVAL: Duration = Duration::from_secs(10);

/// Reconciles pending payments, and returns how many reached a final state.
#[crate::boxed]
pub async fn reconcile(app: &App) -> Result<usize> {
    let now = app.now();
    let waiting =
        app.db().system_read(async move |tx| stored::list_unsettled(tx, now, MAX_PER_ROUND).await).await?;
    let mut known = 0;
    for record in waiting {
        let outcome = match isolate("payments", checkout::resume(app, &record)).await {
            // One that panics must not block the others.
            Err(error) if error.kind() == ErrorKind::Internal => {
                tracing::error!(payment = %record.id, %error, "settlement outcome unknown; retrying");
                continue;
            }
            outcome => outcome?,
        };
        match outcome {
            Some(Settlement::Done { .. }) => {
                tracing::warn!(payment = %record.id, "payment settled after its call had ended");
                known += 1;
            }
            Some(Settlement::Refused { .. }) => known += 1,
            Some(Settlement::Pending { .. }) if record.expires_at.plus_seconds(GIVE_UP_SECONDS) < now => {
                give_up(app, &record).await?;
                known += 1;
            }
            Some(Settlement::Pending { .. }) | None => {}
        }
    }
    Ok(known)
}

/// Stops retrying a payment that can move no money any more. The operator sees that its outcome stayed unknown.
async fn give_up(app: &App, record: &stored::PaymentRecord) -> Result<()> {
    tracing::error!(payment = %record.id, "settlement outcome unknown; giving up, operator action needed");
    let (key, now) = (record.key.clone(), app.now());
    let change = PaymentChange {
        state: PaymentState::Failed,
        reason: Some("settlement_unconfirmed".to_owned()),
        reference: None,
        keeps_proof: false,
        claimed_until: now,
        now,
    };
    Ok(app.db().system_write(async move |tx| stored::update(tx, &key, &change).await).await?)
}

/// Reconciles payments as long as the process runs.
#[crate::boxed]
pub async fn work(app: App) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        if let Err(error) = reconcile(&app).await {
            tracing::warn!(%error, "reconciliation failed; retrying");
        }
    }
}
