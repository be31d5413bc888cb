//! Triagers of a mailbox: the operations on them, and their runs. How they work is in
//! [`triage`](crate::agent::triage).

use std::collections::{HashMap, HashSet};

use mail::address::Address;
use model::{
    EmailId, Limit, MailboxId, Scope, ThreadId, TriagerId,
    audit::{changes, created, deleted},
    conversations::Conversation,
    triagers::{
        NewTriager, NewTriagerRun, NewTriagerTask, NewTrigger, RecentRuns, RecentRunsQuery, RunTask,
        SourceKind, TRIAGERS_PER_MAILBOX, Triager, TriagerChange, TriagerConversation, TriagerRun,
        TriagerTask, Trigger,
    },
};
use store::{Tx, conversations, triager_runs, triagers};

use crate::{
    agent::triage,
    core::{
        app::App,
        assistant,
        call::Call,
        error::{Error, ErrorKind, Result},
        input::clean_name,
        operation::Operation,
    },
    mailbox::mailboxes,
};

/// Lists the triagers.
pub const LIST: Operation =
    Operation::read("listTaskTriagers", "Lists the triagers of a mailbox, the default one first.")
        .errors(&[ErrorKind::NotFound]);
/// Makes a triager.
pub const CREATE: Operation =
    Operation::write("createTaskTriager", "Creates a triager; at most 10 per mailbox.")
        .scope(Scope::Agent)
        .created()
        .errors(&[ErrorKind::NotFound, ErrorKind::QuotaExceeded]);
/// Reads a triager.
pub const GET: Operation =
    Operation::read("getTaskTriager", "Returns a triager.").errors(&[ErrorKind::NotFound]).tagged();
/// Changes a triager.
pub const UPDATE: Operation = Operation::write(
    "updateTaskTriager",
    "Changes a triager. A list in the request replaces the whole list.",
)
.scope(Scope::Agent)
.errors(&[ErrorKind::NotFound]);
/// Deletes a triager.
pub const DELETE: Operation =
    Operation::write("deleteTaskTriager", "Deletes a triager. Its runs, tasks and labels stay.")
        .scope(Scope::Agent)
        .empty()
        .errors(&[ErrorKind::NotFound, ErrorKind::TriagerProtected]);
/// Makes a triager the default.
pub const MAKE_DEFAULT: Operation = Operation::write(
    "makeTaskTriagerDefault",
    "Makes a triager the default of its mailbox: the one that drafts replies and cannot be deleted.",
)
.scope(Scope::Agent)
.errors(&[ErrorKind::NotFound]);
/// Runs a triager.
pub const RUN: Operation = Operation::ai_heavy(
    "runTaskTriager",
    "Runs a triager on one email now, whatever its triggers are. A run that is skipped or fails costs nothing.",
).scope(Scope::Agent)
.errors(&[ErrorKind::NotFound, ErrorKind::AiUnavailable]);
/// Returns the conversation of a triager.
pub const CONVERSATION: Operation = Operation::write(
    "getTriagerAgentConversation",
    "Returns the triager's own conversation with the mailbox agent, and creates it if needed.",
)
.scope(Scope::Agent)
.errors(&[ErrorKind::NotFound]);
/// Reads the last runs.
pub const RECENT: Operation =
    Operation::read("listRecentTriagerRuns", "Lists the last runs of a mailbox's triagers, newest first.")
        .errors(&[ErrorKind::NotFound]);

pub(crate) const OPERATIONS: &[&Operation] =
    &[&LIST, &CREATE, &GET, &UPDATE, &DELETE, &MAKE_DEFAULT, &RUN, &CONVERSATION, &RECENT];

/// What the audit log shows of a triager.
const AUDIT_FIELDS: &[&str] = &["name", "instructions", "is_default", "enabled", "triggers", "tasks"];

/// Lists the triagers.
#[crate::boxed]
pub async fn list(app: &App, call: &Call, mailbox: &str) -> Result<Vec<Triager>> {
    let named = mailboxes::name(call, mailbox);
    app.read(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        Ok(triagers::list(tx, &mailbox).await?)
    })
    .await
}

/// Reads a triager.
#[crate::boxed]
pub async fn get(app: &App, call: &Call, mailbox: &str, id: TriagerId) -> Result<Triager> {
    let named = mailboxes::name(call, mailbox);
    app.read(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        find(tx, &mailbox, &id).await
    })
    .await
}

pub(crate) async fn find(tx: &mut Tx, mailbox: &MailboxId, id: &TriagerId) -> Result<Triager> {
    triagers::find(tx, mailbox, id).await?.ok_or_else(|| Error::not_found("Triager not found"))
}

