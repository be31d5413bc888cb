//! `backup` and `restore`: everything but the master key, out of one store and into another, whatever the engines.

mod restore;
mod save;

pub(super) use self::{restore::restore, save::save};

/// Blobs that are carried at once.
const MAX_CONCURRENT_BLOBS: usize = 4;
/// Pieces of rows between the database and the files.
const PIECE_CAPACITY: usize = 2;
