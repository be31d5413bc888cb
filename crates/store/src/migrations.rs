//! Embedded, ordered migrations, applied at start under a lock.
//!
//! A migration is one SQL text in PostgreSQL's types. For SQLite the types are translated; for PostgreSQL the lines
//! `-- postgres: secure TABLE…` enable row-level security on tenant tables. Statements for one engine only follow `--
//! only sqlite: ` or `-- only postgres: `.
//!
//! While nodes are upgraded one after the other, older programs meet a newer schema. A migration that they can live with
//! says so in a line `-- usable since: N`: programs that know the schema up to N may go on, and be started again. An index
//! in a line `-- index: CREATE INDEX …;` is part of a new store, and built in the background in one that is in use.

use std::{borrow::Cow, fmt::Write as _};

use sha2::{Digest, Sha256};

use crate::{
    Db, SystemTx,
    concurrent_indexes::{self, ConcurrentIndex},
    error::{Error, Result},
};

struct Migration {
    version: i64,
    name: &'static str,
    sql: &'static str,
}

const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, name: "foundation", sql: include_str!("../migrations/0001_foundation.sql") },
    Migration { version: 2, name: "mail", sql: include_str!("../migrations/0002_mail.sql") },
    Migration {
        version: 3,
        name: "search_pending",
        sql: include_str!("../migrations/0003_search_pending.sql"),
    },
    Migration { version: 4, name: "outbound", sql: include_str!("../migrations/0004_outbound.sql") },
    Migration {
        version: 5,
        name: "domains and webhooks",
        sql: include_str!("../migrations/0005_domains_webhooks.sql"),
    },
    Migration {
        version: 6,
        name: "password reset",
        sql: include_str!("../migrations/0006_password_reset.sql"),
    },
    Migration { version: 7, name: "payments", sql: include_str!("../migrations/0007_payments.sql") },
    Migration {
        version: 8,
        name: "search_memory",
        sql: include_str!("../migrations/0008_search_memory.sql"),
    },
    Migration { version: 9, name: "query plans", sql: include_str!("../migrations/0009_query_plans.sql") },
    Migration {
        version: 10,
        name: "conversations",
        sql: include_str!("../migrations/0010_conversations.sql"),
    },
    Migration { version: 11, name: "triage", sql: include_str!("../migrations/0011_triage.sql") },
    Migration { version: 12, name: "memory", sql: include_str!("../migrations/0012_memory.sql") },
    Migration { version: 13, name: "mcp", sql: include_str!("../migrations/0013_mcp.sql") },
    Migration { version: 14, name: "telegram", sql: include_str!("../migrations/0014_telegram.sql") },
    Migration { version: 15, name: "search wall", sql: include_str!("../migrations/0015_search_wall.sql") },
    Migration {
        version: 16,
        name: "thread counts",
        sql: include_str!("../migrations/0016_thread_counts.sql"),
    },
    Migration { version: 17, name: "free proofs", sql: include_str!("../migrations/0017_free_proofs.sql") },
    Migration {
        version: 18,
        name: "thread places",
        sql: include_str!("../migrations/0018_thread_places.sql"),
    },
    Migration { version: 19, name: "search later", sql: include_str!("../migrations/0019_search_later.sql") },
    Migration { version: 20, name: "advances", sql: include_str!("../migrations/0020_advances.sql") },
    Migration {
        version: 21,
        name: "password guesses",
        sql: include_str!("../migrations/0021_password_guesses.sql"),
    },
    Migration { version: 22, name: "makers", sql: include_str!("../migrations/0022_makers.sql") },
    Migration { version: 23, name: "turns", sql: include_str!("../migrations/0023_turns.sql") },
    Migration {
        version: 24,
        name: "unproven claims",
        sql: include_str!("../migrations/0024_unproven_claims.sql"),
    },
    Migration {
        version: 25,
        name: "runs of emails",
        sql: include_str!("../migrations/0025_runs_of_emails.sql"),
    },
    Migration { version: 26, name: "message last", sql: include_str!("../migrations/0026_message_last.sql") },
    Migration { version: 27, name: "scoped words", sql: include_str!("../migrations/0027_scoped_words.sql") },
    Migration {
        version: 28,
        name: "search merges",
        sql: include_str!("../migrations/0028_search_merges.sql"),
    },
    Migration { version: 29, name: "search marks", sql: include_str!("../migrations/0029_search_marks.sql") },
    Migration {
        version: 30,
        name: "search storage",
        sql: include_str!("../migrations/0030_search_storage.sql"),
    },
    Migration {
        version: 31,
        name: "counter additions",
        sql: include_str!("../migrations/0031_counter_additions.sql"),
    },
    Migration {
        version: 32,
        name: "keyed look-ups",
        sql: include_str!("../migrations/0032_keyed_look_ups.sql"),
    },
    Migration { version: 33, name: "nodes", sql: include_str!("../migrations/0033_nodes.sql") },
    Migration {
        version: 34,
        name: "storage rounds",
        sql: include_str!("../migrations/0034_storage_rounds.sql"),
    },
    Migration { version: 35, name: "blob names", sql: include_str!("../migrations/0035_blob_names.sql") },
    Migration { version: 36, name: "node figures", sql: include_str!("../migrations/0036_node_figures.sql") },
    Migration {
        version: 37,
        name: "narrowed keys",
        sql: include_str!("../migrations/0037_narrowed_keys.sql"),
    },
    Migration {
        version: 38,
        name: "audit details",
        sql: include_str!("../migrations/0038_audit_details.sql"),
    },
    Migration {
        version: 39,
        name: "send policies",
        sql: include_str!("../migrations/0039_send_policies.sql"),
    },
    Migration { version: 40, name: "suppressions", sql: include_str!("../migrations/0040_suppressions.sql") },
];

