//! The configured location of the database.

use std::path::PathBuf;

use tokio_postgres::Config;

/// The location of the database.
#[derive(Clone, Debug)]
pub enum DatabaseLocation {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL connection string.
    Postgres(String),
}

impl DatabaseLocation {
    /// A PostgreSQL server, if the text is its URL.
    pub fn postgres(url: &str) -> Option<Self> {
        is_postgres_url(url).then(|| Self::Postgres(url.to_owned()))
    }
}

/// Whether a text is a PostgreSQL URL.
fn is_postgres_url(text: &str) -> bool {
    let has_scheme = text.starts_with("postgres://") || text.starts_with("postgresql://");
    has_scheme && text.parse::<Config>().is_ok_and(|config| !config.get_hosts().is_empty())
}
