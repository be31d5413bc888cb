//! The proofs that cost nothing and were taken by this process.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, atomic::AtomicI64},
};

use model::Timestamp;
use tokio::sync::OnceCell;

/// The proofs that this process has taken.
#[derive(Default)]
pub(crate) struct FreeProofs {
    pub(crate) taken: Mutex<TakenProofs>,
    pub(crate) authorizations: Watermark,
    pub(crate) sign_ins: Watermark,
}

/// What the store knows of proofs of one kind.
#[derive(Default)]
pub(crate) struct Watermark {
    pub(crate) known: OnceCell<WatermarkState>,
    /// Held by who moves it.
    pub(crate) moving: tokio::sync::Mutex<()>,
}

pub(crate) struct WatermarkState {
    /// Proofs that end by then may have been taken before this process began.
    pub(crate) doubtful_until: Timestamp,
    /// The store knows that proofs are taken that end by then, in microseconds.
    pub(crate) announced: AtomicI64,
}

/// The beginning of a hash, long enough that nobody finds a second one.
pub(crate) type ProofId = [u8; 16];

#[derive(Default)]
pub(crate) struct TakenProofs {
    pub(crate) proofs: HashMap<ProofId, ProofUse>,
    /// The proofs by the second in which they end.
    pub(crate) ends: BTreeMap<i64, Vec<ProofId>>,
    pub(crate) answer_bytes: usize,
}

/// What a proof was used for.
pub(crate) struct ProofUse {
    pub(crate) request: ProofId,
    pub(crate) status: u16,
    pub(crate) answer: Option<Arc<[u8]>>,
}
