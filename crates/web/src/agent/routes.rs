//! The routes of the keyless interface: every endpoint behind the gate, and the document that describes them.

use std::sync::Arc;

use axum::{extract::Request, middleware::from_fn_with_state, routing::get};

use super::{endpoints::agent_endpoints, gate, gated::GatedEndpoint, openapi};
use crate::{
    State, public,
    route_table::{RouteTable, add_route},
};

/// The routes of the keyless interface.
pub(crate) fn routes(state: &State) -> RouteTable {
    let mut routes = Vec::new();
    for endpoint in agent_endpoints() {
        let (path, filter) = (endpoint.path, endpoint.filter());
        let (gated, state) = (Arc::new(GatedEndpoint::new(state, endpoint)), state.clone());
        let serve = move |request: Request| gate::serve(state, gated, request);
        add_route(&mut routes, path, |methods| methods.on(filter, serve));
    }
    let document = get(openapi::serve).layer(from_fn_with_state(state.clone(), public::limit));
    routes.push(("/api/agent/v1/openapi.json", document));
    routes
}
