//! The signed HTTP hook for mail: a receiving service posts raw messages, and gets 200 when they are durable.
//!
//! The signature is an HMAC-SHA256 over the time, the envelope and the body, so that none of them can be changed.
//! Old requests are refused, and a repeat of a fresh one delivers nothing twice. `docs/receiving.md` describes it
//! for callers.

use std::net::IpAddr;

use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, StatusCode},
    response::Response,
    routing::post,
};
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use hmac::{Hmac, KeyInit, Mac};
use model::{EmailId, emails::InboundProvider};
use operations::{
    App, Detail, Error, ErrorKind, Result,
    inbound::{self, Arrival, Client, Refusal},
    mail_log,
};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::Sha256;

use crate::{
    State,
    body::{self, BodyLimit},
    error, input,
    request::client_address,
};

/// Maximum clock difference between both sides.
const TOLERANCE_SECONDS: u64 = 300;
/// The headers that are signed with the body, one per line.
const SIGNED: [&str; 4] = ["x-envelope-from", "x-envelope-to", "x-client-address", "x-client-helo"];
/// The result of the hook.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Taken")]
pub(crate) struct HookResponse {
    /// The ids of the stored emails, in the order of the accepted recipients.
    ids: Vec<EmailId>,
    /// The recipients that were refused.
    refused: Vec<RefusedRecipient>,
}

/// A recipient that was refused.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Refused")]
struct RefusedRecipient {
    /// The address, as given.
    recipient: String,
    /// The reason.
    reason: &'static str,
}

/// Maximum recipients of one request.
const MAX_RECIPIENTS: usize = 100;

pub(crate) fn routes() -> Router<State> {
    Router::new().route("/inbound/v1/raw", post(receive))
}

async fn receive(axum::extract::State(state): axum::extract::State<State>, request: Request) -> Response {
    let (address, now) = (client_address(&request), state.app.now());
    // A client that only ever sends wrong signatures is rate-limited.
    let outcome = match state.anonymous.check(address, now) {
        Ok(()) => accept(&state.app, request).await,
        Err(refused) => Err(refused),
    };
    match outcome {
        Err(refused) if refused.kind() == ErrorKind::Unauthorized => {
            let counted = state.anonymous.count(address, now);
            error::response(counted.as_ref().err().unwrap_or(&refused))
        }
        Err(refused) => error::response(&refused),
        Ok(response) => response,
    }
}

async fn accept(app: &App, request: Request) -> Result<Response> {
    // Without a secret there is no hook, and the response does not reveal that there could be one.
    let secret = app.settings().inbound_secret.clone().ok_or_else(error::no_route)?;
    let (parts, body) = request.into_parts();
    let limit = BodyLimit { max: app.settings().max_message_bytes, refusal: ErrorKind::PayloadTooLarge };
    let raw = body::read(&parts.headers, body, limit).await?;
    let name = check_signature(app, &parts.headers, secret.as_bytes(), &raw)?;
    input::refuse_query(parts.uri.query().unwrap_or_default())?;
    let envelope = Envelope::read(&parts.headers)?;
    let mut recipients = Vec::new();
    let mut refused = Vec::new();
    for address in &envelope.to {
        match inbound::route(app, envelope.from.as_deref(), address).await {
            Ok(recipient) => recipients.push(recipient),
            Err(refusal) if refusal.code < 500 => return Err(unavailable()),
            Err(refusal) => refused.push((address.clone(), refusal)),
        }
    }
    if recipients.is_empty() {
        mail_log::received_by_hook(
            envelope.from.as_deref(),
            &refused,
            &[],
            raw.len(),
            Err(&Refusal::NO_RECIPIENTS),
        );
        let detail = |(path, refusal): (String, Refusal)| Detail { path, message: refusal.text.to_owned() };
        let details = refused.into_iter().map(detail).collect();
        return Err(Error::new(ErrorKind::RecipientsRefused).with_details(details));
    }
    let addresses: Vec<String> = recipients.iter().map(|recipient| recipient.address.clone()).collect();
    let (from, size) = (envelope.from.clone(), raw.len());
    let arrival = Arrival {
        provider: Some(InboundProvider::MailApi),
        from: envelope.from,
        recipients,
        raw,
        client: envelope.client,
    };
    let outcome = inbound::receive_once(app, arrival, name).await;
    mail_log::received_by_hook(from.as_deref(), &refused, &addresses, size, outcome.as_ref());
    match outcome {
        Ok(received) => {
            let refusal = |(recipient, refusal): (String, Refusal)| RefusedRecipient {
                recipient,
                reason: refusal.text,
            };
            let mut refused: Vec<RefusedRecipient> = refused.into_iter().map(refusal).collect();
            let mut ids = Vec::new();
            for (recipient, outcome) in addresses.into_iter().zip(received.emails) {
                match outcome {
                    Ok(id) => ids.push(id),
                    Err(refusal) => refused.push(RefusedRecipient { recipient, reason: refusal.text }),
                }
            }
            Ok(error::json_of(StatusCode::OK, &HookResponse { ids, refused }))
        }
        Err(refusal) if refusal.code < 500 => Err(unavailable()),
        Err(Refusal { text, .. }) => Err(Error::invalid("", text)),
    }
}

