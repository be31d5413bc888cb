//! The path of every keyless call, stage by stage.
//!
//! No proof → 402 before any lookup. A proof that passes the checks identifies the payer; then the request is
//! validated and, if it costs something, rehearsed, so that every refusal comes before money moves. Then the nonce
//! is claimed, the payment settled, and only then the operation runs.

use std::{net::IpAddr, sync::Arc, time::Instant};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{StatusCode, request::Parts},
    response::Response,
};
use operations::{
    App, Error, ErrorKind, Replay, RequestInfo, Result, emails,
    payments::{self, Proof, ProofState, Wallet},
};
use pay::Refusal;
use tracing::Instrument;

use super::{challenge, gated::GatedEndpoint, proof};
use crate::{
    State,
    body::{self, BodyLimit},
    endpoint::Output,
    error,
    input::RawInput,
    pipeline,
    reply::{self, Reply},
    request::{client_address, path_parameters, request_info, require_json_answer},
};

/// Bodies of calls without a proof are read up to this size, so that their challenge can be bound to them.
const MAX_UNPAID_BODY_BYTES: u64 = 1 << 20;

/// A response and the payment behind it.
struct PaidResponse {
    status: StatusCode,
    reply: Reply,
    transaction: String,
}

/// Serves one call.
pub(crate) async fn serve(state: State, gated: Arc<GatedEndpoint>, request: Request) -> Response {
    let started = Instant::now();
    let address = client_address(&request);
    let (parts, body) = request.into_parts();
    let mut visit = KeylessCall { state, gated, parts: Arc::new(parts), body: None, proof: None };
    let outcome = visit.run(body, address).await;
    let response = visit.respond(outcome);
    visit.gated.endpoint.metrics.record(response.status(), started);
    response
}

/// One call on its way through the gate.
struct KeylessCall {
    state: State,
    gated: Arc<GatedEndpoint>,
    parts: Arc<Parts>,
    body: Option<Bytes>,
    proof: Option<Proof>,
}

impl KeylessCall {
    async fn run(&mut self, body: Body, address: IpAddr) -> Result<PaidResponse> {
        let (state, gated, parts) = (self.state.clone(), self.gated.clone(), self.parts.clone());
        state.anonymous.check(address, state.app.now())?;
        let Some(raw_proof) = proof::find(&parts.headers, gated.terms.amount)? else {
            self.body = self.read_unpaid(body).await;
            state.anonymous.count(address, state.app.now())?;
            return Err(Error::new(ErrorKind::PaymentRequired));
        };
        let bytes = pipeline::read_body(&gated.endpoint, &parts, body, true).await?;
        self.body = Some(bytes.clone());
        let checked = proof::check(&state.app, &raw_proof, &gated.terms, &parts, &bytes);
        if checked.is_err() {
            state.anonymous.count(address, state.app.now())?;
        }
        let proof = checked?;
        self.proof = Some(proof.clone());
        state.wallets.count(proof.payer, state.app.now())?;
        let paid = PaidCall::new(state.app.clone(), gated, &parts, bytes, proof)?;
        if !paid.gated.endpoint.operation.writes {
            return paid.read().await;
        }
        // A write is finished even when the client disconnects.
        tokio::spawn(async move { paid.write().await }.in_current_span()).await.map_err(Error::internal)?
    }

    /// The body of a call without a proof, if it is short; its challenge is not bound to a longer one.
    async fn read_unpaid(&self, body: Body) -> Option<Bytes> {
        if self.gated.terms.amount == 0 {
            return None;
        }
        let limit = BodyLimit { max: MAX_UNPAID_BODY_BYTES, refusal: ErrorKind::PayloadTooLarge };
        body::read(&self.parts.headers, body, limit).await.ok()
    }

