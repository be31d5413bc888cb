//! The store on its own.

mod blobs;
mod concurrent_indexes;
mod groups;
mod migrations;
mod nodes;
mod pooler;
mod requirements;
mod round_trips;
mod statements;
mod tenancy;
mod upkeep;
mod wakes;
