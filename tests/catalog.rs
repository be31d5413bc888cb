//! Tables over all operations, generated from the OpenAPI document: nobody, foreigners, members, small plans, empty
//! pools, full windows. A new operation is in them by itself; one that a table cannot call fails it.

use http::Method;
use model::{Limit, Plan, Role, WorkspaceId};
use serde_json::{Value, json};
use testkit::{Answer, Caller, Engine, Server, ServerOptions, Tenant, both_engines};

/// One operation of the document.
pub(crate) struct Described {
    pub(crate) id: String,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) operation: Value,
}

impl Described {
    pub(crate) fn is_console_only(&self) -> bool {
        self.operation["security"] == json!([{ "session": [] }])
    }
    fn needs_admin(&self) -> bool {
        self.operation["x-role"] == "admin"
    }
    fn credits(&self) -> i64 {
        self.operation["x-credits"].as_i64().unwrap()
    }
    fn plans(&self) -> Vec<&str> {
        self.operation["x-plans"].as_array().unwrap().iter().map(|plan| plan.as_str().unwrap()).collect()
    }
}

/// All metered operations.
pub(crate) fn described() -> Vec<Described> {
    let document = web::document();
    let mut all = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            // Public routes and those of the console's session cost nothing.
            if operation["x-credits"] == 0 {
                continue;
            }
            all.push(Described {
                id: operation["operationId"].as_str().unwrap().to_owned(),
                method: method.to_ascii_uppercase().parse().unwrap(),
                path: path.clone(),
                operation: operation.clone(),
            });
        }
    }
    assert!(all.len() >= operations::catalog().len());
    all
}

/// A body that an operation accepts. A new operation with a body needs its line here.
fn body(id: &str) -> Option<Value> {
    Some(match id {
        "updateWorkspace"
        | "updateMailbox"
        | "renameFolder"
        | "updateCustomLabel"
        | "updateTaskTriager"
        | "updateApiKey"
        | "updateIntegrationConnection" => {
            json!({ "name": "Renamed" })
        }
        "createMailbox" | "createFolder" | "createCustomLabel" | "createApiKey" | "createTaskTriager" => {
            json!({ "name": "Made" })
        }
        "runTaskTriager" => json!({ "email_id": "eml_none" }),
        "updateTask" => json!({ "status": "done" }),
        "updateMember" => json!({ "role": "admin" }),
        "createSuppression" => json!({ "address": "suppressed@remote.test" }),
        "createInvite" => json!({ "email": "guest@people.test" }),
        "reorderCustomLabels" => json!({ "ids": [] }),
        "updateAffiliate" => json!({ "payout_email": "pay@people.test" }),
        "signUpAffiliate" | "createAgentConversation" | "rejectReview" | "withdrawReview" => json!({}),
        "updateEmail" => json!({ "read": true }),
        "moveEmail" | "moveThread" => json!({ "folderId": "archive" }),
        "bulkReadEmails" => json!({ "ids": ["eml_none"], "read": true }),
        "bulkMoveEmails" => json!({ "ids": ["eml_none"], "folderId": "archive" }),
        "bulkDeleteEmails" => json!({ "ids": ["eml_none"] }),
        "waitForEmail" => json!({ "after": "2026-07-01T00:00:00Z", "timeout_seconds": 1 }),
        "createEmailDomain" => json!({ "domain": "made.example.org" }),
        "createWebhook" => json!({ "url": "https://hooks.example.org/", "event_types": ["mailbox.created"] }),
        "updateWebhook" => json!({ "url": "https://hooks.example.org/other" }),
        // The operator's address is the one mailbox that every server has.
        "sendEmail" | "checkSendPolicy" => {
            json!({ "to": "postmaster@agents.test", "subject": "S", "text": "T" })
        }
        "replyToEmail" | "forwardEmail" => json!({ "to": "postmaster@agents.test", "text": "T" }),
        "saveDraft" => json!({ "to": "postmaster@agents.test", "subject": "S", "body": "T" }),
        "scheduleSend" => json!({
            "to": "postmaster@agents.test", "subject": "S", "body": "T", "scheduled_send_at": "2026-08-01T00:00:00Z",
        }),
        "rescheduleSend" => json!({ "scheduled_send_at": "2026-08-02T00:00:00Z" }),
        "setSendPolicy" | "setMailboxSendPolicy" => json!({ "caps": { "per_day": 1000 } }),
        "approveReview" => json!({ "digest": "another" }),
        "updateAgentConversation" => json!({ "title": "Renamed" }),
        "sendAgentMessage" => json!({ "content": "Hello" }),
        "regenerateDraft" => json!({ "draftId": "eml_none", "prompt": "shorter", "body": "T" }),
        // Nothing listens there.
        "createIntegrationConnection" => json!({ "name": "Tools", "url": "http://127.0.0.1:9/" }),
        "remember" => json!({ "text": "The office closes at six." }),
        "recall" => json!({ "query": "When does the office close?" }),
        "addDocument" => json!({ "name": "notes.txt", "type": "text", "text": "Some notes." }),
        // A message, not JSON; see call().
        "importEmails" => Value::Null,
        _ => return None,
    })
}

