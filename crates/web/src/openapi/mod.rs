//! OpenAPI documents, generated from the same lists of endpoints as the routers.
//!
//! `document.rs` is the API's document; the other files are shared with the keyless interface's
//! (`agent/openapi.rs`).

mod document;
mod examples;
mod inputs;
mod plans;
mod public_paths;
mod responses;
mod schemas;

pub use self::document::{document, openapi_json};
pub(crate) use self::{
    document::pretty,
    examples::{FUTURE, PAST},
    inputs::inputs,
    responses::{by_status, error_response, responses},
    schemas::{generator, merged},
};
