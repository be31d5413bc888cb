//! The worker: takes mail out of the queue, a few at a time and in turn over workspaces, and sees to it that each is looked
//! at once.
//!
//! Whoever takes a mail on has it for a bounded time and under a number that rises. What follows from the answer is
//! stored only under that number, so a node that was believed lost does nothing twice; a mail that is tried too often is
//! given up. Tries that fail are repeated after 5 and 30 seconds.

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
    apply::{Chosen, Doable, Outcome, Settlement, Sorted, end_runs, hold},
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

/// The worker that looks at mail.
pub(crate) const WORKER: &str = "triage";

/// Messages that this node looks at at the same time.
const MAX_CONCURRENT: usize = 8;
/// How long a node has a mail to itself: longer than a model may take.
const LEASE_SECONDS: i64 = 90;
/// How often in a row a mail is taken on by nodes that are never heard of again: it may be what ends them.
const MAX_LOST: i64 = 10;
/// How long to wait after the first, the second failure; the third is the last.
const PAUSES: [i64; 2] = [5, 30];
/// How long to wait for a scanner before it is asked again whether it is done.
const SCAN_PAUSE_SECONDS: i64 = 1;
/// What a mail is about is asked for this long; later it has been read anyway, and what waits is worth more.
const FRESH_SECONDS: i64 = 900;

/// Looks at mail that waits, and tells when to look again. Every node may call it at any time.
#[crate::boxed]
pub async fn run_due(app: &App) -> Result<Option<Timestamp>> {
    // Without a model what waits is left alone; it goes after a day.
    if !assistant::is_configured(app) {
        return Ok(None);
    }
    let (mut turns, mut running, mut places) = (Turns::default(), JoinSet::new(), HashMap::new());
    loop {
        let room = MAX_CONCURRENT.saturating_sub(running.len());
        let (moved, due) = claim(app, turns, room).await?;
        turns = moved;
        for job in due {
            let (app, workspace) = (app.clone(), job.workspace.clone());
            turns.take(&workspace);
            // Whatever is logged on the way stands under the job's id.
            let span = tracing::error_span!("triage", job = job.id, email = %job.email, %workspace);
            let again = |error: &Error| tracing::warn!(%error, "a mail will be looked at again by triagers");
            let work = async move { work_guarded(&app, job).await.inspect_err(again) };
            let task = running.spawn(work.instrument(span));
            places.insert(task.id(), workspace);
        }
        // As soon as one is done there is room for the next: a slow answer keeps nobody else waiting.
        let Some(done) = running.join_next_with_id().await else { break };
        let id = done.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let Some(workspace) = places.remove(&id) else { continue };
        turns.release(&workspace);
        if let Err(error) = done {
            tracing::error!(%workspace, %error, "triage of a mail broke off; it will be tried again");
        }
    }
    Ok(app.db().system_read(async |tx| triage_jobs::next_due(tx).await).await?)
}

/// Takes on messages of the workspaces whose turn it is, as far as there is room. None gets more than the model answers for
/// one workspace at the same time: they would wait there, and others for them.
async fn claim(app: &App, mut turns: Turns, room: usize) -> Result<(Turns, Vec<Job>)> {
    let (now, part) = (app.now(), assistant::at_once(app));
    let until = now.plus_seconds(LEASE_SECONDS);
    let claimed = app.db().system_write(async move |tx| {
        let most = turns.to_look_up(room);
        let waiting = triage_jobs::due_workspaces(tx, now, turns.after(), most).await?;
        let mut jobs = Vec::new();
        for (workspace, share) in turns.share(waiting, room, part) {
            jobs.extend(triage_jobs::claim_due(tx, &workspace, (now, until), share).await?);
        }
        Ok::<_, store::Error>((turns, jobs))
    });
    Ok(claimed.await?)
}

/// Lets go of what a process of the past was looking at. Only for a store that this process has alone.
#[crate::boxed]
pub async fn release_lost(app: &App) -> Result<()> {
    Ok(app.db().system_write(async |tx| triage_jobs::release_all(tx).await).await?)
}

/// Looks at one mail that this node has taken on. A panic counts as a failure; when the worker is lost meanwhile, the next
/// one goes on at once.
async fn work_guarded(app: &App, job: Job) -> Result<()> {
    let abandoned = (app.clone(), job.clone());
    let claim = ClaimGuard::new(move || async move {
        let (app, job) = abandoned;
        let now = app.now();
        if let Err(error) = put_off(&app, job, now, false).await {
            tracing::warn!(%error, "claim on a message for triagers not released; it expires by itself");
        }
    });
    let outcome = catch_item_panic(WORKER, work_on(app, job.clone())).await;
    claim.done();
    if let Ok(outcome) = outcome {
        return outcome;
    }
    let earlier = usize::try_from(job.failures).unwrap_or(usize::MAX);
    match PAUSES.get(earlier) {
        Some(pause) => put_off(app, job, app.now().plus_seconds(*pause), true).await,
        None => end(app, job, RunStatus::Failed, "The server failed to handle the message.").await,
    }
}

