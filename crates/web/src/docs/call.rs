//! One call of an operation, as all languages of the examples write it, and the variables that examples use.

use serde_json::Value;

use super::{
    example,
    reference::{Access, Operation, Reference, text},
};

/// A call.
pub(super) struct Call {
    /// The method, in upper case.
    pub(super) method: String,
    /// The path, with variables such as `$MAILBOX_ID`.
    pub(super) path: String,
    /// The query, encoded; empty if there is none.
    pub(super) query: String,
    pub(super) credential: Credential,
    /// Whether it carries an idempotency key: only where a retry would create a duplicate.
    pub(super) idempotent: bool,
    pub(super) body: Option<Body>,
    pub(super) output: Output,
}

/// What a call is made with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Credential {
    Nothing,
    Key,
    /// The cookie of a session. A change names this server's origin, as browsers do.
    Session {
        changes: bool,
    },
    /// Nothing, but the response sets the cookie.
    LogIn,
}

/// What a call sends.
pub(super) enum Body {
    Json(Value),
    /// Bytes of a media type.
    Text(String, String),
}

/// What comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    Nothing,
    Json,
    File,
    Events,
}

/// The variables of the examples, and where their values come from.
pub(super) const VARIABLES: [(&str, &str); 36] = [
    ("AGENT_MAILBOX_URL", "The address of this server."),
    ("AGENT_MAILBOX_API_KEY", "An API key: `key` of [createApiKey](#createApiKey), or from the console."),
    (
        "AGENT_MAILBOX_COOKIE",
        "The session's cookie, as [logIn](#logIn) prints it in Python and TypeScript; curl keeps it in `cookies.txt`.",
    ),
    (
        "RECIPIENT",
        "The address to write to. On a server that cannot send to others yet, that of a mailbox on it.",
    ),
    ("WORKSPACE_ID", "`id` of [listWorkspaces](#listWorkspaces)"),
    ("MAILBOX_ID", "`id`, `public_id` or `email` of [listMailboxes](#listMailboxes)"),
    ("MAILBOX_ADDRESS", "`email` of [listMailboxes](#listMailboxes)"),
    ("FOLDER_ID", "`id` of [listFolders](#listFolders)"),
    ("LABEL_ID", "`id` of [listCustomLabels](#listCustomLabels)"),
    ("EMAIL_ID", "`id` of [listEmails](#listEmails)"),
    ("ATTACHMENT_ID", "`id` in `attachments` of [getEmail](#getEmail)"),
    ("THREAD_ID", "`id` of [listThreads](#listThreads)"),
    ("DRAFT_ID", "`id` of [listDrafts](#listDrafts)"),
    ("SCHEDULED_SEND_ID", "`id` of [listScheduledSends](#listScheduledSends)"),
    ("CONVERSATION_ID", "`id` of [listAgentConversations](#listAgentConversations)"),
    ("CONNECTION_ID", "`id` of [listIntegrationConnections](#listIntegrationConnections)"),
    ("TRIAGER_ID", "`id` of [listTaskTriagers](#listTaskTriagers)"),
    ("TASK_ID", "`id` of [listTasks](#listTasks)"),
    ("WEBHOOK_ID", "`id` of [listWebhooks](#listWebhooks)"),
    ("DELIVERY_ID", "`id` of [listWebhookDeliveries](#listWebhookDeliveries)"),
    ("WEBHOOK_SECRET", "`secret` of [createWebhook](#createWebhook), shown once"),
    ("BLOB_ID", "`blobId` of [remember](#remember)"),
    ("DOCUMENT_ID", "`id` of [listDocuments](#listDocuments)"),
    ("MEMBER_ID", "`account_id` of [listMembers](#listMembers)"),
    ("SUPPRESSION_ID", "`id` of [listSuppressions](#listSuppressions)"),
    ("REVIEW_ID", "`id` of [listReviews](#listReviews)"),
    ("REVIEW_DIGEST", "`digest` of [getReview](#getReview)"),
    ("INVITE_ID", "`id` of [listInvites](#listInvites)"),
    ("INVITE_TOKEN", "What follows `#` in `link` of [createInvite](#createInvite)"),
    ("DOMAIN_ID", "`id` of [listEmailDomains](#listEmailDomains)"),
    ("KEY_ID", "`id` of [listApiKeys](#listApiKeys)"),
    ("SESSION_ID", "`id` of [listSessions](#listSessions)"),
    ("SIGN_UP_TOKEN", "What follows `#` in the link that [signUp](#signUp) sends"),
    ("INBOUND_SECRET", "The server's `inbound.http_secret`"),
    ("TIME", "Set in the example itself"),
    ("SIGNATURE", "Set in the example itself"),
];

