//! Claiming proofs, settling them, and answering again what comes again.
//!
//! A payment goes from `settling` to `settled` to `fulfilled`. Whoever works on one has claimed it for a bounded time;
//! when that is over, a repeat of the request or the job that looks after payments goes on where it stopped.

use model::{WorkspaceId, payments::PaymentState};
use pay::facilitator::{self, Settlement};
use store::{
    idempotency,
    payments::{self as stored, PaymentChange, PaymentKey, PaymentRecord},
};

use super::{
    free::Take,
    prices,
    proof::{Proof, Request, resource},
    refusals::{refused, reused},
};
use crate::core::{
    admission::Replay,
    app::App,
    call::{Call, IDEMPOTENCY, IdempotencyClaim},
    error::{Error, ErrorKind, Result},
    ports::{SettleRequest, Verdict},
    state::wallets::Wallet,
};

/// How long somebody who works on a payment has it alone, in seconds.
pub(super) const LEASE: i64 = 90;
/// How long a payment whose outcome nobody knows is left alone, in seconds.
pub(super) const PAUSE: i64 = 15;
/// The largest answer that is kept for repeats of a call that changes nothing. Above it, the call is made anew.
const KEPT_ANSWER: usize = 64 * 1024;
/// The purposes that things are sealed for.
const PROOF: &str = "payment proof";
const ANSWER: &str = "payment answer";

/// Where a proof stands that comes with a request.
pub enum Standing {
    /// It was never used.
    New,
    /// Its request was answered.
    Answered(Replay, Option<String>),
    /// Its request changed nothing and may be made again.
    Repeatable,
    /// It was claimed and its money may not have moved.
    Unsettled,
    /// Its money moved, and what it was for is still to be done.
    Settled(String),
    /// Its money will not move.
    Failed(String),
}

/// Whether proofs that cost nothing are kept in memory.
fn keeps_in_memory(app: &App, proof: &Proof) -> bool {
    proof.amount == 0 && app.db().is_sole_node()
}

/// Lets a new proof in, unless it may have been used before the server was started.
#[crate::boxed]
pub async fn admit(app: &App, proof: &Proof) -> Result<()> {
    if keeps_in_memory(app, proof) { app.free_proofs().admit(app, proof).await } else { Ok(()) }
}

/// What is known about a proof, if this is the request that it was used for.
#[crate::boxed]
pub async fn look_up(app: &App, proof: &Proof, request: &Request) -> Result<Standing> {
    if keeps_in_memory(app, proof)
        && let Some(replay) = app.free_proofs().find(proof, request)?
    {
        return Ok(Standing::Answered(replay, None));
    }
    let key = proof.key.clone();
    let found = app.db().system_read(async move |tx| stored::find(tx, &key).await).await?;
    let Some(record) = found else { return Ok(Standing::New) };
    if record.fingerprint != request.fingerprint {
        return Err(reused(proof.protocol));
    }
    Ok(match record.state {
        PaymentState::Settling | PaymentState::Pending => {
            require_free(app, &record)?;
            Standing::Unsettled
        }
        PaymentState::Settled => {
            require_free(app, &record)?;
            Standing::Settled(record.reference.unwrap_or_default())
        }
        PaymentState::Failed => Standing::Failed(record.reason.unwrap_or_default()),
        PaymentState::Fulfilled => fulfilled(app, record).await?,
    })
}

/// Refuses to work on what somebody else works on.
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

