//! A manual run: on one message, at once, whatever the triager's triggers are.

use model::{
    EmailId, TriagerId,
    triagers::{RunStatus, SourceKind, TriagerRun},
};
use store::triager_runs::NewRun;

use super::{
    answer::Answer,
    apply::{Classification, Outcome, PlannedRun, TaskSelection, TriageResult, lock_mailbox},
    context::Context,
    prompt,
};
use crate::{
    core::{
        app::App,
        assistant,
        call::Call,
        error::{Error, ErrorKind, Result},
    },
    inbox::emails::present,
    mailbox::mailboxes,
};

/// Runs a triager on a message and returns the run. A run that does nothing costs nothing.
pub(crate) async fn run_now(
    app: &App,
    call: &Call,
    mailbox: &str,
    triager: TriagerId,
    email: EmailId,
) -> Result<TriagerRun> {
    let named = mailboxes::name(call, mailbox);
    let mailbox = app.read(call, async move |tx| mailboxes::find_id(tx, &named).await).await?;
    let context = Context::load(app, &call.workspace, &mailbox, &email, call.now).await?;
    let context = context.ok_or_else(present::missing)?;
    let found = context.triagers.iter().find(|one| one.id == triager).cloned();
    let triager = found.ok_or_else(|| Error::not_found("Triager not found"))?;
    let id: model::TriagerRunId = app.new_id();
    let run = NewRun {
        job: id.as_str().to_owned(),
        id,
        triager: triager.id.clone(),
        triager_name: triager.name.clone(),
        kind: SourceKind::Manual,
        email,
        started_at: call.now,
    };
    let planned = PlannedRun { run, triager };
    // The envelope sender is not stored; the author stands for it.
    let sender = context.message.from.as_ref().map(|from| from.address.as_str());
    let selection = planned.select_tasks(&context, sender);
    if let Some(why) = refusal(&context, &selection) {
        drop(call.take_reservation());
        let outcome = Outcome::without(planned.run, RunStatus::Skipped, why, &selection);
        return store(app, call, &context, outcome).await;
    }
    let request = prompt::request(&context, &[planned.wanted(&selection)], false, call.now);
    match ask(app, call, &request).await {
        Ok(mut answer) => {
            let said = answer.triagers.iter().position(|said| said.id == planned.triager.id.as_str());
            // There is one triager in the question, so an answer without an id can only be its.
            let said = said.or(Some(0)).filter(|at| *at < answer.triagers.len());
            let said = said.map(|at| answer.triagers.swap_remove(at));
            if said.is_none() {
                return fail(app, call, &context, planned, &selection, unusable()).await;
            }
            let outcome = Outcome::of(app, &context, planned, &selection, said, call.now).await?;
            store(app, call, &context, outcome).await
        }
        Err(error) => fail(app, call, &context, planned, &selection, error).await,
    }
}

async fn ask(app: &App, call: &Call, request: &crate::core::ports::ChatRequest) -> Result<Answer> {
    let reply = assistant::ask(app, &call.workspace, request, None).await?;
    Answer::read(&reply.text).ok_or_else(unusable)
}

fn unusable() -> Error {
    Error::new(ErrorKind::AiUnavailable)
        .with_fix("The model's answer could not be used; try again.")
        .with_retry_after(5)
}

/// Why nothing is done with a message.
fn refusal(context: &Context, selection: &TaskSelection) -> Option<&'static str> {
    let settings = &context.mailbox.settings.agent_inbox;
    if !settings.automations_enabled {
        return Some("Automations are switched off in this mailbox.");
    }
    if settings.require_clean_scan_for_automation && !context.is_clean() {
        return Some("The mail is not clean.");
    }
    if selection.kinds.is_empty() {
        return Some(selection.refused.first().map_or("There is nothing to do.", |(_, why)| *why));
    }
    None
}

/// Stores the run together with the call's charge and answer.
async fn store(app: &App, call: &Call, context: &Context, outcome: Outcome) -> Result<TriagerRun> {
    let result = result(app, call, context, outcome).await?;
    let app_ = app.clone();
    app.write(call, async move |tx| {
        lock_mailbox(tx, &result.mailbox).await?;
        tx.audit().in_mailbox(&result.mailbox);
        let runs = Box::pin(result.store(tx, &app_)).await?;
        let run = runs.into_iter().next().map(|(run, _)| run);
        let run = run.ok_or_else(|| Error::internal("a run left nothing"))?;
        tx.audit().about("triager", &run.triager.id);
        Ok(run)
    })
    .await
}

/// Stores the run as failed; the call fails with the reason, and costs nothing.
async fn fail(
    app: &App,
    call: &Call,
    context: &Context,
    planned: PlannedRun,
    selection: &TaskSelection,
    error: Error,
) -> Result<TriagerRun> {
    if error.kind() != ErrorKind::AiUnavailable {
        return Err(error);
    }
    let why = "The language model gave no answer that could be used.";
    let outcome = Outcome::without(planned.run, RunStatus::Failed, why, selection);
    let result = result(app, call, context, outcome).await?;
    let app_ = app.clone();
    app.db()
        .write(&call.workspace, async move |tx| {
            lock_mailbox(tx, &result.mailbox).await?;
            Box::pin(result.store(tx, &app_)).await.map(|_| ())
        })
        .await?;
    Err(error)
}

async fn result(app: &App, call: &Call, context: &Context, outcome: Outcome) -> Result<TriageResult> {
    Ok(TriageResult {
        mailbox: context.mailbox.id.clone(),
        email: context.record.id.clone(),
        seen: None,
        sorted: Classification::default(),
        outcomes: vec![outcome],
        key: app.data_key(&call.workspace).await?,
    })
}
