//! Delivery reports (bounces) for senders of this server.

use std::sync::Arc;

use bytes::Bytes;
use mail::{
    compose::Person,
    reports::{self, Action, Notice},
};
use model::{EmailId, WorkspaceId, emails::SenderAuthentication, outbound::ReportState};
use store::{
    contents,
    mailboxes::{self, MailboxName, MailboxRecord},
    outbound::{self, DeliveryRecord, OutboundRecord},
    workspaces,
};

use crate::{
    core::{
        app::App,
        error::{Error, Result},
    },
    inbox::{
        emails::present,
        inbound::{self, Content, Delivery, Recipient},
    },
};

/// Writes the report about a message into the mailbox that sent it, once.
pub(super) async fn write(app: &App, workspace: &WorkspaceId, id: &str) -> Result<()> {
    let Some(failed) = load(app, workspace, id).await? else { return skip(app, workspace, id).await };
    let raw = Bytes::from(failed.notice(app)?);
    let prepared = Arc::new(inbound::read(app, raw.clone()).await?);
    let content = Content::seal(app, workspace, &prepared, &raw).await?;
    let email: EmailId = app.new_id();
    let (app_, id) = (app.clone(), id.to_owned());
    app.db()
        .write(workspace, async move |tx| {
            mailboxes::lock(tx, &failed.recipient.mailbox).await?;
            let due = outbound::lock(tx, &id).await?.filter(|mail| mail.report == ReportState::Due);
            let Some(mail) = due else { return Ok(()) };
            let authentication = SenderAuthentication::unknown(None);
            let delivery = Delivery {
                app: &app_,
                prepared: &prepared,
                authentication: &authentication,
                sender: None,
                now: app_.now(),
                imported: false,
            };
            delivery.to_mailbox(tx, &failed.recipient, &email, &content).await?;
            match mail.email_id {
                Some(_) => outbound::set_report(tx, &id, ReportState::Done).await?,
                None => outbound::delete(tx, &mail).await?,
            }
            Ok::<_, Error>(())
        })
        .await
}

/// A failed message, with everything that its report needs.
struct FailedMessage {
    mail: OutboundRecord,
    recipients: Vec<DeliveryRecord>,
    recipient: Recipient,
    original: Vec<u8>,
}

/// `None` when the mailbox for the report no longer exists.
async fn load(app: &App, workspace: &WorkspaceId, id: &str) -> Result<Option<FailedMessage>> {
    let wanted = id.to_owned();
    let found = app
        .db()
        .read(workspace, async move |tx| {
            let Some(mail) = outbound::find(tx, &wanted).await? else { return Ok(None) };
            let Some(owner) = workspaces::find(tx).await? else { return Ok(None) };
            let mailbox: Option<MailboxRecord> = match &mail.mailbox_id {
                Some(id) => mailboxes::find(tx, &MailboxName::Id(id.clone())).await?,
                None => None,
            };
            let content = contents::find(tx, &mail.content_id).await?;
            let (Some(mailbox), Some(content)) = (mailbox, content) else { return Ok(None) };
            let recipients = outbound::recipients(tx, &mail.id).await?;
            let recipient = Recipient {
                workspace: tx.workspace().clone(),
                plan: owner.plan,
                mailbox: mailbox.id,
                address: mailbox.email,
                policy: None,
            };
            Ok::<_, store::Error>(Some((mail, recipients, recipient, content)))
        })
        .await?;
    let Some((mail, recipients, recipient, content)) = found else { return Ok(None) };
    let original = present::open_raw(app, workspace, &content).await?;
    Ok(Some(FailedMessage { mail, recipients, recipient, original }))
}

impl FailedMessage {
    fn notice(&self, app: &App) -> Result<Vec<u8>> {
        let host = &app.settings().hostname;
        let bounced = self.recipients.iter().filter(|one| one.is_failed());
        let recipients: Vec<reports::Recipient> = bounced
            .map(|one| reports::Recipient {
                final_recipient: one.recipient.clone(),
                original_recipient: None,
                action: Action::Failed,
                status: one.reply.as_deref().and_then(status).map(ToOwned::to_owned),
                diagnostic: one.reply.clone(),
            })
            .collect();
        let notice = Notice {
            message_id: format!("{}@{host}", app.new_uuid().simple()),
            date: app.now().as_micros(),
            reporting_server: host,
            from: Person { name: Some("Mail Delivery".to_owned()), address: format!("mailer-daemon@{host}") },
            to: Person { name: None, address: self.recipient.address.clone() },
            arrived: Some(self.mail.created_at.as_micros()),
            recipients: &recipients,
            original: &self.original,
        };
        reports::write(&notice).map_err(Error::internal)
    }
}

/// The enhanced status code of a reply, such as `5.1.1`.
fn status(reply: &str) -> Option<&str> {
    let is_status = |word: &&str| {
        let mut parts = word.split('.');
        let class = parts.next().is_some_and(|class| class == "5");
        let rest = |part: Option<&str>| {
            part.is_some_and(|part| {
                (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
            })
        };
        class && rest(parts.next()) && rest(parts.next()) && parts.next().is_none()
    };
    reply.split_whitespace().take(2).find(is_status)
}

/// Marks a report as done that cannot be delivered or written.
pub(super) async fn skip(app: &App, workspace: &WorkspaceId, id: &str) -> Result<()> {
    let id = id.to_owned();
    app.db()
        .write(workspace, async move |tx| {
            outbound::set_report(tx, &id, ReportState::Done).await.map_err(Error::from)
        })
        .await
}