async fn fulfilled(app: &App, record: PaymentRecord) -> Result<Standing> {
    if let (Some(status), Some(sealed)) = (record.status, &record.answer) {
        let body = app.master_key().open(ANSWER, sealed).map_err(store::Error::from)?;
        let status = u16::try_from(status).map_err(Error::internal)?;
        return Ok(Standing::Answered(Replay { status, body }, record.reference));
    }
    let Some(workspace) = &record.workspace_id else { return Ok(Standing::Repeatable) };
    match kept(app, workspace, &record.key).await? {
        Some(replay) => Ok(Standing::Answered(replay, record.reference)),
        // Reads with long answers; writes keep theirs for a day, far longer than any proof is good.
        None if record.amount == 0 => Ok(Standing::Repeatable),
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
    Ok(Some(Replay { status: u16::try_from(kept.status).map_err(Error::internal)?, body }))
}

/// Binds a call to its payment: effect, answer and payment are noted in one transaction.
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

/// Keeps the answer of a call that changed nothing, and with it the nonce. When the same proof was answered in the
/// meantime, that answer counts.
#[crate::boxed]
pub async fn keep_answer(
    app: &App,
    proof: &Proof,
    request: &Request,
    wallet: &Wallet,
    answer: Option<(u16, &[u8])>,
) -> Result<Option<Replay>> {
    let answer = answer.filter(|(_, body)| body.len() <= KEPT_ANSWER);
    if keeps_in_memory(app, proof) {
        return Ok(match app.free_proofs().take(app, proof, request, answer)? {
            Take::First => None,
            Take::Repeated(replay) => replay,
        });
    }
    let mut record = record(app, proof, request, PaymentState::Fulfilled)?;
    record.workspace_id.clone_from(&wallet.workspace);
    if let Some((status, body)) = answer {
        record.status = Some(i64::from(status));
        record.answer = Some(app.master_key().seal(ANSWER, body).map_err(store::Error::from)?);
    }
    let claimed = app.db().shared_write("payments", async move |tx| stored::claim(tx, &record).await).await?;
    if claimed {
        return Ok(None);
    }
    match look_up(app, proof, request).await? {
        Standing::Answered(replay, _) => Ok(Some(replay)),
        _ => Ok(None),
    }
}

/// Claims a new proof for a request. What it pays is asked of the facilitator first, who may know that it is nothing.
#[crate::boxed]
pub async fn claim(app: &App, proof: &Proof, request: &Request) -> Result<()> {
    if keeps_in_memory(app, proof) {
        admit(app, proof).await?;
        app.free_proofs().take(app, proof, request, None)?;
    }
    let priced = proof.amount > 0;
    let state = if priced { PaymentState::Settling } else { PaymentState::Settled };
    let mut record = record(app, proof, request, state)?;
    if let Some(payment) = proof.payment.as_ref().filter(|_| priced) {
        let asked = settle_request(app, proof.amount, request.operation.summary, &request.subject, payment);
        match app.facilitator().verify(&asked).await {
            Verdict::Good => {}
            Verdict::Bad(reason) => return Err(Error::with_message(ErrorKind::PaymentRequired, reason)),
            Verdict::Unknown(reason) => {
                tracing::warn!(%reason, "the facilitator does not answer");
                return Err(Error::new(ErrorKind::FacilitatorUnavailable).with_retry_after(5));
            }
        }
        let sealed = app.master_key().seal(PROOF, &facilitator::keep(payment));
        record.proof = Some(sealed.map_err(store::Error::from)?);
    }
    record.claimed_until = record.created_at.plus_seconds(LEASE);
    let claimed = app.db().system_write(async move |tx| stored::claim(tx, &record).await).await?;
    if claimed {
        return Ok(());
    }
    // Somebody else came with the same proof in this very moment.
    look_up(app, proof, request).await?;
    Err(Error::new(ErrorKind::PaymentInProgress).with_retry_after(1))
}

/// Takes a payment over that was left half-done. Fails when somebody works on it.
#[crate::boxed]
pub async fn take_over(app: &App, proof: &Proof) -> Result<()> {
    let (key, now) = (proof.key.clone(), app.now());
    let taken = app
        .db()
        .system_write(async move |tx| match stored::find(tx, &key).await? {
            Some(record) => stored::take_over(tx, &record, now.plus_seconds(LEASE), now).await,
            None => Ok::<_, store::Error>(false),
        })
        .await?;
    if taken { Ok(()) } else { Err(Error::new(ErrorKind::PaymentInProgress).with_retry_after(1)) }
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

/// Moves the money of a claimed payment and gives the transaction; nothing moves where nothing is to be paid.
#[crate::boxed]
pub async fn settle(app: &App, proof: &Proof, request: &Request) -> Result<String> {
    let Some(payment) = proof.payment.as_ref().filter(|_| proof.amount > 0) else {
        return Ok(String::new());
    };
    let asked = settle_request(app, proof.amount, request.operation.summary, &request.subject, payment);
    match move_money(app, &proof.key, &asked).await? {
        Settlement::Done { transaction } => Ok(transaction),
        Settlement::Refused { reason } => Err(Error::with_message(ErrorKind::SettlementFailed, reason)),
        Settlement::Pending { .. } => {
            Err(Error::new(ErrorKind::SettlementPending).with_retry_after(PAUSE.unsigned_abs()))
        }
    }
}

/// Asks the facilitator to move money and notes what came of it.
async fn move_money(app: &App, key: &PaymentKey, asked: &SettleRequest) -> Result<Settlement> {
    let outcome = app.facilitator().settle(asked).await;
    let now = app.now();
    let (state, reason, reference, until) = match &outcome {
        Settlement::Done { transaction } => {
            (PaymentState::Settled, None, Some(transaction.clone()), now.plus_seconds(LEASE))
        }
        Settlement::Refused { reason } => (PaymentState::Failed, Some(reason.clone()), None, now),
        Settlement::Pending { reason } => {
            (PaymentState::Pending, Some(reason.clone()), None, now.plus_seconds(PAUSE))
        }
    };
    metrics::counter!("payments_settled_total", "state" => state.as_str()).increment(1);
    let keeps_proof = state == PaymentState::Pending;
    let change = PaymentChange { state, reason, reference, keeps_proof, claimed_until: until, now };
    let key = key.clone();
    app.db().system_write(async move |tx| stored::update(tx, &key, &change).await).await?;
    Ok(outcome)
}

/// Leaves a settled payment whose call failed, so that the same request can be tried again at once.
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

/// Goes on with a payment that nobody works on, and tells what came of it.
pub(super) async fn resume(app: &App, record: &PaymentRecord) -> Result<Option<Settlement>> {
    let Some(sealed) = &record.proof else { return Ok(None) };
    let now = app.now();
    let (taken, until) = (record.clone(), now.plus_seconds(LEASE));
    if !app.db().system_write(async move |tx| stored::take_over(tx, &taken, until, now).await).await? {
        return Ok(None);
    }
    let opened = app.master_key().open(PROOF, sealed).map_err(store::Error::from)?;
    let payment =
        facilitator::recall(&opened).ok_or_else(|| Error::internal("a kept proof that cannot be read"))?;
    let (amount, summary) = (record.amount.unsigned_abs(), prices::summary(&record.operation));
    let asked = settle_request(app, amount, summary, &record.subject, &payment);
    let outcome = move_money(app, &record.key, &asked).await?;
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
