//! What follows from a model's answer: checked against what was asked, prepared outside the store, and then stored at
//! once, with the charge and the event of every run.

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
    answer::{Answer, FoundTask, TriagerAnswer},
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
        drafts::{self, Ready, Written},
        sending::{Origin, mailbox_of, original, subject},
    },
};

/// A run that was decided on.
#[derive(Clone)]
pub(super) struct Chosen {
    pub(super) run: NewRun,
    pub(super) triager: Triager,
}

/// Its tasks, and for those that cannot be done with this mail why.
pub(super) struct Doable {
    pub(super) kinds: Vec<TriagerTaskKind>,
    pub(super) refused: Vec<(TriagerTaskKind, &'static str)>,
}

impl Chosen {
    /// What of its tasks can be done with a mail from an envelope's sender.
    pub(super) fn doable(&self, context: &Context, sender: Option<&str>) -> Doable {
        let (mut kinds, mut refused) = (Vec::new(), Vec::new());
        for task in self.triager.tasks.iter().filter(|task| task.enabled) {
            match context.unanswerable(sender).filter(|_| task.kind == TriagerTaskKind::DraftResponse) {
                Some(reason) => refused.push((task.kind, reason)),
                None => kinds.push(task.kind),
            }
        }
        Doable { kinds, refused }
    }

    pub(super) fn wanted<'a>(&'a self, doable: &Doable) -> Assignment<'a> {
        Assignment { triager: &self.triager, tasks: doable.kinds.clone() }
    }
}

/// What came of one run, ready to be stored.
pub(super) struct Outcome {
    run: NewRun,
    status: RunStatus,
    summary: String,
    tasks: Vec<RunTask>,
    found: Vec<FoundTask>,
    labels: Vec<LabelId>,
    draft: Option<Ready>,
    pub(super) charge: Option<LedgerEntry>,
}

