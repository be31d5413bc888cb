//! What every request and response has: an id, a client address, privacy headers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::{
    extract::{ConnectInfo, MatchedPath, Request, State as Extracted},
    http::{Extensions, HeaderMap, HeaderName, HeaderValue, Uri, header, request::Parts},
    middleware::Next,
    response::Response,
};
use operations::{App, Credential, Error, ErrorKind, RequestInfo, Result};
use tracing::{Instrument, field::Empty};

use crate::State;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of a request, as in the logs and in `X-Request-Id`.
#[derive(Clone)]
pub(crate) struct RequestId(pub(crate) String);

/// The client's address: the connected peer, or the one that a trusted proxy names.
#[derive(Clone, Copy)]
pub(crate) struct ClientAddress(IpAddr);

/// Gives every request an id and its client's address, and every response the common headers.
pub(crate) async fn finish(Extracted(state): Extracted<State>, mut request: Request, next: Next) -> Response {
    let id = given_id(request.headers()).unwrap_or_else(|| new_log_id("req"));
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    let peer = peer.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let client = state.proxies.client(request.headers(), peer);
    request.extensions_mut().insert(RequestId(id.clone()));
    request.extensions_mut().insert(ClientAddress(client));
    // All log lines of the request carry the id that the response has.
    let span =
        tracing::error_span!("request", id = %id, operation = Empty, workspace = Empty, status = Empty);
    if let Some(continue_trace) = state.continue_trace {
        continue_trace(&span, request.headers());
    }
    let mut response = next.run(request).instrument(span.clone()).await;
    // Logs have no line after this; only an exported trace shows how a call ended.
    if state.continue_trace.is_some() {
        span.record("status", response.status().as_u16());
    }
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, value);
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // The console shows messages in a frame of its own page; everything else must not be framed.
    headers.entry(header::X_FRAME_OPTIONS).or_insert(HeaderValue::from_static("DENY"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    response
}

/// An id from the caller, if it is safe to log.
fn given_id(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(REQUEST_ID)?.to_str().ok()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    ((1..=128).contains(&text.len()) && text.bytes().all(plain)).then(|| text.to_owned())
}

/// An id unique enough to find a request or a session in the logs; nothing else depends on it.
pub fn new_log_id(kind: &str) -> String {
    use std::hash::{BuildHasher, RandomState};
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("{kind}_{:016x}{number:08x}", RandomState::new().hash_one(number))
}

/// The parameters in the path, decoded.
///
/// No id contains a NUL or invalid UTF-8. They become a character that no id has either, so that such an id is not
/// found; PostgreSQL would refuse the NUL.
pub(crate) fn path_parameters(parts: &Parts) -> Vec<(String, String)> {
    let Some(template) = parts.extensions.get::<MatchedPath>() else { return Vec::new() };
    let segments = template.as_str().split('/').zip(parts.uri.path().split('/'));
    let parameter = |(name, value): (&str, &str)| {
        let name = name.strip_prefix('{')?.strip_suffix('}')?;
        let value = percent_encoding::percent_decode_str(value).decode_utf8_lossy();
        Some((name.to_owned(), value.replace('\0', "\u{fffd}")))
    };
    segments.filter_map(parameter).collect()
}

/// Refuses a request whose `Accept` excludes JSON.
pub(crate) fn require_json_answer(headers: &HeaderMap) -> Result<()> {
    if accepts(headers, "application/json") {
        return Ok(());
    }
    Err(Error::new(ErrorKind::NotAcceptable).with_fix("Send Accept: application/json."))
}

/// Whether `Accept` names server-sent events, and not JSON.
pub(crate) fn asks_for_events(headers: &HeaderMap) -> bool {
    let names = |kind: &str| {
        let mut lists = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        lists.any(|list| list.to_ascii_lowercase().contains(kind))
    };
    names("text/event-stream") && !names("application/json") && accepts(headers, "text/event-stream")
}

/// Whether `Accept` allows a media type. The most specific matching range counts.
pub(crate) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let main = kind.split('/').next().unwrap_or_default();
    let fit = |range: &str| {
        let mut pieces = range.split(';').map(|piece| piece.trim().to_ascii_lowercase());
        let narrowness = match pieces.next()?.as_str() {
            "*/*" => 0,
            range if range.strip_suffix("/*") == Some(main) => 1,
            range if range == kind => 2,
            _ => return None,
        };
        let quality = pieces.find_map(|piece| piece.strip_prefix("q=")?.parse::<f32>().ok());
        Some((narrowness, quality.is_none_or(|quality| quality > 0.0)))
    };
    let lists = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut ranges =
        lists.flat_map(|list| list.split(',')).filter(|range| !range.trim().is_empty()).peekable();
    ranges.peek().is_none() || ranges.filter_map(fit).max().is_some_and(|(_, wanted)| wanted)
}

