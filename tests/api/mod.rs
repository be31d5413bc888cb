//! The API, resource by resource, through the router, on both engines.

mod catalogue;
mod errors;
mod faults;
mod folders;
mod help;
mod http;
mod http_bodies;
mod http_values;
mod label_rules;
mod labels;
mod mailbox_addresses;
mod mailbox_settings;
mod mailboxes;
mod public;
