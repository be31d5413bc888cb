//! The mailbox agent: conversations and their messages. Works as a plain form; a script shows answers while they
//! are written.
//!
//! A message costs the same as over the API, because the model costs the same.

use askama::Template;
use axum::{
    Router,
    extract::{Path, RawQuery, Request},
    response::Response,
    routing::{get, post},
};
use model::{
    conversations::{
        AgentMessage, AgentMessageQuery, Conversation, ConversationQuery, NewAgentMessage, NewConversation,
        Speaker, ToolOutcome,
    },
    integrations::ConnectionStatus,
};
use operations::{
    Error, Result, assistant,
    conversations::{self, agent},
    integrations,
};
use serde_json::json;
use tracing::Instrument;

use super::{
    confirm::{Question, confirmed},
    fields::{Fields, input},
    links::encoded,
    page::{self, html},
    shell::Shell,
    sidebar::fill_sidebar,
    time::{When, Zone},
    visit::Visit,
};
use crate::State;

pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/console/m/{mailbox}/agent", get(list).post(begin))
        .route("/console/m/{mailbox}/agent/{conversation}", get(one).post(say))
        .route("/console/m/{mailbox}/agent/{conversation}/rename", post(rename))
        .route("/console/m/{mailbox}/agent/{conversation}/delete", post(delete))
}

struct Row {
    id: String,
    title: String,
    count: i64,
    used: When,
    own: bool,
}

fn row(zone: &Zone, one: Conversation) -> Row {
    Row {
        id: one.id.as_str().to_owned(),
        title: one.title,
        count: one.message_count,
        used: zone.when(one.updated_at),
        own: one.triager_id.is_none(),
    }
}

/// An integration that a message can name.
struct Choice {
    id: String,
    name: String,
    host: String,
    tools: usize,
}

/// What the form for a message needs.
struct MessageForm {
    /// Where the form is posted, and where the script sends it.
    action: String,
    api: String,
    choices: Vec<Choice>,
    /// What was typed and refused.
    content: String,
    approve: bool,
}

#[derive(Template)]
#[template(path = "console/agent.html")]
struct AgentPage {
    shell: Shell,
    rows: Vec<Row>,
    next: Option<String>,
    asking: MessageForm,
    available: bool,
    /// What a message costs in credits.
    price: u64,
    said: String,
}

struct ToolUseRow {
    name: String,
    failed: bool,
    url: String,
}

struct Bubble {
    mine: bool,
    text: String,
    approved: bool,
    tools: Vec<ToolUseRow>,
    at: When,
}

fn bubble(zone: &Zone, mailbox: &str, message: AgentMessage) -> Bubble {
    let tool_row = |tool: model::conversations::ToolUse| ToolUseRow {
        url: match tool.email_id {
            Some(id) if tool.name == "save_draft" => {
                format!("/console/m/{}/compose?draft={}", encoded(mailbox), encoded(id.as_str()))
            }
            Some(_) => format!("/console/m/{}/f/sent", encoded(mailbox)),
            None => String::new(),
        },
        failed: tool.outcome == ToolOutcome::Failed,
        name: tool.name.replace('_', " "),
    };
    Bubble {
        mine: message.role == Speaker::User,
        text: message.content,
        approved: message.approve,
        tools: message.tools.into_iter().map(tool_row).collect(),
        at: zone.when(message.created_at),
    }
}

#[derive(Template)]
#[template(path = "console/conversation.html")]
struct ConversationPage {
    shell: Shell,
    conversation: Row,
    bubbles: Vec<Bubble>,
    older: Option<String>,
    asking: MessageForm,
    available: bool,
    said: String,
}

fn page_url(mailbox: &str) -> String {
    format!("/console/m/{}/agent", encoded(mailbox))
}

