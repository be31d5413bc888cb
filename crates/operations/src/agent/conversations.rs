//! Conversations with the mailbox agent: their titles and messages. How the agent works is in [`agent`].

pub mod agent;

use model::{
    AgentMessageId, ConversationId, Limit, Scope, Timestamp,
    conversations::{
        AgentMessage, AgentMessagePage, AgentMessageQuery, CONVERSATIONS_A_PAGE, Conversation,
        ConversationChange, ConversationPage, ConversationQuery, MessageOrder, NewConversation, Speaker,
        ToolUse, UNTITLED,
    },
};
use serde::{Deserialize, Serialize};
use store::{
    Tx,
    conversations::{self, MessageRecord},
    emails,
    vault::DataKey,
};

use crate::{
    core::{
        app::App,
        call::Call,
        cursor,
        error::{Error, ErrorKind, Result},
        input::clean_name,
        operation::Operation,
    },
    mailbox::mailboxes,
};

/// Lists conversations.
pub const LIST: Operation = Operation::read(
    "listAgentConversations",
    "Lists the conversations with the mailbox agent, last used first, 10 per page.",
)
.errors(&[ErrorKind::NotFound, ErrorKind::InvalidCursor]);
/// Makes a conversation.
pub const CREATE: Operation = Operation::write(
    "createAgentConversation",
    "Starts a conversation with the mailbox agent, optionally about one thread; at most 1,000 per mailbox.",
)
.scope(Scope::Agent)
.created()
.errors(&[ErrorKind::NotFound, ErrorKind::QuotaExceeded]);
/// Renames a conversation.
pub const UPDATE: Operation =
    Operation::write("updateAgentConversation", "Renames a conversation with the mailbox agent.")
        .scope(Scope::Agent)
        .errors(&[ErrorKind::NotFound, ErrorKind::ConversationProtected]);
/// Deletes a conversation.
pub const DELETE: Operation = Operation::write(
    "deleteAgentConversation",
    "Deletes a conversation with the mailbox agent and all its messages.",
)
.scope(Scope::Agent)
.empty()
.errors(&[ErrorKind::NotFound, ErrorKind::ConversationProtected]);
/// Lists messages.
pub const MESSAGES: Operation = Operation::read(
    "listAgentMessages",
    "Lists the messages of a conversation with the mailbox agent, oldest first by default.",
)
.errors(&[ErrorKind::NotFound, ErrorKind::InvalidCursor]);
/// Sends a message to the agent.
pub const SEND: Operation = Operation::ai_heavy(
    "sendAgentMessage",
    "Sends a message to the mailbox agent and returns its reply: as JSON, or as server-sent events if the caller \
     accepts `text/event-stream`. The agent reads the mailbox and saves drafts; it sends one email only with \
     `approve`, and uses outside tools only of the `connections` that the message names.",
).scope(Scope::Agent)
.errors(&[
    ErrorKind::NotFound,
    ErrorKind::MessageExists,
    ErrorKind::ConversationBusy,
    ErrorKind::AiUnavailable,
]);

pub(crate) const OPERATIONS: &[&Operation] = &[&LIST, &CREATE, &UPDATE, &DELETE, &MESSAGES, &SEND];

/// Conversations of one mailbox, not counting those of triagers.
const MAX_CONVERSATIONS: u64 = 1000;
/// The purpose that messages are sealed for.
const PURPOSE: &str = "agent message";

/// The sealed part of a message.
#[derive(Serialize, Deserialize)]
struct MessageContent {
    text: String,
    #[serde(default)]
    approve: bool,
    #[serde(default)]
    tools: Vec<ToolUse>,
}

/// Seals a message; its position is assigned by the store.
fn seal(key: &DataKey, message: &AgentMessage) -> Result<MessageRecord> {
    let content = MessageContent {
        text: message.content.clone(),
        approve: message.approve,
        tools: message.tools.clone(),
    };
    let plain = serde_json::to_vec(&content).map_err(Error::internal)?;
    Ok(MessageRecord {
        position: 0,
        id: message.id.clone(),
        role: message.role,
        content: key.seal(PURPOSE, &plain).map_err(store::Error::from)?,
        created_at: message.created_at,
    })
}

fn open(key: &DataKey, record: MessageRecord) -> Result<AgentMessage> {
    let plain = key.open(PURPOSE, &record.content).map_err(store::Error::from)?;
    let content: MessageContent = serde_json::from_slice(&plain).map_err(Error::internal)?;
    Ok(AgentMessage {
        id: record.id,
        role: record.role,
        content: content.text,
        approve: content.approve,
        tools: content.tools,
        created_at: record.created_at,
    })
}

/// Where a page of conversations ended.
#[derive(Serialize, Deserialize)]
struct ConversationPosition {
    at: i64,
    id: ConversationId,
}

/// Lists conversations.
#[crate::boxed]
pub async fn list(
    app: &App,
    call: &Call,
    mailbox: &str,
    query: ConversationQuery,
) -> Result<ConversationPage> {
    let named = mailboxes::name(call, mailbox);
    let key = app.data_key(&call.workspace).await?;
    let about = format!("listAgentConversations {mailbox}");
    let after: Option<ConversationPosition> =
        query.cursor.as_deref().map(|text| cursor::open(&key, &about, text)).transpose()?;
    let mut found = app
        .read(call, async move |tx| {
            let mailbox = mailboxes::find_id(tx, &named).await?;
            let after = after.as_ref().map(|position| (Timestamp::from_micros(position.at), &position.id));
            Ok(conversations::list(tx, &mailbox, after, CONVERSATIONS_A_PAGE + 1).await?)
        })
        .await?;
    let has_more = cursor::truncate(&mut found, CONVERSATIONS_A_PAGE);
    let next_cursor = match found.last().filter(|_| has_more) {
        Some(last) => {
            let position = ConversationPosition { at: last.updated_at.as_micros(), id: last.id.clone() };
            Some(cursor::seal(&key, &about, &position)?)
        }
        None => None,
    };
    Ok(ConversationPage { conversations: found, next_cursor })
}

