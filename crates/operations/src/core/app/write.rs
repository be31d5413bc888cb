//! The reading and the writing part of a call.
//!
//! The effect of a write, its charge, its audit entry and its stored answer are one transaction, so a crash keeps all
//! of them or none.

use std::sync::Arc;

use model::Timestamp;
use serde::Serialize;
use store::{Body, SystemTx, Tx, audit, idempotency, metering, payments::PaymentKey};
use tracing::Instrument;

use super::{App, idempotency::to_json};
use crate::core::{
    call::{Call, IdempotencyClaim},
    error::{Error, ErrorKind, Result},
    metering::Reservation,
    operation::Answer,
};

impl App {
    /// Runs the reading part of a call.
    pub async fn read<T, F>(&self, call: &Call, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: AsyncFnOnce(&mut Tx) -> Result<T> + for<'tx> Body<'tx, Tx, T, Error>,
    {
        self.db().read(&call.workspace, body).await
    }

    /// Runs the reading part of a call that reads a few rows by key.
    pub async fn short_read<T, F>(&self, call: &Call, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: AsyncFnOnce(&mut Tx) -> Result<T> + for<'tx> Body<'tx, Tx, T, Error>,
    {
        self.db().short_read(&call.workspace, body).await
    }

    /// Runs the writing part of a call.
    pub async fn write<T, F>(&self, call: &Call, body: F) -> Result<T>
    where
        T: Serialize + Send + 'static,
        F: AsyncFnOnce(&mut Tx) -> Result<T> + for<'tx> Body<'tx, Tx, T, Error>,
    {
        let (reservation, record) = self.begin_write(call);
        let outcome = self
            .db()
            .write(&call.workspace, async move |tx| {
                record.begin(tx).await?;
                let value = body.begin(tx).await?;
                record.finish(tx, record.answer(&value)?).await?;
                Ok(value)
            })
            .await;
        end_write(call, reservation, outcome)
    }

    /// What is charged and recorded with a write.
    fn begin_write(&self, call: &Call) -> (Option<Reservation>, Record) {
        // A call that writes twice is charged and answered with its first transaction.
        let reservation = if call.is_stored() { None } else { call.take_reservation() };
        let record = Record {
            charge: reservation
                .as_ref()
                .and_then(|reservation| reservation.ledger_entry(self.new_uuid().simple().to_string())),
            audit: audit::AuditEntry {
                id: self.new_uuid().simple().to_string(),
                at: call.now,
                actor: call.caller.actor.id().to_owned(),
                operation: call.operation.id,
                subject: call.subject.clone(),
                request_id: call.request_id.clone(),
            },
            claim: call.idempotency.clone(),
            payment: call.payment.clone(),
            rehearsal: call.rehearsal,
            answer: call.operation.answer,
            now: call.now,
        };
        (reservation, record)
    }

    /// The same across workspaces, for effects that reach other workspaces too.
    pub async fn write_across<T, F>(&self, call: &Call, body: F) -> Result<T>
    where
        T: Serialize + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T> + for<'tx> Body<'tx, SystemTx, T, Error>,
    {
        let (reservation, record) = self.begin_write(call);
        let workspace = call.workspace.clone();
        let outcome = self
            .db()
            .system_write(async move |tx| {
                record.begin(tx.enter(&workspace)).await?;
                let value = body.begin(tx).await?;
                record.finish(tx.enter(&workspace), record.answer(&value)?).await?;
                Ok(value)
            })
            .await;
        end_write(call, reservation, outcome)
    }
}

impl App {
    /// The same, in one commit with concurrent calls of the same key, which wait for the same locks. The body may run more
    /// than once, and takes these locks first: an idempotency key is claimed after it.
    pub async fn write_shared<T, F>(&self, call: &Call, key: String, body: F) -> Result<T>
    where
        T: Serialize + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T> + for<'tx> Body<'tx, SystemTx, T, Error> + Clone,
    {
        let (reservation, record) = self.begin_write(call);
        let (workspace, record, db) = (call.workspace.clone(), Arc::new(record), self.db().clone());
        let work = async move {
            // Keeps what the body needs, so that the store's only writer thread does not drop it.
            let kept = body.clone();
            let outcome = db
                .shared_write(&key, async move |tx: &mut SystemTx| {
                    let value = body.begin(tx).await?;
                    let tx = tx.enter(&workspace);
                    record.begin(tx).await?;
                    record.finish(tx, record.answer(&value)?).await?;
                    Ok(value)
                })
                .await;
            drop(kept);
            outcome
        };
        // The client may disconnect at any time, and other calls share the commit.
        let outcome = if self.db().finishes_alone() {
            work.await
        } else {
            tokio::spawn(work.in_current_span()).await.map_err(Error::internal)?
        };
        end_write(call, reservation, outcome)
    }
}

/// A write that succeeded is durable with its charge.
fn end_write<T>(call: &Call, reservation: Option<Reservation>, outcome: Result<T>) -> Result<T> {
    match (outcome, reservation) {
        (Ok(value), Some(reservation)) => {
            call.put_reservation(reservation);
            call.mark_stored();
            Ok(value)
        }
        (outcome, _) => outcome,
    }
}

/// What is stored with the effect of a write.
struct Record {
    charge: Option<metering::LedgerEntry>,
    audit: audit::AuditEntry,
    claim: Option<IdempotencyClaim>,
    payment: Option<PaymentKey>,
    rehearsal: bool,
    answer: Answer,
    now: Timestamp,
}

impl Record {
    /// Before the effect: fails if another request already answered this key.
    async fn begin(&self, tx: &mut Tx) -> Result<()> {
        if let Some(claim) = &self.claim
            && !idempotency::claim(tx, &claim.key, &claim.fingerprint, self.now).await?
        {
            return Err(Error::new(ErrorKind::AlreadyAnswered));
        }
        Ok(())
    }

    /// The answer to store for the call's Idempotency-Key, if it has one.
    fn answer<T: Serialize>(&self, value: &T) -> Result<Option<Vec<u8>>> {
        match self.claim {
            Some(_) if self.answer == Answer::Empty => Ok(Some(Vec::new())),
            Some(_) => to_json(value).map(Some),
            None => Ok(None),
        }
    }

    /// After the effect: the audit entry, the charge, the answer.
    async fn finish(&self, tx: &mut Tx, answer: Option<Vec<u8>>) -> Result<()> {
        if self.rehearsal {
            // Everything that can fail for the caller was tried; this error rolls the transaction back.
            return Err(Error::new(ErrorKind::Rehearsed));
        }
        if let Some(payment) = &self.payment {
            store::payments::fulfil(tx, payment, self.now).await?;
        }
        audit::insert(tx, &self.audit).await?;
        if let Some(charge) = &self.charge {
            metering::insert_ledger(tx, charge).await?;
        }
        if let Some((claim, body)) = self.claim.as_ref().zip(answer) {
            claim.keep(tx, self.answer, &body).await?;
        }
        Ok(())
    }
}