/// Makes a triager.
#[crate::boxed]
pub async fn create(app: &App, call: &Call, mailbox: &str, input: NewTriager) -> Result<Triager> {
    let name = clean_name("name", &input.name)?;
    let triggers = read_triggers(app, input.triggers, &[])?;
    let tasks = read_tasks(app, input.tasks, &[])?;
    let (named, id, now) = (mailboxes::name(call, mailbox), app.new_id(), call.now);
    app.write(call, async move |tx| {
        let mailbox_id = crate::inbox::emails::lock_mailbox(tx, &named).await?;
        if triagers::list(tx, &mailbox_id).await?.len() >= TRIAGERS_PER_MAILBOX {
            return Err(Error::quota("triagers in a mailbox", Limit::of(TRIAGERS_PER_MAILBOX as u64)));
        }
        let triager = Triager {
            id,
            mailbox_id,
            name,
            instructions: input.instructions,
            is_default: false,
            enabled: input.enabled,
            triggers,
            tasks,
            created_at: now,
            updated_at: now,
        };
        triagers::insert(tx, &triager).await?;
        update_sent_flag(tx, &triager.mailbox_id).await?;
        tx.audit().about("triager", &triager.id).changed(created(&triager, AUDIT_FIELDS));
        Ok(triager)
    })
    .await
}

/// Changes a triager.
#[crate::boxed]
pub async fn update(
    app: &App,
    call: &Call,
    mailbox: &str,
    id: TriagerId,
    change: TriagerChange,
) -> Result<Triager> {
    let new_name = change.name.map(|name| clean_name("name", &name)).transpose()?;
    let (app_, named, now) = (app.clone(), mailboxes::name(call, mailbox), call.now);
    app.write(call, async move |tx| {
        let mailbox = crate::inbox::emails::lock_mailbox(tx, &named).await?;
        let mut triager = find(tx, &mailbox, &id).await?;
        let before = triager.clone();
        triager.name = new_name.unwrap_or(triager.name);
        triager.instructions = change.instructions.unwrap_or(triager.instructions);
        triager.enabled = change.enabled.unwrap_or(triager.enabled);
        if let Some(given) = change.triggers {
            triager.triggers = read_triggers(&app_, given, &triager.triggers)?;
        }
        if let Some(given) = change.tasks {
            triager.tasks = read_tasks(&app_, given, &triager.tasks)?;
        }
        triager.updated_at = now;
        triagers::update(tx, &triager).await?;
        update_sent_flag(tx, &mailbox).await?;
        tx.audit().about("triager", &id).changed(changes(&before, &triager, AUDIT_FIELDS));
        Ok(triager)
    })
    .await
}

/// Deletes a triager, unless it is the default.
#[crate::boxed]
pub async fn delete(app: &App, call: &Call, mailbox: &str, id: TriagerId) -> Result<()> {
    let named = mailboxes::name(call, mailbox);
    app.write(call, async move |tx| {
        let mailbox = crate::inbox::emails::lock_mailbox(tx, &named).await?;
        let triager = find(tx, &mailbox, &id).await?;
        tx.audit().about("triager", &id).changed(deleted(&triager, &["name"]));
        if triager.is_default {
            let fix = "Make another triager the default first, or disable this one.";
            return Err(Error::new(ErrorKind::TriagerProtected).with_fix(fix));
        }
        conversations::delete_of_triager(tx, &mailbox, &id).await?;
        triagers::delete(tx, &mailbox, &id).await?;
        update_sent_flag(tx, &mailbox).await
    })
    .await
}

/// Makes a triager the default; the previous one becomes an ordinary one.
#[crate::boxed]
pub async fn make_default(app: &App, call: &Call, mailbox: &str, id: TriagerId) -> Result<Triager> {
    let (named, now) = (mailboxes::name(call, mailbox), call.now);
    app.write(call, async move |tx| {
        let mailbox = crate::inbox::emails::lock_mailbox(tx, &named).await?;
        let triager = find(tx, &mailbox, &id).await?;
        tx.audit().about("triager", &id);
        if triager.is_default {
            return Ok(triager);
        }
        if let Some(present) = triagers::find_default(tx, &mailbox).await? {
            triagers::update(tx, &Triager { is_default: false, updated_at: now, ..present }).await?;
        }
        let before = triager.clone();
        let triager = Triager { is_default: true, updated_at: now, ..triager };
        triagers::update(tx, &triager).await?;
        tx.audit().changed(changes(&before, &triager, AUDIT_FIELDS));
        Ok(triager)
    })
    .await
}

/// Runs a triager on one message now.
#[crate::boxed]
pub async fn run(
    app: &App,
    call: &Call,
    mailbox: &str,
    id: TriagerId,
    input: NewTriagerRun,
) -> Result<TriagerRun> {
    // A missing triager is reported before a missing model.
    get(app, call, mailbox, id.clone()).await?;
    assistant::require(app)?;
    Box::pin(triage::run_now(app, call, mailbox, id, input.email_id)).await
}

/// Returns the conversation of a triager, created if it is missing.
#[crate::boxed]
pub async fn conversation(
    app: &App,
    call: &Call,
    mailbox: &str,
    id: TriagerId,
) -> Result<TriagerConversation> {
    let (named, fresh, now) = (mailboxes::name(call, mailbox), app.new_id(), call.now);
    app.write(call, async move |tx| {
        let mailbox = crate::inbox::emails::lock_mailbox(tx, &named).await?;
        let triager = find(tx, &mailbox, &id).await?;
        tx.audit().about("triager", &id);
        let fresh = Conversation {
            id: fresh,
            title: triager.name,
            message_count: 0,
            thread_id: None,
            triager_id: Some(id.clone()),
            created_at: now,
            updated_at: now,
        };
        let found = conversations::find_or_insert_of_triager(tx, &mailbox, &id, fresh).await?;
        Ok(TriagerConversation { id: found.id, title: found.title, message_count: found.message_count })
    })
    .await
}

