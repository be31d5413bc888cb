//! The HTTP doors: the API, the console, public pages. They translate, and decide nothing.
//!
//! An endpoint is a typed handler bound to an operation (`endpoint.rs`); every call goes through the same stages
//! (`pipeline.rs`); the OpenAPI document is generated from the same list (`openapi/document.rs`).

mod agent;
mod api;
mod body;
mod console;
mod cors;
mod docs;
mod door;
mod endpoint;
mod error;
mod faults;
mod inbound;
mod input;
mod json_body;
mod limits;
mod openapi;
mod options;
mod pipeline;
mod proxies;
mod public;
mod query;
mod reply;
mod request;
mod request_metrics;
mod route_table;
mod router;
mod state;
mod telegram;

pub(crate) use self::state::State;
pub use self::{
    agent::{agent_document, agent_endpoints, agent_openapi_json},
    api::endpoints,
    console::ConsoleLimits,
    docs::example_variable,
    door::{Door, DoorContext, refuse},
    endpoint::Endpoint,
    openapi::{document, openapi_json},
    options::Options,
    proxies::{Network, Proxies},
    request::{Ambiguous, new_log_id, only_value},
    router::router,
    state::RenderMetrics,
};
