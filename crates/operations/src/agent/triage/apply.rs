//! Applies a model's answer: checked against the request, prepared outside the store, and then stored at once, with
//! the charge and the event of every run.

use std::sync::Arc;

use mail::compose::quote;
use model::{
    EmailId, LabelId, MailboxId, Timestamp, TriagerRunId,
    drafts::DraftState,
    emails::{BodyFormat, Category},
    events::EventType,
    tasks::{MAX_OPEN_TASKS, Task, TaskStatus},
    triagers::{
        RunSource, RunStatus, RunTask, RunTriager, Triager, TriagerRun, TriagerTask, TriagerTaskKind,
        USUALLY_FOUND,
    },
};
use store::{
    Tx, emails, labels, mailboxes,
    metering::{self, LedgerEntry},
    tasks,
    triager_runs::{self, NewRun},
    vault::DataKey,
};

use super::{
    answer::{Answer, ExtractedTask, TriagerAnswer},
    context::Context,
    prompt::{Assignment, allows, instruction},
};
use crate::{
    core::{
        app::App,
        assistant::inert_subject,
        error::{Error, ErrorKind, Result},
        events::NewEvent,
    },
    outbox::{
        drafts::{self, DraftInput, PreparedDraft},
        sending::{Origin, mailbox_of, original, subject},
    },
};

/// A run of a triager on a message.
#[derive(Clone)]
pub(super) struct PlannedRun {
    pub(super) run: NewRun,
    pub(super) triager: Triager,
}

/// Its tasks, and why some cannot be done with this message.
pub(super) struct TaskSelection {
    pub(super) kinds: Vec<TriagerTaskKind>,
    pub(super) refused: Vec<(TriagerTaskKind, &'static str)>,
}

impl PlannedRun {
    /// Which of its tasks can be done with a message from this envelope sender.
    pub(super) fn select_tasks(&self, context: &Context, sender: Option<&str>) -> TaskSelection {
        let (mut kinds, mut refused) = (Vec::new(), Vec::new());
        for task in self.triager.tasks.iter().filter(|task| task.enabled) {
            match context.reply_refusal(sender).filter(|_| task.kind == TriagerTaskKind::DraftResponse) {
                Some(reason) => refused.push((task.kind, reason)),
                None => kinds.push(task.kind),
            }
        }
        TaskSelection { kinds, refused }
    }

    pub(super) fn wanted<'a>(&'a self, selection: &TaskSelection) -> Assignment<'a> {
        Assignment { triager: &self.triager, tasks: selection.kinds.clone() }
    }
}

/// The outcome of a run, ready to be stored.
pub(super) struct Outcome {
    run: NewRun,
    status: RunStatus,
    summary: String,
    tasks: Vec<RunTask>,
    found: Vec<ExtractedTask>,
    labels: Vec<LabelId>,
    draft: Option<PreparedDraft>,
    pub(super) charge: Option<LedgerEntry>,
}

