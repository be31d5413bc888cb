//! Free proofs, on a server that has its store alone: kept in memory, so that a read writes nothing.
//!
//! A proof must not count twice across a crash either. So before a proof is used, the store records until when all
//! used ones are valid; after a start, proofs that expire no later are refused, and the wallet signs again. Servers
//! that share a store keep such proofs there ([`super::checkout`]).

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use model::{Timestamp, payments::Protocol};
use pay::{MAX_CLOCK_SKEW_SECONDS, Refusal, siwx};
use sha2::{Digest, Sha256};
use store::{
    SystemTx,
    payments::{self as stored, PaymentKey},
};

use super::{
    proof::{Proof, Request},
    refusals::{refused, reused},
};
use crate::core::{
    admission::Replay,
    app::App,
    error::{Error, ErrorKind, Result},
    lock::lock,
    operation::Answer,
    state::free_proofs::{FreeProofs, ProofId, ProofUse, UsedProofs, WatermarkState},
};

/// Maximum proofs in memory, some hundred megabytes. Each is valid for a few minutes.
const MAX_PROOFS: usize = 2_000_000;
/// Maximum bytes of kept answers. A read whose answer was not kept is repeated.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// How far ahead the store records used proofs, in seconds, which is also how often it is written. After a start
/// wallets have to sign again for this long, and longer if others signed for longer.
const MAX_AHEAD_SECONDS: i64 = 5;
/// How long an expired proof is remembered, in seconds: a call that began while it was valid may wait for two
/// minutes, and clocks may be set back.
const REMEMBERED_SECONDS: i64 = 150;

impl FreeProofs {
    /// Admits a proof that was certainly not used before this process started.
    pub(super) async fn admit(&self, app: &App, proof: &Proof) -> Result<()> {
        let longest = app.settings().payments.terms.max_timeout;
        let (watermark, kind, longest, refusal) = match proof.protocol {
            Protocol::Siwx => (&self.sign_ins, "sign-in", siwx::LIFETIME_SECONDS, &Refusal::SIWX_OLD),
            _ => (&self.authorizations, "authorization", longest, &Refusal::EXPIRED),
        };
        let load = async || {
            let load = async move |tx: &mut SystemTx| stored::free_proofs_used_until(tx, kind).await;
            let until = app.db().system_read(load).await?;
            // A wrong clock must not lock everyone out for as long.
            let longest =
                i64::try_from(longest.saturating_add(MAX_CLOCK_SKEW_SECONDS)).map_err(Error::internal)?;
            let at_most = app.now().plus_seconds(longest.saturating_add(MAX_AHEAD_SECONDS));
            let announced = AtomicI64::new(until.as_micros());
            Ok::<_, Error>(WatermarkState { doubtful_until: until.min(at_most), announced })
        };
        let known = watermark.known.get_or_try_init(load).await?;
        if proof.expires_at <= known.doubtful_until {
            return Err(refused(refusal));
        }
        let is_announced = || proof.expires_at.as_micros() <= known.announced.load(Ordering::Acquire);
        if is_announced() {
            return Ok(());
        }
        let _moving = watermark.moving.lock().await;
        if !is_announced() {
            let until = proof.expires_at.plus_seconds(MAX_AHEAD_SECONDS);
            let note =
                async move |tx: &mut SystemTx| stored::set_free_proofs_used_until(tx, kind, until).await;
            app.db().system_write(note).await?;
            known.announced.store(until.as_micros(), Ordering::Release);
        }
        Ok(())
    }

    /// Uses a proof for a request, with its answer if it is to be kept. A repeat of the same request gets the earlier
    /// answer.
    pub(super) fn use_proof(
        &self,
        app: &App,
        proof: &Proof,
        request: &Request,
        answer: Option<(Answer, &[u8])>,
    ) -> Result<ProofUseOutcome> {
        let mut used = lock(&self.used);
        used.forget_expired(app.now());
        let proof_use =
            ProofUse::new(request, answer.filter(|(_, body)| body.len() <= used.free_answer_bytes()));
        used.insert(id_of(&proof.key), proof_use, proof.expires_at).map_err(|fault| match fault {
            Fault::Reused => reused(proof.protocol),
            Fault::Full => Error::new(ErrorKind::Overloaded).with_retry_after(5),
        })
    }

    /// The answer that a request got, if it used this proof before. Fails when another one did.
    pub(super) fn find(&self, proof: &Proof, request: &Request) -> Result<Option<Replay>> {
        let used = lock(&self.used);
        match used.proofs.get(&id_of(&proof.key)) {
            Some(known) if known.request != truncated(&request.fingerprint) => Err(reused(proof.protocol)),
            Some(known) => Ok(known.replay()),
            None => Ok(None),
        }
    }
}