/// A mail with a file.
const MAIL: &str = "From: a@remote.test\r\nSubject: S\r\nContent-Type: text/csv\r\n\
                    Content-Disposition: attachment; filename=a.csv\r\n\r\n1;2\r\n";

/// A workspace with one thing of each kind, and the ids that paths are filled with.
pub(crate) struct World {
    pub(crate) tenant: Tenant,
    pub(crate) session: Caller,
    pub(crate) ids: Vec<(&'static str, String)>,
}

/// A task in a mailbox; without a model nobody finds one.
pub(crate) async fn add_task(server: &Server, tenant: &Tenant, mailbox: &Value) -> String {
    let now = server.clock.now();
    let task = model::tasks::Task {
        id: server.app.new_id(),
        title: "Call back".to_owned(),
        due_at: None,
        priority: model::tasks::TaskPriority::Normal,
        status: model::tasks::TaskStatus::Open,
        email_id: "eml_none".into(),
        triager_id: "trg_none".into(),
        created_at: now,
        updated_at: now,
    };
    let (id, owner) = (task.id.to_string(), model::MailboxId::from(mailbox["id"].as_str().unwrap()));
    let write = server
        .app
        .db()
        .write(&tenant.workspace, async move |tx| store::tasks::insert(tx, &owner, &task).await);
    write.await.unwrap();
    id
}

async fn add_domain(tenant: &Tenant, workspace: &str) -> Option<String> {
    let name = format!("{}.example.org", tenant.workspace.as_str().replace('_', "-"));
    let made = tenant.key.post(&format!("{workspace}/email-domains"), json!({ "domain": name })).await;
    made.json()["id"].as_str().map(str::to_owned)
}

/// A message that waits for a person, in a mailbox with a policy of its own.
pub(crate) async fn add_review(tenant: &Tenant, sender: &Caller, mailbox: &str) -> String {
    let policy = format!("{mailbox}/send-policy");
    tenant.key.put(&policy, json!({ "review": "all" })).await.ok();
    let sent = sender.post(&format!("{mailbox}/emails"), body("sendEmail").unwrap()).await.ok();
    tenant.key.put(&policy, body("setMailboxSendPolicy").unwrap()).await.ok();
    sent["review_id"].as_str().unwrap().to_owned()
}

/// An address that a mailbox does not write to.
async fn add_suppression(tenant: &Tenant, workspace: &str, mailbox: &str) -> String {
    let body = json!({ "address": "stopped@remote.test", "mailbox_id": mailbox });
    let made = tenant.key.post(&format!("{workspace}/suppressions"), body).await.ok();
    made["id"].as_str().unwrap().to_owned()
}

/// A webhook for messages that arrive.
async fn add_hook(tenant: &Tenant, workspace: &str) -> String {
    let hook = json!({ "url": "https://hooks.example.org/in", "event_types": ["message.received"] });
    let made = tenant.key.post(&format!("{workspace}/webhooks"), hook).await.ok();
    made["id"].as_str().unwrap().to_owned()
}

impl World {
    pub(crate) async fn new(server: &Server, plan: Plan) -> Self {
        Self::with(server, plan, true).await
    }

