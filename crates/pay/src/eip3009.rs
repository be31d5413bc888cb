//! Transfer authorisations (EIP-3009) and what exactly is signed of them (EIP-712).

use std::sync::LazyLock;

use crate::{Address, Word, keccak256};

/// What a payer signs: an amount for a recipient, once, within these times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authorization {
    /// The payer.
    pub from: Address,
    /// The recipient.
    pub to: Address,
    /// The amount, in the token's smallest unit.
    pub value: Word,
    /// Valid after this time, in seconds.
    pub valid_after: Word,
    /// Valid before this time, in seconds.
    pub valid_before: Word,
    /// Makes it usable once.
    pub nonce: Word,
}

/// The token that a signature is for, as its contract names itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenDomain {
    /// The token's name in its own domain.
    pub name: String,
    /// The version of that domain.
    pub version: String,
    /// The chain id.
    pub chain_id: u64,
    /// The token's contract.
    pub contract: Address,
}

static DOMAIN_TYPE: LazyLock<[u8; 32]> = LazyLock::new(|| {
    keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")
});
static TRANSFER_TYPE: LazyLock<[u8; 32]> = LazyLock::new(|| {
    keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)",
    )
});

impl TokenDomain {
    /// The domain separator: the hash that sets this token's signatures apart from all others.
    pub fn separator(&self) -> [u8; 32] {
        hash_words(&[
            Word(*DOMAIN_TYPE),
            Word(keccak256(&self.name)),
            Word(keccak256(&self.version)),
            self.chain_id.into(),
            self.contract.into(),
        ])
    }
}

impl Authorization {
    /// The digest that the payer signs.
    pub fn digest(&self, domain: &TokenDomain) -> [u8; 32] {
        let message = hash_words(&[
            Word(*TRANSFER_TYPE),
            self.from.into(),
            self.to.into(),
            self.value,
            self.valid_after,
            self.valid_before,
            self.nonce,
        ]);
        let mut bytes = [0; 66];
        bytes[..2].copy_from_slice(&[0x19, 0x01]);
        bytes[2..34].copy_from_slice(&domain.separator());
        bytes[34..].copy_from_slice(&message);
        keccak256(bytes)
    }
}

fn hash_words(words: &[Word]) -> [u8; 32] {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.0).collect();
    keccak256(bytes)
}
