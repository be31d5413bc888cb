//! The stages of every API call, in the order of refusals that the specification sets.

use std::{net::IpAddr, sync::Arc, time::Instant};

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, request::Parts},
    response::Response,
};
use model::{Plan, WorkspaceId};
use operations::{
    Answer, Call, Caller, Credential, Entrance, Error, ErrorKind, Idempotency, Rate, Result, RunningKey,
    mailboxes,
};
use sha2::{Digest, Sha256};
use siphasher::sip128::SipHasher13;
use tracing::Instrument;

use crate::{
    State,
    body::{self, BodyLimit, MAX_BODY_BYTES, MAX_IDEMPOTENT_BODY_BYTES},
    endpoint::{Endpoint, Output, Prepared},
    error,
    input::RawInput,
    reply::{self, Reply},
    request::{
        Ambiguous, asks_for_events, client_address, credential, only_value, path_parameters, request_info,
        require_json_answer, require_own_site,
    },
};

/// What the response's headers report, as far as the call came.
#[derive(Default)]
struct MeteringHeaders {
    counted: Option<(WorkspaceId, Plan)>,
    rate: Option<Rate>,
    charged: i64,
    replayed: bool,
}

/// Serves one call.
pub(crate) async fn serve(state: State, endpoint: Arc<Endpoint>, request: Request) -> Response {
    let started = Instant::now();
    tracing::Span::current().record("operation", endpoint.operation.id);
    let address = client_address(&request);
    let (parts, body) = request.into_parts();
    let mut metering = MeteringHeaders::default();
    let outcome = run(&state, &endpoint, &parts, body, address, &mut metering).await;
    let mut response = match outcome {
        Ok((status, Reply::Json(bytes))) => success(&endpoint, &parts, status, bytes),
        Ok((_, Reply::File(download, part))) => reply::file(download, part),
        Ok((_, Reply::Events(stream))) => reply::events(stream),
        // Streamed work was started: it commits or refunds its own charge.
        Ok((_, Reply::Work(work))) => reply::events(work.stream),
        Err(refused) => error::response(&refused),
    };
    add_metering_headers(&state, &metering, response.headers_mut()).await;
    let status = response.status();
    if let Some((workspace, _)) = &metering.counted {
        state.app.meter().count_call(
            workspace,
            state.app.now(),
            !(status.is_success() || status.is_redirection()),
        );
    }
    endpoint.metrics.record(status, started);
    response
}

/// The stages.
async fn run(
    state: &State,
    endpoint: &Endpoint,
    parts: &Parts,
    body: axum::body::Body,
    address: IpAddr,
    metering: &mut MeteringHeaders,
) -> Result<(StatusCode, Reply)> {
    let caller = identify(state, parts, address).await?;
    let path = path_parameters(parts);
    let entrance = admit(state, endpoint, caller, &path, metering).await?;
    tracing::Span::current().record("workspace", entrance.access.workspace.as_str());
    let wants_events = matches!(endpoint.output, Output::Either(..)) && asks_for_events(&parts.headers);
    if matches!(endpoint.output, Output::Empty | Output::Json(_) | Output::Either(..)) && !wants_events {
        require_json_answer(&parts.headers)?;
    }
    let key = idempotency_key(&parts.method, &parts.headers);
    let body = read_body(endpoint, parts, body, key.is_some()).await?;
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let last_event_id =
        parts.headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(ToOwned::to_owned);
    let raw = RawInput {
        path,
        query,
        media_type: body::media_type(&parts.headers),
        body,
        range: reply::range(&parts.headers).map(ToOwned::to_owned),
        last_event_id,
        respond_async: prefers_async(&parts.headers),
        wants_events,
    };

    let workspace = &entrance.access.workspace;
    let running = match key {
        Some(key) => match claim(state, &entrance, key?, parts, &raw).await? {
            Idempotency::Replay(replay) => return Ok(replayed(replay, metering)),
            Idempotency::Run(claim, guard) => Some((claim, guard)),
        },
        None => None,
    };
    let prepared = endpoint.prepare(&raw)?;
    let (claim, guard) = running.unzip();
    let fingerprinted = claim.as_ref().map(|claim| (claim.key.clone(), claim.fingerprint));
    let call = state.app.charge(&entrance, request_info(&parts.extensions, &parts.uri), claim).await?;
    let (outcome, charged) = execute(state, endpoint, prepared, call, guard).await?;
    metering.charged = charged;
    match (outcome, fingerprinted) {
        // Another node answered the same key between our lookup and our transaction.
        (Err(error), Some((key, fingerprint))) if error.kind() == ErrorKind::AlreadyAnswered => {
            match state.app.check_idempotency(workspace, &key, fingerprint).await? {
                Idempotency::Replay(replay) => Ok(replayed(replay, metering)),
                Idempotency::Run(..) => Err(Error::new(ErrorKind::IdempotencyInProgress).with_retry_after(1)),
            }
        }
        (outcome, _) => Ok((success_status(endpoint.operation.answer), outcome?)),
    }
}

