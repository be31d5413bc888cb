//! Taking a send back: what a person sends leaves some seconds later, as a scheduled send that can be cancelled until then.

use axum::{Router, extract::Path, response::Response, routing::post};
use model::{EmailId, send_policies::PolicyVerdict, sending::NewMail};
use operations::{ErrorKind, Result, scheduled_sends, send_policies};
use serde_json::{Value, json};

use super::{
    fields::input,
    links::encoded,
    undo::{Outcome, Undo},
    visit::Visit,
};
use crate::State;

pub(super) fn routes() -> Router<State> {
    Router::new().route("/console/m/{mailbox}/scheduled/{send}/undo", post(undo))
}

/// How long a send can be taken back; `None` when it leaves at once: the operator has switched that off, the person may
/// send but not schedule, or the message lacks what a schedule needs, which the send then says.
pub(super) fn delay_seconds(visit: &Visit, message: &Value) -> Option<i64> {
    let seconds = visit.limits().undo_send_seconds;
    let is_complete =
        !message["to"].is_null() && message["body"].as_str().is_some_and(|body| !body.is_empty());
    let may = || visit.may(&scheduled_sends::CREATE) && visit.may(&scheduled_sends::CANCEL);
    (seconds > 0 && is_complete && may()).then_some(seconds)
}

/// Whether the send policy lets a message simply leave.
pub(super) async fn would_leave(visit: &Visit, mailbox: &str, message: &Value) -> Result<bool> {
    let mail: NewMail = input(&json!({
        "to": message["to"], "cc": message["cc"], "bcc": message["bcc"], "subject": message["subject"], "text": "-",
    }))?;
    let call = visit.call(&send_policies::CHECK)?;
    let checked = send_policies::check(visit.app(), &call, mailbox, mail).await?;
    Ok(checked.verdict == PolicyVerdict::Send)
}

/// Schedules a message a few seconds ahead, and returns how that is taken back.
pub(super) async fn schedule(
    visit: &Visit,
    mailbox: &str,
    mut message: Value,
    forwards: Option<EmailId>,
    seconds: i64,
) -> Result<Undo> {
    message["scheduled_send_at"] = json!(visit.app().now().plus_seconds(seconds).to_string());
    let call = visit.call(&scheduled_sends::CREATE)?;
    let send =
        scheduled_sends::create_forward(visit.app(), &call, mailbox, input(&message)?, forwards).await?;
    let (mailbox, id) = (encoded(mailbox), encoded(send.id.as_str()));
    Ok(Undo { action: format!("/console/m/{mailbox}/scheduled/{id}/undo"), data: String::new() })
}

/// Cancels such a send and opens its draft.
async fn undo(visit: Visit, Path((mailbox, send)): Path<(String, String)>) -> Response {
    let base = format!("/console/m/{}", encoded(&mailbox));
    let work = async {
        let call = visit.call(&scheduled_sends::CANCEL)?;
        let draft = scheduled_sends::cancel(visit.app(), &call, &mailbox, send.into()).await?;
        let target = format!("{base}/compose?draft={}", encoded(draft.id.as_str()));
        Ok(Outcome { target, ..Outcome::said("Sending undone. This is your draft.".to_owned()) })
    };
    let outcome = work.await.map_err(|refused: operations::Error| match refused.kind() {
        ErrorKind::DraftLocked => operations::Error::with_message(
            ErrorKind::DraftLocked,
            "This message has already been sent, so sending can no longer be undone.",
        ),
        _ => refused,
    });
    visit.leave(&format!("{base}/f/sent"), outcome)
}
