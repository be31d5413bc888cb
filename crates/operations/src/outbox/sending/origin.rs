//! The mailbox that a message is sent from, with its workspace and plan.

use model::{Plan, WorkspaceId};
use store::mailboxes::MailboxRecord;

use crate::{
    core::{app::App, call::Call, error::Result},
    mailbox::mailboxes,
};

/// The mailbox that a message is sent from.
#[derive(Clone)]
pub(crate) struct Origin {
    pub(crate) workspace: WorkspaceId,
    pub(crate) plan: Plan,
    pub(crate) mailbox: MailboxRecord,
    /// Bytes that the workspace stores, if they were read with the mailbox.
    pub(crate) stored_bytes: Option<i64>,
    /// Whether it or its workspace had a send policy when it was read.
    pub(crate) has_policies: bool,
}

impl Origin {
    /// The mailbox that a call names.
    pub(crate) async fn of_call(app: &App, call: &Call, mailbox: &str) -> Result<Self> {
        let named = mailboxes::name(call, mailbox);
        let found = app.read(call, async move |tx| mailboxes::find_with_storage(tx, &named).await).await?;
        Ok(Self {
            workspace: call.workspace.clone(),
            plan: call.plan,
            mailbox: found.mailbox,
            stored_bytes: Some(found.stored_bytes),
            has_policies: found.has_policies,
        })
    }

    /// Whether its address is on a domain of the service.
    pub(crate) fn is_hosted(&self, app: &App) -> bool {
        let domain = self.domain();
        app.settings().hosted_domains.iter().any(|hosted| hosted == domain)
    }

    pub(crate) fn domain(&self) -> &str {
        self.mailbox.email.rsplit_once('@').map_or("localhost", |(_, domain)| domain)
    }

    /// An unguessable Message-ID: reports about a message are trusted by it.
    pub(crate) fn new_message_id(&self, app: &App) -> String {
        let mut random = [0; 8];
        app.entropy().fill(&mut random);
        let tail = u64::from_be_bytes(random);
        format!("{}.{tail:016x}@{}", app.new_uuid().simple(), self.domain())
    }
}
