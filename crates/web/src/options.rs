//! The server's configuration of the HTTP doors.

use crate::{
    console::ConsoleLimits,
    door::Door,
    proxies::Proxies,
    state::{ContinueTrace, RenderMetrics},
};

/// The server's configuration of the HTTP doors.
#[derive(Clone, Default)]
pub struct Options {
    /// Serves `/metrics` on this listener.
    pub metrics: Option<RenderMetrics>,
    /// Origins that may call the API from a browser.
    pub cors_origins: Vec<String>,
    /// The proxies in front, which report the client's address.
    pub proxies: Proxies,
    /// Limits of the console.
    pub console: ConsoleLimits,
    /// Doors from other crates.
    pub doors: Vec<Door>,
    /// Continues the trace that a request's headers name in its span.
    pub continue_trace: Option<ContinueTrace>,
}
