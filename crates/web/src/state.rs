//! The state that every handler shares: the service, and the options of its doors.

use std::sync::Arc;

use axum::http::HeaderMap;
use operations::App;

use crate::{
    console::ConsoleLimits,
    limits::{AddressLimiter, Limiter},
    proxies::Proxies,
};

/// Renders the metrics as text.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// Continues the trace that a request's headers name in its span.
pub(crate) type ContinueTrace = fn(&tracing::Span, &HeaderMap);

/// The state that every handler shares.
pub(crate) type State = Arc<Shared>;

/// What is shared by all requests.
pub(crate) struct Shared {
    pub(crate) app: App,
    /// Renders `/metrics`, where it is served.
    pub(crate) metrics: Option<RenderMetrics>,
    /// Origins that may call the API from a browser.
    pub(crate) cors_origins: Vec<String>,
    /// The proxies in front, which report the client's address.
    pub(crate) proxies: Proxies,
    /// Limits of the console.
    pub(crate) console: ConsoleLimits,
    pub(crate) continue_trace: Option<ContinueTrace>,
    pub(crate) anonymous: Arc<AddressLimiter>,
    /// Console pages by client address.
    pub(crate) pages: AddressLimiter,
    /// Free requests at the doors of other crates, by client address.
    pub(crate) doors: AddressLimiter,
    pub(crate) wallets: Limiter<pay::Address>,
}
