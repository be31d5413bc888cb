//! What holds for every operation of the document alike: unknown fields, foreign ids, and any characters.

use axum::http::Method;
use model::Plan;
use serde_json::{Value, json};
use testkit::{Answer, Caller, Engine, ScriptedModel, Server, ServerOptions, Tenant, both_engines};

use super::help::{assert_refuses_fields, encoded, new_mailbox, path_of};

/// A mail with a file.
const MAIL: &str = "From: a@remote.test\r\nSubject: S\r\nContent-Type: text/csv\r\n\
                    Content-Disposition: attachment; filename=a.csv\r\n\r\n1;2\r\n";

/// A server on which every operation can succeed.
async fn server_with_everything(engine: Engine) -> Server {
    let options = ServerOptions {
        assistant: Some(ScriptedModel::saying("Hello")),
        webhooks_allow_private: true,
        ..ServerOptions::default()
    };
    Server::with(engine, options).await
}

/// One tenant with one thing of every kind, and a session that may do everything.
struct World {
    tenant: Tenant,
    console: Caller,
    /// The parameters of paths.
    ids: Vec<(&'static str, String)>,
}

impl World {
    #[expect(clippy::too_many_lines, reason = "one of everything")]
    async fn new(server: &Server) -> Self {
        let tenant = server.tenant(Plan::Enterprise).await;
        let console = server.log_in(&tenant).await;
        let mailbox = new_mailbox(&tenant.key, "Inbox").await;
        let workspace = format!("/api/v1/workspaces/{}", tenant.workspace);
        let id = |thing: &Value| thing["id"].as_str().unwrap().to_owned();
        tenant.key.post(&format!("{}/folders", path_of(&mailbox)), json!({ "name": "Mine" })).await.ok();
        let label =
            tenant.key.post(&format!("{}/custom-labels", path_of(&mailbox)), json!({ "name": "L" })).await;
        let email =
            format!("guest-{}@people.test", tenant.workspace.as_str().to_lowercase().replace('_', "-"));
        let invite = tenant.key.post(&format!("{workspace}/invites"), json!({ "email": email })).await;
        let sessions = console.get("/api/console/sessions").await.ok();
        tenant.key.post("/api/v1/affiliate/signup", json!({})).await.ok();
        let hook = json!({ "url": "https://hooks.example.org/in", "event_types": ["message.received"] });
        let hook = id(&tenant.key.post(&format!("{workspace}/webhooks"), hook).await.ok());
        let trial = format!("{workspace}/webhooks/{hook}/test");
        let delivery = id(&tenant.key.send(Method::POST, &trial, None).await.ok());
        let name = format!("{}.example.org", tenant.workspace.as_str().replace('_', "-"));
        let domain = tenant.key.post(&format!("{workspace}/email-domains"), json!({ "domain": name })).await;
        let email = server.receive(mailbox["email"].as_str().unwrap(), MAIL).await;
        let shown = tenant.key.get(&format!("{}/emails/{email}", path_of(&mailbox))).await.ok();
        let talks = format!("{}/agent-conversations", path_of(&mailbox));
        let talk = tenant.key.post(&talks, json!({})).await.ok();
        // Nothing listens there.
        let tools = json!({ "name": "Tools", "url": "http://127.0.0.1:9/" });
        let tools = tenant.key.post("/api/v1/integrations/connections", tools).await.ok();
        let mut later = json!({ "to": mailbox["email"], "subject": "S", "body": "T", "scheduled_send_at": "2026-08-01T00:00:00Z" });
        let scheduled =
            tenant.key.post(&format!("{}/scheduled-sends", path_of(&mailbox)), later.clone()).await.ok();
        later.as_object_mut().unwrap().remove("scheduled_send_at");
        let draft = tenant.key.post(&format!("{}/drafts", path_of(&mailbox)), later).await.ok();
        let memory = tenant.key.post("/api/v1/rag/remember", json!({ "text": "T" })).await;
        let document = json!({ "name": "D", "type": "text", "text": "T" });
        let document = tenant.key.post("/api/v1/rag/documents", document).await;
        let triagers = format!("{}/task-triagers", path_of(&mailbox));
        let triager = tenant.key.post(&triagers, json!({ "name": "Own" })).await.ok();
        let task = crate::catalog::add_task(server, &tenant, &mailbox).await;
        let review = crate::catalog::add_review(&tenant, &tenant.key, &path_of(&mailbox)).await;
        let stopped = json!({ "address": "stopped@remote.test" });
        let stopped = tenant.key.post(&format!("{workspace}/suppressions"), stopped).await.ok();
        let ids = vec![
            ("reviewId", review),
            ("suppressionId", id(&stopped)),
            ("triagerId", id(&triager)),
            ("taskId", task),
            ("draftId", id(&draft)),
            ("scheduledSendId", id(&scheduled)),
            ("emailId", email.to_string()),
            ("threadId", shown["thread_id"].as_str().unwrap().to_owned()),
            ("attachmentId", id(&shown["attachments"][0])),
            ("workspaceId", tenant.workspace.to_string()),
            ("mailboxId", id(&mailbox)),
            ("folderId", "mine".to_owned()),
            ("labelId", id(&label.ok())),
            ("memberId", tenant.account.to_string()),
            ("inviteId", id(&invite.ok())),
            ("keyId", tenant.key_id.to_string()),
            ("sessionId", id(&sessions[0])),
            ("webhookId", hook),
            ("deliveryId", delivery),
            ("domainId", id(&domain.ok())),
            ("conversationId", id(&talk)),
            ("connectionId", id(&tools)),
            ("blobId", memory.ok()["blobId"].as_str().unwrap().to_owned()),
            ("documentId", id(&document.ok())),
        ];
        Self { tenant, console, ids }
    }

