//! What a PostgreSQL server has to be before the service starts on it: reachable, new enough, writable, and with the
//! rights that the service needs. Each thing that is missing is named with what to do.

use tokio_postgres::{Client, Config, Row, error::SqlState};

use super::{
    connection::PoolError,
    connector::{ConnectFault, Connector},
};
use crate::error::{Error, Result};

/// The oldest supported version, as the server numbers it.
const MIN_VERSION: i32 = 140_000;

/// Checks the server and the role of a connection. Nothing is prepared: outside of transactions a pooler may give each
/// message to another server connection.
pub(super) async fn check(client: &Client) -> Result<()> {
    let about = client.query_typed(ABOUT, &[]).await?;
    let about = about.first().ok_or_else(|| Error::Internal("the server says nothing of itself".into()))?;
    let found = About::from_row(about)?;
    found.fault().map_or(Ok(()), |fault| Err(Error::Unavailable(fault.into())))?;
    // Statements that an old server does not know come after the version is checked.
    let forbidden = client.query_typed(FORBIDDEN_TABLE, &[]).await?;
    let Some(forbidden) = forbidden.first() else { return Ok(()) };
    let (table, owner): (String, String) = (forbidden.try_get(0)?, forbidden.try_get(1)?);
    let role = &found.role;
    Err(Error::Unavailable(
        format!(
            "the role \"{role}\" may not read, change and alter the table \"{table}\" of \"{owner}\": connect as \
             \"{owner}\", or run GRANT \"{owner}\" TO \"{role}\" as an administrator"
        )
        .into(),
    ))
}

const ABOUT: &str = "SELECT CAST(current_setting('server_version_num') AS INTEGER), current_setting('server_version'),
    pg_is_in_recovery(), CAST(current_setting('default_transaction_read_only') AS BOOLEAN),
    CAST(current_user AS TEXT), CAST(current_database() AS TEXT), CAST(current_schema() AS TEXT),
    coalesce(has_schema_privilege(current_schema(), 'CREATE') AND has_schema_privilege(current_schema(), 'USAGE')
      OR to_regclass('schema_migration') IS NOT NULL, false)";

/// A table of the service that belongs to a role whose rights the current one does not have. The schema is migrated by
/// every start, and only owners may change a table.
const FORBIDDEN_TABLE: &str = "SELECT CAST(tablename AS TEXT), CAST(tableowner AS TEXT) FROM pg_tables
    WHERE schemaname = current_schema() AND NOT pg_has_role(tableowner, 'USAGE')
      AND EXISTS (SELECT 1 FROM pg_tables AS ours WHERE ours.schemaname = current_schema()
        AND ours.tablename = 'schema_migration')
    ORDER BY tablename <> 'schema_migration', tablename LIMIT 1";

/// A server, and the role that is connected to it.
struct About {
    version_number: i32,
    version: String,
    is_in_recovery: bool,
    is_read_only: bool,
    role: String,
    database: String,
    schema: Option<String>,
    /// Whether it may create the tables, or they are there.
    may_create: bool,
}

impl About {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            version_number: row.try_get(0)?,
            version: row.try_get(1)?,
            is_in_recovery: row.try_get(2)?,
            is_read_only: row.try_get(3)?,
            role: row.try_get(4)?,
            database: row.try_get(5)?,
            schema: row.try_get(6)?,
            may_create: row.try_get(7)?,
        })
    }

    /// What is missing, and what to do.
    fn fault(&self) -> Option<String> {
        let Self { version, role, database, .. } = self;
        if self.version_number < MIN_VERSION {
            let oldest = MIN_VERSION / 10_000;
            return Some(format!(
                "PostgreSQL {version} is too old: upgrade the server to version {oldest} or newer"
            ));
        }
        if self.is_in_recovery {
            return Some(
                "PostgreSQL is in recovery, so nothing can be written: name the primary server in database.url, or \
                 promote this one"
                    .to_owned(),
            );
        }
        if self.is_read_only {
            return Some(format!(
                "PostgreSQL starts transactions of the role \"{role}\" in the database \"{database}\" read-only: run \
                 ALTER DATABASE \"{database}\" SET default_transaction_read_only = off, or the same for the role"
            ));
        }
        let Some(schema) = &self.schema else {
            return Some(format!(
                "the search_path of the role \"{role}\" names no schema that it may use: run GRANT USAGE, CREATE ON \
                 SCHEMA public TO \"{role}\", or correct the search_path"
            ));
        };
        (!self.may_create).then(|| {
            format!(
                "the role \"{role}\" may not create tables in the schema \"{schema}\" of the database \"{database}\": \
                 run GRANT CREATE ON SCHEMA \"{schema}\" TO \"{role}\" as an administrator"
            )
        })
    }
}

