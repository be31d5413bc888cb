//! A request as the audit log and the logs know it.

use std::net::IpAddr;

/// What identifies a request, and where it comes from.
#[derive(Clone, Debug, Default)]
pub struct RequestInfo {
    /// Its id, as in the logs.
    pub id: String,
    /// What it is about: its path.
    pub subject: String,
    /// The client's address; `None` where another service passed it on, such as a chat.
    pub address: Option<IpAddr>,
}
