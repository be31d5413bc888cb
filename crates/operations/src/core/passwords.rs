//! Passwords: the one gate that checks them, and the queue that hashes them.
//!
//! Whatever door a password comes through, [`check`] alone compares it with its hash: comparing is private to this
//! module. [`check`] counts guesses per account and per client, over all doors and nodes, with growing pauses.
//! Hashing is bounded and fair, so that it cannot be used to exhaust the machine or to lock others out.

pub(crate) mod device;
pub(crate) mod guesses;
pub(crate) mod hashing;
pub(crate) mod queue;

use std::net::IpAddr;

use store::accounts::AccountWithPassword;

use self::guesses::Subject;
pub use self::hashing::HashingCost;
pub(crate) use self::queue::{Purpose, Turn};
use crate::core::{app::App, error::Result, request_info::RequestInfo};

/// The client of a log-in or sign-up, as far as the request shows it.
#[derive(Clone, Debug)]
pub struct Client {
    /// The network of its address: the range that one customer of a provider has.
    pub network: IpAddr,
    /// The device cookie, if the browser has one.
    pub device: Option<String>,
    /// Its User-Agent.
    pub user_agent: String,
    /// The request, for the audit log.
    pub request: RequestInfo,
}

/// Checks the password of an account, `found` under `email`. An address without an account takes the same time.
/// Refuses after too many wrong guesses.
pub(crate) async fn check(
    app: &App,
    client: &Client,
    purpose: Purpose,
    email: &str,
    found: Option<&AccountWithPassword>,
    password: String,
) -> Result<bool> {
    let shown = client.device.as_deref();
    let device = found.zip(shown).and_then(|(found, shown)| device::recognise(app, &found.account.id, shown));
    let subjects = match device {
        // Failures from other devices do not count here.
        Some(device) => vec![Subject::Device(device)],
        None => vec![Subject::Client(client.network), Subject::Account(email)],
    };
    let attempt = guesses::begin(app, &subjects).await?;
    let hash = found.map(|found| found.password_hash.clone());
    let turn = Turn { purpose, client: Some(client.network) };
    let cost = app.hashing_cost();
    let outcome = app.hashing().run(turn, move || hashing::verify(cost, &password, hash.as_deref())).await;
    match outcome {
        Ok(true) => attempt.succeed(app).await?,
        Ok(false) => {}
        // The password was not checked.
        Err(_) => attempt.withdraw(app).await?,
    }
    outcome
}

/// Hashes a new password with a fresh salt.
pub(crate) async fn hash(app: &App, turn: Turn, password: String) -> Result<String> {
    let mut salt = [0; 16];
    app.entropy().fill(&mut salt);
    let cost = app.hashing_cost();
    app.hashing().run(turn, move || hashing::hash(cost, &password, salt)).await
}
