//! Counts password guesses in the store, so that all nodes and doors count together.
//!
//! An attempt is counted before the password is checked, and uncounted when it was right: however many attempts run
//! at the same time, no more get through than the count allows.

use std::net::IpAddr;

use hmac::Mac;
use store::password_guesses;

use crate::core::{
    app::App,
    error::{Error, ErrorKind, Result},
    secrets,
};

/// Failures of an account or a device before pauses begin.
const FREE_FAILURES: i64 = 10;
/// The same for a client, which may be several people.
const FREE_FAILURES_PER_CLIENT: i64 = 20;
/// The longest pause. The first is one second, and each further failure doubles it.
const MAX_PAUSE_SECONDS: i64 = 3600;
/// How long failures count after the last one.
const EXPIRY_SECONDS: i64 = 24 * 3600;

/// What guesses are counted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject<'a> {
    /// An account, by its address, whether or not it exists.
    Account(&'a str),
    /// A client, by its network.
    Client(IpAddr),
    /// A device that has signed in to the account before.
    Device(&'a str),
    /// A client that signs up: each address that already has an account is a guess at who has one.
    SignUp(IpAddr),
}

impl Subject<'_> {
    fn counter(self, app: &App) -> Result<Counter> {
        let (kind, name, free) = match self {
            Self::Account(email) => ("account", email.to_owned(), FREE_FAILURES),
            Self::Client(network) => ("client", network.to_string(), FREE_FAILURES_PER_CLIENT),
            Self::Device(id) => ("device", id.to_owned(), FREE_FAILURES),
            Self::SignUp(network) => ("sign-up", network.to_string(), FREE_FAILURES_PER_CLIENT),
        };
        let key = secrets::keyed(app, "password guesses", &[kind, &name])?.finalize().into_bytes().into();
        // A counter that several people share is not reset by one of them: a right password of one's own would
        // otherwise pay for guesses at others'.
        let shared = matches!(self, Self::Client(_) | Self::SignUp(_));
        Ok(Counter { key, free, shared })
    }
}

#[derive(Clone, Copy)]
struct Counter {
    key: password_guesses::Subject,
    free: i64,
    shared: bool,
}

/// An attempt, counted as a failure until it turns out to be none.
pub(crate) struct Attempt(Vec<Counter>);

/// Counts an attempt for all subjects, or refuses it while one of them is blocked. Subjects that several callers may
/// share are in the same order everywhere, to avoid deadlocks.
pub(crate) async fn begin(app: &App, subjects: &[Subject<'_>]) -> Result<Attempt> {
    let counters: Vec<Counter> =
        subjects.iter().map(|subject| subject.counter(app)).collect::<Result<_>>()?;
    let (now, all) = (app.now(), counters.clone());
    app.db()
        .system_write(async move |tx| {
            for counter in all {
                let expires_at = now.plus_seconds(EXPIRY_SECONDS);
                let counted = password_guesses::count(tx, &counter.key, now, expires_at).await?;
                if counted.blocked_until > now {
                    // A refused attempt is rolled back: it must not make the pause longer.
                    let seconds = now.seconds_until(counted.blocked_until);
                    return Err(Error::new(ErrorKind::RateLimited).with_retry_after(seconds));
                }
                if let Some(pause) = pause(counted.failures, counter.free) {
                    password_guesses::block(tx, &counter.key, now.plus_seconds(pause)).await?;
                }
            }
            Ok(())
        })
        .await?;
    Ok(Attempt(counters))
}

impl Attempt {
    /// The attempt was right: its own counters are reset, shared ones uncount it.
    pub(crate) async fn succeed(self, app: &App) -> Result<()> {
        self.finish(app, true).await
    }

    /// The password was not checked: uncounts the attempt.
    pub(crate) async fn withdraw(self, app: &App) -> Result<()> {
        self.finish(app, false).await
    }

    async fn finish(self, app: &App, was_right: bool) -> Result<()> {
        app.db()
            .system_write(async move |tx| {
                for counter in &self.0 {
                    if was_right && !counter.shared {
                        password_guesses::reset(tx, &counter.key).await?;
                    } else {
                        password_guesses::uncount(tx, &counter.key, counter.free).await?;
                    }
                }
                Ok(())
            })
            .await
    }
}

/// Resets the failures of an account after its owner proved ownership in another way.
pub(crate) async fn forget_account(app: &App, email: &str) -> Result<()> {
    let counter = Subject::Account(email).counter(app)?;
    Attempt(vec![counter]).succeed(app).await
}

/// How long a subject is blocked after so many failures.
fn pause(failures: i64, free: i64) -> Option<i64> {
    let beyond = u32::try_from(failures - free).ok()?;
    Some(2_i64.checked_pow(beyond).map_or(MAX_PAUSE_SECONDS, |seconds| seconds.min(MAX_PAUSE_SECONDS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // rules: AUTH-24
    #[test]
    fn pauses_grow_up_to_an_hour() {
        assert_eq!(pause(FREE_FAILURES - 1, FREE_FAILURES), None);
        let pauses: Vec<i64> = (FREE_FAILURES..FREE_FAILURES + 14)
            .filter_map(|failures| pause(failures, FREE_FAILURES))
            .collect();
        assert_eq!(pauses[..4], [1, 2, 4, 8]);
        assert_eq!(pauses[11..], [2048, 3600, 3600]);
        assert_eq!(pause(1_000_000, FREE_FAILURES), Some(MAX_PAUSE_SECONDS));
    }
}
