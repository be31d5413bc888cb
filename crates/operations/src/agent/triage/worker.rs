//! The triage worker: claims queued messages, a few at a time and in turn over workspaces, so that each is processed
//! once.
//!
//! A claim has a bounded time and an increasing version. The answer is applied only under that version, so a node
//! that was believed dead does nothing twice; a message that is claimed too often is given up. Failed attempts are
//! retried after 5 and 30 seconds.

use std::{collections::HashMap, sync::Arc};

use model::{
    CreditClass, Timestamp,
    folders::SystemFolder,
    triagers::{Occasion, RunStatus, SourceKind, Triager},
};
use store::{
    triage_jobs::{self, Job},
    triager_runs::{self, NewRun},
};
use tokio::task::{JoinError, JoinSet};
use tracing::Instrument;

use super::{
    answer::Answer,
    apply::{Classification, Outcome, PlannedRun, TaskSelection, TriageResult, finish_runs, lock_mailbox},
    arrival::MAX_HOLD_SECONDS,
    calendar,
    context::Context,
    prompt,
};
use crate::core::{
    app::App,
    assistant,
    error::{Error, ErrorKind, Result},
    metering::Reservation,
    supervisor::{ClaimGuard, catch_item_panic},
    turns::Turns,
};

/// The name of the triage worker.
pub(crate) const WORKER: &str = "triage";

/// Messages that this node processes at the same time.
const MAX_CONCURRENT: usize = 8;
/// The lease of a message: longer than a model may take.
const LEASE_SECONDS: i64 = 90;
/// Claims in a row by nodes that vanish before the message is given up: it may be what crashes them.
const MAX_LOST_CLAIMS: i64 = 10;
/// The delays after the first and the second failure; the third is final.
const RETRY_DELAYS_SECONDS: [i64; 2] = [5, 30];
/// The delay before it is checked again whether a message was scanned.
const SCAN_POLL_SECONDS: i64 = 1;
/// How long after its arrival a message is categorised; later it has been read anyway, and the queue matters more.
const MAX_CLASSIFY_AGE_SECONDS: i64 = 900;

/// Processes due messages, and returns when the next one is due. Every node may call it at any time.
#[crate::boxed]
pub async fn run_due(app: &App) -> Result<Option<Timestamp>> {
    // Without a model the queue is left alone; its jobs expire after a day.
    if !assistant::is_configured(app) {
        return Ok(None);
    }
    let (mut turns, mut running, mut workspaces) = (Turns::default(), JoinSet::new(), HashMap::new());
    loop {
        let slots = MAX_CONCURRENT.saturating_sub(running.len());
        let (moved, due) = claim(app, turns, slots).await?;
        turns = moved;
        for job in due {
            let (app, workspace) = (app.clone(), job.workspace.clone());
            turns.claim(&workspace);
            // Everything logged here carries the job's id.
            let span = tracing::error_span!("triage", job = job.id, email = %job.email, %workspace);
            let again = |error: &Error| tracing::warn!(%error, "triage failed; retrying");
            let work = async move { process_guarded(&app, job).await.inspect_err(again) };
            let task = running.spawn(work.instrument(span));
            workspaces.insert(task.id(), workspace);
        }
        // As soon as one is done there is a slot for the next: a slow answer delays no other message.
        let Some(done) = running.join_next_with_id().await else { break };
        let id = done.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let Some(workspace) = workspaces.remove(&id) else { continue };
        turns.release(&workspace);
        if let Err(error) = done {
            tracing::error!(%workspace, %error, "triage aborted; retrying");
        }
    }
    Ok(app.db().system_read(async |tx| triage_jobs::next_due(tx).await).await?)
}

/// Claims messages of the workspaces whose turn it is, as far as there are slots. None gets more than the model
/// answers for one workspace at the same time: they would wait there, and block others.
async fn claim(app: &App, mut turns: Turns, slots: usize) -> Result<(Turns, Vec<Job>)> {
    let (now, max_each) = (app.now(), assistant::max_concurrent(app));
    let until = now.plus_seconds(LEASE_SECONDS);
    let claimed = app.db().system_write(async move |tx| {
        let max_chars = turns.candidate_limit(slots);
        let waiting = triage_jobs::due_workspaces(tx, now, turns.after(), max_chars).await?;
        let mut jobs = Vec::new();
        for (workspace, share) in turns.share(waiting, slots, max_each) {
            jobs.extend(triage_jobs::claim_due(tx, &workspace, (now, until), share).await?);
        }
        Ok::<_, store::Error>((turns, jobs))
    });
    Ok(claimed.await?)
}

