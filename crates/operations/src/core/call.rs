//! One admitted call: caller, workspace, operation, time, and charge.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use model::{AccountId, MailboxId, Plan, Role, Timestamp, WorkspaceId};
use store::{Tx, idempotency, payments::PaymentKey, vault::DataKey};

use crate::core::{
    caller::{Access, Actor, Caller},
    error::{Error, ErrorKind, Result},
    gates::{check_gates, check_rights},
    lock::lock,
    metering::Reservation,
    operation::{Answer, Operation},
    request_info::RequestInfo,
};

impl Call {
    /// The account that resources made by this call are attributed to. What API keys, wallets and chats make belongs
    /// to the workspace, regardless of who created the key.
    pub(crate) fn creator(&self) -> Option<AccountId> {
        match &self.caller.actor {
            Actor::Person { account, .. } => Some(account.clone()),
            Actor::Key(_) | Actor::Wallet(_) | Actor::Chat(_) => None,
        }
    }
}

/// An idempotency key and the request that it came with.
#[derive(Clone)]
pub struct IdempotencyClaim {
    /// The key.
    pub key: String,
    /// The hash of method, path, query and body.
    pub fingerprint: [u8; 32],
    /// The key that seals the stored answer.
    pub data_key: Arc<DataKey>,
}

/// The purpose that stored answers are sealed for.
pub(crate) const IDEMPOTENCY: &str = "idempotency";

impl IdempotencyClaim {
    /// Stores the answer to the request, in the transaction of its effect.
    pub(crate) async fn keep(&self, tx: &mut Tx, answer: Answer, body: &[u8]) -> Result<()> {
        let sealed = self.data_key.seal(IDEMPOTENCY, body).map_err(store::Error::from)?;
        Ok(idempotency::store(tx, &self.key, answer.code(), &sealed).await?)
    }
}

/// One admitted call.
pub struct Call {
    /// The operation.
    pub operation: &'static Operation,
    /// The caller.
    pub caller: Arc<Caller>,
    /// The caller's role in the workspace.
    pub role: Role,
    /// The workspace that the call runs in.
    pub workspace: WorkspaceId,
    /// Its plan.
    pub plan: Plan,
    /// When the call arrived.
    pub now: Timestamp,
    /// The request that makes it.
    pub request: RequestInfo,
    /// Its idempotency key.
    pub idempotency: Option<IdempotencyClaim>,
    /// The payment it is made for, which is marked as fulfilled with its effect.
    pub payment: Option<PaymentKey>,
    /// Whether it is a dry run: its effect is rolled back, and it fails with `Rehearsed`.
    pub rehearsal: bool,
    /// The credits reserved for it.
    pub(crate) reservation: Mutex<Option<Reservation>>,
    /// Whether the charge is already durable with the effect.
    pub(crate) stored: AtomicBool,
}

impl Call {
    /// A call without reserved credits.
    pub(crate) fn new(
        operation: &'static Operation,
        caller: Arc<Caller>,
        access: Access,
        now: Timestamp,
        request: RequestInfo,
    ) -> Self {
        Self {
            operation,
            caller,
            role: access.role,
            workspace: access.workspace,
            plan: access.plan,
            now,
            request,
            idempotency: None,
            payment: None,
            rehearsal: false,
            reservation: Mutex::new(None),
            stored: AtomicBool::new(false),
        }
    }

    /// A further operation on behalf of this call: same caller, same rights and scopes, paid for by this one.
    pub(crate) fn follow(&self, operation: &'static Operation, now: Timestamp) -> Result<Self> {
        check_gates(operation, &self.caller, self.plan, self.role)?;
        Ok(self.with_operation(operation, now))
    }

    /// An operation that is a step of this one, and needs no scope of its own: a caller that may rewrite a draft may have
    /// it read for that.
    pub(crate) fn step(&self, operation: &'static Operation, now: Timestamp) -> Result<Self> {
        check_rights(operation, &self.caller.actor, self.plan, self.role)?;
        Ok(self.with_operation(operation, now))
    }

    fn with_operation(&self, operation: &'static Operation, now: Timestamp) -> Self {
        let access = Access {
            workspace: self.workspace.clone(),
            name: String::new(),
            role: self.role,
            plan: self.plan,
        };
        Self::new(operation, self.caller.clone(), access, now, self.request.clone())
    }

    /// The mailboxes that the caller sees; `None` for all.
    pub(crate) fn mailbox_ids(&self) -> Option<&Arc<[MailboxId]>> {
        self.caller.narrowing.mailbox_ids()
    }

    /// Refuses a workspace id, given in a path, a body or a query, that is not the call's.
    pub fn require_workspace(&self, given: Option<&WorkspaceId>) -> Result<()> {
        match given {
            Some(id) if *id != self.workspace => Err(Error::new(ErrorKind::WorkspaceScopeDenied)),
            _ => Ok(()),
        }
    }

    /// The credits reserved for it.
    pub fn reserved_credits(&self) -> i64 {
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
