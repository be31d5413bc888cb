//! Proofs that cost nothing, on a server that has its store alone: kept in memory, so that a read writes nothing.
//!
//! A proof must not count twice across a crash either. So the store knows, before a proof is taken, until when all that
//! were taken are good; after a start whatever ends no later is refused, and the wallet signs again. Servers that share
//! a store keep such proofs there ([`super::checkout`]).

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
    state::free_proofs::{FreeProofs, ProofId, ProofUse, TakenProofs, WatermarkState},
};

/// Proofs that are remembered at most, some hundred megabytes. Each is good for a few minutes.
const MAX_PROOFS: usize = 2_000_000;
/// Bytes of answers that are remembered at most. A repeat of a read whose answer is not is made anew.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// How far ahead the store is told what will be taken, in seconds, which is also how often it is written to. After a start
/// wallets have to sign again for so long, and for longer when others signed for longer than they do.
const AHEAD: i64 = 5;
/// How long an ended proof is remembered, in seconds: a call that began while it was good may wait for two minutes, and
/// clocks may be set back.
const REMEMBERED: i64 = 150;

impl FreeProofs {
    /// Lets a proof in that was certainly not taken before this process began.
    pub(super) async fn admit(&self, app: &App, proof: &Proof) -> Result<()> {
        let longest = app.settings().payments.terms.max_timeout;
        let (mark, kind, longest, refusal) = match proof.protocol {
            Protocol::Siwx => (&self.sign_ins, "sign-in", siwx::LIFETIME_SECONDS, &Refusal::SIWX_OLD),
            _ => (&self.authorizations, "authorization", longest, &Refusal::EXPIRED),
        };
        let load = async || {
            let load = async move |tx: &mut SystemTx| stored::free_proofs_taken_until(tx, kind).await;
            let until = app.db().system_read(load).await?;
            // A clock that was wrong must not keep everybody out for as long.
            let longest =
                i64::try_from(longest.saturating_add(MAX_CLOCK_SKEW_SECONDS)).map_err(Error::internal)?;
            let at_most = app.now().plus_seconds(longest.saturating_add(AHEAD));
            let announced = AtomicI64::new(until.as_micros());
            Ok::<_, Error>(WatermarkState { doubtful_until: until.min(at_most), announced })
        };
        let known = mark.known.get_or_try_init(load).await?;
        if proof.expires_at <= known.doubtful_until {
            return Err(refused(refusal));
        }
        let is_announced = || proof.expires_at.as_micros() <= known.announced.load(Ordering::Acquire);
        if is_announced() {
            return Ok(());
        }
        let _moving = mark.moving.lock().await;
        if !is_announced() {
            let until = proof.expires_at.plus_seconds(AHEAD);
            let note = async move |tx: &mut SystemTx| stored::take_free_proofs_until(tx, kind, until).await;
            app.db().system_write(note).await?;
            known.announced.store(until.as_micros(), Ordering::Release);
        }
        Ok(())
    }

    /// Takes a proof for a request, with its answer if it is to be kept. When the same request took it before, tells so
    /// with the answer of that time.
    pub(super) fn take(
        &self,
        app: &App,
        proof: &Proof,
        request: &Request,
        answer: Option<(u16, &[u8])>,
    ) -> Result<Take> {
        let mut taken = lock(&self.taken);
        taken.forget_ended(app.now());
        let used = ProofUse::new(request, answer.filter(|(_, body)| body.len() <= taken.room()));
        taken.take(name_of(&proof.key), used, proof.expires_at).map_err(|fault| match fault {
            Fault::Reused => reused(proof.protocol),
            Fault::Full => Error::new(ErrorKind::Overloaded).with_retry_after(5),
        })
    }

    /// The answer that a request got, if it took this proof before. Fails when another one did.
    pub(super) fn find(&self, proof: &Proof, request: &Request) -> Result<Option<Replay>> {
        let taken = lock(&self.taken);
        match taken.proofs.get(&name_of(&proof.key)) {
            Some(known) if known.request != shortened(&request.fingerprint) => Err(reused(proof.protocol)),
            Some(known) => Ok(known.replay()),
            None => Ok(None),
        }
    }
}

