//! The door for agents: the operations of the API as tools of the Model Context Protocol, at `/mcp`.
//!
//! The protocol itself is the official SDK's, without sessions: every request stands alone, so any node can answer it. A
//! tool call becomes a call of the API in process, so what it may do, costs and answers cannot differ from the API.

mod answer;
mod budget;
mod call;
mod card;
mod door;
mod guest;
mod handler;
mod profile;
mod request;
mod schema;
mod tools;

pub use door::door;
