//! Free proofs that this process has accepted, so that none is accepted twice.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, atomic::AtomicI64},
};

use model::Timestamp;
use tokio::sync::OnceCell;

use crate::core::operation::Answer;

/// The proofs that this process has accepted.
#[derive(Default)]
pub(crate) struct FreeProofs {
    pub(crate) used: Mutex<UsedProofs>,
    pub(crate) authorizations: Watermark,
    pub(crate) sign_ins: Watermark,
}

/// What the store knows about proofs of one kind.
#[derive(Default)]
pub(crate) struct Watermark {
    pub(crate) known: OnceCell<WatermarkState>,
    /// Locked by the task that moves it.
    pub(crate) moving: tokio::sync::Mutex<()>,
}

pub(crate) struct WatermarkState {
    /// Proofs that expire by then may have been used before this process started.
    pub(crate) doubtful_until: Timestamp,
    /// The store knows that proofs expiring by then are in use, in microseconds.
    pub(crate) announced: AtomicI64,
}

/// The beginning of a hash, long enough to resist collisions.
pub(crate) type ProofId = [u8; 16];

#[derive(Default)]
pub(crate) struct UsedProofs {
    pub(crate) proofs: HashMap<ProofId, ProofUse>,
    /// The proofs by the second in which they expire.
    pub(crate) by_expiry: BTreeMap<i64, Vec<ProofId>>,
    pub(crate) answer_bytes: usize,
}

/// What a proof was used for.
pub(crate) struct ProofUse {
    pub(crate) request: ProofId,
    /// The answer and its body, if they were kept.
    pub(crate) answer: Option<(Answer, Arc<[u8]>)>,
}
