//! What every write leaves behind, and what goes away by itself.

use std::collections::BTreeSet;

use http::Method;
use model::Plan;
use operations::BotUpdates;
use serde_json::{Value, json};
use testkit::{
    BotServer, Caller, Engine, PASSWORD, ScriptedModel, Server, ServerOptions, Tenant, both_engines,
};

type Entry = (String, String, String, String, i64);

/// The audit trail of a workspace: operation, actor, subject, request id, time.
async fn trail(server: &Server, tenant: &Tenant) -> Vec<Entry> {
    // Without what the test kit does to have a tenant and people.
    let sql = "SELECT operation, actor, subject, request_id, at FROM audit WHERE workspace_id = $1
               AND actor <> 'operator' AND operation NOT IN ('logIn', 'acceptInvite') ORDER BY at, id";
    let read = server.app.db().read(&tenant.workspace, async move |tx| {
        struct Found(Entry);
        impl store::FromRow for Found {
            fn from_row(row: &mut store::Row<'_>) -> store::Result<Self> {
                Ok(Self((row.next()?, row.next()?, row.next()?, row.next()?, row.next()?)))
            }
        }
        let found: Vec<Found> = tx.all(sql, &[]).await?;
        Ok::<_, store::Error>(found.into_iter().map(|one| one.0).collect())
    });
    read.await.unwrap()
}

/// Makes one call after the other, each with a request id, and notes what it should leave.
struct Scribe<'a> {
    server: &'a Server,
    expected: Vec<Entry>,
}

