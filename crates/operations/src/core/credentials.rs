//! Authentication: API keys and console sessions, looked up by hash and cached for half a second. The short cache
//! lifetime makes a revocation take effect on every node within a second, without messages between nodes.

mod revocation;

use std::sync::Arc;

use store::system;
use tokio::time::Instant;

use crate::core::{
    app::App,
    caller::{Access, Actor, Caller, Credential},
    error::{Error, ErrorKind, Result},
    lock::lock,
    narrowing::Narrowing,
    secrets,
};

impl App {
    /// Authenticates a caller. Every kind of wrong credential gets the same error.
    #[crate::boxed]
    pub async fn authenticate(&self, credential: &Credential) -> Result<Arc<Caller>> {
        let secret = match credential {
            Credential::ApiKey(key) if secrets::is_api_key(key) => key,
            Credential::Session(cookie) => cookie,
            Credential::ApiKey(_) => return Err(Error::new(ErrorKind::Unauthorized)),
        };
        let hash = secrets::hash(secret);
        let caller = match self.credentials().find(&hash) {
            Some(caller) => caller,
            None => self.look_up(credential, hash).await?,
        };
        let is_key = matches!(caller.actor, Actor::Key(_));
        if is_key != matches!(credential, Credential::ApiKey(_)) {
            return Err(Error::new(ErrorKind::Unauthorized));
        }
        if caller.expires_at.is_some_and(|end| end <= self.now()) {
            self.expire(&caller).await;
            return Err(Error::new(ErrorKind::Unauthorized));
        }
        Ok(caller)
    }

    /// Whether an earlier authentication would still succeed, with the same result.
    #[crate::boxed]
    pub async fn is_still_valid(&self, caller: &Caller) -> bool {
        if caller.expires_at.is_some_and(|end| end <= self.now()) {
            return false;
        }
        let workspace = caller.workspaces.first().map(|access| access.workspace.clone());
        let (actor, revision) = (caller.actor.clone(), caller.revision);
        let found: Result<bool, store::Error> = self
            .db()
            .system_read(async move |tx| match (actor, workspace) {
                (Actor::Key(id), Some(workspace)) => system::key_exists(tx, &workspace, &id, revision).await,
                (Actor::Key(_) | Actor::Wallet(_) | Actor::Chat(_), _) => Ok(false),
                (Actor::Person { session, .. }, _) => system::session_exists(tx, &session).await,
            })
            .await;
        // An unavailable store says nothing about the caller.
        found.unwrap_or(true)
    }

    /// Deletes an expired credential, so that setting the clock back does not revive it.
    async fn expire(&self, caller: &Caller) {
        let workspace = caller.workspaces.first().map(|access| access.workspace.clone());
        let actor = caller.actor.clone();
        let deleted = self
            .db()
            .system_write(async move |tx| match (actor, workspace) {
                (Actor::Key(id), Some(workspace)) => system::expire_key(tx, &workspace, &id).await,
                (Actor::Key(_) | Actor::Wallet(_) | Actor::Chat(_), _) => Ok(()),
                (Actor::Person { account, session, .. }, _) => {
                    store::accounts::delete_session(tx, &account, &session).await.map(|_| ())
                }
            })
            .await;
        match deleted {
            Ok(()) => self.credentials().forget(),
            // The call is refused anyway, and maintenance retries.
            Err(error) => tracing::warn!(%error, "expired credential not deleted; maintenance will retry"),
        }
    }

    async fn look_up(&self, credential: &Credential, hash: [u8; 32]) -> Result<Arc<Caller>> {
        let _turn = self.credentials().turns[usize::from(hash[0]) % 32].lock().await;
        if let Some(caller) = self.credentials().find(&hash) {
            return Ok(caller);
        }
        let started = Instant::now();
        let found = match credential {
            Credential::ApiKey(_) => self.find_key(hash).await?,
            Credential::Session(_) => self.find_session(hash).await?,
        };
        let caller = Arc::new(found.ok_or_else(|| Error::new(ErrorKind::Unauthorized))?);
        // A key in use is looked up again every half second, so recording its use here is exact to the second.
        if let (Actor::Key(id), Some(access)) = (&caller.actor, caller.workspaces.first())
            && caller.expires_at.is_none_or(|end| end > self.now())
        {
            self.credentials().note_use(&access.workspace, id, self.now());
        }
        self.credentials().keep(hash, caller.clone(), started);
        Ok(caller)
    }

    async fn find_key(&self, hash: [u8; 32]) -> Result<Option<Caller>> {
        let found = self.db().system_read(async move |tx| system::find_key(tx, &hash).await).await?;
        Ok(found.map(|key| Caller {
            narrowing: Narrowing::of_key(&key),
            revision: key.revision,
            actor: Actor::Key(key.id),
            name: Some(key.name),
            workspaces: vec![Access {
                workspace: key.workspace_id,
                name: String::new(),
                role: key.role,
                plan: key.plan,
            }],
            chosen: 0,
            expires_at: key.expires_at,
            hash: Some(hash),
        }))
    }

    async fn find_session(&self, hash: [u8; 32]) -> Result<Option<Caller>> {
        let found = self.db().system_read(async move |tx| system::find_session(tx, &hash).await).await?;
        Ok(found.map(|session| {
            let chosen = session
                .memberships
                .iter()
                .position(|membership| membership.workspace_id == session.chosen_workspace)
                .unwrap_or_default();
            let workspaces = session
                .memberships
                .into_iter()
                .map(|membership| Access {
                    workspace: membership.workspace_id,
                    name: membership.name,
                    role: membership.role,
                    plan: membership.plan,
                })
                .collect();
            let actor = Actor::Person {
                account: session.account_id,
                session: session.id,
                is_admin: session.is_admin,
            };
            Caller {
                actor,
                name: Some(session.email),
                workspaces,
                chosen,
                expires_at: Some(session.expires_at),
                narrowing: Narrowing::default(),
                revision: 0,
                hash: Some(hash),
            }
        }))
    }

    /// Stores when keys were last used, to the minute.
    #[crate::boxed]
    pub async fn store_key_uses(&self) -> Result<()> {
        let used = std::mem::take(&mut *lock(&self.credentials().used));
        if used.is_empty() {
            return Ok(());
        }
        // A crash of the store may lose the last minute of them.
        self.db()
            .asynchronous_system_write(async move |tx| {
                for ((workspace, key), at) in &used {
                    system::touch_key(tx, workspace, key, *at).await?;
                }
                Ok(())
            })
            .await
    }
}
