//! The doors over HTTP: the API, the console's JSON routes, public pages. Translates, and decides nothing.
//!
//! An endpoint is a typed handler bound to an operation (`endpoint.rs`); every call to one goes through the same row
//! of stages (`pipeline.rs`); the OpenAPI document is made from the very same list (`openapi.rs`).

mod agent;
mod api;
mod assistant;
mod body;
mod console;
mod cors;
mod docs;
mod door;
mod embedder;
mod endpoint;
mod error;
mod facilitator;
mod faults;
mod inbound;
mod input;
mod limits;
mod openapi;
mod openapi_public;
mod outgoing;
mod pipeline;
mod proxies;
mod public;
mod query;
mod reply;
mod request;
mod telegram;

use std::sync::Arc;

use axum::{Router, routing::MethodRouter};
use operations::App;
use tower_http::{
    catch_panic::CatchPanicLayer,
    compression::{
        CompressionLayer,
        predicate::{NotForContentType, Predicate as _, SizeAbove},
    },
};

pub use agent::{agent_document, agent_endpoints};
pub use assistant::{AssistantSettings, HttpAssistant};
pub use console::ConsoleLimits;
pub use door::{Door, Inside, refuse};
pub use embedder::{EmbedderSettings, HttpEmbedder};
pub use endpoint::Endpoint;
pub use facilitator::HttpFacilitator;
pub use openapi::document;
pub use outgoing::OutgoingHttp;
pub use proxies::{Network, Proxies};
pub use request::{Ambiguous, new_log_id, only_value};
pub use telegram::HttpBot;

/// Renders the metrics as text.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

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
    pub continue_trace: Option<fn(&tracing::Span, &axum::http::HeaderMap)>,
}

/// What every handler can reach.
type State = Arc<Shared>;

struct Shared {
    app: App,
    options: Options,
    anonymous: Arc<limits::AddressLimiter>,
    /// Pages of the console by client address.
    pages: limits::AddressLimiter,
    /// What costs no credits at the doors of other crates, by client address.
    doors: limits::AddressLimiter,
    wallets: limits::Limiter<pay::Address>,
}

/// All endpoints of the API, in the order of the documentation.
pub fn endpoints() -> Vec<Endpoint> {
    api::endpoints()
}

/// The OpenAPI document as it is checked in: indented, with a newline at the end.
pub fn openapi_json() -> String {
    pretty(&document())
}

/// The document of the keyless interface as it is checked in.
pub fn agent_openapi_json() -> String {
    pretty(&agent_document())
}

fn pretty(document: &serde_json::Value) -> String {
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}

/// The whole service over HTTP.
pub fn router(app: App, options: Options) -> Router {
    let anonymous = Arc::new(limits::AddressLimiter::new(app.settings().anonymous_rpm));
    let origins = cors::Origins::new(&options.cors_origins);
    let pages = limits::AddressLimiter::new(options.console.pages_per_minute);
    let doors = limits::AddressLimiter::new(app.settings().anonymous_rpm);
    let wallets = limits::Limiter::new(app.settings().payments.wallet_rpm);
    let state = Arc::new(Shared { app, options, anonymous, pages, doors, wallets });
    let mut router = Router::new();
    for (path, methods) in api_routes(&state).into_iter().chain(agent::routes(&state)) {
        router = router.route(path, methods);
    }
    let finish = axum::middleware::from_fn_with_state(state.clone(), request::finish);
    let routes = router
        .merge(console::routes(&state))
        .merge(public::routes(&state))
        .merge(inbound::routes())
        .merge(telegram::routes())
        .with_state(state.clone());
    let inside = Inside::new(state.clone());
    let doors = state.options.doors.iter();
    doors
        .fold(routes, |routes, door| routes.merge(door(&inside)))
        .fallback(error::unknown_route)
        .method_not_allowed_fallback(error::wrong_method)
        // In one call, since each adds a box to every route. The first is outside of everything else, so that no
        // answer goes without its request id.
        .layer((
            finish,
            axum::middleware::from_fn_with_state(origins, cors::allow),
            // Not for streams of events: packing would gather them instead of passing them on.
            CompressionLayer::new().compress_when(SizeAbove::new(1024).and(NotForContentType::SSE)),
            CatchPanicLayer::custom(error::panicked),
        ))
}

/// The endpoints grouped by path, since a path takes one router with all its methods.
fn api_routes(state: &State) -> Vec<(&'static str, MethodRouter<State>)> {
    let mut routes = Vec::new();
    for endpoint in endpoints() {
        let (path, filter) = (endpoint.path, endpoint.filter());
        let (endpoint, state) = (Arc::new(endpoint), state.clone());
        let serve = move |request: axum::extract::Request| pipeline::serve(state, endpoint, request);
        add_route(&mut routes, path, |methods| methods.on(filter, serve));
    }
    routes
}

/// Adds a method to the router of its path.
fn add_route(
    routes: &mut Vec<(&'static str, MethodRouter<State>)>,
    path: &'static str,
    add: impl FnOnce(MethodRouter<State>) -> MethodRouter<State>,
) {
    let present = routes.iter().position(|(other, _)| *other == path);
    let methods = present.map(|index| routes.swap_remove(index).1).unwrap_or_default();
    routes.push((path, add(methods)));
}
