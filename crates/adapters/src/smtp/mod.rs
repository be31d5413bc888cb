//! The way out for messages to other servers: a relay that takes everything, or the MX hosts of each domain.
//!
//! Operations decide what is sent and when it is tried again; here is only the network.

mod direct;
mod handover;
mod relay;

pub use self::{
    direct::{Direct, DirectError, DirectSettings},
    relay::{Relay, RelaySettings},
};