    fn id(&self, parameter: &str) -> &str {
        &self.ids.iter().find(|(name, _)| *name == parameter).expect(parameter).1
    }

    /// A path with the world's own ids, except for one.
    fn path(&self, template: &str, other: Option<(&str, &str)>) -> String {
        let fill = |segment: &str| match segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(name) => match other.filter(|(one, _)| *one == name) {
                Some((_, value)) => value.to_owned(),
                None => encoded(self.id(name)),
            },
            None => segment.to_owned(),
        };
        template.split('/').map(fill).collect::<Vec<_>>().join("/")
    }

    /// All that the tenant can see of what it has.
    async fn state(&self) -> Vec<String> {
        let mailbox = format!("/api/v1/mailboxes/{}", self.id("mailboxId"));
        let workspace = format!("/api/v1/workspaces/{}", self.tenant.workspace);
        let mut seen = Vec::new();
        for path in [
            workspace.clone(),
            format!("{workspace}/members"),
            format!("{workspace}/invites"),
            format!("{workspace}/api-keys"),
            format!("{workspace}/email-domains"),
            format!("{workspace}/webhooks"),
            format!("{workspace}/suppressions"),
            "/api/v1/mailboxes".to_owned(),
            format!("{mailbox}/folders"),
            format!("{mailbox}/custom-labels"),
            format!("{mailbox}/emails"),
            format!("{mailbox}/drafts"),
            format!("{mailbox}/scheduled-sends"),
            format!("{mailbox}/agent-conversations"),
            format!("{mailbox}/task-triagers"),
            format!("{mailbox}/tasks"),
            "/api/v1/integrations/connections".to_owned(),
            "/api/v1/rag/documents".to_owned(),
            "/api/v1/affiliate/me".to_owned(),
            "/api/console/sessions".to_owned(),
        ] {
            let answer = self.console.get(&path).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            seen.push(answer.text());
        }
        seen
    }
}

/// One operation of the document.
struct Described {
    id: String,
    method: Method,
    template: String,
    parameters: Vec<String>,
    /// What it takes after the question mark.
    query: Vec<String>,
    body: Option<Value>,
}

impl Described {
    async fn send(&self, caller: &Caller, path: &str) -> Answer {
        self.send_with(caller, path, self.body.clone()).await
    }

    async fn send_with(&self, caller: &Caller, path: &str, body: Option<Value>) -> Answer {
        if self.id == "importEmails" {
            return caller.send_raw(self.method.clone(), path, Some("message/rfc822"), MAIL.into()).await;
        }
        caller.send(self.method.clone(), path, body).await
    }
}

/// All operations, each with a body that would do.
fn operations(world: &World) -> Vec<Described> {
    let document = web::document();
    let mut found = Vec::new();
    for (template, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap().to_owned();
            // The hook for mail is not there without its secret; it has tests of its own.
            if id == "receiveRawMail" {
                continue;
            }
            let names =
                template.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
            let takes_json = !operation["requestBody"]["content"]["application/json"].is_null();
            let body = takes_json.then(|| body_for(&id, world));
            let described = operation["parameters"].as_array().cloned().unwrap_or_default();
            let query = described.iter().filter(|one| one["in"] == "query");
            let query = query.map(|one| one["name"].as_str().unwrap().to_owned()).collect();
            found.push(Described {
                method: method.to_uppercase().parse().unwrap(),
                template: template.clone(),
                parameters: names.map(ToOwned::to_owned).collect(),
                query,
                body,
                id,
            });
        }
    }
    found
}