/// The outcome of using a proof.
pub(super) enum ProofUseOutcome {
    /// Used for the first time.
    First,
    /// The same request had used it; its answer, if that was kept.
    Repeated(Option<Replay>),
}

/// Why a proof cannot be used.
enum Fault {
    Reused,
    Full,
}

impl ProofUse {
    fn new(request: &Request, answer: Option<(Answer, &[u8])>) -> Self {
        let answer = answer.map(|(answer, body)| (answer, Arc::from(body)));
        Self { request: truncated(&request.fingerprint), answer }
    }

    fn size(&self) -> usize {
        self.answer.as_ref().map_or(0, |(_, body)| body.len())
    }

    fn replay(&self) -> Option<Replay> {
        self.answer.as_ref().map(|(answer, body)| Replay { answer: *answer, body: body.to_vec() })
    }
}

impl UsedProofs {
    /// Bytes of answers that can still be kept.
    fn free_answer_bytes(&self) -> usize {
        MAX_ANSWER_BYTES.saturating_sub(self.answer_bytes)
    }

    fn insert(
        &mut self,
        name: ProofId,
        used: ProofUse,
        expires_at: Timestamp,
    ) -> Result<ProofUseOutcome, Fault> {
        match self.proofs.get(&name) {
            Some(known) if known.request == used.request => {
                return Ok(ProofUseOutcome::Repeated(known.replay()));
            }
            Some(_) => return Err(Fault::Reused),
            None if self.proofs.len() >= MAX_PROOFS => return Err(Fault::Full),
            None => {}
        }
        self.answer_bytes += used.size();
        self.proofs.insert(name, used);
        self.by_expiry.entry(second(expires_at)).or_default().push(name);
        Ok(ProofUseOutcome::First)
    }

    /// Forgets proofs that have expired.
    fn forget_expired(&mut self, now: Timestamp) {
        while let Some(first) = self.by_expiry.first_entry()
            && first.key().saturating_add(REMEMBERED_SECONDS) < second(now)
        {
            for name in first.remove() {
                let forgotten = self.proofs.remove(&name).map_or(0, |used| used.size());
                self.answer_bytes = self.answer_bytes.saturating_sub(forgotten);
            }
        }
    }
}

fn second(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(1_000_000)
}

fn id_of(key: &PaymentKey) -> ProofId {
    let PaymentKey { network, asset, payer, nonce } = key;
    let mut hash = Sha256::new();
    for part in [network, asset, payer, nonce] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    truncated(&hash.finalize().into())
}

fn truncated(hash: &[u8; 32]) -> ProofId {
    let mut name = ProofId::default();
    name.copy_from_slice(&hash[..16]);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof_use(request: u8, answer: Option<&[u8]>) -> ProofUse {
        ProofUse { request: [request; 16], answer: answer.map(|body| (Answer::Ok, Arc::from(body))) }
    }

    #[test]
    fn proofs_are_forgotten_with_their_answers_when_they_have_ended() {
        let mut used = UsedProofs::default();
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        assert!(matches!(
            used.insert([1; 16], proof_use(1, Some(b"one")), at(10)),
            Ok(ProofUseOutcome::First)
        ));
        assert!(matches!(used.insert([2; 16], proof_use(1, None), at(11)), Ok(ProofUseOutcome::First)));
        let repeated = used.insert([1; 16], proof_use(1, Some(b"other")), at(10));
        assert!(matches!(repeated, Ok(ProofUseOutcome::Repeated(Some(replay))) if replay.body == b"one"));
        assert!(matches!(
            used.insert([2; 16], proof_use(1, None), at(11)),
            Ok(ProofUseOutcome::Repeated(None))
        ));
        assert!(matches!(used.insert([1; 16], proof_use(2, None), at(10)), Err(Fault::Reused)));
        assert_eq!((used.proofs.len(), used.answer_bytes), (2, 3));
        used.forget_expired(at(10 + REMEMBERED_SECONDS));
        assert_eq!(used.proofs.len(), 2, "calls may have waited since it was good");
        used.forget_expired(at(11 + REMEMBERED_SECONDS));
        assert_eq!((used.proofs.len(), used.answer_bytes, used.by_expiry.len()), (1, 0, 1));
        used.forget_expired(at(12 + REMEMBERED_SECONDS));
        assert!(used.proofs.is_empty() && used.by_expiry.is_empty());
    }
}
