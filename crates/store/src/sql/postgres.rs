//! PostgreSQL: a small pool, prepared statements, and row-level security as a second wall.
//!
//! The workspace is told to the server by a session variable. That statement and BEGIN are sent together with the
//! first real one, so they cost no round trip of their own.

use std::{sync::Arc, time::Duration};

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use futures_util::future::{try_join, try_join_all, try_join3};
use tokio::sync::broadcast;
use tokio_postgres::{Config, NoTls, Statement, config::SslMode, types::ToSql};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    Param, ReadRow, Row, Scope, Session, SystemTx, Topic, Wake, Way,
    group::{Groups, Open},
    listener::Listener,
    value::{Cells, KeptStatement, KeptSum, added_up},
    work::Work,
};
use crate::error::{Error, Result};

/// Connections of one node. Commits of concurrent transactions are grouped by the server itself.
const POOL: usize = 24;
/// How long a call waits for a connection before it is told to come again.
const POOL_WAIT: Duration = Duration::from_secs(5);
/// How long making a connection may take.
const CONNECT_WAIT: Duration = Duration::from_secs(2);

/// Whether a text is a URL that we could connect with.
pub(super) fn is_url(text: &str) -> bool {
    let has_scheme = text.starts_with("postgres://") || text.starts_with("postgresql://");
    has_scheme && text.parse::<Config>().is_ok_and(|config| !config.get_hosts().is_empty())
}

pub(super) struct PostgresEngine {
    pool: Pool,
    listener: Listener,
    groups: Groups,
}

impl PostgresEngine {
    pub(super) async fn open(url: &str) -> Result<Self> {
        let mut config: Config = url.parse().map_err(|error| {
            Error::Unavailable(format!("database.url is not a connection string: {error}").into())
        })?;
        config.application_name("agent-mailbox");
        config.connect_timeout(CONNECT_WAIT);
        // A statement that runs this long helps nobody; a transaction left open would block others.
        config.options("-c statement_timeout=15s -c idle_in_transaction_session_timeout=30s");
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = if config.get_ssl_mode() == SslMode::Disable {
            Manager::from_config(config.clone(), NoTls, recycling)
        } else {
            Manager::from_config(config.clone(), tls()?, recycling)
        };
        let pool = Pool::builder(manager)
            .max_size(POOL)
            .wait_timeout(Some(POOL_WAIT))
            .create_timeout(Some(POOL_WAIT))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| Error::Internal(error.into()))?;
        drop(pool.get().await?);
        Ok(Self { pool, listener: Listener::start(config), groups: Groups::default() })
    }

    /// Does some work, as long as the server is there, and gives it back with its outcome.
    pub(super) async fn perform(
        &self,
        way: Way<'_>,
        scope: Scope,
        mut work: Box<dyn Work>,
    ) -> Result<Box<dyn Work>> {
        let done = async {
            match way {
                Way::Write => self.transaction(scope, BEGIN, &mut *work).await,
                Way::SharedWrite(key) => self.shared_write(key, &mut *work).await,
                Way::Read => self.read(scope, &mut *work).await,
                Way::Snapshot => self.transaction(scope, BEGIN_SNAPSHOT, &mut *work).await,
            }
        };
        self.listener.unless_down(done).await?;
        Ok(work)
    }

    /// Does some work in the open transaction of its key's group, or in a new one, each in a savepoint. The last of a group
    /// commits for all.
    async fn shared_write(&self, key: &str, work: &mut dyn Work) -> Result<()> {
        let mut turn = self.groups.join(key).await?;
        let mut open = match turn.take() {
            Some(open) => open,
            None => Open::new(self.begin(Scope::System, Some(BEGIN)).await?),
        };
        // When this fails the connection is of no use: all of the group fail with it.
        let succeeded = in_savepoint(&mut open.tx, work).await?;
        let committed = succeeded.then(|| open.join());
        if let Some((mut open, turn)) = turn.pass(open) {
            let outcome = open.tx.postgres_finish(true).await;
            open.tell(&outcome);
            // Those who came meanwhile begin only now, when the locks are free.
            drop((open, turn));
        }
        match committed {
            Some(committed) => committed.await,
            None => Ok(()),
        }
    }

    async fn transaction(&self, scope: Scope, begin: &'static str, work: &mut dyn Work) -> Result<()> {
        let mut tx = self.begin(scope, Some(begin)).await?;
        let succeeded = work.run(&mut tx).await;
        let finished = tx.postgres_finish(succeeded).await;
        // What failed says why itself.
        if succeeded { finished } else { Ok(()) }
    }

    async fn read(&self, scope: Scope, work: &mut dyn Work) -> Result<()> {
        let mut tx = self.begin(scope, None).await?;
        work.run(&mut tx).await;
        Ok(())
    }

    /// Takes a connection, to open a transaction on it with the given statement or to read without one.
    async fn begin(&self, scope: Scope, transaction: Option<&'static str>) -> Result<SystemTx> {
        let client = self.pool.get().await?;
        let set_workspace = if transaction.is_some() { SET_FOR_TRANSACTION } else { SET_FOR_SESSION };
        let set_workspace = client.prepare_cached(set_workspace).await?;
        let begin = Begin { transaction, set_workspace, setting: scope.setting().to_owned() };
        let session = PostgresSession {
            client: Some(client),
            begin: Some(begin),
            open: false,
            later: Vec::new(),
            sums: Vec::new(),
            adds_later: false,
        };
        Ok(SystemTx::new(Session::Postgres(session), &scope))
    }

    pub(super) fn listen(&self, topic: Topic) -> broadcast::Receiver<Wake> {
        self.listener.wakes(topic)
    }
}

