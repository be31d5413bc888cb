//! A message that has come in, and who brought it.

use std::net::IpAddr;

use bytes::Bytes;
use model::emails::InboundProvider;

use crate::core::arriving::Recipient;

/// A message that has come in.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The trusted transport; nothing for an import.
    pub provider: Option<InboundProvider>,
    /// The envelope's sender; nothing for a null sender.
    pub from: Option<String>,
    /// Who gets it.
    pub recipients: Vec<Recipient>,
    /// The message, byte for byte.
    pub raw: Bytes,
    /// Who brought it, for checking the sender.
    pub client: Option<Client>,
}

/// Who brought a message.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its address.
    pub address: IpAddr,
    /// The name it gave itself.
    pub helo: String,
}
