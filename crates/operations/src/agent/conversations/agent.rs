//! The mailbox agent: from a message of the user to the answer.
//!
//! The model is asked, the tools it calls are run, and it is asked again, for a bounded number of rounds. The message
//! and the answer are stored together at the end, with the charge, or not at all. A model may follow whatever a
//! message tells it: what keeps that harmless is the closed list of [`tools`], not the prompt.

mod prompt;
mod stream;
mod tools;
mod turn;

use std::time::Duration;

use model::{
    AgentMessageId, ConversationId,
    conversations::{AgentEvent, AgentMessage, AgentTurn, NewAgentMessage, Speaker, ToolOutcome, ToolUse},
};
use store::conversations as stored;
use tokio::sync::mpsc;

pub use self::turn::Turn;
use self::{stream::InertStream, tools::Toolbox};
use super::{find, message_of, open, seal};
use crate::{
    agent::integrations,
    core::{
        app::App,
        assistant,
        call::Call,
        error::{Error, ErrorKind, Result},
        ports::{ChatMessage, ChatReply, ChatRequest},
    },
    mailbox::mailboxes,
};

/// Model requests per message.
const MAX_ROUNDS: usize = 8;
/// Tool calls per round; further ones are refused.
const MAX_CALLS_PER_ROUND: usize = 6;
/// Maximum length of an answer, in tokens.
const MAX_ANSWER_TOKENS: u32 = 2_000;
/// Maximum time for all rounds together.
const TURN_TIMEOUT: Duration = Duration::from_secs(150);
/// How long a message locks its conversation, longer than it can take.
const LOCK_SECONDS: i64 = 180;
/// Earlier messages that are loaded.
const MAX_HISTORY: i64 = 20;

/// Receives the progress of an answer. A slow receiver misses deltas, never the end.
pub type Progress = mpsc::Sender<AgentEvent>;

/// Checks everything that a message can be refused for, and locks the conversation for it.
#[crate::boxed]
pub async fn begin(
    app: &App,
    call: &Call,
    mailbox: &str,
    id: ConversationId,
    input: NewAgentMessage,
) -> Result<Turn> {
    assistant::require(app)?;
    integrations::require_reach(call, &input.connections)?;
    let key = app.data_key(&call.workspace).await?;
    let message_id = input.id.map_or_else(|| app.new_id(), AgentMessageId::from);
    let message = AgentMessage {
        approve: input.approve,
        ..message_of(message_id, Speaker::User, input.content.replace('\0', ""), call.now)
    };
    let (named, now, wanted) = (mailboxes::name(call, mailbox), call.now, message.id.clone());
    let until = now.plus_seconds(LOCK_SECONDS);
    let connections = input.connections;
    let (mailbox, conversation, earlier, connected, about) = app
        .db()
        .write(&call.workspace, async move |tx| {
            let mailbox = mailboxes::find(tx, &named).await?;
            let conversation = find(tx, &mailbox.id, &id).await?;
            if stored::has_message(tx, &mailbox.id, &id, &wanted).await? {
                return Err(Error::new(ErrorKind::MessageExists));
            }
            let connected = integrations::named(tx, &connections).await?;
            if !stored::claim(tx, &mailbox.id, &id, now, until).await? {
                return Err(Error::new(ErrorKind::ConversationBusy).with_retry_after(5));
            }
            let earlier = stored::messages(tx, &mailbox.id, &id, true, None, MAX_HISTORY).await?;
            let about = tools::sender_of(tx, &mailbox.id, &conversation).await?;
            Ok((mailbox, conversation, earlier, connected, about))
        })
        .await?;
    let history: Result<Vec<AgentMessage>> =
        earlier.into_iter().rev().map(|record| open(&key, record)).collect();
    Ok(Turn {
        mailbox: mailbox.id,
        address: mailbox.email,
        offered: integrations::offer(&key, connected)?,
        history: history?,
        about,
        conversation,
        message,
        until,
        key,
    })
}

/// Sends a message to the agent and waits for its answer.
#[crate::boxed]
pub async fn send(
    app: &App,
    call: &Call,
    mailbox: &str,
    id: ConversationId,
    input: NewAgentMessage,
) -> Result<AgentTurn> {
    begin(app, call, mailbox, id, input).await?.run(app, call, None).await
}

impl Turn {
    /// Generates the answer and stores it.
    #[crate::boxed]
    pub async fn run(self, app: &App, call: &Call, progress: Option<Progress>) -> Result<AgentTurn> {
        let mut toolbox = Toolbox::new(app, call, &self);
        let worked = tokio::select! {
            worked = tokio::time::timeout(TURN_TIMEOUT, self.work(app, &mut toolbox, progress.as_ref())) => {
                worked.unwrap_or_else(|_| Err(Error::new(ErrorKind::AiUnavailable).with_retry_after(10)))
            }
            // Tools have the rights of the caller as they were when the message came.
            refused = app.revoked(call) => Err(refused),
        };
        toolbox.close().await;
        let (used, notes) = (std::mem::take(&mut toolbox.used), std::mem::take(&mut toolbox.notes));
        let mut text = match worked {
            Ok(text) => text,
            // A sent message is reported, whatever failed afterwards.
            Err(fault) if has_sent(&used) => {
                tracing::warn!(%fault, "model request failed after a message was sent; answering without it");
                "The mail was sent. The language model gave no further answer.".to_owned()
            }
            Err(fault) => {
                self.unlock(app, call).await;
                return Err(fault);
            }
        };
        drop(toolbox);
        // The model may omit, or deny, what did not happen as it wanted.
        for note in notes {
            let note = format!("\n\n{note}");
            text.push_str(&note);
            publish(progress.as_ref(), AgentEvent::Delta { text: note });
        }
        self.store(app, call, text, used).await
    }

