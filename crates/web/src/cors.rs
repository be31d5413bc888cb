//! CORS: which origins may call the API; none, unless the configuration names them.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

/// The headers that payment clients read in a browser.
const EXPOSED: &str =
    "payment-required, payment-response, x-payment-response, www-authenticate, payment-receipt, retry-after";

/// The origins that may call from a browser.
#[derive(Clone)]
pub(crate) struct Origins(Arc<[HeaderValue]>);

impl Origins {
    pub(crate) fn new(origins: &[String]) -> Self {
        Self(origins.iter().filter_map(|origin| origin.parse().ok()).collect())
    }
}

/// Adds the CORS headers for a configured origin. Other origins get none, and cookies are never allowed.
pub(crate) async fn allow(State(origins): State<Origins>, request: Request, next: Next) -> Response {
    let Some(origin) =
        request.headers().get(header::ORIGIN).filter(|origin| origins.0.contains(origin)).cloned()
    else {
        return next.run(request).await;
    };
    let keyless = request.uri().path() == "/api" || request.uri().path().starts_with("/api/agent/");
    let mut response = match request.headers().get(header::ACCESS_CONTROL_REQUEST_METHOD) {
        Some(method) if request.method() == Method::OPTIONS => preflight(method, request.headers()),
        _ => next.run(request).await,
    };
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    if keyless {
        let exposed = HeaderValue::from_static(EXPOSED);
        response.headers_mut().insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    response.headers_mut().append(header::VARY, HeaderValue::from_static("origin"));
    response
}

/// The response to a preflight request.
fn preflight(method: &HeaderValue, asked: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_METHODS, method.clone());
    if let Some(headers) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_HEADERS, headers.clone());
    }
    response
}