async fn work_on(app: &App, job: Job) -> Result<()> {
    let now = app.now();
    let Some(context) = Context::load(app, &job.workspace, &job.mailbox, &job.email, now).await? else {
        return end(app, job, RunStatus::Skipped, "The mail is gone.").await;
    };
    if !context.mailbox.settings.agent_inbox.automations_enabled {
        return end(app, job, RunStatus::Skipped, "Automations are switched off in this mailbox.").await;
    }
    if job.attempts > MAX_LOST {
        return end(app, job, RunStatus::Failed, "It was tried too often.").await;
    }
    let unscanned = !context.record.outgoing && context.record.scan_status.is_none();
    if unscanned && now < job.created_at.plus_seconds(MAX_HOLD_SECONDS) {
        return put_off(app, job, now.plus_seconds(SCAN_PAUSE_SECONDS), false).await;
    }
    let context = Arc::new(context);
    let Some(chosen) = choose(app, &job, &context, now).await? else { return Ok(()) };
    Round { app, job, context, now }.run(chosen).await
}

/// Ends the work on a mail that nothing follows from.
async fn end(app: &App, job: Job, status: RunStatus, summary: &'static str) -> Result<()> {
    let key = app.data_key(&job.workspace).await?;
    let (app_, workspace) = (app.clone(), job.workspace.clone());
    app.db()
        .write(&workspace, async move |tx| {
            hold(tx, &job.mailbox).await?;
            if !triage_jobs::finish(tx, &job).await? {
                return Ok(());
            }
            store::emails::release_hold(tx, &job.mailbox, &job.email).await?;
            end_runs(tx, &app_, &key, &job.mailbox, &job.id, (status, summary)).await
        })
        .await
}

async fn put_off(app: &App, job: Job, at: Timestamp, failed: bool) -> Result<()> {
    let workspace = job.workspace.clone();
    let write = app.db().write(&workspace, async move |tx| triage_jobs::put_off(tx, &job, at, failed).await);
    write.await?;
    Ok(())
}

/// The runs that a mail leads to, noted as running; nothing when somebody else has the mail.
async fn choose(app: &App, job: &Job, context: &Arc<Context>, now: Timestamp) -> Result<Option<Vec<Chosen>>> {
    let mut kinds = Vec::new();
    if let Some(invitation) = context.invitation.clone().filter(|_| !job.outgoing && context.is_clean()) {
        let held = job.clone();
        let told = app.db().write(&job.workspace, async move |tx| {
            if !triage_jobs::is_held(tx, &held).await? {
                return Ok(None);
            }
            calendar::take_in(tx, &held, &invitation, now).await
        });
        kinds.extend(told.await?);
    }
    kinds.push(if job.outgoing { SourceKind::MailSent } else { SourceKind::MailReceived });
    let in_inbox = context.record.folder_id == SystemFolder::Inbox;
    let occasion = Occasion { kinds, in_inbox, domains: context.domains() };
    let looked = context.clone();
    // Expressions are read against the whole text.
    let fired = tokio::task::spawn_blocking(move || fired(&looked, &occasion));
    let fired = fired.await.map_err(Error::internal)?;
    let mut chosen: Vec<Chosen> = Vec::with_capacity(fired.len());
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
        chosen.push(Chosen { run, triager });
    }
    begin(app, job, chosen).await
}

fn fired(context: &Context, occasion: &Occasion) -> Vec<(Triager, SourceKind)> {
    let auto_draft = context.mailbox.settings.auto_draft.enabled;
    let subject = context.subject();
    let at_work = context.triagers.iter().cloned().map(|triager| triager.at_work(auto_draft));
    at_work.filter_map(|triager| triager.fires(occasion, &subject).map(|kind| (triager, kind))).collect()
}

/// Notes runs as running. One that an earlier try began goes on under its id.
async fn begin(app: &App, job: &Job, mut chosen: Vec<Chosen>) -> Result<Option<Vec<Chosen>>> {
    if chosen.is_empty() {
        return Ok(Some(chosen));
    }
    let job = job.clone();
    let workspace = job.workspace.clone();
    app.db()
        .write(&workspace, async move |tx| {
            if !triage_jobs::is_held(tx, &job).await? {
                return Ok(None);
            }
            for one in &chosen {
                triager_runs::begin(tx, &job.mailbox, &one.run).await?;
            }
            let stored = triager_runs::list_of_job(tx, &job.mailbox, &job.id).await?;
            for one in &mut chosen {
                if let Some(run) = stored.iter().find(|run| run.triager.id == one.run.triager) {
                    one.run.id = run.id.clone();
                    one.run.started_at = run.started_at;
                }
            }
            Ok(Some(chosen))
        })
        .await
}

/// One try with a mail.
struct Round<'a> {
    app: &'a App,
    job: Job,
    context: Arc<Context>,
    now: Timestamp,
}

/// A run that the model is asked about, paid for in advance.
struct Asked {
    chosen: Chosen,
    doable: Doable,
    paid: Reservation,
}

