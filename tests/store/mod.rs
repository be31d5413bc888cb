//! The store on its own.

mod blobs;
mod migrations;
mod statements;
mod tenancy;
mod upkeep;