/// A migration may take as long as it takes. The lock is any number that nothing else in the database uses.
const POSTGRES_LOCK: &str =
    "SET LOCAL statement_timeout = 0; SELECT pg_advisory_xact_lock(4702111234474983745)";
/// How often a migration is tried that ends in a deadlock.
const MAX_ATTEMPTS: u32 = 10;
/// The newest schema whose programs know only the table `schema_migration`, and refuse a store in which it has a version
/// that they do not know. Later migrations are in the table `migration`, and in the former only if those programs cannot
/// live with them.
const LAST_OF_FIRST_HISTORY: i64 = 32;
/// Begins the line of a migration that says from which schema on programs can live with it.
const USABLE_SINCE: &str = "-- usable since: ";

impl Migration {
    /// The oldest schema whose programs can use the store after this migration.
    fn usable_since(&self) -> i64 {
        let line = self.sql.lines().find_map(|line| line.strip_prefix(USABLE_SINCE));
        line.and_then(|number| number.trim().parse().ok()).unwrap_or(self.version)
    }
}

impl Db {
    /// Brings the schema up to this binary's version. Several nodes may call it at once.
    pub async fn migrate(&self, now: model::Timestamp) -> Result<()> {
        self.migrate_to(Self::newest_schema(), now).await
    }

    /// Brings the schema up to an older version, to restore a backup of it.
    pub async fn migrate_to(&self, version: i64, now: model::Timestamp) -> Result<()> {
        let mut attempt = 1;
        loop {
            let migrated = self.system_write(async move |tx| apply(tx, version, now).await).await;
            match migrated {
                // Other nodes use several of the tables that it locks, perhaps in another order.
                Err(error) if error.is_deadlock() && attempt < MAX_ATTEMPTS => {
                    tracing::warn!(%error, attempt, "migration interrupted by a deadlock; retrying");
                    attempt += 1;
                }
                done => return done,
            }
        }
    }

