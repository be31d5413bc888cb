//! How a language model is asked: within a bounded time, a few questions of one workspace at once, and with an answer
//! that does nothing by being shown.
//!
//! What is asked for (chat, triage, a draft) stands elsewhere; everything goes through [`ask`]. What a mail says may
//! be put into [`ChatMessage::User`](crate::core::ports::ChatMessage) and tool results only, inside JSON.

use std::time::Duration;

use mail::safe_text::SafeText;
use model::WorkspaceId;

use crate::core::{
    app::App,
    error::{Error, ErrorKind, Result},
    ports::{AssistantFault, ChatDeltas, ChatReply, ChatRequest},
};

#[cfg(test)]
mod tests;

/// The longest that one question takes, waiting for its turn included.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Questions of one workspace that are with the model at the same time, where it takes so many.
const MAX_CONCURRENT_PER_WORKSPACE: usize = 4;
/// Characters of a subject.
const MAX_SUBJECT: usize = 900;

/// Whether a model is configured.
pub fn is_configured(app: &App) -> bool {
    app.assistant().is_some()
}

/// How many questions of one workspace are with the model at the same time: never more than the model takes in all, so that
/// one of another workspace waits for one answer and not for several.
pub(crate) fn at_once(app: &App) -> usize {
    MAX_CONCURRENT_PER_WORKSPACE
        .min(app.assistant().map_or(MAX_CONCURRENT_PER_WORKSPACE, |assistant| assistant.concurrency()))
        .max(1)
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
    let slots = app.model_slots().of(workspace, at_once(app));
    let asked = tokio::time::timeout(TIME_LIMIT, async {
        let _slot = slots.acquire().await.map_err(Error::internal)?;
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
