//! A test message for a mailbox, delivered here by the same path as mail from elsewhere, so that a new mailbox shows that it
//! works before anybody writes to it.

use axum::{
    Router,
    extract::{Path, Request},
    response::Response,
    routing::post,
};
use model::mailboxes::Mailbox;
use operations::{Error, ErrorKind, Result, emails, inbound, mailboxes};

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
        deliver(&visit, &mailbox).await?;
        let target = fields.given("back").map_or(inbox.as_str(), safe_next);
        Ok((target.to_owned(), "Test message delivered.".to_owned()))
    };
    visit.act(&inbox, work).await
}

/// Delivers the message. It costs nothing: nobody called the API, and no other server took part.
async fn deliver(visit: &Visit, mailbox: &str) -> Result<()> {
    // The same permission as putting a message into the mailbox by an import.
    visit.call(&emails::IMPORT)?;
    let app = visit.app();
    let found = mailboxes::get(app, &visit.call(&mailboxes::GET)?, mailbox).await?;
    let refused = |refusal: inbound::Refusal| {
        Error::with_message(
            ErrorKind::RecipientsRefused,
            format!("{} does not accept mail now.", found.email),
        )
        .with_fix(refusal.text)
    };
    let recipient = inbound::route(app, None, &found.email).await.map_err(refused)?;
    let arrival = inbound::Arrival {
        provider: None,
        // A null sender, so that nothing answers it.
        from: None,
        recipients: vec![recipient],
        raw: message(visit, &found).into(),
        client: None,
    };
    inbound::receive(app, arrival).await.map_err(refused)?;
    Ok(())
}

fn message(visit: &Visit, mailbox: &Mailbox) -> String {
    let app = visit.app();
    let domain = mailbox.email.rsplit_once('@').map_or("localhost", |(_, domain)| domain);
    let date =
        jiff::Timestamp::from_microsecond(app.now().as_micros()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let text = [
        "Hello!",
        "",
        &format!("This is a test message. {} receives mail.", mailbox.email),
        "",
        "What you can do next:",
        "- Reply to it or archive it, as you would do with any message.",
        "- Choose \"Agent view\" to see what an agent gets to read.",
        &format!(
            "- Read it with the API: GET {}/api/v1/mailboxes/{}/emails",
            app.settings().public_url,
            mailbox.id
        ),
        "",
    ]
    .join("\r\n");
    [
        &format!("From: Agent Mailbox <postmaster@{domain}>"),
        &format!("To: {}", mailbox.email),
        "Subject: Your mailbox works",
        &format!("Date: {}", date.strftime("%a, %d %b %Y %H:%M:%S +0000")),
        &format!("Message-ID: <{}@{domain}>", app.new_uuid()),
        "Auto-Submitted: auto-generated",
        "MIME-Version: 1.0",
        "Content-Type: text/plain; charset=utf-8",
        "",
        &text,
    ]
    .join("\r\n")
}
