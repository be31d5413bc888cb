//! How a language model is asked: within a bounded time, a few questions of one workspace at once, and with an answer
//! that does nothing by being shown.
//!
//! What is asked for (chat, triage, a draft) stands elsewhere; everything goes through [`ask`]. What a mail says may
//! be put into [`ChatMessage::User`](crate::outside::ChatMessage) and tool results only, inside JSON.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use mail::safe_text::SafeText;
use model::WorkspaceId;
use tokio::sync::Semaphore;

use crate::{
    App, Error, ErrorKind, Result, lock,
    outside::{AssistantFault, ChatDeltas, ChatReply, ChatRequest},
};

#[cfg(test)]
mod tests;

/// The longest that one question takes, waiting for its turn included.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Questions of one workspace that are with the model at the same time, where it takes so many.
const AT_ONCE: usize = 4;
/// Workspaces whose turns are remembered before the idle ones are forgotten.
const REMEMBERED: usize = 1_000;
/// Characters of a subject.
const MAX_SUBJECT: usize = 900;

/// Who is asking the model at the moment.
#[derive(Default)]
pub(crate) struct Asking(Mutex<HashMap<WorkspaceId, Arc<Semaphore>>>);

impl Asking {
    fn turns(&self, workspace: &WorkspaceId, at_once: usize) -> Arc<Semaphore> {
        let mut all = lock(&self.0);
        if all.len() >= REMEMBERED {
            all.retain(|_, turns| Arc::strong_count(turns) > 1);
        }
        all.entry(workspace.clone()).or_insert_with(|| Arc::new(Semaphore::new(at_once))).clone()
    }
}

/// Whether a model is configured.
pub fn is_configured(app: &App) -> bool {
    app.assistant().is_some()
}

/// How many questions of one workspace are with the model at the same time: never more than the model takes in all, so that
/// one of another workspace waits for one answer and not for several.
pub(crate) fn at_once(app: &App) -> usize {
    AT_ONCE.min(app.assistant().map_or(AT_ONCE, |assistant| assistant.concurrency())).max(1)
}

/// Says what is missing when no model is configured, before anything is done or charged.
pub fn require(app: &App) -> Result<()> {
    if is_configured(app) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::AiUnavailable).with_fix(
        "Set ai.base_url and ai.model (and ai.api_key where the provider asks for one), then start the server again.",
    ))
}

/// Asks the model a question for a workspace. The text of the answer is [`inert`]; pieces that are passed on while it
/// is written are not, so whoever shows them shows plain text.
pub(crate) async fn ask(
    app: &App,
    workspace: &WorkspaceId,
    request: &ChatRequest,
    deltas: Option<ChatDeltas>,
) -> Result<ChatReply> {
    require(app)?;
    let Some(assistant) = app.assistant() else { return Err(Error::new(ErrorKind::AiUnavailable)) };
    let turns = app.asking().turns(workspace, at_once(app));
    let asked = tokio::time::timeout(TIME_LIMIT, async {
        let _turn = turns.acquire().await.map_err(Error::internal)?;
        assistant.chat(request, deltas).await.map_err(|reason| fault(&reason))
    });
    let Ok(answered) = asked.await else {
        return Err(fault(&AssistantFault::Unavailable("it takes too long".to_owned())));
    };
    let mut reply = answered?;
    reply.text = inert(&reply.text);
    Ok(reply)
}

fn fault(fault: &AssistantFault) -> Error {
    tracing::warn!(%fault, "the model gave no answer");
    let error = Error::new(ErrorKind::AiUnavailable);
    match fault {
        AssistantFault::Unavailable(_) => error
            .with_fix("Try again later; the operator finds the reason in the server's log.")
            .with_retry_after(10),
        AssistantFault::Refused(_) => error
            .with_fix("The model refused this request; the operator finds the reason in the server's log."),
    }
}

/// The subject of a draft or message that a model has a part in, as harmless as its text.
pub(crate) fn inert_subject(text: &str) -> String {
    inert_line(text, MAX_SUBJECT)
}

/// [`inert`] text on one line, of at most so many characters.
pub(crate) fn inert_line(text: &str, most: usize) -> String {
    let line = SafeText::line(text);
    inert(line.cut(most).0).chars().take(most).collect::<String>().trim().to_owned()
}

/// Text of a model that loads nothing and links to nothing when a program shows it as Markdown or HTML: images, links
/// and tags are left as the characters they are made of, pulled apart.
pub(crate) fn inert(text: &str) -> String {
    let safe = SafeText::from_plain(text).into_string();
    let mut inert = String::with_capacity(safe.len() + 16);
    let mut characters = safe.chars().peekable();
    while let Some(character) = characters.next() {
        let next = characters.peek().copied();
        match (character, next) {
            ('!', Some('[')) => {}
            (']', Some('(' | ':' | '[')) => inert.push_str("] "),
            ('<', Some(next)) if next.is_alphanumeric() || matches!(next, '/' | '!' | '?') => {
                inert.push_str("< ");
            }
            _ => inert.push(character),
        }
    }
    inert
}
