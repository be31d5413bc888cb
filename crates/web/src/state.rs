//! What every handler can reach: the service, and what was decided about its doors when they were opened.

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

/// Lets the span of a request go on with a trace that its headers name.
pub(crate) type ContinueTrace = fn(&tracing::Span, &HeaderMap);

/// What every handler can reach.
pub(crate) type State = Arc<Shared>;

/// What is shared by all requests.
pub(crate) struct Shared {
    pub(crate) app: App,
    /// Renders what `/metrics` shows, where it is served.
    pub(crate) metrics: Option<RenderMetrics>,
    /// Origins that browsers may call the API from.
    pub(crate) cors_origins: Vec<String>,
    /// The proxies in front, which tell the client's address.
    pub(crate) proxies: Proxies,
    /// How much of the console one may see at a time.
    pub(crate) console: ConsoleLimits,
    pub(crate) continue_trace: Option<ContinueTrace>,
    pub(crate) anonymous: Arc<AddressLimiter>,
    /// Pages of the console by client address.
    pub(crate) pages: AddressLimiter,
    /// What costs no credits at the doors of other crates, by client address.
    pub(crate) doors: AddressLimiter,
    pub(crate) wallets: Limiter<pay::Address>,
}
