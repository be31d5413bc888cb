//! Requests to the language model: bounded in time, limited per workspace, and with an answer that does nothing when
//! it is displayed.
//!
//! The prompts (chat, triage, drafts) are elsewhere; every request goes through [`ask`]. Text from messages may only
//! be put into [`ChatMessage::User`](crate::core::ports::ChatMessage) and tool results, inside JSON.

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

/// Maximum time for one request, waiting for a slot included.
const ASK_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum concurrent requests of one workspace, if the model takes that many.
const MAX_CONCURRENT_PER_WORKSPACE: usize = 4;
/// Maximum length of a subject.
const MAX_SUBJECT_CHARS: usize = 900;

/// Whether a model is configured.
pub fn is_configured(app: &App) -> bool {
    app.assistant().is_some()
}

/// Maximum concurrent requests of one workspace: never more than the model takes in total, so that another workspace
/// waits for one answer and not for several.
pub(crate) fn max_concurrent(app: &App) -> usize {
    MAX_CONCURRENT_PER_WORKSPACE
        .min(app.assistant().map_or(MAX_CONCURRENT_PER_WORKSPACE, |assistant| assistant.concurrency()))
        .max(1)
}

/// Fails with what to configure when there is no model, before anything is done or charged.
pub fn require(app: &App) -> Result<()> {
    if is_configured(app) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::AiUnavailable).with_fix(
        "Set ai.base_url and ai.model (and ai.api_key where the provider asks for one), then start the server again.",
    ))
}

/// Sends a request to the model for a workspace. The text of the answer is [`inert`]; streamed deltas are not, so
/// they must be shown as plain text.
pub(crate) async fn ask(
    app: &App,
    workspace: &WorkspaceId,
    request: &ChatRequest,
    deltas: Option<ChatDeltas>,
) -> Result<ChatReply> {
    require(app)?;
    let Some(assistant) = app.assistant() else { return Err(Error::new(ErrorKind::AiUnavailable)) };
    let slots = app.model_slots().of(workspace, max_concurrent(app));
    let asked = tokio::time::timeout(ASK_TIMEOUT, async {
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
    tracing::warn!(%fault, "model request failed");
    let error = Error::new(ErrorKind::AiUnavailable);
    match fault {
        AssistantFault::Unavailable(_) => error
            .with_fix("Try again later; the operator finds the reason in the server's log.")
            .with_retry_after(10),
        AssistantFault::Refused(_) => error
            .with_fix("The model refused this request; the operator finds the reason in the server's log."),
    }
}

/// The subject of a draft or message that a model contributed to, made inert like its text.
pub(crate) fn inert_subject(text: &str) -> String {
    inert_line(text, MAX_SUBJECT_CHARS)
}

/// [`inert`] text on one line, of at most that many characters.
pub(crate) fn inert_line(text: &str, max_chars: usize) -> String {
    let line = SafeText::line(text);
    inert(line.cut(max_chars).0).chars().take(max_chars).collect::<String>().trim().to_owned()
}

/// Model text that loads nothing and links nowhere when it is rendered as Markdown or HTML: images, links and tags
/// are broken up into plain characters.
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
