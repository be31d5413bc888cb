//! `/mcp`: authenticates the caller, reads the message within limits, passes it to the SDK, and converts the SDK's
//! refusals into API errors. It also serves the server card.

use std::{borrow::Cow, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    response::{IntoResponse, Response},
    routing::{any, get},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use operations::{Error, ErrorKind, Result};
use rmcp::transport::{
    StreamableHttpServerConfig, StreamableHttpService,
    streamable_http_server::session::never::NeverSessionManager,
};
use serde::Deserialize;
use web::DoorContext;

use crate::{card, guest::Guest, handler::Handler, profile::Profile, tools};

/// Maximum bytes repeated of the SDK's refusal.
const MAX_REFUSAL_BYTES: usize = 4096;

type Service = StreamableHttpService<Handler, NeverSessionManager>;

struct Door {
    context: DoorContext,
    /// Responds with one JSON message where no notifications are needed.
    plain: Service,
    /// Responds with a stream, so that proxies do not take a long wait for a dead connection.
    streaming: Service,
}

/// The routes of this door.
pub fn door(context: &DoorContext) -> Router {
    let door = Arc::new(Door {
        context: context.clone(),
        plain: service(context, true),
        streaming: service(context, false),
    });
    let card = context.clone();
    Router::new()
        .route(
            "/mcp",
            any(move |request: Request| {
                let door = door.clone();
                async move { door.serve(request).await.unwrap_or_else(|refused| web::refuse(&refused)) }
            }),
        )
        .route(
            "/.well-known/mcp/server-card.json",
            get(move |request: Request| std::future::ready(show_card(&card, &request))),
        )
}

fn service(context: &DoorContext, json: bool) -> Service {
    let (handler, url) = (Handler(context.clone()), &context.app().settings().public_url);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(json)
        .with_allowed_hosts(hosts(url))
        .with_allowed_origins(origins(url, context.origins()))
        .enforce_origin_validation()
        // The door has read the body already, within its own limits.
        .with_max_request_body_bytes(usize::MAX);
    StreamableHttpService::new(move || Ok(handler.clone()), Arc::new(NeverSessionManager::default()), config)
}

/// The host names of this server: its own and those of its machine. A page of another site that points its own name
/// at us (DNS rebinding) sends that name.
fn hosts(url: &str) -> Vec<String> {
    let own = url::Url::parse(url).ok().and_then(|url| url.host_str().map(ToOwned::to_owned));
    own.into_iter().chain(["localhost", "127.0.0.1", "::1"].map(ToOwned::to_owned)).collect()
}

/// The allowed origins: our own, and those in the configuration.
fn origins(url: &str, others: &[String]) -> Vec<String> {
    let all = std::iter::once(url).chain(others.iter().map(String::as_str));
    let with_port = |origin: &str| {
        let origin = url::Url::parse(origin).ok()?;
        Some(format!("{}://{}:{}", origin.scheme(), origin.host_str()?, origin.port_or_known_default()?))
    };
    all.filter_map(with_port).collect()
}

fn show_card(context: &DoorContext, request: &Request) -> Response {
    if let Err(refused) = context.count(context.address(request)) {
        return web::refuse(&refused);
    }
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (kind, card::card(context).to_string()).into_response()
}

/// The fields of a message that the door needs.
#[derive(Deserialize)]
struct MessageHead<'a> {
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<MessageParams<'a>>,
}

#[derive(Deserialize)]
struct MessageParams<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
}

impl Door {
    async fn serve(&self, request: Request) -> Result<Response> {
        let address = self.context.address(&request);
        let (mut parts, body) = request.into_parts();
        let key = credential(&parts.headers);
        let caller = self.context.identify(address, key).await?;
        let profile = Profile::from_query(parts.uri.query().unwrap_or_default())?;
        if parts.method != Method::POST {
            return Ok(only_post());
        }
        let body = self.context.read_json(&parts.headers, body).await?;
        let Ok(head) = serde_json::from_slice::<MessageHead<'_>>(&body) else {
            return Err(Error::invalid("", "expected one JSON-RPC message"));
        };
        let name = head.params.and_then(|params| params.name).unwrap_or_default();
        let tool = (head.method == "tools/call").then(|| profile.tools().find(&name)).flatten();
        if tool.is_none() {
            // A tool call is counted as a call of the API; everything else is free, but rate-limited.
            self.context.count(address)?;
        }
        let service = if tool.is_some_and(tools::Tool::waits) { &self.streaming } else { &self.plain };
        parts.extensions.insert(Guest { key: key_text(&parts.headers).into(), caller, profile });
        let declared_json = parts
            .headers
            .get(header::CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        let response = service.handle(Request::from_parts(parts, Body::from(body))).await.map(Body::new);
        Ok(as_api_error(response, declared_json).await)
    }
}

/// The API key in `x-api-key` or as a bearer token. Cookies do not count: another site could make a browser send
/// them.
fn credential(headers: &HeaderMap) -> Option<&str> {
    // Two different keys are refused.
    if let Some(key) = web::only_value(headers, "x-api-key").ok()? {
        return key.to_str().ok();
    }
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn key_text(headers: &HeaderMap) -> String {
    credential(headers).unwrap_or_default().to_owned()
}

fn only_post() -> Response {
    let mut response = web::refuse(&Error::new(ErrorKind::MethodNotAllowed));
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    response
}

/// The SDK refuses in plain text; our errors have one shape everywhere.
async fn as_api_error(response: Response, declared_json: bool) -> Response {
    let status = response.status();
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if status.is_success() || is_json {
        return response;
    }
    let kind = match status {
        // JSON that is not a message.
        StatusCode::UNSUPPORTED_MEDIA_TYPE if declared_json => ErrorKind::ValidationFailed,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ErrorKind::UnsupportedMediaType,
        StatusCode::FORBIDDEN => ErrorKind::CrossSiteRequest,
        StatusCode::NOT_ACCEPTABLE => ErrorKind::NotAcceptable,
        StatusCode::PAYLOAD_TOO_LARGE => ErrorKind::PayloadTooLarge,
        status if status.is_client_error() => ErrorKind::ValidationFailed,
        _ => ErrorKind::Internal,
    };
    let text =
        axum::body::to_bytes(response.into_body(), MAX_REFUSAL_BYTES).await.unwrap_or_else(|_| Bytes::new());
    let refusal_text = String::from_utf8_lossy(&text).into_owned();
    tracing::debug!(%status, error = refusal_text, "message refused");
    let fix = match kind {
        ErrorKind::CrossSiteRequest => {
            "Call the server by its name in http.public_url; a browser's origin must be that or in http.cors_origins."
                .to_owned()
        }
        _ => refusal_text,
    };
    web::refuse(&Error::new(kind).with_fix(fix))
}
