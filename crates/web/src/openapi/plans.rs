//! Who may call, as an OpenAPI document tells it: the plans that include an operation.

use model::Plan;

/// The names of the plans that include what a plan has.
pub(crate) fn plans_from(least: Plan) -> Vec<&'static str> {
    Plan::ALL.into_iter().filter(|plan| *plan >= least).map(Plan::display_name).collect()
}
