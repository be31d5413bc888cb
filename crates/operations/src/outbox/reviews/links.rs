//! Links in mails by which an admin decides about one review without logging in. A link names a person: looking at it
//! changes nothing, and with the decision it ends.

use std::sync::Arc;

use model::{ReviewId, Role};
use store::{accounts, reviews, system};

use super::missing;
use crate::core::{
    app::App, call::Call, caller::Caller, error::Result, operation::Operation, request_info::RequestInfo,
    secrets,
};

/// The call of the person that a link is for: on its review only, and only while that person is an admin.
#[crate::boxed]
pub async fn call(
    app: &App,
    review: &ReviewId,
    token: &str,
    operation: &'static Operation,
    request: RequestInfo,
) -> Result<Call> {
    let (hash, wanted) = (secrets::hash(token), review.clone());
    let found = app
        .db()
        .system_read(async move |tx| {
            let Some((workspace, review, account)) = reviews::find_link(tx, &hash).await? else {
                return Ok(None);
            };
            if review != wanted {
                return Ok(None);
            }
            let memberships = system::memberships(tx, &account).await?;
            let member = memberships.into_iter().find(|member| member.workspace_id == workspace);
            Ok::<_, store::Error>(member.zip(accounts::find(tx, &account).await?))
        })
        .await?;
    let (member, account) = found.filter(|(member, _)| member.role == Role::Admin).ok_or_else(missing)?;
    let workspace = member.workspace_id;
    let caller = Caller::by_link(account.id, account.email, (workspace.clone(), member.role, member.plan));
    app.enter_console(operation, Arc::new(caller), Some(workspace.as_str()), request)
}
