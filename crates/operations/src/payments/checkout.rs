//! Claiming and settling proofs, and repeating earlier answers.
//!
//! A payment goes from `settling` to `settled` to `fulfilled`. A worker claims it for a bounded time; when that
//! expires, a repeat of the request or the reconciling job continues where it stopped.

use model::{WorkspaceId, payments::PaymentState};
use pay::facilitator::{self, Settlement};
use store::{
    idempotency,
    payments::{self as stored, PaymentChange, PaymentKey, PaymentRecord},
};

use super::{
    free::ProofUseOutcome,
    prices,
    proof::{Proof, Request, resource},
    refusals::{refused, reused},
};
use crate::core::{
    admission::Replay,
    app::App,
    call::{Call, IDEMPOTENCY, IdempotencyClaim},
    error::{Error, ErrorKind, Result},
    operation::Answer,
    ports::{SettleRequest, Verdict},
    state::wallets::Wallet,
};

/// The lease of a claimed payment, in seconds.
pub(super) const LEASE_SECONDS: i64 = 90;
/// The pause before a payment with an unknown outcome is retried, in seconds.
pub(super) const RETRY_SECONDS: i64 = 15;
/// The largest answer that is kept for repeats of a call that changes nothing. Above it, the call is made again.
const MAX_KEPT_ANSWER_BYTES: usize = 64 * 1024;
/// The purposes that things are sealed for.
const PROOF: &str = "payment proof";
const ANSWER: &str = "payment answer";

/// The state of a proof that comes with a request.
pub enum ProofState {
    /// It was never used.
    New,
    /// Its request was answered.
    Answered(Replay, Option<String>),
    /// Its request changed nothing and may be repeated.
    Repeatable,
    /// It was claimed and may not be settled.
    Unsettled,
    /// It is settled, and its request is still to be done.
    Settled(String),
    /// It will not be settled.
    Failed(String),
}

/// Whether free proofs are kept in memory.
fn keeps_in_memory(app: &App, proof: &Proof) -> bool {
    proof.amount == 0 && app.db().is_sole_node()
}

/// Admits a new proof, unless it may have been used before the server was started.
#[crate::boxed]
pub async fn admit(app: &App, proof: &Proof) -> Result<()> {
    if keeps_in_memory(app, proof) { app.free_proofs().admit(app, proof).await } else { Ok(()) }
}

/// The state of a proof, if this is the request that it was used for.
#[crate::boxed]
pub async fn look_up(app: &App, proof: &Proof, request: &Request) -> Result<ProofState> {
    if keeps_in_memory(app, proof)
        && let Some(replay) = app.free_proofs().find(proof, request)?
    {
        return Ok(ProofState::Answered(replay, None));
    }
    let key = proof.key.clone();
    let found = app.db().system_read(async move |tx| stored::find(tx, &key).await).await?;
    let Some(record) = found else { return Ok(ProofState::New) };
    if record.fingerprint != request.fingerprint {
        return Err(reused(proof.protocol));
    }
    Ok(match record.state {
        PaymentState::Settling | PaymentState::Pending => {
            require_free(app, &record)?;
            ProofState::Unsettled
        }
        PaymentState::Settled => {
            require_free(app, &record)?;
            ProofState::Settled(record.reference.unwrap_or_default())
        }
        PaymentState::Failed => ProofState::Failed(record.reason.unwrap_or_default()),
        PaymentState::Fulfilled => fulfilled(app, record).await?,
    })
}

/// Refuses to work on what another worker has claimed.
fn require_free(app: &App, record: &PaymentRecord) -> Result<()> {
    let now = app.now();
    if record.claimed_until <= now {
        return Ok(());
    }
    if record.state == PaymentState::Pending {
        let seconds = now.seconds_until(record.claimed_until).max(1);
        return Err(Error::new(ErrorKind::SettlementPending).with_retry_after(seconds));
    }
    Err(Error::new(ErrorKind::PaymentInProgress).with_retry_after(1))
}

async fn fulfilled(app: &App, record: PaymentRecord) -> Result<ProofState> {
    if let (Some(status), Some(sealed)) = (record.status, &record.answer) {
        let body = app.master_key().open(ANSWER, sealed).map_err(store::Error::from)?;
        return Ok(ProofState::Answered(
            Replay { answer: Answer::from_code(status)?, body },
            record.reference,
        ));
    }
    let Some(workspace) = &record.workspace_id else { return Ok(ProofState::Repeatable) };
    match kept(app, workspace, &record.key).await? {
        Some(replay) => Ok(ProofState::Answered(replay, record.reference)),
        // Reads with long answers; writes keep theirs for a day, far longer than any proof is valid.
        None if record.amount == 0 => Ok(ProofState::Repeatable),
        None => Err(refused(&pay::Refusal::EXPIRED)),
    }
}

/// The key that the answer of a write is kept under.
fn answer_key(key: &PaymentKey) -> String {
    format!("payment {} {} {}", key.network, key.payer, key.nonce)
}

