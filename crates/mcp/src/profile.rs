//! Profiles: which tools a client gets. The default is small enough for any context; the narrow one has only tools that
//! are harmless for an agent that reads untrusted mail, and fixes the safety arguments itself.

use std::{collections::HashMap, sync::LazyLock};

use operations::{Caller, Error, Result};
use rmcp::model::{JsonObject, Tool as Declaration};
use serde_json::{Value, json};

use crate::{
    budget::Budget,
    tools::{self, ArgumentLocation, Tool},
};

/// The profile that `?profile=` names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Profile {
    /// What an assistant needs every day: reading, searching, waiting, writing, sorting. The default.
    #[default]
    Assistant,
    /// Safe reads, waiting, verification and creating a mailbox.
    AgentInbox,
    /// Every operation that an API key can call, but what people decide.
    Full,
    /// Deciding about messages in review, with the reads that it needs: for people, not for agents.
    People,
}

/// The operations of the default profile, each with the optional arguments that are worth their place in a context.
/// The others are taken too, but not declared.
const ASSISTANT: &[(&str, &[&str])] = &[
    ("listMailboxes", &[]),
    ("createMailbox", &["email"]),
    ("listEmails", &["folder", "is_read", "custom_label", "threaded", "metadata_only", "limit", "cursor"]),
    ("searchEmails", &["query", "folder", "mode", "metadata_only", "limit", "cursor"]),
    ("getEmail", &["max_body_chars"]),
    ("getEmailContext", &["cursor"]),
    ("waitForEmail", &["from", "subject", "after", "timeout_seconds"]),
    ("getEmailVerification", &[]),
    ("getAttachment", &[]),
    ("updateEmail", &["read", "starred", "custom_labels"]),
    ("moveEmail", &[]),
    ("saveDraft", &["to", "cc", "bcc", "subject", "body_format", "thread_id", "in_reply_to", "draft_id"]),
    ("sendDraft", &[]),
    ("sendEmail", &["to", "cc", "bcc", "subject", "text", "html", "attachments"]),
    ("replyToEmail", &["text", "html", "cc", "reply_all", "attachments"]),
    ("forwardEmail", &["to", "cc", "text"]),
    ("listReviews", &["state", "cursor"]),
    ("withdrawReview", &["reason"]),
    ("listFolders", &[]),
    ("createFolder", &[]),
    ("listCustomLabels", &[]),
    ("createCustomLabel", &["rules", "color"]),
    ("scheduleSend", &["to", "cc", "subject", "body", "thread_id", "draft_id"]),
    ("listScheduledSends", &["limit", "cursor"]),
    ("cancelScheduledSend", &[]),
];

/// Operations that the default profile had before reviews took their place: others of its tools do the same. A client that
/// knows them can call them.
const ASSISTANT_TAKES: [&str; 2] = ["getThread", "listThreads"];

/// What people decide, and agents must not be offered: which messages leave, and what the policies say about that. The last
/// three are in no profile.
const DECISIONS: [&str; 5] =
    ["approveReview", "rejectReview", "setSendPolicy", "setMailboxSendPolicy", "deleteMailboxSendPolicy"];

/// The operations of the profile for people who decide.
const PEOPLE: &[&str] = &[
    "listReviews",
    "getReview",
    "approveReview",
    "rejectReview",
    "listMailboxes",
    "getEmail",
    "getEmailContext",
    "getThread",
    "getAttachment",
    "searchEmails",
    "getSendPolicy",
    "getMailboxSendPolicy",
    "checkSendPolicy",
];

/// The dry run of a send takes all that a send takes. Declared is what a policy looks at.
const CHECK: (&str, &[&str]) = ("checkSendPolicy", &["to", "cc", "bcc", "subject", "text"]);

/// The operations of the narrow profile. Those that show messages without a scan gate, such as the list of threads,
/// are not among them.
const AGENT_INBOX: &[&str] = &[
    "listMailboxes",
    "getMailbox",
    "createMailbox",
    "listFolders",
    "listCustomLabels",
    "listEmails",
    "getEmail",
    "getEmailContext",
    "getEmailVerification",
    "waitForEmail",
    "getThread",
    "searchEmails",
    "getCreditUsage",
];