/// Releases what a former process was working on. Only for a store that this process has alone.
#[crate::boxed]
pub async fn release_lost(app: &App) -> Result<()> {
    Ok(app.db().system_write(async |tx| triage_jobs::release_all(tx).await).await?)
}

/// Processes one message that this node has claimed. A panic counts as a failure; if the worker is lost meanwhile,
/// the next one continues at once.
async fn process_guarded(app: &App, job: Job) -> Result<()> {
    let abandoned = (app.clone(), job.clone());
    let claim = ClaimGuard::new(move || async move {
        let (app, job) = abandoned;
        let now = app.now();
        if let Err(error) = defer(&app, job, now, false).await {
            tracing::warn!(%error, "triage claim not released; it will expire");
        }
    });
    let outcome = catch_item_panic(WORKER, process(app, job.clone())).await;
    claim.done();
    if let Ok(outcome) = outcome {
        return outcome;
    }
    let earlier = usize::try_from(job.failures).unwrap_or(usize::MAX);
    match RETRY_DELAYS_SECONDS.get(earlier) {
        Some(pause) => defer(app, job, app.now().plus_seconds(*pause), true).await,
        None => finish(app, job, RunStatus::Failed, "The server failed to handle the message.").await,
    }
}

async fn process(app: &App, job: Job) -> Result<()> {
    let now = app.now();
    let Some(context) = Context::load(app, &job.workspace, &job.mailbox, &job.email, now).await? else {
        return finish(app, job, RunStatus::Skipped, "The mail is gone.").await;
    };
    if !context.mailbox.settings.agent_inbox.automations_enabled {
        return finish(app, job, RunStatus::Skipped, "Automations are switched off in this mailbox.").await;
    }
    if job.attempts > MAX_LOST_CLAIMS {
        return finish(app, job, RunStatus::Failed, "It was tried too often.").await;
    }
    let unscanned = !context.record.outgoing && context.record.scan_status.is_none();
    if unscanned && now < job.created_at.plus_seconds(MAX_HOLD_SECONDS) {
        return defer(app, job, now.plus_seconds(SCAN_POLL_SECONDS), false).await;
    }
    let context = Arc::new(context);
    let Some(planned) = plan(app, &job, &context, now).await? else { return Ok(()) };
    TriageAttempt { app, job, context, now }.run(planned).await
}

/// Finishes a job without applying anything.
async fn finish(app: &App, job: Job, status: RunStatus, summary: &'static str) -> Result<()> {
    let key = app.data_key(&job.workspace).await?;
    let (app_, workspace) = (app.clone(), job.workspace.clone());
    app.db()
        .write(&workspace, async move |tx| {
            lock_mailbox(tx, &job.mailbox).await?;
            if !triage_jobs::finish(tx, &job).await? {
                return Ok(());
            }
            store::emails::release_hold(tx, &job.mailbox, &job.email).await?;
            finish_runs(tx, &app_, &key, &job.mailbox, &job.id, (status, summary)).await
        })
        .await
}

async fn defer(app: &App, job: Job, at: Timestamp, failed: bool) -> Result<()> {
    let workspace = job.workspace.clone();
    let write = app.db().write(&workspace, async move |tx| triage_jobs::defer(tx, &job, at, failed).await);
    write.await?;
    Ok(())
}

