//! Routes without a credential: status, configuration, health, discovery, the affiliate link.

use axum::{
    Router,
    extract::{RawQuery, Request, State as Extracted},
    http::{HeaderValue, StatusCode, header},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::get,
};
use operations::{Error, ErrorKind, affiliate};

use super::{
    answers::{Features, PublicConfig, SignUpMode, Status, TrackQuery},
    readiness::Readiness,
};
use crate::{
    State, docs, error, input,
    openapi::openapi_json,
    query::from_query,
    request::{accepts, client_address, require_json_answer},
};

/// The cookie that remembers which affiliate link a visitor followed.
pub(crate) const AFFILIATE_COOKIE: &str = "affiliate";

pub(crate) fn routes(state: &State) -> Router<State> {
    // The others are reached by links, to which many programs add parameters.
    let strict = Router::new()
        .route("/api/status", get(status))
        .route("/api/v1/config", get(config))
        .route_layer(from_fn(refuse_query));
    let limited = strict
        .route("/", get(welcome))
        .route("/api/affiliate/track", get(track))
        .route("/openapi.json", get(openapi))
        .route("/docs", get(documentation))
        .route("/llms.txt", get(llms))
        .route(docs::ICON_PATH, get(icon))
        .route("/.well-known/api-catalog", get(api_catalog))
        .layer(from_fn(acceptable))
        .layer(from_fn_with_state(state.clone(), limit));
    // Probes are frequent and come from one address.
    limited.route("/healthz", get(healthz)).route("/readyz", get(readyz)).route("/metrics", get(metrics))
}

/// Public requests are rate-limited by client address.
pub(crate) async fn limit(Extracted(state): Extracted<State>, request: Request, next: Next) -> Response {
    let address = client_address(&request);
    match state.anonymous.count(address, state.app.now()) {
        Ok(()) => next.run(request).await,
        Err(refused) => error::response(&refused),
    }
}

/// 406 if the client does not accept the route's media type. None of these routes changes anything.
async fn acceptable(request: Request, next: Next) -> Response {
    let headers = request.headers().clone();
    let response = next.run(request).await;
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    if !response.status().is_success() || accepts(&headers, kind) {
        return response;
    }
    let fix = format!("Send Accept: {kind}.");
    error::response(&Error::new(ErrorKind::NotAcceptable).with_fix(fix))
}

/// 406 and 400, in the usual order, for routes without parameters.
async fn refuse_query(request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default();
    match require_json_answer(request.headers()).and_then(|()| input::refuse_query(query)) {
        Ok(()) => next.run(request).await,
        Err(refused) => error::response(&refused),
    }
}

/// The icon, for a day: it has no hash in its name.
async fn icon() -> Response {
    let headers = [(header::CONTENT_TYPE, "image/svg+xml"), (header::CACHE_CONTROL, "max-age=86400")];
    (headers, docs::ICON).into_response()
}

async fn status(Extracted(state): Extracted<State>) -> Response {
    match state.app.ping().await {
        Ok(()) => error::json_of(StatusCode::OK, &Status { ok: true, version: env!("CARGO_PKG_VERSION") }),
        Err(refused) => error::response(&refused),
    }
}

async fn config(Extracted(state): Extracted<State>) -> Response {
    let settings = state.app.settings();
    let config = PublicConfig {
        domains: settings.hosted_domains.clone(),
        sign_up: if settings.sign_up.open { SignUpMode::Open } else { SignUpMode::Invite },
        features: Features {
            receiving: settings.receives_mail,
            outbound: settings.outbound.mode.as_str().to_owned(),
            ai: operations::assistant::is_configured(&state.app),
        },
    };
    error::json_of(StatusCode::OK, &config)
}

/// Counts a click and redirects to the sign-up, also for an unknown code.
async fn track(Extracted(state): Extracted<State>, RawQuery(query): RawQuery) -> Response {
    let query = from_query(&query.unwrap_or_default()).unwrap_or(TrackQuery { code: String::new() });
    let known = query.code.len() <= 40 && affiliate::track(&state.app, &query.code).await.unwrap_or(false);
    let mut response = StatusCode::FOUND.into_response();
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/sign-up"));
    let cookie =
        format!("{AFFILIATE_COOKIE}={}; Path=/; HttpOnly; SameSite=Lax; Max-Age=2592000", query.code);
    if let (true, Ok(value)) = (known, HeaderValue::from_str(&cookie)) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}

/// The whole document, or the part of the tag that is asked for.
async fn openapi(RawQuery(query): RawQuery) -> Response {
    static DOCUMENT: std::sync::LazyLock<String> = std::sync::LazyLock::new(openapi_json);
    let query = query.unwrap_or_default();
    let Some((_, tag)) = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "tag") else {
        return page("application/json", &DOCUMENT);
    };
    let Some(part) = docs::find_part(&tag) else {
        let tags: Vec<&str> = docs::parts().iter().map(|part| part.tag.as_str()).collect();
        let fix = format!("Use one of: {}.", tags.join(", "));
        return error::response(&Error::invalid("tag", "there is no such tag").with_fix(fix));
    };
    page("application/json", &part.json)
}

async fn documentation(Extracted(state): Extracted<State>) -> Response {
    let text = docs::page(&state.app.settings().public_url, state.app.now());
    let mut response = page("text/html; charset=utf-8", &text);
    let policy = docs::content_security_policy();
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

async fn welcome(Extracted(state): Extracted<State>) -> Response {
    let mut response = page("text/html; charset=utf-8", &docs::welcome(&state.app.settings().public_url));
    let policy = docs::content_security_policy();
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

async fn llms(Extracted(state): Extracted<State>) -> Response {
    page("text/plain; charset=utf-8", &docs::llms(&state.app.settings().public_url, state.app.now()))
}

/// The linkset of RFC 9727.
async fn api_catalog(Extracted(state): Extracted<State>) -> Response {
    let url = &state.app.settings().public_url;
    let catalog = serde_json::json!({ "linkset": [{
        "anchor": format!("{url}/api/v1"),
        "service-desc": [{ "href": format!("{url}/openapi.json"), "type": "application/json" }],
        "service-doc": [
            { "href": format!("{url}/docs"), "type": "text/html" },
            { "href": format!("{url}/llms.txt"), "type": "text/plain" },
        ],
        "status": [{ "href": format!("{url}/api/status"), "type": "application/json" }],
    }, {
        "anchor": format!("{url}/api/agent/v1"),
        "service-desc": [{ "href": format!("{url}/api/agent/v1/openapi.json"), "type": "application/json" }],
    }] });
    page("application/linkset+json", &catalog.to_string())
}

/// Liveness: the process responds.
async fn healthz() -> Response {
    page("text/plain; charset=utf-8", "ok\n")
}

/// Readiness: the stores respond, and accept writes. Restarting workers are listed, but do not fail the check:
/// calls are served without them.
async fn readyz(Extracted(state): Extracted<State>) -> Response {
    let app = &state.app;
    match app.require_ready().await {
        Ok(()) => {
            error::json_of(StatusCode::OK, &Readiness::of(app.supervisor().statuses(), app.clock_fault()))
        }
        Err(refused) => error::response(&refused),
    }
}

async fn metrics(Extracted(state): Extracted<State>) -> Response {
    match &state.metrics {
        Some(render) => page("text/plain; version=0.0.4; charset=utf-8", &render()),
        None => error::unknown_route().await,
    }
}

fn page(kind: &'static str, text: &str) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], text.to_owned()).into_response()
}