impl Outcome {
    /// A run that did nothing.
    pub(super) fn without(run: NewRun, status: RunStatus, summary: &str, selection: &TaskSelection) -> Self {
        let refused = |(kind, reason): &(TriagerTaskKind, &'static str)| RunTask::not_done(*kind, reason);
        Self {
            run,
            status,
            summary: summary.to_owned(),
            tasks: selection.refused.iter().map(refused).collect(),
            found: Vec::new(),
            labels: Vec::new(),
            draft: None,
            charge: None,
        }
    }

    /// The outcome of an answer for one run.
    pub(super) async fn of(
        app: &App,
        context: &Context,
        planned: PlannedRun,
        selection: &TaskSelection,
        answer: Option<TriagerAnswer>,
        now: Timestamp,
    ) -> Result<Self> {
        let PlannedRun { run, triager } = planned;
        let Some(answer) = answer else {
            return Ok(Self::without(run, RunStatus::Failed, "The model said nothing about it.", selection));
        };
        let mut outcome = Self::without(run, RunStatus::Succeeded, "It is done.", selection);
        if !answer.summary.is_empty() {
            outcome.summary.clone_from(&answer.summary);
        }
        let mut answer = answer;
        for task in triager.tasks.iter().filter(|task| task.enabled && selection.kinds.contains(&task.kind)) {
            let done = outcome.apply_task(app, context, task, &mut answer, now).await?;
            outcome.tasks.push(done);
        }
        Ok(outcome)
    }

    /// Applies the answer to one task.
    async fn apply_task(
        &mut self,
        app: &App,
        context: &Context,
        task: &TriagerTask,
        answer: &mut TriagerAnswer,
        now: Timestamp,
    ) -> Result<RunTask> {
        let kind = task.kind;
        let mut done = RunTask::done(kind);
        match kind {
            TriagerTaskKind::DraftResponse => {
                let Some(text) = answer.reply.take() else {
                    return Ok(RunTask::not_done(kind, "No answer is needed."));
                };
                match draft(app, context, text, now).await {
                    Ok(prepared) => self.draft = Some(prepared),
                    Err(error) if is_final(error.kind()) => {
                        return Ok(RunTask::not_done(kind, &reason(&error)));
                    }
                    Err(error) => return Err(error),
                }
                done.requires_approval = Some(context.mailbox.settings.auto_draft.require_approval);
            }
            TriagerTaskKind::ExtractTasks => {
                self.found = std::mem::take(&mut answer.tasks);
                self.found.truncate(task.config.limit.unwrap_or(USUALLY_FOUND));
            }
            TriagerTaskKind::Label => {
                let named = |label: &&model::labels::Label| {
                    allows(task.config.labels.as_deref(), label) && answer.labels.contains(&label.slug)
                };
                let fitting: Vec<_> = context.labels.iter().filter(named).collect();
                self.labels = fitting.iter().map(|label| label.id.clone()).collect();
                done.labels = Some(fitting.iter().map(|label| label.slug.clone()).collect());
            }
            TriagerTaskKind::Notify => match answer.notify.take() {
                Some(text) => done.notification = Some(text),
                None => return Ok(RunTask::not_done(kind, "There is nothing to tell.")),
            },
        }
        Ok(done)
    }
}

/// Whether retrying cannot make the draft storable.
fn is_final(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::QuotaExceeded
            | ErrorKind::MessageTooLarge
            | ErrorKind::ValidationFailed
            | ErrorKind::NotFound
    )
}

/// Why a draft was refused: what is wrong with a field says more than that something is.
fn reason(error: &Error) -> String {
    let faults: Vec<&str> = error.details().iter().map(|detail| detail.message.as_str()).collect();
    match (faults.is_empty(), error.fix()) {
        (false, _) => format!("The draft could not be saved. {}", faults.join(" ")),
        (true, Some(fix)) => format!("{} {fix}", error.message()),
        (true, None) => error.message().to_owned(),
    }
}

/// A draft of a reply to a message.
async fn draft(app: &App, context: &Context, text: String, now: Timestamp) -> Result<PreparedDraft> {
    let message = &context.message;
    let own = [context.mailbox.email.as_str(), context.record.recipient.as_str()];
    let answered = quote::reply_recipients(&original(message), &own, false);
    let threading =
        quote::threading(message.message_id.as_deref(), message.in_reply_to.as_deref(), &message.references);
    let source = drafts::Source {
        to: answered.to.iter().filter_map(mailbox_of).collect(),
        cc: Vec::new(),
        bcc: Vec::new(),
        subject: subject(&quote::reply_subject(&inert_subject(&message.subject)))
            .unwrap_or_else(|_| "Re:".to_owned()),
        body: text,
        format: BodyFormat::Text,
        in_reply_to: threading.in_reply_to,
        references: threading.references,
        accepted: None,
        drafted: None,
    };
    let input = DraftInput {
        source,
        thread: Some(context.record.thread_id.clone()),
        forwards: None,
        attachments: None,
        replaced: None,
        state: DraftState::Draft,
        scheduled_at: None,
        request: None,
    };
    let origin = Origin {
        workspace: context.workspace.clone(),
        plan: context.plan,
        mailbox: context.mailbox.clone(),
        stored_bytes: None,
        has_policies: false,
    };
    PreparedDraft::prepare(app, origin, input, now).await
}