/// 401, and 429 for addresses that only ever fail.
async fn identify(state: &State, parts: &Parts, address: IpAddr) -> Result<Arc<Caller>> {
    let recognised = async {
        let credential = credential(&state.app, &parts.headers)?;
        let caller = state.app.authenticate(&credential).await?;
        if matches!(credential, Credential::Session(_)) && !parts.method.is_safe() {
            require_own_site(&state.app, &parts.headers)?;
        }
        Ok(caller)
    };
    recognise(state, address, recognised).await
}

/// Counts against the address if authentication failed.
pub(crate) async fn recognise(
    state: &State,
    address: IpAddr,
    recognised: impl Future<Output = Result<Arc<Caller>>>,
) -> Result<Arc<Caller>> {
    let now = state.app.now();
    state.anonymous.check(address, now)?;
    let outcome = recognised.await;
    if let Err(refused) = &outcome
        && refused.kind() == ErrorKind::Unauthorized
    {
        state.anonymous.count(address, now)?;
    }
    outcome
}

/// 403 and 429.
async fn admit(
    state: &State,
    endpoint: &Endpoint,
    caller: Arc<Caller>,
    path: &[(String, String)],
    metering: &mut MeteringHeaders,
) -> Result<Entrance> {
    let named = path.iter().find(|(name, _)| name == "workspaceId").map(|(_, value)| value.as_str());
    let plan = caller.access(named).or_else(|_| caller.access(None)).map(|access| access.plan)?;
    let admission = state.app.admit(endpoint.operation, caller, named).await?;
    metering.counted = Some((admission.workspace, plan));
    metering.rate = admission.rate;
    admission.entrance
}

/// 413 and 415.
pub(crate) async fn read_body(
    endpoint: &Endpoint,
    parts: &Parts,
    body: axum::body::Body,
    idempotent: bool,
) -> Result<axum::body::Bytes> {
    let limit = if idempotent {
        BodyLimit { max: MAX_IDEMPOTENT_BODY_BYTES, refusal: ErrorKind::IdempotencyPayloadTooLarge }
    } else {
        BodyLimit { max: MAX_BODY_BYTES, refusal: ErrorKind::PayloadTooLarge }
    };
    body::refuse_encoding(&parts.headers)?;
    let bytes = body::read(&parts.headers, body, limit).await?;
    let may_lack = endpoint.body_optional && bytes.is_empty();
    if !endpoint.body_types.is_empty() && !may_lack {
        body::require_type(&parts.headers, endpoint.body_types)?;
    }
    Ok(bytes)
}

/// The idempotency key of a write, or an error.
fn idempotency_key(method: &Method, headers: &HeaderMap) -> Option<Result<String>> {
    if method.is_safe() {
        return None;
    }
    let invalid = |fix: &'static str| Error::new(ErrorKind::InvalidIdempotencyKey).with_fix(fix);
    let value = match only_value(headers, "idempotency-key") {
        Ok(value) => value?,
        Err(Ambiguous) => return Some(Err(invalid("Send one Idempotency-Key."))),
    };
    let fits = |text: &&str| (1..=255).contains(&text.len()) && !text.contains('\t');
    let text = value.to_str().ok().filter(fits);
    Some(
        text.map(ToOwned::to_owned)
            .ok_or_else(|| invalid("Use 1 to 255 printable ASCII characters, such as a UUID.")),
    )
}

/// Whether the client sent `Prefer: respond-async`.
pub(crate) fn prefers_async(headers: &HeaderMap) -> bool {
    let lines = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|one| {
        one.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case("respond-async"))
    })
}

/// 409 and 422.
async fn claim(
    state: &State,
    entrance: &Entrance,
    key: String,
    parts: &Parts,
    raw: &RawInput,
) -> Result<Idempotency> {
    let mailbox = raw.path.iter().find(|(name, _)| name == "mailboxId").map(|(_, value)| value.as_str());
    let visible = mailboxes::visible_part(&entrance.caller, entrance.operation, mailbox);
    let fingerprint = fingerprint(parts, &visible, &raw.body);
    state.app.check_idempotency(&entrance.access.workspace, &key, fingerprint).await
}

