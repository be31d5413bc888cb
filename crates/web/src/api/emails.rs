//! Emails over HTTP.

use std::sync::Arc;

use axum::{body::Bytes, http::Method};
use model::emails::{
    BulkDelete, BulkMove, BulkRead, BulkResult, ContextQuery, DeleteQuery, Deleted, Email, EmailChange,
    EmailContext, EmailPage, EmailQuery, Emptied, Imported, ListQuery, Move, Verification, WaitForEmail,
    WaitResult,
};
use operations::{
    App, Call, Result,
    attachments::{self, Download},
    email_context, emails,
};

use super::paths::{AttachmentPath, EmailAttachmentPath, EmailPath, InMailbox};
use crate::{
    Endpoint,
    input::{Json, MailBody, Path, Query},
};

const TAG: &str = "Emails";

pub(super) fn endpoints() -> Vec<Endpoint> {
    let all = "/api/v1/mailboxes/{mailboxId}/emails";
    let one = "/api/v1/mailboxes/{mailboxId}/emails/{emailId}";
    let bulk_read_path = "/api/v1/mailboxes/{mailboxId}/emails/bulk-read";
    let bulk_move_path = "/api/v1/mailboxes/{mailboxId}/emails/bulk-move";
    let bulk_delete_path = "/api/v1/mailboxes/{mailboxId}/emails/bulk-delete";
    let trash = "/api/v1/mailboxes/{mailboxId}/trash/empty";
    let wait_path = "/api/v1/mailboxes/{mailboxId}/emails/wait";
    let import_path = "/api/v1/mailboxes/{mailboxId}/emails/import";
    let mut endpoints = vec![
        Endpoint::new(TAG, Method::GET, all, &emails::LIST, list),
        Endpoint::new(TAG, Method::GET, one, &emails::GET, get),
        Endpoint::new(TAG, Method::PUT, one, &emails::UPDATE, update),
        Endpoint::new(TAG, Method::DELETE, one, &emails::DELETE, delete),
    ];
    endpoints.extend(of_one_email());
    endpoints.extend([
        Endpoint::new(TAG, Method::POST, bulk_read_path, &emails::BULK_READ, bulk_read),
        Endpoint::new(TAG, Method::POST, bulk_move_path, &emails::BULK_MOVE, bulk_move),
        Endpoint::new(TAG, Method::POST, bulk_delete_path, &emails::BULK_DELETE, bulk_delete),
        Endpoint::new(TAG, Method::POST, trash, &emails::EMPTY_TRASH, empty_trash),
        Endpoint::new(TAG, Method::POST, wait_path, &emails::WAIT, wait),
        Endpoint::new(TAG, Method::POST, import_path, &emails::IMPORT, import),
    ]);
    endpoints
}

/// The routes of a single email: reading and moving it.
fn of_one_email() -> Vec<Endpoint> {
    let context_path = "/api/v1/mailboxes/{mailboxId}/emails/{emailId}/context";
    let raw_path = "/api/v1/mailboxes/{mailboxId}/emails/{emailId}/raw";
    let its_file = "/api/v1/mailboxes/{mailboxId}/emails/{emailId}/attachments/{attachmentId}";
    let any_file = "/api/v1/mailboxes/{mailboxId}/attachments/{attachmentId}";
    let codes = "/api/v1/mailboxes/{mailboxId}/emails/{emailId}/verification";
    let move_path = "/api/v1/mailboxes/{mailboxId}/emails/{emailId}/move";
    vec![
        Endpoint::new(TAG, Method::GET, context_path, &email_context::GET, context),
        Endpoint::download(TAG, raw_path, &emails::RAW, raw),
        Endpoint::download(TAG, its_file, &attachments::GET_OF_EMAIL, attachment_of_email),
        Endpoint::download(TAG, any_file, &attachments::GET, attachment),
        Endpoint::new(TAG, Method::GET, codes, &emails::VERIFICATION, verification),
        Endpoint::new(TAG, Method::POST, move_path, &emails::MOVE, move_one),
    ]
}