fn unavailable() -> Error {
    Error::new(ErrorKind::StorageUnavailable).with_retry_after(5)
}

/// The envelope's sender and recipients, from headers.
struct Envelope {
    from: Option<String>,
    to: Vec<String>,
    client: Option<Client>,
}

impl Envelope {
    fn read(headers: &HeaderMap) -> Result<Self> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        let to: Vec<String> = headers
            .get_all("x-envelope-to")
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|list| list.split(','))
            .map(|address| address.trim().to_owned())
            .filter(|address| !address.is_empty())
            .collect();
        if to.is_empty() || to.len() > MAX_RECIPIENTS {
            return Err(Error::invalid("X-Envelope-To", "name 1 to 100 recipients"));
        }
        let client = text("x-client-address").and_then(|address| address.parse::<IpAddr>().ok());
        Ok(Self {
            from: text("x-envelope-from").filter(|from| !from.is_empty()).map(ToOwned::to_owned),
            to,
            client: client.map(|address| Client {
                address,
                helo: text("x-client-helo").unwrap_or_default().to_owned(),
            }),
        })
    }
}

/// 401 unless the request is signed with our secret, and recently. Returns the signature, which identifies the
/// request.
fn check_signature(app: &App, headers: &HeaderMap, secret: &[u8], raw: &[u8]) -> Result<String> {
    let wrong = || {
        let fix = "Sign the request with the server's inbound.http_secret, and check the clock: /docs#receiveRawMail.";
        Error::new(ErrorKind::Unauthorized).with_fix(fix)
    };
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let time = text("x-signature-time").ok_or_else(wrong)?;
    let seconds: i64 = time.parse().map_err(|_| wrong())?;
    let now = app.now().as_micros() / 1_000_000;
    if now.abs_diff(seconds) > TOLERANCE_SECONDS {
        return Err(wrong());
    }
    let given = text("x-signature")
        .and_then(|value| value.strip_prefix("sha256="))
        .and_then(|digits| HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok())
        .ok_or_else(wrong)?;
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).map_err(Error::internal)?;
    mac.update(time.as_bytes());
    mac.update(b"\n");
    // The envelope is signed too, so that a message cannot be redirected or get another origin. No header can hold
    // a line feed, so nothing can move from one line to the next.
    for name in SIGNED {
        for (index, value) in headers.get_all(name).iter().enumerate() {
            mac.update(if index == 0 { b"" } else { b"," });
            mac.update(value.as_bytes());
        }
        mac.update(b"\n");
    }
    mac.update(raw);
    mac.verify_slice(&given).map_err(|_| wrong())?;
    // Encoded again from its bytes: the same signature in upper case is the same request.
    Ok(format!("hook {}", HEXLOWER.encode(&given)))
}
