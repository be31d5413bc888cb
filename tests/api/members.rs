//! Members of a workspace.

use http::Method;
use model::{Limit, Plan, Role};
use serde_json::{Value, json};
use testkit::{Engine, Server, ServerOptions, Tenant, both_engines};

use super::people::{Person, at, join, sign_up};

async fn start(engine: Engine) -> (Server, Tenant) {
    let mut options = ServerOptions::default();
    for limits in [&mut options.plans.free, &mut options.plans.developer] {
        limits.members = Limit::UNLIMITED;
        limits.api_keys = Limit::UNLIMITED;
    }
    let server = Server::with(engine, options).await;
    let tenant = server.tenant(Plan::Developer).await;
    (server, tenant)
}

fn of(tenant: &Tenant, person: &Person) -> String {
    at(tenant, &format!("/members/{}", person.id))
}

/// rules: WS-10
#[both_engines]
async fn the_list_tells_who_belongs_here(engine: Engine) {
    let (server, tenant) = start(engine).await;
    server.tenant(Plan::Free).await;
    server.clock.advance(90);
    let bob = join(&server, &tenant, "Bob@People.test", "member").await;
    let members = tenant.key.get(&at(&tenant, "/members")).await.ok();
    let expected = json!([
        {
            "id": tenant.account.as_str(),
            "email": tenant.email,
            "name": tenant.email.split('@').next().unwrap(),
            "role": "admin",
            "address": tenant.owner_address,
            "joined_at": "2026-07-14T09:00:00.000Z",
        },
        {
            "id": bob.id,
            "email": "bob@people.test",
            "name": bob.me["account"]["name"],
            "role": "member",
            "address": bob.me["account"]["address"],
            "joined_at": "2026-07-14T09:01:30.000Z",
        },
    ]);
    assert_eq!(members, expected);
    // A member may look, too.
    assert_eq!(bob.caller.get(&at(&tenant, "/members")).await.ok(), expected);
}

/// rules: WS-10, AUTH-8, AUTH-10, AUTH-18
#[both_engines]
async fn an_admin_changes_roles_and_removes_members(engine: Engine) {
    let (server, tenant) = start(engine).await;
    server.clock.advance(1);
    let bob = join(&server, &tenant, "bob@people.test", "member").await;
    let invites = at(&tenant, "/invites");
    bob.caller.get(&invites).await.expect(403, "role_required");
    let changed = tenant.key.put(&of(&tenant, &bob), json!({ "role": "admin" })).await.ok();
    let listed = tenant.key.get(&at(&tenant, "/members")).await.ok();
    assert_eq!((&changed["role"], &changed), (&json!("admin"), &listed[1]));
    // On the node that made it a change shows at once.
    bob.caller.get(&invites).await.ok();
    tenant.key.put(&of(&tenant, &bob), json!({ "role": "member" })).await.ok();
    bob.caller.get(&invites).await.expect(403, "role_required");

    let removed = tenant.key.delete(&of(&tenant, &bob)).await;
    assert_eq!((removed.status, removed.bytes.len()), (204, 0));
    bob.caller.get(&at(&tenant, "/members")).await.expect(403, "workspace_scope_denied");
    assert_eq!(tenant.key.get(&at(&tenant, "/members")).await.ok().as_array().unwrap().len(), 1);
    // The account itself lives on, in its own workspace.
    let me = bob.caller.get("/api/console/me").await.ok();
    assert_eq!(me["workspaces"].as_array().unwrap().len(), 1);
    assert_eq!(me["workspace_id"], me["workspaces"][0]["id"]);
    bob.caller.get("/api/v1/mailboxes").await.ok();
    tenant.key.delete(&of(&tenant, &bob)).await.expect(404, "not_found");
}

/// rules: WS-10, AUTH-8
#[both_engines]
async fn members_cannot_manage_members(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let bob = join(&server, &tenant, "bob@people.test", "member").await;
    let key = server.key(&server.new_key(&tenant.workspace, Role::Member).await.key);
    let before = tenant.key.get(&at(&tenant, "/members")).await.bytes;
    let own = of(&tenant, &bob);
    let owner = at(&tenant, &format!("/members/{}", tenant.account));
    for caller in [&bob.caller, &key] {
        for path in [&own, &owner] {
            caller.put(path, json!({ "role": "admin" })).await.expect(403, "role_required");
            caller.delete(path).await.expect(403, "role_required");
        }
    }
    assert_eq!(tenant.key.get(&at(&tenant, "/members")).await.bytes, before);
}

