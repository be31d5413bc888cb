//! Maintenance of the service: the operator's view, storage, periodic work.

pub mod admin;
pub mod backlog;
pub mod counters;
pub mod maintenance;
pub mod nodes;
pub mod storage;
pub mod storage_rounds;
pub mod trace;
