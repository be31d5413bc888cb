//! The yardstick of a read on PostgreSQL: a handler over tokio-postgres alone, which issues the same statements in the
//! same round trip and sends the same bytes. It has no key, no metering and no store.

use std::sync::{Arc, Mutex, PoisonError};

use axum::{
    Router,
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use model::{Timestamp, WorkspaceId, labels::Label};
use store::{DatabaseLocation, labels, mailboxes::MailboxName};
use tokio::sync::Semaphore;
use tokio_postgres::{Client, NoTls, Row, Statement, types::ToSql};

use crate::measured_store::MeasuredStore;

/// Connections, as many as the service has.
const CONNECTIONS: usize = 24;

/// A connection with its prepared statement.
struct Prepared {
    client: Client,
    labels: Statement,
}

#[derive(Clone)]
struct Pool {
    idle: Arc<Mutex<Vec<Prepared>>>,
    permits: Arc<Semaphore>,
    workspace: WorkspaceId,
}

/// A router for the labels of a mailbox.
pub(crate) async fn router(store: &MeasuredStore, workspace: WorkspaceId) -> Router {
    let DatabaseLocation::Postgres(server) = &store.location else { panic!("the store is on PostgreSQL") };
    let sql = labels::list_named_statement(&MailboxName::PublicId(String::new()));
    let mut idle = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        let (client, connection) =
            tokio_postgres::connect(&server.url, NoTls).await.expect("the server answers");
        tokio::spawn(connection);
        let labels = client.prepare(&sql).await.expect("the statement is right");
        idle.push(Prepared { client, labels });
    }
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    let pool = Pool { idle: Arc::new(Mutex::new(idle)), permits, workspace };
    Router::new().route("/api/v1/mailboxes/{mailbox}/custom-labels", get(list)).with_state(pool)
}

async fn list(State(pool): State<Pool>, Path(mailbox): Path<String>) -> Response {
    let Ok(_permit) = pool.permits.acquire().await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let connection = pool.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let Some(connection) = connection else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let read = read(&connection, pool.workspace.as_str(), &mailbox).await;
    pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    match read.map(|labels| serde_json::to_vec(&labels)) {
        Ok(Ok(body)) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        _ => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// All three are sent before the first is answered.
async fn read(
    connection: &Prepared,
    workspace: &str,
    mailbox: &str,
) -> Result<Vec<Label>, tokio_postgres::Error> {
    let Prepared { client, labels } = connection;
    let begin = format!(
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL mailbox.workspace = E'{workspace}'"
    );
    let keys: [&(dyn ToSql + Sync); 2] = [&workspace, &mailbox];
    let ((), rows, ()) = tokio::try_join!(
        biased;
        client.batch_execute(&begin),
        client.query(labels, &keys),
        client.batch_execute("COMMIT"),
    )?;
    rows.iter().filter(|row| !row.get::<_, bool>(0)).map(label).collect()
}

fn label(row: &Row) -> Result<Label, tokio_postgres::Error> {
    let text = |index: usize| row.try_get::<_, String>(index);
    Ok(Label {
        id: text(1)?.into(),
        mailbox_id: text(2)?.into(),
        name: text(3)?,
        slug: text(4)?,
        rules: text(5)?,
        color: text(6)?,
        sort_order: row.try_get(7)?,
        created_at: Timestamp::from_micros(row.try_get(8)?),
        updated_at: Timestamp::from_micros(row.try_get(9)?),
    })
}