impl Call {
    pub(super) fn of(reference: &Reference, operation: &Operation<'_>) -> Self {
        let changes = operation.method != "get";
        let logs_in = ["signUp", "completeSignUp", "logIn", "acceptInvite"].contains(&operation.id());
        let (path, query) = address(reference, operation);
        Self {
            method: operation.method.to_ascii_uppercase(),
            path,
            query,
            credential: match operation.access() {
                Access::Key => Credential::Key,
                Access::Session => Credential::Session { changes },
                Access::Anyone if logs_in => Credential::LogIn,
                Access::Anyone => Credential::Nothing,
            },
            idempotent: operation.method == "post" && operation.has_parameter("Idempotency-Key"),
            body: operation.body().map(|content| {
                let given = content.example.cloned();
                match given.unwrap_or_else(|| example::request(reference, content.schema)) {
                    Value::String(bytes) => Body::Text(content.kind.to_owned(), bytes),
                    json => Body::Json(json),
                }
            }),
            output: output(operation),
        }
    }

    /// The variables in the order of their use, without those that every example has.
    pub(super) fn variables(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut add = |name: &str| {
            if found.iter().all(|known| known != name) {
                found.push(name.to_owned());
            }
        };
        pieces(&self.path).filter_map(|(_, name)| name).for_each(&mut add);
        if let Some(Body::Json(json)) = &self.body {
            strings(json, &mut |text| {
                if let Some(name) = variable_of(text) {
                    add(name);
                }
            });
        }
        found
    }
}

fn output(operation: &Operation<'_>) -> Output {
    let responses = operation.responses();
    let kind = responses.iter().find(|one| !one.is_error()).and_then(|one| one.content).map(|one| one.kind);
    match kind {
        None => Output::Nothing,
        Some("application/json") => Output::Json,
        Some("text/event-stream") => Output::Events,
        Some(_) => Output::File,
    }
}

/// The path with variables for its parameters, and the query parameters that are required or have an example.
fn address(reference: &Reference, operation: &Operation<'_>) -> (String, String) {
    let mut path = operation.path.to_owned();
    let mut query = form_urlencoded::Serializer::new(String::new());
    for parameter in operation.parameters() {
        let name = text(parameter, "name");
        match text(parameter, "in") {
            "path" => path = path.replace(&format!("{{{name}}}"), &format!("${}", example_variable(name))),
            "query" if parameter["required"] == true || parameter.get("example").is_some() => {
                let given = parameter.get("example").cloned();
                match given.unwrap_or_else(|| example::request(reference, &parameter["schema"])) {
                    Value::String(text) => query.append_pair(name, &text),
                    other => query.append_pair(name, &other.to_string()),
                };
            }
            _ => {}
        }
    }
    (path, query.finish())
}

/// A parameter's name as the name of a variable of the examples: `mailboxId` is `MAILBOX_ID`.
pub fn example_variable(name: &str) -> String {
    let mut variable = String::new();
    for character in name.chars() {
        if character.is_uppercase() {
            variable.push('_');
        }
        variable.push(character.to_ascii_uppercase());
    }
    variable
}

/// The name, if a text is a variable such as `$EMAIL_ID`.
pub(super) fn variable_of(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    let fits = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
    (!name.is_empty() && name.bytes().all(fits)).then_some(name)
}

/// A path in pieces: plain text, and the variable after it.
pub(super) fn pieces(path: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    path.split('$').enumerate().map(|(index, piece)| {
        if index == 0 {
            return (piece, None);
        }
        let end = piece.find('/').unwrap_or(piece.len());
        (&piece[end..], Some(&piece[..end]))
    })
}

/// Calls a function with every string of a value.
fn strings(value: &Value, found: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => found(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
        Value::Object(members) => members.values().for_each(|member| strings(member, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{own_reference::REFERENCE, samples},
        *,
    };

    #[test]
    fn names_variables() {
        assert_eq!(example_variable("mailboxId"), "MAILBOX_ID");
        assert_eq!(variable_of("$EMAIL_ID"), Some("EMAIL_ID"));
        assert_eq!(variable_of("$5"), None);
        let pieces: Vec<_> = pieces("/a/$B_C/d").collect();
        assert_eq!(pieces, [("/a/", None), ("/d", Some("B_C"))]);
    }

    #[test]
    fn every_variable_is_explained_and_used() {
        let mut used = std::collections::HashSet::new();
        for operation in REFERENCE.operations() {
            for (_, _, code) in samples::all(&REFERENCE, &operation) {
                let names = code.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
                used.extend(names.filter(|name| name.len() > 3).map(ToOwned::to_owned));
            }
        }
        for operation in REFERENCE.operations() {
            for name in Call::of(&REFERENCE, &operation).variables() {
                assert!(VARIABLES.iter().any(|(known, _)| *known == name), "{name} is not explained");
            }
        }
        for (name, _) in VARIABLES {
            assert!(used.contains(name) || name == "WEBHOOK_SECRET", "{name} is not used");
        }
    }
}
