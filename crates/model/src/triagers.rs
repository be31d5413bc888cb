//! Triagers: what sets them off and what they do with a message. What came of each run is in `runs`.

mod kinds;
mod runs;

use garde::Validate;
use mail::address::Address;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::kinds::{SourceKind, TriagerTaskKind, TriggerKind};
pub use self::runs::{
    NewTriagerRun, RecentRuns, RecentRunsQuery, RunSource, RunStatus, RunTask, RunTriager, TriagerRun,
};
use crate::{
    ConversationId, MailboxId, Timestamp, TriagerId, TriagerTaskId, TriggerId,
    filter::{Filter, FilterSubject},
    names::valid_name,
    object::object,
};

/// How many triagers a mailbox can have.
pub const TRIAGERS_PER_MAILBOX: usize = 10;
/// The name of the triager that every mailbox is made with.
pub const DEFAULT_NAME: &str = "E-mail response";
/// The most tasks that one task of a triager finds in an email.
pub const MAX_FOUND: usize = 10;
/// How many it finds unless it is told otherwise.
pub const USUALLY_FOUND: usize = 5;

/// A triager.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Triager {
    /// Its id.
    pub id: TriagerId,
    /// The mailbox it belongs to.
    pub mailbox_id: MailboxId,
    /// Its name.
    pub name: String,
    /// What it should do, in plain words.
    pub instructions: String,
    /// Whether it is the mailbox's default, which cannot be deleted and drafts replies if `autoDraft` is enabled.
    pub is_default: bool,
    /// Whether it runs by itself.
    pub enabled: bool,
    /// Its triggers.
    pub triggers: Vec<Trigger>,
    /// Its tasks.
    pub tasks: Vec<TriagerTask>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A trigger of a triager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    /// Its id.
    pub id: TriggerId,
    /// The event that it reacts to.
    pub kind: TriggerKind,
    /// Whether the trigger is enabled.
    pub enabled: bool,
    /// Only mail from these domains, or to them for sent mail; empty for all.
    pub mail_domains: Vec<String>,
    /// Only incoming mail that lands in the inbox.
    pub only_inbox: bool,
    /// A filter expression that the email must match; empty for all.
    pub filter: String,
}

/// A task of a triager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TriagerTask {
    /// Its id.
    pub id: TriagerTaskId,
    /// What the task does.
    pub kind: TriagerTaskKind,
    /// Whether the task is enabled.
    pub enabled: bool,
    /// How the task is done.
    pub config: TaskConfig,
}

/// The configuration of a triager's task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Validate, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TaskConfig {
    /// Instructions in plain words.
    #[garde(length(chars, max = 2000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// `label`: the slugs of the labels that it can add. If omitted, all labels of the mailbox.
    #[garde(length(max = 20), inner(inner(length(chars, min = 1, max = 80))))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// `extract_tasks`: maximum number of tasks from one email; 5 by default.
    #[garde(range(min = 1, max = MAX_FOUND))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// A trigger in a request.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub struct NewTrigger {
    /// The id of an existing trigger; omit it for a new one.
    #[serde(default)]
    pub id: Option<TriggerId>,
    /// The event that it reacts to.
    pub kind: TriggerKind,
    /// Whether the trigger is enabled.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Only mail from these domains, or to them for sent mail. If omitted, all mail.
    #[garde(length(max = 50), inner(custom(domain)))]
    #[serde(default)]
    pub mail_domains: Vec<String>,
    /// Only incoming mail that lands in the inbox.
    #[serde(default = "yes")]
    pub only_inbox: bool,
    /// A filter expression such as `from:@acme.com and has:attachment`. If omitted, all mail.
    #[garde(length(chars, max = 500), custom(expression))]
    #[serde(default)]
    pub filter: String,
}

/// A task of a triager in a request.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewTriagerTask {
    /// The id of an existing task; omit it for a new one.
    #[serde(default)]
    pub id: Option<TriagerTaskId>,
    /// What the task does.
    pub kind: TriagerTaskKind,
    /// Whether the task is enabled.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// How the task is done.
    #[garde(dive, custom(config_of(self.kind)))]
    #[serde(default, deserialize_with = "object")]
    pub config: TaskConfig,
}

/// A new triager.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewTriager {
    /// Its name.
    #[garde(custom(valid_name))]
    #[schemars(length(min = 1, max = 80))]
    pub name: String,
    /// What it should do, in plain words.
    #[garde(length(chars, max = 4000))]
    #[serde(default)]
    pub instructions: String,
    /// Whether it runs by itself.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Its triggers.
    #[garde(length(max = 10), dive)]
    #[serde(default)]
    pub triggers: Vec<NewTrigger>,
    /// Its tasks.
    #[garde(length(max = 10), dive)]
    #[serde(default)]
    pub tasks: Vec<NewTriagerTask>,
}

/// Changes to a triager. Omitted fields stay as they are.
#[derive(Clone, Debug, Default, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct TriagerChange {
    /// The new name.
    #[garde(inner(custom(valid_name)))]
    #[schemars(length(min = 1, max = 80))]
    #[serde(default)]
    pub name: Option<String>,
    /// The new instructions.
    #[garde(length(chars, max = 4000))]
    #[serde(default)]
    pub instructions: Option<String>,
    /// Whether it runs by itself.
    #[serde(default)]
    pub enabled: Option<bool>,
    /// The new triggers; they replace all of the old ones.
    #[garde(length(max = 10), dive)]
    #[serde(default)]
    pub triggers: Option<Vec<NewTrigger>>,
    /// The new tasks; they replace all of the old ones.
    #[garde(length(max = 10), dive)]
    #[serde(default)]
    pub tasks: Option<Vec<NewTriagerTask>>,
}

