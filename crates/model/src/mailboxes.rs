//! Mailboxes and their settings.

use garde::Validate;
use mail::address::Address;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    DomainId, MailboxId, Timestamp, WorkspaceId,
    names::valid_name,
    object::{object, optional_object},
};

/// A mailbox.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Mailbox {
    /// Its alias id.
    pub id: MailboxId,
    /// Its UUID, the preferred id in paths.
    pub public_id: String,
    /// The workspace it belongs to.
    pub workspace_id: WorkspaceId,
    /// Its address.
    pub email: String,
    /// Its name.
    pub name: String,
    /// The custom domain of its address; null on a hosted domain.
    pub email_domain_id: Option<DomainId>,
    /// The trusted transport that mail arrives over.
    pub inbound_provider: Option<String>,
    /// How outgoing mail is sent: `local`, `relay`, `direct` or `sandbox`.
    pub outbound_provider: Option<String>,
    /// Its settings, defaults filled in.
    pub settings: MailboxSettings,
    /// Whether it can receive mail now.
    pub can_receive: bool,
    /// Why it can or cannot.
    pub receiving_status: ReceivingStatus,
    /// When it was disabled.
    pub disabled_at: Option<Timestamp>,
    /// Why it was disabled.
    pub disabled_reason: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A mailbox in a list, with its unread counts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ListedMailbox {
    /// The mailbox.
    #[serde(flatten)]
    pub mailbox: Mailbox,
    /// Unread emails in the inbox, by category.
    pub inbox_unread_by_category: UnreadByCategory,
}

/// Unread emails by category.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct UnreadByCategory {
    /// Customer support.
    pub customer_support: i64,
    /// Technical mail.
    pub technical: i64,
    /// Partners.
    pub partnership: i64,
    /// Everything else.
    pub other: i64,
}

/// Whether a mailbox can receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReceivingStatus {
    /// It is available.
    Ready,
    /// It was disabled.
    Disabled,
    /// Its domain is not verified, or this server does not receive mail.
    Unavailable,
}

/// A new mailbox.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewMailbox {
    /// Its name.
    #[garde(custom(valid_name))]
    #[schemars(length(min = 1, max = 80))]
    pub name: String,
    /// Its address, on a domain of this server or of the workspace. Generated if omitted.
    #[garde(length(min = 3, max = 254))]
    #[serde(default)]
    pub email: Option<String>,
    /// The workspace; must be the key's own.
    #[serde(default, rename = "workspaceId")]
    pub workspace_id: Option<WorkspaceId>,
    /// Settings that differ from the defaults.
    #[garde(dive)]
    #[serde(default, deserialize_with = "object")]
    pub settings: MailboxSettings,
}

/// Changes to a mailbox. Omitted fields stay as they are.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MailboxChange {
    /// The new name.
    #[garde(inner(custom(valid_name)))]
    #[schemars(length(min = 1, max = 80))]
    #[serde(default)]
    pub name: Option<String>,
    /// The new settings. They replace the current ones as a whole.
    #[garde(dive)]
    #[serde(default, deserialize_with = "optional_object")]
    pub settings: Option<MailboxSettings>,
}

/// The workspace of a list, which may be left out.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct MailboxQuery {
    /// The workspace; must be the key's own.
    #[serde(default, rename = "workspaceId")]
    pub workspace_id: Option<WorkspaceId>,
}

/// The settings of a mailbox. In requests every field is optional.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Validate, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub struct MailboxSettings {
    /// Forwards a copy of every received email.
    #[garde(dive)]
    #[serde(deserialize_with = "object")]
    pub forwarding: Forwarding,
    /// Text under every outgoing email.
    #[garde(dive)]
    #[serde(deserialize_with = "object")]
    pub signature: Signature,
    /// An automatic reply, at most once per sender and week.
    #[garde(dive)]
    #[serde(deserialize_with = "object")]
    pub auto_reply: AutoReply,
    /// The sender name on outgoing emails.
    #[garde(length(chars, max = 80), custom(single_line))]
    pub from_name: String,
    /// How agents use the mailbox.
    #[serde(deserialize_with = "object")]
    pub agent_inbox: AgentInbox,
    /// Replies drafted for review.
    #[serde(deserialize_with = "object")]
    pub auto_draft: AutoDraft,
    /// Who can write to the mailbox.
    #[garde(dive)]
    #[serde(deserialize_with = "object")]
    pub sender_policy: SenderPolicy,
    /// What happens to spam.
    #[serde(deserialize_with = "object")]
    pub spam: Spam,
}