    /// A domain has keys, which are dear to make.
    async fn with(server: &Server, plan: Plan, has_domain: bool) -> Self {
        let tenant = server.tenant(plan).await;
        let session = server.log_in(&tenant).await;
        let mailbox = tenant.key.post("/api/v1/mailboxes", json!({ "name": "Box" })).await.ok();
        let public_id = mailbox["public_id"].as_str().unwrap().to_owned();
        let inside = format!("/api/v1/mailboxes/{public_id}");
        let label = tenant.key.post(&format!("{inside}/custom-labels"), json!({ "name": "Tag" })).await.ok();
        tenant.key.post(&format!("{inside}/folders"), json!({ "name": "Own" })).await.ok();
        let workspace = format!("/api/v1/workspaces/{}", tenant.workspace);
        let invite = json!({ "email": "friend@people.test" });
        let invite = tenant.key.post(&format!("{workspace}/invites"), invite).await.ok();
        tenant.key.post("/api/v1/affiliate/signup", json!({})).await.ok();
        let hook = add_hook(&tenant, &workspace).await;
        let trial = format!("{workspace}/webhooks/{hook}/test");
        let delivery = tenant.key.send(Method::POST, &trial, None).await.ok();
        let domain = if has_domain { add_domain(&tenant, &workspace).await } else { None };
        let email = server.receive(mailbox["email"].as_str().unwrap(), MAIL).await;
        let shown = tenant.key.get(&format!("{inside}/emails/{email}")).await.ok();
        let draft = json!({ "to": "postmaster@agents.test", "subject": "D", "body": "T" });
        let draft = tenant.key.post(&format!("{inside}/drafts"), draft).await.ok();
        let talk = tenant.key.post(&format!("{inside}/agent-conversations"), json!({})).await.ok();
        let tools = body("createIntegrationConnection").unwrap();
        let tools = tenant.key.post("/api/v1/integrations/connections", tools).await.ok();
        let mut later = body("scheduleSend").unwrap();
        later["scheduled_send_at"] = server.clock.now().plus_seconds(86_400).to_string().into();
        let scheduled = tenant.key.post(&format!("{inside}/scheduled-sends"), later).await.ok();
        let triagers = format!("{inside}/task-triagers");
        let triager = tenant.key.post(&triagers, json!({ "name": "Own" })).await.ok();
        let task = add_task(server, &tenant, &mailbox).await;
        let review = add_review(&tenant, &tenant.key, &inside).await;
        let stopped = add_suppression(&tenant, &workspace, &public_id).await;
        let memory = tenant.key.post("/api/v1/rag/remember", body("remember").unwrap()).await.ok();
        let document = tenant.key.post("/api/v1/rag/documents", body("addDocument").unwrap()).await.ok();
        let ids = vec![
            ("reviewId", review),
            ("suppressionId", stopped),
            ("triagerId", triager["id"].as_str().unwrap().to_owned()),
            ("taskId", task),
            ("blobId", memory["blobId"].as_str().unwrap().to_owned()),
            ("documentId", document["id"].as_str().unwrap().to_owned()),
            ("draftId", draft["id"].as_str().unwrap().to_owned()),
            ("scheduledSendId", scheduled["id"].as_str().unwrap().to_owned()),
            ("emailId", email.to_string()),
            ("threadId", shown["thread_id"].as_str().unwrap().to_owned()),
            ("attachmentId", shown["attachments"][0]["id"].as_str().unwrap().to_owned()),
            ("workspaceId", tenant.workspace.to_string()),
            ("mailboxId", public_id),
            ("folderId", "own".to_owned()),
            ("labelId", label["id"].as_str().unwrap().to_owned()),
            ("memberId", tenant.account.to_string()),
            ("inviteId", invite["id"].as_str().unwrap().to_owned()),
            ("keyId", tenant.key_id.to_string()),
            ("conversationId", talk["id"].as_str().unwrap().to_owned()),
            ("connectionId", tools["id"].as_str().unwrap().to_owned()),
            ("webhookId", hook),
            ("deliveryId", delivery["id"].as_str().unwrap().to_owned()),
            // The smallest plan has none.
            ("domainId", domain.unwrap_or_else(|| "dom_none".to_owned())),
        ];
        Self { tenant, session, ids }
    }

    pub(crate) fn path(&self, template: &str) -> String {
        let mut path = template.to_owned();
        for (name, id) in &self.ids {
            path = path.replace(&format!("{{{name}}}"), id);
        }
        assert!(!path.contains('{'), "no id for {template}: add it to World");
        path
    }

