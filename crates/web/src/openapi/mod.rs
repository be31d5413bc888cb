//! OpenAPI documents, made from the lists of endpoints that the routers are made from.
//!
//! `document.rs` is the document of the API; the other files are what the document of the keyless interface
//! (`agent/openapi.rs`) is made with too.

mod document;
mod inputs;
mod plans;
mod public_paths;
mod responses;
mod schemas;

pub use self::document::{document, openapi_json};
pub(crate) use self::{
    document::pretty,
    inputs::inputs,
    responses::{by_status, error_response, responses},
    schemas::{generator, merged},
};
