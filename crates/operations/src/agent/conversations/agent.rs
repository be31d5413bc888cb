//! The mailbox agent: what happens between something that a person says and the answer.
//!
//! The model is asked, the tools it wants are used, and it is asked again, for a bounded number of rounds. What was said
//! and what was answered are stored together at the end, with the charge, or not at all. A model may follow whatever a
//! mail tells it: what keeps that harmless is the closed list of [`tools`], not what the model is told.

mod pieces;
mod prompt;
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
use self::{pieces::Pieces, tools::Toolbox};
use super::{find, open, seal, spoken};
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

/// Times that the model is asked for one message.
const ROUNDS: usize = 8;
/// Tools that are used in one round; what is asked for beyond that is refused.
const CALLS_A_ROUND: usize = 6;
/// The longest answer, in tokens.
const MAX_ANSWER_TOKENS: u32 = 2_000;
/// The longest that all rounds take together.
const TIME_LIMIT: Duration = Duration::from_secs(150);
/// How long a message has its conversation to itself, longer than it can take.
const HELD_SECONDS: i64 = 180;
/// Earlier messages that are looked at.
const REMEMBERED: i64 = 20;

/// Where news of an answer that is being made go. Whoever reads too slowly misses pieces, never the end.
pub type Progress = mpsc::Sender<AgentEvent>;

/// Checks everything that a message can be refused for, and takes the conversation for it.
#[crate::boxed]
pub async fn begin(
    app: &App,
    call: &Call,
    mailbox: &str,
    id: ConversationId,
    input: NewAgentMessage,
) -> Result<Turn> {
    assistant::require(app)?;
    let key = app.data_key(&call.workspace).await?;
    let message_id = input.id.map_or_else(|| app.new_id(), AgentMessageId::from);
    let message = AgentMessage {
        approve: input.approve,
        ..spoken(message_id, Speaker::User, input.content.replace('\0', ""), call.now)
    };
    let (named, now, wanted) = (mailboxes::name(mailbox), call.now, message.id.clone());
    let until = now.plus_seconds(HELD_SECONDS);
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
            if !stored::take(tx, &mailbox.id, &id, now, until).await? {
                return Err(Error::new(ErrorKind::ConversationBusy).with_retry_after(5));
            }
            let earlier = stored::messages(tx, &mailbox.id, &id, true, None, REMEMBERED).await?;
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

/// Says something to the agent and waits for its answer.
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
    /// Works on the answer and stores it.
    #[crate::boxed]
    pub async fn run(self, app: &App, call: &Call, progress: Option<Progress>) -> Result<AgentTurn> {
        let mut toolbox = Toolbox::new(app, call, &self);
        let worked = tokio::time::timeout(TIME_LIMIT, self.work(app, &mut toolbox, progress.as_ref())).await;
        let worked =
            worked.unwrap_or_else(|_| Err(Error::new(ErrorKind::AiUnavailable).with_retry_after(10)));
        toolbox.close().await;
        let (used, notes) = (std::mem::take(&mut toolbox.used), std::mem::take(&mut toolbox.notes));
        let mut text = match worked {
            Ok(text) => text,
            // What has left the house is told, whatever became of the rest.
            Err(fault) if has_sent(&used) => {
                tracing::warn!(%fault, "the model failed after a mail was sent for it");
                "The mail was sent. The language model gave no further answer.".to_owned()
            }
            Err(fault) => {
                self.give_up(app, call).await;
                return Err(fault);
            }
        };
        drop(toolbox);
        // The model may keep to itself, or deny, what did not happen as it wanted.
        for note in notes {
            let note = format!("\n\n{note}");
            text.push_str(&note);
            tell(progress.as_ref(), AgentEvent::Delta { text: note });
        }
        self.store(app, call, text, used).await
    }

    /// The rounds. Gives the text of the answer.
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
        for round in 1..=ROUNDS {
            if round == ROUNDS {
                // The last answer must be one.
                request.tools.clear();
            }
            let reply = ask(app, toolbox.workspace(), &request, progress).await?;
            if reply.calls.is_empty() || round == ROUNDS {
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
        for (place, call) in reply.calls.iter().enumerate() {
            let result = if place < CALLS_A_ROUND {
                let before = toolbox.used.len();
                let result = toolbox.run(&call.name, &call.arguments).await?;
                for tool in &toolbox.used[before..] {
                    tell(progress, AgentEvent::Tool(tool.clone()));
                }
                result
            } else {
                tools::refusal("too many tools at once; ask again for this one")
            };
            results.push(ChatMessage::Tool { call_id: call.id.clone(), result });
        }
        Ok(results)
    }

    /// Stores both sides, with the charge.
    async fn store(self, app: &App, call: &Call, text: String, used: Vec<ToolUse>) -> Result<AgentTurn> {
        let now = app.now();
        let reply = AgentMessage { tools: used, ..spoken(app.new_id(), Speaker::Assistant, text, now) };
        let mut records = [seal(&self.key, &self.message)?, seal(&self.key, &reply)?];
        let turn = AgentTurn { conversation_id: self.conversation.id, message: self.message, reply };
        let (mailbox, until) = (self.mailbox, self.until);
        app.write(call, async move |tx| {
            let id = &turn.conversation_id;
            if stored::append(tx, &mailbox, id, until, now, &mut records).await? {
                return Ok(turn);
            }
            // It was deleted meanwhile, or somebody else has it because this took too long.
            find(tx, &mailbox, id).await?;
            Err(Error::new(ErrorKind::ConversationBusy).with_retry_after(5))
        })
        .await
    }

    /// Leaves the conversation as it was.
    async fn give_up(&self, app: &App, call: &Call) {
        let (mailbox, id, until) = (self.mailbox.clone(), self.conversation.id.clone(), self.until);
        let left =
            app.db().write(&call.workspace, async move |tx| stored::leave(tx, &mailbox, &id, until).await);
        if let Err(error) = left.await {
            tracing::warn!(%error, "a conversation stays taken for a while");
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

/// Asks the model, and passes pieces of its answer on, as harmless as the whole.
async fn ask(
    app: &App,
    workspace: &model::WorkspaceId,
    request: &ChatRequest,
    progress: Option<&Progress>,
) -> Result<ChatReply> {
    let Some(progress) = progress else { return assistant::ask(app, workspace, request, None).await };
    let (deltas, mut coming) = mpsc::channel::<String>(64);
    let pass_on = async {
        let mut pieces = Pieces::default();
        while let Some(piece) = coming.recv().await {
            if let Some(text) = pieces.add(&piece) {
                tell(Some(progress), AgentEvent::Delta { text });
            }
        }
        if let Some(text) = pieces.finish() {
            tell(Some(progress), AgentEvent::Delta { text });
        }
    };
    let (reply, ()) = tokio::join!(assistant::ask(app, workspace, request, Some(deltas)), pass_on);
    reply
}

fn tell(progress: Option<&Progress>, event: AgentEvent) {
    if let Some(progress) = progress {
        // Full or gone: the end of the stream tells everything again.
        let _ = progress.try_send(event);
    }
}
