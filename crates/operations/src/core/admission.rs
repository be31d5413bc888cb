//! How a call is admitted: one visible list of gates, the same for every door.
//!
//! The order of refusals is part of the contract: 401, 403 workspace, 403 plan, 403 role, 403 scope, 429, then the door's own
//! 413 and 415, idempotency, 400, and 402 last before the operation itself.

use std::sync::{Arc, Mutex};

use model::WorkspaceId;
use store::idempotency;

use crate::core::{
    app::App,
    call::{Call, IDEMPOTENCY, IdempotencyClaim},
    caller::{Access, Caller},
    error::{Error, ErrorKind, Result},
    gates::check_gates,
    metering::{Credits, Rate},
    operation::{Answer, Operation},
    request_info::RequestInfo,
    state::running_keys::RunningKey,
};

/// A call that passed the gates that need neither its body nor credits.
pub struct Entrance {
    /// The operation.
    pub operation: &'static Operation,
    /// The caller.
    pub caller: Arc<Caller>,
    /// The workspace, with the caller's role and plan.
    pub access: Access,
}

/// The result of the gates, also when they refused.
pub struct Admission {
    /// The workspace that the request counts against.
    pub workspace: WorkspaceId,
    /// The request limit.
    pub rate: Option<Rate>,
    /// The admitted call, or the refusal.
    pub entrance: Result<Entrance>,
}

/// A stored answer to an earlier request with the same idempotency key.
pub struct Replay {
    /// What it is.
    pub answer: Answer,
    /// Its body, byte for byte.
    pub body: Vec<u8>,
}

impl App {
    /// Counts the request and applies the gates: workspace, plan, role, scope, request limit.
    ///
    /// `named` is the workspace id in the path. Every authenticated call counts, refused ones too.
    #[crate::boxed]
    pub async fn admit(
        &self,
        operation: &'static Operation,
        caller: Arc<Caller>,
        named: Option<&str>,
    ) -> Result<Admission> {
        let scope = caller.access(named).cloned();
        // A call that names a foreign workspace counts against the caller's own.
        let counted = match &scope {
            Ok(access) => access.clone(),
            Err(_) => caller.access(None)?.clone(),
        };
        let limits = self.limits(counted.plan);
        let expected = scope.is_ok().then_some((limits.credits_per_period, operation.class));
        let counting = self.meter().count_request(&counted.workspace, limits.rpm, expected, self.now());
        let (rate, allowed) = counting.await?;
        let entrance = scope.and_then(|access| {
            check_gates(operation, &caller, access.plan, access.role)?;
            if !allowed {
                let seconds = rate.map_or(60, |rate| rate.reset);
                return Err(Error::new(ErrorKind::RateLimited).with_retry_after(seconds));
            }
            Ok(Entrance { operation, caller, access })
        });
        Ok(Admission { workspace: counted.workspace, rate, entrance })
    }

    /// Looks up an idempotency key: a stored answer to replay, or the claim to run with.
    #[crate::boxed]
    pub async fn check_idempotency(
        &self,
        workspace: &WorkspaceId,
        key: &str,
        fingerprint: [u8; 32],
    ) -> Result<Idempotency> {
        let data_key = self.data_key(workspace).await?;
        let Some(running) = self.run_alone(workspace, key) else {
            return Err(Error::new(ErrorKind::IdempotencyInProgress).with_retry_after(1));
        };
        let (now, wanted) = (self.now(), key.to_owned());
        let kept =
            self.db().read(workspace, async move |tx| idempotency::find(tx, &wanted, now).await).await?;
        let Some(kept) = kept else {
            let claim = IdempotencyClaim { key: key.to_owned(), fingerprint, data_key };
            return Ok(Idempotency::Run(claim, running));
        };
        if kept.fingerprint != fingerprint {
            return Err(Error::new(ErrorKind::IdempotencyKeyReused));
        }
        let body = data_key.open(IDEMPOTENCY, &kept.answer).map_err(store::Error::from)?;
        Ok(Idempotency::Replay(Replay { answer: Answer::from_code(kept.status)?, body }))
    }

    /// Reserves the credits: the last gate before the operation.
    #[crate::boxed]
    pub async fn charge(
        &self,
        entrance: &Entrance,
        request: RequestInfo,
        idempotency: Option<IdempotencyClaim>,
    ) -> Result<Call> {
        let operation = entrance.operation;
        let (workspace, plan, now) = (&entrance.access.workspace, entrance.access.plan, self.now());
        let pool = self.limits(plan).credits_per_period;
        let reservation =
            self.meter().reserve(workspace, pool, operation.class, now, operation.always_answers).await?;
        let (caller, access) = (entrance.caller.clone(), entrance.access.clone());
        let call = Call::new(operation, caller, access, now, request);
        Ok(Call { idempotency, reservation: Mutex::new(Some(reservation)), ..call })
    }

    /// Admission for the console's own pages: the same gates of workspace, plan, role and scope, without counting or
    /// charging. Plan limits on mail, mailboxes and the like still apply.
    pub fn enter_console(
        &self,
        operation: &'static Operation,
        caller: Arc<Caller>,
        named: Option<&str>,
        request: RequestInfo,
    ) -> Result<Call> {
        let access = caller.access(named)?.clone();
        check_gates(operation, &caller, access.plan, access.role)?;
        Ok(Call::new(operation, caller, access, self.now(), request))
    }

    /// Ends a call: commits its credits on success, refunds them on failure. Returns what was charged.
    pub fn commit_or_refund(&self, call: &Call, succeeded: bool) -> i64 {
        let Some(reservation) = call.take_reservation() else { return 0 };
        let amount = reservation.amount();
        if call.is_stored() {
            reservation.commit_ledgered();
        } else if succeeded {
            reservation.commit();
        } else {
            return 0;
        }
        amount
    }

    /// The workspace's credits, for the response headers.
    #[crate::boxed]
    pub async fn credits(&self, access_plan: model::Plan, workspace: &WorkspaceId) -> Result<Credits> {
        let limit = self.limits(access_plan).credits_per_period;
        self.meter().credits(workspace, limit, self.now(), false).await
    }
}

/// What to do with a request that has an idempotency key.
pub enum Idempotency {
    /// Run it and store the answer. The guard marks the key as running until then.
    Run(IdempotencyClaim, RunningKey),
    /// Return the stored answer without running.
    Replay(Replay),
}