async fn asking(
    visit: &Visit,
    mailbox: &str,
    conversation: Option<&str>,
    typed: &Fields,
) -> Result<MessageForm> {
    let all = integrations::list(visit.app(), &visit.call(&integrations::LIST)?).await?;
    let usable =
        all.into_iter().filter(|one| one.status == ConnectionStatus::Ready && !one.allowed_tools.is_empty());
    let choices = usable
        .map(|one| Choice {
            id: one.id.as_str().to_owned(),
            name: one.name,
            host: one.url_host,
            tools: one.allowed_tools.len(),
        })
        .collect();
    let mut action = page_url(mailbox);
    if let Some(conversation) = conversation {
        action = format!("{action}/{}", encoded(conversation));
    }
    let mut api = format!("/api/v1/mailboxes/{}/agent-conversations", encoded(mailbox));
    if let Some(conversation) = conversation {
        api = format!("{api}/{}/messages", encoded(conversation));
    }
    let (content, approve) = (typed.get("content").to_owned(), typed.ticked("approve"));
    Ok(MessageForm { action, api, choices, content, approve })
}

async fn show_list(
    visit: &Visit,
    mailbox: &str,
    query: &Fields,
    typed: &Fields,
    said: String,
) -> Result<Response> {
    let mut shell = visit.shell("Agent", "agent").await?;
    fill_sidebar(visit, &mut shell, mailbox).await?;
    let request: ConversationQuery = input(&json!({ "cursor": query.given("cursor") }))?;
    let call = visit.call(&conversations::LIST)?;
    let found = conversations::list(visit.app(), &call, mailbox, request).await?;
    let next = found.next_cursor.map(|cursor| {
        let cursor: String = form_urlencoded::byte_serialize(cursor.as_bytes()).collect();
        format!("{}?cursor={cursor}", page_url(mailbox))
    });
    let rows = found.conversations.into_iter().map(|one| row(&shell.zone, one)).collect();
    let asking = asking(visit, mailbox, None, typed).await?;
    let (available, price) = (assistant::is_configured(visit.app()), conversations::SEND.class.credits());
    html(&AgentPage { shell, rows, next, asking, available, price, said })
}

async fn list(visit: Visit, Path(mailbox): Path<String>, RawQuery(query): RawQuery) -> Response {
    let query = Fields::parse(query.unwrap_or_default().as_bytes());
    visit.answer(show_list(&visit, &mailbox, &query, &Fields::default(), String::new())).await
}

async fn show_one(
    visit: &Visit,
    mailbox: &str,
    id: &str,
    query: &Fields,
    typed: &Fields,
    said: String,
) -> Result<Response> {
    let mut shell = visit.shell("Agent", "agent").await?;
    fill_sidebar(visit, &mut shell, mailbox).await?;
    let call = visit.call(&conversations::MESSAGES)?;
    let conversation = conversations::get(visit.app(), &call, mailbox, id.into()).await?;
    let request: AgentMessageQuery = input(
        &json!({ "limit": visit.limits().conversations_per_page.min(50), "order": "desc", "cursor": query.given("cursor") }),
    )?;
    let page = conversations::messages(visit.app(), &call, mailbox, id.into(), request).await?;
    let older = page.next_cursor.map(|cursor| {
        let cursor: String = form_urlencoded::byte_serialize(cursor.as_bytes()).collect();
        format!("{}/{}?cursor={cursor}", page_url(mailbox), encoded(id))
    });
    let bubbles = page.messages.into_iter().rev().map(|one| bubble(&shell.zone, mailbox, one)).collect();
    shell.head.title.clone_from(&conversation.title);
    let conversation = row(&shell.zone, conversation);
    let asking = asking(visit, mailbox, Some(id), typed).await?;
    let available = assistant::is_configured(visit.app());
    html(&ConversationPage { shell, conversation, bubbles, older, asking, available, said })
}

