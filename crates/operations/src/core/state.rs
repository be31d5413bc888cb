//! In-memory state of the service. Nothing here depends on `App`.

pub mod arrivals;
pub mod credentials;
pub mod data_keys;
pub mod free_proofs;
pub mod fresh_messages;
pub mod indexes;
pub mod model_slots;
pub mod notifications;
pub mod outbox;
pub mod readiness;
pub mod recent;
pub mod routes;
pub mod running_keys;
pub mod scanning;
pub mod send_shares;
pub mod signing_keys;
pub mod uuids;
pub mod wallets;