impl Scribe<'_> {
    async fn call(
        &mut self,
        (caller, actor): (&Caller, &str),
        operation: &str,
        (method, path): (Method, &str),
        body: Option<Value>,
    ) -> Value {
        self.server.clock.advance(1);
        let request = format!("request-{}", self.expected.len());
        let caller = caller.with("x-request-id", &request);
        let answer = match operation {
            "importEmails" => {
                caller.send_raw(method, path, Some("message/rfc822"), "Subject: A\r\n\r\nB\r\n".into()).await
            }
            _ => caller.send(method, path, body).await,
        };
        let answer = answer.ok();
        let at = self.server.clock.now().as_micros();
        self.expected.push((operation.to_owned(), actor.to_owned(), path.to_owned(), request, at));
        answer
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

async fn write_in_mailboxes(scribe: &mut Scribe<'_>, who: (&Caller, &str)) {
    let (post, put, delete) = (Method::POST, Method::PUT, Method::DELETE);
    let mailbox = scribe
        .call(who, "createMailbox", (post.clone(), "/api/v1/mailboxes"), Some(json!({ "name": "A" })))
        .await;
    let one = format!("/api/v1/mailboxes/{}", text(&mailbox["public_id"]));
    scribe.call(who, "updateMailbox", (put.clone(), &one), Some(json!({ "name": "B" }))).await;
    scribe.call(who, "linkTelegram", (post.clone(), &format!("{one}/telegram/link")), None).await;
    scribe.call(who, "unlinkTelegram", (delete.clone(), &format!("{one}/telegram")), None).await;
    let folders = format!("{one}/folders");
    scribe.call(who, "createFolder", (post.clone(), &folders), Some(json!({ "name": "Do" }))).await;
    scribe
        .call(who, "renameFolder", (put.clone(), &format!("{folders}/do")), Some(json!({ "name": "Done" })))
        .await;
    scribe.call(who, "deleteFolder", (delete.clone(), &format!("{folders}/do")), None).await;
    let labels = format!("{one}/custom-labels");
    let label =
        scribe.call(who, "createCustomLabel", (post.clone(), &labels), Some(json!({ "name": "L" }))).await;
    let order = Some(json!({ "ids": [label["id"]] }));
    scribe.call(who, "reorderCustomLabels", (post, &format!("{labels}/reorder")), order).await;
    let label = format!("{labels}/{}", text(&label["id"]));
    scribe.call(who, "updateCustomLabel", (put, &label), Some(json!({ "name": "M" }))).await;
    scribe.call(who, "deleteCustomLabel", (delete.clone(), &label), None).await;
    write_in_mail(scribe, who, &one).await;
    talk(scribe, who, &one).await;
    send_mail(scribe, who, (&one, text(&mailbox["email"]))).await;
    triage_mail(scribe, who, (&one, text(&mailbox["email"]))).await;
    scribe.call(who, "deleteMailbox", (delete, &one), None).await;
}

/// Policies, and decisions about messages that they hold back.
async fn review_mail(
    scribe: &mut Scribe<'_>,
    tenant: &Tenant,
    who: (&Caller, &str),
    person: (&Caller, &str),
) {
    let (post, put, delete) = (Method::POST, Method::PUT, Method::DELETE);
    let workspace = format!("/api/v1/workspaces/{}", tenant.workspace);
    let mailbox = scribe
        .call(who, "createMailbox", (post.clone(), "/api/v1/mailboxes"), Some(json!({ "name": "A" })))
        .await;
    let one = format!("/api/v1/mailboxes/{}", text(&mailbox["public_id"]));
    let policy = format!("{one}/send-policy");
    scribe.call(who, "setMailboxSendPolicy", (put.clone(), &policy), Some(json!({ "review": "all" }))).await;
    scribe.call(who, "deleteMailboxSendPolicy", (delete, &policy), None).await;
    let whole = format!("{workspace}/send-policy");
    scribe.call(who, "setSendPolicy", (put.clone(), &whole), Some(json!({ "review": "all" }))).await;
    for (operation, rest) in
        [("approveReview", "approve"), ("rejectReview", "reject"), ("withdrawReview", "withdraw")]
    {
        let mail = json!({ "to": mailbox["email"], "subject": "S", "text": "T" });
        let sent = scribe.call(who, "sendEmail", (post.clone(), &format!("{one}/emails")), Some(mail)).await;
        let review = format!("{workspace}/reviews/{}", text(&sent["review_id"]));
        let digest = scribe.server.key(who.0.secret()).get(&review).await.ok()["digest"].clone();
        let (actor, body) = match rest {
            "approve" => (person, Some(json!({ "digest": digest }))),
            "reject" => (person, None),
            _ => (who, None),
        };
        scribe.call(actor, operation, (post.clone(), &format!("{review}/{rest}")), body).await;
    }
    scribe.call(who, "setSendPolicy", (put, &whole), Some(json!({}))).await;
    let all = format!("{workspace}/suppressions");
    let stopped = json!({ "address": "no@remote.test" });
    let stopped = scribe.call(who, "createSuppression", (post, &all), Some(stopped)).await;
    let one = format!("{all}/{}", text(&stopped["id"]));
    scribe.call(who, "deleteSuppression", (Method::DELETE, &one), None).await;
}

async fn write_in_memory(scribe: &mut Scribe<'_>, who: (&Caller, &str)) {
    let (post, delete, rag) = (Method::POST, Method::DELETE, "/api/v1/rag");
    let remembered = Some(json!({ "text": "T" }));
    let memory = scribe.call(who, "remember", (post.clone(), &format!("{rag}/remember")), remembered).await;
    let memory = format!("{rag}/memories/{}", text(&memory["blobId"]));
    scribe.call(who, "forget", (delete.clone(), &memory), None).await;
    let trial = format!("{rag}/credentials/verify");
    scribe.call(who, "verifyMemoryCredentials", (post.clone(), &trial), None).await;
    let document = Some(json!({ "name": "D", "type": "text", "text": "T" }));
    let added = scribe.call(who, "addDocument", (post.clone(), &format!("{rag}/documents")), document).await;
    let one = format!("{rag}/documents/{}", text(&added["id"]));
    scribe.call(who, "verifyDocument", (post, &format!("{one}/verify")), None).await;
    scribe.call(who, "deleteDocument", (delete, &one), None).await;
}

async fn write_in_mail(scribe: &mut Scribe<'_>, who: (&Caller, &str), mailbox: &str) {
    let (post, put, delete) = (Method::POST, Method::PUT, Method::DELETE);
    let emails = format!("{mailbox}/emails");
    let imported = scribe.call(who, "importEmails", (post.clone(), &format!("{emails}/import")), None).await;
    let id = text(&imported["ids"][0]);
    let one = format!("{emails}/{id}");
    let email = scribe.call(who, "updateEmail", (put, &one), Some(json!({ "read": false }))).await;
    let folder = || Some(json!({ "folderId": "archive" }));
    scribe.call(who, "moveEmail", (post.clone(), &format!("{one}/move")), folder()).await;
    let thread = format!("{mailbox}/threads/{}", text(&email["thread_id"]));
    scribe.call(who, "readThread", (post.clone(), &format!("{thread}/read")), None).await;
    scribe.call(who, "moveThread", (post.clone(), &format!("{thread}/move")), folder()).await;
    for (operation, name, body) in [
        ("bulkReadEmails", "bulk-read", json!({ "ids": [id], "read": true })),
        ("bulkMoveEmails", "bulk-move", json!({ "ids": [id], "folderId": "inbox" })),
        ("bulkDeleteEmails", "bulk-delete", json!({ "ids": [id] })),
    ] {
        scribe.call(who, operation, (post.clone(), &format!("{emails}/{name}")), Some(body)).await;
    }
    scribe.call(who, "deleteEmail", (delete, &one), None).await;
    scribe.call(who, "emptyTrash", (post, &format!("{mailbox}/trash/empty")), None).await;
}

async fn send_mail(scribe: &mut Scribe<'_>, who: (&Caller, &str), (mailbox, address): (&str, &str)) {
    let (post, patch, delete) = (Method::POST, Method::PATCH, Method::DELETE);
    let (emails, drafts) = (format!("{mailbox}/emails"), format!("{mailbox}/drafts"));
    let schedules = format!("{mailbox}/scheduled-sends");
    let mail = |body: &str| json!({ "to": address, "subject": "S", body: "T" });
    let sent = scribe.call(who, "sendEmail", (post.clone(), &emails), Some(mail("text"))).await;
    let one = format!("{emails}/{}", text(&sent["id"]));
    scribe
        .call(who, "replyToEmail", (post.clone(), &format!("{one}/reply")), Some(json!({ "text": "R" })))
        .await;
    let forward = Some(json!({ "to": address }));
    scribe.call(who, "forwardEmail", (post.clone(), &format!("{one}/forward")), forward).await;
    let draft = scribe.call(who, "saveDraft", (post.clone(), &drafts), Some(mail("body"))).await;
    scribe
        .call(who, "deleteDraft", (delete.clone(), &format!("{drafts}/{}", text(&draft["id"]))), None)
        .await;
    let draft = scribe.call(who, "saveDraft", (post.clone(), &drafts), Some(mail("body"))).await;
    let wish = Some(json!({ "draftId": draft["id"], "prompt": "P", "body": "T" }));
    scribe.call(who, "regenerateDraft", (post.clone(), &format!("{drafts}/regenerate")), wish).await;
    scribe
        .call(who, "sendDraft", (post.clone(), &format!("{drafts}/{}/send", text(&draft["id"]))), None)
        .await;
    let mut later = mail("body");
    later["scheduled_send_at"] = json!("2026-08-01T00:00:00Z");
    let scheduled = scribe.call(who, "scheduleSend", (post, &schedules), Some(later)).await;
    let one = format!("{schedules}/{}", text(&scheduled["id"]));
    let time = Some(json!({ "scheduled_send_at": "2026-08-02T00:00:00Z" }));
    scribe.call(who, "rescheduleSend", (patch, &one), time).await;
    scribe.call(who, "cancelScheduledSend", (delete, &one), None).await;
}

/// Triagers, with a model that always finds something to do.
async fn triage_mail(scribe: &mut Scribe<'_>, who: (&Caller, &str), (mailbox, address): (&str, &str)) {
    let (post, put, delete) = (Method::POST, Method::PUT, Method::DELETE);
    let mail = Some(json!({ "to": address, "subject": "S", "text": "T" }));
    let sent = scribe.call(who, "sendEmail", (post.clone(), &format!("{mailbox}/emails")), mail).await;
    let triagers = format!("{mailbox}/task-triagers");
    let body = Some(json!({ "name": "T", "tasks": [{ "kind": "extract_tasks" }] }));
    let made = scribe.call(who, "createTaskTriager", (post.clone(), &triagers), body).await;
    let one = format!("{triagers}/{}", text(&made["id"]));
    scribe.call(who, "updateTaskTriager", (put.clone(), &one), Some(json!({ "name": "U" }))).await;
    let on = Some(json!({ "email_id": sent["id"] }));
    let run = scribe.call(who, "runTaskTriager", (post.clone(), &format!("{one}/run")), on).await;
    let task = format!("{mailbox}/tasks/{}", text(&run["tasks"][0]["task_ids"][0]));
    scribe.call(who, "updateTask", (put, &task), Some(json!({ "status": "done" }))).await;
    let talk = format!("{one}/agent-conversation");
    scribe.call(who, "getTriagerAgentConversation", (post.clone(), &talk), None).await;
    let body = Some(json!({ "name": "Short" }));
    let short = scribe.call(who, "createTaskTriager", (post.clone(), &triagers), body).await;
    scribe.call(who, "makeTaskTriagerDefault", (post, &format!("{one}/default")), None).await;
    scribe
        .call(who, "deleteTaskTriager", (delete, &format!("{triagers}/{}", text(&short["id"]))), None)
        .await;
}

/// A model that finds a task in every mail.
fn finder() -> ServerOptions {
    let model = ScriptedModel::answering(|question| {
        let id = &question["triagers"][0]["id"];
        json!({ "triagers": [{ "id": id, "summary": "Found.", "tasks": [{ "title": "Do it" }] }] })
    });
    ServerOptions { assistant: Some(model), webhooks_allow_private: true, ..ServerOptions::default() }
}

/// The mailbox agent and outside tools.
async fn talk(scribe: &mut Scribe<'_>, who: (&Caller, &str), mailbox: &str) {
    let (post, patch, delete) = (Method::POST, Method::PATCH, Method::DELETE);
    let all = format!("{mailbox}/agent-conversations");
    let made = scribe.call(who, "createAgentConversation", (post.clone(), &all), Some(json!({}))).await;
    let one = format!("{all}/{}", text(&made["id"]));
    let title = Some(json!({ "title": "T" }));
    scribe.call(who, "updateAgentConversation", (patch.clone(), &one), title).await;
    let said = Some(json!({ "content": "Hello" }));
    scribe.call(who, "sendAgentMessage", (post.clone(), &format!("{one}/messages")), said).await;
    scribe.call(who, "deleteAgentConversation", (delete.clone(), &one), None).await;
    let all = "/api/v1/integrations/connections";
    let tools = Some(json!({ "name": "Tools", "url": "http://127.0.0.1:9/" }));
    let tools = scribe.call(who, "createIntegrationConnection", (post.clone(), all), tools).await;
    let one = format!("{all}/{}", text(&tools["id"]));
    scribe.call(who, "updateIntegrationConnection", (patch, &one), Some(json!({ "name": "N" }))).await;
    scribe.call(who, "syncIntegrationConnection", (post, &format!("{one}/sync")), None).await;
    scribe.call(who, "deleteIntegrationConnection", (delete, &one), None).await;
}

/// Domains and webhooks.
async fn connect(scribe: &mut Scribe<'_>, who: (&Caller, &str), workspace: &str) {
    let (post, patch, delete) = (Method::POST, Method::PATCH, Method::DELETE);
    let domains = format!("{workspace}/email-domains");
    let domain = Some(json!({ "domain": "example.org" }));
    let domain = scribe.call(who, "createEmailDomain", (post.clone(), &domains), domain).await;
    let one = format!("{domains}/{}", text(&domain["id"]));
    scribe.call(who, "verifyEmailDomain", (post.clone(), &format!("{one}/verify")), None).await;
    scribe.call(who, "deleteEmailDomain", (delete.clone(), &one), None).await;
    let hooks = format!("{workspace}/webhooks");
    let hook = Some(json!({ "url": "https://hooks.example.org/", "event_types": ["message.received"] }));
    let hook = scribe.call(who, "createWebhook", (post.clone(), &hooks), hook).await;
    let one = format!("{hooks}/{}", text(&hook["id"]));
    scribe.call(who, "updateWebhook", (patch, &one), Some(json!({ "status": "active" }))).await;
    scribe.call(who, "rotateWebhookSecret", (post.clone(), &format!("{one}/rotate-secret")), None).await;
    let trial = scribe.call(who, "testWebhook", (post.clone(), &format!("{one}/test")), None).await;
    let again = format!("{one}/deliveries/{}/retry", text(&trial["id"]));
    scribe.call(who, "retryWebhookDelivery", (post, &again), None).await;
    scribe.call(who, "deleteWebhook", (delete, &one), None).await;
}

async fn write_in_workspace(
    scribe: &mut Scribe<'_>,
    tenant: &Tenant,
    who: (&Caller, &str),
    session: &Caller,
) {
    let (post, put, delete) = (Method::POST, Method::PUT, Method::DELETE);
    let workspace = format!("/api/v1/workspaces/{}", tenant.workspace);
    scribe.call(who, "updateWorkspace", (put.clone(), &workspace), Some(json!({ "name": "W" }))).await;
    let invites = format!("{workspace}/invites");
    let invite = scribe
        .call(who, "createInvite", (post.clone(), &invites), Some(json!({ "email": "a@people.test" })))
        .await;
    let one = format!("{invites}/{}", text(&invite["id"]));
    scribe.call(who, "resendInvite", (post.clone(), &format!("{one}/resend")), Some(json!({}))).await;
    scribe.call(who, "deleteInvite", (delete.clone(), &one), None).await;
    let invite = scribe
        .call(who, "createInvite", (post.clone(), &invites), Some(json!({ "email": "b@people.test" })))
        .await;
    let body = json!({ "token": text(&invite["link"]).split_once('#').unwrap().1, "password": PASSWORD });
    let joined = scribe.server.anonymous().post("/api/console/invites/accept", body).await.ok();
    let member = format!("{workspace}/members/{}", text(&joined["account"]["id"]));
    scribe.call(who, "updateMember", (put, &member), Some(json!({ "role": "admin" }))).await;
    scribe.call(who, "removeMember", (delete.clone(), &member), None).await;
    connect(scribe, who, &workspace).await;
    let person = (session, tenant.account.as_str());
    review_mail(scribe, tenant, who, person).await;
    let keys = format!("{workspace}/api-keys");
    let key = scribe.call(person, "createApiKey", (post.clone(), &keys), Some(json!({ "name": "K" }))).await;
    let key = format!("{keys}/{}", text(&key["id"]));
    let narrower = json!({ "scopes": ["read"] });
    scribe.call(person, "updateApiKey", (Method::PATCH, &key), Some(narrower)).await;
    scribe.call(person, "revokeApiKey", (delete, &key), None).await;
    scribe.call(who, "signUpAffiliate", (post, "/api/v1/affiliate/signup"), Some(json!({}))).await;
    scribe
        .call(who, "updateAffiliate", (Method::PATCH, "/api/v1/affiliate/me"), Some(json!({ "code": "abc" })))
        .await;
}

/// What an entry of an operation is about.
fn resource_kind(operation: &str) -> &'static str {
    match operation {
        "createMailbox"
        | "updateMailbox"
        | "deleteMailbox"
        | "linkTelegram"
        | "unlinkTelegram"
        | "reorderCustomLabels"
        | "bulkReadEmails"
        | "bulkMoveEmails"
        | "bulkDeleteEmails"
        | "importEmails"
        | "emptyTrash" => "mailbox",
        "createFolder" | "renameFolder" | "deleteFolder" => "folder",
        "createCustomLabel" | "updateCustomLabel" | "deleteCustomLabel" => "label",
        "remember" | "forget" => "memory",
        "addDocument" | "verifyDocument" | "deleteDocument" => "document",
        "updateEmail" | "moveEmail" | "deleteEmail" | "sendEmail" | "replyToEmail" | "forwardEmail"
        | "sendDraft" => "email",
        "readThread" | "moveThread" => "thread",
        "saveDraft" | "deleteDraft" | "regenerateDraft" => "draft",
        "scheduleSend" | "rescheduleSend" | "cancelScheduledSend" => "scheduled_send",
        "createTaskTriager"
        | "updateTaskTriager"
        | "deleteTaskTriager"
        | "makeTaskTriagerDefault"
        | "runTaskTriager"
        | "getTriagerAgentConversation" => "triager",
        "updateTask" => "task",
        "createAgentConversation"
        | "updateAgentConversation"
        | "deleteAgentConversation"
        | "sendAgentMessage" => "conversation",
        "createIntegrationConnection"
        | "updateIntegrationConnection"
        | "deleteIntegrationConnection"
        | "syncIntegrationConnection" => "integration",
        "createEmailDomain" | "verifyEmailDomain" | "deleteEmailDomain" => "domain",
        "createWebhook" | "updateWebhook" | "deleteWebhook" | "rotateWebhookSecret" | "testWebhook" => {
            "webhook"
        }
        "retryWebhookDelivery" => "webhook_delivery",
        "updateWorkspace" | "verifyMemoryCredentials" => "workspace",
        "createInvite" | "resendInvite" | "deleteInvite" => "invite",
        "updateMember" | "removeMember" => "member",
        "createApiKey" | "updateApiKey" | "revokeApiKey" => "api_key",
        "setSendPolicy" | "setMailboxSendPolicy" | "deleteMailboxSendPolicy" => "send_policy",
        "approveReview" | "rejectReview" | "withdrawReview" => "review",
        "createSuppression" | "deleteSuppression" => "suppression",
        "signUpAffiliate" | "updateAffiliate" => "affiliate",
        other => panic!("{other} needs its line here"),
    }
}