async fn one(
    visit: Visit,
    Path((mailbox, conversation)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = Fields::parse(query.unwrap_or_default().as_bytes());
    visit.answer(show_one(&visit, &mailbox, &conversation, &query, &Fields::default(), String::new())).await
}

/// A title for a conversation, from its first message.
fn title(content: &str) -> Option<String> {
    let line = content.lines().map(str::trim).find(|line| !line.is_empty())?;
    let plain: String = line.chars().filter(|c| !c.is_control()).take(60).collect();
    Some(plain.trim().to_owned()).filter(|title| !title.is_empty())
}

/// Sends the form's message. The work is finished even when the client disconnects.
async fn send(visit: &Visit, mailbox: &str, conversation: &str, fields: &Fields) -> Result<()> {
    let request: NewAgentMessage = input(&json!({
        "content": fields.get("content"),
        "approve": fields.ticked("approve"),
        "connections": fields.all("connection"),
    }))?;
    let call = visit.metered(&conversations::SEND).await?;
    let (app, mailbox, conversation) = (visit.app().clone(), mailbox.to_owned(), conversation.to_owned());
    let work = async move {
        // Boxed, because the future holds everything that a message can lead to.
        let outcome = Box::pin(agent::send(&app, &call, &mailbox, conversation.into(), request)).await;
        app.commit_or_refund(&call, outcome.is_ok());
        outcome.map(|_| ())
    };
    tokio::spawn(work.in_current_span()).await.map_err(Error::internal)?
}

/// Starts a conversation with a first message.
async fn begin(visit: Visit, Path(mailbox): Path<String>, request: Request) -> Response {
    let fields = match Fields::read(request).await {
        Ok(fields) => fields,
        Err(refused) => return page::failure(&visit.headers, &refused),
    };
    let begun = async {
        assistant::require(visit.app())?;
        let request: NewConversation = input(&json!({ "title": title(fields.get("content")) }))?;
        let call = visit.call(&conversations::CREATE)?;
        conversations::create(visit.app(), &call, &mailbox, request).await
    };
    match begun.await {
        Ok(created) => answer_in(&visit, &mailbox, created.id.as_str(), &fields).await,
        Err(refused) => {
            let said = page::explain(&refused);
            visit.answer(show_list(&visit, &mailbox, &Fields::default(), &fields, said)).await
        }
    }
}

async fn say(
    visit: Visit,
    Path((mailbox, conversation)): Path<(String, String)>,
    request: Request,
) -> Response {
    match Fields::read(request).await {
        Ok(fields) => answer_in(&visit, &mailbox, &conversation, &fields).await,
        Err(refused) => page::failure(&visit.headers, &refused),
    }
}

/// Waits for the answer and shows it, or the typed text and the reason why there is none.
async fn answer_in(visit: &Visit, mailbox: &str, conversation: &str, fields: &Fields) -> Response {
    match send(visit, mailbox, conversation, fields).await {
        Ok(()) => {
            let target = format!("{}/{}#end", page_url(mailbox), encoded(conversation));
            page::go_to(&visit.headers, &target)
        }
        Err(refused) => {
            let said = page::explain(&refused);
            visit.answer(show_one(visit, mailbox, conversation, &Fields::default(), fields, said)).await
        }
    }
}

async fn rename(
    visit: Visit,
    Path((mailbox, conversation)): Path<(String, String)>,
    request: Request,
) -> Response {
    let back = format!("{}/{}", page_url(&mailbox), encoded(&conversation));
    visit
        .act(&back, async {
            let fields = Fields::read(request).await?;
            let change = input(&json!({ "title": fields.get("title") }))?;
            let call = visit.call(&conversations::UPDATE)?;
            conversations::update(visit.app(), &call, &mailbox, conversation.clone().into(), change).await?;
            Ok((back.clone(), "Conversation renamed.".to_owned()))
        })
        .await
}

async fn delete(
    visit: Visit,
    Path((mailbox, conversation)): Path<(String, String)>,
    request: Request,
) -> Response {
    let back = format!("{}/{}", page_url(&mailbox), encoded(&conversation));
    let question = Question {
        title: "Delete this conversation?",
        text: "All its messages are deleted. This cannot be undone.",
        button: "Delete conversation",
        cancel: &back,
        typed: "",
    };
    let delete = async |_| {
        let work = async {
            let call = visit.call(&conversations::DELETE)?;
            conversations::delete(visit.app(), &call, &mailbox, conversation.into()).await?;
            Ok((page_url(&mailbox), "Conversation deleted.".to_owned()))
        };
        visit.act(&back, work).await
    };
    confirmed(&visit, request, &question, delete).await
}
