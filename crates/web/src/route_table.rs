//! Routes grouped by path, since axum takes one router per path with all its methods.

use axum::routing::MethodRouter;

use crate::State;

/// Paths, each with the router of its methods.
pub(crate) type RouteTable = Vec<(&'static str, MethodRouter<State>)>;

/// Adds a method to the router of its path.
pub(crate) fn add_route(
    routes: &mut RouteTable,
    path: &'static str,
    add: impl FnOnce(MethodRouter<State>) -> MethodRouter<State>,
) {
    let present = routes.iter().position(|(other, _)| *other == path);
    let methods = present.map(|index| routes.swap_remove(index).1).unwrap_or_default();
    routes.push((path, add(methods)));
}
