//! Argon2id itself. Only the gate around it may compare a password with a hash.

use argon2::{
    Algorithm, Argon2, Params, Version,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};

use crate::core::error::{Error, Result};

/// The cost of a hash.
#[derive(Clone, Copy, Debug)]
pub struct HashingCost {
    memory_kib: u32,
    passes: u32,
}

impl HashingCost {
    /// The minimum of Argon2, for accounts that protect nothing, such as those of tests.
    pub const MIN: Self = Self { memory_kib: 8, passes: 1 };
}

impl Default for HashingCost {
    /// OWASP's minimum: 19 MiB, two passes, one lane.
    fn default() -> Self {
        Self { memory_kib: 19 * 1024, passes: 2 }
    }
}

/// Hashes a password with a salt.
pub(super) fn hash(cost: HashingCost, password: &str, salt: [u8; 16]) -> Result<String> {
    let hash = hasher(cost)?.hash_password_with_salt(password.as_bytes(), &salt).map_err(fault)?;
    Ok(hash.to_string())
}

/// Compares a password with a hash. Without a hash (no such account) it takes as long and returns false.
pub(super) fn verify(cost: HashingCost, password: &str, hash: Option<&str>) -> Result<bool> {
    let Some(hash) = hash else {
        hasher(cost)?.hash_password_with_salt(password.as_bytes(), &[0; 16]).map_err(fault)?;
        return Ok(false);
    };
    let parsed = PasswordHash::new(hash).map_err(fault)?;
    Ok(hasher(cost)?.verify_password(password.as_bytes(), &parsed).is_ok())
}

fn hasher(cost: HashingCost) -> Result<Argon2<'static>> {
    let params = Params::new(cost.memory_kib, cost.passes, 1, None).map_err(fault)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn fault(error: impl std::fmt::Display) -> Error {
    Error::internal(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rules: AUTH-13, AUTH-14
    #[test]
    fn passwords_are_checked_against_their_hash() {
        let cost = HashingCost::default();
        let hash = hash(cost, "correct", [7; 16]).unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(verify(cost, "correct", Some(&hash)).unwrap());
        assert!(verify(HashingCost::MIN, "correct", Some(&hash)).unwrap(), "a hash knows what it took");
        assert!(!verify(cost, "Correct", Some(&hash)).unwrap());
        assert!(!verify(cost, "correct", None).unwrap());
    }
}
