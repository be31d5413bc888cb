//! Messages for tests, and a mailbox to bring them to.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Method;
use model::{EmailId, MailboxId, Plan, WorkspaceId};
use serde_json::{Value, json};
use testkit::{Answer, Caller, Server, Tenant};

use super::help::{encoded, new_mailbox, path_of};

/// A mailbox with somebody who may do everything in it.
pub(super) struct Inbox {
    pub(super) key: Caller,
    pub(super) workspace: WorkspaceId,
    pub(super) id: MailboxId,
    pub(super) path: String,
    pub(super) address: String,
}

impl Inbox {
    /// A mailbox in a workspace of its own.
    pub(super) async fn new(server: &Server) -> Self {
        Self::of(&server.tenant(Plan::Enterprise).await).await
    }

    /// A further mailbox of a workspace.
    pub(super) async fn of(tenant: &Tenant) -> Self {
        Self::made(&tenant.key, &tenant.workspace, &new_mailbox(&tenant.key, "Inbox").await)
    }

    /// A further mailbox of the same workspace.
    pub(super) async fn another(&self) -> Self {
        Self::made(&self.key, &self.workspace, &new_mailbox(&self.key, "Other").await)
    }

    /// A mailbox that was made already.
    pub(super) fn made(key: &Caller, workspace: &WorkspaceId, mailbox: &Value) -> Self {
        Self {
            key: key.clone(),
            workspace: workspace.clone(),
            id: mailbox["id"].as_str().unwrap().into(),
            path: path_of(mailbox),
            address: mailbox["email"].as_str().unwrap().to_owned(),
        }
    }

    /// Reads something in the mailbox, whatever the answer is.
    pub(super) async fn try_get(&self, rest: &str) -> Answer {
        self.key.get(&format!("{}/{rest}", self.path)).await
    }
    /// Reads something in the mailbox.
    #[track_caller]
    pub(super) fn get(&self, rest: &str) -> impl Future<Output = Value> {
        let (place, rest) = (std::panic::Location::caller(), rest.to_owned());
        async move {
            let answer = self.try_get(&rest).await;
            assert_eq!(answer.status, 200, "{place}: {rest}: {}", answer.text());
            answer.json()
        }
    }
    /// Posts something in the mailbox.
    pub(super) async fn post(&self, rest: &str, body: Value) -> Answer {
        self.key.post(&format!("{}/{rest}", self.path), body).await
    }
    /// Puts something in the mailbox.
    pub(super) async fn put(&self, rest: &str, body: Value) -> Answer {
        self.key.put(&format!("{}/{rest}", self.path), body).await
    }
    /// Deletes something in the mailbox.
    pub(super) async fn delete(&self, rest: &str) -> Answer {
        self.key.delete(&format!("{}/{rest}", self.path)).await
    }
    /// Imports bytes of a media type.
    pub(super) async fn import(&self, kind: &str, bytes: impl Into<Vec<u8>>) -> Answer {
        let path = format!("{}/emails/import", self.path);
        self.key.send_raw(Method::POST, &path, Some(kind), bytes.into().into()).await
    }
    /// The subjects that a search finds, in its order.
    pub(super) async fn search(&self, query: &str) -> Vec<String> {
        texts(&self.get(&format!("search?limit=100&query={}", encoded(query))).await["emails"], "subject")
    }

    /// Holds a mail for some seconds from now on.
    pub(super) async fn hold(&self, server: &Server, id: &EmailId, seconds: i64) {
        let (mailbox, id) = (self.id.clone(), id.clone());
        let until = server.clock.now().plus_seconds(seconds);
        let sql = "UPDATE email SET held_until = $4 WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3";
        let write = server.app.db().write(&self.workspace, async move |tx| {
            tx.run(sql, &[(&mailbox).into(), (&id).into(), until.into()]).await
        });
        assert_eq!(write.await.unwrap(), 1);
    }

    /// Makes a mail look as if no scanner had seen it yet, or as if one had.
    pub(super) async fn set_scan(&self, server: &Server, id: &EmailId, status: Option<&'static str>) {
        let (mailbox, id) = (self.id.clone(), id.clone());
        let sql = "UPDATE email SET scan_status = $4 WHERE workspace_id = $1 AND mailbox_id = $2 AND id = $3";
        let write = server.app.db().write(&self.workspace, async move |tx| {
            tx.run(sql, &[(&mailbox).into(), (&id).into(), status.into()]).await
        });
        assert_eq!(write.await.unwrap(), 1);
    }
}

/// One field of each thing in a list.
pub(super) fn texts(list: &Value, field: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap().to_owned()).collect()
}

/// A message of the given header lines, with a sender and a Message-ID made from the subject.
pub(super) fn message(subject: &str, headers: &str, body: &str) -> String {
    let id: String = subject.chars().filter(char::is_ascii_alphanumeric).collect();
    let headers = headers.lines().map(|line| format!("{line}\r\n")).collect::<Vec<_>>().concat();
    let from = if headers.contains("From: ") { "" } else { "From: Ann <ann@remote.test>\r\n" };
    format!(
        "{from}To: Me <me@agents.test>\r\nSubject: {subject}\r\nMessage-ID: <{id}@remote.test>\r\n{headers}\r\n{body}"
    )
}

/// A plain message.
pub(super) fn plain(subject: &str, text: &str) -> String {
    message(subject, "", &format!("{text}\r\n"))
}

/// A plain message of a certain day in July 2026.
pub(super) fn dated(subject: &str, text: &str, day: usize) -> String {
    message(subject, &format!("Date: {day} Jul 2026 10:00:00 +0000"), &format!("{text}\r\n"))
}

/// An HTML message.
pub(super) fn html(subject: &str, html: &str) -> String {
    message(subject, "MIME-Version: 1.0\nContent-Type: text/html; charset=utf-8", html)
}

/// A message with a text and a file.
pub(super) fn with_file(subject: &str, name: &str, kind: &str, bytes: &[u8]) -> String {
    let headers = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=cut";
    let file = STANDARD.encode(bytes);
    let lines: Vec<&str> = (0..file.len()).step_by(76).map(|at| &file[at..file.len().min(at + 76)]).collect();
    let body = format!(
        "--cut\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nSee the file.\r\n--cut\r\nContent-Type: {kind}\r\n\
         Content-Transfer-Encoding: base64\r\nContent-Disposition: attachment; filename=\"{name}\"\r\n\r\n{}\r\n--cut--\r\n",
        lines.join("\r\n")
    );
    message(subject, headers, &body)
}

/// A message that every scanner flags, put together here so that this source is none.
pub(super) fn flagged(subject: &str) -> String {
    let virus = [r"X5O!P%@AP[4\PZX54(P^)7CC)7}$", "EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"].concat();
    with_file(subject, "invoice.txt", "text/plain", virus.as_bytes())
}

/// A message that parsers read differently, so that no scanner can judge it.
pub(super) fn skipped(subject: &str) -> String {
    message(subject, "From: a@remote.test\nFrom: b@remote.test", "Which of us?\r\n")
}

/// A label of a mailbox.
pub(super) async fn new_label(inbox: &Inbox, name: &str, rules: &str) -> Value {
    inbox.post("custom-labels", json!({ "name": name, "rules": rules })).await.ok()
}