fn body_for(operation: &str, world: &World) -> Value {
    match operation {
        "updateWorkspace"
        | "createMailbox"
        | "updateMailbox"
        | "createFolder"
        | "renameFolder"
        | "createCustomLabel"
        | "updateCustomLabel"
        | "createApiKey"
        | "updateApiKey"
        | "createTaskTriager"
        | "updateTaskTriager"
        | "updateIntegrationConnection" => {
            json!({ "name": "Fresh" })
        }
        "updateMember" => json!({ "role": "admin" }),
        "createSuppression" => json!({ "address": "fresh@remote.test" }),
        "createInvite" => json!({ "email": "somebody@people.test" }),
        "reorderCustomLabels" => json!({ "ids": [world.id("labelId")] }),
        "signUpAffiliate" | "updateAffiliate" => json!({ "code": "fresh-code" }),
        "signUp" => json!({ "email": "fresh@people.test", "password": "0123456789" }),
        "logIn" => json!({ "email": world.tenant.email, "password": testkit::PASSWORD }),
        "completeSignUp" | "acceptInvite" => json!({ "token": "nothing", "password": "0123456789" }),
        "switchWorkspace" => json!({ "workspace_id": world.id("workspaceId") }),
        "createEmailDomain" => json!({ "domain": "fresh.example.org" }),
        "createWebhook" => json!({ "url": "https://hooks.example.org/", "event_types": ["mailbox.created"] }),
        "updateWebhook" => json!({ "status": "active" }),
        "updateEmail" => json!({ "read": true }),
        "moveEmail" | "moveThread" => json!({ "folderId": "archive" }),
        "bulkReadEmails" => json!({ "ids": ["eml_none"], "read": true }),
        "bulkMoveEmails" => json!({ "ids": ["eml_none"], "folderId": "archive" }),
        "bulkDeleteEmails" => json!({ "ids": ["eml_none"] }),
        "waitForEmail" => json!({ "after": "2026-07-01T00:00:00Z", "timeout_seconds": 1 }),
        "sendEmail" | "checkSendPolicy" => {
            json!({ "to": "postmaster@agents.test", "subject": "S", "text": "T" })
        }
        "replyToEmail" | "forwardEmail" => json!({ "to": "postmaster@agents.test", "text": "T" }),
        "saveDraft" => json!({ "to": "postmaster@agents.test", "subject": "S", "body": "T" }),
        "scheduleSend" => json!({
            "to": "postmaster@agents.test", "subject": "S", "body": "T", "scheduled_send_at": "2026-08-01T00:00:00Z",
        }),
        "rescheduleSend" => json!({ "scheduled_send_at": "2026-08-02T00:00:00Z" }),
        "setSendPolicy" | "setMailboxSendPolicy" => json!({ "review": "matched" }),
        "approveReview" => json!({ "digest": "another" }),
        "rejectReview" | "withdrawReview" => json!({}),
        "createAgentConversation" | "updateAgentConversation" => json!({ "title": "Fresh" }),
        "sendAgentMessage" => json!({ "content": "Hello" }),
        "regenerateDraft" => json!({ "draftId": world.id("draftId"), "prompt": "shorter", "body": "T" }),
        "createIntegrationConnection" => json!({ "name": "Fresh", "url": "http://127.0.0.1:9/" }),
        "runTaskTriager" => json!({ "email_id": world.id("emailId") }),
        "updateTask" => json!({ "status": "done" }),
        "remember" => json!({ "text": "T" }),
        "recall" => json!({ "query": "T" }),
        "addDocument" => json!({ "name": "D", "type": "text", "text": "T" }),
        other => panic!("a body for {other} is missing here"),
    }
}

/// rules: HTTP-3
#[both_engines]
async fn fields_that_an_operation_does_not_know_are_refused(engine: Engine) {
    let server = server_with_everything(engine).await;
    let world = World::new(&server).await;
    let before = world.state().await;
    for operation in operations(&world) {
        let path = world.path(&operation.template, None);
        // An affiliate's link is followed by people, whatever else it has picked up on its way.
        if operation.id != "trackAffiliate" {
            let unknown = ["surprise", "plan", "workspace_id", "limit"];
            for unknown in unknown.iter().filter(|name| !operation.query.iter().any(|one| one == *name)) {
                let path = format!("{path}?{unknown}=1");
                let answer = operation.send(&world.console, &path).await;
                assert_refuses_fields(&answer, &[unknown]);
            }
        }
        let Some(body) = operation.body.clone() else { continue };
        for unknown in ["surprise", "plan", "credits", "workspace_id", "account_id", "created_at", "is_admin"]
        {
            if operation.id == "switchWorkspace" && unknown == "workspace_id" {
                continue;
            }
            let mut body = body.clone();
            body[unknown] = json!("Enterprise");
            let answer = operation.send_with(&world.console, &path, Some(body)).await;
            assert_refuses_fields(&answer, &[unknown]);
        }
    }
    assert_eq!(world.state().await, before);
}

