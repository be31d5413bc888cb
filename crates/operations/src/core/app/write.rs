//! The reading and the writing part of a call.
//!
//! The effect of a write, its charge, its audit entry and its stored answer are one transaction, so a crash keeps all
//! of them or none.

use std::{borrow::Borrow, sync::Arc};

use model::{Timestamp, audit::AuditDetails};
use serde::Serialize;
use store::{
    Body, SystemTx, Tx, audit,
    idempotency::{self, KeyClaim},
    metering,
    payments::PaymentKey,
};
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
        let (reservation, record) = self.begin_write(call, None);
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
    fn begin_write(&self, call: &Call, details: Option<AuditDetails>) -> (Option<Reservation>, Record) {
        // A call that writes twice is charged and answered with its first transaction.
        let reservation = if call.is_stored() { None } else { call.take_reservation() };
        let record = Record {
            charge: reservation
                .as_ref()
                .and_then(|reservation| reservation.ledger_entry(self.new_uuid().simple().to_string())),
            // A read that stores its answer for a repeat changes nothing.
            audit: call.operation.writes.then(|| self.audit_entry(&call.author(), call.operation.id)),
            details,
            claim: call.idempotency.clone(),
            payment: call.payment.clone(),
            rehearsal: call.rehearsal,
            answer: call.operation.answer,
            now: call.now,
        };
        (reservation, record)
    }

    /// The same across workspaces, for effects that reach other workspaces too.
    pub async fn write_across<T, F>(&self, call: &Call, details: AuditDetails, body: F) -> Result<T>
    where
        T: Serialize + Send + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<T> + for<'tx> Body<'tx, SystemTx, T, Error>,
    {
        let (reservation, record) = self.begin_write(call, Some(details));
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
    /// The same for an item that is written together with those of concurrent calls of the same key, which wait for the
    /// same locks: `write` gets all of them and returns a value for each. It may run more than once, and takes these locks
    /// first: idempotency keys are claimed after it. A rehearsal cannot be written together with others.
    pub async fn write_together<I, T, W, F>(
        &self,
        call: &Call,
        key: String,
        details: AuditDetails,
        (item, bytes): (I, usize),
        write: W,
    ) -> Result<T>
    where
        I: Clone + Send + Sync + 'static,
        T: Serialize + Send + 'static,
        W: Fn(Vec<I>) -> F + Send + Sync + 'static,
        F: AsyncFnOnce(&mut SystemTx) -> Result<Vec<T>>
            + for<'tx> Body<'tx, SystemTx, Vec<T>, Error>
            + Clone
            + Send
            + Sync,
    {
        let (reservation, record) = self.begin_write(call, Some(details));
        let (workspace, db) = (call.workspace.clone(), self.db().clone());
        let member = (item, Arc::new(record));
        let work = async move {
            // Keeps what is written, so that the store's only writer thread does not drop it.
            let kept = member.clone();
            let write_all = |members: Vec<(I, Arc<Record>)>| {
                let (items, records): (Vec<I>, Vec<Arc<Record>>) = members.into_iter().unzip();
                let (body, workspace) = (write(items), workspace.clone());
                async move |tx: &mut SystemTx| {
                    let values = body.begin(tx).await?;
                    let tx = tx.enter(&workspace);
                    Record::begin_all(&records, tx).await?;
                    let answers = records.iter().zip(&values).map(|(record, value)| record.answer(value));
                    Record::finish_all(&records, tx, answers.collect::<Result<_>>()?).await?;
                    Ok(values)
                }
            };
            let outcome = db.batch_write(&key, member, bytes, write_all).await;
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
    audit: Option<audit::AuditEntry>,
    /// What the entry is about, where the transaction is shared with other calls or touches other workspaces. Otherwise the
    /// effect says it.
    details: Option<AuditDetails>,
    claim: Option<IdempotencyClaim>,
    payment: Option<PaymentKey>,
    rehearsal: bool,
    answer: Answer,
    now: Timestamp,
}

impl Record {
    /// Before the effect: fails if another request already answered this key.
    async fn begin(&self, tx: &mut Tx) -> Result<()> {
        Self::begin_all(&[self], tx).await
    }

    async fn begin_all(records: &[impl Borrow<Self> + Sync], tx: &mut Tx) -> Result<()> {
        let claims: Vec<KeyClaim<'_>> =
            records.iter().filter_map(|record| record.borrow().key_claim()).collect();
        // What a call read before its effect is not what it is about.
        *tx.audit() = AuditDetails::default();
        if !claims.is_empty() && !idempotency::claim_all(tx, claims).await? {
            return Err(Error::new(ErrorKind::AlreadyAnswered));
        }
        Ok(())
    }

    fn key_claim(&self) -> Option<KeyClaim<'_>> {
        let now = self.now;
        self.claim.as_ref().map(|claim| KeyClaim { key: &claim.key, fingerprint: &claim.fingerprint, now })
    }

    /// The answer to store for the call's Idempotency-Key, if it has one.
    fn answer<T: Serialize>(&self, value: &T) -> Result<Option<Vec<u8>>> {
        match self.claim {
            Some(_) if self.answer == Answer::Empty => Ok(Some(Vec::new())),
            Some(_) => to_json(value).map(Some),
            None => Ok(None),
        }
    }

    /// The audit entry; `described` is what the effect said of itself.
    fn entry<'a>(&'a self, described: &'a AuditDetails) -> Option<(&'a audit::AuditEntry, &'a AuditDetails)> {
        self.audit.as_ref().map(|entry| (entry, self.details.as_ref().unwrap_or(described)))
    }

    /// After the effect: the audit entry, the charge, the answer.
    async fn finish(&self, tx: &mut Tx, answer: Option<Vec<u8>>) -> Result<()> {
        Self::finish_all(&[self], tx, vec![answer]).await
    }

    async fn finish_all(
        records: &[impl Borrow<Self> + Sync],
        tx: &mut Tx,
        answers: Vec<Option<Vec<u8>>>,
    ) -> Result<()> {
        if records.iter().any(|record| record.borrow().rehearsal) {
            // Everything that can fail for the caller was tried; this error rolls the transaction back.
            return Err(Error::new(ErrorKind::Rehearsed));
        }
        for record in records {
            if let Some(payment) = &record.borrow().payment {
                store::payments::fulfil(tx, payment, record.borrow().now).await?;
            }
        }
        let described = std::mem::take(tx.audit());
        let entries: Vec<_> = records.iter().filter_map(|record| record.borrow().entry(&described)).collect();
        audit::insert(tx, &entries).await?;
        let charges: Vec<_> = records.iter().filter_map(|record| record.borrow().charge.as_ref()).collect();
        metering::insert_ledger(tx, &charges).await?;
        for (record, answer) in records.iter().zip(answers) {
            let record = record.borrow();
            if let Some((claim, body)) = record.claim.as_ref().zip(answer) {
                claim.keep(tx, record.answer, &body).await?;
            }
        }
        Ok(())
    }
}