/// The answer of a write, kept with its effect.
async fn kept(app: &App, workspace: &WorkspaceId, key: &PaymentKey) -> Result<Option<Replay>> {
    let (now, name) = (app.now(), answer_key(key));
    let data_key = app.data_key(workspace).await?;
    let found = app.db().read(workspace, async move |tx| idempotency::find(tx, &name, now).await).await?;
    let Some(kept) = found else { return Ok(None) };
    let body = data_key.open(IDEMPOTENCY, &kept.answer).map_err(store::Error::from)?;
    Ok(Some(Replay { answer: Answer::from_code(kept.status)?, body }))
}

/// Binds a call to its payment: effect, answer and payment are stored in one transaction.
#[crate::boxed]
pub async fn bind(app: &App, call: &mut Call, proof: &Proof, request: &Request) -> Result<()> {
    let data_key = app.data_key(&call.workspace).await?;
    let key = answer_key(&proof.key);
    call.idempotency = Some(IdempotencyClaim { key, fingerprint: request.fingerprint, data_key });
    call.payment = Some(proof.key.clone());
    Ok(())
}

fn record(app: &App, proof: &Proof, request: &Request, state: PaymentState) -> Result<PaymentRecord> {
    let now = app.now();
    Ok(PaymentRecord {
        key: proof.key.clone(),
        id: app.new_id(),
        workspace_id: None,
        protocol: proof.protocol,
        operation: request.operation.id.to_owned(),
        subject: request.subject.clone(),
        fingerprint: request.fingerprint.to_vec(),
        amount: i64::try_from(proof.amount).map_err(Error::internal)?,
        state,
        reason: None,
        reference: None,
        proof: None,
        status: None,
        answer: None,
        claimed_until: now,
        expires_at: proof.expires_at,
        created_at: now,
        updated_at: now,
    })
}

/// Stores the answer of a call that changed nothing, and with it the nonce. If the same proof was answered meanwhile,
/// that answer counts.
#[crate::boxed]
pub async fn keep_answer(
    app: &App,
    proof: &Proof,
    request: &Request,
    wallet: &Wallet,
    answer: Option<(Answer, &[u8])>,
) -> Result<Option<Replay>> {
    let answer = answer.filter(|(_, body)| body.len() <= MAX_KEPT_ANSWER_BYTES);
    if keeps_in_memory(app, proof) {
        return Ok(match app.free_proofs().use_proof(app, proof, request, answer)? {
            ProofUseOutcome::First => None,
            ProofUseOutcome::Repeated(replay) => replay,
        });
    }
    let mut record = record(app, proof, request, PaymentState::Fulfilled)?;
    record.workspace_id.clone_from(&wallet.workspace);
    if let Some((answer, body)) = answer {
        record.status = Some(answer.code());
        record.answer = Some(app.master_key().seal(ANSWER, body).map_err(store::Error::from)?);
    }
    let claimed = app.db().shared_write(async move |tx| stored::claim(tx, &record).await).await?;
    if claimed {
        return Ok(None);
    }
    match look_up(app, proof, request).await? {
        ProofState::Answered(replay, _) => Ok(Some(replay)),
        _ => Ok(None),
    }
}

/// Claims a new proof for a request. A priced one is verified by the facilitator first.
#[crate::boxed]
pub async fn claim(app: &App, proof: &Proof, request: &Request) -> Result<()> {
    if keeps_in_memory(app, proof) {
        admit(app, proof).await?;
        app.free_proofs().use_proof(app, proof, request, None)?;
    }
    let priced = proof.amount > 0;
    let state = if priced { PaymentState::Settling } else { PaymentState::Settled };
    let mut record = record(app, proof, request, state)?;
    if let Some(payment) = proof.payment.as_ref().filter(|_| priced) {
        let payment_request =
            settle_request(app, proof.amount, request.operation.summary, &request.subject, payment);
        match app.facilitator().verify(&payment_request).await {
            Verdict::Good => {}
            Verdict::Bad(reason) => return Err(Error::with_message(ErrorKind::PaymentRequired, reason)),
            Verdict::Unknown(reason) => {
                tracing::warn!(%reason, "facilitator unavailable; refusing the call");
                return Err(Error::new(ErrorKind::FacilitatorUnavailable).with_retry_after(5));
            }
        }
        let sealed = app.master_key().seal(PROOF, &facilitator::keep(payment));
        record.proof = Some(sealed.map_err(store::Error::from)?);
    }
    record.claimed_until = record.created_at.plus_seconds(LEASE_SECONDS);
    let claimed = app.db().system_write(async move |tx| stored::claim(tx, &record).await).await?;
    if claimed {
        return Ok(());
    }
    // Another request came with the same proof at the same moment.
    look_up(app, proof, request).await?;
    Err(Error::new(ErrorKind::PaymentInProgress).with_retry_after(1))
}