/// Arguments that the narrow profile sets wherever an operation has them.
const FIXED_ARGUMENTS: [(&str, FixedValue); 2] =
    [("agent_safe_content", || json!(true)), ("require_scan_status", || json!("clean"))];
type FixedValue = fn() -> Value;
/// Arguments that it limits.
const ARGUMENT_LIMITS: [(&str, u64); 2] = [("max_body_chars", 12_000), ("max_total_chars", 48_000)];
/// Arguments that it hides: an agent must not create a mailbox that forwards its mail.
const HIDDEN_ARGUMENTS: [&str; 1] = ["settings"];

impl Profile {
    /// All of them, the default first.
    pub(crate) const ALL: [Self; 4] = [Self::Assistant, Self::AgentInbox, Self::Full, Self::People];

    /// The name that `?profile=` takes.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Assistant => "assistant",
            Self::AgentInbox => "agent-inbox",
            Self::Full => "full",
            Self::People => "people",
        }
    }

    /// What it is for.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::Assistant => {
                "The default: read, wait, search, draft, reply, send, schedule, labels, folders, create mailboxes."
            }
            Self::AgentInbox => {
                "For agents that read strangers' mail: safe reads, waiting, codes and creating mailboxes; clean mail as plain text only."
            }
            Self::Full => "Every operation that an API key can call, but deciding about messages in review.",
            Self::People => "For people who decide about messages in review. Not for agents.",
        }
    }

    /// Reads the query string.
    pub(crate) fn from_query(query: &str) -> Result<Self> {
        let mut profile = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if name != "profile" {
                return Err(Error::invalid(name, "unknown field")
                    .with_fix("The only parameter of /mcp is `profile`."));
            }
            let Some(named) = Self::ALL.into_iter().find(|one| one.name() == value) else {
                let [first, second, third, last] = Self::ALL.map(Self::name);
                let fix = format!("The profiles are {first} (the default), {second}, {third} and {last}.");
                return Err(Error::invalid("profile", format!("there is no profile {value:?}")).with_fix(fix));
            };
            profile = named;
        }
        Ok(profile)
    }

    /// Its tools.
    pub(crate) fn tools(self) -> &'static Tools {
        static FULL: LazyLock<Tools> = LazyLock::new(|| {
            let offered = tools::all().iter().filter(|tool| !DECISIONS.contains(&tool.operation.id));
            Tools::new(offered.map(shortened).collect())
        });
        static ASSISTANT_TOOLS: LazyLock<Tools> = LazyLock::new(|| {
            let chosen = ASSISTANT
                .iter()
                .filter_map(|(id, arguments)| Some(with_arguments(tools::of_operation(id)?, arguments)));
            let taken = ASSISTANT_TAKES.iter().filter_map(|id| tools::of_operation(id)).cloned();
            Tools::new(chosen.collect()).taking(taken)
        });
        static AGENT_INBOX_TOOLS: LazyLock<Tools> = LazyLock::new(|| {
            let chosen = tools::all().iter().filter(|tool| AGENT_INBOX.contains(&tool.operation.id));
            Tools::new(chosen.map(narrowed).collect())
        });
        static PEOPLE_TOOLS: LazyLock<Tools> = LazyLock::new(|| {
            let chosen = PEOPLE.iter().filter_map(|id| tools::of_operation(id));
            Tools::new(chosen.map(shortened).collect())
        });
        match self {
            Self::Assistant => &ASSISTANT_TOOLS,
            Self::AgentInbox => &AGENT_INBOX_TOOLS,
            Self::Full => &FULL,
            Self::People => &PEOPLE_TOOLS,
        }
    }

    /// The size limits of a result.
    pub(crate) const fn budget(self) -> Budget {
        match self {
            Self::Assistant | Self::Full | Self::People => Budget { body: None, result: 400_000 },
            Self::AgentInbox => Budget { body: Some(12_000), result: 128_000 },
        }
    }

    /// The arguments after the profile's rules.
    pub(crate) fn admit(self, tool: &Tool, mut arguments: JsonObject) -> Result<JsonObject> {
        if self != Self::AgentInbox {
            return Ok(arguments);
        }
        let takes = |name: &str| {
            matches!(tool.locations.get(name), Some(ArgumentLocation::Query | ArgumentLocation::Body))
        };
        for (name, value) in FIXED_ARGUMENTS.iter().filter(|(name, _)| takes(name)) {
            let (name, value) = ((*name).to_owned(), value());
            let given = arguments.insert(name.clone(), value.clone());
            if given.is_some_and(|given| !given.is_null() && given != value) {
                return Err(refused(&name));
            }
        }
        for (name, max) in ARGUMENT_LIMITS.iter().filter(|(name, _)| takes(name)) {
            let given = arguments.get(*name);
            if given.is_none_or(|given| given.is_null() || given.as_u64().is_some_and(|given| given > *max)) {
                arguments.insert((*name).to_owned(), json!(max));
            }
        }
        match HIDDEN_ARGUMENTS.iter().find(|name| takes(name) && arguments.contains_key(**name)) {
            Some(name) => Err(refused(name)),
            None => Ok(arguments),
        }
    }
}