    fn respond(&self, outcome: Result<PaidResponse>) -> Response {
        let (app, gated, parts) = (&self.state.app, &self.gated, &self.parts);
        match outcome {
            Ok(PaidResponse { status, reply, transaction }) => {
                let mut response = match reply {
                    Reply::Json(bytes) => pipeline::success(&gated.endpoint, parts, status, bytes),
                    Reply::File(download, part) => reply::file(download, part),
                    Reply::Events(stream) => reply::events(stream),
                    Reply::Work(work) => reply::events(work.start(|_| ())),
                };
                if let Some(proof) = &self.proof {
                    challenge::add_receipt(app, &gated.terms, proof, Ok(&transaction), &mut response);
                }
                response
            }
            Err(refused) if error::status(refused.kind()) == StatusCode::PAYMENT_REQUIRED => {
                let mut response = challenge::response(app, gated, parts, self.body.as_deref(), &refused);
                if let Some(proof) = &self.proof {
                    challenge::add_receipt(app, &gated.terms, proof, Err(&refused), &mut response);
                }
                response
            }
            Err(refused) => error::response(&refused),
        }
    }
}

/// A call with a valid proof.
struct PaidCall {
    app: App,
    gated: Arc<GatedEndpoint>,
    raw: RawInput,
    info: RequestInfo,
    request: payments::Request,
    proof: Proof,
}

impl PaidCall {
    fn new(app: App, gated: Arc<GatedEndpoint>, parts: &Parts, body: Bytes, proof: Proof) -> Result<Self> {
        let endpoint = &gated.endpoint;
        if matches!(endpoint.output, Output::Empty | Output::Json(_)) {
            require_json_answer(&parts.headers)?;
        }
        let request = payments::Request {
            operation: endpoint.operation,
            subject: parts.uri.path().to_owned(),
            fingerprint: pipeline::fingerprint(parts, "", &body),
        };
        let raw = RawInput {
            path: path_parameters(parts),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            media_type: body::media_type(&parts.headers),
            body,
            range: reply::range(&parts.headers).map(ToOwned::to_owned),
            last_event_id: None,
            respond_async: pipeline::prefers_async(&parts.headers),
            wants_events: false,
        };
        let info = request_info(&parts.extensions, &parts.uri);
        Ok(Self { app, gated, raw, info, request, proof })
    }

    /// The wallet, if it may do this: another wallet's mailbox is reported as not found.
    async fn wallet(&self) -> Result<Wallet> {
        let wallet = self.app.wallet(&self.proof).await?;
        let mailbox = self.raw.path.iter().find(|(name, _)| name == "mailboxId").map(|(_, value)| value);
        let Some(mailbox) = mailbox else { return Ok(wallet) };
        if wallet.workspace.is_none() {
            return Err(Error::not_found("Mailbox not found"));
        }
        if self.gated.terms.amount == 0 && self.by_authorization() && wallet.requires_siwx(mailbox) {
            return Err(payments::refused(&Refusal::SIWX_NEEDED));
        }
        Ok(wallet)
    }

    fn by_authorization(&self) -> bool {
        self.proof.payment.is_some()
    }

    /// A call that changes nothing: its response is stored with the nonce.
    async fn read(self) -> Result<PaidResponse> {
        let strict = self.app.settings().payments.siwx_only;
        if strict && self.by_authorization() {
            return Err(payments::refused(&Refusal::SIWX_NEEDED));
        }
        if let Some(untimely) = &self.proof.untimely {
            return Err(payments::refused(untimely));
        }
        let endpoint = &self.gated.endpoint;
        let prepared = endpoint.prepare(&self.raw)?;
        payments::admit(&self.app, &self.proof).await?;
        let wallet = self.wallet().await?;
        // Looked up first only for slow operations; for others the claim itself finds a repeat soon enough.
        if endpoint.operation.id == emails::WAIT.id
            && let ProofState::Answered(replay, _) =
                payments::look_up(&self.app, &self.proof, &self.request).await?
        {
            return Ok(replayed(replay, String::new()));
        }
        let call = Arc::new(wallet.call(&self.app, endpoint.operation, self.info.clone()));
        let reply = prepared(self.app.clone(), call).await?;
        let status = pipeline::success_status(endpoint.operation.answer);
        let stored = match &reply {
            Reply::Json(bytes) => Some((endpoint.operation.answer, bytes.as_slice())),
            Reply::File(..) | Reply::Events(_) | Reply::Work(_) => None,
        };
        match payments::keep_answer(&self.app, &self.proof, &self.request, &wallet, stored).await? {
            Some(replay) => Ok(replayed(replay, String::new())),
            None => Ok(PaidResponse { status, reply, transaction: String::new() }),
        }
    }