impl Outcome {
    /// A run that did nothing.
    pub(super) fn without(run: NewRun, status: RunStatus, summary: &str, doable: &Doable) -> Self {
        let refused = |(kind, reason): &(TriagerTaskKind, &'static str)| RunTask::not_done(*kind, reason);
        Self {
            run,
            status,
            summary: summary.to_owned(),
            tasks: doable.refused.iter().map(refused).collect(),
            found: Vec::new(),
            labels: Vec::new(),
            draft: None,
            charge: None,
        }
    }

    /// What follows from an answer for one run.
    pub(super) async fn of(
        app: &App,
        context: &Context,
        chosen: Chosen,
        doable: &Doable,
        answer: Option<TriagerAnswer>,
        now: Timestamp,
    ) -> Result<Self> {
        let Chosen { run, triager } = chosen;
        let Some(answer) = answer else {
            return Ok(Self::without(run, RunStatus::Failed, "The model said nothing about it.", doable));
        };
        let mut outcome = Self::without(run, RunStatus::Succeeded, "It is done.", doable);
        if !answer.summary.is_empty() {
            outcome.summary.clone_from(&answer.summary);
        }
        let mut answer = answer;
        for task in triager.tasks.iter().filter(|task| task.enabled && doable.kinds.contains(&task.kind)) {
            let done = outcome.take(app, context, task, &mut answer, now).await?;
            outcome.tasks.push(done);
        }
        Ok(outcome)
    }

    /// Takes what an answer says for one task.
    async fn take(
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
                    Ok(ready) => self.draft = Some(ready),
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

/// Whether a draft cannot be saved however often that is tried.
fn is_final(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::QuotaExceeded
            | ErrorKind::MessageTooLarge
            | ErrorKind::ValidationFailed
            | ErrorKind::NotFound
    )
}

/// Why a draft was refused, in words: what is wrong with a field says more than that something is.
fn reason(error: &Error) -> String {
    let faults: Vec<&str> = error.details().iter().map(|detail| detail.message.as_str()).collect();
    match (faults.is_empty(), error.fix()) {
        (false, _) => format!("The draft could not be saved. {}", faults.join(" ")),
        (true, Some(fix)) => format!("{} {fix}", error.message()),
        (true, None) => error.message().to_owned(),
    }
}

/// A draft of an answer to a mail, as a person would begin one.
async fn draft(app: &App, context: &Context, text: String, now: Timestamp) -> Result<Ready> {
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
    };
    let written = Written {
        source,
        thread: Some(context.record.thread_id.clone()),
        passes_on: None,
        attachments: None,
        replaced: None,
        state: DraftState::Draft,
        scheduled_at: None,
    };
    let origin =
        Origin { workspace: context.workspace.clone(), plan: context.plan, mailbox: context.mailbox.clone() };
    Ready::prepare(app, origin, written, now).await
}

/// What the mail is about, as the model sees it.
#[derive(Default)]
pub(super) struct Sorted {
    category: Option<Category>,
    urgent: Option<bool>,
    labels: Vec<LabelId>,
}

impl Sorted {
    /// What an answer says that was asked for and is new.
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

/// Everything that follows from looking at a mail.
pub(super) struct Settlement {
    pub(super) mailbox: MailboxId,
    pub(super) email: EmailId,
    /// The category that the mail had when it was looked at.
    pub(super) seen: Option<Category>,
    pub(super) sorted: Sorted,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) key: Arc<DataKey>,
}

impl Settlement {
    /// Stores it, in a mailbox that the caller holds, and tells the runs and whether each was charged.
    pub(super) async fn store(self, tx: &mut Tx, app: &App) -> Result<Vec<(TriagerRun, bool)>> {
        let now = app.now();
        let (mailbox, email) = (&self.mailbox, &self.email);
        let mail = emails::find_brief(tx, mailbox, email).await?;
        if let Some(mail) = &mail {
            // What somebody has set by hand meanwhile is better.
            let untouched = self.seen == Some(mail.category);
            let (category, urgent) = (self.sorted.category, self.sorted.urgent);
            if untouched && (category.is_some() || urgent.is_some()) {
                emails::set_flags(tx, mailbox, mail, None, urgent, category).await?;
            }
            self.put_labels_on(tx, mail).await?;
        }
        let mut open = tasks::count_open(tx, mailbox).await?;
        let mut runs = Vec::with_capacity(self.outcomes.len());
        for outcome in self.outcomes {
            let outcome = if mail.is_some() {
                outcome
            } else {
                let none = Doable { kinds: Vec::new(), refused: Vec::new() };
                Outcome::without(outcome.run, RunStatus::Skipped, "The mail is gone.", &none)
            };
            let charged = outcome.charge.is_some();
            let run = outcome.store(tx, app, mailbox, &mut open, now).await?;
            tell(tx, app, &self.key, mailbox, &run, now).await?;
            runs.push((run, charged));
        }
        Ok(runs)
    }

    async fn put_labels_on(&self, tx: &mut Tx, mail: &emails::Brief) -> Result<()> {
        let mut wanted: Vec<&LabelId> = self.sorted.labels.iter().collect();
        wanted.extend(self.outcomes.iter().flat_map(|outcome| &outcome.labels));
        if wanted.is_empty() {
            return Ok(());
        }
        // Some may be gone by now.
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
            Some(ready) => Some(ready.store(tx, app).await?.id),
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
            metering::insert_ledger(tx, charge).await?;
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

/// Writes the event of a run that has ended.
pub(super) async fn tell(
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

/// Ends the runs of a job that are still at work, all in the same way.
pub(super) async fn end_runs(
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
        tell(tx, app, key, mailbox, &ended, now).await?;
    }
    Ok(())
}

/// Holds the mailbox, as every change of its mail does.
pub(super) async fn hold(tx: &mut Tx, mailbox: &MailboxId) -> Result<()> {
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
