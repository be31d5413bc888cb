//! One admitted call: who, where, which operation, when, and what it is charged.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use model::{AccountId, ApiKeyId, Plan, Role, SessionId, Timestamp, WorkspaceId};
use store::{payments::PaymentKey, vault::DataKey};

use crate::{Caller, Error, ErrorKind, Operation, Result, admission::check_gates, metering::Reservation};

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A program with an API key.
    Key(ApiKeyId),
    /// A wallet that showed itself, in lower case.
    Wallet(String),
    /// A chat that is linked with a mailbox, by its number.
    Chat(String),
    /// A person in the console.
    Person {
        /// The account.
        account: AccountId,
        /// The session.
        session: SessionId,
        /// Whether the account operates this server.
        is_admin: bool,
    },
}

impl Actor {
    /// The id for the audit trail.
    pub fn id(&self) -> &str {
        match self {
            Self::Key(id) => id.as_str(),
            Self::Wallet(address) => address,
            Self::Chat(chat) => chat,
            Self::Person { account, .. } => account.as_str(),
        }
    }
}

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
    /// A call that costs no credits.
    pub(crate) fn unmetered(
        operation: &'static Operation,
        caller: Arc<Caller>,
        workspace: WorkspaceId,
        now: Timestamp,
        request_id: String,
        subject: String,
    ) -> Self {
        Self {
            operation,
            caller,
            role: Role::Admin,
            workspace,
            plan: Plan::Free,
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
        Ok(Self {
            operation,
            caller: self.caller.clone(),
            role: self.role,
            workspace: self.workspace.clone(),
            plan: self.plan,
            now,
            request_id: self.request_id.clone(),
            subject: self.subject.clone(),
            idempotency: None,
            payment: None,
            rehearsal: false,
            reservation: Mutex::new(None),
            stored: AtomicBool::new(false),
        })
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
        crate::lock(&self.reservation).as_ref().map_or(0, Reservation::amount)
    }

    pub(crate) fn take_reservation(&self) -> Option<Reservation> {
        crate::lock(&self.reservation).take()
    }

    pub(crate) fn mark_stored(&self) {
        self.stored.store(true, Ordering::Release);
    }

    pub(crate) fn is_stored(&self) -> bool {
        self.stored.load(Ordering::Acquire)
    }

    pub(crate) fn put_reservation(&self, reservation: Reservation) {
        *crate::lock(&self.reservation) = Some(reservation);
    }
}
