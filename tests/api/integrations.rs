//! Connections to outside tool servers, against one that behaves and one that does not.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, StatusCode},
    response::Response,
};
use model::{Plan, Role};
use serde_json::{Value, json};
use testkit::{
    Engine, NameServer, Receiver, Reply, ScriptedModel, Server, ServerOptions, Tenant, both_engines,
};
use tokio::{net::TcpListener, task::JoinHandle};

use super::{
    conversations::begin,
    help::{assert_missing, assert_refuses_fields},
    mails::Inbox,
    people::{at, join},
};

const ALL: &str = "/api/v1/integrations/connections";

/// A request that the stub got.
#[derive(Clone)]
struct Asked {
    method: Method,
    headers: HeaderMap,
    body: Value,
}

type Script = dyn Fn(&Asked) -> Response + Send + Sync;

/// A tool server that a test writes.
struct ToolServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl Drop for ToolServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone)]
struct Stub {
    script: Arc<Script>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl ToolServer {
    async fn start(script: impl Fn(&Asked) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let stub = Stub { script: Arc::new(script), asked: asked.clone() };
        let router = axum::Router::new().fallback(serve).with_state(stub);
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, asked, task }
    }

    fn url(&self) -> String {
        format!("http://{}/mcp?token=hush-in-url", self.address)
    }

    /// The methods that were called, oldest first.
    fn calls(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked
            .iter()
            .map(|one| one.body["method"].as_str().unwrap_or(one.method.as_str()).to_owned())
            .collect()
    }
}

async fn serve(State(stub): State<Stub>, method: Method, headers: HeaderMap, body: Bytes) -> Response {
    let asked = Asked { method, headers, body: serde_json::from_slice(&body).unwrap_or_default() };
    stub.asked.lock().unwrap().push(asked.clone());
    (stub.script)(&asked)
}

fn answer(status: u16, kind: &str, body: impl Into<Body>) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    let answer = Response::builder().status(status).header("content-type", kind);
    answer.header("mcp-session-id", "session-1").body(body.into()).unwrap()
}

fn result(asked: &Asked, result: &Value) -> Response {
    let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": result });
    answer(200, "application/json", body.to_string())
}

/// Tools of a well-behaved server: two pages of them, the second over a stream that stays open.
fn well_behaved(asked: &Asked) -> Response {
    let tool = |name: &str, read_only: bool| {
        json!({ "name": name, "description": format!("Does {name}"), "annotations": { "readOnlyHint": read_only },
                "inputSchema": { "type": "object", "properties": { "q": { "type": "string" } } } })
    };
    match asked.body["method"].as_str() {
        Some("initialize") => result(asked, &json!({ "protocolVersion": "2025-06-18", "capabilities": {} })),
        Some("notifications/initialized") => answer(202, "text/plain", ""),
        Some("tools/list") if asked.body["params"]["cursor"].is_null() => {
            result(asked, &json!({ "tools": [tool("find", true), tool("store", false)], "nextCursor": "2" }))
        }
        Some("tools/list") => {
            let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": { "tools": [tool("count", true)] } });
            let text = format!(": hi\n\nevent: message\ndata: {body}\n\n");
            answer(200, "text/event-stream", Body::new(Open(Some(text.into()))))
        }
        Some("tools/call") => {
            let text = format!("found {}", asked.body["params"]["arguments"]["q"]);
            result(asked, &json!({ "content": [{ "type": "text", "text": text }] }))
        }
        _ => answer(200, "text/plain", ""),
    }
}

/// A body that says something and then stays open.
struct Open(Option<Bytes>);

impl http_body::Body for Open {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        match self.0.take() {
            Some(text) => std::task::Poll::Ready(Some(Ok(http_body::Frame::data(text)))),
            None => std::task::Poll::Pending,
        }
    }
}

fn private() -> ServerOptions {
    ServerOptions { webhooks_allow_private: true, ..ServerOptions::default() }
}

async fn connect(tenant: &Tenant, tools: &ToolServer, more: Value) -> Value {
    let mut body =
        json!({ "name": "CRM", "url": tools.url(), "headers": { "Authorization": "Bearer hush" } });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = tenant.key.post(ALL, body).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()
}

