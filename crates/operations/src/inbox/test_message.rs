//! A test message for a mailbox, delivered here by the same path as mail from elsewhere, so that a new mailbox shows that it
//! works before anybody writes to it.

use mail::compose::{self, AutoSubmitted, Person, UnencodedMessage};
use model::mailboxes::Mailbox;

use super::inbound::{self, Arrival, Refusal};
use crate::{
    core::{
        app::App,
        call::Call,
        error::{Error, ErrorKind, Result},
    },
    mailbox::mailboxes,
};

/// Delivers the message. It costs nothing: nobody called the API, and no other server took part.
#[crate::boxed]
pub async fn deliver(app: &App, call: &Call, mailbox: &str) -> Result<()> {
    let found = mailboxes::get(app, call, mailbox).await?;
    let refused = |refusal: Refusal| {
        Error::with_message(
            ErrorKind::RecipientsRefused,
            format!("{} does not accept mail now.", found.email),
        )
        .with_fix(refusal.text)
    };
    let recipient = inbound::route(app, None, &found.email).await.map_err(refused)?;
    let arrival = Arrival {
        provider: None,
        // A null sender, so that nothing answers it.
        from: None,
        recipients: vec![recipient],
        raw: compose::compose(&message(app, &found)).map_err(Error::internal)?.into(),
        client: None,
    };
    // Like any message it is stored with those that arrive at the same time, so its audit entry goes ahead.
    let id = found.id.clone();
    app.write(call, async move |tx| {
        tx.audit().in_mailbox(&id);
        Ok(())
    })
    .await?;
    inbound::receive(app, arrival).await.map_err(refused)?;
    Ok(())
}

fn message(app: &App, mailbox: &Mailbox) -> UnencodedMessage {
    let domain = mailbox.email.rsplit_once('@').map_or("localhost", |(_, domain)| domain);
    let text = format!(
        "Hello!\n\nThis is a test message. {} receives mail.\n\nWhat you can do next:\n\
         - Reply to it or archive it, as you would do with any message.\n\
         - Choose \"Agent view\" to see what an agent gets to read.\n\
         - Read it with the API: GET {}/api/v1/mailboxes/{}/emails\n",
        mailbox.email,
        app.settings().public_url,
        mailbox.id
    );
    UnencodedMessage {
        message_id: format!("{}@{domain}", app.new_uuid().simple()),
        date: app.now().as_micros(),
        from: Person { name: Some("Agent Mailbox".to_owned()), address: format!("postmaster@{domain}") },
        to: vec![Person { name: None, address: mailbox.email.clone() }],
        subject: "Your mailbox works".to_owned(),
        text: Some(text),
        auto_submitted: Some(AutoSubmitted::Generated),
        ..UnencodedMessage::default()
    }
}
