//! The audit log: who changed what in a workspace, when and from where.

use std::{fmt, str::FromStr};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AccountId, ApiKeyId, AuditEntryId, MailboxId, Timestamp, emails::named};

/// The longest value that is recorded, in bytes of JSON.
const MAX_VALUE_BYTES: usize = 500;

named! {
    /// A kind of actor.
    ActorKind {
        /// A program with an API key.
        Key "key",
        /// A person in the console.
        Person "person",
        /// A wallet of the keyless API.
        Wallet "wallet",
        /// A chat that is linked to a mailbox.
        Chat "chat",
        /// The operator of the server, on its command line.
        Operator "operator",
        /// The service itself.
        Service "service",
    }
}

/// The id of the operator on the command line, who has no account.
pub const OPERATOR: &str = "operator";
/// The id of the service itself.
pub const SERVICE: &str = "service";
/// What the id of a chat begins with.
pub const CHAT_PREFIX: &str = "telegram ";

/// Who made a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AuditActor {
    /// What it is.
    pub kind: ActorKind,
    /// Its id: of the API key, the account, the wallet or the chat; `operator` or `service`.
    pub id: String,
    /// Its name at that time: of the key, the email address of the account, or the operator's user on the server.
    pub name: Option<String>,
}

impl AuditActor {
    /// The actor of an id. Each kind has ids of its own form.
    pub fn new(id: String, name: Option<String>) -> Self {
        let kind = if ApiKeyId::looks_like(&id) {
            ActorKind::Key
        } else if AccountId::looks_like(&id) {
            ActorKind::Person
        } else if id.starts_with(CHAT_PREFIX) {
            ActorKind::Chat
        } else if id == OPERATOR {
            ActorKind::Operator
        } else if id.starts_with("0x") {
            ActorKind::Wallet
        } else {
            ActorKind::Service
        };
        Self { kind, id, name }
    }
}

/// What a change is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AuditResource {
    /// What it is, such as `api_key`, `webhook` or `email`.
    pub kind: String,
    /// Its id.
    pub id: String,
}

/// A changed field. Both values are null if they are hidden.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditChange {
    /// The field; one in an object is named with dots, such as `settings.forwarding.email`.
    pub field: String,
    /// The value before; null if there was none.
    pub from: Value,
    /// The value after; null if there is none.
    pub to: Value,
    /// Whether the field changed but its values are not recorded: it is a secret, or too long.
    pub hidden: bool,
}

impl AuditChange {
    /// A field whose values are not recorded.
    pub fn hidden(field: impl Into<String>) -> Self {
        Self { field: field.into(), from: Value::Null, to: Value::Null, hidden: true }
    }

    fn visible(field: &str, from: &Value, to: &Value) -> Self {
        let is_url = field == "url";
        let shown = |value: &Value| if is_url { without_query(value) } else { value.clone() };
        let (before, after) = (shown(from), shown(to));
        let is_long = [&before, &after].into_iter().any(|value| value.to_string().len() > MAX_VALUE_BYTES);
        if is_long || before == after {
            return Self::hidden(field);
        }
        Self { field: field.to_owned(), from: before, to: after, hidden: false }
    }
}

/// An address without its query, which often contains a token.
fn without_query(url: &Value) -> Value {
    match url.as_str().and_then(|text| text.split_once('?')) {
        Some((address, _)) => format!("{address}?…").into(),
        None => url.clone(),
    }
}

/// The differences between two states of a resource in the named fields. A field that is not named is never recorded, so
/// that a new one that holds a secret is not either. Nothing and null are the same.
pub fn changes(before: &impl Serialize, after: &impl Serialize, fields: &[&str]) -> Vec<AuditChange> {
    let (before, after) = (as_value(before), as_value(after));
    let mut found = Vec::new();
    for field in fields {
        compare(field, &before[*field], &after[*field], &mut found);
    }
    found
}

/// The named fields of a new resource.
pub fn created(after: &impl Serialize, fields: &[&str]) -> Vec<AuditChange> {
    changes(&(), after, fields)
}

/// The named fields of a deleted resource, by which it is still recognised.
pub fn deleted(before: &impl Serialize, fields: &[&str]) -> Vec<AuditChange> {
    changes(before, &(), fields)
}

fn as_value(state: &impl Serialize) -> Value {
    serde_json::to_value(state).unwrap_or_default()
}

fn compare(field: &str, before: &Value, after: &Value, found: &mut Vec<AuditChange>) {
    if before == after {
        return;
    }
    let ((Value::Object(_) | Value::Null, Value::Object(object)) | (Value::Object(object), Value::Null)) =
        (before, after)
    else {
        return found.push(AuditChange::visible(field, before, after));
    };
    // A key that is gone from an object that is still there is found among those before.
    let gone = before.as_object().into_iter().flat_map(|keys| keys.keys());
    let gone = gone.filter(|key| !object.contains_key(*key));
    for key in object.keys().chain(gone) {
        compare(&format!("{field}.{key}"), &before[key], &after[key], found);
    }
}

/// What an entry says beside who did what: which resource, in which mailbox, and what changed of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditDetails {
    /// The kind of the resource, such as `webhook`. Without one it is the mailbox, and else the workspace.
    pub resource_kind: Option<String>,
    /// Its id.
    pub resource_id: Option<String>,
    /// The mailbox.
    pub mailbox_id: Option<MailboxId>,
    /// What changed; `None` where only the fact is recorded.
    pub changes: Option<Vec<AuditChange>>,
}

impl AuditDetails {
    /// It is about this resource.
    pub fn about(&mut self, kind: &str, id: impl fmt::Display) -> &mut Self {
        self.resource_kind = Some(kind.to_owned());
        self.resource_id = Some(id.to_string());
        self
    }