/// The category, urgency and labels of a message, as the model sees them.
#[derive(Default)]
pub(super) struct Classification {
    category: Option<Category>,
    urgent: Option<bool>,
    labels: Vec<LabelId>,
}

impl Classification {
    /// The requested and changed parts of an answer.
    pub(super) fn of(context: &Context, answer: &Answer) -> Self {
        let record = &context.record;
        let fits = |label: &&model::labels::Label| {
            instruction(label).is_some() && answer.labels.contains(&label.slug)
        };
        Self {
            category: answer.category.filter(|category| *category != record.category),
            urgent: answer.urgent.filter(|urgent| *urgent != record.is_urgent),
            labels: context.labels.iter().filter(fits).map(|label| label.id.clone()).collect(),
        }
    }
}

/// Everything that is stored after a message was processed.
pub(super) struct TriageResult {
    pub(super) mailbox: MailboxId,
    pub(super) email: EmailId,
    /// The category of the message when it was read.
    pub(super) seen: Option<Category>,
    pub(super) sorted: Classification,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) key: Arc<DataKey>,
}

impl TriageResult {
    /// Stores it, in a mailbox that the caller has locked, and returns the runs and whether each was charged.
    pub(super) async fn store(self, tx: &mut Tx, app: &App) -> Result<Vec<(TriagerRun, bool)>> {
        let now = app.now();
        let (mailbox, email) = (&self.mailbox, &self.email);
        let mail = emails::find_brief(tx, mailbox, email).await?;
        if let Some(mail) = &mail {
            // A value that was set by hand meanwhile takes precedence.
            let untouched = self.seen == Some(mail.category);
            let (category, urgent) = (self.sorted.category, self.sorted.urgent);
            if untouched && (category.is_some() || urgent.is_some()) {
                emails::set_flags(tx, mailbox, mail, None, urgent, category).await?;
            }
            self.add_labels(tx, mail).await?;
        }
        let mut open = tasks::count_open(tx, mailbox).await?;
        let mut runs = Vec::with_capacity(self.outcomes.len());
        for outcome in self.outcomes {
            let outcome = if mail.is_some() {
                outcome
            } else {
                let none = TaskSelection { kinds: Vec::new(), refused: Vec::new() };
                Outcome::without(outcome.run, RunStatus::Skipped, "The mail is gone.", &none)
            };
            let charged = outcome.charge.is_some();
            let run = outcome.store(tx, app, mailbox, &mut open, now).await?;
            publish_run(tx, app, &self.key, mailbox, &run, now).await?;
            runs.push((run, charged));
        }
        Ok(runs)
    }

    async fn add_labels(&self, tx: &mut Tx, mail: &emails::Brief) -> Result<()> {
        let mut wanted: Vec<&LabelId> = self.sorted.labels.iter().collect();
        wanted.extend(self.outcomes.iter().flat_map(|outcome| &outcome.labels));
        if wanted.is_empty() {
            return Ok(());
        }
        // Some labels may have been deleted.
        let present = labels::list(tx, &self.mailbox).await?;
        let ids: Vec<LabelId> =
            present.into_iter().map(|label| label.id).filter(|id| wanted.contains(&id)).collect();
        Ok(emails::add_labels(tx, &self.mailbox, mail, &ids).await?)
    }
}

