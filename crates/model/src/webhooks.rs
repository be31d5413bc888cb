//! Webhooks: addresses that are told about events, and the log of what they were told.

use std::{fmt, str::FromStr};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AccountId, DeliveryId, EventId, MailboxId, Timestamp, WebhookId, WorkspaceId, emails::named,
    events::EventType, nulls::given,
};

/// How many webhooks a workspace can have.
pub const WEBHOOKS_PER_WORKSPACE: u64 = 20;

named! {
    /// Whether events are delivered to a webhook.
    WebhookStatus {
        /// Events are delivered.
        Active "active",
        /// Nothing is delivered, and events in the meantime are not delivered later.
        Paused "paused",
    }
}

named! {
    /// The status of a delivery.
    DeliveryStatus {
        /// It is queued or will be retried.
        Pending "pending",
        /// It was accepted with a 2xx status.
        Delivered "delivered",
        /// It was refused, or it expired.
        Failed "failed",
    }
}

/// A webhook.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Webhook {
    /// Its id.
    pub id: WebhookId,
    /// The workspace it belongs to.
    pub workspace_id: WorkspaceId,
    /// The URL that events are posted to.
    pub url: String,
    /// The event types that are delivered.
    pub event_types: Vec<EventType>,
    /// Only events of these mailboxes; null for all events of the workspace.
    pub mailbox_ids: Option<Vec<MailboxId>>,
    /// Whether events are delivered.
    pub status: WebhookStatus,
    /// Until when deliveries are also signed with the previous secret.
    pub old_secret_until: Option<Timestamp>,
    /// The member who created it or took it over; null if it belongs to the workspace, as everything created with an
    /// API key does. When that member leaves, it is paused until an admin resumes it, which takes it over.
    pub created_by: Option<AccountId>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A webhook with its secret, which is shown only once.
#[derive(Clone, Serialize, JsonSchema)]
pub struct WebhookWithSecret {
    /// The webhook.
    #[serde(flatten)]
    pub webhook: Webhook,
    /// The secret that deliveries are signed with: `whsec_` and base64.
    pub secret: String,
}

/// A new webhook.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewWebhook {
    /// The URL that events are posted to: http or https, without credentials.
    #[garde(length(min = 1, max = 2048))]
    pub url: String,
    /// The event types to deliver.
    #[garde(length(min = 1, max = 50))]
    pub event_types: Vec<EventType>,
    /// Only events of these mailboxes. If omitted, all.
    #[garde(length(min = 1, max = 100))]
    #[serde(default)]
    pub mailbox_ids: Option<Vec<MailboxId>>,
    /// Whether events are delivered.
    #[serde(default = "active")]
    pub status: WebhookStatus,
}

const fn active() -> WebhookStatus {
    WebhookStatus::Active
}

/// Changes to a webhook. Omitted fields stay as they are.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct WebhookChange {
    /// The new URL.
    #[garde(length(min = 1, max = 2048))]
    #[serde(default)]
    pub url: Option<String>,
    /// The new event types.
    #[garde(length(min = 1, max = 50))]
    #[serde(default)]
    pub event_types: Option<Vec<EventType>>,
    /// The new mailboxes; null for all.
    #[garde(inner(inner(length(min = 1, max = 100))))]
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<Vec<MailboxId>>", length(min = 1, max = 100))]
    pub mailbox_ids: Option<Option<Vec<MailboxId>>>,
    /// The new status.
    #[serde(default)]
    pub status: Option<WebhookStatus>,
}

/// An attempt to deliver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryAttempt {
    /// When it started.
    pub at: Timestamp,
    /// The status of the response; null if there was none.
    pub response_status: Option<u16>,
    /// The beginning of the response. Untrusted.
    pub response_excerpt: Option<String>,
    /// Why there was no response, or why it was not accepted.
    pub error: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// A delivery of an event to a webhook.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Delivery {
    /// Its id.
    pub id: DeliveryId,
    /// The webhook.
    pub webhook_id: WebhookId,
    /// The event, also the `webhook-id` of every attempt.
    pub event_id: EventId,
    /// The type of the event; `webhook.test` for a test.
    pub event_type: String,
    /// Its status.
    pub status: DeliveryStatus,
    /// Every attempt, oldest first; the last 30.
    pub attempts: Vec<DeliveryAttempt>,
    /// When the next attempt is due.
    pub next_attempt_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last attempted or requested.
    pub updated_at: Timestamp,
}

/// A page of deliveries, newest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeliveryPage {
    /// The deliveries.
    pub deliveries: Vec<Delivery>,
    /// Whether more follow.
    pub has_more: bool,
    /// The cursor of the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// Which deliveries a list shows.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct DeliveryQuery {
    /// Only deliveries of this status.
    #[serde(default)]
    pub status: Option<DeliveryStatus>,
    /// Deliveries per page.
    #[garde(range(min = 1, max = 100))]
    #[serde(default = "crate::emails::twenty_five")]
    pub limit: i64,
    /// The `next_cursor` of the previous page.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub cursor: Option<String>,
}
