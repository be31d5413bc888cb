//! The job that looks after payments whose money may have moved without anybody knowing: after a time-out, an answer that
//! told nothing, a crash.
//!
//! Asking again is safe: an authorisation moves money once, however often it is brought to the chain.

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

/// Payments looked at in one round.
const ROUND: i64 = 50;
/// How long after its end an authorisation may still turn out to have moved money, in seconds.
const GIVE_UP_SECONDS: i64 = 3600;
/// How often it is looked.
const EVERY: Duration = Duration::from_secs(10);

/// Looks at payments that wait, and tells how many came to a state that is known.
#[crate::boxed]
pub async fn reconcile(app: &App) -> Result<usize> {
    let now = app.now();
    let waiting = app.db().system_read(async move |tx| stored::waiting(tx, now, ROUND).await).await?;
    let mut known = 0;
    for record in waiting {
        let outcome = match isolate("payments", checkout::resume(app, &record)).await {
            // One that makes code panic must not keep the others waiting.
            Err(error) if error.kind() == ErrorKind::Internal => {
                tracing::error!(payment = %record.id, %error, "settlement outcome unknown; retrying");
                continue;
            }
            outcome => outcome?,
        };
        match outcome {
            Some(Settlement::Done { .. }) => {
                tracing::warn!(payment = %record.id, "a payment was settled after its call had ended");
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

/// Stops asking about a payment that can move no money any more. The operator sees that nobody ever knew.
async fn give_up(app: &App, record: &stored::PaymentRecord) -> Result<()> {
    tracing::error!(payment = %record.id, "nobody knows whether a payment moved money");
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

/// Looks after payments for as long as the process runs.
#[crate::boxed]
pub async fn work(app: App) {
    loop {
        tokio::time::sleep(EVERY).await;
        if let Err(error) = reconcile(&app).await {
            tracing::warn!(%error, "payments that wait will be looked at again");
        }
    }
}
