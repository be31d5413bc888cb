//! The plans that include an operation, for an OpenAPI document.

use model::Plan;

/// The names of a plan and those above it.
pub(crate) fn plans_from(lowest: Plan) -> Vec<&'static str> {
    Plan::ALL.into_iter().filter(|plan| *plan >= lowest).map(Plan::display_name).collect()
}