/// What the log says of each write, as its readers see it.
async fn check_entries(tenant: &Tenant, session: &Caller) {
    let (mut next, mut seen) = (String::new(), 0);
    loop {
        let path = format!("/api/v1/workspaces/{}/audit?limit=100{next}", tenant.workspace);
        let page = session.get(&path).await.ok();
        for entry in page["entries"].as_array().unwrap() {
            let operation = text(&entry["operation"]);
            if entry["actor"]["kind"] == "operator" || ["logIn", "acceptInvite"].contains(&operation) {
                continue;
            }
            seen += 1;
            assert_eq!(entry["resource"]["kind"], resource_kind(operation), "{entry}");
            assert!(!text(&entry["resource"]["id"]).is_empty(), "{entry}");
            assert_eq!(entry["address"], "127.0.0.1", "{entry}");
            let is_key = entry["actor"]["kind"] == "key";
            let name = if is_key { "test" } else { tenant.email.as_str() };
            assert_eq!(entry["actor"]["name"], name, "{entry}");
            let subject = text(&entry["subject"]);
            let in_mailbox = subject.contains("/mailboxes") || subject.contains("/reviews/");
            assert_eq!(in_mailbox, entry["mailbox_id"].is_string(), "{entry}");
        }
        match page["next_cursor"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => break,
        }
    }
    assert!(seen > 60, "{seen}");
}