    /// A call that changes something: settled first, then run exactly once.
    async fn write(self) -> Result<PaidResponse> {
        let transaction = match payments::look_up(&self.app, &self.proof, &self.request).await? {
            ProofState::Answered(replay, reference) => {
                return Ok(replayed(replay, reference.unwrap_or_default()));
            }
            ProofState::Failed(reason) => {
                return Err(Error::with_message(ErrorKind::SettlementFailed, reason));
            }
            ProofState::Repeatable => return Err(payments::refused(&Refusal::NONCE_USED)),
            ProofState::New => {
                self.rehearse().await?;
                payments::claim(&self.app, &self.proof, &self.request).await?;
                payments::settle(&self.app, &self.proof, &self.request).await?
            }
            ProofState::Unsettled => {
                payments::take_over(&self.app, &self.proof).await?;
                payments::settle(&self.app, &self.proof, &self.request).await?
            }
            ProofState::Settled(reference) => {
                payments::take_over(&self.app, &self.proof).await?;
                reference
            }
        };
        self.perform(transaction).await
    }

    /// Runs the operation in a transaction that is rolled back: what is refused here costs nothing.
    async fn rehearse(&self) -> Result<()> {
        if self.app.settings().payments.siwx_only && self.gated.terms.amount == 0 && self.by_authorization() {
            return Err(payments::refused(&Refusal::SIWX_NEEDED));
        }
        if let Some(untimely) = &self.proof.untimely {
            return Err(payments::refused(untimely));
        }
        let endpoint = &self.gated.endpoint;
        let prepared = endpoint.prepare(&self.raw)?;
        let wallet = self.wallet().await?;
        let mut call = wallet.call(&self.app, endpoint.operation, self.info.clone());
        call.rehearsal = true;
        match prepared(self.app.clone(), Arc::new(call)).await {
            Err(refused) if refused.kind() == ErrorKind::Rehearsed => Ok(()),
            Err(refused) => Err(refused),
            Ok(_) => Err(Error::internal("a rehearsal was not undone")),
        }
    }

    /// Runs the operation that was paid for. If it fails, the same request can be retried without paying again.
    async fn perform(self, transaction: String) -> Result<PaidResponse> {
        let outcome = self.attempt().await;
        let refused = match outcome {
            Ok(reply) => {
                let status = pipeline::success_status(self.gated.endpoint.operation.answer);
                return Ok(PaidResponse { status, reply, transaction });
            }
            Err(refused) => refused,
        };
        if refused.kind() == ErrorKind::AlreadyAnswered
            && let ProofState::Answered(replay, _) =
                payments::look_up(&self.app, &self.proof, &self.request).await?
        {
            return Ok(replayed(replay, transaction));
        }
        tracing::error!(code = refused.kind().code(), error = %refused, "paid call failed; client can retry without paying again");
        payments::release(&self.app, &self.proof, &transaction, refused.kind().code()).await?;
        Err(refused.with_fix("The payment is settled. Repeat the same request with the same payment."))
    }

    async fn attempt(&self) -> Result<Reply> {
        let endpoint = &self.gated.endpoint;
        let prepared = endpoint.prepare(&self.raw)?;
        let wallet = payments::open_workspace(&self.app, &self.wallet().await?).await?;
        let mut call = wallet.call(&self.app, endpoint.operation, self.info.clone());
        payments::bind(&self.app, &mut call, &self.proof, &self.request).await?;
        prepared(self.app.clone(), Arc::new(call)).await
    }
}

fn replayed(replay: Replay, transaction: String) -> PaidResponse {
    let status = pipeline::success_status(replay.answer);
    PaidResponse { status, reply: Reply::Json(replay.body), transaction }
}
