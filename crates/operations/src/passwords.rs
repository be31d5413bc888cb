//! Password hashing with Argon2id, bounded so that it cannot be used to exhaust the machine.

use std::sync::Arc;

use argon2::{
    Algorithm, Argon2, Params, Version,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use tokio::sync::Semaphore;

use crate::{Error, ErrorKind, Result};

/// Hashes that run at once; each takes 19 MiB and tens of milliseconds.
const RUNNING: usize = 2;
/// Hashes that may wait for their turn.
const WAITING: usize = 20;

/// Hashes and checks passwords.
#[derive(Clone)]
pub struct Passwords {
    places: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

impl Default for Passwords {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(RUNNING + WAITING)), turns: Arc::new(Semaphore::new(RUNNING)) }
    }
}

impl Passwords {
    /// Hashes a password with a fresh salt.
    pub async fn hash(&self, password: String, salt: [u8; 16]) -> Result<String> {
        self.in_turn(move || {
            let hash = hasher()?.hash_password_with_salt(password.as_bytes(), &salt).map_err(fault)?;
            Ok(hash.to_string())
        })
        .await
    }

    /// Checks a password. Without a hash (no such account) it works as hard and says no.
    pub async fn verify(&self, password: String, hash: Option<String>) -> Result<bool> {
        self.in_turn(move || {
            let Some(hash) = hash else {
                hasher()?.hash_password_with_salt(password.as_bytes(), &[0; 16]).map_err(fault)?;
                return Ok(false);
            };
            let parsed = PasswordHash::new(&hash).map_err(fault)?;
            Ok(hasher()?.verify_password(password.as_bytes(), &parsed).is_ok())
        })
        .await
    }

    async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let _place =
            self.places.try_acquire().map_err(|_| Error::new(ErrorKind::RateLimited).with_retry_after(1))?;
        let _turn = self.turns.acquire().await.map_err(Error::internal)?;
        tokio::task::spawn_blocking(work).await.map_err(Error::internal)?
    }
}

fn hasher() -> Result<Argon2<'static>> {
    // OWASP's floor: 19 MiB, two passes, one lane.
    let params = Params::new(19 * 1024, 2, 1, None).map_err(fault)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn fault(error: impl std::fmt::Display) -> Error {
    Error::internal(error.to_string())
}
