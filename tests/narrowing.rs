//! Tables over all operations for keys that are narrowed: which scope each needs, and what is left of the workspace for a
//! key that sees one mailbox. A new operation is in them by itself; one that shows more fails them.

use model::{Plan, Scope};
use serde_json::{Value, json};
use testkit::{Answer, Caller, Engine, Server, both_engines};

use crate::catalog::{Described, World, call, described, generous, nonexistent, snapshot};

/// The scopes of which an operation needs one, by the rule. An operation that changes something and is not one of those
/// that manage needs its line here.
#[expect(clippy::too_many_lines, reason = "a line for each, and nothing else")]
fn scopes_by_rule(one: &Described) -> &'static [Scope] {
    match one.id.as_str() {
        "getIdentity" => &[],
        "createFolder"
        | "renameFolder"
        | "deleteFolder"
        | "createCustomLabel"
        | "updateCustomLabel"
        | "deleteCustomLabel"
        | "reorderCustomLabels"
        | "updateEmail"
        | "deleteEmail"
        | "moveEmail"
        | "bulkReadEmails"
        | "bulkMoveEmails"
        | "bulkDeleteEmails"
        | "emptyTrash"
        | "importEmails"
        | "readThread"
        | "moveThread" => &[Scope::Organize],
        "saveDraft" | "deleteDraft" | "regenerateDraft" => &[Scope::Draft],
        "rescheduleSend" | "cancelScheduledSend" => &[Scope::Draft, Scope::Send],
        "sendEmail" | "replyToEmail" | "forwardEmail" | "sendDraft" | "scheduleSend" | "withdrawReview" => {
            &[Scope::Send]
        }
        "createAgentConversation"
        | "updateAgentConversation"
        | "deleteAgentConversation"
        | "sendAgentMessage"
        | "createTaskTriager"
        | "updateTaskTriager"
        | "deleteTaskTriager"
        | "makeTaskTriagerDefault"
        | "runTaskTriager"
        | "getTriagerAgentConversation"
        | "updateTask"
        | "remember"
        | "forget"
        | "recall"
        | "verifyMemoryCredentials"
        | "addDocument"
        | "deleteDocument"
        | "verifyDocument" => &[Scope::Agent],
        "waitForEmail" => &[Scope::Read],
        // Thresholds are not to be probed.
        "getSendPolicy" | "getMailboxSendPolicy" | "checkSendPolicy" => &[Scope::Manage],
        _ if one.method == http::Method::GET => &[Scope::Read],
        "updateWorkspace"
        | "createMailbox"
        | "updateMailbox"
        | "deleteMailbox"
        | "createEmailDomain"
        | "verifyEmailDomain"
        | "deleteEmailDomain"
        | "createWebhook"
        | "updateWebhook"
        | "deleteWebhook"
        | "rotateWebhookSecret"
        | "testWebhook"
        | "retryWebhookDelivery"
        | "linkTelegram"
        | "unlinkTelegram"
        | "createIntegrationConnection"
        | "updateIntegrationConnection"
        | "deleteIntegrationConnection"
        | "syncIntegrationConnection"
        | "updateMember"
        | "removeMember"
        | "createInvite"
        | "resendInvite"
        | "deleteInvite"
        | "updateAffiliate"
        | "signUpAffiliate"
        | "setSendPolicy"
        | "setMailboxSendPolicy"
        | "deleteMailboxSendPolicy"
        | "approveReview"
        | "rejectReview"
        | "createSuppression"
        | "deleteSuppression"
        | "createApiKey"
        | "updateApiKey"
        | "revokeApiKey" => &[Scope::Manage],
        id => panic!("{id}: which scope does it need?"),
    }
}

/// The document's words for these scopes.
fn in_document(scopes: &[Scope]) -> Value {
    match scopes {
        [] => Value::Null,
        [one] => json!(one.as_str()),
        all => all.iter().map(|scope| json!(scope.as_str())).collect(),
    }
}

