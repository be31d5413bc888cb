//! Finds passages for a query: the nearest vectors and the best terms, fused by rank, and loaded from the store,
//! which knows what still exists and may be shown.

use std::{collections::HashSet, sync::Arc};

use embed::index::{TERM_WEIGHT, VECTOR_WEIGHT, fuse};
use model::WorkspaceId;
use store::memory::{self, Candidate, Owner};

use super::passages::{self, TermKey};
use crate::core::{
    app::App,
    error::{Error, Result},
    ports::Urgency,
    state::indexes::{PassageFilter, WorkspaceIndex},
};

/// How many of each list are considered in each round, until enough may be shown.
const ROUND_SIZES: [usize; 3] = [64, 512, 4096];

/// A recall query.
pub(crate) struct Query {
    /// Its vector.
    pub(crate) vector: Arc<Vec<f32>>,
    /// Its terms.
    pub(crate) terms: Arc<Vec<u32>>,
}

impl Query {
    /// A query for a text.
    pub(crate) async fn new(app: &App, workspace: &WorkspaceId, text: &str) -> Result<Self> {
        let key = app.data_key(workspace).await?;
        let mut terms = TermKey::new(&key).query_hashes(text);
        terms.sort_unstable();
        terms.dedup();
        let vectors = passages::embed(app, vec![text.to_owned()], Urgency::Now).await?;
        let vector = vectors.into_iter().next().unwrap_or_default();
        Ok(Self { vector: Arc::new(vector), terms: Arc::new(terms) })
    }
}

/// A passage that matches.
pub(crate) struct PassageHit {
    /// The passage.
    pub(crate) candidate: Candidate,
    /// Its distance to the query.
    pub(crate) distance: f64,
}

/// The numbers of the best passages by both lists, best first.
pub(crate) async fn ranked(
    index: &Arc<WorkspaceIndex>,
    query: &Query,
    filter: &PassageFilter,
    limit: usize,
) -> Result<[Vec<i64>; 2]> {
    let (index, filter) = (index.clone(), filter.clone());
    let (vector, terms) = (query.vector.clone(), query.terms.clone());
    let work = move || index.search(&vector, &terms, &filter, limit);
    let lists = tokio::task::spawn_blocking(work).await.map_err(Error::internal)?;
    Ok(lists.map(|hits| hits.into_iter().map(|hit| hit.number).collect()))
}

/// The best passages for a query, nearest first: one of each memory and email, several of a document.
pub(crate) async fn find(
    app: &App,
    workspace: &WorkspaceId,
    query: &Query,
    filter: &PassageFilter,
    limit: usize,
) -> Result<Vec<PassageHit>> {
    let index = app.indexes().get(app, workspace).await?;
    let mut found: Vec<PassageHit> = Vec::new();
    let mut seen: HashSet<i64> = HashSet::new();
    for breadth in ROUND_SIZES {
        let lists = ranked(&index, query, filter, breadth).await?;
        let is_last = lists.iter().all(|list| list.len() < breadth);
        let fused = fuse(&[(VECTOR_WEIGHT, &lists[0]), (TERM_WEIGHT, &lists[1])]);
        let fresh: Vec<i64> =
            fused.into_iter().map(|(number, _)| number).filter(|n| seen.insert(*n)).collect();
        for some in fresh.chunks(limit.saturating_mul(4).max(32)) {
            add(app, workspace, query, &index, some, &mut found).await?;
            if found.len() >= limit {
                break;
            }
        }
        if found.len() >= limit || is_last {
            break;
        }
    }
    found.truncate(limit);
    found.sort_by(|one, other| one.distance.total_cmp(&other.distance));
    Ok(found)
}

/// Loads passages, in the given order, and adds those that may be shown.
async fn add(
    app: &App,
    workspace: &WorkspaceId,
    query: &Query,
    index: &WorkspaceIndex,
    numbers: &[i64],
    found: &mut Vec<PassageHit>,
) -> Result<()> {
    let (wanted, now) = (numbers.to_vec(), app.now());
    let rows = app.db().read(workspace, async move |tx| memory::candidates(tx, &wanted, now).await);
    let mut rows = rows.await.map_err(Error::from)?;
    let gone: Vec<i64> =
        numbers.iter().copied().filter(|number| !rows.iter().any(|row| row.number == *number)).collect();
    if !gone.is_empty() {
        index.remove(&gone);
    }
    rows.sort_by_key(|row| numbers.iter().position(|number| *number == row.number));
    for candidate in rows {
        let is_another = found.iter().any(|known| is_same(&known.candidate.owner, &candidate.owner));
        if !candidate.is_visible || is_another {
            continue;
        }
        if let Some(distance) = distance(app, workspace, query, &candidate).await? {
            found.push(PassageHit { candidate, distance });
        }
    }
    Ok(())
}

/// The distance of a passage to a query. One with a vector of another model was found by its terms, and is embedded
/// here: there are few of them in a result.
async fn distance(
    app: &App,
    workspace: &WorkspaceId,
    query: &Query,
    candidate: &Candidate,
) -> Result<Option<f64>> {
    if passages::embedder(app)?.model() == candidate.model {
        return Ok(passages::distance(&candidate.vector, &query.vector));
    }
    let key = app.data_key(workspace).await?;
    let text = passages::open(&key, passages::PURPOSE, &candidate.text)?;
    let vectors = passages::embed(app, vec![text], Urgency::Now).await?;
    let stored = vectors.first().map(|vector| passages::stored(app, vector)).transpose()?;
    Ok(stored.and_then(|stored| passages::distance(&stored.exact, &query.vector)))
}

/// Whether two passages are redundant: a memory is returned whole, and one passage of an email is enough.
fn is_same(one: &Owner, other: &Owner) -> bool {
    !matches!(one, Owner::Document(_)) && one == other
}
