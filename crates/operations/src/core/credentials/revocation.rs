//! Calls that wait, and whose caller loses the right to meanwhile: a key that is revoked, a session that is ended.
//!
//! All who wait are looked after together, by one task that is there while somebody waits: it asks the store about each
//! credential once in a look.

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

/// How long between two looks. A caller is remembered for half a second before it begins to wait, and both together stay
/// below a second.
const PAUSE: Duration = Duration::from_millis(300);

impl App {
    /// Comes back when the caller of a call that waits may no longer make it, within a second of that.
    #[crate::boxed]
    pub async fn revoked(&self, call: &Call) {
        let Some(hash) = call.caller.hash else { return std::future::pending().await };
        let mut over = self.wait_with((hash, call.workspace.clone()), &call.caller);
        // The sender goes when it has told, or when nobody listens any more.
        let _ = over.wait_for(|over| *over).await;
    }

    fn wait_with(&self, place: WaitingCredential, caller: &Arc<Caller>) -> watch::Receiver<bool> {
        let mut watched = lock(&self.credentials().waiting.0);
        let new = || WaitingCaller { caller: caller.clone(), over: watch::channel(false).0 };
        let over = watched.places.entry(place).or_insert_with(new).over.subscribe();
        if !std::mem::replace(&mut watched.looking, true) {
            tokio::spawn(look_after(self.clone()));
        }
        over
    }

    /// Everybody who still waits; nothing when the last one has gone, and with them the reason to look.
    fn those_who_wait(&self) -> Option<Vec<(WaitingCredential, Arc<Caller>)>> {
        let mut watched = lock(&self.credentials().waiting.0);
        watched.places.retain(|_, held| held.over.receiver_count() > 0);
        watched.looking = !watched.places.is_empty();
        let all = watched.places.iter().map(|(place, held)| (place.clone(), held.caller.clone()));
        watched.looking.then(|| all.collect())
    }

    fn end_wait(&self, place: &WaitingCredential) {
        if let Some(held) = lock(&self.credentials().waiting.0).places.remove(place) {
            held.over.send_replace(true);
        }
    }
}

async fn look_after(app: App) {
    loop {
        tokio::time::sleep(PAUSE).await;
        let Some(all) = app.those_who_wait() else { return };
        match isolate("waits", revoked_among(&app, all)).await {
            Ok(revoked) => revoked.iter().for_each(|place| app.end_wait(place)),
            // A store that is away says nothing about a caller.
            Err(error) => tracing::debug!(%error, "those who wait could not be looked after"),
        }
    }
}

async fn revoked_among(
    app: &App,
    all: Vec<(WaitingCredential, Arc<Caller>)>,
) -> Result<Vec<WaitingCredential>> {
    let now = app.now();
    let (mut keys, mut sessions, mut revoked) = (Vec::new(), Vec::new(), Vec::new());
    for (place, caller) in all {
        match caller.actor {
            _ if caller.expires_at.is_some_and(|end| end <= now) => revoked.push(place),
            Actor::Key(_) => keys.push(place),
            _ => sessions.push(place),
        }
    }
    let asked = (keys.clone(), sessions.clone());
    let valid: HashSet<WaitingCredential> =
        app.db().system_read(async move |tx| still_valid(tx, asked.0, asked.1).await).await?;
    revoked.extend(keys.into_iter().chain(sessions).filter(|place| !valid.contains(place)));
    Ok(revoked)
}

/// Which of them may still act where they wait.
async fn still_valid(
    tx: &mut SystemTx,
    keys: Vec<WaitingCredential>,
    sessions: Vec<WaitingCredential>,
) -> Result<HashSet<WaitingCredential>> {
    let hashes: Vec<SecretHash> = keys.iter().map(|(hash, _)| *hash).collect();
    let living: HashSet<Vec<u8>> = system::living_keys(tx, &hashes).await?.into_iter().collect();
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
