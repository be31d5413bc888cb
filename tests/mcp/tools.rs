//! What is offered, and that it is the API.

use model::{Limit, Plan};
use serde_json::{Value, json};
use testkit::{Engine, Server, ServerOptions, both_engines};

use super::{Desk, faults};

/// rules: MCP-1
#[both_engines]
async fn a_client_meets_the_server_and_its_tools(engine: Engine) {
    let desk = Desk::new(engine).await;
    let hello = json!({
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let agent =
        desk.tenant.key.with("host", "mail.test").with("accept", "application/json, text/event-stream");
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
    let met = agent.post("/mcp", message).await.ok();
    let met = &met["result"];
    assert_eq!(
        (&met["protocolVersion"], &met["serverInfo"]["name"]),
        (&json!("2025-06-18"), &json!("agent-mailbox"))
    );
    assert!(met["capabilities"]["tools"].is_object(), "{met}");
    assert!(met["instructions"].as_str().unwrap().contains("untrusted"));
    let told = agent.post("/mcp", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    assert_eq!((told.status, told.text()), (202, String::new()));
    assert_eq!(desk.agent.request("ping", json!({})).await["result"], json!({}));

    let tools = desk.agent.tools().await;
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for operation in operations::catalog() {
        let snake: String = operation
            .id
            .chars()
            .flat_map(|letter| {
                letter.is_ascii_uppercase().then_some('_').into_iter().chain([letter.to_ascii_lowercase()])
            })
            .collect();
        let name = if snake == "get_email_verification" { "get_verification" } else { &snake };
        let decides = name.ends_with("_send_policy") && operation.writes
            || ["approve_review", "reject_review"].contains(&name);
        let offered = !operation.console_only && !decides && operation.id != "streamEvents";
        assert_eq!(names.contains(&name), offered, "{name}");
    }
    for tool in &tools {
        let schema = &tool["inputSchema"];
        assert_eq!(schema["type"], "object");
        jsonschema_holds(schema);
        let writes = tool["annotations"]["readOnlyHint"] == false;
        assert_eq!(schema["properties"]["idempotencyKey"].is_object(), writes, "{}", tool["name"]);
        let destroys = tool["annotations"]["destructiveHint"] == true;
        assert_eq!(schema["properties"]["confirmationToken"].is_object(), destroys, "{}", tool["name"]);
    }
    let find = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    assert_eq!(find("list_emails")["inputSchema"]["required"], json!(["mailboxId"]));
    assert_eq!(find("delete_mailbox")["annotations"]["destructiveHint"], true);
    assert_eq!(find("empty_trash")["annotations"]["destructiveHint"], true);
    assert_eq!(find("update_email")["annotations"]["destructiveHint"], false);
    assert_eq!(find("wait_for_email")["annotations"]["readOnlyHint"], true);
}

/// A schema that a client can compile: a plain object whose required fields exist.
fn jsonschema_holds(schema: &Value) {
    assert_eq!(schema["additionalProperties"], false);
    for name in schema["required"].as_array().unwrap() {
        assert!(schema["properties"][name.as_str().unwrap()].is_object(), "{name}");
    }
}

/// A tool and its operation give the same, cost the same, and count the same.
/// rules: MCP-1, MCP-7
#[both_engines]
async fn a_tool_answers_costs_and_counts_as_its_operation(engine: Engine) {
    let desk = Desk::new(engine).await;
    let email = desk.receive("Hello", "How are you?").await;
    let path = format!("/api/v1/mailboxes/{}/emails/{email}", desk.address);
    let about = json!({ "mailboxId": desk.address, "emailId": email });
    let rest = desk.tenant.key.get(&path).await;
    let result = desk.agent.call("get_email", about.clone()).await;
    assert_eq!(result["structuredContent"], rest.json());
    let meta = &result["_meta"];
    assert_eq!(meta["agent-mailbox/status"], 200);
    assert_eq!(meta["agent-mailbox/credits"]["charged"], 1);
    let left = |text: &str| text.parse::<i64>().unwrap();
    assert_eq!(meta["agent-mailbox/credits"]["remaining"], left(rest.header("x-credits-remaining")) - 1);
    assert_eq!(meta["agent-mailbox/rate"]["remaining"], left(rest.header("ratelimit-remaining")) - 1);

    for (tool, arguments, cost) in [
        ("list_emails", json!({ "mailboxId": desk.address, "limit": 1, "is_read": false }), 1),
        ("get_email_context", about.clone(), 1),
        ("list_workspaces", json!({}), 1),
        ("get_workspace", json!({}), 1),
        ("update_email", json!({ "mailboxId": desk.address, "emailId": email, "read": true }), 2),
        (
            "send_email",
            json!({ "mailboxId": desk.address, "to": desk.address, "subject": "S", "text": "T" }),
            5,
        ),
        ("create_mailbox", json!({ "name": "Second" }), 10),
    ] {
        let before = desk.used().await;
        desk.agent.ok(tool, arguments).await;
        // Each look at the figures costs one too, and shows itself.
        assert_eq!(desk.used().await - before - 1, cost, "{tool}");
    }
    // An array becomes an object, and what answers with nothing says so.
    let folders = desk.agent.ok("list_folders", json!({ "mailboxId": desk.address })).await;
    assert!(folders["items"].is_array(), "{folders}");
}

/// rules: MCP-7
#[both_engines]
async fn errors_are_those_of_the_api(engine: Engine) {
    let mut options = ServerOptions::default();
    options.plans.free.api_keys = Limit::UNLIMITED;
    let desk = Desk::with(engine, Plan::Free, options).await;
    let other = desk.server.tenant(Plan::Free).await;
    let agent = &desk.agent;
    let missing = agent.refused("get_mailbox", json!({ "mailboxId": "nobody@agents.test" })).await;
    let rest = desk.tenant.key.get("/api/v1/mailboxes/nobody@agents.test").await;
    assert_eq!(missing, rest.json());
    assert_eq!(faults(&agent.refused("get_mailbox", json!({})).await), ["mailboxId"]);
    assert_eq!(faults(&agent.refused("get_mailbox", json!({ "mailboxId": "" })).await), ["mailboxId"]);
    assert_eq!(faults(&agent.refused("get_mailbox", json!({ "mailboxId": 7 })).await), ["mailboxId"]);
    let about = json!({ "mailboxId": desk.address, "limit": 1000, "colour": "red" });
    assert_eq!(faults(&agent.refused("list_emails", about).await), ["colour"], "names first");
    let about = json!({ "mailboxId": desk.address, "limit": 1000 });
    assert_eq!(faults(&agent.refused("list_emails", about).await), ["limit"]);
    let about = json!({ "mailboxId": desk.address, "limit": [1] });
    assert_eq!(faults(&agent.refused("list_emails", about).await), ["limit"]);
    let about = json!({ "name": "A", "nmae": "B" });
    assert_eq!(faults(&agent.refused("create_mailbox", about).await), ["nmae"]);
    // Another workspace, a plan and a role.
    let theirs = json!({ "workspaceId": other.workspace });
    assert_eq!(agent.refused("get_workspace", theirs).await["code"], "workspace_scope_denied");
    assert_eq!(agent.refused("list_email_domains", json!({})).await["code"], "plan_required");
    let member = desk.server.new_key(&desk.tenant.workspace, model::Role::Member).await;
    let member = desk.server.key(&member.key).mcp();
    let change = json!({ "mailboxId": desk.address, "name": "Renamed" });
    assert_eq!(member.refused("update_mailbox", change).await["code"], "role_required");
    // A path cannot be left by what stands in an argument.
    let odd = json!({ "mailboxId": "../workspaces?x=1#y" });
    assert_eq!(agent.refused("get_mailbox", odd).await["code"], "not_found");
    let unknown = agent.request("tools/call", json!({ "name": "rule_the_world", "arguments": {} })).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let unknown = agent.request("tools/call", json!({ "name": "create_api_key", "arguments": {} })).await;
    assert_eq!(unknown["error"]["code"], -32602, "keys are made in the console");
}

/// Models guess names; the answer says which one was meant, and what the tool takes.
/// rules: MCP-9
#[both_engines]
async fn an_unknown_argument_is_told_with_the_one_that_was_meant(engine: Engine) {
    let desk = Desk::new(engine).await;
    for (tool, given, meant) in [
        ("list_emails", json!({ "mailbox": desk.address }), "mailboxId"),
        ("list_emails", json!({ "mailbox_id": desk.address }), "mailboxId"),
        ("get_email", json!({ "mailboxId": desk.address, "email_id": "eml_1" }), "emailId"),
        ("get_email", json!({ "mailboxId": desk.address, "id": "eml_1" }), "emailId"),
        ("send_email", json!({ "mailboxId": desk.address, "to": desk.address, "body": "T" }), "text"),
    ] {
        for agent in [desk.agent.clone(), desk.agent.default_profile()] {
            let refused = agent.refused(tool, given.clone()).await;
            let detail = &refused["details"][0];
            let path = detail["path"].as_str().unwrap();
            assert!(given.get(path).is_some(), "{refused}");
            assert_eq!(detail["message"], format!("unknown argument `{path}`; did you mean `{meant}`?"));
            assert!(refused["fix"].as_str().unwrap().contains(&format!("`{meant}`")), "{refused}");
        }
    }
    let call = |name: &str| json!({ "name": name, "arguments": {} });
    let unknown = desk.agent.request("tools/call", call("list_emial")).await;
    assert!(unknown["error"]["message"].as_str().unwrap().contains("Did you mean list_email"), "{unknown}");
    let hidden = desk.agent.default_profile().request("tools/call", call("delete_mailbox")).await;
    assert!(hidden["error"]["message"].as_str().unwrap().contains("?profile=full"), "{hidden}");
}

/// rules: MCP-10
#[both_engines]
async fn reading_marks_nothing_as_read(engine: Engine) {
    let desk = Desk::new(engine).await;
    let email = desk.receive("Hello", "How are you?").await;
    let one = json!({ "mailboxId": desk.address, "emailId": email });
    let shown = desk.agent.ok("get_email", one.clone()).await;
    let thread = json!({ "mailboxId": desk.address, "threadId": shown["thread_id"] });
    desk.agent.ok("get_email_context", one.clone()).await;
    desk.agent.ok("search_emails", json!({ "mailboxId": desk.address, "query": "Hello" })).await;
    let read = desk.agent.ok("get_thread", thread.clone()).await;
    // The name invites to read, so that is what it does.
    assert_eq!(desk.agent.ok("read_thread", thread.clone()).await, read);
    assert_eq!(read["items"][0]["id"], email);
    let is_read = async || desk.agent.ok("get_email", one.clone()).await["read"].clone();
    assert_eq!(is_read().await, false);
    let mut asked = thread.clone();
    asked["mark_read"] = json!("yes");
    assert_eq!(faults(&desk.agent.refused("read_thread", asked.clone()).await), ["mark_read"]);
    asked["mark_read"] = json!(true);
    assert_eq!(desk.agent.ok("read_thread", asked).await["updated"], 1);
    assert_eq!(is_read().await, true);
}

/// rules: MCP-2
#[both_engines]
async fn a_repeated_key_repeats_the_answer(engine: Engine) {
    let desk = Desk::new(engine).await;
    let arguments = json!({ "name": "Once", "idempotencyKey": "k1" });
    let first = desk.agent.call("create_mailbox", arguments.clone()).await;
    let again = desk.agent.call("create_mailbox", arguments).await;
    assert_eq!(first["structuredContent"], again["structuredContent"]);
    assert_eq!(
        (&again["_meta"]["agent-mailbox/replayed"], &again["_meta"]["agent-mailbox/credits"]["charged"]),
        (&json!(true), &json!(0))
    );
    // It is one key for both doors.
    let rest = desk
        .tenant
        .key
        .with("idempotency-key", "k1")
        .post("/api/v1/mailboxes", json!({ "name": "Once" }))
        .await;
    assert_eq!(rest.ok(), first["structuredContent"]);
    let other = json!({ "name": "Twice", "idempotencyKey": "k1" });
    assert_eq!(desk.agent.refused("create_mailbox", other).await["code"], "idempotency_key_reused");
    for bad in [json!(""), json!("a\nb"), json!("x".repeat(256))] {
        let bad = json!({ "name": "Odd", "idempotencyKey": bad });
        assert_eq!(desk.agent.refused("create_mailbox", bad).await["code"], "invalid_idempotency_key");
    }
}

/// rules: MCP-6
#[both_engines]
async fn the_card_describes_the_server_as_it_is(engine: Engine) {
    let desk = Desk::new(engine).await;
    let card = desk.server.anonymous().get("/.well-known/mcp/server-card.json").await.ok();
    assert_eq!(card["remotes"][0]["url"], "http://mail.test/mcp");
    assert_eq!(card["name"], "test.mail/agent-mailbox");
    assert_eq!(card["authentication"]["schemes"][0]["name"], "x-api-key");
    let names = |list: &Value| -> Vec<String> {
        let names = list.as_array().unwrap().iter();
        names.map(|one| one["name"].as_str().or(one.as_str()).unwrap().to_owned()).collect()
    };
    assert_eq!(names(&card["tools"]), names(&json!(desk.agent.default_profile().tools().await)));
    for profile in card["profiles"].as_array().unwrap() {
        let name = profile["name"].as_str().unwrap();
        assert_eq!(profile["url"], format!("http://mail.test/mcp?profile={name}"));
        let tools = desk.agent.profile(name).tools().await;
        assert_eq!(names(&profile["tools"]), names(&json!(tools)), "{name}");
    }
    assert_eq!(card["profiles"].as_array().unwrap().len(), 4);
    for version in card["remotes"][0]["supportedProtocolVersions"].as_array().unwrap() {
        let version = version.as_str().unwrap();
        if version >= "2026" {
            continue;
        }
        let caller =
            desk.tenant.key.with("host", "mail.test").with("accept", "application/json, text/event-stream");
        let hello = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let met = caller
            .post("/mcp", json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }))
            .await;
        assert_eq!(met.ok()["result"]["protocolVersion"], version);
    }
    let guide = desk.server.anonymous().get("/llms.txt").await.text();
    assert!(guide.contains("http://mail.test/mcp"), "{guide}");
}

/// The newest protocol has no handshake: every request says which version it speaks.
/// rules: MCP-1
#[both_engines]
async fn a_client_without_a_handshake_is_served(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let caller = tenant
        .key
        .with("host", "mail.test")
        .with("accept", "application/json, text/event-stream")
        .with("mcp-protocol-version", "2026-07-28");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "list_mailboxes", "arguments": {}, "_meta": meta },
    });
    let answer = caller
        .with("mcp-method", "tools/call")
        .with("mcp-name", "list_mailboxes")
        .post("/mcp", message)
        .await;
    assert_eq!(answer.ok()["result"]["structuredContent"], json!({ "items": [] }));
}
