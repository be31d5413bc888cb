//! The API, resource by resource, through the router, on both engines.

mod affiliate;
mod api_keys;
mod commissions;
mod console;
mod folders;
mod invites;
mod members;
mod memory;
mod people;
mod plans;
mod scope;
mod sessions;
mod usage;
mod workspaces;
