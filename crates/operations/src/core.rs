//! The lowest wing: the service as every operation sees it, the gates of a call, metering, and ports to outside
//! services.

pub mod admission;
pub mod app;
pub mod arriving;
pub mod assistant;
pub mod audit;
pub mod call;
pub mod caller;
pub mod clock;
pub(crate) mod compute;
pub mod credentials;
pub mod cursor;
pub mod error;
mod error_kind;
pub mod events;
pub mod gates;
pub mod input;
pub mod jitter;
pub mod ledger;
pub mod lock;
pub mod metering;
pub mod narrowing;
pub mod operation;
pub mod passwords;
pub mod ports;
pub mod readiness;
pub mod request_info;
pub mod secrets;
pub mod settings;
pub mod state;
pub mod supervisor;
pub mod turns;
