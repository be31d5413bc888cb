//! What things are: types, ids, states, limits, plans, credit classes, filter expressions.
//!
//! Pure: no I/O, no async, no clock. Everything here can be shown to a caller as it is, so these types are also
//! the wire types of the API and carry their own JSON schema and bounds.

pub mod accounts;
pub mod affiliate;
pub mod api_keys;
pub mod cursor;
pub mod domains;
pub mod drafts;
pub mod emails;
pub mod events;
pub mod filter;
pub mod folders;
mod id;
pub mod labels;
pub mod mailboxes;
pub mod members;
mod names;
mod object;
pub mod payments;
pub mod plans;
pub mod search;
pub mod sending;
pub mod telegram;
pub mod threads;
mod time;
pub mod usage;
pub mod webhooks;
pub mod workspaces;

pub use id::{
    AccountId, AffiliateId, ApiKeyId, AttachmentId, CommissionId, DeliveryId, DomainId, EmailId, EventId,
    FolderId, Id, InviteId, Kind, LabelId, MailboxId, PaymentId, PayoutId, SessionId, ThreadId, WebhookId,
    WorkspaceId,
};
pub use object::object;
pub use plans::{CreditClass, Limit, Plan, Plans, Role};
pub use time::{Day, Timestamp};
