//! The yardstick over the service's own rows: an axum handler that runs the same store functions, opens the same sealed
//! content, returns the same fields and sends the same bytes. It has no key, no plan, no credits, no scan gate and no
//! options.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use model::{
    EmailId, ThreadId, Timestamp, WorkspaceId,
    emails::{Email, EmailPage, SortColumn, SortDirection},
    folders::SystemFolder,
};
use store::{
    Db, Tx,
    contents::{self, HeaderSource, Part, ReadableContent, StoredPart},
    emails::{self, EmailFilter, EmailRecord, Sort},
    mailboxes::{self, MailboxName},
    vault::DataKey,
};

/// Messages of a page.
pub(crate) const PAGE_SIZE: usize = 50;
/// Emails of a thread in one response.
const MAX_IN_THREAD: i64 = 500;

/// The baseline.
#[derive(Clone)]
pub(crate) struct BareHandler {
    pub(crate) db: Db,
    pub(crate) workspace: WorkspaceId,
    pub(crate) key: Arc<DataKey>,
    /// What pages end with: cursors are sealed and never repeat.
    pub(crate) cursor: String,
}

impl BareHandler {
    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/api/v1/mailboxes/{mailbox}/emails", get(list))
            .route("/api/v1/mailboxes/{mailbox}/emails/{email}", get(find))
            .route("/api/v1/mailboxes/{mailbox}/threads/{thread}", get(thread))
            .with_state(self)
    }

    fn open(&self, content: &ReadableContent) -> Option<(String, String)> {
        let (HeaderSource::Sealed(headers), StoredPart::InRow(body)) = (&content.headers, &content.body)
        else {
            return None;
        };
        let headers = contents::open(&self.key, &content.id, Part::Headers, headers).ok()?;
        let body = contents::open(&self.key, &content.id, Part::Body, body).ok()?;
        Some((String::from_utf8(body).ok()?, String::from_utf8(headers).ok()?))
    }
}

async fn list(State(bare): State<BareHandler>, Path(mailbox): Path<String>) -> Response {
    let read = async move |tx: &mut Tx| {
        let named = MailboxName::PublicId(mailbox);
        let filter = EmailFilter { held_after: Some(now()), ..EmailFilter::default() };
        let sort = Sort { column: SortColumn::Date, direction: SortDirection::Descending };
        let limit = i64::try_from(PAGE_SIZE + 1).unwrap_or_default();
        let mut records = emails::select_list((&named).into(), &filter, sort, None, 0, limit);
        let mut total = emails::select_total(&named, &filter);
        tx.select(&mut [&mut total, &mut records]).await?;
        Ok::<_, store::Error>(total.row().map(|total| (records.rows(), total.figure)))
    };
    let Ok(Some((mut records, total_count))) = bare.db.read(&bare.workspace, read).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let has_more = records.len() > PAGE_SIZE;
    records.truncate(PAGE_SIZE);
    let emails = records.into_iter().map(|record| {
        let mut email = to_email(record);
        email.body.clone_from(&email.snippet);
        email
    });
    answer(&EmailPage { emails: emails.collect(), total_count, has_more, next_cursor: Some(bare.cursor) })
}

async fn find(State(bare): State<BareHandler>, Path((mailbox, email)): Path<(String, EmailId)>) -> Response {
    let read = async move |tx: &mut Tx| {
        emails::find_with_content::<ReadableContent>(tx, &MailboxName::PublicId(mailbox), &email).await
    };
    let Ok(Some(found)) = bare.db.read(&bare.workspace, read).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let Some((body, headers)) = bare.open(&found.content) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    answer(&Email { body: Some(body), raw_headers: Some(headers), ..to_email(found.email) })
}

async fn thread(
    State(bare): State<BareHandler>,
    Path((mailbox, thread)): Path<(String, ThreadId)>,
) -> Response {
    let read = async move |tx: &mut Tx| {
        let named = MailboxName::PublicId(mailbox);
        let mut about = mailboxes::select_with_folder(&named, None);
        let mut records =
            emails::select_thread_end((&named).into(), &thread, None, Some(now()), MAX_IN_THREAD);
        tx.select(&mut [&mut about, &mut records]).await?;
        if about.row().is_none() {
            return Ok(None);
        }
        let mut records = records.rows();
        records.reverse();
        let ids: Vec<&str> = records.iter().map(|record| record.content_id.as_str()).collect();
        let contents = contents::find_views::<ReadableContent>(tx, &ids).await?;
        Ok::<_, store::Error>(Some((records, contents)))
    };
    let Ok(Some((records, contents))) = bare.db.read(&bare.workspace, read).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let count = i64::try_from(records.len()).unwrap_or(i64::MAX);
    let opened: Option<Vec<Email>> = records
        .into_iter()
        .map(|record| {
            let content = contents.iter().find(|content| content.id == record.content_id)?;
            let (body, headers) = bare.open(content)?;
            let email = to_email(record);
            Some(Email { body: Some(body), raw_headers: Some(headers), thread_count: Some(count), ..email })
        })
        .collect();
    opened.map_or_else(|| StatusCode::INTERNAL_SERVER_ERROR.into_response(), |emails| answer(&emails))
}

#[expect(clippy::disallowed_methods, reason = "the bare handler has no service to ask for the time")]
fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or_default())
}

fn answer(body: &impl serde::Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// A clean email without its body, through the service's own presenter: what is measured is everything around it.
fn to_email(record: EmailRecord) -> Email {
    let folder_name =
        SystemFolder::of(&record.folder_id).map(SystemFolder::name).unwrap_or_default().to_owned();
    operations::emails::metadata(record, folder_name, false, false)
}
