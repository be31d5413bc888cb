//! Reading a request's body: bounded in size and in time.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, header},
};
use http_body_util::BodyExt;
use operations::{Error, ErrorKind, Result};
use tokio::time::Instant;

/// The media type of nearly every body.
pub(crate) const JSON: &str = "application/json";
/// The largest JSON body.
pub(crate) const MAX_BODY_BYTES: u64 = 64 * 1024 * 1024;
/// The largest body of a request with an idempotency key.
pub(crate) const MAX_IDEMPOTENT_BODY_BYTES: u64 = 50 * 1024 * 1024;
/// Time allowed for any body; after that it must arrive at [`MIN_BYTES_PER_SECOND`].
const SMALL_BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes per second.
const MIN_BYTES_PER_SECOND: u64 = 500;

/// The limit for a body, and the error for a larger one.
#[derive(Clone, Copy)]
pub(crate) struct BodyLimit {
    pub(crate) max: u64,
    pub(crate) refusal: ErrorKind,
}

/// Reads a whole body. A declared length over the limit is refused before anything is read.
pub(crate) async fn read(headers: &HeaderMap, body: Body, limit: BodyLimit) -> Result<Bytes> {
    let too_large = || Error::new(limit.refusal);
    let declared =
        headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > limit.max) {
        return Err(too_large());
    }
    let started = Instant::now();
    let mut body = body;
    let mut collected = Vec::new();
    loop {
        let allowed = SMALL_BODY_TIMEOUT + Duration::from_secs(collected.len() as u64 / MIN_BYTES_PER_SECOND);
        let frame = tokio::time::timeout_at(started + allowed, body.frame()).await.map_err(|_| too_slow())?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|_| Error::invalid("", "the body ended early or is malformed"))?;
        if let Ok(data) = frame.into_data() {
            if (collected.len() + data.len()) as u64 > limit.max {
                return Err(too_large());
            }
            if collected.is_empty() {
                collected
                    .reserve(usize::try_from(declared.unwrap_or_default().min(1 << 20)).unwrap_or_default());
            }
            collected.extend_from_slice(&data);
        }
    }
    Ok(Bytes::from(collected))
}

/// Refuses a compressed body.
pub(crate) fn refuse_encoding(headers: &HeaderMap) -> Result<()> {
    let plain = |encoding: &HeaderValue| encoding.as_bytes().eq_ignore_ascii_case(b"identity");
    if headers.get_all(header::CONTENT_ENCODING).iter().all(plain) {
        return Ok(());
    }
    let fix = "Send the body without a content encoding.";
    Err(Error::new(ErrorKind::UnsupportedMediaType).with_fix(fix))
}

/// The declared media type of a body, in lower case and without parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Refuses a body of any other media type.
pub(crate) fn require_type(headers: &HeaderMap, types: &[&str]) -> Result<()> {
    if types.contains(&media_type(headers).as_str()) {
        return Ok(());
    }
    let fix = match types {
        [JSON] => "Send JSON with Content-Type: application/json.".to_owned(),
        types => format!("Send the body with Content-Type: {}.", types.join(" or ")),
    };
    Err(Error::new(ErrorKind::UnsupportedMediaType).with_fix(fix))
}

fn too_slow() -> Error {
    Error::invalid("", "the body came too slowly")
}
