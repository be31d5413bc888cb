//! People for the tests: those who sign up, those who are invited, and the store as an operator sees it.

use model::WorkspaceId;
use serde_json::{Value, json};
use testkit::{Answer, Caller, PASSWORD, Server, Tenant};

/// A path inside a tenant's workspace.
pub(super) fn at(tenant: &Tenant, rest: &str) -> String {
    format!("/api/v1/workspaces/{}{rest}", tenant.workspace)
}

/// Somebody with a session.
pub(super) struct Person {
    pub(super) caller: Caller,
    /// The account's id.
    pub(super) id: String,
    /// What the answer said about them.
    pub(super) me: Value,
}

impl Person {
    pub(super) fn of(server: &Server, answer: &Answer) -> Self {
        let me = answer.ok();
        let id = me["account"]["id"].as_str().unwrap().to_owned();
        Self { caller: server.cookie(&answer.session_secret()), id, me }
    }
}

/// Signs somebody up.
pub(super) async fn sign_up(server: &Server, email: &str) -> Person {
    let body = json!({ "email": email, "password": PASSWORD });
    Person::of(server, &server.anonymous().post("/api/console/sign-up", body).await)
}

/// The secret part of an invitation's link.
pub(super) fn token(invite: &Value) -> String {
    invite["link"].as_str().unwrap().split_once('#').unwrap().1.to_owned()
}

/// Follows an invitation's link without an account.
pub(super) async fn accept(server: &Server, token: &str) -> Answer {
    let body = json!({ "token": token, "password": PASSWORD });
    server.anonymous().post("/api/console/invites/accept", body).await
}

/// Invites an address into a workspace and follows the link.
pub(super) async fn join(server: &Server, tenant: &Tenant, email: &str, role: &str) -> Person {
    let body = json!({ "email": email, "role": role });
    let invite = tenant.key.post(&at(tenant, "/invites"), body).await.ok();
    Person::of(server, &accept(server, &token(&invite)).await)
}

/// Breaks the wrapped data key of a workspace in the store.
pub(super) async fn break_data_key(server: &Server, workspace: &WorkspaceId) {
    let sql = "UPDATE workspace SET data_key = $2 WHERE id = $1";
    let write = server.app.db().write(workspace, async move |tx| {
        let broken: &[u8] = b"not a key";
        tx.run(sql, &[broken.into()]).await
    });
    assert_eq!(write.await.unwrap(), 1);
}

/// Puts a file where the folder of the blobs was, which no user id can write through.
pub(super) fn break_blobs(server: &Server) {
    let folder = server.folder().join("blobs");
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "in the way").unwrap();
}

/// Puts the folder of the blobs back.
pub(super) fn mend_blobs(server: &Server) {
    let folder = server.folder().join("blobs");
    std::fs::remove_file(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
}