/// Forwards a copy of every received email.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Validate, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct Forwarding {
    /// Whether it is enabled.
    pub enabled: bool,
    /// The address to forward to; required if enabled.
    #[garde(custom(needed_when_on(self.enabled)))]
    pub email: Option<Address>,
}

fn needed_when_on(enabled: bool) -> impl FnOnce(&Option<Address>, &()) -> garde::Result {
    move |email, ()| {
        if enabled && email.is_none() {
            return Err(garde::Error::new("forwarding needs an address"));
        }
        Ok(())
    }
}

/// Text under every outgoing email.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Validate, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct Signature {
    /// Whether it is enabled.
    pub enabled: bool,
    /// The text.
    #[garde(length(chars, max = 5000))]
    pub text: String,
}

/// An automatic reply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Validate, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct AutoReply {
    /// Whether it is enabled.
    pub enabled: bool,
    /// Its subject.
    #[garde(length(chars, max = 200), custom(single_line))]
    pub subject: String,
    /// Its text.
    #[garde(length(chars, max = 10000))]
    pub message: String,
}

/// How agents use the mailbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct AgentInbox {
    /// What the mailbox is for.
    pub mode: AgentInboxMode,
    /// Whether triagers run.
    pub automations_enabled: bool,
    /// Whether they run only on clean mail.
    pub require_clean_scan_for_automation: bool,
    /// Whether a wallet must sign in to read it; a zero-amount authorisation is not enough. Present only if true.
    #[serde(skip_serializing_if = "is_off")]
    pub require_siwx: bool,
}

const fn is_off(flag: &bool) -> bool {
    !*flag
}

impl Default for AgentInbox {
    fn default() -> Self {
        Self {
            mode: AgentInboxMode::Standard,
            automations_enabled: true,
            require_clean_scan_for_automation: true,
            require_siwx: false,
        }
    }
}

/// What a mailbox is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AgentInboxMode {
    /// Everything.
    Standard,
    /// Codes and links of sign-up emails.
    Verification,
}

/// Replies drafted for review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct AutoDraft {
    /// Whether replies to incoming emails are drafted.
    pub enabled: bool,
    /// Whether a person must approve them.
    pub require_approval: bool,
}

impl Default for AutoDraft {
    fn default() -> Self {
        Self { enabled: false, require_approval: true }
    }
}

/// Who can write to the mailbox. `block` takes precedence over `allow`; an empty `allow` allows everyone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Validate, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SenderPolicy {
    /// Addresses, `@domain`, or `*`.
    #[garde(length(max = 500), inner(custom(sender_pattern)))]
    pub allow: Vec<String>,
    /// Addresses, `@domain`, or `*`.
    #[garde(length(max = 500), inner(custom(sender_pattern)))]
    pub block: Vec<String>,
}

fn sender_pattern(pattern: &str, _: &()) -> garde::Result {
    let valid = pattern == "*"
        || match pattern.strip_prefix('@') {
            Some(domain) => Address::parse(&format!("x@{domain}")).is_ok(),
            None => Address::parse(pattern).is_ok(),
        };
    if valid { Ok(()) } else { Err(garde::Error::new("expected an address, @domain or *")) }
}

fn single_line(text: &str, _: &()) -> garde::Result {
    if text.chars().any(char::is_control) {
        return Err(garde::Error::new("must be one line without control characters"));
    }
    Ok(())
}

/// What happens to spam.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Spam {
    /// Whether spam goes to the Spam folder instead of the inbox.
    pub to_spam_folder: bool,
}

impl Default for Spam {
    fn default() -> Self {
        Self { to_spam_folder: true }
    }
}
