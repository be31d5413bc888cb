//! Credits and request limits under concurrency, across nodes and restarts.

mod credits;
mod nodes;
mod requests;
mod rests;
