//! An arriving message, as the hooks see it.

use mail::message::Message;
use model::{
    MailboxId, Plan, Timestamp, WorkspaceId,
    emails::{ScanStatus, SenderAuthentication},
    mailboxes::SenderPolicy,
};
use store::{mailboxes::MailboxRecord, vault::DataKey};

/// A mailbox that receives a message.
#[derive(Clone, Debug)]
pub struct Recipient {
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// The workspace's plan.
    pub plan: Plan,
    /// The mailbox.
    pub mailbox: MailboxId,
    /// The address as it was given, with its tag.
    pub address: String,
    /// Which senders the mailbox accepts, unless it accepts all.
    pub policy: Option<Box<SenderPolicy>>,
}

/// A message that arrives in a mailbox.
pub(crate) struct Arriving<'a> {
    /// The parsed message.
    pub(crate) message: &'a Message,
    /// Its text for agents.
    pub(crate) safe: &'a str,
    /// Whether that text contains a link.
    pub(crate) has_link: bool,
    /// The verdict of the built-in scanner.
    pub(crate) verdict: ScanStatus,
    /// What is known about its sender.
    pub(crate) authentication: &'a SenderAuthentication,
    /// The envelope sender; `None` for the null sender.
    pub(crate) sender: Option<&'a str>,
    /// The recipient.
    pub(crate) recipient: &'a Recipient,
    /// The recipient's mailbox.
    pub(crate) mailbox: &'a MailboxRecord,
    /// The id of its stored content.
    pub(crate) content_id: &'a str,
    /// The workspace's data key.
    pub(crate) key: &'a DataKey,
    pub(crate) now: Timestamp,
}

impl Arriving<'_> {
    /// Whether it came over a transport; imported messages did not.
    pub(crate) fn came_in(&self) -> bool {
        self.authentication.inbound_provider.is_some()
    }
}
