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

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use super::*;

    /// Work that waits until it is let go, and counts how much of it has begun.
    #[derive(Default)]
    struct Gate {
        state: Mutex<(usize, bool)>,
        changed: Condvar,
    }

    impl Gate {
        fn pass(&self) {
            let mut state = self.state.lock().unwrap();
            state.0 += 1;
            while !state.1 {
                state = self.changed.wait(state).unwrap();
            }
        }
        fn open(&self) {
            self.state.lock().unwrap().1 = true;
            self.changed.notify_all();
        }
        fn begun(&self) -> usize {
            self.state.lock().unwrap().0
        }
    }

    /// rules: AUTH-15
    #[tokio::test]
    async fn two_run_twenty_wait_and_the_next_is_sent_away() {
        let (passwords, gate) = (Passwords::default(), Arc::new(Gate::default()));
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..RUNNING + WAITING {
            let (passwords, gate) = (passwords.clone(), gate.clone());
            calls.spawn(async move {
                passwords
                    .in_turn(move || {
                        gate.pass();
                        Ok(())
                    })
                    .await
            });
        }
        while gate.begun() < 2 {
            tokio::task::yield_now().await;
        }
        // All have had their chance to begin by now.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(gate.begun(), 2);
        let refused = passwords.in_turn(|| Ok(())).await.unwrap_err();
        assert_eq!((refused.kind(), refused.retry_after()), (ErrorKind::RateLimited, Some(1)));
        let refused = passwords.verify("password".to_owned(), None).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::RateLimited);
        gate.open();
        assert!(calls.join_all().await.into_iter().all(|outcome| outcome.is_ok()));
        assert!(passwords.in_turn(|| Ok(true)).await.unwrap());
    }

    /// rules: AUTH-13, AUTH-14
    #[tokio::test]
    async fn passwords_are_checked_against_their_hash() {
        let passwords = Passwords::default();
        let hash = passwords.hash("correct".to_owned(), [7; 16]).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(passwords.verify("correct".to_owned(), Some(hash.clone())).await.unwrap());
        assert!(!passwords.verify("Correct".to_owned(), Some(hash)).await.unwrap());
        assert!(!passwords.verify("correct".to_owned(), None).await.unwrap());
    }
}
