//! Profiles: which tools a client gets. The narrow one has only tools that are harmless for an agent that reads
//! untrusted mail, and fixes the safety arguments itself.

use std::{collections::HashMap, sync::LazyLock};

use operations::{Error, Result};
use rmcp::model::{JsonObject, Tool as Declaration};
use serde_json::{Value, json};

use crate::{
    budget::Budget,
    tools::{self, ArgumentLocation, Tool},
};

/// The profile that `?profile=` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Every operation that an API key can call.
    Full,
    /// Safe reads, waiting, verification and creating a mailbox.
    AgentInbox,
}

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
    /// The names that `?profile=` takes.
    pub(crate) const NAMES: [&str; 2] = ["full", "agent-inbox"];

    /// Reads the query string.
    pub(crate) fn from_query(query: &str) -> Result<Self> {
        let mut profile = Self::Full;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if name != "profile" {
                return Err(Error::invalid(name, "unknown field"));
            }
            profile = match &*value {
                "full" => Self::Full,
                "agent-inbox" => Self::AgentInbox,
                _ => {
                    let fix = format!("The profiles are {}.", Self::NAMES.join(" and "));
                    return Err(Error::invalid("profile", "there is no such profile").with_fix(fix));
                }
            };
        }
        Ok(profile)
    }

    /// Its tools.
    pub(crate) fn tools(self) -> &'static Tools {
        static FULL: LazyLock<Tools> = LazyLock::new(|| Tools::new(tools::all().to_vec()));
        static AGENT_INBOX_TOOLS: LazyLock<Tools> = LazyLock::new(|| {
            let chosen = tools::all().iter().filter(|tool| AGENT_INBOX.contains(&tool.operation.id));
            Tools::new(chosen.map(narrowed).collect())
        });
        match self {
            Self::Full => &FULL,
            Self::AgentInbox => &AGENT_INBOX_TOOLS,
        }
    }

    /// The size limits of a result.
    pub(crate) const fn budget(self) -> Budget {
        match self {
            Self::Full => Budget { body: None, result: 400_000 },
            Self::AgentInbox => Budget { body: Some(12_000), result: 128_000 },
        }
    }

    /// The arguments after the profile's rules.
    pub(crate) fn admit(self, tool: &Tool, mut arguments: JsonObject) -> Result<JsonObject> {
        if self == Self::Full {
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
        .with_fix("Leave it out, or connect without ?profile=agent-inbox.")
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

    pub(crate) fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.get(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
