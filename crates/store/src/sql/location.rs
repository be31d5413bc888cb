//! The configured location of the database.

use std::path::PathBuf;

use tokio_postgres::Config;

/// The location of the database.
#[derive(Clone, Debug)]
pub enum DatabaseLocation {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL server.
    Postgres(PostgresLocation),
}

impl DatabaseLocation {
    /// A PostgreSQL server, if the text is its URL.
    pub fn postgres(url: &str) -> Option<Self> {
        is_postgres_url(url).then(|| Self::Postgres(PostgresLocation::new(url)))
    }
}

/// A PostgreSQL server, and how this node uses it.
#[derive(Clone, Debug)]
pub struct PostgresLocation {
    /// Its connection string, which may name several hosts.
    pub url: String,
    /// The same server without the pooler that `url` names: LISTEN needs a connection of its own.
    pub listen_url: Option<String>,
    /// Maximum connections to `url`. There is one more for LISTEN.
    pub pool: usize,
    /// Whether statements are prepared. A pooler that gives each transaction another connection may not keep them.
    pub prepared_statements: bool,
}

impl PostgresLocation {
    /// Connections of one node: four nodes stay below what PostgreSQL allows by default. Commits of concurrent
    /// transactions are grouped by the server itself.
    pub const DEFAULT_POOL: usize = 20;

    /// A server that is used directly.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), listen_url: None, pool: Self::DEFAULT_POOL, prepared_statements: true }
    }

    /// Whether a pooler is in front, so that a session's settings reach no further than its transaction.
    pub(super) fn has_pooler(&self) -> bool {
        self.listen_url.is_some() || !self.prepared_statements
    }
}

/// Whether a text is a PostgreSQL URL.
pub fn is_postgres_url(text: &str) -> bool {
    let has_scheme = text.starts_with("postgres://") || text.starts_with("postgresql://");
    has_scheme && text.parse::<Config>().is_ok_and(|config| !config.get_hosts().is_empty())
}
