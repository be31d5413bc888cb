//! Looking after the service: the operator's view, storage, maintenance.

pub mod admin;
pub mod backlog;
pub mod maintenance;
pub mod storage;
pub mod trace;
