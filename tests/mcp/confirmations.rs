//! Destructive tools: nothing happens before it is confirmed.

use model::Plan;
use serde_json::{Value, json};
use testkit::{Engine, ServerOptions, both_engines};

use super::Desk;

fn with(arguments: &Value, name: &str, value: impl Into<Value>) -> Value {
    let mut arguments = arguments.clone();
    arguments[name] = value.into();
    arguments
}

/// rules: MCP-5
#[both_engines]
async fn a_token_works_once_for_exactly_the_same_call(engine: Engine) {
    let desk = Desk::new(engine).await;
    let (one, two) = (desk.receive("One", "1").await, desk.receive("Two", "2").await);
    let about = json!({ "mailboxId": desk.address, "emailId": one, "permanent": true });
    let exists = async |id: &str| {
        desk.tenant.key.get(&format!("/api/v1/mailboxes/{}/emails/{id}", desk.address)).await.status == 200
    };
    let before = desk.used().await;
    let proposed = desk.agent.call("delete_email", about.clone()).await;
    assert_eq!(
        (&proposed["isError"], &proposed["_meta"]["agent-mailbox/credits"]["charged"]),
        (&json!(false), &json!(0))
    );
    assert!(proposed["_meta"]["agent-mailbox/rate"]["remaining"].is_i64());
    assert_eq!(desk.used().await - before - 1, 0, "a proposal costs nothing");
    let told = &proposed["structuredContent"];
    assert_eq!(
        (&told["status"], &told["done"], &told["arguments"]),
        (&json!("confirmation_required"), &json!(false), &about)
    );
    assert_eq!(told["expires_at"], "2026-07-14T09:05:00.000Z");
    let token = told["confirmationToken"].as_str().unwrap();
    assert!(exists(&one).await);

    // For another mail, another tool, with another argument, or made up, it does nothing.
    for (tool, arguments) in [
        ("delete_email", with(&about, "emailId", two.clone())),
        ("delete_email", with(&about, "permanent", false)),
        ("empty_trash", json!({ "mailboxId": desk.address })),
    ] {
        let refused = desk.agent.refused(tool, with(&arguments, "confirmationToken", token)).await;
        assert_eq!(refused["code"], "confirmation_invalid", "{tool}");
    }
    let made_up = with(&about, "confirmationToken", "cnf_0000");
    assert_eq!(desk.agent.refused("delete_email", made_up).await["code"], "confirmation_invalid");
    assert!(exists(&one).await && exists(&two).await);

    let reordered =
        json!({ "confirmationToken": token, "permanent": true, "emailId": one, "mailboxId": desk.address });
    let before = desk.used().await;
    assert_eq!(desk.agent.ok("delete_email", reordered.clone()).await["status"], "deleted");
    assert_eq!(desk.used().await - before - 1, 2);
    assert!(!exists(&one).await);
    assert_eq!(desk.agent.refused("delete_email", reordered).await["code"], "confirmation_invalid");
}

/// rules: MCP-5
#[both_engines]
async fn a_token_ends_after_five_minutes_and_belongs_to_its_key(engine: Engine) {
    let desk = Desk::new(engine).await;
    let about = json!({ "mailboxId": desk.address });
    let token = async || desk.agent.ok("delete_mailbox", about.clone()).await["confirmationToken"].clone();
    let late = with(&about, "confirmationToken", token().await);
    desk.server.clock.advance(300);
    assert_eq!(desk.agent.refused("delete_mailbox", late).await["code"], "confirmation_invalid");
    let mine = with(&about, "confirmationToken", token().await);
    let colleague = desk.server.new_key(&desk.tenant.workspace, model::Role::Admin).await;
    let stranger = desk.server.tenant(Plan::Free).await;
    for other in [desk.server.key(&colleague.key), stranger.key.clone()] {
        assert_eq!(other.mcp().refused("delete_mailbox", mine.clone()).await["code"], "confirmation_invalid");
    }
    desk.server.clock.advance(299);
    assert_eq!(desk.agent.ok("delete_mailbox", mine).await, json!({ "ok": true }));
    // Upkeep leaves nothing behind.
    desk.server.clock.advance(300);
    operations::maintenance::run(&desk.server.app).await.unwrap();
    let count = desk
        .server
        .app
        .db()
        .system_read(async |tx| tx.one::<(i64,)>("SELECT count(*) FROM confirmation", &[]).await);
    assert_eq!(count.await.unwrap().unwrap().0, 0);
}

/// However many nodes and callers there are, one of them gets through.
/// rules: MCP-5
#[both_engines]
async fn a_token_is_used_once_among_nodes(engine: Engine) {
    let desk = Desk::new(engine).await;
    desk.receive("One", "1").await;
    // A file of SQLite is one node's, with all credits of a workspace.
    let second = match engine {
        Engine::Postgres => {
            Some(desk.server.another_node(ServerOptions { seed: 2, ..ServerOptions::default() }).await)
        }
        Engine::Sqlite => None,
    };
    let about = json!({ "mailboxId": desk.address });
    let told = desk.agent.ok("empty_trash", about.clone()).await;
    let confirmed = with(&about, "confirmationToken", told["confirmationToken"].clone());
    let other = second.as_ref().unwrap_or(&desk.server).key(desk.tenant.key.secret()).mcp();
    let nodes = [desk.agent.clone(), other];
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..10 {
        let (agent, confirmed) = (nodes[number % 2].clone(), confirmed.clone());
        calls.spawn(async move { agent.call("empty_trash", confirmed).await["isError"] == false });
    }
    assert_eq!(calls.join_all().await.into_iter().filter(|done| *done).count(), 1);
}

/// A caller who lost the answer asks again with the same idempotency key.
/// rules: MCP-2, MCP-5
#[both_engines]
async fn a_confirmed_call_can_be_repeated_with_its_key(engine: Engine) {
    let desk = Desk::new(engine).await;
    let email = desk.receive("One", "1").await;
    let about = json!({ "mailboxId": desk.address, "ids": [email], "permanent": true });
    let told = desk.agent.ok("bulk_delete_emails", about.clone()).await;
    let confirmed = with(&about, "confirmationToken", told["confirmationToken"].clone());
    let keyed = with(&confirmed, "idempotencyKey", "k");
    let first = desk.agent.ok("bulk_delete_emails", keyed.clone()).await;
    assert_eq!(first["deletedCount"], 1);
    let again = desk.agent.call("bulk_delete_emails", keyed).await;
    assert_eq!(
        (&again["structuredContent"], &again["_meta"]["agent-mailbox/replayed"]),
        (&first, &json!(true))
    );
    for other in [confirmed.clone(), with(&confirmed, "idempotencyKey", "other")] {
        assert_eq!(desk.agent.refused("bulk_delete_emails", other).await["code"], "confirmation_invalid");
    }
}

/// The gates come before the token: whoever may not delete is told so at once.
/// rules: MCP-5, MCP-7
#[both_engines]
async fn no_token_for_those_who_may_not(engine: Engine) {
    let desk = Desk::new(engine).await;
    let member = desk.server.new_key(&desk.tenant.workspace, model::Role::Member).await;
    let member = desk.server.key(&member.key).mcp();
    let about = json!({ "mailboxId": desk.address });
    assert_eq!(member.refused("delete_mailbox", about).await["code"], "role_required");
    let other = desk.server.tenant(Plan::Developer).await;
    let about = json!({ "workspaceId": other.workspace, "memberId": "acc_1" });
    assert_eq!(desk.agent.refused("remove_member", about).await["code"], "workspace_scope_denied");
}
