//! The operator's mailbox: `postmaster@` and `abuse@` of every domain lead there.

use model::{MailboxId, WorkspaceId, events::EventType, mailboxes::MailboxSettings};
use store::{
    addresses,
    mailboxes::MailboxRecord,
    system::{self, Route},
};

use crate::{
    core::{app::App, error::Result},
    mailbox::mailboxes,
};

/// The route of mail to the operator: a mailbox in the operator's workspace, created with the first such message.
/// Nothing without an operator.
pub(crate) async fn route(app: &App) -> Result<Option<Route>> {
    let Some(domain) = app.settings().hosted_domains.first() else { return Ok(None) };
    let address = format!("postmaster@{domain}");
    if let Some(route) = find_route(app, &address).await? {
        return Ok(Some(route));
    }
    let found = app.db().system_read(async |tx| system::operator_workspace(tx).await).await?;
    let Some(workspace) = found else { return Ok(None) };
    create(app, &workspace, &address).await?;
    find_route(app, &address).await
}

async fn create(app: &App, workspace: &WorkspaceId, address: &str) -> Result<()> {
    let id: MailboxId = app.new_id();
    let record = MailboxRecord {
        id,
        public_id: app.new_uuid().to_string(),
        workspace_id: workspace.clone(),
        email: address.to_owned(),
        name: "Postmaster".to_owned(),
        settings: MailboxSettings::default(),
        triages_sent: false,
        domain: None,
        disabled_at: None,
        disabled_reason: None,
        created_at: app.now(),
        updated_at: app.now(),
    };
    let (app_, key) = (app.clone(), app.data_key(workspace).await?);
    app.db()
        .write(workspace, async move |tx| {
            // Of two such messages at once the second finds the address claimed and the mailbox created.
            if addresses::claim(tx, &record.email, &record.id).await? {
                mailboxes::insert_with_folders(tx, &record).await?;
                let event = mailboxes::event(EventType::MailboxCreated, &record);
                event.append(tx, &app_, &key, record.created_at).await?;
            }
            Ok(())
        })
        .await
}

async fn find_route(app: &App, address: &str) -> Result<Option<Route>> {
    let address = address.to_owned();
    Ok(app.db().system_read(async move |tx| system::route(tx, &address).await).await?)
}
