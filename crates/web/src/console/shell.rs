//! The frame of a page for a logged-in person: the account, its workspaces, the sidebar.

use model::{Role, events::EventType, mailboxes::ListedMailbox};
use operations::{Result, mailboxes};

use super::{
    flash::{self, Flash},
    page::Head,
    time::Zone,
    visit::Visit,
};

/// A mailbox in the sidebar.
pub(super) struct SideMailbox {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) email: String,
    pub(super) unread: i64,
    pub(super) ready: bool,
}

/// A folder or label of the open mailbox.
pub(super) struct SideFolder {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) icon: &'static str,
    pub(super) color: String,
    pub(super) count: i64,
    pub(super) url: String,
}

/// The frame of a page for a logged-in person.
pub(super) struct Shell {
    pub(super) head: Head,
    pub(super) active: String,
    pub(super) name: String,
    pub(super) email: String,
    pub(super) workspace: String,
    pub(super) plan: &'static str,
    pub(super) workspaces: Vec<(String, String, bool)>,
    pub(super) mailboxes: Vec<SideMailbox>,
    /// The mailbox that is open, its folders and labels.
    pub(super) mailbox: String,
    pub(super) folders: Vec<SideFolder>,
    pub(super) labels: Vec<SideFolder>,
    pub(super) flash: Option<Flash>,
    pub(super) admin: bool,
    /// Whether the person may create mailboxes.
    pub(super) makes_mailboxes: bool,
    pub(super) operator: bool,
    pub(super) zone: Zone,
    /// The last event before the page was rendered: the page subscribes to those that follow.
    pub(super) after: i64,
    /// The event types, for the script that subscribes to them.
    pub(super) event_types: String,
}

impl Visit {
    /// Loads the frame of a page.
    pub(super) async fn shell(&self, title: &str, active: &str) -> Result<Shell> {
        let call = self.call(&mailboxes::LIST)?;
        let (role, plan) = (call.role, call.plan);
        let list = mailboxes::list(self.app(), &call).await?;
        let me = self.me().await?;
        let workspaces: Vec<_> = me
            .workspaces
            .into_iter()
            .map(|one| (one.id.as_str().to_owned(), one.name, one.id == me.workspace_id))
            .collect();
        let workspace = workspaces.iter().find(|one| one.2).map(|one| one.1.clone()).unwrap_or_default();
        Ok(Shell {
            head: Head::new(&self.headers, title),
            active: active.to_owned(),
            name: me.account.name,
            email: me.account.email,
            workspace,
            plan: plan.display_name(),
            workspaces,
            mailboxes: list.into_iter().map(side_mailbox).collect(),
            mailbox: String::new(),
            folders: Vec::new(),
            labels: Vec::new(),
            flash: flash::read(&self.headers),
            admin: role == Role::Admin,
            makes_mailboxes: self.may(&mailboxes::CREATE),
            operator: self.is_operator(),
            zone: self.zone().await?,
            after: self.after,
            event_types: EventType::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(" "),
        })
    }
}

impl Shell {
    /// The initial of the account's name.
    pub(super) fn initial(&self) -> String {
        self.name.chars().next().map(|first| first.to_uppercase().collect()).unwrap_or_default()
    }

    /// Whether a part of the navigation is the current one.
    pub(super) fn is(&self, part: &str) -> bool {
        self.active == part
    }

    /// The mailbox to compose in when none is open.
    pub(super) fn writing(&self) -> &str {
        if self.mailbox.is_empty() {
            self.mailboxes.first().map_or("", |first| first.id.as_str())
        } else {
            &self.mailbox
        }
    }
}

fn side_mailbox(listed: ListedMailbox) -> SideMailbox {
    let unread = &listed.inbox_unread_by_category;
    SideMailbox {
        unread: unread.customer_support + unread.technical + unread.partnership + unread.other,
        id: listed.mailbox.id.as_str().to_owned(),
        name: listed.mailbox.name,
        email: listed.mailbox.email,
        ready: listed.mailbox.can_receive,
    }
}
