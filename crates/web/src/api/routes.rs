//! The routes of the API: every endpoint behind the pipeline.

use std::sync::Arc;

use axum::extract::Request;

use super::endpoints;
use crate::{
    State, pipeline,
    route_table::{RouteTable, add_route},
};

/// The endpoints grouped by path.
pub(crate) fn routes(state: &State) -> RouteTable {
    let mut routes = Vec::new();
    for endpoint in endpoints() {
        let (path, filter) = (endpoint.path, endpoint.filter());
        let (endpoint, state) = (Arc::new(endpoint), state.clone());
        let serve = move |request: Request| pipeline::serve(state, endpoint, request);
        add_route(&mut routes, path, |methods| methods.on(filter, serve));
    }
    routes
}