/// rules: INTEG-1, INTEG-2, INTEG-6
#[both_engines]
async fn a_connection_shows_its_tools_and_never_its_secrets(engine: Engine) {
    let server = Server::with(engine, private()).await;
    let tenant = server.tenant(Plan::Developer).await;
    let tools = ToolServer::start(well_behaved).await;
    let body = json!({ "name": "CRM", "url": tools.url(), "headers": { "Authorization": "Bearer hush" } });
    let answer = tenant.key.post(ALL, body).await;
    assert_eq!((answer.status, answer.header("x-credits-charged")), (201, "10"));
    let made = answer.json();
    let now = "2026-07-14T09:00:00.000Z";
    assert_eq!(
        made,
        json!({
            "id": made["id"], "name": "CRM", "url_host": "127.0.0.1", "status": "ready",
            "tools": ["find", "store", "count"], "allowed_tools": ["find", "count"], "header_names": ["Authorization"],
            "last_error": null, "synced_at": now, "created_by": null, "created_at": now, "updated_at": now,
        })
    );
    assert_eq!(
        tools.calls(),
        ["initialize", "notifications/initialized", "tools/list", "tools/list", "DELETE"]
    );
    for asked in tools.asked.lock().unwrap().iter().skip(1) {
        assert_eq!(asked.headers["authorization"], "Bearer hush");
        assert_eq!(asked.headers["mcp-session-id"], "session-1");
        assert_eq!(asked.headers["mcp-protocol-version"], "2025-06-18");
    }
    let listed = tenant.key.get(ALL).await;
    assert_eq!(listed.ok(), json!([made]));
    assert!(!listed.text().contains("hush"));
    let sql = "SELECT target FROM integration_connection WHERE workspace_id = $1";
    let kept: Vec<(Vec<u8>,)> =
        server.app.db().read(&tenant.workspace, async |tx| tx.all(sql, &[]).await).await.unwrap();
    assert!(!String::from_utf8_lossy(&kept[0].0).contains("hush"));

    let one = format!("{ALL}/{}", made["id"].as_str().unwrap());
    let changed =
        tenant.key.patch(&one, json!({ "allowed_tools": ["store", "gone"], "name": "Sales" })).await.ok();
    assert_eq!((&changed["allowed_tools"], &changed["name"]), (&json!(["store"]), &json!("Sales")));
    let synced = tenant.key.send(Method::POST, &format!("{one}/sync"), None).await;
    assert_eq!((synced.status, synced.header("x-credits-charged")), (200, "2"));
    // The server is gone: what is known stays, and the reason is told.
    drop(tools);
    let failed = tenant.key.send(Method::POST, &format!("{one}/sync"), None).await.ok();
    assert_eq!((&failed["status"], &failed["tools"]), (&json!("error"), &made["tools"]));
    assert!(failed["last_error"].as_str().unwrap().starts_with("There was no answer"), "{failed}");

    // Only admins change connections; everybody sees them.
    let member = server.key(&server.new_key(&tenant.workspace, Role::Member).await.key);
    assert_eq!(member.get(ALL).await.ok().as_array().unwrap().len(), 1);
    member.delete(&one).await.expect(403, "role_required");
    assert_eq!(tenant.key.delete(&one).await.status, 204);
    assert_missing(&tenant.key.delete(&one).await, "Connection");
}

/// rules: INTEG-4
#[both_engines]
async fn connections_lead_to_public_addresses_only(engine: Engine) {
    let names = NameServer::start(
        "plain.example A 127.0.0.1\nmixed.example A 93.184.215.14\nmixed.example A 10.0.0.1",
    )
    .await;
    let options = ServerOptions { dns_servers: vec![names.address()], ..ServerOptions::default() };
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Developer).await;
    for url in [
        "http://127.0.0.1/mcp",
        "http://localhost/",
        "https://example.org:8443/",
        "ftp://example.org/",
        "https://u:p@example.org/",
    ] {
        assert_refuses_fields(&tenant.key.post(ALL, json!({ "name": "x", "url": url })).await, &["url"]);
    }
    for host in ["plain", "mixed"] {
        let body = json!({ "name": "x", "url": format!("http://{host}.example/mcp") });
        let made = tenant.key.post(ALL, body).await.ok();
        assert_eq!(made["last_error"], "The host does not lead to public addresses only.", "{host}");
    }
    for (headers, field) in [
        (json!({ "Host": "x" }), "headers"),
        (json!({ "A": "b\r\nc: d" }), "headers"),
        (json!({ "a b": "x" }), "headers"),
    ] {
        let body = json!({ "name": "x", "url": "https://example.org/", "headers": headers });
        assert_refuses_fields(&tenant.key.post(ALL, body).await, &[field]);
    }
}

