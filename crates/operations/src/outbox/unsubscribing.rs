//! Managed unsubscribing (RFC 8058): the headers of a message, and what becomes of the links in them.
//!
//! A link needs no account: it is sealed with the workspace's key, and names one address and whose messages stop. Looking
//! at it changes nothing.

use model::{
    MailboxId, WorkspaceId,
    cursor::{from_text, to_text},
    events::EventType,
    suppressions::{SuppressionReason, SuppressionScope, Unsubscribe},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{
    Tx,
    mailboxes::{self, MailboxName},
    nodes, outbound,
    suppressions::{self, SuppressionRecord},
};

use super::sending::{Origin, OutgoingMessage};
use crate::core::{
    app::App,
    error::{Error, ErrorKind, Result},
    events::NewEvent,
};

/// Where the links lead, below the public URL.
const PATH: &str = "/unsubscribe";
/// The migration that programs must know to read the event of an unsubscription.
const SCHEMA: i64 = 40;
const LIST_UNSUBSCRIBE: &str = "List-Unsubscribe";
/// What keeps links apart from everything else that is sealed with the same key.
const PURPOSE: &str = "unsubscribe";

/// What a link says.
#[derive(Debug, Serialize, Deserialize)]
struct UnsubscribeLink {
    /// The mailbox that sent the message.
    #[serde(rename = "m")]
    mailbox: MailboxId,
    /// Whether it is about all mailboxes of the workspace.
    #[serde(rename = "w")]
    of_workspace: bool,
    /// The address that is not written to any more.
    #[serde(rename = "a")]
    address: String,
    /// The address that the message was from.
    #[serde(rename = "f")]
    sender: String,
    /// The Message-ID of the message.
    #[serde(rename = "i")]
    message_id: String,
}

/// What a person is shown who followed a link.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// The address that is written to.
    pub address: String,
    /// Who writes to it.
    pub sender: String,
    /// Whether the link is about everything that the sender's workspace sends.
    pub of_workspace: bool,
    /// Whether the address is unsubscribed already.
    pub ended: bool,
}

/// Adds the headers by which the recipient of a message can unsubscribe.
pub(crate) async fn add_headers(
    app: &App,
    origin: &Origin,
    outgoing: &mut OutgoingMessage,
    asked: Unsubscribe,
) -> Result<()> {
    let mut everyone = outgoing.to.iter().chain(&outgoing.cc).chain(&outgoing.bcc);
    let (Some(only), None) = (everyone.next(), everyone.next()) else {
        let said = "is for messages to one recipient: each gets a link of their own";
        return Err(Error::invalid("unsubscribe", said));
    };
    if outgoing.headers.iter().any(|(name, _)| name.to_ascii_lowercase().starts_with("list-unsubscribe")) {
        return Err(Error::invalid("unsubscribe", "cannot be combined with a List-Unsubscribe header"));
    }
    let link = UnsubscribeLink {
        mailbox: origin.mailbox.id.clone(),
        of_workspace: asked.scope == SuppressionScope::Workspace,
        address: only.address().as_str().to_lowercase(),
        sender: outgoing.from.address.clone(),
        message_id: outgoing.message_id.clone(),
    };
    let key = app.data_key(&origin.workspace).await?;
    let plain = serde_json::to_vec(&link).map_err(Error::internal)?;
    let sealed = to_text(&key.seal(PURPOSE, &plain).map_err(store::Error::from)?);
    let url = format!("{}{PATH}/{}.{sealed}", app.settings().public_url, origin.workspace);
    outgoing.headers.push((LIST_UNSUBSCRIBE.to_owned(), format!("<{url}>")));
    outgoing.headers.push(("List-Unsubscribe-Post".to_owned(), "List-Unsubscribe=One-Click".to_owned()));
    Ok(())
}

fn missing() -> Error {
    Error::not_found("This link is not complete, or its sender is gone")
}

/// Opens a link. One that was not made here does not open.
async fn open(app: &App, token: &str) -> Result<(WorkspaceId, UnsubscribeLink)> {
    let (workspace, sealed) = token.split_once('.').ok_or_else(missing)?;
    let sealed = from_text(sealed).ok_or_else(missing)?;
    let workspace = WorkspaceId::from(workspace);
    let key = match app.data_key(&workspace).await {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(missing()),
        found => found?,
    };
    let plain = key.open(PURPOSE, &sealed).map_err(|_| missing())?;
    Ok((workspace, serde_json::from_slice(&plain).map_err(|_| missing())?))
}

impl UnsubscribeLink {
    /// The mailbox whose messages stop; empty for all of the workspace.
    fn stopped(&self) -> MailboxId {
        if self.of_workspace { MailboxId::from("") } else { self.mailbox.clone() }
    }

    fn show(self, ended: bool) -> Subscription {
        let Self { address, sender, of_workspace, .. } = self;
        Subscription { address, sender, of_workspace, ended }
    }
}

/// What a link is about. Nothing is changed.
#[crate::boxed]
pub async fn look(app: &App, token: &str) -> Result<Subscription> {
    let (workspace, link) = open(app, token).await?;
    let (address, mailbox) = (link.address.clone(), link.stopped());
    let read = async move |tx: &mut Tx| {
        suppressions::find_of_address(tx, &address, &mailbox).await.map_err(Error::from)
    };
    let found = app.db().read(&workspace, read).await?;
    Ok(link.show(found.is_some()))
}

/// Unsubscribes the address of a link. A second time changes nothing.
#[crate::boxed]
pub async fn unsubscribe(app: &App, token: &str) -> Result<Subscription> {
    let (workspace, link) = open(app, token).await?;
    let now = app.now();
    let is_known =
        app.db().system_write(async move |tx| nodes::require_schema(tx, SCHEMA, now).await).await?;
    if !is_known {
        return Err(Error::new(ErrorKind::StorageUnavailable).with_retry_after(60));
    }
    let key = app.data_key(&workspace).await?;
    let app_ = app.clone();
    let write = async move |tx: &mut Tx| {
        let sent = outbound::find_by_message_id(tx, &link.mailbox, &link.message_id).await?;
        let record = SuppressionRecord {
            id: app_.new_id(),
            address: link.address.clone(),
            mailbox_id: link.stopped(),
            reason: SuppressionReason::Unsubscribe,
            email_id: sent.and_then(|sent| sent.email_id),
            note: None,
            created_at: now,
        };
        if suppressions::insert(tx, &record).await? {
            let mailbox = mailboxes::find_id(tx, &MailboxName::Id(link.mailbox.clone())).await?;
            let data = json!({
                "recipient": record.address,
                "scope": if link.of_workspace { SuppressionScope::Workspace } else { SuppressionScope::Mailbox },
                "suppression_id": record.id,
                "email_id": record.email_id,
                "message_id": link.message_id,
            });
            let event = NewEvent { kind: EventType::RecipientUnsubscribed, mailbox, data };
            event.append(tx, &app_, &key, now).await?;
        }
        Ok::<_, Error>(link.show(true))
    };
    app.db().write(&workspace, write).await
}