impl Outcome {
    async fn store(
        mut self,
        tx: &mut Tx,
        app: &App,
        mailbox: &MailboxId,
        open: &mut i64,
        now: Timestamp,
    ) -> Result<TriagerRun> {
        let mut ids = Vec::new();
        for found in std::mem::take(&mut self.found) {
            if *open >= MAX_OPEN_TASKS {
                break;
            }
            *open += 1;
            let task = Task {
                id: app.new_id(),
                title: found.title,
                due_at: found.due_at,
                priority: found.priority,
                status: TaskStatus::Open,
                email_id: self.run.email.clone(),
                triager_id: self.run.triager.clone(),
                created_at: now,
                updated_at: now,
            };
            tasks::insert(tx, mailbox, &task).await?;
            ids.push(task.id);
        }
        let draft = match self.draft.take() {
            Some(prepared) => Some(prepared.store(tx, app).await?.id),
            None => None,
        };
        for task in self.tasks.iter_mut().filter(|task| task.done) {
            match task.kind {
                TriagerTaskKind::ExtractTasks => task.task_ids = Some(std::mem::take(&mut ids)),
                TriagerTaskKind::DraftResponse => task.draft_id.clone_from(&draft),
                TriagerTaskKind::Label | TriagerTaskKind::Notify => {}
            }
        }
        if let Some(charge) = &self.charge {
            metering::insert_ledger(tx, &[charge]).await?;
        }
        triager_runs::begin(tx, mailbox, &self.run).await?;
        let id = &self.run.id;
        triager_runs::finish(tx, mailbox, id, self.status, &self.summary, &self.tasks, now).await?;
        Ok(TriagerRun {
            id: self.run.id,
            triager: RunTriager { id: self.run.triager, name: self.run.triager_name },
            source: RunSource { kind: self.run.kind, email_id: self.run.email },
            status: self.status,
            summary: self.summary,
            tasks: self.tasks,
            started_at: self.run.started_at,
            finished_at: Some(now),
        })
    }
}

/// Appends the event of a finished run.
pub(super) async fn publish_run(
    tx: &mut Tx,
    app: &App,
    key: &DataKey,
    mailbox: &MailboxId,
    run: &TriagerRun,
    now: Timestamp,
) -> Result<()> {
    let data = serde_json::json!({
        "run_id": run.id,
        "triager_id": run.triager.id,
        "triager_name": run.triager.name,
        "source_kind": run.source.kind,
        "email_id": run.source.email_id,
        "status": run.status,
        "summary": run.summary,
        "tasks": run.tasks,
    });
    let event = NewEvent { kind: EventType::TriagerRunFinished, mailbox: Some(mailbox.clone()), data };
    event.append(tx, app, key, now).await
}

/// Finishes the running runs of a job with the same status.
pub(super) async fn finish_runs(
    tx: &mut Tx,
    app: &App,
    key: &DataKey,
    mailbox: &MailboxId,
    job: &str,
    (status, summary): (RunStatus, &str),
) -> Result<()> {
    let now = app.now();
    for run in triager_runs::list_of_job(tx, mailbox, job).await? {
        if run.status != RunStatus::Running {
            continue;
        }
        let id: &TriagerRunId = &run.id;
        triager_runs::finish(tx, mailbox, id, status, summary, &[], now).await?;
        let ended = TriagerRun { status, summary: summary.to_owned(), finished_at: Some(now), ..run.clone() };
        publish_run(tx, app, key, mailbox, &ended, now).await?;
    }
    Ok(())
}

/// Locks the mailbox, as every change of its mail does.
pub(super) async fn lock_mailbox(tx: &mut Tx, mailbox: &MailboxId) -> Result<()> {
    Ok(mailboxes::lock(tx, mailbox).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_draft_tells_why_in_words() {
        let said = reason(&Error::invalid("subject", "The subject is too long."));
        assert_eq!(said, "The draft could not be saved. The subject is too long.");
        assert_eq!(reason(&Error::new(ErrorKind::MessageTooLarge)), ErrorKind::MessageTooLarge.message());
        let full = Error::new(ErrorKind::QuotaExceeded).with_fix("Delete mail.");
        assert_eq!(reason(&full), format!("{} Delete mail.", ErrorKind::QuotaExceeded.message()));
    }
}