/// What came of taking a proof.
pub(super) enum Take {
    /// It was taken for the first time.
    First,
    /// The same request had taken it; its answer, if that was kept.
    Repeated(Option<Replay>),
}

/// Why a proof cannot be taken.
enum Fault {
    Reused,
    Full,
}

impl ProofUse {
    fn new(request: &Request, answer: Option<(u16, &[u8])>) -> Self {
        let (status, answer) = answer.map_or((0, None), |(status, body)| (status, Some(Arc::from(body))));
        Self { request: shortened(&request.fingerprint), status, answer }
    }

    fn size(&self) -> usize {
        self.answer.as_deref().map_or(0, <[u8]>::len)
    }

    fn replay(&self) -> Option<Replay> {
        self.answer.as_ref().map(|body| Replay { status: self.status, body: body.to_vec() })
    }
}

impl TakenProofs {
    /// Bytes of answers that can still be kept.
    fn room(&self) -> usize {
        MAX_ANSWER_BYTES.saturating_sub(self.answer_bytes)
    }

    fn take(&mut self, name: ProofId, used: ProofUse, ends: Timestamp) -> Result<Take, Fault> {
        match self.proofs.get(&name) {
            Some(known) if known.request == used.request => return Ok(Take::Repeated(known.replay())),
            Some(_) => return Err(Fault::Reused),
            None if self.proofs.len() >= MAX_PROOFS => return Err(Fault::Full),
            None => {}
        }
        self.answer_bytes += used.size();
        self.proofs.insert(name, used);
        self.ends.entry(second(ends)).or_default().push(name);
        Ok(Take::First)
    }

    /// Forgets proofs that nobody takes any more.
    fn forget_ended(&mut self, now: Timestamp) {
        while let Some(first) = self.ends.first_entry()
            && first.key().saturating_add(REMEMBERED) < second(now)
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

fn name_of(key: &PaymentKey) -> ProofId {
    let PaymentKey { network, asset, payer, nonce } = key;
    let mut hash = Sha256::new();
    for part in [network, asset, payer, nonce] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    shortened(&hash.finalize().into())
}

fn shortened(hash: &[u8; 32]) -> ProofId {
    let mut name = ProofId::default();
    name.copy_from_slice(&hash[..16]);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(request: u8, answer: Option<&[u8]>) -> ProofUse {
        ProofUse { request: [request; 16], status: 200, answer: answer.map(Arc::from) }
    }

    #[test]
    fn proofs_are_forgotten_with_their_answers_when_they_have_ended() {
        let mut taken = TakenProofs::default();
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        assert!(matches!(taken.take([1; 16], used(1, Some(b"one")), at(10)), Ok(Take::First)));
        assert!(matches!(taken.take([2; 16], used(1, None), at(11)), Ok(Take::First)));
        let repeated = taken.take([1; 16], used(1, Some(b"other")), at(10));
        assert!(matches!(repeated, Ok(Take::Repeated(Some(replay))) if replay.body == b"one"));
        assert!(matches!(taken.take([2; 16], used(1, None), at(11)), Ok(Take::Repeated(None))));
        assert!(matches!(taken.take([1; 16], used(2, None), at(10)), Err(Fault::Reused)));
        assert_eq!((taken.proofs.len(), taken.answer_bytes), (2, 3));
        taken.forget_ended(at(10 + REMEMBERED));
        assert_eq!(taken.proofs.len(), 2, "calls may have waited since it was good");
        taken.forget_ended(at(11 + REMEMBERED));
        assert_eq!((taken.proofs.len(), taken.answer_bytes, taken.ends.len()), (1, 0, 1));
        taken.forget_ended(at(12 + REMEMBERED));
        assert!(taken.proofs.is_empty() && taken.ends.is_empty());
    }
}