impl Round<'_> {
    async fn run(self, chosen: Vec<Chosen>) -> Result<()> {
        let (asked, mut outcomes) = self.admit(chosen).await?;
        let fresh = self.now < self.job.created_at.plus_seconds(FRESH_SECONDS);
        let sorts = fresh && !self.job.outgoing && self.context.is_clean();
        if asked.is_empty() && !sorts {
            return self.settle(Sorted::default(), outcomes, Vec::new()).await;
        }
        let wanted: Vec<_> = asked.iter().map(|one| one.chosen.wanted(&one.doable)).collect();
        let request = prompt::request(&self.context, &wanted, sorts, self.now);
        drop(wanted);
        let reply = assistant::ask(self.app, &self.job.workspace, &request, None).await;
        let reply = match reply {
            Ok(reply) => Answer::read(&reply.text),
            Err(error) if error.kind() == ErrorKind::AiUnavailable => None,
            Err(error) => return Err(error),
        };
        let Some(mut answer) = reply else { return self.failed(asked, outcomes).await };
        let sorted = if sorts { Sorted::of(&self.context, &answer) } else { Sorted::default() };
        let mut paid = Vec::with_capacity(asked.len());
        for one in asked {
            let id = one.chosen.run.triager.as_str().to_owned();
            let said = answer.triagers.iter().position(|said| said.id == id);
            let said = said.map(|at| answer.triagers.swap_remove(at));
            let works = said.is_some();
            let mut outcome =
                Outcome::of(self.app, &self.context, one.chosen, &one.doable, said, self.now).await?;
            if works {
                outcome.charge = one.paid.ledger_entry(self.app.new_uuid().simple().to_string());
                paid.push(one.paid);
            }
            outcomes.push(outcome);
        }
        self.settle(sorted, outcomes, paid).await
    }

    /// Parts the runs that the model is asked about from those that do nothing.
    async fn admit(&self, chosen: Vec<Chosen>) -> Result<(Vec<Asked>, Vec<Outcome>)> {
        let settings = &self.context.mailbox.settings.agent_inbox;
        let unsafe_mail = settings.require_clean_scan_for_automation && !self.context.is_clean();
        let (mut asked, mut outcomes) = (Vec::new(), Vec::new());
        for one in chosen {
            let doable = one.doable(&self.context, self.job.sender.as_deref());
            let skip = |run: NewRun, why: &str, doable: &Doable| {
                Outcome::without(run, RunStatus::Skipped, why, doable)
            };
            if unsafe_mail {
                outcomes.push(skip(one.run, "The mail is not clean.", &doable));
                continue;
            }
            if doable.kinds.is_empty() {
                let why = doable.refused.first().map_or("There is nothing to do.", |(_, why)| *why);
                outcomes.push(skip(one.run, why, &doable));
                continue;
            }
            let pool = self.app.limits(self.context.plan).credits_per_period;
            let meter = self.app.meter();
            let workspace = &self.job.workspace;
            match meter.reserve(workspace, pool, CreditClass::AiHeavy, self.now, false).await {
                Ok(paid) => asked.push(Asked { chosen: one, doable, paid }),
                Err(error) if error.kind() == ErrorKind::CreditsExhausted => {
                    outcomes.push(skip(one.run, error.message(), &doable));
                }
                Err(error) => return Err(error),
            }
        }
        Ok((asked, outcomes))
    }

    /// Tries again later, or says that it failed. What was paid goes back either way.
    async fn failed(self, asked: Vec<Asked>, mut outcomes: Vec<Outcome>) -> Result<()> {
        let earlier = usize::try_from(self.job.failures).unwrap_or(usize::MAX);
        if let Some(pause) = PAUSES.get(earlier) {
            let at = self.app.now().plus_seconds(*pause);
            return put_off(self.app, self.job, at, true).await;
        }
        let why = "The language model gave no answer that could be used.";
        for one in asked {
            outcomes.push(Outcome::without(one.chosen.run, RunStatus::Failed, why, &one.doable));
        }
        self.settle(Sorted::default(), outcomes, Vec::new()).await
    }

    /// Stores what follows, if the mail is still this node's.
    async fn settle(self, sorted: Sorted, outcomes: Vec<Outcome>, paid: Vec<Reservation>) -> Result<()> {
        let key = self.app.data_key(&self.job.workspace).await?;
        let seen = Some(self.context.record.category);
        let settlement = Settlement {
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
            hold(tx, &job.mailbox).await?;
            if !triage_jobs::finish(tx, &job).await? {
                return Ok(false);
            }
            store::emails::release_hold(tx, &job.mailbox, &job.email).await?;
            let runs = Box::pin(settlement.store(tx, &app_)).await?;
            // What an earlier try began, and settings that were changed since have ended.
            let over = (RunStatus::Skipped, "Its triager no longer looks at this mail.");
            end_runs(tx, &app_, &key, &job.mailbox, &job.id, over).await?;
            Ok::<_, Error>(runs.iter().any(|(_, charged)| *charged))
        });
        if stored.await? {
            paid.into_iter().for_each(Reservation::ledgered);
        }
        Ok(())
    }
}
