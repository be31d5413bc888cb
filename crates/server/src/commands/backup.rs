//! `backup` and `restore`: everything except the master key, between stores of any engine.

mod restore;
mod save;

pub(super) use self::{restore::restore, save::save};

/// Maximum blobs copied at once.
const MAX_CONCURRENT_BLOBS: usize = 4;
/// Chunks of rows between the database and the files.
const PIECE_CAPACITY: usize = 2;