const fn yes() -> bool {
    true
}

fn domain(text: &str, (): &()) -> garde::Result {
    if Address::parse(&format!("x@{text}")).is_ok() {
        Ok(())
    } else {
        Err(garde::Error::new("expected a domain such as acme.com"))
    }
}

fn expression(text: &str, (): &()) -> garde::Result {
    if text.trim().is_empty() {
        return Ok(());
    }
    Filter::parse(text).map(|_| ()).map_err(garde::Error::new)
}

fn config_of(kind: TriagerTaskKind) -> impl FnOnce(&TaskConfig, &()) -> garde::Result {
    move |config, ()| {
        if config.labels.is_some() && kind != TriagerTaskKind::Label {
            return Err(garde::Error::new("labels belong to a task of the kind label"));
        }
        if config.limit.is_some() && kind != TriagerTaskKind::ExtractTasks {
            return Err(garde::Error::new("a limit belongs to a task of the kind extract_tasks"));
        }
        Ok(())
    }
}

/// What is known of an email before a triager looks at it.
#[derive(Clone, Debug)]
pub struct Occasion {
    /// Everything that the email is an occasion of, the most special first.
    pub kinds: Vec<SourceKind>,
    /// Whether the email landed in the inbox.
    pub in_inbox: bool,
    /// The domains of those at the other end.
    pub domains: Vec<String>,
}

impl Trigger {
    /// Which of the things that happened sets it off, if one does.
    pub fn fires(&self, occasion: &Occasion, mail: &impl FilterSubject) -> Option<SourceKind> {
        let kind = occasion.kinds.iter().copied().find(|kind| self.kind.is_set_off_by(*kind))?;
        let received = kind != SourceKind::MailSent;
        let from_domain = self.mail_domains.is_empty()
            || occasion.domains.iter().any(|domain| self.mail_domains.contains(domain));
        let fits = self.enabled && from_domain && (occasion.in_inbox || !received || !self.only_inbox);
        if !fits {
            return None;
        }
        let matches = self.filter.trim().is_empty()
            || Filter::parse(&self.filter).is_ok_and(|filter| filter.matches(mail));
        matches.then_some(kind)
    }
}

impl TriggerKind {
    /// Whether something that happened is of this kind.
    pub const fn is_set_off_by(self, kind: SourceKind) -> bool {
        matches!(
            (self, kind),
            (Self::MailReceived, SourceKind::MailReceived)
                | (Self::MailSent, SourceKind::MailSent)
                | (Self::MailReceivedOrSent, SourceKind::MailReceived | SourceKind::MailSent)
                | (Self::CalendarCreated, SourceKind::CalendarCreated)
                | (Self::CalendarUpdated, SourceKind::CalendarUpdated)
                | (Self::CalendarCanceled, SourceKind::CalendarCanceled)
        )
    }
}

impl Triager {
    /// The triager that every mailbox is made with. Its ids are made from the mailbox's, as the migration does.
    pub fn first_of(mailbox: &MailboxId, now: Timestamp) -> Self {
        let digits = mailbox.as_str().get(4..).unwrap_or_default();
        Self {
            id: format!("trg_{digits}").into(),
            mailbox_id: mailbox.clone(),
            name: DEFAULT_NAME.to_owned(),
            instructions: String::new(),
            is_default: true,
            enabled: true,
            triggers: vec![Trigger { id: format!("tgr_{digits}").into(), ..Trigger::usual() }],
            tasks: vec![TriagerTask { id: format!("stp_{digits}").into(), ..TriagerTask::usual() }],
            created_at: now,
            updated_at: now,
        }
    }

    /// The same triager as it works where answers are drafted for a mailbox, or are not. The default one drafts what
    /// arrives in the inbox, unless its own list says otherwise, and drafts nothing where nobody asked for it.
    pub fn at_work(mut self, auto_draft: bool) -> Self {
        if !self.is_default {
            return self;
        }
        if !auto_draft {
            self.tasks.retain(|task| task.kind != TriagerTaskKind::DraftResponse);
            return self;
        }
        if !self.tasks.iter().any(|task| task.kind == TriagerTaskKind::DraftResponse) {
            self.tasks.push(TriagerTask::usual());
        }
        let receives = |trigger: &Trigger| trigger.kind.is_set_off_by(SourceKind::MailReceived);
        if !self.triggers.iter().any(receives) {
            self.triggers.push(Trigger::usual());
        }
        self
    }

    /// What sets it off, if it runs at all and has anything to do.
    pub fn fires(&self, occasion: &Occasion, mail: &impl FilterSubject) -> Option<SourceKind> {
        if !self.enabled || !self.tasks.iter().any(|task| task.enabled) {
            return None;
        }
        self.triggers.iter().find_map(|trigger| trigger.fires(occasion, mail))
    }

    /// Whether it does something of a kind.
    pub fn does(&self, kind: TriagerTaskKind) -> bool {
        self.tasks.iter().any(|task| task.enabled && task.kind == kind)
    }
}

impl Trigger {
    fn usual() -> Self {
        Self {
            id: "tgr_".into(),
            kind: TriggerKind::MailReceived,
            enabled: true,
            mail_domains: Vec::new(),
            only_inbox: true,
            filter: String::new(),
        }
    }
}

impl TriagerTask {
    fn usual() -> Self {
        let config = TaskConfig::default();
        Self { id: "stp_".into(), kind: TriagerTaskKind::DraftResponse, enabled: true, config }
    }
}

/// The conversation that a triager has with the mailbox agent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TriagerConversation {
    /// Its id.
    pub id: ConversationId,
    /// Its title.
    pub title: String,
    /// Number of messages.
    #[schemars(range(min = 0))]
    pub message_count: i64,
}

#[cfg(test)]
mod tests;
