//! Waiting calls whose credential is revoked meanwhile: an API key or a session that was deleted, or a key that may do
//! less than before.
//!
//! One task polls the store for all waiting calls, once per credential, and ends when the last of them does.

use std::{sync::Arc, time::Duration};

use store::{SystemTx, system};
use tokio::sync::watch;

use crate::core::{
    app::App,
    call::Call,
    caller::{Actor, Caller, SecretHash},
    error::{Error, ErrorKind, Result},
    lock::lock,
    state::credentials::{Revocation, WaitingCaller, WaitingCredential},
    supervisor::isolate,
};

/// Time between two polls. Together with the half second that a caller is cached, it stays below a second.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

impl App {
    /// Completes within a second after the caller of a waiting call loses its right to make it, with the error that ends
    /// the call.
    #[crate::boxed]
    pub async fn revoked(&self, call: &Call) -> Error {
        let Some(hash) = call.caller.hash else { return std::future::pending().await };
        let credential = (hash, call.workspace.clone(), call.caller.revision);
        let mut revoked = self.watch_credential(credential, &call.caller);
        // The sender is dropped after it has notified, or when no receiver is left.
        let end = match revoked.wait_for(Option::is_some).await {
            Ok(end) => *end,
            Err(_) => None,
        };
        match end {
            Some(Revocation::Changed) => Error::new(ErrorKind::ScopeRequired)
                .with_fix("The key was changed while the call waited. Repeat the call."),
            _ => Error::new(ErrorKind::Unauthorized),
        }
    }

    fn watch_credential(
        &self,
        credential: WaitingCredential,
        caller: &Arc<Caller>,
    ) -> watch::Receiver<Option<Revocation>> {
        let mut watched = lock(&self.credentials().waiting.0);
        let new = || WaitingCaller { caller: caller.clone(), revoked: watch::channel(None).0 };
        let revoked = watched.entries.entry(credential).or_insert_with(new).revoked.subscribe();
        if !std::mem::replace(&mut watched.polling, true) {
            tokio::spawn(poll_revocations(self.clone()));
        }
        revoked
    }

    /// The callers that still wait; `None` when the last one is gone, which ends the polling task.
    fn watched_callers(&self) -> Option<Vec<(WaitingCredential, Arc<Caller>)>> {
        let mut watched = lock(&self.credentials().waiting.0);
        watched.entries.retain(|_, waiting| waiting.revoked.receiver_count() > 0);
        watched.polling = !watched.entries.is_empty();
        let all =
            watched.entries.iter().map(|(credential, waiting)| (credential.clone(), waiting.caller.clone()));
        watched.polling.then(|| all.collect())
    }

    fn notify_revoked(&self, credential: &WaitingCredential, how: Revocation) {
        if let Some(waiting) = lock(&self.credentials().waiting.0).entries.remove(credential) {
            waiting.revoked.send_replace(Some(how));
        }
    }
}

async fn poll_revocations(app: App) {
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        let Some(all) = app.watched_callers() else { return };
        match isolate("waits", revoked_among(&app, all)).await {
            Ok(revoked) => revoked.iter().for_each(|(credential, how)| app.notify_revoked(credential, *how)),
            // An unavailable store says nothing about a caller.
            Err(error) => tracing::debug!(%error, "revocation poll failed; retrying"),
        }
    }
}

async fn revoked_among(
    app: &App,
    all: Vec<(WaitingCredential, Arc<Caller>)>,
) -> Result<Vec<(WaitingCredential, Revocation)>> {
    let now = app.now();
    let (mut keys, mut sessions, mut revoked) = (Vec::new(), Vec::new(), Vec::new());
    for (credential, caller) in all {
        match caller.actor {
            _ if caller.expires_at.is_some_and(|end| end <= now) => {
                revoked.push((credential, Revocation::Revoked));
            }
            Actor::Key(_) => keys.push(credential),
            _ => sessions.push(credential),
        }
    }
    let ended = app.db().system_read(async move |tx| ended(tx, keys, sessions).await).await?;
    revoked.extend(ended);
    Ok(revoked)
}

/// Which credentials are no longer valid in their workspace, or not as they were.
async fn ended(
    tx: &mut SystemTx,
    keys: Vec<WaitingCredential>,
    sessions: Vec<WaitingCredential>,
) -> Result<Vec<(WaitingCredential, Revocation)>> {
    let hashes: Vec<SecretHash> = keys.iter().map(|(hash, ..)| *hash).collect();
    let living = system::valid_keys(tx, &hashes).await?;
    let mut ended = Vec::new();
    for credential in keys {
        match living.get(&credential.0) {
            Some(revision) if *revision == credential.2 => {}
            Some(_) => ended.push((credential, Revocation::Changed)),
            None => ended.push((credential, Revocation::Revoked)),
        }
    }
    for credential in sessions {
        let session = system::find_session(tx, &credential.0).await?;
        let memberships = session.map(|session| session.memberships).unwrap_or_default();
        if !memberships.iter().any(|membership| membership.workspace_id == credential.1) {
            ended.push((credential, Revocation::Revoked));
        }
    }
    Ok(ended)
}
