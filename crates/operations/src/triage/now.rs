//! A run that somebody asks for: on one mail, at once, whatever sets the triager off otherwise.

use model::{
    EmailId, TriagerId,
    triagers::{RunStatus, SourceKind, TriagerRun},
};
use store::triager_runs::NewRun;

use super::{
    answer::Answer,
    look::Look,
    prompt,
    settle::{Chosen, Doable, Outcome, Settlement, Sorted, hold},
};
use crate::{App, Call, Error, ErrorKind, Result, assistant, emails::present, mailboxes};

/// Runs a triager on a mail and tells what came of it. A run that does nothing costs nothing.
pub(crate) async fn run_now(
    app: &App,
    call: &Call,
    mailbox: &str,
    triager: TriagerId,
    email: EmailId,
) -> Result<TriagerRun> {
    let named = mailboxes::name(mailbox);
    let mailbox = app.read(call, async move |tx| mailboxes::find_id(tx, &named).await).await?;
    let look = Look::at(app, &call.workspace, &mailbox, &email, call.now).await?;
    let look = look.ok_or_else(present::missing)?;
    let found = look.triagers.iter().find(|one| one.id == triager).cloned();
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
    let chosen = Chosen { run, triager };
    // Who sent the envelope is not known any more; the author stands for that.
    let sender = look.message.from.as_ref().map(|from| from.address.as_str());
    let doable = chosen.doable(&look, sender);
    if let Some(why) = refusal(&look, &doable) {
        drop(call.take_reservation());
        let outcome = Outcome::without(chosen.run, RunStatus::Skipped, why, &doable);
        return store(app, call, &look, outcome).await;
    }
    let request = prompt::request(&look, &[chosen.wanted(&doable)], false, call.now);
    match ask(app, call, &request).await {
        Ok(mut answer) => {
            let said = answer.triagers.iter().position(|said| said.id == chosen.triager.id.as_str());
            // There is one triager in the question, so a nameless answer can only be its.
            let said = said.or(Some(0)).filter(|at| *at < answer.triagers.len());
            let said = said.map(|at| answer.triagers.swap_remove(at));
            if said.is_none() {
                return fail(app, call, &look, chosen, &doable, unusable()).await;
            }
            let outcome = Outcome::of(app, &look, chosen, &doable, said, call.now).await?;
            store(app, call, &look, outcome).await
        }
        Err(error) => fail(app, call, &look, chosen, &doable, error).await,
    }
}

async fn ask(app: &App, call: &Call, request: &crate::outside::ChatRequest) -> Result<Answer> {
    let reply = assistant::ask(app, &call.workspace, request, None).await?;
    Answer::read(&reply.text).ok_or_else(unusable)
}

fn unusable() -> Error {
    Error::new(ErrorKind::AiUnavailable)
        .with_fix("The model's answer could not be used; try again.")
        .with_retry_after(5)
}

/// Why nothing is done with a mail.
fn refusal(look: &Look, doable: &Doable) -> Option<&'static str> {
    let settings = &look.mailbox.settings.agent_inbox;
    if !settings.automations_enabled {
        return Some("Automations are switched off in this mailbox.");
    }
    if settings.require_clean_scan_for_automation && !look.is_clean() {
        return Some("The mail is not clean.");
    }
    if doable.kinds.is_empty() {
        return Some(doable.refused.first().map_or("There is nothing to do.", |(_, why)| *why));
    }
    None
}

/// Keeps what came of the run together with the call's charge and answer.
async fn store(app: &App, call: &Call, look: &Look, outcome: Outcome) -> Result<TriagerRun> {
    let settlement = settlement(app, call, look, outcome).await?;
    let app_ = app.clone();
    app.write(call, async move |tx| {
        hold(tx, &settlement.mailbox).await?;
        let runs = Box::pin(settlement.store(tx, &app_)).await?;
        runs.into_iter().next().map(|(run, _)| run).ok_or_else(|| Error::internal("a run left nothing"))
    })
    .await
}

/// Notes that the run failed; the call fails with the reason, and costs nothing.
async fn fail(
    app: &App,
    call: &Call,
    look: &Look,
    chosen: Chosen,
    doable: &Doable,
    error: Error,
) -> Result<TriagerRun> {
    if error.kind() != ErrorKind::AiUnavailable {
        return Err(error);
    }
    let why = "The language model gave no answer that could be used.";
    let outcome = Outcome::without(chosen.run, RunStatus::Failed, why, doable);
    let settlement = settlement(app, call, look, outcome).await?;
    let app_ = app.clone();
    app.db()
        .write(&call.workspace, async move |tx| {
            hold(tx, &settlement.mailbox).await?;
            Box::pin(settlement.store(tx, &app_)).await.map(|_| ())
        })
        .await?;
    Err(error)
}

async fn settlement(app: &App, call: &Call, look: &Look, outcome: Outcome) -> Result<Settlement> {
    Ok(Settlement {
        mailbox: look.mailbox.id.clone(),
        email: look.record.id.clone(),
        seen: None,
        sorted: Sorted::default(),
        outcomes: vec![outcome],
        key: app.data_key(&call.workspace).await?,
    })
}
