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
    /// The trusted transport that mail arrives by.
    pub inbound_provider: Option<String>,
    /// The way mail leaves.
    pub outbound_provider: Option<String>,
    /// Its settings, defaults filled in.
    pub settings: MailboxSettings,
    /// Whether mail can arrive now.
    pub can_receive: bool,
    /// Why it can or cannot.
    pub receiving_status: ReceivingStatus,
    /// When it was disabled.
    pub disabled_at: Option<Timestamp>,
    /// Why it was disabled.
    pub disabled_reason: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A mailbox in a list, with its unread mails.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ListedMailbox {
    /// The mailbox.
    #[serde(flatten)]
    pub mailbox: Mailbox,
    /// Unread mails in the inbox by category.
    pub inbox_unread_by_category: UnreadByCategory,
}

/// Unread mails by category.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct UnreadByCategory {
    /// Customers who need help.
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
    /// It can.
    Ready,
    /// It was disabled.
    Disabled,
    /// Its domain is not verified, or this server takes no mail.
    Unavailable,
}

/// What making a mailbox takes.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewMailbox {
    /// Its name.
    #[garde(custom(valid_name))]
    #[schemars(length(min = 1, max = 80))]
    pub name: String,
    /// Its address on a domain of this server or of the workspace; made up of its name and random characters if left out.
    #[garde(length(min = 3, max = 254))]
    #[serde(default)]
    pub email: Option<String>,
    /// The key's workspace, if given.
    #[serde(default, rename = "workspaceId")]
    pub workspace_id: Option<WorkspaceId>,
    /// Settings other than the defaults.
    #[garde(dive)]
    #[serde(default, deserialize_with = "object")]
    pub settings: MailboxSettings,
}

/// A change of a mailbox; what is left out stays.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MailboxChange {
    /// The new name.
    #[garde(inner(custom(valid_name)))]
    #[schemars(length(min = 1, max = 80))]
    #[serde(default)]
    pub name: Option<String>,
    /// The new settings. They replace the present ones whole.
    #[garde(dive)]
    #[serde(default, deserialize_with = "optional_object")]
    pub settings: Option<MailboxSettings>,
}

/// The workspace of a list, which may be left out.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct MailboxQuery {
    /// The key's workspace, if given.
    #[serde(default, rename = "workspaceId")]
    pub workspace_id: Option<WorkspaceId>,
}

/// The settings of a mailbox. Everything is optional on the way in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Validate, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[garde(allow_unvalidated)]
pub struct MailboxSettings {
    /// Sends a copy of every mail elsewhere.
    #[garde(dive)]
    #[serde(deserialize_with = "object")]
    pub forwarding: Forwarding,
    /// Text under every mail that is sent.
    #[garde(dive)]
    #[serde(deserialize_with = "object")]
    pub signature: Signature,
    /// An automatic answer, at most once a sender and week.
    #[garde(dive)]
    #[serde(deserialize_with = "object")]
    pub auto_reply: AutoReply,
    /// The name beside the address of mail that is sent.
    #[garde(length(chars, max = 80), custom(single_line))]
    pub from_name: String,
    /// How agents use the mailbox.
    #[serde(deserialize_with = "object")]
    pub agent_inbox: AgentInbox,
    /// Answers drafted for review.
    #[serde(deserialize_with = "object")]
    pub auto_draft: AutoDraft,
    /// Who may write here.
    #[garde(dive)]
    #[serde(deserialize_with = "object")]
    pub sender_policy: SenderPolicy,
    /// What happens to spam.
    #[serde(deserialize_with = "object")]
    pub spam: Spam,
}

/// Sends a copy of every mail elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Validate, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct Forwarding {
    /// Whether it is on.
    pub enabled: bool,
    /// Where to; needed when it is on.
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

/// Text under every mail that is sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Validate, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct Signature {
    /// Whether it is on.
    pub enabled: bool,
    /// The text.
    #[garde(length(chars, max = 5000))]
    pub text: String,
}

/// An automatic answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Validate, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct AutoReply {
    /// Whether it is on.
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
    /// Whether a wallet reads it with a sign-in only, never with an authorisation over nothing. Shown where it is so.
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
    /// Codes and links of sign-up flows.
    Verification,
}

/// Answers drafted for review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct AutoDraft {
    /// Whether arriving mail gets a drafted answer.
    pub enabled: bool,
    /// Whether a person must approve it.
    pub require_approval: bool,
}

impl Default for AutoDraft {
    fn default() -> Self {
        Self { enabled: false, require_approval: true }
    }
}

/// Who may write to the mailbox. `block` wins over `allow`; an empty `allow` lets everybody in.
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
    /// Whether it goes to the spam folder instead of the inbox.
    pub to_spam_folder: bool,
}

impl Default for Spam {
    fn default() -> Self {
        Self { to_spam_folder: true }
    }
}