/// Takes over a payment that was left unfinished. Fails while another worker has it.
#[crate::boxed]
pub async fn take_over(app: &App, proof: &Proof) -> Result<()> {
    let (key, now) = (proof.key.clone(), app.now());
    let claimed = app
        .db()
        .system_write(async move |tx| match stored::find(tx, &key).await? {
            Some(record) => stored::reclaim(tx, &record, now.plus_seconds(LEASE_SECONDS), now).await,
            None => Ok::<_, store::Error>(false),
        })
        .await?;
    if claimed { Ok(()) } else { Err(Error::new(ErrorKind::PaymentInProgress).with_retry_after(1)) }
}

fn settle_request(
    app: &App,
    amount: u64,
    summary: &str,
    subject: &str,
    payment: &pay::Payment,
) -> SettleRequest {
    SettleRequest {
        terms: app.settings().payments.terms(amount),
        resource: resource(app, summary, subject),
        payment: *payment,
    }
}

/// Settles a claimed payment and returns the transaction; empty where nothing is to be paid.
#[crate::boxed]
pub async fn settle(app: &App, proof: &Proof, request: &Request) -> Result<String> {
    let Some(payment) = proof.payment.as_ref().filter(|_| proof.amount > 0) else {
        return Ok(String::new());
    };
    let payment_request =
        settle_request(app, proof.amount, request.operation.summary, &request.subject, payment);
    match settle_payment(app, &proof.key, &payment_request).await? {
        Settlement::Done { transaction } => Ok(transaction),
        Settlement::Refused { reason } => Err(Error::with_message(ErrorKind::SettlementFailed, reason)),
        Settlement::Pending { .. } => {
            Err(Error::new(ErrorKind::SettlementPending).with_retry_after(RETRY_SECONDS.unsigned_abs()))
        }
    }
}

/// Asks the facilitator to settle and stores the outcome.
async fn settle_payment(app: &App, key: &PaymentKey, request: &SettleRequest) -> Result<Settlement> {
    let outcome = app.facilitator().settle(request).await;
    let now = app.now();
    let (state, reason, reference, until) = match &outcome {
        Settlement::Done { transaction } => {
            (PaymentState::Settled, None, Some(transaction.clone()), now.plus_seconds(LEASE_SECONDS))
        }
        Settlement::Refused { reason } => (PaymentState::Failed, Some(reason.clone()), None, now),
        Settlement::Pending { reason } => {
            (PaymentState::Pending, Some(reason.clone()), None, now.plus_seconds(RETRY_SECONDS))
        }
    };
    metrics::counter!("payments_settled_total", "state" => state.as_str()).increment(1);
    let keeps_proof = state == PaymentState::Pending;
    let change = PaymentChange { state, reason, reference, keeps_proof, claimed_until: until, now };
    let key = key.clone();
    app.db().system_write(async move |tx| stored::update(tx, &key, &change).await).await?;
    Ok(outcome)
}

/// Releases a settled payment whose call failed, so that the same request can be retried at once.
#[crate::boxed]
pub async fn release(app: &App, proof: &Proof, reference: &str, reason: &str) -> Result<()> {
    let now = app.now();
    let change = PaymentChange {
        state: PaymentState::Settled,
        reason: Some(reason.to_owned()),
        reference: Some(reference.to_owned()).filter(|text| !text.is_empty()),
        keeps_proof: false,
        claimed_until: now,
        now,
    };
    let key = proof.key.clone();
    Ok(app.db().system_write(async move |tx| stored::update(tx, &key, &change).await).await?)
}

/// Continues an abandoned payment, and returns the outcome.
pub(super) async fn resume(app: &App, record: &PaymentRecord) -> Result<Option<Settlement>> {
    let Some(sealed) = &record.proof else { return Ok(None) };
    let now = app.now();
    let (abandoned, until) = (record.clone(), now.plus_seconds(LEASE_SECONDS));
    if !app.db().system_write(async move |tx| stored::reclaim(tx, &abandoned, until, now).await).await? {
        return Ok(None);
    }
    let opened = app.master_key().open(PROOF, sealed).map_err(store::Error::from)?;
    let payment =
        facilitator::recall(&opened).ok_or_else(|| Error::internal("a kept proof that cannot be read"))?;
    let (amount, summary) = (record.amount.unsigned_abs(), prices::summary(&record.operation));
    let payment_request = settle_request(app, amount, summary, &record.subject, &payment);
    let outcome = settle_payment(app, &record.key, &payment_request).await?;
    if let Settlement::Done { transaction } = &outcome {
        let proof_key = record.key.clone();
        let change = PaymentChange {
            state: PaymentState::Settled,
            reason: Some("settled after the call had ended".to_owned()),
            reference: Some(transaction.clone()),
            keeps_proof: false,
            claimed_until: now,
            now,
        };
        app.db().system_write(async move |tx| stored::update(tx, &proof_key, &change).await).await?;
    }
    Ok(Some(outcome))
}
