//! What the server decides about the doors.

use crate::{
    console::ConsoleLimits,
    door::Door,
    proxies::Proxies,
    state::{ContinueTrace, RenderMetrics},
};

/// What the server decides about the doors.
#[derive(Clone, Default)]
pub struct Options {
    /// Serves `/metrics` on this listener.
    pub metrics: Option<RenderMetrics>,
    /// Origins that browsers may call the API from.
    pub cors_origins: Vec<String>,
    /// The proxies in front, which tell the client's address.
    pub proxies: Proxies,
    /// How much of the console one may see at a time.
    pub console: ConsoleLimits,
    /// Doors that other crates make.
    pub doors: Vec<Door>,
    /// Lets the span of a request go on with a trace that its headers name.
    pub continue_trace: Option<ContinueTrace>,
}
