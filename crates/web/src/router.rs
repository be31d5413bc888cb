//! The whole service over HTTP: the routes of all doors, under common layers.

use std::sync::Arc;

use axum::Router;
use operations::App;
use tower_http::{
    catch_panic::CatchPanicLayer,
    compression::{
        CompressionLayer,
        predicate::{NotForContentType, Predicate as _, SizeAbove},
    },
};

use crate::{
    agent, api, console, cors,
    door::{Door, DoorContext},
    error, inbound,
    limits::{AddressLimiter, Limiter},
    options::Options,
    public, request,
    state::{Shared, State},
    telegram,
};

/// The shared state, and the doors from other crates.
fn shared(app: App, options: Options) -> (State, Vec<Door>) {
    let Options { metrics, cors_origins, proxies, console, doors, continue_trace } = options;
    let settings = app.settings();
    let shared = Shared {
        anonymous: Arc::new(AddressLimiter::new(settings.anonymous_rpm)),
        pages: AddressLimiter::new(console.pages_per_minute),
        doors: AddressLimiter::new(settings.anonymous_rpm),
        wallets: Limiter::new(settings.payments.wallet_rpm),
        app,
        metrics,
        cors_origins,
        proxies,
        console,
        continue_trace,
    };
    (Arc::new(shared), doors)
}

/// The whole service over HTTP.
pub fn router(app: App, options: Options) -> Router {
    let (state, doors) = shared(app, options);
    let origins = cors::Origins::new(&state.cors_origins);
    let mut router = Router::new();
    for (path, methods) in api::routes(&state).into_iter().chain(agent::routes(&state)) {
        router = router.route(path, methods);
    }
    let finish = axum::middleware::from_fn_with_state(state.clone(), request::finish);
    let routes = router
        .merge(console::routes(&state))
        .merge(public::routes(&state))
        .merge(inbound::routes())
        .merge(telegram::routes())
        .with_state(state.clone());
    let context = DoorContext::new(state);
    doors
        .iter()
        .fold(routes, |routes, door| routes.merge(door(&context)))
        .fallback(error::unknown_route)
        .method_not_allowed_fallback(error::wrong_method)
        // In one call, since each adds a box to every route. The first is the outermost, so that every response has
        // its request id.
        .layer((
            finish,
            axum::middleware::from_fn_with_state(origins, cors::allow),
            // Not for event streams: compression would buffer them.
            CompressionLayer::new().compress_when(SizeAbove::new(1024).and(NotForContentType::SSE)),
            CatchPanicLayer::custom(error::panicked),
        ))
}
