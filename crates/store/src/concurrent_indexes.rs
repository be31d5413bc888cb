//! Indexes of migrations that PostgreSQL builds while the tables are in use: an upgrade does not stop what others write.
//!
//! Until they are there, the program works without them, only slower. A build that was interrupted leaves an index that
//! is not used; it is removed and built again.

use crate::{Db, SystemTx, error::Result};

/// Begins the line of a migration with a statement `CREATE INDEX name ON table …`.
pub(crate) const PREFIX: &str = "-- index: ";
/// How such a statement begins.
const CREATE: &str = "CREATE INDEX ";

/// An index that is built while its table is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConcurrentIndex {
    /// Its name.
    pub name: String,
    /// What follows the name.
    definition: String,
}

impl ConcurrentIndex {
    /// Reads a statement `CREATE INDEX name ON table …`.
    pub fn parse(statement: &str) -> Option<Self> {
        let rest = statement.trim().strip_suffix(';')?.strip_prefix(CREATE)?;
        let (name, definition) = rest.split_once(' ')?;
        let is_name =
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        is_name.then(|| Self { name: name.to_owned(), definition: definition.to_owned() })
    }

    /// Reads the line of a migration, if it is about such an index.
    pub(crate) fn of_line(line: &str) -> Option<Self> {
        line.strip_prefix(PREFIX).and_then(Self::parse)
    }
}

/// Those of the given indexes that PostgreSQL does not have, or does not use because their build was interrupted.
pub async fn missing(tx: &mut SystemTx, wanted: &[ConcurrentIndex]) -> Result<Vec<ConcurrentIndex>> {
    if !tx.is_postgres() || wanted.is_empty() {
        return Ok(Vec::new());
    }
    let present: Vec<(String,)> = tx
        .all(
            "SELECT CAST(relname AS TEXT) FROM pg_class JOIN pg_index ON indexrelid = pg_class.oid
             WHERE relnamespace = CAST(current_schema() AS regnamespace) AND indisvalid",
            &[],
        )
        .await?;
    let is_missing = |index: &&ConcurrentIndex| !present.iter().any(|(name,)| *name == index.name);
    Ok(wanted.iter().filter(is_missing).cloned().collect())
}

/// What PostgreSQL has of an index that it does not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusableState {
    /// Nothing.
    Missing,
    /// What was built before the build was interrupted.
    Interrupted,
    /// It is being built.
    Building,
}

/// The names of those of the given indexes that PostgreSQL does not use, and what it has of them.
pub async fn unusable(tx: &mut SystemTx, wanted: &[ConcurrentIndex]) -> Result<Vec<(String, UnusableState)>> {
    let missing = missing(tx, wanted).await?;
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    let invalid: Vec<(String, i64)> = tx
        .all(
            "SELECT CAST(relname AS TEXT), CASE WHEN EXISTS (SELECT 1 FROM pg_stat_progress_create_index
               WHERE index_relid = pg_class.oid) THEN CAST(1 AS BIGINT) ELSE 0 END
             FROM pg_class JOIN pg_index ON indexrelid = pg_class.oid
             WHERE relnamespace = CAST(current_schema() AS regnamespace) AND NOT indisvalid",
            &[],
        )
        .await?;
    let state = |index: &ConcurrentIndex| match invalid.iter().find(|(name, _)| *name == index.name) {
        None => UnusableState::Missing,
        Some((_, 0)) => UnusableState::Interrupted,
        Some(_) => UnusableState::Building,
    };
    Ok(missing.into_iter().map(|index| (index.name.clone(), state(&index))).collect())
}

impl Db {
    /// Builds an index while its table is in use, however long that takes. Nothing else must build it at the same time.
    pub async fn build_index(&self, index: &ConcurrentIndex) -> Result<()> {
        let ConcurrentIndex { name, definition } = index;
        for statement in [
            format!("DROP INDEX CONCURRENTLY IF EXISTS {name}"),
            format!("CREATE INDEX CONCURRENTLY {name} {definition}"),
        ] {
            self.run_outside_transaction(&statement).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_read() {
        let index =
            ConcurrentIndex::parse("CREATE INDEX audit_actor ON audit (workspace_id, actor);").unwrap();
        assert_eq!(
            (index.name.as_str(), index.definition.as_str()),
            ("audit_actor", "ON audit (workspace_id, actor)")
        );
        for text in
            ["CREATE INDEX a ON b (c)", "CREATE UNIQUE INDEX a ON b (c);", "CREATE INDEX a-b ON c (d);", ""]
        {
            assert_eq!(ConcurrentIndex::parse(text), None, "{text}");
        }
        assert_eq!(
            ConcurrentIndex::of_line("-- index: CREATE INDEX audit_actor ON audit (workspace_id, actor);"),
            Some(index)
        );
    }
}
