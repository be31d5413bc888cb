//! Conversations with the mailbox agent over HTTP.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{body::Bytes, http::Method};
use futures_util::{Stream, stream};
use model::conversations::{
    AgentEvent, AgentMessagePage, AgentMessageQuery, AgentTurn, Conversation, ConversationChange,
    ConversationPage, ConversationQuery, NewAgentMessage, NewConversation,
};
use operations::{
    App, Call, Error, Result,
    conversations::{
        self,
        agent::{self, Turn},
    },
};
use tokio::sync::{mpsc, oneshot};

use super::paths::{ConversationPath, InMailbox};
use crate::{
    Endpoint,
    input::{Json, Path, Query, WantsEvents},
    reply::{Reply, Work},
};

/// Interval of keep-alive comments on an idle stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Events buffered for a slow reader before text deltas are dropped.
const EVENT_CAPACITY: usize = 256;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tag = "Mailbox agent";
    let all = "/api/v1/mailboxes/{mailboxId}/agent-conversations";
    let one = "/api/v1/mailboxes/{mailboxId}/agent-conversations/{conversationId}";
    let messages = "/api/v1/mailboxes/{mailboxId}/agent-conversations/{conversationId}/messages";
    vec![
        Endpoint::new(tag, Method::GET, all, &conversations::LIST, list),
        Endpoint::new(tag, Method::POST, all, &conversations::CREATE, create),
        Endpoint::new(tag, Method::PATCH, one, &conversations::UPDATE, update),
        Endpoint::new(tag, Method::DELETE, one, &conversations::DELETE, delete),
        Endpoint::new(tag, Method::GET, messages, &conversations::MESSAGES, list_messages),
        Endpoint::either::<AgentTurn, AgentEvent, _, _, _>(
            tag,
            Method::POST,
            messages,
            &conversations::SEND,
            send,
        ),
    ]
}

async fn list(
    app: App,
    call: Arc<Call>,
    (Path(path), Query(query)): (Path<InMailbox>, Query<ConversationQuery>),
) -> Result<ConversationPage> {
    conversations::list(&app, &call, &path.mailbox, query).await
}

async fn create(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(input)): (Path<InMailbox>, Json<NewConversation>),
) -> Result<Conversation> {
    conversations::create(&app, &call, &path.mailbox, input).await
}

async fn update(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(change)): (Path<ConversationPath>, Json<ConversationChange>),
) -> Result<Conversation> {
    conversations::update(&app, &call, &path.mailbox, path.conversation, change).await
}

async fn delete(app: App, call: Arc<Call>, Path(path): Path<ConversationPath>) -> Result<()> {
    conversations::delete(&app, &call, &path.mailbox, path.conversation).await
}

async fn list_messages(
    app: App,
    call: Arc<Call>,
    (Path(path), Query(query)): (Path<ConversationPath>, Query<AgentMessageQuery>),
) -> Result<AgentMessagePage> {
    conversations::messages(&app, &call, &path.mailbox, path.conversation, query).await
}

async fn send(
    app: App,
    call: Arc<Call>,
    (Path(path), Json(input), WantsEvents(streams)): (
        Path<ConversationPath>,
        Json<NewAgentMessage>,
        WantsEvents,
    ),
) -> Result<Reply> {
    let turn = agent::begin(&app, &call, &path.mailbox, path.conversation, input).await?;
    if streams {
        return Ok(Reply::Work(streamed(app, call, turn)));
    }
    let done = turn.run(&app, &call, None).await?;
    serde_json::to_vec(&done).map(Reply::Json).map_err(Error::internal)
}

/// The work on an answer, with a stream of its progress.
pub(crate) fn streamed(app: App, call: Arc<Call>, turn: Turn) -> Work {
    let (progress, events) = mpsc::channel(EVENT_CAPACITY);
    let (finished, last) = oneshot::channel();
    let task = async move {
        let outcome = turn.run(&app, &call, Some(progress)).await;
        let event = match &outcome {
            Ok(done) => AgentEvent::Message(done.clone()),
            Err(fault) => AgentEvent::Error {
                error: fault.message().to_owned(),
                code: fault.kind().code().to_owned(),
                fix: fault.fix_or_default().map(ToOwned::to_owned),
            },
        };
        let send_final: Box<dyn FnOnce() + Send> = Box::new(move || {
            // The client may have disconnected.
            let _ = finished.send(event);
        });
        (outcome.is_ok(), send_final)
    };
    Work { stream: Box::pin(progress_stream(events, last)), task: Box::pin(task) }
}

/// What the client gets: progress events, keep-alives, and the final event.
fn progress_stream(
    events: mpsc::Receiver<AgentEvent>,
    last: oneshot::Receiver<AgentEvent>,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let opening = stream::iter([Ok(Bytes::from_static(b": open\n\n"))]);
    let rest = stream::unfold(Some((events, last)), async |state| {
        let (mut events, last) = state?;
        match tokio::time::timeout(KEEP_ALIVE_INTERVAL, events.recv()).await {
            Err(_) => Some((Ok(Bytes::from_static(b": still here\n\n")), Some((events, last)))),
            Ok(Some(event)) => Some((Ok(encode_event(&event)), Some((events, last)))),
            // The channel closes when the work is done; work that was aborted sends no final event.
            Ok(None) => last.await.ok().map(|event| (Ok(encode_event(&event)), None)),
        }
    });
    futures_util::StreamExt::chain(opening, rest)
}

fn encode_event(event: &AgentEvent) -> Bytes {
    let data = serde_json::to_string(event).unwrap_or_default();
    Bytes::from(format!("event: {}\ndata: {data}\n\n", event.name()))
}