/// A hash of method, path, query and body, and of what a narrowed caller sees.
pub(crate) fn fingerprint(parts: &Parts, visible: &str, body: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    let update = |hash: &mut Sha256, piece: &str| {
        hash.update((piece.len() as u64).to_be_bytes());
        hash.update(piece);
    };
    for piece in [parts.method.as_str(), parts.uri.path(), parts.uri.query().unwrap_or_default()] {
        update(&mut hash, piece);
    }
    if !visible.is_empty() {
        // No method: the hash is none of a request by a caller that sees everything.
        hash.update(u64::MAX.to_be_bytes());
        update(&mut hash, visible);
    }
    hash.update(body);
    hash.finalize().into()
}

fn replayed(replay: operations::Replay, metering: &mut MeteringHeaders) -> (StatusCode, Reply) {
    metering.replayed = true;
    (success_status(replay.answer), Reply::Json(replay.body))
}

/// Runs the operation. A write is finished even when the client disconnects.
async fn execute(
    state: &State,
    endpoint: &Endpoint,
    prepared: Prepared,
    call: Call,
    guard: Option<RunningKey>,
) -> Result<(Result<Reply>, i64)> {
    let (app, call) = (state.app.clone(), Arc::new(call));
    let work = async move {
        let outcome = match prepared(app.clone(), call.clone()).await {
            Ok(Reply::Work(work)) => {
                let reserved_credits = call.reserved_credits();
                let stream = work.start(move |succeeded| {
                    app.commit_or_refund(&call, succeeded);
                    drop(guard);
                });
                return (Ok(Reply::Events(stream)), reserved_credits);
            }
            outcome => outcome,
        };
        let charged = app.commit_or_refund(&call, outcome.is_ok());
        drop(guard);
        (outcome, charged)
    };
    if !endpoint.operation.writes {
        return Ok(work.await);
    }
    tokio::spawn(work.in_current_span()).await.map_err(Error::internal)
}

/// The HTTP status of a successful call.
pub(crate) const fn success_status(answer: Answer) -> StatusCode {
    match answer {
        Answer::Ok => StatusCode::OK,
        Answer::Created => StatusCode::CREATED,
        Answer::Accepted => StatusCode::ACCEPTED,
        Answer::Empty => StatusCode::NO_CONTENT,
    }
}

/// The tag of a content: the same on all nodes and after a restart. A cryptographic hash takes a seventh of the time of a
/// call, and would guard against nobody: who could make two contents with one tag would have to know all the rest of them.
fn entity_tag(bytes: &[u8]) -> String {
    format!("\"{:032x}\"", SipHasher13::new().hash(bytes).as_u128())
}

/// A successful response, or 304 if the client's copy is current.
pub(crate) fn success(endpoint: &Endpoint, parts: &Parts, status: StatusCode, bytes: Vec<u8>) -> Response {
    if bytes.is_empty() {
        let mut response = Response::new(axum::body::Body::empty());
        *response.status_mut() = status;
        return response;
    }
    if !endpoint.operation.tagged {
        return error::json(status, bytes);
    }
    let tag = entity_tag(&bytes);
    let known = parts.headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let matches = |list: &str| {
        list.split(',').any(|one| one.trim().trim_start_matches("W/") == tag || one.trim() == "*")
    };
    let mut response = if known.into_iter().any(matches) {
        let mut response = Response::new(axum::body::Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        error::json(status, bytes)
    };
    if let Ok(value) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, value);
    }
    response
}

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const RATE_REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RATE_RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
const CREDITS_CHARGED: HeaderName = HeaderName::from_static("x-credits-charged");
const CREDITS_REMAINING: HeaderName = HeaderName::from_static("x-credits-remaining");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The headers about limits and credits, on every response to an authenticated caller.
async fn add_metering_headers(state: &State, metering: &MeteringHeaders, headers: &mut HeaderMap) {
    if let Some(rate) = metering.rate {
        headers.insert(RATE_LIMIT, HeaderValue::from(rate.limit));
        headers.insert(RATE_REMAINING, HeaderValue::from(rate.remaining));
        headers.insert(RATE_RESET, HeaderValue::from(rate.reset));
    }
    let Some((workspace, plan)) = &metering.counted else { return };
    headers.insert(CREDITS_CHARGED, HeaderValue::from(metering.charged));
    if let Ok(credits) = state.app.credits(*plan, workspace).await
        && let Some(remaining) = credits.remaining
    {
        headers.insert(CREDITS_REMAINING, HeaderValue::from(remaining));
    }
    if metering.replayed {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
}