/// The runs that a message triggers, stored as running; `None` when another node has the message.
async fn plan(
    app: &App,
    job: &Job,
    context: &Arc<Context>,
    now: Timestamp,
) -> Result<Option<Vec<PlannedRun>>> {
    let mut kinds = Vec::new();
    if let Some(invitation) = context.invitation.clone().filter(|_| !job.outgoing && context.is_clean()) {
        let claimed = job.clone();
        let recorded = app.db().write(&job.workspace, async move |tx| {
            if !triage_jobs::lock_claimed(tx, &claimed).await? {
                return Ok(None);
            }
            calendar::record(tx, &claimed, &invitation, now).await
        });
        kinds.extend(recorded.await?);
    }
    kinds.push(if job.outgoing { SourceKind::MailSent } else { SourceKind::MailReceived });
    let in_inbox = context.record.folder_id == SystemFolder::Inbox;
    let occasion = Occasion { kinds, in_inbox, domains: context.domains() };
    let loaded = context.clone();
    // Expressions are evaluated against the whole text.
    let fired = tokio::task::spawn_blocking(move || fired(&loaded, &occasion));
    let fired = fired.await.map_err(Error::internal)?;
    let mut planned: Vec<PlannedRun> = Vec::with_capacity(fired.len());
    for (triager, kind) in fired {
        let run = NewRun {
            id: app.new_id(),
            job: job.id.clone(),
            triager: triager.id.clone(),
            triager_name: triager.name.clone(),
            kind,
            email: job.email.clone(),
            started_at: now,
        };
        planned.push(PlannedRun { run, triager });
    }
    begin(app, job, planned).await
}

fn fired(context: &Context, occasion: &Occasion) -> Vec<(Triager, SourceKind)> {
    let auto_draft = context.mailbox.settings.auto_draft.enabled;
    let subject = context.subject();
    let at_work = context.triagers.iter().cloned().map(|triager| triager.at_work(auto_draft));
    at_work.filter_map(|triager| triager.fires(occasion, &subject).map(|kind| (triager, kind))).collect()
}

/// Stores runs as running. One that an earlier attempt began continues under its id.
async fn begin(app: &App, job: &Job, mut planned: Vec<PlannedRun>) -> Result<Option<Vec<PlannedRun>>> {
    if planned.is_empty() {
        return Ok(Some(planned));
    }
    let job = job.clone();
    let workspace = job.workspace.clone();
    app.db()
        .write(&workspace, async move |tx| {
            if !triage_jobs::lock_claimed(tx, &job).await? {
                return Ok(None);
            }
            for one in &planned {
                triager_runs::begin(tx, &job.mailbox, &one.run).await?;
            }
            let stored = triager_runs::list_of_job(tx, &job.mailbox, &job.id).await?;
            for one in &mut planned {
                if let Some(run) = stored.iter().find(|run| run.triager.id == one.run.triager) {
                    one.run.id = run.id.clone();
                    one.run.started_at = run.started_at;
                }
            }
            Ok(Some(planned))
        })
        .await
}

/// One attempt at a message.
struct TriageAttempt<'a> {
    app: &'a App,
    job: Job,
    context: Arc<Context>,
    now: Timestamp,
}

/// A run that the model is asked about, with its reserved credits.
struct PaidRun {
    planned: PlannedRun,
    selection: TaskSelection,
    paid: Reservation,
}