/// Reads the last runs of a mailbox.
#[crate::boxed]
pub async fn recent(app: &App, call: &Call, mailbox: &str, query: RecentRunsQuery) -> Result<RecentRuns> {
    let named = mailboxes::name(call, mailbox);
    app.read(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        Ok(RecentRuns { runs: triager_runs::list_recent(tx, &mailbox, query.limit).await? })
    })
    .await
}

/// The draft that a person has to approve, if the task saved one.
fn draft_to_approve(task: &RunTask) -> Option<&EmailId> {
    task.draft_id.as_ref().filter(|_| task.requires_approval == Some(true))
}

/// The drafts in these threads that a triager saved for approval, and the triager's name.
#[crate::boxed]
pub async fn drafts_to_approve(
    app: &App,
    call: &Call,
    mailbox: &str,
    threads: Vec<ThreadId>,
) -> Result<HashMap<EmailId, String>> {
    let named = mailboxes::name(call, mailbox);
    app.read(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        let runs = triager_runs::list_of_threads(tx, &mailbox, &threads).await?;
        let of_run = |run: TriagerRun| {
            let drafts: Vec<EmailId> = run.tasks.iter().filter_map(draft_to_approve).cloned().collect();
            drafts.into_iter().map(move |draft| (draft, run.triager.name.clone()))
        };
        Ok(runs.into_iter().flat_map(of_run).collect())
    })
    .await
}

/// Updates the mailbox's flag: whether a triager is triggered by sent mail.
async fn update_sent_flag(tx: &mut Tx, mailbox: &MailboxId) -> Result<()> {
    let all = triagers::list(tx, mailbox).await?;
    let cares = |triager: &Triager| {
        let on_sent = |trigger: &Trigger| trigger.enabled && trigger.kind.is_set_off_by(SourceKind::MailSent);
        triager.enabled && triager.triggers.iter().any(on_sent)
    };
    Ok(triagers::set_triages_sent(tx, mailbox, all.iter().any(cares)).await?)
}

/// Checks that a given id exists and is given once.
fn known<K: model::Kind>(
    app: &App,
    path: &str,
    given: Option<model::Id<K>>,
    present: &[&model::Id<K>],
    seen: &mut HashSet<model::Id<K>>,
) -> Result<model::Id<K>> {
    let Some(id) = given else { return Ok(app.new_id()) };
    if !present.contains(&&id) {
        return Err(Error::invalid(
            path,
            "the triager has nothing with this id; omit the id to add a new one",
        ));
    }
    if !seen.insert(id.clone()) {
        return Err(Error::invalid(path, "is given twice"));
    }
    Ok(id)
}

fn read_triggers(app: &App, given: Vec<NewTrigger>, present: &[Trigger]) -> Result<Vec<Trigger>> {
    let ids: Vec<_> = present.iter().map(|trigger| &trigger.id).collect();
    let mut seen = HashSet::new();
    let mut all = Vec::with_capacity(given.len());
    for (index, one) in given.into_iter().enumerate() {
        let mut mail_domains: Vec<String> = Vec::with_capacity(one.mail_domains.len());
        for domain in &one.mail_domains {
            let parsed = Address::parse(&format!("x@{domain}"));
            let parsed = parsed.map_err(|error| {
                Error::invalid(format!("triggers[{index}].mailDomains"), error.to_string())
            })?;
            if !mail_domains.iter().any(|known| known == parsed.domain()) {
                mail_domains.push(parsed.domain().to_owned());
            }
        }
        all.push(Trigger {
            id: known(app, &format!("triggers[{index}].id"), one.id, &ids, &mut seen)?,
            kind: one.kind,
            enabled: one.enabled,
            mail_domains,
            only_inbox: one.only_inbox,
            filter: one.filter.trim().to_owned(),
        });
    }
    Ok(all)
}

fn read_tasks(app: &App, given: Vec<NewTriagerTask>, present: &[TriagerTask]) -> Result<Vec<TriagerTask>> {
    let ids: Vec<_> = present.iter().map(|task| &task.id).collect();
    let mut seen = HashSet::new();
    let mut kinds = HashSet::new();
    let mut all = Vec::with_capacity(given.len());
    for (index, one) in given.into_iter().enumerate() {
        if !kinds.insert(one.kind) {
            return Err(Error::invalid(format!("tasks[{index}].kind"), "each kind can be used once"));
        }
        let id = known(app, &format!("tasks[{index}].id"), one.id, &ids, &mut seen)?;
        all.push(TriagerTask { id, kind: one.kind, enabled: one.enabled, config: one.config });
    }
    Ok(all)
}