/// Ways to answer wrongly, and what is said about each.
fn wrong_ways(stolen: String) -> Vec<(&'static str, Box<Script>)> {
    vec![
        ("status 500", Box::new(|_| answer(500, "text/plain", "no"))),
        ("credentials", Box::new(|_| answer(401, "text/plain", "no"))),
        ("understood", Box::new(|_| answer(200, "text/html", "<html>"))),
        (
            "understood",
            Box::new(|asked| {
                let body = json!({ "jsonrpc": "2.0", "id": 999, "result": {}, "x": asked.body["id"] });
                answer(200, "application/json", body.to_string())
            }),
        ),
        ("version", Box::new(|asked| result(asked, &json!({ "protocolVersion": "1999-01-01" })))),
        ("too long", Box::new(|_| answer(200, "application/json", " ".repeat(2 << 20)))),
        (
            "no answer",
            Box::new(|_| answer(200, "text/event-stream", Body::new(Open(Some(": hi\n\n".into()))))),
        ),
        (
            "error: bad things",
            Box::new(|asked| {
                let error = json!({ "code": -1, "message": "bad\u{202e} things\r\n" });
                let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error });
                answer(200, "application/json", body.to_string())
            }),
        ),
        (
            "another host",
            Box::new(move |_| {
                Response::builder().status(307).header("location", &stolen).body(Body::empty()).unwrap()
            }),
        ),
        (
            "too often",
            Box::new(|_| {
                Response::builder().status(307).header("location", "/mcp").body(Body::empty()).unwrap()
            }),
        ),
    ]
}

/// What a server may do wrong, each way ending in an error that is told.
/// rules: INTEG-4, INTEG-7
#[both_engines]
async fn hostile_servers_are_bounded(engine: Engine) {
    let options = ServerOptions { webhook_time_limit: Duration::from_millis(400), ..private() };
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let elsewhere = Receiver::start().await;
    let stolen = elsewhere.url();
    let cases = wrong_ways(stolen);
    for (reason, script) in cases {
        let tools = ToolServer::start(script).await;
        let made = connect(&tenant, &tools, json!({})).await;
        assert_eq!(made["status"], "error", "{reason}");
        assert!(made["last_error"].as_str().unwrap().contains(reason), "{reason}: {made}");
        let one = format!("{ALL}/{}", made["id"].as_str().unwrap());
        tenant.key.delete(&one).await;
    }
    assert!(elsewhere.received().is_empty(), "headers went to another host");
    elsewhere.reply(Reply::Hang);

    // A redirect within the host is followed, and endless pages of endless tools come to an end.
    let tools = ToolServer::start(|asked| {
        let many = |from: usize| -> Vec<Value> {
            (from..from + 60)
                .map(|n| json!({ "name": format!("t{n}"), "description": "d".repeat(5000) }))
                .collect()
        };
        match asked.body["method"].as_str() {
            Some("tools/list") => {
                let place = asked.body["params"]["cursor"].as_str().unwrap_or("0").parse().unwrap_or(0);
                let next = (place + 60).to_string();
                result(asked, &json!({ "tools": many(place), "nextCursor": next }))
            }
            _ => well_behaved(asked),
        }
    })
    .await;
    let made = connect(&tenant, &tools, json!({})).await;
    assert_eq!((&made["status"], made["tools"].as_array().unwrap().len()), (&json!("ready"), 100));
    assert_eq!(made["allowed_tools"], json!([]));
}

/// A model that calls one tool and repeats what came of it.
fn calling(name: &str, arguments: Value) -> ScriptedModel {
    let name = name.to_owned();
    ScriptedModel::new(move |request| {
        let last = request.messages.iter().rev().find_map(|message| match message {
            operations::ports::ChatMessage::Tool { result, .. } => Some(result.clone()),
            _ => None,
        });
        match last {
            None => Ok(ScriptedModel::call(&name, &arguments)),
            Some(text) => Ok(operations::ports::ChatReply { text, calls: Vec::new() }),
        }
    })
}

