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
use store::memory::{DOCUMENT_SCOPE, IndexRow, MEMORY_SCOPE};

use crate::core::lock::lock;

/// Indexes that are kept, however small they are.
const CAPACITY: usize = 10_000;

/// The indexes at hand.
#[derive(Default)]
pub(crate) struct Indexes {
    pub(crate) held: Mutex<HashMap<WorkspaceId, Arc<WorkspaceIndex>>>,
    pub(crate) uses: AtomicU64,
}

/// The index of one workspace.
pub(crate) struct WorkspaceIndex {
    pub(crate) inner: RwLock<Inner>,
    /// Whoever brings it up to date holds this.
    pub(crate) refreshing: tokio::sync::Mutex<()>,
    pub(crate) last_use: AtomicU64,
    pub(crate) bytes: AtomicUsize,
}

pub(crate) struct Inner {
    pub(crate) index: Index,
    /// The model whose vectors it holds.
    pub(crate) model: String,
    /// The last change that it holds; nothing before it was filled.
    pub(crate) version: Option<i64>,
    /// What the numbers of groups mean.
    pub(crate) scopes: Vec<String>,
}

/// Which passages are looked for.
#[derive(Clone, Debug)]
pub(crate) struct PassageFilter {
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

impl PassageFilter {
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

impl WorkspaceIndex {
    pub(crate) fn new(dimension: usize, model: &str) -> Self {
        let scopes = vec![MEMORY_SCOPE.to_owned(), DOCUMENT_SCOPE.to_owned()];
        let inner = Inner { index: Index::new(dimension), model: model.to_owned(), version: None, scopes };
        Self {
            inner: RwLock::new(inner),
            refreshing: tokio::sync::Mutex::new(()),
            last_use: AtomicU64::new(0),
            bytes: AtomicUsize::new(0),
        }
    }

    pub(crate) fn read<T>(&self, look: impl FnOnce(&Inner) -> T) -> T {
        look(&self.inner.read().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
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
        wanted: &PassageFilter,
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
    pub(crate) fn add(&mut self, row: &IndexRow) {
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
    /// Forgets the indexes that were not used for the longest time, until the others fit. One is always kept.
    pub(crate) fn make_room(&self, most: usize, keep: &WorkspaceId) {
        let size = |held: &Arc<WorkspaceIndex>| held.bytes.load(Ordering::Relaxed);
        let mut all = lock(&self.held);
        let mut total: usize = all.values().map(size).sum();
        while total > most || all.len() > CAPACITY {
            let others = all.iter().filter(|(workspace, _)| *workspace != keep);
            let oldest = others.min_by_key(|(_, held)| held.last_use.load(Ordering::Relaxed));
            let Some(oldest) = oldest.map(|(workspace, _)| workspace.clone()) else { break };
            total -= all.remove(&oldest).as_ref().map_or(0, size).min(total);
        }
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        metrics::gauge!("memory_index_bytes").set(total as f64);
    }
}
