//! Finds passages for a query: the nearest vectors and the best words, fused by rank, and looked up in the store, which
//! knows what still exists and may be shown.

use std::{collections::HashSet, sync::Arc};

use embed::index::{TERM_WEIGHT, VECTOR_WEIGHT, fuse};
use model::WorkspaceId;
use store::memory::{self, Candidate, Owner};

use super::passages::{self, WordKey};
use crate::core::{
    app::App,
    error::{Error, Result},
    ports::Urgency,
    state::indexes::{PassageFilter, WorkspaceIndex},
};

/// How many of each list are looked at in each round, until there are enough that may be shown.
const ROUNDS: [usize; 3] = [64, 512, 4096];

/// What is looked for.
pub(crate) struct Query {
    /// Its vector.
    pub(crate) vector: Arc<Vec<f32>>,
    /// Its words.
    pub(crate) words: Arc<Vec<u32>>,
}

impl Query {
    /// A query from what somebody asked.
    pub(crate) async fn new(app: &App, workspace: &WorkspaceId, text: &str) -> Result<Self> {
        let key = app.data_key(workspace).await?;
        let mut words = WordKey::new(&key).hashes_of_question(text);
        words.sort_unstable();
        words.dedup();
        let vectors = passages::embed(app, vec![text.to_owned()], Urgency::Now).await?;
        let vector = vectors.into_iter().next().unwrap_or_default();
        Ok(Self { vector: Arc::new(vector), words: Arc::new(words) })
    }
}

/// A passage that was found.
pub(crate) struct PassageHit {
    /// The passage.
    pub(crate) candidate: Candidate,
    /// How far it is from the query.
    pub(crate) distance: f64,
}

/// The numbers that fit best, best first, by both lists.
pub(crate) async fn ranked(
    held: &Arc<WorkspaceIndex>,
    query: &Query,
    wanted: &PassageFilter,
    most: usize,
) -> Result<[Vec<i64>; 2]> {
    let (held, wanted) = (held.clone(), wanted.clone());
    let (vector, words) = (query.vector.clone(), query.words.clone());
    let work = move || held.search(&vector, &words, &wanted, most);
    let lists = tokio::task::spawn_blocking(work).await.map_err(Error::internal)?;
    Ok(lists.map(|hits| hits.into_iter().map(|hit| hit.number).collect()))
}

/// The passages that fit a query best, nearest first: one of each memory and mail, several of a document.
pub(crate) async fn find(
    app: &App,
    workspace: &WorkspaceId,
    query: &Query,
    wanted: &PassageFilter,
    most: usize,
) -> Result<Vec<PassageHit>> {
    let held = app.indexes().get(app, workspace).await?;
    let mut found: Vec<PassageHit> = Vec::new();
    let mut seen: HashSet<i64> = HashSet::new();
    for breadth in ROUNDS {
        let lists = ranked(&held, query, wanted, breadth).await?;
        let is_last = lists.iter().all(|list| list.len() < breadth);
        let fused = fuse(&[(VECTOR_WEIGHT, &lists[0]), (TERM_WEIGHT, &lists[1])]);
        let fresh: Vec<i64> =
            fused.into_iter().map(|(number, _)| number).filter(|n| seen.insert(*n)).collect();
        for some in fresh.chunks(most.saturating_mul(4).max(32)) {
            add(app, workspace, query, &held, some, &mut found).await?;
            if found.len() >= most {
                break;
            }
        }
        if found.len() >= most || is_last {
            break;
        }
    }
    found.truncate(most);
    found.sort_by(|one, other| one.distance.total_cmp(&other.distance));
    Ok(found)
}

/// Looks passages up, in the order that they are given in, and adds those that may be shown.
async fn add(
    app: &App,
    workspace: &WorkspaceId,
    query: &Query,
    held: &WorkspaceIndex,
    numbers: &[i64],
    found: &mut Vec<PassageHit>,
) -> Result<()> {
    let (wanted, now) = (numbers.to_vec(), app.now());
    let rows = app.db().read(workspace, async move |tx| memory::candidates(tx, &wanted, now).await);
    let mut rows = rows.await.map_err(Error::from)?;
    let gone: Vec<i64> =
        numbers.iter().copied().filter(|number| !rows.iter().any(|row| row.number == *number)).collect();
    if !gone.is_empty() {
        held.remove(&gone);
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

/// How far a passage is from a query. One whose vector is of another model was found by its words, and is embedded on the
/// way: there are few of them in an answer.
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

/// Whether two passages tell the same: a memory is answered whole, and of a mail one passage is enough.
fn is_same(one: &Owner, other: &Owner) -> bool {
    !matches!(one, Owner::Document(_)) && one == other
}
