//! What things are: types, ids, states, limits, plans, credit classes, filter expressions.
//!
//! Pure: no I/O, no async, no clock. Everything here can be shown to a caller as it is, so these types are also
//! the wire types of the API and carry their own JSON schema and bounds.

pub mod accounts;
pub mod affiliate;
pub mod api_keys;
pub mod audit;
mod causes;
pub mod conversations;
pub mod cursor;
pub mod domains;
pub mod drafts;
pub mod emails;
pub mod events;
pub mod filter;
mod findings;
pub mod folders;
mod id;
pub mod identity;
pub mod integrations;
pub mod knowledge;
pub mod labels;
pub mod mailboxes;
pub mod members;
pub mod memory;
mod names;
mod nulls;
mod object;
pub mod outbound;
pub mod payments;
pub mod plans;
pub mod reviews;
mod scopes;
pub mod search;
pub mod send_policies;
pub mod sending;
pub mod suppressions;
pub mod tasks;
pub mod telegram;
pub mod threads;
mod time;
pub mod triagers;
pub mod usage;
pub mod webhooks;
pub mod workspaces;

pub use causes::causes;
pub use id::{
    AccountId, AffiliateId, AgentMessageId, ApiKeyId, AttachmentId, AuditEntryId, CommissionId, ConnectionId,
    ConversationId, DeliveryId, DocumentId, DomainId, EmailId, EventId, FolderId, Id, InviteId, Kind,
    LabelId, MailboxId, MemoryId, PaymentId, PayoutId, ReviewId, SessionId, SuppressionId, TaskId, ThreadId,
    TriagerId, TriagerRunId, TriagerTaskId, TriggerId, WebhookId, WorkspaceId,
};
pub use object::object;
pub use plans::{CreditClass, Limit, Plan, Plans, Role};
pub use scopes::Scope;
pub use time::{Day, Timestamp};
