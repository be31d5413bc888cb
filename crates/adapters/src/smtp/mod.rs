//! The next hops for messages to other servers: a relay, or the MX hosts of each domain.
//!
//! Operations decide what is sent and when it is retried; these files only speak SMTP.

mod direct;
mod handover;
mod relay;

pub use self::{
    direct::{Direct, DirectError, DirectSettings},
    relay::{Relay, RelaySettings},
};