/// rules: INTEG-3, INTEG-5, INTEG-6, INTEG-7
#[both_engines]
async fn the_agent_uses_tools_of_the_connections_that_a_message_names(engine: Engine) {
    let model = calling("crm1__find", json!({ "q": "zebra" }));
    let server = Server::with(engine, ServerOptions { assistant: Some(model.clone()), ..private() }).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let inbox = Inbox::of(&tenant).await;
    let tools = ToolServer::start(well_behaved).await;
    let made = connect(&tenant, &tools, json!({})).await;
    let called = |tools: &ToolServer| tools.calls().iter().filter(|one| *one == "tools/call").count();
    let messages = format!("{}/messages", begin(&inbox).await);

    let without = tenant.key.post(&messages, json!({ "content": "Look it up" })).await.ok();
    assert_eq!((&without["reply"]["tools"][0]["outcome"], called(&tools)), (&json!("failed"), 0));
    let body = json!({ "content": "Look it up", "connections": [made["id"]] });
    let with = tenant.key.post(&messages, body.clone()).await.ok();
    assert_eq!((&with["reply"]["tools"][0]["outcome"], called(&tools)), (&json!("done"), 1), "{with}");
    assert!(with["reply"]["content"].as_str().unwrap().contains("found \\\"zebra\\\""), "{with}");
    let offered: Vec<String> =
        model.asked().last().unwrap().tools.iter().map(|tool| tool.name.clone()).collect();
    assert!(offered.contains(&"crm1__find".to_owned()) && !offered.contains(&"crm1__store".to_owned()));

    // Another workspace's connection is none.
    let other = server.tenant(Plan::Enterprise).await;
    let foreign = Inbox::of(&other).await;
    let theirs = format!("{}/messages", begin(&foreign).await);
    assert_missing(&other.key.post(&theirs, body.clone()).await, "Connection");

    // What is no longer allowed, and what was removed, is gone at once.
    let one = format!("{ALL}/{}", made["id"].as_str().unwrap());
    tenant.key.patch(&one, json!({ "allowed_tools": ["store"] })).await.ok();
    let narrowed = tenant.key.post(&messages, body.clone()).await.ok();
    assert_eq!((&narrowed["reply"]["tools"][0]["outcome"], called(&tools)), (&json!("failed"), 1));
    tenant.key.delete(&one).await;
    assert_missing(&tenant.key.post(&messages, body).await, "Connection");
}

/// rules: INTEG-8
#[both_engines]
async fn tools_of_a_member_who_left_wait_for_an_admin(engine: Engine) {
    let model = calling("crm1__find", json!({ "q": "zebra" }));
    let server = Server::with(engine, ServerOptions { assistant: Some(model), ..private() }).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let inbox = Inbox::of(&tenant).await;
    let tools = ToolServer::start(well_behaved).await;
    let bob = join(&server, &tenant, "bob@people.test", "admin").await;
    let made = bob.caller.post(ALL, json!({ "name": "CRM", "url": tools.url() })).await.ok();
    let messages = format!("{}/messages", begin(&inbox).await);
    let body = json!({ "content": "Look it up", "connections": [made["id"]] });
    let outcome = async || {
        let answer = tenant.key.post(&messages, body.clone()).await.ok();
        answer["reply"]["tools"][0]["outcome"].as_str().unwrap().to_owned()
    };
    assert_eq!(made["created_by"], bob.id);
    assert_eq!(outcome().await, "done");
    tenant.key.delete(&at(&tenant, &format!("/members/{}", bob.id))).await;
    assert_eq!(outcome().await, "failed");
    let sync = format!("{ALL}/{}/sync", made["id"].as_str().unwrap());
    let synced = tenant.key.send(Method::POST, &sync, None).await.ok();
    assert_eq!((&synced["status"], &synced["created_by"]), (&json!("ready"), &Value::Null));
    assert_eq!(outcome().await, "done");
}

/// A connection that is removed while a message is being answered is not used any more.
/// rules: INTEG-5
#[both_engines]
async fn a_connection_removed_half_way_is_gone(engine: Engine) {
    let model = calling("crm1__find", json!({ "q": "zebra" }));
    let options = ServerOptions { assistant: Some(model), ..private() };
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Enterprise).await;
    let inbox = Inbox::of(&tenant).await;
    let tools = ToolServer::start(well_behaved).await;
    let made = connect(&tenant, &tools, json!({})).await;
    let wanted = json!({ "content": "Hi", "connections": [made["id"]] });
    let input = serde_json::from_value(wanted).unwrap();
    let conversation = begin(&inbox).await;
    let id = conversation.rsplit('/').next().unwrap().into();
    let call = server.call(&tenant, &operations::conversations::SEND).await;
    let turn = operations::conversations::agent::begin(&server.app, &call, inbox.id.as_str(), id, input);
    let turn = turn.await.unwrap();
    tenant.key.delete(&format!("{ALL}/{}", made["id"].as_str().unwrap())).await;
    let before = tools.calls().len();
    let done = turn.run(&server.app, &call, None).await.unwrap();
    assert_eq!(done.reply.tools[0].outcome, model::conversations::ToolOutcome::Failed);
    assert_eq!(tools.calls().len(), before);
}
