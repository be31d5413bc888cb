//! Embedded, ordered migrations, applied at start under a lock.
//!
//! A migration is one SQL text in PostgreSQL's types. For SQLite the types are translated; for PostgreSQL the lines
//! `-- postgres: secure TABLE…` enable row-level security on tenant tables. Statements for one engine only follow `--
//! only sqlite: ` or `-- only postgres: `.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::{
    Db, SystemTx,
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
];

/// Any number that nothing else in the database uses.
const POSTGRES_LOCK: &str = "SELECT pg_advisory_xact_lock(4702111234474983745)";

impl Db {
    /// Brings the schema up to this binary's version. Several nodes may call it at once.
    pub async fn migrate(&self, now: model::Timestamp) -> Result<()> {
        self.migrate_to(Self::newest_schema(), now).await
    }

    /// Brings the schema up to an older version, to restore a backup of it.
    pub async fn migrate_to(&self, version: i64, now: model::Timestamp) -> Result<()> {
        self.system_write(async move |tx| apply(tx, version, now).await).await
    }

    /// The version of the schema that this program works with.
    pub fn newest_schema() -> i64 {
        MIGRATIONS.last().map_or(0, |migration| migration.version)
    }

    /// The version of the schema in the store; 0 when there is none yet.
    pub async fn schema_version(&self) -> Result<i64> {
        self.system_read(async |tx| tx.schema_version().await).await
    }
}

impl SystemTx {
    /// The version of the schema that this transaction sees; 0 when there is none yet.
    pub(crate) async fn schema_version(&mut self) -> Result<i64> {
        if !self.tables().await?.iter().any(|table| table == "schema_migration") {
            return Ok(0);
        }
        let found: Option<(Option<i64>,)> =
            self.one("SELECT max(version) FROM schema_migration", &[]).await?;
        Ok(found.and_then(|(version,)| version).unwrap_or(0))
    }
}

async fn apply(tx: &mut SystemTx, up_to: i64, now: model::Timestamp) -> Result<()> {
    if tx.is_postgres() {
        tx.batch(POSTGRES_LOCK).await?;
    }
    let table = "CREATE TABLE IF NOT EXISTS schema_migration (
        version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL
    );";
    let table = translate(tx, table);
    tx.batch(&table).await?;
    let applied: Vec<(i64, String)> =
        tx.all("SELECT version, checksum FROM schema_migration ORDER BY version", &[]).await?;
    let newest = Db::newest_schema();
    if let Some((version, _)) = applied.last()
        && *version > newest
    {
        return Err(Error::Unavailable(format!(
            "the store has schema version {version}, this program knows up to {newest}: run a newer program"
        ).into()));
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
            None => run(tx, migration, &checksum, now).await?,
        }
    }
    Ok(())
}

async fn run(tx: &mut SystemTx, migration: &Migration, checksum: &str, now: model::Timestamp) -> Result<()> {
    let sql = translate(tx, migration.sql);
    tx.batch(&sql).await?;
    tx.run(
        "INSERT INTO schema_migration (version, name, checksum, applied_at) VALUES ($1, $2, $3, $4)",
        &[migration.version.into(), migration.name.into(), checksum.into(), now.into()],
    )
    .await?;
    Ok(())
}

fn translate(tx: &SystemTx, sql: &str) -> String {
    if tx.is_postgres() { for_postgres(sql) } else { for_sqlite(sql) }
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
