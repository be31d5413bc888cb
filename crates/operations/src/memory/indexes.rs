//! The indexes in memory, one a workspace, made from the store when they are needed and forgotten when room is.
//!
//! An index knows the number of the last change that it holds. Before every use the store is asked for its last number, and
//! what came since is added: so an index is right on every node, whoever made the change. What was deleted is found out
//! when its row is not there any more, and taken out then.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, RwLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use embed::index::{Hit, Index};
use model::WorkspaceId;
use store::memory::{self, DOCUMENT_SCOPE, IndexRow, MEMORY_SCOPE};

use super::passages;
use crate::{App, Error, Result, lock};

/// Passages that are read from the store at once.
const STEP: i64 = 5000;
/// About what a passage takes in memory, for bounding one index.
const PASSAGE_BYTES: usize = 800;
/// Indexes that are kept, however small they are.
const MOST_HELD: usize = 10_000;

/// The indexes at hand.
#[derive(Default)]
pub(crate) struct Indexes {
    held: Mutex<HashMap<WorkspaceId, Arc<Held>>>,
    uses: AtomicU64,
}

/// The index of one workspace.
pub(crate) struct Held {
    inner: RwLock<Inner>,
    /// Whoever brings it up to date holds this.
    refreshing: tokio::sync::Mutex<()>,
    last_use: AtomicU64,
    bytes: AtomicUsize,
}

struct Inner {
    index: Index,
    /// The model whose vectors it holds.
    model: String,
    /// The last change that it holds; nothing before it was filled.
    version: Option<i64>,
    /// What the numbers of groups mean.
    scopes: Vec<String>,
}

/// Which passages are looked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Of memories.
    pub(crate) memories: bool,
    /// Of documents.
    pub(crate) documents: bool,
    /// Of mail.
    pub(crate) mail: Mail,
}

/// Which mail is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mail {
    /// None.
    No,
    /// That of all mailboxes.
    All,
    /// That of one.
    Of(String),
}

impl Wanted {
    fn has(&self, scope: &str) -> bool {
        match scope {
            MEMORY_SCOPE => self.memories,
            DOCUMENT_SCOPE => self.documents,
            mailbox => match &self.mail {
                Mail::No => false,
                Mail::All => true,
                Mail::Of(wanted) => wanted == mailbox,
            },
        }
    }
}

impl Held {
    fn new(dimension: usize, model: &str) -> Self {
        let scopes = vec![MEMORY_SCOPE.to_owned(), DOCUMENT_SCOPE.to_owned()];
        let inner = Inner { index: Index::new(dimension), model: model.to_owned(), version: None, scopes };
        Self {
            inner: RwLock::new(inner),
            refreshing: tokio::sync::Mutex::new(()),
            last_use: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
        }
    }

    fn read<T>(&self, look: impl FnOnce(&Inner) -> T) -> T {
        look(&self.inner.read().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.inner.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let outcome = change(&mut inner);
        self.bytes.store(inner.index.bytes(), Ordering::Relaxed);
        outcome
    }

    /// The nearest passages, and those that fit the words best. Takes milliseconds: not for an async thread.
    pub(crate) fn search(
        &self,
        vector: &[f32],
        words: &[u32],
        wanted: &Wanted,
        most: usize,
    ) -> [Vec<Hit>; 2] {
        self.read(|inner| {
            let groups: Vec<bool> = inner.scopes.iter().map(|scope| wanted.has(scope)).collect();
            let is_wanted = |group: u16| groups.get(usize::from(group)).copied().unwrap_or_default();
            [inner.index.nearest(vector, most, is_wanted), inner.index.matching(words, most, is_wanted)]
        })
    }

    /// Takes passages out that are gone.
    pub(crate) fn remove(&self, numbers: &[i64]) {
        self.change(|inner| numbers.iter().for_each(|number| inner.index.remove(*number)));
    }
}

impl Inner {
    fn add(&mut self, row: &IndexRow) {
        let known = self.scopes.iter().position(|scope| *scope == row.scope);
        let group = known.unwrap_or_else(|| {
            self.scopes.push(row.scope.clone());
            self.scopes.len() - 1
        });
        let code = (row.model == self.model).then_some(row.code.as_slice());
        if let Ok(group) = u16::try_from(group) {
            self.index.insert(row.number, group, code, &row.words);
        }
        self.version = Some(row.version);
    }
}

impl Indexes {
    /// The index of a workspace as the store has it now.
    pub(crate) async fn get(&self, app: &App, workspace: &WorkspaceId) -> Result<Arc<Held>> {
        let embedder = passages::embedder(app)?;
        let fresh = || Arc::new(Held::new(embedder.dimension(), embedder.model()));
        let held = {
            let mut all = lock(&self.held);
            let held = all.entry(workspace.clone()).or_insert_with(fresh);
            // What is gone takes room and time.
            if held.read(|inner| inner.index.is_sparse()) {
                *held = fresh();
            }
            held.clone()
        };
        held.last_use.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        self.refresh(app, workspace, &held).await?;
        self.make_room(app.settings().memory.cache_bytes, workspace);
        Ok(held)
    }

    async fn refresh(&self, app: &App, workspace: &WorkspaceId, held: &Arc<Held>) -> Result<()> {
        let last =
            app.db().read(workspace, async |tx| memory::last_number(tx).await).await.map_err(Error::from)?;
        if held.read(|inner| inner.version.is_some_and(|version| version >= last)) {
            return Ok(());
        }
        let _alone = held.refreshing.lock().await;
        let most = i64::try_from(app.settings().memory.cache_bytes / 2 / PASSAGE_BYTES).unwrap_or(i64::MAX);
        let mut after = match held.read(|inner| inner.version) {
            Some(version) => version,
            // More than fits is not looked at: the newest count.
            None => app.db().read(workspace, async move |tx| memory::start_of_latest(tx, most).await).await?,
        };
        while after < last {
            let rows = app
                .db()
                .read(workspace, async move |tx| memory::changes_after(tx, after, STEP).await)
                .await?;
            let Some(newest) = rows.last().map(|row| row.version) else { break };
            after = newest;
            let held = held.clone();
            let add = move || held.change(|inner| rows.iter().for_each(|row| inner.add(row)));
            tokio::task::spawn_blocking(add).await.map_err(Error::internal)?;
        }
        // Numbers may have no row any more.
        held.change(|inner| inner.version = Some(after.max(last)));
        Ok(())
    }

    /// Forgets the indexes that were not used for the longest time, until the others fit. One is always kept.
    fn make_room(&self, most: usize, keep: &WorkspaceId) {
        let size = |held: &Arc<Held>| held.bytes.load(Ordering::Relaxed);
        let mut all = lock(&self.held);
        let mut total: usize = all.values().map(size).sum();
        while total > most || all.len() > MOST_HELD {
            let others = all.iter().filter(|(workspace, _)| *workspace != keep);
            let oldest = others.min_by_key(|(_, held)| held.last_use.load(Ordering::Relaxed));
            let Some(oldest) = oldest.map(|(workspace, _)| workspace.clone()) else { break };
            total -= all.remove(&oldest).as_ref().map_or(0, size).min(total);
        }
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        metrics::gauge!("memory_index_bytes").set(total as f64);
    }
}
