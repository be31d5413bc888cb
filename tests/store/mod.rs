//! The store on its own.

mod blobs;
mod groups;
mod migrations;
mod requirements;
mod round_trips;
mod statements;
mod tenancy;
mod upkeep;
mod wakes;
