//! One admitted call: who, where, which operation, when, and what it is charged.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use model::{AccountId, Plan, Role, Timestamp, WorkspaceId};
use store::{Tx, idempotency, payments::PaymentKey, vault::DataKey};

use crate::core::{
    caller::{Access, Actor, Caller},
    error::{Error, ErrorKind, Result},
    gates::check_gates,
    lock::lock,
    metering::Reservation,
    operation::{Answer, Operation},
};

impl Call {
    /// The account that what the call makes is noted for. What keys, wallets and chats make belongs to the workspace: so do
    /// they, no matter who made them.
    pub(crate) fn maker(&self) -> Option<AccountId> {
        match &self.caller.actor {
            Actor::Person { account, .. } => Some(account.clone()),
            Actor::Key(_) | Actor::Wallet(_) | Actor::Chat(_) => None,
        }
    }
}

/// An idempotency key and the request it came with.
#[derive(Clone)]
pub struct IdempotencyClaim {
    /// The key.
    pub key: String,
    /// The hash of method, path, query and body.
    pub fingerprint: [u8; 32],
    /// What the answer is sealed with.
    pub data_key: Arc<DataKey>,
}

/// The purpose that kept answers are sealed for.
pub(crate) const IDEMPOTENCY: &str = "idempotency";

impl IdempotencyClaim {
    /// Keeps the answer to the request, in the transaction of its effect.
    pub(crate) async fn keep(&self, tx: &mut Tx, answer: Answer, body: &[u8]) -> Result<()> {
        let sealed = self.data_key.seal(IDEMPOTENCY, body).map_err(store::Error::from)?;
        Ok(idempotency::keep(tx, &self.key, i64::from(answer.status()), &sealed).await?)
    }
}

/// One admitted call.
pub struct Call {
    /// The operation.
    pub operation: &'static Operation,
    /// Who calls.
    pub caller: Arc<Caller>,
    /// The caller's role in the workspace.
    pub role: Role,
    /// The workspace that everything happens in.
    pub workspace: WorkspaceId,
    /// Its plan.
    pub plan: Plan,
    /// When the call came in.
    pub now: Timestamp,
    /// The request's id, as in the logs.
    pub request_id: String,
    /// What the call is about: the path of the request.
    pub subject: String,
    /// Its idempotency key.
    pub idempotency: Option<IdempotencyClaim>,
    /// The payment that it is made for, which is noted as fulfilled with its effect.
    pub payment: Option<PaymentKey>,
    /// Whether it only shows that it would work: its effect is undone, and it fails with `Rehearsed`.
    pub rehearsal: bool,
    /// The credits set aside for it.
    pub(crate) reservation: Mutex<Option<Reservation>>,
    /// Whether the charge is durable together with the effect.
    pub(crate) stored: AtomicBool,
}

impl Call {
    /// A call for which no credits are set aside.
    pub(crate) fn new(
        operation: &'static Operation,
        caller: Arc<Caller>,
        access: Access,
        now: Timestamp,
        request_id: String,
        subject: String,
    ) -> Self {
        Self {
            operation,
            caller,
            role: access.role,
            workspace: access.workspace,
            plan: access.plan,
            now,
            request_id,
            subject,
            idempotency: None,
            payment: None,
            rehearsal: false,
            reservation: Mutex::new(None),
            stored: AtomicBool::new(false),
        }
    }

    /// A call that follows from this one: by the same caller with the same rights, and paid for by this one.
    pub(crate) fn follow(&self, operation: &'static Operation, now: Timestamp) -> Result<Self> {
        check_gates(operation, &self.caller.actor, self.plan, self.role)?;
        let access = Access {
            workspace: self.workspace.clone(),
            name: String::new(),
            role: self.role,
            plan: self.plan,
        };
        let (request_id, subject) = (self.request_id.clone(), self.subject.clone());
        Ok(Self::new(operation, self.caller.clone(), access, now, request_id, subject))
    }

    /// Refuses a workspace id, given in a path, a body or a query, that is not the call's.
    pub fn require_workspace(&self, given: Option<&WorkspaceId>) -> Result<()> {
        match given {
            Some(id) if *id != self.workspace => Err(Error::new(ErrorKind::WorkspaceScopeDenied)),
            _ => Ok(()),
        }
    }

    /// The credits that are set aside for it.
    pub fn set_aside(&self) -> i64 {
        lock(&self.reservation).as_ref().map_or(0, Reservation::amount)
    }

    pub(crate) fn take_reservation(&self) -> Option<Reservation> {
        lock(&self.reservation).take()
    }

    pub(crate) fn mark_stored(&self) {
        self.stored.store(true, Ordering::Release);
    }

    pub(crate) fn is_stored(&self) -> bool {
        self.stored.load(Ordering::Acquire)
    }

    pub(crate) fn put_reservation(&self, reservation: Reservation) {
        *lock(&self.reservation) = Some(reservation);
    }
}