/// rules: WS-10, HTTP-5, ERR-3, ERR-6
#[both_engines]
async fn other_peoples_members_do_not_exist_here(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let stranger = sign_up(&server, "stranger@people.test").await;
    for (method, body) in [(Method::PUT, Some(json!({ "role": "admin" }))), (Method::DELETE, None)] {
        let invented = tenant.key.send(method.clone(), &at(&tenant, "/members/acc_none"), body.clone()).await;
        assert_eq!(invented.expect(404, "not_found").json()["error"], "Member not found");
        for id in [stranger.id.as_str(), "%00", "%F0%9F%91%BB", "a%2Fb", tenant.workspace.as_str()] {
            let answer =
                tenant.key.send(method.clone(), &at(&tenant, &format!("/members/{id}")), body.clone()).await;
            assert_eq!((answer.status, &answer.bytes), (404, &invented.bytes), "{id}");
        }
    }
    let me = at(&tenant, &format!("/members/{}", tenant.account));
    for (body, field) in [
        (json!({}), "role"),
        (json!({ "role": "owner" }), "role"),
        (json!({ "role": "Admin" }), "role"),
        (json!({ "role": null }), "role"),
        (json!({ "role": "admin", "email": "x@y.test" }), "email"),
    ] {
        let answer = tenant.key.put(&me, body.clone()).await;
        assert_eq!(answer.expect(400, "validation_failed").json()["details"][0]["path"], field, "{body}");
    }
}

/// rules: WS-11
#[both_engines]
async fn the_last_admin_stays(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let owner = at(&tenant, &format!("/members/{}", tenant.account));
    let bob = join(&server, &tenant, "bob@people.test", "member").await;
    for answer in [tenant.key.put(&owner, json!({ "role": "member" })).await, tenant.key.delete(&owner).await]
    {
        let expected = json!({ "error": "A workspace needs at least one admin.", "code": "last_admin" });
        assert_eq!((answer.status, answer.json()), (409, expected));
    }
    // What changes nothing is allowed, and with a second admin the first may go.
    tenant.key.put(&owner, json!({ "role": "admin" })).await.ok();
    tenant.key.put(&of(&tenant, &bob), json!({ "role": "admin" })).await.ok();
    assert_eq!(tenant.key.put(&owner, json!({ "role": "member" })).await.status, 200);
    tenant.key.delete(&of(&tenant, &bob)).await.expect(409, "last_admin");
    assert_eq!(bob.caller.delete(&owner).await.status, 204);
    bob.caller.put(&of(&tenant, &bob), json!({ "role": "member" })).await.expect(409, "last_admin");
    // The owner's address stays with the workspace.
    let workspace = bob.caller.get(&at(&tenant, "")).await.ok();
    assert_eq!(workspace["owner_address"], tenant.owner_address);
}

/// Two admins go after each other, many times over: one of them is left each time.
/// rules: WS-11
#[both_engines(flavor = "multi_thread", worker_threads = 2)]
async fn two_calls_at_once_leave_an_admin(engine: Engine) {
    let (server, tenant) = start(engine).await;
    let bob = join(&server, &tenant, "bob@people.test", "admin").await;
    let second = match engine {
        Engine::Sqlite => None,
        Engine::Postgres => {
            Some(server.another_node(ServerOptions { seed: 2, ..ServerOptions::default() }).await)
        }
    };
    let (owner, other) = (at(&tenant, &format!("/members/{}", tenant.account)), of(&tenant, &bob));
    for round in 0..30 {
        let near = tenant.key.clone();
        let far = second.as_ref().map_or(near.clone(), |node| node.key(near.secret()));
        let (removes, one, two) = (round % 3 == 0, owner.clone(), other.clone());
        let demote = |caller: testkit::Caller, path: String| async move {
            caller.put(&path, json!({ "role": "member" })).await
        };
        let first = tokio::spawn(demote(near, one));
        let last = if removes {
            tokio::spawn(async move { far.delete(&two).await })
        } else {
            tokio::spawn(demote(far, two))
        };
        let answers = [first.await.unwrap(), last.await.unwrap()];
        let refused: Vec<_> = answers.iter().filter(|answer| answer.status == 409).collect();
        assert_eq!(refused.len(), 1, "{:?}", answers.map(|answer| answer.status));
        refused[0].expect(409, "last_admin");
        let members = tenant.key.get(&at(&tenant, "/members")).await.ok();
        let admins: Vec<&Value> =
            members.as_array().unwrap().iter().filter(|member| member["role"] == "admin").collect();
        assert_eq!(admins.len(), 1);
        restore(&server, &tenant, &bob).await;
    }
}

/// Makes both people admins again, whatever became of them.
async fn restore(server: &Server, tenant: &Tenant, bob: &Person) {
    let (owner, bob) = (tenant.account.clone(), model::AccountId::from(bob.id.as_str()));
    let now = server.clock.now();
    let write = server.app.db().write(&tenant.workspace, async move |tx| {
        for account in [&owner, &bob] {
            store::members::insert(tx, account, Role::Admin, now).await?;
            store::members::set_role(tx, account, Role::Admin).await?;
        }
        Ok::<_, store::Error>(())
    });
    write.await.unwrap();
}