/// Why the first connection failed, and what to do.
pub(super) fn connection_fault(connector: &Connector, error: PoolError) -> Error {
    let config = connector.config();
    let (role, database) = (config.get_user().unwrap_or_default(), database(config));
    let unreachable = |cause: &str| {
        let hosts = connector.host_names();
        let fault =
            format!("no connection to PostgreSQL at {hosts}: {cause}: start it, or correct database.url");
        Error::Unavailable(fault.into())
    };
    let cause = match &error {
        PoolError::Backend(ConnectFault::Refused(cause)) => cause,
        PoolError::Backend(ConnectFault::Silent) => return unreachable("it does not answer"),
        _ => return error.into(),
    };
    let Some(code) = cause.code() else {
        // A password that is missing is noticed on this side.
        if config.get_password().is_none() && model::causes(cause).contains("password missing") {
            let fault = format!("PostgreSQL wants a password of the role \"{role}\": add it to database.url");
            return Error::Unavailable(fault.into());
        }
        return unreachable(&model::causes(cause));
    };
    let fault = match *code {
        SqlState::INVALID_CATALOG_NAME => format!(
            "the database \"{database}\" does not exist: run CREATE DATABASE \"{database}\" OWNER \"{role}\" as an \
             administrator, or correct database.url"
        ),
        SqlState::INVALID_PASSWORD => format!(
            "PostgreSQL refuses the password of the role \"{role}\", or there is no such role: correct database.url"
        ),
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION => format!(
            "PostgreSQL does not let the role \"{role}\" in: create the role, or allow it to log in and in pg_hba.conf \
             ({})",
            cause.as_db_error().map_or("no reason was given", tokio_postgres::error::DbError::message)
        ),
        SqlState::INSUFFICIENT_PRIVILEGE => format!(
            "the role \"{role}\" may not connect to the database \"{database}\": run GRANT CONNECT ON DATABASE \
             \"{database}\" TO \"{role}\" as an administrator"
        ),
        SqlState::TOO_MANY_CONNECTIONS => {
            "PostgreSQL has no connection left: raise max_connections, or the role's or \
             the database's CONNECTION LIMIT"
                .to_owned()
        }
        _ => return error.into(),
    };
    Error::Unavailable(fault.into())
}

/// The database, which is named like the role if nothing else is said.
fn database(config: &Config) -> &str {
    config.get_dbname().or(config.get_user()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> About {
        About {
            version_number: 140_000,
            version: "14.0".to_owned(),
            is_in_recovery: false,
            is_read_only: false,
            role: "app".to_owned(),
            database: "mail".to_owned(),
            schema: Some("public".to_owned()),
            may_create: true,
        }
    }

    #[test]
    fn what_a_server_lacks_is_named() {
        assert_eq!(good().fault(), None);
        let faults = [
            (About { version_number: 130_022, version: "13.22".to_owned(), ..good() }, "13.22 is too old"),
            (About { is_in_recovery: true, ..good() }, "in recovery"),
            (About { is_read_only: true, ..good() }, "default_transaction_read_only = off"),
            (About { schema: None, ..good() }, "search_path"),
            (About { may_create: false, ..good() }, "GRANT CREATE ON SCHEMA \"public\" TO \"app\""),
        ];
        for (about, part) in faults {
            let fault = about.fault().unwrap();
            assert!(fault.contains(part) && !fault.contains('\n'), "{fault}");
        }
    }
}
