//! Waiting calls whose credential is revoked meanwhile: an API key or a session that was deleted.
//!
//! One task polls the store for all waiting calls, once per credential, and ends when the last of them does.

use std::{collections::HashSet, sync::Arc, time::Duration};

use store::{SystemTx, system};
use tokio::sync::watch;

use crate::core::{
    app::App,
    call::Call,
    caller::{Actor, Caller, SecretHash},
    error::Result,
    lock::lock,
    state::credentials::{WaitingCaller, WaitingCredential},
    supervisor::isolate,
};

/// Time between two polls. Together with the half second that a caller is cached, it stays below a second.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

impl App {
    /// Completes within a second after the caller of a waiting call loses its right to make it.
    #[crate::boxed]
    pub async fn revoked(&self, call: &Call) {
        let Some(hash) = call.caller.hash else { return std::future::pending().await };
        let mut revoked = self.watch_credential((hash, call.workspace.clone()), &call.caller);
        // The sender is dropped after it has notified, or when no receiver is left.
        let _ = revoked.wait_for(|revoked| *revoked).await;
    }

    fn watch_credential(&self, credential: WaitingCredential, caller: &Arc<Caller>) -> watch::Receiver<bool> {
        let mut watched = lock(&self.credentials().waiting.0);
        let new = || WaitingCaller { caller: caller.clone(), revoked: watch::channel(false).0 };
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

    fn notify_revoked(&self, credential: &WaitingCredential) {
        if let Some(waiting) = lock(&self.credentials().waiting.0).entries.remove(credential) {
            waiting.revoked.send_replace(true);
        }
    }
}

async fn poll_revocations(app: App) {
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        let Some(all) = app.watched_callers() else { return };
        match isolate("waits", revoked_among(&app, all)).await {
            Ok(revoked) => revoked.iter().for_each(|credential| app.notify_revoked(credential)),
            // An unavailable store says nothing about a caller.
            Err(error) => tracing::debug!(%error, "revocation poll failed; retrying"),
        }
    }
}

async fn revoked_among(
    app: &App,
    all: Vec<(WaitingCredential, Arc<Caller>)>,
) -> Result<Vec<WaitingCredential>> {
    let now = app.now();
    let (mut keys, mut sessions, mut revoked) = (Vec::new(), Vec::new(), Vec::new());
    for (credential, caller) in all {
        match caller.actor {
            _ if caller.expires_at.is_some_and(|end| end <= now) => revoked.push(credential),
            Actor::Key(_) => keys.push(credential),
            _ => sessions.push(credential),
        }
    }
    let asked = (keys.clone(), sessions.clone());
    let valid: HashSet<WaitingCredential> =
        app.db().system_read(async move |tx| still_valid(tx, asked.0, asked.1).await).await?;
    revoked.extend(keys.into_iter().chain(sessions).filter(|credential| !valid.contains(credential)));
    Ok(revoked)
}

/// Which credentials are still valid in their workspace.
async fn still_valid(
    tx: &mut SystemTx,
    keys: Vec<WaitingCredential>,
    sessions: Vec<WaitingCredential>,
) -> Result<HashSet<WaitingCredential>> {
    let hashes: Vec<SecretHash> = keys.iter().map(|(hash, _)| *hash).collect();
    let living: HashSet<Vec<u8>> = system::valid_keys(tx, &hashes).await?.into_iter().collect();
    let mut valid: HashSet<WaitingCredential> =
        keys.into_iter().filter(|(hash, _)| living.contains(hash.as_slice())).collect();
    for (hash, workspace) in sessions {
        let session = system::find_session(tx, &hash).await?;
        let memberships = session.map(|session| session.memberships).unwrap_or_default();
        if memberships.iter().any(|membership| membership.workspace_id == workspace) {
            valid.insert((hash, workspace));
        }
    }
    Ok(valid)
}
