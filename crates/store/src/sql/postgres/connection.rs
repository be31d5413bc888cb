//! The pool, and a connection with the statements that it has prepared.
//!
//! Behind a pooler that keeps no prepared statements, each statement is sent with its text. The types of its parameters
//! are learnt once for all connections.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use futures_util::StreamExt;
use tokio_postgres::{
    Client, Row, Statement,
    types::{ToSql, Type},
};

use super::connector::{ConnectFault, Connector};
use crate::sql::traffic::Traffic;

/// The connections of this node.
pub(super) type Pool = deadpool::managed::Pool<Connections>;
/// A connection that is taken from the pool.
pub(super) type PooledConnection = deadpool::managed::Object<Connections>;
/// Why there is none.
pub(super) type PoolError = deadpool::managed::PoolError<ConnectFault>;

/// Opens the pool's connections.
pub(super) struct Connections {
    connector: Arc<Connector>,
    /// Where statements are not prepared: what is known about their parameters.
    unprepared: Option<Arc<ParameterTypes>>,
    /// How often the server was lost. A connection from before may be one to a server that hangs, or that is the primary
    /// no more.
    losses: Arc<AtomicU64>,
}

impl Connections {
    pub(super) fn new(connector: Arc<Connector>, prepares: bool, losses: Arc<AtomicU64>) -> Self {
        let unprepared = (!prepares).then(Arc::default);
        Self { connector, unprepared, losses }
    }

    pub(super) fn connector(&self) -> &Connector {
        &self.connector
    }
}

impl Manager for Connections {
    type Type = Connection;
    type Error = ConnectFault;

    async fn create(&self) -> Result<Connection, ConnectFault> {
        let losses = self.losses.load(Ordering::Acquire);
        let (client, mut messages) = self.connector.connect().await?;
        // It ends with the client.
        tokio::spawn(async move { while let Some(Ok(_)) = messages.next().await {} });
        Ok(Connection { client, statements: Mutex::default(), unprepared: self.unprepared.clone(), losses })
    }

    async fn recycle(&self, connection: &mut Connection, _: &Metrics) -> RecycleResult<ConnectFault> {
        if connection.client.is_closed() {
            return Err(RecycleError::message("the connection is closed"));
        }
        if connection.losses != self.losses.load(Ordering::Acquire) {
            return Err(RecycleError::message("the connection is older than the last loss of the server"));
        }
        Ok(())
    }
}

/// The types of the parameters of statements, by their texts.
#[derive(Default)]
pub(super) struct ParameterTypes(Mutex<HashMap<String, Arc<UnpreparedStatement>>>);

impl ParameterTypes {
    fn find(&self, sql: &str) -> Option<Arc<UnpreparedStatement>> {
        locked(&self.0).get(sql).cloned()
    }
}

/// A statement that is sent with its text.
#[derive(Debug)]
pub(super) struct UnpreparedStatement {
    sql: String,
    types: Vec<Type>,
}

/// A statement that can be run.
#[derive(Debug)]
pub(super) enum ReadyStatement {
    Prepared(Statement),
    Unprepared(Arc<UnpreparedStatement>),
}

impl ReadyStatement {
    /// The types of its parameters.
    pub(super) fn types(&self) -> &[Type] {
        match self {
            Self::Prepared(statement) => statement.params(),
            Self::Unprepared(statement) => &statement.types,
        }
    }
}

/// A connection to PostgreSQL.
pub(in crate::sql) struct Connection {
    client: Client,
    /// Those that it has prepared, by their texts.
    statements: Mutex<HashMap<String, Statement>>,
    unprepared: Option<Arc<ParameterTypes>>,
    /// How often the server had been lost when it was opened.
    losses: u64,
}

type Parameters<'a> = [&'a (dyn ToSql + Sync)];

impl Connection {
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Whether a statement can be made ready only within a transaction: a pooler may give what comes outside of one to any
    /// server connection.
    pub(super) fn needs_transaction_for(&self, sql: &str) -> bool {
        self.unprepared.as_ref().is_some_and(|known| known.find(sql).is_none())
    }

    /// The types of a statement's parameters, where it is known and not prepared.
    pub(super) fn unprepared_types(&self, sql: &str) -> Option<Vec<Type>> {
        Some(self.unprepared.as_ref()?.find(sql)?.types.clone())
    }

    /// Makes a statement ready. The first time, the server is asked.
    pub(super) async fn ready(&self, sql: &str) -> Result<ReadyStatement, tokio_postgres::Error> {
        if let Some(known) = &self.unprepared {
            if let Some(statement) = known.find(sql) {
                return Ok(ReadyStatement::Unprepared(statement));
            }
            // Forgotten by the server at once, and before the transaction ends.
            let types = self.client.prepare(sql).await?.params().to_vec();
            Traffic { statements: 0, round_trips: 1 }.record();
            let statement = Arc::new(UnpreparedStatement { sql: sql.to_owned(), types });
            locked(&known.0).insert(sql.to_owned(), statement.clone());
            return Ok(ReadyStatement::Unprepared(statement));
        }
        let prepared = locked(&self.statements).get(sql).cloned();
        if let Some(prepared) = prepared {
            return Ok(ReadyStatement::Prepared(prepared));
        }
        let statement = self.client.prepare(sql).await?;
        Traffic { statements: 0, round_trips: 1 }.record();
        locked(&self.statements).insert(sql.to_owned(), statement.clone());
        Ok(ReadyStatement::Prepared(statement))
    }

    pub(super) async fn query(
        &self,
        statement: &ReadyStatement,
        params: &Parameters<'_>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        match statement {
            ReadyStatement::Prepared(statement) => self.client.query(statement, params).await,
            ReadyStatement::Unprepared(statement) => {
                self.client.query_typed(&statement.sql, &typed(statement, params)).await
            }
        }
    }

    pub(super) async fn execute(
        &self,
        statement: &ReadyStatement,
        params: &Parameters<'_>,
    ) -> Result<u64, tokio_postgres::Error> {
        match statement {
            ReadyStatement::Prepared(statement) => self.client.execute(statement, params).await,
            ReadyStatement::Unprepared(statement) => {
                self.client.execute_typed(&statement.sql, &typed(statement, params)).await
            }
        }
    }

    /// Runs statements without parameters, separated by semicolons.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.client.batch_execute(sql).await
    }
}

fn typed<'a>(
    statement: &UnpreparedStatement,
    params: &Parameters<'a>,
) -> Vec<(&'a (dyn ToSql + Sync), Type)> {
    params.iter().copied().zip(statement.types.iter().cloned()).collect()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
