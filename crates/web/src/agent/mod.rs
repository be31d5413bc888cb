//! The keyless door: a wallet is the account. The same operations as the API's, behind a gate that takes a payment
//! or a proof of the wallet instead of an API key.
//!
//! `gate.rs` is the order of stages; `proof.rs` reads the credentials of a request, `challenge.rs` writes the 402.

mod audience;
mod challenge;
mod discovery;
mod endpoints;
mod gate;
mod gated;
mod openapi;
mod proof;
mod routes;

pub(crate) use self::routes::routes;
pub use self::{
    endpoints::agent_endpoints,
    openapi::{agent_openapi_json, document as agent_document},
};