async fn list(
    app: App,
    call: Arc<Call>,
    (Path(path), Query(query)): (Path<InMailbox>, Query<ListQuery>),
) -> Result<EmailPage> {
    emails::list(&app, &call, &path.mailbox, query).await
}

async fn get(
    app: App,
    call: Arc<Call>,
    (Path(path), Query(query)): (Path<EmailPath>, Query<EmailQuery>),
) -> Result<Email> {
    emails::get(&app, &call, &path.mailbox, path.email, query).await
}

async fn update(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(change)): (Path<EmailPath>, Json<EmailChange>),
) -> Result<Email> {
    emails::update(&app, &call, &path.mailbox, path.email, change).await
}

async fn delete(
    app: App,
    call: Arc<Call>,
    (Path(path), Query(query)): (Path<EmailPath>, Query<DeleteQuery>),
) -> Result<Deleted> {
    emails::delete(&app, &call, &path.mailbox, path.email, query.permanent).await
}

async fn context(
    app: App,
    call: Arc<Call>,
    (Path(path), Query(query)): (Path<EmailPath>, Query<ContextQuery>),
) -> Result<EmailContext> {
    email_context::get(&app, &call, &path.mailbox, path.email, query).await
}

async fn raw(app: App, call: Arc<Call>, Path(path): Path<EmailPath>) -> Result<Download> {
    let (filename, bytes) = emails::raw(&app, &call, &path.mailbox, path.email).await?;
    Ok(Download { filename, media_type: "message/rfc822".to_owned(), bytes: Bytes::from(bytes) })
}

async fn attachment_of_email(
    app: App,
    call: Arc<Call>,
    Path(path): Path<EmailAttachmentPath>,
) -> Result<Download> {
    attachments::get(&app, &call, &path.mailbox, Some(path.email), path.attachment).await
}

async fn attachment(app: App, call: Arc<Call>, Path(path): Path<AttachmentPath>) -> Result<Download> {
    attachments::get(&app, &call, &path.mailbox, None, path.attachment).await
}

async fn verification(app: App, call: Arc<Call>, Path(path): Path<EmailPath>) -> Result<Verification> {
    emails::verification(&app, &call, &path.mailbox, path.email).await
}

async fn move_one(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(target)): (Path<EmailPath>, Json<Move>),
) -> Result<Email> {
    emails::move_one(&app, &call, &path.mailbox, path.email, target).await
}

async fn bulk_read(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(input)): (Path<InMailbox>, Json<BulkRead>),
) -> Result<BulkResult> {
    emails::bulk_read(&app, &call, &path.mailbox, input).await
}

async fn bulk_move(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(input)): (Path<InMailbox>, Json<BulkMove>),
) -> Result<BulkResult> {
    emails::bulk_move(&app, &call, &path.mailbox, input).await
}

async fn bulk_delete(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(input)): (Path<InMailbox>, Json<BulkDelete>),
) -> Result<BulkResult> {
    emails::bulk_delete(&app, &call, &path.mailbox, input).await
}

async fn empty_trash(app: App, call: Arc<Call>, Path(path): Path<InMailbox>) -> Result<Emptied> {
    emails::empty_trash(&app, &call, &path.mailbox).await
}

async fn wait(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(input)): (Path<InMailbox>, Json<WaitForEmail>),
) -> Result<WaitResult> {
    emails::wait(&app, &call, &path.mailbox, input).await
}

async fn import(
    app: App,
    call: Arc<Call>,
    (Path(path), body): (Path<InMailbox>, MailBody),
) -> Result<Imported> {
    if body.is_mbox {
        emails::import_mbox(&app, &call, &path.mailbox, body.bytes).await
    } else {
        emails::import_message(&app, &call, &path.mailbox, body.bytes).await
    }
}