/// What must be the same for a foreign id and for one that never existed.
fn told(answer: &Answer) -> (u16, String, Vec<String>) {
    let mut headers: Vec<String> = answer
        .headers
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "x-request-id" | "ratelimit-remaining"))
        .map(|(name, value)| format!("{name}: {value:?}"))
        .collect();
    headers.sort();
    (answer.status, answer.text(), headers)
}

/// What is answered when the thing that a parameter names is not there.
fn missing(parameter: &str) -> (u16, &'static str) {
    match parameter {
        "workspaceId" => (403, "Forbidden"),
        "mailboxId" => (404, "Mailbox not found"),
        "folderId" => (404, "Folder not found"),
        "labelId" => (404, "Label not found"),
        "reviewId" => (404, "Review not found"),
        "suppressionId" => (404, "Suppression not found"),
        "blobId" => (404, "Memory not found"),
        "documentId" => (404, "Document not found"),
        "memberId" => (404, "Member not found"),
        "inviteId" => (404, "Invite not found"),
        "keyId" => (404, "API key not found"),
        "domainId" => (404, "Email domain not found"),
        "webhookId" => (404, "Webhook not found"),
        "deliveryId" => (404, "Delivery not found"),
        "draftId" => (404, "Draft not found"),
        "scheduledSendId" => (404, "Scheduled send not found"),
        "emailId" => (404, "Email not found"),
        "threadId" => (404, "Thread not found"),
        "attachmentId" => (404, "Attachment not found"),
        "sessionId" => (404, "Session not found"),
        "conversationId" => (404, "Conversation not found"),
        "connectionId" => (404, "Connection not found"),
        "triagerId" => (404, "Triager not found"),
        "taskId" => (404, "Task not found"),
        other => panic!("what is {other}?"),
    }
}

/// rules: HTTP-5, ERR-6
#[both_engines]
async fn a_foreign_id_is_answered_like_one_that_never_was(engine: Engine) {
    let server = server_with_everything(engine).await;
    let (own, foreign) = (World::new(&server).await, World::new(&server).await);
    // What a folder is called says nothing, so the foreign one has a name of its own.
    let folders = format!("/api/v1/mailboxes/{}/folders", foreign.id("mailboxId"));
    foreign.tenant.key.post(&folders, json!({ "name": "Theirs" })).await.ok();
    let (before, own_before) = (foreign.state().await, own.state().await);
    let ledger =
        "SELECT count(*), CAST(coalesce(sum(spent), 0) AS BIGINT) FROM allowance WHERE workspace_id = $1";
    let spent = async || {
        let found =
            server.app.db().read(&foreign.tenant.workspace, async move |tx| tx.one(ledger, &[]).await);
        let found: Result<Option<(i64, i64)>, store::Error> = found.await;
        found.unwrap()
    };
    assert!(server.app.meter().commit().await);
    let spent_before = spent().await;
    let mut tried = 0;
    for operation in operations(&own) {
        for parameter in &operation.parameters {
            let theirs = if parameter == "folderId" { "theirs" } else { foreign.id(parameter) };
            let random = match theirs.split_once('_') {
                Some((prefix, _)) => format!("{prefix}_01h8xgjy4n7r2v6c0d5t9kqwez"),
                None => "nobodys".to_owned(),
            };
            let mut answers = Vec::new();
            for id in [theirs, &random] {
                let path = own.path(&operation.template, Some((parameter, id)));
                answers.push(operation.send(&own.console, &path).await);
            }
            assert_eq!(told(&answers[0]), told(&answers[1]), "{} {parameter}", operation.id);
            let (status, kind) = missing(parameter);
            assert_eq!(answers[0].status, status, "{} {parameter}: {}", operation.id, answers[0].text());
            assert_eq!(answers[0].json()["error"], kind, "{} {parameter}", operation.id);
            tried += 1;
        }
    }
    assert!(tried > 30, "{tried}");
    assert!(server.app.meter().commit().await);
    assert_eq!(spent().await, spent_before);
    assert_eq!((foreign.state().await, own.state().await), (before, own_before));
}

