//! Credits and request limits under concurrency, across nodes and restarts.

mod credits;
mod isolated;
mod nodes;
mod requests;
mod rests;