/// rules: STORE-11, AUDIT-1, AUDIT-2
#[both_engines]
async fn every_write_leaves_an_audit_entry(engine: Engine) {
    let bot = BotServer::start().await;
    let telegram = Some((bot.url(), BotUpdates::Polling));
    let server = Server::with(engine, ServerOptions { telegram, ..finder() }).await;
    let tenant = server.tenant(Plan::Developer).await;
    let session = server.log_in(&tenant).await;
    let who = (&tenant.key, tenant.key_id.as_str());
    let mut scribe = Scribe { server: &server, expected: Vec::new() };
    write_in_mailboxes(&mut scribe, who).await;
    write_in_memory(&mut scribe, who).await;
    write_in_workspace(&mut scribe, &tenant, who, &session).await;
    assert_eq!(trail(&server, &tenant).await, scribe.expected);
    let done: BTreeSet<&str> = scribe.expected.iter().map(|entry| entry.0.as_str()).collect();
    let writes: BTreeSet<&str> = operations::catalog()
        .iter()
        .filter(|operation| operation.writes)
        .map(|operation| operation.id)
        .collect();
    assert_eq!(done, writes, "the test makes every write there is");
    check_entries(&tenant, &session).await;
}

/// rules: STORE-11, AUDIT-3
#[both_engines]
async fn reads_and_refused_writes_leave_none(engine: Engine) {
    let server = Server::start(engine).await;
    let (tenant, other) = (server.tenant(Plan::Free).await, server.tenant(Plan::Free).await);
    tenant.key.get("/api/v1/mailboxes").await.ok();
    tenant.key.post("/api/v1/mailboxes", json!({ "name": "" })).await.expect(400, "validation_failed");
    tenant.key.put("/api/v1/mailboxes/none", json!({ "name": "A" })).await.expect(404, "not_found");
    let foreign = format!("/api/v1/workspaces/{}", other.workspace);
    tenant.key.put(&foreign, json!({ "name": "A" })).await.expect(403, "workspace_scope_denied");
    assert_eq!((trail(&server, &tenant).await, trail(&server, &other).await), (Vec::new(), Vec::new()));
    // A replayed answer is not a second write.
    let once = tenant.key.with("idempotency-key", "k");
    for _ in 0..3 {
        once.post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
    }
    assert_eq!(trail(&server, &tenant).await.len(), 1);
    assert!(!trail(&server, &tenant).await[0].3.is_empty());
}