/// Texts that have broken services before, as they stand in a URL.
const NASTY: [&str; 21] = [
    "%00",
    "a%00b",
    "mbx_%00",
    "x%00@agents.test",
    "x@%00.test",
    "%FF",
    "%C3%28",
    "%ED%A0%80",
    "%F0%9F%92%A9",
    "%E2%80%AE",
    "%0D%0A",
    "..%2F..%2Fetc",
    "%2E%2E",
    "%25",
    "%25%30%30",
    "%27%20OR%201%3D1--",
    "%7B%7B7*7%7D%7D",
    "%24%7Bx%7D",
    "-1",
    "a%3Bb",
    "%EF%BF%BD",
];

/// rules: HTTP-14, HTTP-5
#[both_engines]
async fn any_characters_in_a_path_or_a_query_find_nothing(engine: Engine) {
    let server = server_with_everything(engine).await;
    let world = World::new(&server).await;
    let before = world.state().await;
    let long = "a".repeat(8000);
    for operation in operations(&world) {
        for parameter in &operation.parameters {
            for nasty in NASTY.iter().copied().chain([long.as_str()]) {
                let path = world.path(&operation.template, Some((parameter, nasty)));
                let answer = operation.send(&world.console, &path).await;
                assert!(matches!(answer.status, 403 | 404), "{} {path}: {}", operation.id, answer.text());
                // With a NUL it is the same as with any other id that is none.
                if nasty.contains("%00") {
                    let path = world.path(&operation.template, Some((parameter, "unknown")));
                    let other = operation.send(&world.console, &path).await;
                    assert_eq!(told(&answer), told(&other), "{} {nasty}", operation.id);
                }
            }
        }
        for nasty in NASTY {
            for query in [format!("{nasty}=1"), format!("x={nasty}"), nasty.to_owned()] {
                let path = format!("{}?{query}", world.path(&operation.template, None));
                // What looks at no query would do what it is there for.
                if operation.template.starts_with("/api/v1/") && operation.id != "getConfig" {
                    let answer = operation.send(&world.console, &path).await;
                    answer.expect(400, "validation_failed");
                }
            }
        }
    }
    for nasty in NASTY {
        let list = format!("/api/v1/mailboxes?workspaceId={nasty}");
        let answer = world.console.get(&list).await;
        assert!(matches!(answer.status, 400 | 403), "{nasty}: {}", answer.text());
        let history = format!("/api/v1/workspaces/{}/usage/history?days={nasty}", world.tenant.workspace);
        assert_refuses_fields(&world.console.get(&history).await, &["days"]);
        let track = server.anonymous().get(&format!("/api/affiliate/track?code={nasty}")).await;
        assert_eq!((track.status, track.header("set-cookie")), (302, ""), "{nasty}");
        assert_eq!(server.anonymous().get(&format!("/{nasty}")).await.status, 404);
    }
    let nul = world.console.get("/api/v1/mailboxes?workspaceId=%00").await;
    super::help::assert_refused(&nul, &[("workspaceId", "must not contain the character U+0000")]);
    assert_eq!(world.state().await, before);
}

/// Every text of every body, with a NUL and with other things in it.
/// rules: HTTP-14
#[both_engines]
async fn any_characters_in_a_body_are_taken_or_refused(engine: Engine) {
    let texts = [
        "\0",
        "a\0b",
        "\u{fffd}",
        "\u{feff}",
        "\u{202e}",
        "\u{1b}[0m",
        "😀",
        "' OR 1=1 --",
        "${x}",
        "\u{10ffff}",
    ];
    let server = server_with_everything(engine).await;
    let world = World::new(&server).await;
    for operation in operations(&world) {
        let Some(body_of) = &operation.body else { continue };
        // Logging in for real changes nothing that matters here, but each takes its time.
        let path = world.path(&operation.template, None);
        for field in body_of.as_object().unwrap().keys() {
            for text in texts {
                let mut body = body_of.clone();
                body[field] = if body[field].is_array() { json!([text]) } else { json!(text) };
                let answer = world.console.send(operation.method.clone(), &path, Some(body)).await;
                assert!(answer.status < 500, "{} {field} {text:?}: {}", operation.id, answer.text());
                if text.contains('\0') {
                    let inside = format!("{field}[0]");
                    let path = if body_of[field].is_array() { &inside } else { field };
                    assert_refuses_fields(&answer, &[path]);
                }
            }
        }
    }
}