    /// The rounds. Returns the text of the answer.
    async fn work(
        &self,
        app: &App,
        toolbox: &mut Toolbox<'_>,
        progress: Option<&Progress>,
    ) -> Result<String> {
        let mut request = ChatRequest {
            messages: prompt::conversation(self, app.now()),
            tools: toolbox.specs(),
            json: false,
            max_tokens: MAX_ANSWER_TOKENS,
        };
        for round in 1..=MAX_ROUNDS {
            if round == MAX_ROUNDS {
                // The last answer must be text.
                request.tools.clear();
            }
            let reply = ask(app, toolbox.workspace(), &request, progress).await?;
            if reply.calls.is_empty() || round == MAX_ROUNDS {
                return answer_of(reply);
            }
            let results = self.use_tools(toolbox, &reply, progress).await?;
            request.messages.push(ChatMessage::Assistant { text: reply.text, calls: reply.calls });
            request.messages.extend(results);
        }
        Err(Error::new(ErrorKind::AiUnavailable))
    }

    async fn use_tools(
        &self,
        toolbox: &mut Toolbox<'_>,
        reply: &ChatReply,
        progress: Option<&Progress>,
    ) -> Result<Vec<ChatMessage>> {
        let mut results = Vec::with_capacity(reply.calls.len());
        for (index, call) in reply.calls.iter().enumerate() {
            let result = if index < MAX_CALLS_PER_ROUND {
                let before = toolbox.used.len();
                let result = toolbox.run(&call.name, &call.arguments).await?;
                for tool in &toolbox.used[before..] {
                    publish(progress, AgentEvent::Tool(tool.clone()));
                }
                result
            } else {
                tools::refusal("too many tools at once; ask again for this one")
            };
            results.push(ChatMessage::Tool { call_id: call.id.clone(), result });
        }
        Ok(results)
    }

    /// Stores both messages, with the charge.
    async fn store(self, app: &App, call: &Call, text: String, used: Vec<ToolUse>) -> Result<AgentTurn> {
        let now = app.now();
        let reply = AgentMessage { tools: used, ..message_of(app.new_id(), Speaker::Assistant, text, now) };
        let mut records = [seal(&self.key, &self.message)?, seal(&self.key, &reply)?];
        let turn = AgentTurn { conversation_id: self.conversation.id, message: self.message, reply };
        let (mailbox, until) = (self.mailbox, self.until);
        app.write(call, async move |tx| {
            let id = &turn.conversation_id;
            tx.audit().about("conversation", id).in_mailbox(&mailbox);
            if stored::append(tx, &mailbox, id, until, now, &mut records).await? {
                return Ok(turn);
            }
            // It was deleted meanwhile, or another message locked it because this took too long.
            find(tx, &mailbox, id).await?;
            Err(Error::new(ErrorKind::ConversationBusy).with_retry_after(5))
        })
        .await
    }

    /// Unlocks the conversation without an answer.
    async fn unlock(&self, app: &App, call: &Call) {
        let (mailbox, id, until) = (self.mailbox.clone(), self.conversation.id.clone(), self.until);
        let left =
            app.db().write(&call.workspace, async move |tx| stored::release(tx, &mailbox, &id, until).await);
        if let Err(error) = left.await {
            tracing::warn!(%error, "conversation not unlocked; the lock will expire");
        }
    }
}

fn has_sent(used: &[ToolUse]) -> bool {
    used.iter().any(|tool| tools::sends(&tool.name) && tool.outcome == ToolOutcome::Done)
}

fn answer_of(reply: ChatReply) -> Result<String> {
    if !reply.text.trim().is_empty() {
        return Ok(reply.text);
    }
    if reply.calls.is_empty() {
        return Err(Error::new(ErrorKind::AiUnavailable).with_retry_after(10));
    }
    Ok("This took more steps than one message may take. Ask for less at once.".to_owned())
}

/// Asks the model, and streams inert deltas of its answer.
async fn ask(
    app: &App,
    workspace: &model::WorkspaceId,
    request: &ChatRequest,
    progress: Option<&Progress>,
) -> Result<ChatReply> {
    let Some(progress) = progress else { return assistant::ask(app, workspace, request, None).await };
    let (deltas, mut incoming) = mpsc::channel::<String>(64);
    let forward = async {
        let mut stream = InertStream::default();
        while let Some(piece) = incoming.recv().await {
            if let Some(text) = stream.add(&piece) {
                publish(Some(progress), AgentEvent::Delta { text });
            }
        }
        if let Some(text) = stream.finish() {
            publish(Some(progress), AgentEvent::Delta { text });
        }
    };
    let (reply, ()) = tokio::join!(assistant::ask(app, workspace, request, Some(deltas)), forward);
    reply
}

fn publish(progress: Option<&Progress>, event: AgentEvent) {
    if let Some(progress) = progress {
        // Full or closed: the end of the stream has everything.
        let _ = progress.try_send(event);
    }
}