async fn rows(server: &Server, table: &'static str) -> i64 {
    let read = server.app.db().system_read(async move |tx| {
        let found: Option<(i64,)> = tx.one(&format!("SELECT count(*) FROM {table}"), &[]).await?;
        Ok::<_, store::Error>(found.unwrap().0)
    });
    read.await.unwrap()
}

/// rules: STORE-11, AUDIT-9
#[both_engines]
async fn old_rows_are_deleted_by_themselves(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    server.log_in(&tenant).await;
    tenant.key.with("idempotency-key", "k").post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
    let counts = async || {
        [rows(&server, "idempotency").await, rows(&server, "session").await, rows(&server, "audit").await]
    };
    // Each goes at the end of its time and not a moment earlier.
    for (day, last_moment, after) in
        [(1, [1, 1, 4], [0, 1, 4]), (30, [0, 1, 4], [0, 0, 4]), (90, [0, 0, 4], [0, 0, 0])]
    {
        server.clock.set("2026-07-14T09:00:00Z");
        server.clock.advance(day * 86_400 - 1);
        operations::maintenance::run(&server.app).await.unwrap();
        assert_eq!(counts().await, last_moment, "before day {day}");
        server.clock.advance(1);
        operations::maintenance::run(&server.app).await.unwrap();
        assert_eq!(counts().await, after, "after day {day}");
    }
    assert_eq!((rows(&server, "account").await, rows(&server, "mailbox").await), (1, 1));
}

/// One round of upkeep ends everything that is due, however much that is.
/// rules: STORE-11
#[both_engines]
async fn a_round_deletes_all_that_is_due(engine: Engine) {
    let server = Server::start(engine).await;
    let tenant = server.tenant(Plan::Free).await;
    let write = server.app.db().write(&tenant.workspace, async |tx| {
        for number in 0..2500_i64 {
            let sql = "INSERT INTO audit (workspace_id, id, at, actor, operation, subject, request_id)
                           VALUES ($1, $2, $3, '', '', '', '')";
            tx.run(sql, &[(&format!("{number}")).into(), number.into()]).await?;
        }
        Ok::<_, store::Error>(())
    });
    write.await.unwrap();
    tenant.key.post("/api/v1/mailboxes", json!({ "name": "A" })).await.ok();
    operations::maintenance::run(&server.app).await.unwrap();
    // The account, its key and the mailbox.
    assert_eq!(rows(&server, "audit").await, 3);
}
