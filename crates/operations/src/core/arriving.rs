//! A message on its way into a mailbox, as the hooks see it.

use mail::message::Message;
use model::{
    MailboxId, Plan, Timestamp, WorkspaceId,
    emails::{ScanStatus, SenderAuthentication},
    mailboxes::SenderPolicy,
};
use store::{mailboxes::MailboxRecord, vault::DataKey};

/// A mailbox that takes a message.
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
    /// Whom the mailbox lets in, where it does not let in everybody.
    pub policy: Option<Box<SenderPolicy>>,
}

/// A message on its way into a mailbox.
pub(crate) struct Arriving<'a> {
    /// The message as it was read.
    pub(crate) message: &'a Message,
    /// Its text for agents.
    pub(crate) safe: &'a str,
    /// Whether that has a link in it.
    pub(crate) has_link: bool,
    /// What the built-in scanner says.
    pub(crate) verdict: ScanStatus,
    /// What is known about its sender.
    pub(crate) authentication: &'a SenderAuthentication,
    /// The envelope's sender; nothing for a null sender.
    pub(crate) sender: Option<&'a str>,
    /// Who gets it.
    pub(crate) recipient: &'a Recipient,
    /// The recipient's mailbox.
    pub(crate) mailbox: &'a MailboxRecord,
    /// Where its bytes are kept.
    pub(crate) content_id: &'a str,
    /// The workspace's data key.
    pub(crate) key: &'a DataKey,
    pub(crate) now: Timestamp,
}

impl Arriving<'_> {
    /// Whether it came over a transport. What was imported did not arrive now.
    pub(crate) fn came_in(&self) -> bool {
        self.authentication.inbound_provider.is_some()
    }
}
