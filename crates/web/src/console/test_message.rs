//! The button that delivers a test message to a mailbox.

use axum::{
    Router,
    extract::{Path, Request},
    response::Response,
    routing::post,
};
use operations::{emails, test_message};

use super::{
    fields::Fields,
    links::{encoded, safe_next},
    visit::Visit,
};
use crate::State;

pub(super) fn routes() -> Router<State> {
    Router::new().route("/console/m/{mailbox}/test-message", post(send))
}

async fn send(visit: Visit, Path(mailbox): Path<String>, request: Request) -> Response {
    let inbox = format!("/console/m/{}/f/inbox", encoded(&mailbox));
    let work = async {
        let fields = Fields::read(request).await?;
        // The same permission as putting a message into the mailbox by an import.
        let call = visit.call(&emails::IMPORT)?;
        test_message::deliver(visit.app(), &call, &mailbox).await?;
        let target = fields.given("back").map_or(inbox.as_str(), safe_next);
        Ok((target.to_owned(), "Test message delivered.".to_owned()))
    };
    visit.act(&inbox, work).await
}
