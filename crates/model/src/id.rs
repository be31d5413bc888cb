//! Ids: opaque strings with a readable prefix, sortable by creation time, one Rust type per kind of thing.

use std::{borrow::Cow, fmt, hash, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A kind of thing that has ids.
pub trait Kind: 'static {
    /// What its ids begin with, underscore included.
    const PREFIX: &'static str;
}

/// The id of one thing of kind `K`.
///
/// Any text can be held, since an id that a caller made up is no error: it just names nothing.
pub struct Id<K>(String, PhantomData<fn() -> K>);

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl<K: Kind> Id<K> {
    /// Makes an id from a time-ordered UUID (version 7), written in 26 base-32 digits that sort as it does.
    pub fn from_uuid(uuid: uuid::Uuid) -> Self {
        let number = uuid.as_u128();
        let mut text = String::with_capacity(K::PREFIX.len() + 26);
        text.push_str(K::PREFIX);
        for position in (0..26).rev() {
            let digit = usize::try_from((number >> (position * 5)) & 31).unwrap_or_default();
            text.push(char::from(ALPHABET[digit]));
        }
        Self(text, PhantomData)
    }

    /// Whether a text looks like an id of this kind.
    pub fn looks_like(text: &str) -> bool {
        text.starts_with(K::PREFIX)
    }
}

impl<K> Id<K> {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<K> From<String> for Id<K> {
    fn from(text: String) -> Self {
        Self(text, PhantomData)
    }
}
impl<K> From<&str> for Id<K> {
    fn from(text: &str) -> Self {
        Self(text.to_owned(), PhantomData)
    }
}
impl<K> Clone for Id<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}
impl<K> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<K> Eq for Id<K> {}
impl<K> PartialOrd for Id<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<K> Ord for Id<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}
impl<K> hash::Hash for Id<K> {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
impl<K> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl<K> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl<K> Serialize for Id<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}
impl<'de, K> Deserialize<'de> for Id<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}
impl<K: Kind> JsonSchema for Id<K> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Id_{}", K::PREFIX).into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        if K::PREFIX.is_empty() {
            json_schema!({ "type": "string" })
        } else {
            json_schema!({ "type": "string", "examples": [format!("{}01h8xgjy4n7r2v6c0d5t9kqwez", K::PREFIX)] })
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $alias:ident $prefix:literal;)*) => { $(
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $kind {}
        impl Kind for $kind {
            const PREFIX: &'static str = $prefix;
        }
        $(#[$doc])*
        pub type $alias = Id<$kind>;
    )* };
}

kinds! {
    /// A workspace.
    WorkspaceKind WorkspaceId "ws_";
    /// A person's account, the member id inside a workspace too.
    AccountKind AccountId "acc_";
    /// A console session.
    SessionKind SessionId "ses_";
    /// An invitation into a workspace.
    InviteKind InviteId "inv_";
    /// An API key.
    ApiKeyKind ApiKeyId "key_";
    /// A mailbox (its alias id; the UUID is its `public_id`).
    MailboxKind MailboxId "mbx_";
    /// A folder: its slug, unique in its mailbox.
    FolderKind FolderId "";
    /// A custom label.
    LabelKind LabelId "lbl_";
    /// An email.
    EmailKind EmailId "eml_";
    /// A thread.
    ThreadKind ThreadId "thr_";
    /// An attachment of an email.
    AttachmentKind AttachmentId "att_";
    /// An event.
    EventKind EventId "evt_";
    /// A custom email domain.
    DomainKind DomainId "dom_";
    /// A webhook.
    WebhookKind WebhookId "whk_";
    /// A delivery of an event to a webhook.
    DeliveryKind DeliveryId "dlv_";
    /// An affiliate.
    AffiliateKind AffiliateId "aff_";
    /// A commission of an affiliate.
    CommissionKind CommissionId "com_";
    /// A payout to an affiliate.
    PayoutKind PayoutId "pay_";
    /// A payment of the keyless interface.
    PaymentKind PaymentId "pmt_";
    /// A conversation with the mailbox agent.
    ConversationKind ConversationId "conv_";
    /// A message of such a conversation.
    AgentMessageKind AgentMessageId "msg_";
    /// A connection to an outside tool server.
    ConnectionKind ConnectionId "int_";
    /// A triager.
    TriagerKind TriagerId "trg_";
    /// A trigger of a triager.
    TriggerKind TriggerId "tgr_";
    /// A task of a triager.
    TriagerTaskKind TriagerTaskId "stp_";
    /// A run of a triager.
    TriagerRunKind TriagerRunId "run_";
    /// A task that a triager found.
    TaskKind TaskId "tsk_";
    /// A memory.
    MemoryKind MemoryId "mem_";
    /// A document.
    DocumentKind DocumentId "doc_";
    /// An entry of the audit log.
    AuditEntryKind AuditEntryId "aud_";
    /// Reviews of outgoing messages.
    ReviewKind ReviewId "rev_";
    /// A suppression of an address.
    SuppressionKind SuppressionId "sup_";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_like_their_uuids() {
        let early = uuid::Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000);
        let late = uuid::Uuid::from_u128(0x0191_0000_0000_7000_8000_0000_0000_0000);
        let (a, b) = (WorkspaceId::from_uuid(early), WorkspaceId::from_uuid(late));
        assert!(a < b);
        assert!(a.as_str().starts_with("ws_"));
        assert_eq!(a.as_str().len(), 29);
    }
}
