//! In-memory indexes, one per workspace, loaded from the store on demand and evicted when space is short.
//!
//! An index has the number of the last change it contains. Before every use the store is asked for its last number,
//! and newer changes are added, so an index is current on every node. Deleted passages are removed when their row
//! turns out to be missing.

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

/// Maximum number of indexes, however small.
const CAPACITY: usize = 10_000;

/// The loaded indexes.
#[derive(Default)]
pub(crate) struct Indexes {
    pub(crate) loaded: Mutex<HashMap<WorkspaceId, Arc<WorkspaceIndex>>>,
    pub(crate) uses: AtomicU64,
}

/// The index of one workspace.
pub(crate) struct WorkspaceIndex {
    pub(crate) inner: RwLock<Inner>,
    /// Locked by the task that refreshes it.
    pub(crate) refreshing: tokio::sync::Mutex<()>,
    pub(crate) last_use: AtomicU64,
    pub(crate) bytes: AtomicUsize,
}

pub(crate) struct Inner {
    pub(crate) index: Index,
    /// The model whose vectors it contains.
    pub(crate) model: String,
    /// The last change it contains; `None` before it was filled.
    pub(crate) version: Option<i64>,
    /// The scope of each group number.
    pub(crate) scopes: Vec<String>,
}

/// Which passages are searched.
#[derive(Clone, Debug)]
pub(crate) struct PassageFilter {
    /// Memories.
    pub(crate) memories: bool,
    /// Documents.
    pub(crate) documents: bool,
    /// Mail.
    pub(crate) mail: MailFilter,
}

/// Which mail is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MailFilter {
    /// None.
    No,
    /// Mail of all mailboxes.
    All,
    /// Mail of some mailboxes.
    Of(Vec<String>),
}

impl PassageFilter {
    fn has(&self, scope: &str) -> bool {
        match scope {
            MEMORY_SCOPE => self.memories,
            DOCUMENT_SCOPE => self.documents,
            mailbox => match &self.mail {
                MailFilter::No => false,
                MailFilter::All => true,
                MailFilter::Of(wanted) => wanted.iter().any(|one| one == mailbox),
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

    pub(crate) fn read<T>(&self, read: impl FnOnce(&Inner) -> T) -> T {
        read(&self.inner.read().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.inner.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let outcome = change(&mut inner);
        self.bytes.store(inner.index.bytes(), Ordering::Relaxed);
        outcome
    }

    /// The nearest passages, and those that match the terms best. Takes milliseconds: not for an async thread.
    pub(crate) fn search(
        &self,
        vector: &[f32],
        terms: &[u32],
        filter: &PassageFilter,
        limit: usize,
    ) -> [Vec<Hit>; 2] {
        self.read(|inner| {
            let groups: Vec<bool> = inner.scopes.iter().map(|scope| filter.has(scope)).collect();
            let is_wanted = |group: u16| groups.get(usize::from(group)).copied().unwrap_or_default();
            [inner.index.nearest(vector, limit, is_wanted), inner.index.matching(terms, limit, is_wanted)]
        })
    }

    /// Removes deleted passages.
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
    /// Evicts the least recently used indexes until the others fit. The given one is kept.
    pub(crate) fn evict(&self, limit: usize, keep: &WorkspaceId) {
        let size = |loaded: &Arc<WorkspaceIndex>| loaded.bytes.load(Ordering::Relaxed);
        let mut all = lock(&self.loaded);
        let mut total: usize = all.values().map(size).sum();
        while total > limit || all.len() > CAPACITY {
            let others = all.iter().filter(|(workspace, _)| *workspace != keep);
            let oldest = others.min_by_key(|(_, loaded)| loaded.last_use.load(Ordering::Relaxed));
            let Some(oldest) = oldest.map(|(workspace, _)| workspace.clone()) else { break };
            total -= all.remove(&oldest).as_ref().map_or(0, size).min(total);
        }
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        metrics::gauge!("memory_index_bytes").set(total as f64);
    }
}