    /// The version of the schema that this program works with.
    pub fn newest_schema() -> i64 {
        MIGRATIONS.last().map_or(0, |migration| migration.version)
    }

    /// The indexes of migrations that are built while their tables are in use.
    pub fn concurrent_indexes() -> Vec<ConcurrentIndex> {
        let lines = MIGRATIONS.iter().flat_map(|migration| migration.sql.lines());
        lines.filter_map(ConcurrentIndex::of_line).collect()
    }

    /// The version of the schema in the store; 0 when there is none yet.
    pub async fn schema_version(&self) -> Result<i64> {
        self.system_read(async |tx| tx.schema_version().await).await
    }
}

impl SystemTx {
    /// The version of the schema that this transaction sees; 0 when there is none yet.
    pub(crate) async fn schema_version(&mut self) -> Result<i64> {
        Ok(history(self).await?.last().map_or(0, |(version, _)| *version))
    }
}

/// The versions of the store with the checksums of their migrations, in order.
async fn history(tx: &mut SystemTx) -> Result<Vec<(i64, String)>> {
    let tables = tx.tables().await?;
    let has = |name: &str| tables.iter().any(|table| table == name);
    let sql = match (has("schema_migration"), has("migration")) {
        (false, _) => return Ok(Vec::new()),
        (true, false) => "SELECT version, checksum FROM schema_migration ORDER BY version",
        (true, true) => {
            "SELECT version, checksum FROM schema_migration UNION SELECT version, checksum FROM migration
             ORDER BY version"
        }
    };
    tx.all(sql, &[]).await
}

async fn apply(tx: &mut SystemTx, up_to: i64, now: model::Timestamp) -> Result<()> {
    if tx.is_postgres() {
        tx.batch(POSTGRES_LOCK).await?;
    }
    let table = "CREATE TABLE IF NOT EXISTS schema_migration (
        version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL
    );";
    let table = translate(tx, table, true);
    tx.batch(&table).await?;
    let applied = history(tx).await?;
    if let Some((version, _)) = applied.last() {
        require_usable(tx, *version).await?;
    }
    for migration in MIGRATIONS.iter().filter(|migration| migration.version <= up_to) {
        let checksum = checksum(migration.sql);
        match applied.iter().find(|(version, _)| *version == migration.version) {
            Some((_, stored)) if *stored == checksum => {}
            Some(_) => {
                return Err(Error::Corrupt(
                    format!("migration {} of the store differs from this program's", migration.version)
                        .into(),
                ));
            }
            None => {
                let sql = translate(tx, migration.sql, applied.is_empty());
                tx.batch(&sql).await?;
                record(tx, migration, &checksum, now).await?;
            }
        }
    }
    Ok(())
}

/// Refuses a store whose schema a newer program has changed so that this one cannot use it.
async fn require_usable(tx: &mut SystemTx, version: i64) -> Result<()> {
    let newest = Db::newest_schema();
    if version <= newest {
        return Ok(());
    }
    let sql = "SELECT max(coalesce(usable_since, version)) FROM
            (SELECT version FROM schema_migration UNION SELECT version FROM migration) AS all_versions
        LEFT JOIN migration USING (version) WHERE version > $1";
    let found: Option<(Option<i64>,)> = tx.one(sql, &[newest.into()]).await?;
    let since = found.and_then(|(since,)| since).unwrap_or(version);
    if since <= newest {
        tracing::info!(version, newest, "the store has a newer schema that this program can use");
        return Ok(());
    }
    Err(Error::Unavailable(
        format!(
            "the store has schema version {version}, this program knows up to {newest}: run a newer program"
        )
        .into(),
    ))
}

