//! An arriving message and the client that delivered it.

use std::net::IpAddr;

use bytes::Bytes;
use model::emails::InboundProvider;

use crate::core::arriving::Recipient;

/// An arriving message.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The trusted transport; nothing for an import.
    pub provider: Option<InboundProvider>,
    /// The envelope's sender; nothing for a null sender.
    pub from: Option<String>,
    /// The recipients.
    pub recipients: Vec<Recipient>,
    /// The message, byte for byte.
    pub raw: Bytes,
    /// The client, for sender authentication.
    pub client: Option<Client>,
}

/// The client that delivered a message.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its address.
    pub address: IpAddr,
    /// The name it gave itself.
    pub helo: String,
}
