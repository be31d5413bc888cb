//! Routes without a credential: status, configuration, health, discovery, the affiliate link.

mod answers;
mod readiness;
mod routes;

pub(crate) use self::{
    answers::{PublicConfig, Status, TrackQuery},
    routes::{AFFILIATE_COOKIE, limit, routes},
};
