//! One call of a tool: its arguments, its confirmation, the call of the API, its result.
//!
//! Every call passes the API's gates and is counted exactly once: by the API call itself, or here if it ends before
//! that.

use http::request::Parts;
use operations::{Entrance, Error, ErrorKind, Rate, Result, confirmations};
use rmcp::model::{CallToolResult, JsonObject, MetaObject};
use serde_json::json;
use web::DoorContext;

use crate::{
    answer,
    guest::Guest,
    meant,
    request::{self, CallDetails, PreparedCall},
    tools::{self, CONFIRMATION, Tool},
};

/// Calls a tool for a guest.
pub(crate) async fn run(
    context: &DoorContext,
    outer: &Parts,
    guest: &Guest,
    tool: &Tool,
    arguments: JsonObject,
) -> CallToolResult {
    let (tool, arguments) = match reading_only(tool, arguments) {
        Ok(chosen) => chosen,
        Err(refused) => return GuestCall { context, guest, tool }.refuse(refused).await,
    };
    let call = GuestCall { context, guest, tool };
    let shown_arguments = serde_json::Value::Object(arguments.clone());
    let prepared =
        guest.profile.admit(tool, arguments).and_then(|arguments| request::prepare(guest, tool, arguments));
    let PreparedCall { request, details } = match prepared {
        Ok(prepared) => prepared,
        Err(refused) => return call.refuse(refused).await,
    };
    if tool.destructive {
        match &details.confirmation {
            None => return call.propose(&details, shown_arguments).await,
            Some(token) => {
                if let Err(refused) = call.confirm(&details, token).await {
                    return call.refuse(refused).await;
                }
            }
        }
    }
    let address = format!("{}{}", context.app().settings().public_url, request.uri());
    let response = context.call(outer, request).await;
    answer::shape(response, address, guest.profile.budget()).await
}

/// A model that calls `read_thread` wants to read: the thread is marked as read only when the call asks for it.
fn reading_only(tool: &Tool, mut arguments: JsonObject) -> Result<(&Tool, JsonObject)> {
    if tool.operation.id != tools::READ_THREAD || meant::take_flag(&mut arguments, tools::MARK_READ)? {
        return Ok((tool, arguments));
    }
    arguments.remove(tools::IDEMPOTENCY_KEY);
    let reads = tools::all().iter().find(|tool| tool.operation.id == tools::GET_THREAD);
    Ok((reads.unwrap_or(tool), arguments))
}

struct GuestCall<'a> {
    context: &'a DoorContext,
    guest: &'a Guest,
    tool: &'a Tool,
}

impl GuestCall<'_> {
    /// Passes the gates of the API without running the operation.
    async fn enter(&self, workspace: Option<&str>) -> (Option<Rate>, Result<Entrance>) {
        let admission =
            self.context.app().admit(self.tool.operation, self.guest.caller.clone(), workspace).await;
        match admission {
            Ok(admission) => (admission.rate, admission.entrance),
            Err(refused) => (None, Err(refused)),
        }
    }

    /// A call that is refused before the API sees it. The gates' errors come first, as everywhere.
    async fn refuse(&self, refused: Error) -> CallToolResult {
        let (rate, entrance) = self.enter(None).await;
        answer::with_rate(answer::failure(&entrance.err().unwrap_or(refused)), rate)
    }

    /// The first call of a destructive tool: what would happen, and the token that confirms it.
    async fn propose(&self, details: &CallDetails, arguments: serde_json::Value) -> CallToolResult {
        let (rate, entrance) = self.enter(details.workspace.as_deref()).await;
        let issued = match entrance {
            Ok(entrance) => {
                let workspace = &entrance.access.workspace;
                confirmations::issue(self.context.app(), workspace, details.fingerprint).await
            }
            Err(refused) => Err(refused),
        };
        let confirmation = match issued {
            Ok(confirmation) => confirmation,
            Err(refused) => return answer::with_rate(answer::failure(&refused), rate),
        };
        let operation = self.tool.operation;
        let value = json!({
            "status": "confirmation_required",
            "done": false,
            "would": operation.summary,
            "tool": self.tool.name(),
            "arguments": arguments,
            "credits": operation.class.credits(),
            CONFIRMATION: confirmation.token,
            "expires_at": confirmation.expires_at,
            "fix": format!("Nothing has happened yet. To do it, call {} again with the same arguments and this {CONFIRMATION}.", self.tool.name()),
        });
        let (value, text) = crate::budget::fit(value, self.guest.profile.budget());
        answer::with_rate(answer::result(value, text, false, MetaObject::new()), rate)
    }

    /// Consumes the token.
    async fn confirm(&self, details: &CallDetails, token: &str) -> Result<()> {
        let workspace = &self.guest.caller.access(None)?.workspace;
        let key = details.idempotency_key.as_deref();
        let app = self.context.app();
        if confirmations::redeem(app, workspace, token, details.fingerprint, key).await? {
            return Ok(());
        }
        let fix = format!("Call {} without {CONFIRMATION} to get a new one.", self.tool.name());
        Err(Error::new(ErrorKind::ConfirmationInvalid).with_fix(fix))
    }
}
