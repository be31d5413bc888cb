//! The frame of a page for a logged-in person: the account, its workspaces, the sidebar.

use model::{Role, events::EventType, mailboxes::ListedMailbox, sending::OutboundMode};
use operations::{App, Result, assistant, mailboxes, reviews, telegram};

use super::{
    flash::{self, Flash},
    page::Head,
    time::Zone,
    visit::Visit,
};
use crate::request::cookie;

/// Folders or labels that are listed without folding them.
const MAX_UNFOLDED: usize = 6;

/// A mailbox in the sidebar.
#[derive(Clone)]
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

/// Pages that are of no use until the operator has set something up, or until they hold something.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a page of its own")]
pub(super) struct OptionalPages {
    pub(super) agent: bool,
    pub(super) triage: bool,
    pub(super) telegram: bool,
    pub(super) sandbox: bool,
}

impl OptionalPages {
    fn of(app: &App) -> Self {
        let has_model = assistant::is_configured(app);
        Self {
            agent: has_model,
            triage: has_model,
            telegram: telegram::is_available(app),
            sandbox: app.settings().outbound.mode == OutboundMode::Sandbox,
        }
    }
}

/// A group of the navigation, and whether it is open at first.
const GROUPS: [(&str, bool, &[&str]); 3] = [
    ("developers", true, &["keys", "webhooks", "events", "sandbox", "integrations"]),
    (
        "workspace",
        true,
        &["domains", "knowledge", "members", "usage", "send-policy", "suppressions", "audit", "settings"],
    ),
    ("operator", false, &[]),
];

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
    /// How many messages an admin is to decide about.
    pub(super) reviews: i64,
    /// Whether the person may create mailboxes.
    pub(super) makes_mailboxes: bool,
    pub(super) operator: bool,
    /// Which optional pages the navigation lists.
    pub(super) pages: OptionalPages,
    /// The groups of the navigation that the person opened or closed, as the script keeps them in a cookie.
    nav: String,
    /// The path of the page.
    pub(super) path: String,
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
            reviews: if role == Role::Admin {
                reviews::count_pending(self.app(), &self.call(&reviews::LIST)?).await?
            } else {
                0
            },
            makes_mailboxes: self.may(&mailboxes::CREATE),
            operator: self.is_operator(),
            pages: OptionalPages::of(self.app()),
            nav: cookie(&self.headers, "nav").unwrap_or_default().to_owned(),
            path: self.path().to_owned(),
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

    /// Whether a group of the navigation is open: the one with the current page is, others as the person left them.
    pub(super) fn opens(&self, group: &str) -> bool {
        let (usually, parts) = GROUPS
            .iter()
            .find(|(name, ..)| *name == group)
            .map_or((true, &[] as &[&str]), |(_, usually, parts)| (*usually, *parts));
        let is_current = parts.contains(&self.active.as_str()) || self.active.starts_with(group);
        let chosen = self.nav.split('.').find_map(|one| one.strip_prefix(group)?.strip_prefix(':'));
        is_current || chosen.map_or(usually, |state| state == "1")
    }

    /// Whether so many folders or labels are shown folded.
    pub(super) fn folds(&self, group: &str, count: usize) -> bool {
        let chosen = self.nav.split('.').find_map(|one| one.strip_prefix(group)?.strip_prefix(':'));
        chosen.map_or(count > MAX_UNFOLDED, |state| state == "0")
    }

    /// The mailbox that is open.
    pub(super) fn open_mailbox(&self) -> Option<&SideMailbox> {
        self.mailboxes.iter().find(|one| one.id == self.mailbox)
    }

    /// Folders of the open mailbox that its owner made, or that every mailbox has.
    pub(super) fn folders(&self, custom: bool) -> impl Iterator<Item = &SideFolder> {
        self.folders.iter().filter(move |folder| (folder.icon == "folder") == custom)
    }

    /// How many folders of the open mailbox its owner made.
    pub(super) fn custom_folders(&self) -> usize {
        self.folders(true).count()
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
