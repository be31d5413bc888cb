//! Argon2id itself. Nothing but the gate around it may compare a password with a hash.

use argon2::{
    Algorithm, Argon2, Params, Version,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};

use crate::{Error, Result};

/// Hashes a password with a salt.
pub(super) fn hash(password: &str, salt: [u8; 16]) -> Result<String> {
    let hash = hasher()?.hash_password_with_salt(password.as_bytes(), &salt).map_err(fault)?;
    Ok(hash.to_string())
}

/// Compares a password with a hash. Without a hash (no such account) it works as hard and says no.
pub(super) fn verify(password: &str, hash: Option<&str>) -> Result<bool> {
    let Some(hash) = hash else {
        hasher()?.hash_password_with_salt(password.as_bytes(), &[0; 16]).map_err(fault)?;
        return Ok(false);
    };
    let parsed = PasswordHash::new(hash).map_err(fault)?;
    Ok(hasher()?.verify_password(password.as_bytes(), &parsed).is_ok())
}

fn hasher() -> Result<Argon2<'static>> {
    // OWASP's floor: 19 MiB, two passes, one lane.
    let params = Params::new(19 * 1024, 2, 1, None).map_err(fault)?;
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
        let hash = hash("correct", [7; 16]).unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(verify("correct", Some(&hash)).unwrap());
        assert!(!verify("Correct", Some(&hash)).unwrap());
        assert!(!verify("correct", None).unwrap());
    }
}