    fn caller<'a>(&'a self, described: &Described, key: &'a Caller) -> &'a Caller {
        if described.is_console_only() { &self.session } else { key }
    }
}

pub(crate) async fn call(caller: &Caller, described: &Described, path: &str) -> Answer {
    let takes_body = !described.operation["requestBody"].is_null();
    let body = body(&described.id);
    assert_eq!(takes_body, body.is_some(), "{}: give catalog.rs a body for it", described.id);
    if body == Some(Value::Null) {
        return caller.send_raw(described.method.clone(), path, Some("message/rfc822"), MAIL.into()).await;
    }
    caller.send(described.method.clone(), path, body).await
}

pub(crate) fn generous() -> ServerOptions {
    let mut options = ServerOptions {
        assistant: Some(testkit::ScriptedModel::saying("Hello")),
        webhooks_allow_private: true,
        ..ServerOptions::default()
    };
    for limits in [&mut options.plans.free, &mut options.plans.developer] {
        limits.credits_per_period = Limit::of(1_000_000);
        limits.members = Limit::UNLIMITED;
        limits.mailboxes = Limit::UNLIMITED;
        limits.api_keys = Limit::UNLIMITED;
    }
    options
}

/// Without a credential: 401, whatever the path names.
/// rules: AUTH-1, ERR-4, METER-13
#[both_engines]
async fn nobody_gets_in_anywhere(engine: Engine) {
    let server = Server::with(engine, generous()).await;
    let world = World::new(&server, Plan::Free).await;
    for one in described() {
        for path in [world.path(&one.path), one.path.replace(['{', '}'], "")] {
            let answer = call(&server.anonymous(), &one, &path).await;
            answer.expect(401, "unauthorized");
            assert_eq!(answer.text(), testkit::error_text(operations::ErrorKind::Unauthorized));
            assert_eq!(answer.header("x-credits-charged"), "");
        }
    }
}

/// The foreign-workspace table: B's things, named by A, look exactly like things that do not exist, and stay as they
/// are.
/// rules: HTTP-5, AUTH-6, METER-9, MBX-3
#[both_engines]
async fn foreigners_see_nothing(engine: Engine) {
    let server = Server::with(engine, generous()).await;
    let (own, foreign) =
        (World::new(&server, Plan::Developer).await, World::new(&server, Plan::Developer).await);
    assert!(server.app.meter().commit().await);
    let before = snapshot(&server, &foreign.tenant.workspace).await;
    for one in described().iter().filter(|one| one.path.contains('{')) {
        let caller = own.caller(one, &own.tenant.key);
        let theirs = call(caller, one, &foreign.path(&one.path)).await;
        let nothing = World { ids: nonexistent(), ..World::empty(&own) };
        let invented = call(caller, one, &nothing.path(&one.path)).await;
        assert_eq!((theirs.status, &theirs.bytes), (invented.status, &invented.bytes), "{}", one.id);
        if one.path.contains("{workspaceId}") {
            theirs.expect(403, "workspace_scope_denied");
        } else {
            theirs.expect(404, "not_found");
        }
        // The mailbox is one's own, the thing inside is not.
        let mixed = World { ids: mixed_ids(&own, &foreign), ..World::empty(&own) };
        let inside = one.path.matches('{').count() > 1;
        if inside && !one.path.contains("{folderId}") {
            call(caller, one, &mixed.path(&one.path)).await.expect(404, "not_found");
        }
    }
    assert_eq!(snapshot(&server, &foreign.tenant.workspace).await, before);
}

impl World {
    /// The same people, to be given other ids.
    pub(crate) fn empty(other: &Self) -> Self {
        let tenant = Tenant {
            account: other.tenant.account.clone(),
            email: other.tenant.email.clone(),
            workspace: other.tenant.workspace.clone(),
            owner_address: other.tenant.owner_address.clone(),
            key: other.tenant.key.clone(),
            key_id: other.tenant.key_id.clone(),
        };
        Self { tenant, session: other.session.clone(), ids: Vec::new() }
    }
}

pub(crate) fn nonexistent() -> Vec<(&'static str, String)> {
    vec![
        ("workspaceId", "ws_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("mailboxId", "0198f2b4-0000-7000-8000-000000000000".to_owned()),
        ("folderId", "own".to_owned()),
        ("labelId", "lbl_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("reviewId", "rev_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("suppressionId", "sup_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("triagerId", "trg_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("taskId", "tsk_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("memberId", "acc_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("inviteId", "inv_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("keyId", "key_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("emailId", "eml_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("draftId", "eml_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("scheduledSendId", "eml_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("threadId", "thr_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("attachmentId", "att_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("conversationId", "conv_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("connectionId", "int_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("webhookId", "whk_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("deliveryId", "dlv_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("domainId", "dom_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("blobId", "mem_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
        ("documentId", "doc_01h8xgjy4n7r2v6c0d5t9kqwez".to_owned()),
    ]
}

fn mixed_ids(own: &World, foreign: &World) -> Vec<(&'static str, String)> {
    let outer = ["workspaceId", "mailboxId"];
    let from = |world: &World, name| world.ids.iter().find(|(one, _)| *one == name).unwrap().clone();
    own.ids.iter().map(|(name, _)| from(if outer.contains(name) { own } else { foreign }, *name)).collect()
}

/// Everything of a workspace that a foreigner could have touched.
pub(crate) async fn snapshot(server: &Server, workspace: &WorkspaceId) -> Vec<String> {
    // What is spent must be settled before it can be compared.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    server
        .app
        .db()
        .read(workspace, async |tx| {
            let mut shown = Vec::new();
            for table in [
                "member",
                "invite",
                "api_key",
                "mailbox",
                "folder",
                "label",
                "triager",
                "triager_run",
                "task",
                "content",
                "email",
                "draft",
                "outbound",
                "delivery",
                "send_policy",
                "review",
                "suppression",
                "thread",
                "event",
                "email_domain",
                "domain_key",
                "webhook",
                "webhook_delivery",
                "conversation",
                "conversation_message",
                "integration_connection",
                "memory",
                "document",
                "passage",
                "telegram_link",
                "telegram_code",
                "confirmation",
                "affiliate",
                "audit",
                "allowance",
                "usage_day",
            ] {
                let sql = format!("SELECT count(*) FROM {table} WHERE workspace_id = $1");
                let count = tx.one::<(i64,)>(&sql, &[]).await?;
                shown.push(format!("{table} {count:?}"));
            }
            let names = "SELECT name, settings, updated_at FROM mailbox WHERE workspace_id = $1";
            shown.push(format!("{:?}", tx.all::<(String, String, i64)>(names, &[]).await?));
            let spent = "SELECT kind, spent FROM allowance WHERE workspace_id = $1 ORDER BY kind";
            shown.push(format!("{:?}", tx.all::<(String, i64)>(spent, &[]).await?));
            Ok::<_, operations::Error>(shown)
        })
        .await
        .unwrap()
}

/// The role × plan × operation table: who may call what, on which plan, and what it costs.
/// rules: AUTH-5, AUTH-8, METER-1, METER-7, PLAN-7
#[both_engines]
async fn roles_plans_and_prices_are_as_described(engine: Engine) {
    for plan in Plan::ALL {
        for role in [Role::Admin, Role::Member] {
            table(engine, plan, role).await;
        }
    }
}

async fn table(engine: Engine, plan: Plan, role: Role) {
    let server = Server::with(engine, generous()).await;
    let shared = World::new(&server, plan).await;
    for one in described() {
        // What deletes gets a world of its own; making one is dear.
        let own = match one.method {
            Method::DELETE => Some(World::with(&server, plan, one.path.contains("{domainId}")).await),
            _ => None,
        };
        let world = own.as_ref().unwrap_or(&shared);
        let key = server.key(&server.new_key(&world.tenant.workspace, role).await.key);
        let case = format!("{} as {role:?} on {plan:?}", one.id);
        let answer = call(&key, &one, &world.path(&one.path)).await;
        if !one.plans().contains(&plan.display_name()) {
            answer.expect(403, "plan_required");
        } else if one.is_console_only() || (one.needs_admin() && role == Role::Member) {
            answer.expect(403, "role_required");
            assert_eq!(answer.json()["error"], "Forbidden", "{case}");
            assert_eq!(answer.header("x-credits-charged"), "0", "{case}");
        } else {
            let expected = expected_conflict(&one.id, role);
            assert_eq!(answer.status < 300, expected.is_none(), "{case}: {}", answer.text());
            let price = if expected.is_none() { one.credits() } else { 0 };
            assert_eq!(answer.header("x-credits-charged"), price.to_string(), "{case}");
        }
        let limited = plan != Plan::Enterprise;
        assert_eq!(answer.headers.contains_key("ratelimit-limit"), limited, "{case}");
        assert_eq!(answer.headers.contains_key("x-credits-remaining"), limited, "{case}");
    }
}

/// The operations that the world of these tables leads into a conflict, with its code.
fn expected_conflict(id: &str, role: Role) -> Option<&'static str> {
    match id {
        // Members see only reviews of their own messages, and a message is withdrawn by who asked for it.
        "getReview" | "withdrawReview" if role == Role::Member => Some("not_found"),
        "withdrawReview" => Some("decision_forbidden"),
        "approveReview" => Some("review_changed"),
        // The only admin removes itself; the workspace is an affiliate already; not all labels are named.
        "removeMember" => Some("last_admin"),
        "signUpAffiliate" => Some("affiliate_exists"),
        "reorderCustomLabels" => Some("validation_failed"),
        // There is no such draft, no such mail.
        "regenerateDraft" | "runTaskTriager" => Some("not_found"),
        // The server of these tables has no bot.
        "linkTelegram" => Some("telegram_unavailable"),
        _ => None,
    }
}

/// With an empty pool every operation is refused with 402 and changes nothing, except the balance itself.
/// rules: METER-4, METER-5
#[both_engines]
async fn an_empty_pool_stops_everything_but_the_balance(engine: Engine) {
    let mut options = generous();
    options.plans.free.credits_per_period = Limit::of(0);
    let server = Server::with(engine, options).await;
    let world = World::new(&server, Plan::Developer).await;
    operations::admin::set_plan(
        &server.app,
        world.tenant.workspace.clone(),
        Plan::Free,
        &testkit::operator(),
    )
    .await
    .unwrap();
    for one in described() {
        let answer = call(world.caller(&one, &world.tenant.key), &one, &world.path(&one.path)).await;
        match one.id.as_str() {
            _ if !one.plans().contains(&"Free") => {
                answer.expect(403, "plan_required");
            }
            "getCreditUsage" => {
                assert_eq!((answer.status, answer.header("x-credits-charged")), (200, "0"));
            }
            // A body that is refused is refused before money is asked for.
            _ => {
                answer.expect(402, "credits_exhausted");
            }
        }
    }
}

/// Over the request limit every operation answers 429.
/// rules: METER-8, METER-11, ERR-8
#[both_engines]
async fn a_full_window_stops_everything(engine: Engine) {
    let mut options = generous();
    options.plans.free.rpm = Limit::of(0);
    let server = Server::with(engine, options).await;
    let world = World::new(&server, Plan::Developer).await;
    operations::admin::set_plan(
        &server.app,
        world.tenant.workspace.clone(),
        Plan::Free,
        &testkit::operator(),
    )
    .await
    .unwrap();
    // What the plan does not have is refused before.
    for one in described().iter().filter(|one| one.plans().contains(&"Free")) {
        let answer = call(world.caller(one, &world.tenant.key), one, &world.path(&one.path)).await;
        let seconds: u64 = answer.expect(429, "rate_limited").header("retry-after").parse().unwrap();
        assert!((1..=60).contains(&seconds));
        // Size and type of a body are not looked at before.
        let raw = axum::body::Body::from("no json");
        let caller = world.caller(one, &world.tenant.key);
        let answer =
            caller.send_raw(one.method.clone(), &world.path(&one.path), Some("text/plain"), raw).await;
        answer.expect(429, "rate_limited");
    }
}

/// Every operation of the catalogue has an endpoint, and every endpoint stands in the document.
/// rules: API-2
#[test]
fn catalogue_router_and_document_agree() {
    let mut catalogue: Vec<_> = operations::catalog().iter().map(|operation| operation.id).collect();
    let mut routed: Vec<_> = web::endpoints().iter().map(|endpoint| endpoint.operation.id).collect();
    let mut published: Vec<_> = described().into_iter().map(|one| one.id).collect();
    catalogue.sort_unstable();
    routed.sort_unstable();
    published.sort_unstable();
    assert_eq!(catalogue, routed);
    assert_eq!(routed, published);
    assert!(web::endpoints().iter().all(|endpoint| endpoint.path.starts_with("/api/v1/")));
}

/// rules: METER-10, ERR-7
#[both_engines]
async fn routes_and_methods_come_before_credentials(engine: Engine) {
    let server = Server::start(engine).await;
    server.anonymous().get("/api/v1/no-such-thing").await.expect(404, "not_found");
    let wrong = server.anonymous().delete("/api/v1/mailboxes").await;
    wrong.expect(405, "method_not_allowed");
    assert!(wrong.header("allow").contains("POST"));
}
