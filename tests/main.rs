//! One integration binary over the whole service: API tests on both engines, tables over the catalogue, races,
//! crashes, and the real binary as a process.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

mod agent;
mod api;
mod bucket;
mod catalog;
mod console;
mod examples;
mod fuzz;
mod idempotency;
mod mcp;
mod metering;
mod narrowing;
mod process;
mod revocation;
mod simulation;
mod sources;
mod spec;
mod store;
mod structure;
