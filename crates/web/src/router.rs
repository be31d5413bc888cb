//! The whole service over HTTP: the routes of all doors, under the layers that every request and answer passes.

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
    door::{Door, Inside},
    error, inbound,
    limits::{AddressLimiter, Limiter},
    options::Options,
    public, request,
    state::{Shared, State},
    telegram,
};

/// What the handlers share, and the doors that other crates make.
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
    let inside = Inside::new(state);
    doors
        .iter()
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