/// The client's address, as determined when the request arrived.
pub(crate) fn client_address(request: &Request) -> IpAddr {
    let found = request.extensions().get::<ClientAddress>();
    found.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |client| client.0)
}

/// What the logs and the audit log know of a request.
pub(crate) fn request_info(extensions: &Extensions, uri: &Uri) -> RequestInfo {
    RequestInfo {
        id: extensions.get::<RequestId>().map(|id| id.0.clone()).unwrap_or_default(),
        subject: uri.path().to_owned(),
        address: extensions.get::<ClientAddress>().map(|client| client.0),
    }
}

/// A header that was sent several times with different values.
pub struct Ambiguous;

/// The value of a header that may occur once.
///
/// A proxy in front may have read the first of two, or the last; we do not guess.
pub fn only_value<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a HeaderValue>, Ambiguous> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.all(|value| Some(value) == first) { Ok(first) } else { Err(Ambiguous) }
}

/// The name of the session cookie: with the `__Host-` prefix wherever browsers accept it.
pub(crate) fn cookie_name(app: &App) -> &'static str {
    if is_secure(app) { "__Host-agent_mailbox" } else { "agent_mailbox" }
}

/// The name of the cookie that marks a browser as known to an account.
pub(crate) fn device_cookie_name(app: &App) -> &'static str {
    if is_secure(app) { "__Host-agent_mailbox_device" } else { "agent_mailbox_device" }
}

/// Whether the service is reached over TLS.
pub(crate) fn is_secure(app: &App) -> bool {
    app.settings().public_url.starts_with("https://")
}

/// The caller's credential. An API key takes precedence over a cookie.
pub(crate) fn credential(app: &App, headers: &HeaderMap) -> Result<Credential> {
    let unknown = || Error::new(ErrorKind::Unauthorized);
    if let Some(key) = only_value(headers, "x-api-key").map_err(|_| unknown())? {
        let key = key.to_str().map_err(|_| unknown())?;
        return Ok(Credential::ApiKey(key.to_owned()));
    }
    match cookie(headers, cookie_name(app)) {
        Some(secret) => Ok(Credential::Session(secret.to_owned())),
        None => Err(unknown()),
    }
}

/// The value of a cookie.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
}

/// Refuses a cross-site form post. Browsers always send the origin of a request that changes something, so one
/// without it is refused too.
pub(crate) fn require_own_site(app: &App, headers: &HeaderMap) -> Result<()> {
    if !headers.contains_key("sec-fetch-site") && !headers.contains_key(header::ORIGIN) {
        return Err(Error::new(ErrorKind::CrossSiteRequest));
    }
    refuse_cross_site(app, headers)
}

/// Refuses a cross-site request.
///
/// Browsers send the origin of a request; other programs do not, and have no cookies except their own.
pub(crate) fn refuse_cross_site(app: &App, headers: &HeaderMap) -> Result<()> {
    let refused = || Err(Error::new(ErrorKind::CrossSiteRequest));
    if let Some(site) = headers.get("sec-fetch-site") {
        return if matches!(site.as_bytes(), b"same-origin" | b"none") { Ok(()) } else { refused() };
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    // A proxy in front may send another host than the browser sees.
    if origin.eq_ignore_ascii_case(&app.settings().public_url) {
        return Ok(());
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    match origin.split_once("://") {
        Some((_, authority)) if !host.is_empty() && authority.eq_ignore_ascii_case(host) => Ok(()),
        _ => refused(),
    }
}