/// The operation × scope table: with one scope, a key gets past the gates of exactly the operations that need it.
/// rules: AUTH-30
#[both_engines]
async fn every_operation_needs_its_scope(engine: Engine) {
    let server = Server::with(engine, generous()).await;
    let world = World::new(&server, Plan::Developer).await;
    for scope in Scope::ALL {
        let key = server.narrowed(&world.tenant.workspace, Some(&[scope]), None).await;
        for one in described().iter().filter(|one| !one.is_console_only()) {
            let needed = scopes_by_rule(one);
            assert_eq!(one.operation["x-scope"], in_document(needed), "{}", one.id);
            // Only the gate is meant; what deletes comes last for nothing.
            let has = needed.is_empty() || needed.contains(&scope);
            if has && one.method == http::Method::DELETE {
                continue;
            }
            let answer = call(&key, one, &world.path(&one.path)).await;
            if has {
                // A file or a stream has no code.
                let refused = answer.status == 403 && answer.code() == "scope_required";
                assert!(!refused, "{} with {scope:?}", one.id);
                continue;
            }
            answer.expect(403, "scope_required");
            let body = answer.json();
            assert_eq!(body["error"], "Forbidden");
            for scope in needed {
                let named = format!("`{}`", scope.as_str());
                assert!(body["fix"].as_str().unwrap().contains(&named), "{}: {body}", one.id);
            }
            assert_eq!(answer.header("x-credits-charged"), "0", "{}", one.id);
        }
    }
}

/// Deleting needs its scope like everything else, and finds what is there.
/// rules: AUTH-30
#[both_engines]
async fn a_scope_is_enough_to_delete(engine: Engine) {
    let server = Server::with(engine, generous()).await;
    let world = World::new(&server, Plan::Developer).await;
    let deleting = |one: &Described| one.method == http::Method::DELETE && !one.is_console_only();
    let mut all: Vec<Described> = described().into_iter().filter(deleting).collect();
    // The mailbox goes after all that is in it, the domain and the member before.
    all.sort_by_key(|one| one.id == "deleteMailbox");
    for one in &all {
        let scopes = scopes_by_rule(one);
        let key = server.narrowed(&world.tenant.workspace, Some(scopes), None).await;
        let answer = call(&key, one, &world.path(&one.path)).await;
        let expected = if one.id == "removeMember" { 409 } else { 204 };
        assert!(
            answer.status == expected || answer.status == 200,
            "{}: {} {}",
            one.id,
            answer.status,
            answer.text()
        );
    }
}

/// A role is asked for before a scope, a scope before the number of requests.
/// rules: AUTH-30, METER-11
#[both_engines]
async fn the_scope_comes_between_role_and_requests(engine: Engine) {
    let mut options = generous();
    options.plans.developer.rpm = model::Limit::of(0);
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Developer).await;
    let workspace = format!("/api/v1/workspaces/{}", tenant.workspace);
    let narrowed = model::api_keys::NewApiKey {
        scopes: Some(vec![Scope::Draft]),
        ..model::api_keys::NewApiKey::new("member", model::Role::Member)
    };
    let made =
        operations::admin::create_key(&server.app, tenant.workspace.clone(), narrowed, &testkit::operator())
            .await
            .unwrap();
    let key = server.key(&made.key);
    key.put(&workspace, json!({ "name": "X" })).await.expect(403, "role_required");
    key.get(&workspace).await.expect(403, "scope_required");
    key.get("/api/v1/me").await.expect(429, "rate_limited");
}

/// What a workspace has, and a key that sees another mailbox of it.
struct Excluded {
    server: Server,
    world: World,
    /// Sees only `own`.
    key: Caller,
    own: Value,
    /// All names of the mailbox that the key does not see.
    names: Vec<String>,
}

impl Excluded {
    async fn new(engine: Engine) -> Self {
        let server = Server::with(engine, generous()).await;
        let world = World::new(&server, Plan::Developer).await;
        let hidden = world.tenant.key.get(&world.path("/api/v1/mailboxes/{mailboxId}")).await.ok();
        let own = world.tenant.key.post("/api/v1/mailboxes", json!({ "name": "Own" })).await.ok();
        let id = own["id"].as_str().unwrap();
        let key = server.narrowed(&world.tenant.workspace, None, Some(&[id])).await;
        let names =
            ["id", "public_id", "email"].map(|name| hidden[name].as_str().unwrap().to_owned()).to_vec();
        Self { server, world, key, own, names }
    }