/// TLS that checks certificates against the system's roots. With `sslmode=prefer` a server without TLS is accepted.
pub(super) fn tls() -> Result<MakeRustlsConnect> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = rustls_platform_verifier::Verifier::new(provider.clone())
        .map_err(|error| Error::Unavailable(format!("no root certificates: {error}").into()))?;
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Internal(error.into()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

const BEGIN: &str = "BEGIN";
/// What every statement of the transaction sees is what was there at the first one.
const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

// A transaction keeps the variable to itself; a bare read sets it for the session, and the next user sets it anew.
const SET_FOR_TRANSACTION: &str = "SELECT set_config('mailbox.workspace', $1, true)";
const SET_FOR_SESSION: &str = "SELECT set_config('mailbox.workspace', $1, false)";

/// A pooled connection while a transaction uses it.
pub(super) struct PostgresSession {
    /// Present until it is thrown away.
    client: Option<Object>,
    /// What must be sent ahead of the first statement.
    begin: Option<Begin>,
    /// Whether a transaction is open on the server.
    open: bool,
    /// Statements that go out with the next one.
    later: Vec<KeptStatement>,
    /// Amounts that are added at the end of a group.
    sums: Vec<KeptSum>,
    /// Whether this is a group, whose members never look at what they add to.
    adds_later: bool,
}

/// Statements that are held back at most.
const MOST_LATER: usize = 64;
const SAVEPOINT: &str = "SAVEPOINT job";

struct Begin {
    transaction: Option<&'static str>,
    set_workspace: Statement,
    setting: String,
}

impl Begin {
    async fn send(self, client: &Object) -> Result<()> {
        let set = [&self.setting as &(dyn ToSql + Sync)];
        let set = client.query(&self.set_workspace, &set);
        if let Some(begin) = self.transaction {
            try_join(client.batch_execute(begin), set).await?;
        } else {
            set.await?;
        }
        Ok(())
    }
}

impl PostgresSession {
    /// Runs `work`, with what must precede it sent in the same breath.
    async fn with_begin<T>(
        &mut self,
        sql: &str,
        work: impl AsyncFnOnce(&Object, &Statement) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T> {
        let begin = self.begin.take();
        self.open |= begin.as_ref().is_some_and(|begin| begin.transaction.is_some());
        let client = self.client.as_ref().ok_or_else(|| Error::Internal("the connection is gone".into()))?;
        let later = std::mem::take(&mut self.later);
        let mut ready = Vec::with_capacity(later.len());
        for kept in &later {
            ready.push((client.prepare_cached(&kept.sql).await?, kept.params()));
        }
        let statement = client.prepare_cached(sql).await?;
        let work = async { Ok(work(client, &statement).await?) };
        match (begin, ready.is_empty()) {
            (None, true) => work.await,
            (Some(begin), true) => Ok(try_join(begin.send(client), work).await?.1),
            (None, false) => Ok(try_join(send_all(client, &ready), work).await?.1),
            (Some(begin), false) => {
                Ok(try_join3(begin.send(client), send_all(client, &ready), work).await?.2)
            }
        }
    }

    /// Keeps a statement for the next trip.
    pub(super) async fn later(&mut self, sql: &str, params: &[Param<'_>]) -> Result<()> {
        self.later.push(KeptStatement::new(sql, params));
        if self.later.len() >= MOST_LATER { self.flush().await } else { Ok(()) }
    }

    /// Adds amounts to a row; in a group once for all that add to the same one.
    pub(super) async fn add_at_end(
        &mut self,
        sql: &'static str,
        row: &[Param<'_>],
        amounts: &[i64],
    ) -> Result<()> {
        let sum = KeptSum::new(sql, row, amounts);
        if self.adds_later {
            self.sums.push(sum);
            return Ok(());
        }
        self.later(sql, &sum.params()).await
    }

    /// Sends what was kept.
    async fn flush(&mut self) -> Result<()> {
        let Some(last) = self.later.pop() else { return Ok(()) };
        self.run(&last.sql, &last.params()).await?;
        Ok(())
    }

    /// Forgets what was done since the savepoint.
    async fn undo(&mut self) -> Result<()> {
        // It may not even have been sent.
        if let Some(at) = self.later.iter().position(|kept| kept.sql == SAVEPOINT) {
            self.later.truncate(at);
            return Ok(());
        }
        self.later.clear();
        let client = self.client.as_ref().ok_or_else(|| Error::Internal("the connection is gone".into()))?;
        Ok(client.batch_execute("ROLLBACK TO job; RELEASE job").await?)
    }

    pub(super) async fn run(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        let params = dynamic(params);
        self.with_begin(sql, async |client, statement| client.execute(statement, &params).await).await
    }

    /// Runs a query and has its rows read.
    pub(super) async fn rows(&mut self, sql: &str, params: &[Param<'_>], read: ReadRow<'_>) -> Result<()> {
        let params = dynamic(params);
        let rows =
            self.with_begin(sql, async |client, statement| client.query(statement, &params).await).await?;
        rows.iter().try_for_each(|row| read(&mut Row { cells: Cells::Postgres(row), next: 0 }))
    }

    pub(super) async fn batch(&mut self, sql: &str) -> Result<()> {
        self.run("SELECT 1", &[]).await?;
        let client = self.client.as_ref().ok_or_else(|| Error::Internal("the connection is gone".into()))?;
        Ok(client.batch_execute(sql).await?)
    }

    async fn finish(&mut self, commit: bool) -> Result<()> {
        let sums = added_up(std::mem::take(&mut self.sums));
        if commit {
            for sum in sums {
                self.later(sum.sql, &sum.params()).await?;
            }
        }
        if commit && !self.later.is_empty() {
            // In one trip: after a statement that failed, this COMMIT only ends the transaction.
            self.run("COMMIT", &[]).await?;
        } else if let Some(client) = &self.client
            && self.open
        {
            client.batch_execute(if commit { "COMMIT" } else { "ROLLBACK" }).await?;
        }
        self.later.clear();
        self.open = false;
        Ok(())
    }
}

/// Sends statements without waiting for one before the next.
async fn send_all(client: &Object, ready: &[(Statement, Vec<Param<'_>>)]) -> Result<()> {
    let send = async |(statement, params): &(Statement, Vec<Param<'_>>)| {
        client.execute(statement, &dynamic(params)).await
    };
    try_join_all(ready.iter().map(send)).await?;
    Ok(())
}

/// Does some work so that its failure leaves no trace, and tells whether it succeeded. Fails itself when the connection is
/// broken.
async fn in_savepoint(tx: &mut SystemTx, work: &mut dyn Work) -> Result<bool> {
    tx.enter(&Scope::System.workspace());
    let session = tx.postgres()?;
    session.adds_later = true;
    let sums = session.sums.len();
    session.later(SAVEPOINT, &[]).await?;
    let mut succeeded = work.run(tx).await;
    let session = tx.postgres()?;
    if succeeded {
        let released = async {
            session.later("RELEASE job", &[]).await?;
            session.flush().await
        };
        if let Err(error) = released.await {
            work.fail(error);
            succeeded = false;
        }
    }
    if !succeeded {
        session.sums.truncate(sums);
        session.undo().await?;
    }
    Ok(succeeded)
}

fn dynamic<'a>(params: &'a [Param<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    params.iter().map(|param| param as &(dyn ToSql + Sync)).collect()
}

impl Drop for PostgresSession {
    fn drop(&mut self) {
        // A transaction that was abandoned half-way must not be met by the next user of the connection.
        if self.open
            && let Some(client) = self.client.take()
        {
            drop(Object::take(client));
        }
    }
}

impl SystemTx {
    fn postgres(&mut self) -> Result<&mut PostgresSession> {
        match &mut self.inner.session {
            Session::Postgres(session) => Ok(session),
            Session::Sqlite(_) => Err(Error::Internal("not a PostgreSQL session".into())),
        }
    }

    async fn postgres_finish(&mut self, commit: bool) -> Result<()> {
        match &mut self.inner.session {
            Session::Postgres(session) => session.finish(commit).await,
            Session::Sqlite(_) => Ok(()),
        }
    }
}
