//! The networks whose dollar tokens can be asked for without naming the token.
//!
//! A token's name is part of what wallets sign, and it differs between networks; a wrong one makes every signature
//! wrong.

use crate::{Address, TokenDomain};

/// A network and its dollar token, which has six decimals everywhere.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// The CAIP-2 name.
    pub id: &'static str,
    /// The chain id.
    pub chain_id: u64,
    /// The name in version 1 of x402.
    pub v1_name: &'static str,
    /// The token's contract.
    pub asset: &'static str,
    /// The token's name in its own domain.
    pub token_name: &'static str,
    /// Whether it is a test network.
    pub is_test: bool,
}

/// Decimals of every token here.
pub(crate) const DECIMALS: u32 = 6;
/// The version of every token's domain.
const TOKEN_VERSION: &str = "2";

const fn network(
    id: &'static str,
    chain_id: u64,
    v1_name: &'static str,
    asset: &'static str,
    token_name: &'static str,
    is_test: bool,
) -> Network {
    Network { id, chain_id, v1_name, asset, token_name, is_test }
}

/// All networks.
pub const NETWORKS: &[Network] = &[
    network(
        "eip155:84532",
        84_532,
        "base-sepolia",
        "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
        "USDC",
        true,
    ),
    network("eip155:8453", 8_453, "base", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "USD Coin", false),
    network("eip155:137", 137, "polygon", "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359", "USD Coin", false),
    network(
        "eip155:42161",
        42_161,
        "arbitrum",
        "0xaf88d065e77c8cC2239327C5EDb3A432268e5831",
        "USD Coin",
        false,
    ),
];

/// Finds a network by its CAIP-2 name.
pub fn find(id: &str) -> Option<&'static Network> {
    NETWORKS.iter().find(|network| network.id == id)
}

impl Network {
    /// The signing domain of the token.
    pub fn domain(&self) -> TokenDomain {
        TokenDomain {
            name: self.token_name.to_owned(),
            version: TOKEN_VERSION.to_owned(),
            chain_id: self.chain_id,
            // A test checks the table's addresses.
            contract: Address::parse(self.asset).unwrap_or(Address([0; 20])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        for network in NETWORKS {
            assert_eq!(network.id, format!("eip155:{}", network.chain_id));
            assert_eq!(network.domain().contract.to_checksum(), network.asset);
        }
    }
}
