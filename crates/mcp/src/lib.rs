//! The door for agents: the operations of the API as tools of the Model Context Protocol, at `/mcp`.
//!
//! The protocol itself is the official SDK's, without sessions: every request stands alone, so any node can serve
//! it. A tool call becomes an API call in process, so its permissions, price and result are the API's.

mod answer;
mod budget;
mod call;
mod card;
mod door;
mod guest;
mod handler;
mod meant;
mod profile;
mod request;
mod schema;
mod texts;
mod tools;

pub use door::door;
