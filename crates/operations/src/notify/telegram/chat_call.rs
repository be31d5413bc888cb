//! Calls on behalf of a chat. An update can come twice, and takes effect once.

use std::sync::Arc;

use model::{Plan, Role, WorkspaceId};
use store::{
    telegram::{self, NoticeRecord},
    workspaces,
};

use crate::core::{
    app::App,
    call::{Call, IdempotencyClaim},
    caller::{Access, Caller},
    error::{Error, ErrorKind, Result},
    operation::Operation,
    request_info::RequestInfo,
    secrets,
};

/// What an update is for the audit log. Its address would be that of the chat service.
pub(super) fn request(number: i64, chat: i64) -> RequestInfo {
    let (id, subject) = (format!("telegram-{number}"), format!("/hooks/telegram/{chat}"));
    RequestInfo { id, subject, address: None }
}

/// A call on behalf of a chat with a role. Its idempotency key is the update's number, so that a repeated update takes
/// effect once.
pub(super) async fn call(
    app: &App,
    operation: &'static Operation,
    (number, role): (i64, Role),
    notice: &NoticeRecord,
) -> Result<Call> {
    let workspace: &WorkspaceId = &notice.workspace_id;
    let mailbox = notice.mailbox_id.clone();
    let found: Result<_, store::Error> = app
        .db()
        .read(workspace, async move |tx| {
            Ok((workspaces::find(tx).await?, telegram::find(tx, &mailbox).await?))
        })
        .await;
    let (found, link) = found?;
    let plan: Plan = found.ok_or_else(|| Error::not_found("Workspace not found"))?.plan;
    let access = Access { workspace: workspace.clone(), name: String::new(), role, plan };
    let caller = Arc::new(Caller::chat(notice.chat_id, link.map(|link| link.chat_title), access.clone()));
    let mut call = Call::new(operation, caller, access, app.now(), request(number, notice.chat_id));
    let key = format!("telegram update {number}");
    call.idempotency = Some(IdempotencyClaim {
        fingerprint: secrets::hash(&key),
        key,
        data_key: app.data_key(workspace).await?,
    });
    Ok(call)
}

/// A repeated call has already taken effect.
pub(super) fn once<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::AlreadyAnswered => Ok(None),
        Err(error) => Err(error),
    }
}
