//! The test kit: a whole service in the test's own process, on either engine, with a clock that the test sets.
//!
//! Callers are values ([`Server::key`], [`Server::anonymous`], …); requests go through the router without a port,
//! and every response is checked against the OpenAPI document.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test kit fails by panicking, which is what a test wants"
)]

mod answer;
mod bot;
mod caller;
mod clock;
mod contract;
mod engine;
mod entropy;
mod hop;
mod logs;
mod mcp;
mod model;
mod model_endpoint;
mod options;
mod postgres;
mod receiver;
mod relay;
mod server;
mod stage;
mod stream;
mod template;
mod test_store;
mod wallet;

pub use self::mcp::Mcp;
pub use self::model::ScriptedModel;
pub use self::model_endpoint::{ModelAnswer, ModelEndpoint};
pub use answer::{Answer, error_text, error_text_with};
pub use bot::BotServer;
pub use caller::{Caller, EventStream};
pub use clock::Clock;
pub use engine::Engine;
pub use hop::Hop;
pub use logs::Logs;
pub use mail::dns::name_server::NameServer;
pub use options::ServerOptions;
pub use receiver::{ReceivedRequest, Receiver, Reply};
pub use relay::{Cut, Relay};
pub use server::{PASSWORD, Server, Tenant, operator};
pub use stage::Stage;
pub use stream::{stalled, streamed};
pub use testkit_macros::both_engines;
pub use wallet::{Payer, ProofProtocol, terms_of};