async fn record(
    tx: &mut SystemTx,
    migration: &Migration,
    checksum: &str,
    now: model::Timestamp,
) -> Result<()> {
    let (version, since) = (migration.version, migration.usable_since());
    let values = [version.into(), migration.name.into(), checksum.into(), now.into()];
    if version <= LAST_OF_FIRST_HISTORY {
        let sql =
            "INSERT INTO schema_migration (version, name, checksum, applied_at) VALUES ($1, $2, $3, $4)";
        tx.run(sql, &values).await?;
        return Ok(());
    }
    let sql = "INSERT INTO migration (version, name, checksum, applied_at, usable_since)
        VALUES ($1, $2, $3, $4, $5)";
    tx.run(sql, &[&values[..], &[since.into()]].concat()).await?;
    if since > LAST_OF_FIRST_HISTORY {
        refuse_first_history(tx, version).await?;
    }
    Ok(())
}

/// Refuses programs that do not know a migration from now on, though they could use the store until now.
pub(crate) async fn require(tx: &mut SystemTx, version: i64, now: model::Timestamp) -> Result<()> {
    require_if(tx, version, now, "1 = 1").await
}

/// The same under a condition on the migration's row, in which `$1` is the version and `$2` the time.
pub(crate) async fn require_if(
    tx: &mut SystemTx,
    version: i64,
    now: model::Timestamp,
    condition: &str,
) -> Result<()> {
    let sql = format!(
        "UPDATE migration SET required_since = $2, usable_since = $1
         WHERE version = $1 AND required_since IS NULL AND {condition}"
    );
    if tx.run(&sql, &[version.into(), now.into()]).await? > 0 {
        refuse_first_history(tx, version).await?;
    }
    Ok(())
}

/// Makes programs that know only the first history refuse the store, because of this migration.
async fn refuse_first_history(tx: &mut SystemTx, version: i64) -> Result<()> {
    let sql = "INSERT INTO schema_migration (version, name, checksum, applied_at)
        SELECT version, name, checksum, applied_at FROM migration WHERE version = $1";
    tx.run(sql, &[version.into()]).await?;
    Ok(())
}

/// The statements for the engine. Where nothing is stored yet, and in SQLite, whose writer is one, indexes are built at once.
fn translate(tx: &SystemTx, sql: &str, is_new: bool) -> String {
    let with_indexes = if is_new || !tx.is_postgres() {
        Cow::Owned(sql.replace(concurrent_indexes::PREFIX, ""))
    } else {
        Cow::Borrowed(sql)
    };
    if tx.is_postgres() { for_postgres(&with_indexes) } else { for_sqlite(&with_indexes) }
}

fn for_sqlite(sql: &str) -> String {
    sql.replace("-- only sqlite: ", "")
        .replace("); -- clustered", ") STRICT, WITHOUT ROWID;")
        .replace("\n);", "\n) STRICT;")
        .replace("BIGINT", "INTEGER")
        .replace("BYTEA", "BLOB")
        .replace("DOUBLE PRECISION", "REAL")
}

fn for_postgres(sql: &str) -> String {
    let mut all = sql.replace("-- only postgres: ", "");
    let tables = sql
        .lines()
        .filter_map(|line| line.strip_prefix("-- postgres: secure "))
        .flat_map(str::split_whitespace);
    for table in tables {
        // FORCE, because the tables belong to the role that we connect as.
        let _ = write!(
            all,
            "\nALTER TABLE {table} ENABLE ROW LEVEL SECURITY;\nALTER TABLE {table} FORCE ROW LEVEL SECURITY;\n\
             CREATE POLICY own_workspace ON {table}\n\
             USING (current_setting('mailbox.workspace', true) IN (workspace_id, '*'));\n"
        );
    }
    all
}

fn checksum(sql: &str) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(sql.as_bytes()) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_about_an_index_can_be_read() {
        let lines = MIGRATIONS.iter().flat_map(|migration| migration.sql.lines());
        let marked = lines.filter(|line| line.starts_with(concurrent_indexes::PREFIX)).count();
        assert_eq!(Db::concurrent_indexes().len(), marked);
    }
}