impl TriageAttempt<'_> {
    async fn run(self, planned: Vec<PlannedRun>) -> Result<()> {
        let (asked, mut outcomes) = self.admit(planned).await?;
        let fresh = self.now < self.job.created_at.plus_seconds(MAX_CLASSIFY_AGE_SECONDS);
        let sorts = fresh && !self.job.outgoing && self.context.is_clean();
        if asked.is_empty() && !sorts {
            return self.apply(Classification::default(), outcomes, Vec::new()).await;
        }
        let wanted: Vec<_> = asked.iter().map(|one| one.planned.wanted(&one.selection)).collect();
        let request = prompt::request(&self.context, &wanted, sorts, self.now);
        drop(wanted);
        let reply = assistant::ask(self.app, &self.job.workspace, &request, None).await;
        let reply = match reply {
            Ok(reply) => Answer::read(&reply.text),
            Err(error) if error.kind() == ErrorKind::AiUnavailable => None,
            Err(error) => return Err(error),
        };
        let Some(mut answer) = reply else { return self.failed(asked, outcomes).await };
        let sorted =
            if sorts { Classification::of(&self.context, &answer) } else { Classification::default() };
        let mut paid = Vec::with_capacity(asked.len());
        for one in asked {
            let id = one.planned.run.triager.as_str().to_owned();
            let said = answer.triagers.iter().position(|said| said.id == id);
            let said = said.map(|at| answer.triagers.swap_remove(at));
            let works = said.is_some();
            let mut outcome =
                Outcome::of(self.app, &self.context, one.planned, &one.selection, said, self.now).await?;
            if works {
                outcome.charge = one.paid.ledger_entry(self.app.new_uuid().simple().to_string());
                paid.push(one.paid);
            }
            outcomes.push(outcome);
        }
        self.apply(sorted, outcomes, paid).await
    }

    /// Separates the runs that the model is asked about from those that do nothing.
    async fn admit(&self, planned: Vec<PlannedRun>) -> Result<(Vec<PaidRun>, Vec<Outcome>)> {
        let settings = &self.context.mailbox.settings.agent_inbox;
        let unsafe_mail = settings.require_clean_scan_for_automation && !self.context.is_clean();
        let (mut asked, mut outcomes) = (Vec::new(), Vec::new());
        for one in planned {
            let selection = one.select_tasks(&self.context, self.job.sender.as_deref());
            let skip = |run: NewRun, why: &str, selection: &TaskSelection| {
                Outcome::without(run, RunStatus::Skipped, why, selection)
            };
            if unsafe_mail {
                outcomes.push(skip(one.run, "The mail is not clean.", &selection));
                continue;
            }
            if selection.kinds.is_empty() {
                let why = selection.refused.first().map_or("There is nothing to do.", |(_, why)| *why);
                outcomes.push(skip(one.run, why, &selection));
                continue;
            }
            let pool = self.app.limits(self.context.plan).credits_per_period;
            let meter = self.app.meter();
            let workspace = &self.job.workspace;
            match meter.reserve(workspace, pool, CreditClass::AiHeavy, self.now, false).await {
                Ok(paid) => asked.push(PaidRun { planned: one, selection, paid }),
                Err(error) if error.kind() == ErrorKind::CreditsExhausted => {
                    outcomes.push(skip(one.run, error.message(), &selection));
                }
                Err(error) => return Err(error),
            }
        }
        Ok((asked, outcomes))
    }

    /// Retries later, or stores the failure. The reserved credits are refunded either way.
    async fn failed(self, asked: Vec<PaidRun>, mut outcomes: Vec<Outcome>) -> Result<()> {
        let earlier = usize::try_from(self.job.failures).unwrap_or(usize::MAX);
        if let Some(pause) = RETRY_DELAYS_SECONDS.get(earlier) {
            let at = self.app.now().plus_seconds(*pause);
            return defer(self.app, self.job, at, true).await;
        }
        let why = "The language model gave no answer that could be used.";
        for one in asked {
            outcomes.push(Outcome::without(one.planned.run, RunStatus::Failed, why, &one.selection));
        }
        self.apply(Classification::default(), outcomes, Vec::new()).await
    }

    /// Applies the outcomes, if the message is still this node's.
    async fn apply(
        self,
        sorted: Classification,
        outcomes: Vec<Outcome>,
        paid: Vec<Reservation>,
    ) -> Result<()> {
        let key = self.app.data_key(&self.job.workspace).await?;
        let seen = Some(self.context.record.category);
        let result = TriageResult {
            mailbox: self.job.mailbox.clone(),
            email: self.job.email.clone(),
            seen,
            sorted,
            outcomes,
            key: key.clone(),
        };
        let (app_, job) = (self.app.clone(), self.job);
        let workspace = job.workspace.clone();
        let stored = self.app.db().write(&workspace, async move |tx| {
            lock_mailbox(tx, &job.mailbox).await?;
            if !triage_jobs::finish(tx, &job).await? {
                return Ok(false);
            }
            store::emails::release_hold(tx, &job.mailbox, &job.email).await?;
            let runs = Box::pin(result.store(tx, &app_)).await?;
            // Runs of an earlier attempt whose triager was changed since.
            let over = (RunStatus::Skipped, "Its triager no longer looks at this mail.");
            finish_runs(tx, &app_, &key, &job.mailbox, &job.id, over).await?;
            Ok::<_, Error>(runs.iter().any(|(_, charged)| *charged))
        });
        if stored.await? {
            paid.into_iter().for_each(Reservation::commit_ledgered);
        }
        Ok(())
    }
}
