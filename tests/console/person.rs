//! Somebody with a browser: a session, forms that come from our own pages, and a mailbox to look at.

use axum::body::Body;
use http::Method;
use model::{EmailId, Plan};
use serde_json::json;
use testkit::{Answer, Caller, Server, Tenant};

/// Somebody with a session in a workspace.
pub(super) struct Person {
    pub(super) caller: Caller,
    pub(super) tenant: Tenant,
}

/// A mailbox: its id and its address.
pub(super) struct Mailbox {
    pub(super) id: String,
    pub(super) address: String,
}

impl Person {
    /// An admin of a new workspace.
    pub(super) async fn admin(server: &Server) -> Self {
        let tenant = server.tenant(Plan::Enterprise).await;
        Self { caller: server.log_in(&tenant).await, tenant }
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.caller.get(path).await
    }

    /// A page that is there, as text.
    #[track_caller]
    pub(super) fn page(&self, path: &str) -> impl Future<Output = String> {
        let (place, path) = (std::panic::Location::caller(), path.to_owned());
        async move {
            let answer = self.get(&path).await;
            assert_eq!(answer.status, 200, "{place}: {path}: {}", answer.text());
            answer.text()
        }
    }

    /// Sends a form as a browser does.
    pub(super) async fn form(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        form(&self.caller, path, fields).await
    }

    /// The same from a page that is open: only a part comes back.
    pub(super) async fn partial(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        form(&self.caller.with("hx-request", "true"), path, fields).await
    }

    pub(super) async fn mailbox(&self, name: &str) -> Mailbox {
        let made = self.tenant.key.post("/api/v1/mailboxes", json!({ "name": name })).await.ok();
        Mailbox {
            id: made["id"].as_str().unwrap().to_owned(),
            address: made["email"].as_str().unwrap().to_owned(),
        }
    }
}

impl Mailbox {
    /// A path inside the mailbox.
    pub(super) fn at(&self, rest: &str) -> String {
        format!("/console/m/{}/{rest}", self.id)
    }

    /// A path of one of its emails.
    pub(super) fn email(&self, id: &EmailId, rest: &str) -> String {
        self.at(&format!("e/{id}/{rest}"))
    }
}

/// Sends a form with exactly the headers of the caller.
pub(super) async fn form(caller: &Caller, path: &str, fields: &[(&str, &str)]) -> Answer {
    let pairs: Vec<String> =
        fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    let kind = Some("application/x-www-form-urlencoded");
    caller.send_raw(Method::POST, path, kind, Body::from(pairs.join("&"))).await
}

fn encoded(text: &str) -> String {
    let encode = |byte: u8| {
        if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(encode).collect()
}

/// All cookies that an answer sets.
pub(super) fn cookies(answer: &Answer) -> Vec<String> {
    answer.headers.get_all("set-cookie").iter().map(|one| one.to_str().unwrap().to_owned()).collect()
}