    /// The path of an operation in the world's mailbox by one of its names, or in one of another id.
    fn path(&self, one: &Described, mailbox: &str) -> String {
        let mut ids = self.world.ids.clone();
        ids.iter_mut().filter(|(name, _)| *name == "mailboxId").for_each(|(_, id)| mailbox.clone_into(id));
        World { ids, ..World::empty(&self.world) }.path(&one.path)
    }

    /// Whether an answer says something of the mailbox or of what is in it.
    fn shows_hidden(&self, answer: &Answer) -> bool {
        let inside = [
            "emailId",
            "threadId",
            "draftId",
            "scheduledSendId",
            "attachmentId",
            "conversationId",
            "reviewId",
            "suppressionId",
        ];
        let ids = self.world.ids.iter().filter(|(name, _)| inside.contains(name)).map(|(_, id)| id.as_str());
        let text = answer.text();
        ids.chain(self.names.iter().map(String::as_str)).any(|id| text.contains(id))
    }
}

/// What a workspace has, without what its calls are counted in.
async fn content(server: &Server, world: &World) -> Vec<String> {
    let mut all = snapshot(server, &world.tenant.workspace).await;
    all.retain(|one| !one.starts_with("allowance") && !one.starts_with("usage_day"));
    // The last is what was spent.
    all.pop();
    all
}

fn in_a_mailbox(one: &Described) -> bool {
    one.path.contains("{mailboxId}")
}

/// The operation × mailbox table: an excluded mailbox, one of another workspace and none at all get the same bytes, by all
/// names, and nothing happens to them. One's own is there.
/// rules: AUTH-31, HTTP-5
#[both_engines]
async fn an_excluded_mailbox_is_none(engine: Engine) {
    let excluded = Excluded::new(engine).await;
    let (server, world) = (&excluded.server, &excluded.world);
    let foreign = World::new(server, Plan::Developer).await;
    let none = nonexistent();
    let none = none.iter().find(|(name, _)| *name == "mailboxId").map(|(_, id)| id.as_str()).unwrap();
    assert!(server.app.meter().commit().await);
    let before = content(server, world).await;
    let all: Vec<Described> = described().into_iter().filter(in_a_mailbox).collect();
    for one in &all {
        let invented = call(&excluded.key, one, &excluded.path(one, none)).await;
        invented.expect(404, "not_found");
        assert_eq!(invented.header("x-credits-charged"), "0", "{}", one.id);
        for name in &excluded.names {
            let answer = call(&excluded.key, one, &excluded.path(one, name)).await;
            assert_eq!(
                (answer.status, &answer.bytes),
                (invented.status, &invented.bytes),
                "{} {name}",
                one.id
            );
            assert_eq!(answer.header("x-credits-charged"), "0", "{}", one.id);
        }
        let theirs = call(&excluded.key, one, &foreign.path(&one.path)).await;
        assert_eq!((theirs.status, &theirs.bytes), (invented.status, &invented.bytes), "{}", one.id);
    }
    assert_eq!(content(server, world).await, before);
    for one in all.iter().filter(|one| one.id != "deleteMailbox" && one.path.matches('{').count() == 1) {
        let own = excluded.own["email"].as_str().unwrap();
        let answer = call(&excluded.key, one, &excluded.path(one, own)).await;
        assert!(!answer.text().contains("Mailbox not found"), "{}: {}", one.id, answer.text());
        assert_ne!(answer.status, 403, "{}: {}", one.id, answer.text());
    }
}

/// The operations across mailboxes that leave out those of others; each has a test of its own beside this one.
const VISIBLE: [&str; 28] = [
    "approveReview",
    "createSuppression",
    "createWebhook",
    "deleteSuppression",
    "deleteWebhook",
    "getCreditUsage",
    "getEmailUsage",
    "getIdentity",
    "getReview",
    "getWebhook",
    "getWorkspace",
    "getWorkspaceStorage",
    "listEvents",
    "listMailboxes",
    "listReviews",
    "listSuppressions",
    "listWebhookDeliveries",
    "listWebhooks",
    "listWorkspaceMailboxes",
    "listWorkspaces",
    "recall",
    "rejectReview",
    "retryWebhookDelivery",
    "rotateWebhookSecret",
    "streamEvents",
    "testWebhook",
    "updateWebhook",
    "withdrawReview",
];