fn refused(name: &str) -> Error {
    Error::invalid(name, "the profile agent-inbox decides this")
        .with_fix("Leave it out, or connect with another profile.")
}

/// A tool of the default profile declares what is required, what every write takes, and these arguments.
fn with_arguments(tool: &Tool, arguments: &[&str]) -> Tool {
    let mut tool = tool.clone();
    let mut schema = (*tool.declaration.input_schema).clone();
    let required: Vec<String> = tool.required().into_iter().map(ToOwned::to_owned).collect();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| {
            required.contains(name)
                || arguments.contains(&name.as_str())
                || [tools::IDEMPOTENCY_KEY, tools::CONFIRMATION].contains(&name.as_str())
        });
    }
    tool.declaration.input_schema = schema.into();
    tool
}

/// A tool of the large profiles declares all its arguments, but for the dry run of a send.
fn shortened(tool: &Tool) -> Tool {
    let (id, arguments) = CHECK;
    if tool.operation.id == id { with_arguments(tool, arguments) } else { tool.clone() }
}

/// A tool of the narrow profile declares only the arguments that it takes there.
fn narrowed(tool: &Tool) -> Tool {
    let mut tool = tool.clone();
    let mut schema = (*tool.declaration.input_schema).clone();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| {
            !FIXED_ARGUMENTS.iter().any(|(set, _)| set == name) && !HIDDEN_ARGUMENTS.contains(&name.as_str())
        });
        for (name, max) in ARGUMENT_LIMITS {
            if let Some(property) = properties.get_mut(name) {
                property["maximum"] = json!(max);
            }
        }
    }
    tool.declaration.input_schema = schema.into();
    tool
}

/// The tools of a profile, by name and as a list.
pub(crate) struct Tools {
    tools: HashMap<String, Tool>,
    pub(crate) declarations: Vec<Declaration>,
}

impl Tools {
    fn new(tools: Vec<Tool>) -> Self {
        let declarations = tools.iter().map(|tool| tool.declaration.clone()).collect();
        Self { tools: tools.into_iter().map(|tool| (tool.name().to_owned(), tool)).collect(), declarations }
    }

    /// The same, with tools that can be called though they are not declared.
    fn taking(mut self, tools: impl Iterator<Item = Tool>) -> Self {
        self.tools.extend(tools.map(|tool| (tool.name().to_owned(), tool)));
        self
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.get(name)
    }

