//! Maintenance of the service: the operator's view, storage, periodic work.

pub mod admin;
pub mod backlog;
pub mod counters;
pub mod maintenance;
pub mod storage;
pub mod trace;