/// Outside of mailboxes there is only what leaves out others: what concerns the whole workspace is refused. Whatever is
/// answered has no word of the excluded mailbox.
/// rules: AUTH-31, AUTH-32
#[both_engines]
async fn nothing_tells_of_an_excluded_mailbox(engine: Engine) {
    let excluded = Excluded::new(engine).await;
    let world = &excluded.world;
    for one in described().iter().filter(|one| !one.is_console_only()) {
        let reach = one.operation["x-reach"].as_str().unwrap();
        assert_eq!(reach == "mailbox", in_a_mailbox(one), "{}: say which mailboxes it concerns", one.id);
        if reach == "mailbox" || one.id == "streamEvents" {
            continue;
        }
        let answer = call(&excluded.key, one, &world.path(&one.path)).await;
        if reach == "workspace" {
            answer.expect(403, "scope_required");
            assert!(answer.json()["fix"].as_str().unwrap().contains("whole workspace"), "{}", answer.text());
            continue;
        }
        assert!(VISIBLE.contains(&one.id.as_str()), "{}: test what it leaves out", one.id);
        assert!(!excluded.shows_hidden(&answer), "{}: {}", one.id, answer.text());
        if one.id == "createSuppression" {
            // It would stop the messages of all mailboxes.
            assert_eq!((answer.status, &answer.json()["details"][0]["path"]), (400, &json!("mailbox_id")));
            continue;
        }
        let parameters = ["{webhookId}", "{reviewId}", "{suppressionId}"];
        if parameters.iter().any(|name| one.path.contains(name)) {
            // The world's webhook gets events of all mailboxes; its review and suppression are of the excluded one.
            let nothing = World { ids: nonexistent(), ..World::empty(world) };
            let path = nothing
                .path(&one.path)
                .replace(nothing.path("{workspaceId}").as_str(), world.tenant.workspace.as_str());
            let invented = call(&excluded.key, one, &path).await;
            assert_eq!((answer.status, &answer.bytes), (404, &invented.bytes), "{}", one.id);
        } else {
            assert!(answer.status < 300, "{}: {}", one.id, answer.text());
        }
    }
}

/// A stored answer is given to nobody who would not get it now.
/// rules: AUTH-34, IDEM-1, IDEM-4
#[both_engines]
async fn no_answer_is_repeated_to_a_key_that_sees_less(engine: Engine) {
    let excluded = Excluded::new(engine).await;
    let world = &excluded.world;
    let reader = excluded.server.narrowed(&world.tenant.workspace, Some(&[Scope::Read]), None).await;
    let own = excluded.own["id"].as_str().unwrap();
    let ids = ["createFolder", "saveDraft", "sendEmail", "createWebhook", "recall", "createCustomLabel"];
    for one in described().iter().filter(|one| ids.contains(&one.id.as_str())) {
        let with = |caller: &Caller| caller.with("idempotency-key", &one.id);
        let path = world.path(&one.path);
        let first = call(&with(&world.tenant.key), one, &path).await;
        assert!(first.status < 300, "{}: {}", one.id, first.text());
        let again = call(&with(&world.tenant.key), one, &path).await;
        assert_eq!((again.header("idempotent-replayed"), &again.bytes), ("true", &first.bytes), "{}", one.id);

        call(&with(&reader), one, &path).await.expect(403, "scope_required");
        let refused = call(&with(&excluded.key), one, &path).await;
        refused.expect(422, "idempotency_key_reused");
        if in_a_mailbox(one) {
            // As for a mailbox that does not exist, with a key that was used.
            let none = nonexistent().into_iter().find(|(name, _)| *name == "mailboxId").unwrap().1;
            let invented = call(&with(&excluded.key), one, &excluded.path(one, &none)).await;
            assert_eq!((refused.status, &refused.bytes), (invented.status, &invented.bytes), "{}", one.id);

            // In a mailbox that both see, the one's answer is the other's.
            let shared = |caller: &Caller| caller.with("idempotency-key", &format!("{} own", one.id));
            let path = excluded.path(one, own);
            let first = call(&shared(&world.tenant.key), one, &path).await;
            let again = call(&shared(&excluded.key), one, &path).await;
            assert_eq!(
                (again.header("idempotent-replayed"), &again.bytes),
                ("true", &first.bytes),
                "{}",
                one.id
            );
        }
    }
}