    /// What a caller is shown: no tool outside its scopes and mailboxes.
    pub(crate) fn usable_by(&self, caller: &Caller) -> Vec<Declaration> {
        let reaches = |name: &str| self.find(name).is_some_and(|tool| caller.reaches(tool.operation));
        self.declarations.iter().filter(|tool| reaches(&tool.name)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client puts into its context: the result of `tools/list`, in tokens of four characters.
    fn tokens(profile: Profile) -> usize {
        let list = rmcp::model::ListToolsResult::with_all_items(profile.tools().declarations.clone());
        serde_json::to_string(&list).unwrap().chars().count() / 4
    }

    /// rules: MCP-8
    #[test]
    fn the_profiles_keep_their_bounds() {
        let sizes = Profile::ALL.map(|profile| (profile.tools().declarations.len(), tokens(profile)));
        println!("tools and tokens: {sizes:?}");
        let [assistant, narrow, full, people] = sizes;
        assert_eq!(assistant.0, ASSISTANT.len(), "every operation exists");
        assert!(assistant.0 <= 25 && assistant.1 <= 6_000, "assistant: {assistant:?}");
        assert!(narrow.1 <= 6_000, "agent-inbox: {narrow:?}");
        assert!(full.1 <= 20_000, "full: {full:?}");
        assert_eq!(people.0, PEOPLE.len(), "every operation exists");
        assert!(people.1 <= 6_000, "people: {people:?}");
    }

    /// rules: REVIEW-20
    #[test]
    fn only_the_profile_for_people_decides() {
        for profile in Profile::ALL {
            let offered = DECISIONS.iter().filter(|id| profile.tools().find(&tools::name(id)).is_some());
            let offered: Vec<_> = offered.copied().collect();
            let expected: &[&str] =
                if profile == Profile::People { &["approveReview", "rejectReview"] } else { &[] };
            assert_eq!(offered, expected, "{}", profile.name());
        }
        for id in DECISIONS {
            assert!(tools::of_operation(id).is_some(), "{id}");
        }
    }

    /// Every argument that is declared exists, and nothing that a write needs is left out.
    #[test]
    fn the_default_profile_declares_what_exists() {
        for (id, arguments) in ASSISTANT {
            let tool = Profile::Assistant.tools().find(&tools::name(id)).unwrap();
            let declared = tool.declared_names();
            for name in arguments.iter().copied().chain(tool.required()) {
                assert!(declared.contains(&name), "{id}: {name}");
            }
            assert_eq!(declared.contains(&tools::IDEMPOTENCY_KEY), tool.operation.writes, "{id}");
        }
    }

    #[test]
    fn the_narrow_profile_writes_nothing_but_mailboxes() {
        let narrow = Profile::AgentInbox.tools();
        assert_eq!(narrow.declarations.len(), AGENT_INBOX.len());
        for id in AGENT_INBOX {
            let tool = narrow.find(&tools::name(id)).unwrap();
            assert!(!tool.operation.writes || *id == "createMailbox", "{id}");
            assert!(!tool.destructive, "{id}");
        }
    }

    /// A tool that shows untrusted text either takes the gate and the safe form, or has no other.
    #[test]
    fn every_read_of_mail_is_gated() {
        let always_safe = ["getEmailContext", "getEmailVerification", "waitForEmail"];
        for id in AGENT_INBOX
            .iter()
            .filter(|id| id.contains("mail") || id.contains("Email") || id.contains("Thread"))
        {
            let tool = Profile::AgentInbox.tools().find(&tools::name(id)).unwrap();
            let takes = |name| tool.locations.contains_key(name);
            let gated =
                takes("agent_safe_content") && takes("require_scan_status") && takes("max_body_chars");
            assert!(gated || always_safe.contains(id) || id.ends_with("Mailbox"), "{id}");
        }
    }

    #[test]
    fn arguments_are_set_and_bounded() {
        let tool = Profile::AgentInbox.tools().find("list_emails").unwrap();
        let admit = |arguments: Value| {
            let Value::Object(arguments) = arguments else { unreachable!() };
            Profile::AgentInbox.admit(tool, arguments)
        };
        let admitted = admit(json!({ "max_body_chars": 50_000 })).unwrap();
        assert_eq!(admitted["max_body_chars"], 12_000);
        assert_eq!(admitted["agent_safe_content"], true);
        assert_eq!(admitted["require_scan_status"], "clean");
        assert_eq!(admit(json!({ "max_body_chars": 50 })).unwrap()["max_body_chars"], 50);
        assert!(admit(json!({ "agent_safe_content": false })).is_err());
        assert!(admit(json!({ "require_scan_status": "clean" })).is_ok());
        let tool = Profile::AgentInbox.tools().find("create_mailbox").unwrap();
        let settings = JsonObject::from_iter([("settings".to_owned(), json!({}))]);
        assert!(Profile::AgentInbox.admit(tool, settings).is_err());
    }
}