    /// It is in this mailbox, unless it is in another one already: others may be looked up on the way.
    pub fn in_mailbox(&mut self, id: &MailboxId) -> &mut Self {
        self.mailbox_id.get_or_insert_with(|| id.clone());
        self
    }

    /// This changed.
    pub fn changed(&mut self, changes: Vec<AuditChange>) -> &mut Self {
        self.changes = Some(changes);
        self
    }
}

/// An entry of the audit log.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AuditEntry {
    /// Its id.
    pub id: AuditEntryId,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: AuditActor,
    /// From which address: the client's IP address, or the operator's user on the server; null if there is none.
    pub address: Option<String>,
    /// What was done: an operation of the API such as `createApiKey`, or of the console or the operator such as `logIn`.
    pub operation: String,
    /// The path of the request, or the command.
    pub subject: String,
    /// What it is about.
    pub resource: AuditResource,
    /// The mailbox that it belongs to, if any.
    pub mailbox_id: Option<MailboxId>,
    /// The id of the request, as in its `X-Request-Id` and the logs.
    pub request_id: String,
    /// What changed. Secrets and the contents of mail, drafts, memory and documents are never recorded.
    pub changes: Vec<AuditChange>,
}

/// A page of the audit log, newest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AuditPage {
    /// The entries. A page of a filtered list can have few or none although more follow.
    pub entries: Vec<AuditEntry>,
    /// Whether more follow.
    pub has_more: bool,
    /// The cursor of the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Which entries a list shows.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct AuditQuery {
    /// Only those of this actor, by its id.
    #[garde(length(min = 1, max = 200))]
    #[serde(default)]
    pub actor: Option<String>,
    /// Only this operation, such as `createApiKey`.
    #[garde(length(min = 1, max = 100))]
    #[serde(default)]
    pub operation: Option<String>,
    /// Only those of this mailbox.
    #[garde(custom(valid_mailbox))]
    #[serde(default)]
    pub mailbox_id: Option<MailboxId>,
    /// Only those about this resource, by its id.
    #[garde(length(min = 1, max = 200))]
    #[serde(default)]
    pub resource: Option<String>,
    /// Only those at this time or later.
    #[serde(default)]
    pub since: Option<Timestamp>,
    /// Only those before this time.
    #[serde(default)]
    pub until: Option<Timestamp>,
    /// Whether everyday work with mail is included: sends, drafts, flags, moves and the like.
    #[serde(default = "include")]
    pub include_routine: bool,
    /// Entries per page.
    #[garde(range(min = 1, max = 100))]
    #[serde(default = "crate::emails::twenty_five")]
    pub limit: i64,
    /// The `next_cursor` of the previous page.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub cursor: Option<String>,
}

const fn include() -> bool {
    true
}

#[expect(clippy::ref_option, reason = "the signature that garde calls")]
fn valid_mailbox(id: &Option<MailboxId>, (): &()) -> garde::Result {
    match id {
        Some(id) if !MailboxId::looks_like(id.as_str()) => {
            Err(garde::Error::new("expected the id of a mailbox, mbx_…"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named(found: &[AuditChange]) -> Vec<(&str, Value, Value, bool)> {
        found.iter().map(|one| (one.field.as_str(), one.from.clone(), one.to.clone(), one.hidden)).collect()
    }

    // rules: AUDIT-4
    #[test]
    fn only_named_fields_that_differ_are_recorded() {
        let before =
            json!({ "name": "A", "secret": "s1", "same": 1, "settings": { "a": { "b": 1 }, "c": [1] } });
        let after =
            json!({ "name": "B", "secret": "s2", "same": 1, "settings": { "a": { "b": 2 }, "c": [1] } });
        let found = changes(&before, &after, &["name", "same", "settings", "none"]);
        assert_eq!(
            named(&found),
            [("name", json!("A"), json!("B"), false), ("settings.a.b", json!(1), json!(2), false)]
        );
        let made = created(&json!({ "name": "A", "expires_at": null }), &["name", "expires_at"]);
        assert_eq!(named(&made), [("name", Value::Null, json!("A"), false)]);
        let gone = deleted(&json!({ "settings": { "a": 1 } }), &["settings"]);
        assert_eq!(named(&gone), [("settings.a", json!(1), Value::Null, false)]);
        let emptied = changes(&json!({ "s": { "a": 1, "b": 2 } }), &json!({ "s": { "b": 2 } }), &["s"]);
        assert_eq!(named(&emptied), [("s.a", json!(1), Value::Null, false)]);
    }

    // rules: AUDIT-4
    #[test]
    fn long_values_and_queries_are_hidden() {
        let long = "x".repeat(MAX_VALUE_BYTES);
        let hidden = |field: &str| AuditChange::hidden(field);
        assert_eq!(changes(&json!({ "a": long }), &json!({ "a": "" }), &["a"]), [hidden("a")]);
        let url = |query: &str| json!({ "url": format!("https://x.test/p{query}") });
        let found = changes(&url(""), &url("?token=1"), &["url"]);
        assert_eq!(named(&found), [("url", json!("https://x.test/p"), json!("https://x.test/p?…"), false)]);
        assert_eq!(changes(&url("?token=1"), &url("?token=2"), &["url"]), [hidden("url")]);
    }

    // rules: AUDIT-2
    #[test]
    fn actors_are_told_apart_by_their_ids() {
        for (id, kind) in [
            ("key_1", ActorKind::Key),
            ("acc_1", ActorKind::Person),
            ("0xab", ActorKind::Wallet),
            ("telegram 12", ActorKind::Chat),
            (OPERATOR, ActorKind::Operator),
            (SERVICE, ActorKind::Service),
        ] {
            assert_eq!(AuditActor::new(id.to_owned(), None).kind, kind, "{id}");
        }
    }
}
