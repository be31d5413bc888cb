//! What PostgreSQL says about its connections and its standbys, for operators. SQLite has neither.

use crate::{SystemTx, error::Result, sql::row};

/// A standby, as the primary sees it.
#[derive(Clone, Debug)]
pub struct StandbyRecord {
    /// The name that it gives itself.
    pub name: String,
    /// Where it connects from; empty for a socket of the same machine.
    pub address: String,
    /// What it does, such as `streaming`; `None` where our role may not know.
    pub state: Option<String>,
    /// For how many microseconds it has not applied what was written; `None` when it has applied everything.
    pub lag: Option<i64>,
    /// The bytes that it has not applied.
    pub bytes: Option<i64>,
}

row!(StandbyRecord { name, address, state, lag, bytes });

/// The standbys of the server. A role without the rights of `pg_monitor` sees only that there are some.
pub async fn standbys(tx: &mut SystemTx) -> Result<Vec<StandbyRecord>> {
    if !tx.is_postgres() {
        return Ok(Vec::new());
    }
    tx.all(
        "SELECT coalesce(application_name, ''), coalesce(host(client_addr), ''), state,
           CAST(extract(epoch FROM replay_lag) * 1000000 AS BIGINT),
           CAST(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn) AS BIGINT)
         FROM pg_stat_replication ORDER BY 1, 2, pid LIMIT 100",
        &[],
    )
    .await
}

/// The limits of connections that apply to us; negative ones do not.
struct ConnectionLimits {
    server: i64,
    role: Option<i64>,
    database: Option<i64>,
}

row!(ConnectionLimits { server, role, database });

/// How many connections the server allows a role such as ours, in all and to this database; `None` on SQLite.
pub async fn max_connections(tx: &mut SystemTx) -> Result<Option<i64>> {
    if !tx.is_postgres() {
        return Ok(None);
    }
    let sql = "SELECT CAST(current_setting('max_connections') AS BIGINT)
             - CAST(current_setting('superuser_reserved_connections') AS BIGINT)
             - coalesce(CAST(current_setting('reserved_connections', true) AS BIGINT), 0),
           (SELECT CAST(rolconnlimit AS BIGINT) FROM pg_roles WHERE rolname = current_user),
           (SELECT CAST(datconnlimit AS BIGINT) FROM pg_database WHERE datname = current_database())";
    let found: Option<ConnectionLimits> = tx.one(sql, &[]).await?;
    Ok(found.and_then(|found| {
        let limits = [Some(found.server), found.role, found.database];
        limits.into_iter().flatten().filter(|limit| *limit >= 0).min()
    }))
}