/// A conversation without messages.
pub(crate) fn new_conversation(app: &App, title: String, now: Timestamp) -> Conversation {
    Conversation {
        id: app.new_id(),
        title,
        message_count: 0,
        thread_id: None,
        triager_id: None,
        created_at: now,
        updated_at: now,
    }
}

/// One conversation, for the console.
#[crate::boxed]
pub async fn get(app: &App, call: &Call, mailbox: &str, id: ConversationId) -> Result<Conversation> {
    let named = mailboxes::name(call, mailbox);
    app.read(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        find(tx, &mailbox, &id).await
    })
    .await
}

/// Makes a conversation.
#[crate::boxed]
pub async fn create(app: &App, call: &Call, mailbox: &str, input: NewConversation) -> Result<Conversation> {
    let title = match &input.title {
        Some(title) => clean_name("title", title)?,
        None => UNTITLED.to_owned(),
    };
    let conversation = Conversation { thread_id: input.thread_id, ..new_conversation(app, title, call.now) };
    let named = mailboxes::name(call, mailbox);
    app.write(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        store::mailboxes::lock(tx, &mailbox).await?;
        if let Some(thread) = &conversation.thread_id
            && emails::count_thread(tx, &mailbox, thread, None).await? == 0
        {
            return Err(Error::not_found("Thread not found"));
        }
        tx.audit().about("conversation", &conversation.id);
        let limit = Limit::of(MAX_CONVERSATIONS);
        let present = u64::try_from(conversations::count(tx, &mailbox).await?).unwrap_or_default();
        if !limit.has_room(present) {
            return Err(Error::quota("conversations in a mailbox", limit));
        }
        conversations::insert(tx, &mailbox, &conversation).await?;
        Ok(conversation)
    })
    .await
}

/// Renames a conversation.
#[crate::boxed]
pub async fn update(
    app: &App,
    call: &Call,
    mailbox: &str,
    id: ConversationId,
    change: ConversationChange,
) -> Result<Conversation> {
    let title = clean_name("title", &change.title)?;
    let (named, now) = (mailboxes::name(call, mailbox), call.now);
    app.write(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        let found = find(tx, &mailbox, &id).await?;
        tx.audit().about("conversation", &id);
        require_own(&found)?;
        conversations::rename(tx, &mailbox, &id, &title, now).await?;
        Ok(Conversation { title, updated_at: now, ..found })
    })
    .await
}

/// Deletes a conversation.
#[crate::boxed]
pub async fn delete(app: &App, call: &Call, mailbox: &str, id: ConversationId) -> Result<()> {
    let named = mailboxes::name(call, mailbox);
    app.write(call, async move |tx| {
        let mailbox = mailboxes::find_id(tx, &named).await?;
        require_own(&find(tx, &mailbox, &id).await?)?;
        tx.audit().about("conversation", &id);
        Ok(conversations::delete(tx, &mailbox, &id).await?)
    })
    .await
}

/// Lists messages.
#[crate::boxed]
pub async fn messages(
    app: &App,
    call: &Call,
    mailbox: &str,
    id: ConversationId,
    query: AgentMessageQuery,
) -> Result<AgentMessagePage> {
    let named = mailboxes::name(call, mailbox);
    let key = app.data_key(&call.workspace).await?;
    let about = format!("listAgentMessages {mailbox} {id} {}", query.order);
    let from: Option<i64> =
        query.cursor.as_deref().map(|text| cursor::open(&key, &about, text)).transpose()?;
    let (limit, newest_first) = (query.limit, query.order == MessageOrder::Descending);
    let mut found = app
        .read(call, async move |tx| {
            let mailbox = mailboxes::find_id(tx, &named).await?;
            find(tx, &mailbox, &id).await?;
            Ok(conversations::messages(tx, &mailbox, &id, newest_first, from, limit + 1).await?)
        })
        .await?;
    let has_more = cursor::truncate(&mut found, limit);
    let next_cursor = match found.last().filter(|_| has_more) {
        Some(last) => Some(cursor::seal(&key, &about, &last.position)?),
        None => None,
    };
    let messages = found.into_iter().map(|record| open(&key, record)).collect::<Result<_>>()?;
    Ok(AgentMessagePage { messages, next_cursor })
}

/// A conversation of a mailbox.
pub(crate) async fn find(
    tx: &mut Tx,
    mailbox: &model::MailboxId,
    id: &ConversationId,
) -> Result<Conversation> {
    let found = conversations::find(tx, mailbox, id).await?;
    found.ok_or_else(|| Error::not_found("Conversation not found"))
}

fn require_own(conversation: &Conversation) -> Result<()> {
    if conversation.triager_id.is_some() {
        return Err(Error::new(ErrorKind::ConversationProtected).with_fix(
            "It belongs to a triager and is deleted with it. Start a conversation of your own instead.",
        ));
    }
    Ok(())
}

/// A message of a speaker.
fn message_of(id: AgentMessageId, role: Speaker, content: String, now: Timestamp) -> AgentMessage {
    AgentMessage { id, role, content, approve: false, tools: Vec::new(), created_at: now }
}
