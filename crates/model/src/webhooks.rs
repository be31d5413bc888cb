//! Webhooks: addresses that are told about events, and the log of what they were told.

use std::{fmt, str::FromStr};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    AccountId, DeliveryId, EventId, MailboxId, Timestamp, WebhookId, WorkspaceId, emails::named,
    events::EventType,
};

/// How many webhooks a workspace can have.
pub const WEBHOOKS_PER_WORKSPACE: u64 = 20;

named! {
    /// Whether a webhook is told anything.
    WebhookStatus {
        /// It is told about events.
        Active "active",
        /// It gets nothing; what happens meanwhile is not told later.
        Paused "paused",
    }
}

named! {
    /// What became of a delivery.
    DeliveryStatus {
        /// It will be tried, or tried again.
        Pending "pending",
        /// It was taken with a status of 2xx.
        Delivered "delivered",
        /// It was refused, or its time is over.
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
    /// Where events are posted to.
    pub url: String,
    /// The types of events it is told about.
    pub event_types: Vec<EventType>,
    /// Only events of these mailboxes; null for all events of the workspace.
    pub mailbox_ids: Option<Vec<MailboxId>>,
    /// Whether it is told anything.
    pub status: WebhookStatus,
    /// Until when deliveries are also signed with the secret before the last rotation.
    pub old_secret_until: Option<Timestamp>,
    /// The member who made it or took it over; null when it belongs to the workspace, as what an API key makes does. When
    /// that member leaves it is paused, until an admin resumes it and takes it over by that.
    pub created_by: Option<AccountId>,
    /// When it was made.
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
    /// What deliveries are signed with: `whsec_` and base64.
    pub secret: String,
}

/// What making a webhook takes.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct NewWebhook {
    /// Where events are posted to: an http or https URL without credentials.
    #[garde(length(min = 1, max = 2048))]
    pub url: String,
    /// The types of events to be told about.
    #[garde(length(min = 1, max = 50))]
    pub event_types: Vec<EventType>,
    /// Only events of these mailboxes.
    #[garde(length(min = 1, max = 100))]
    #[serde(default)]
    pub mailbox_ids: Option<Vec<MailboxId>>,
    /// Whether it is told anything.
    #[serde(default = "active")]
    pub status: WebhookStatus,
}

const fn active() -> WebhookStatus {
    WebhookStatus::Active
}

/// A change of a webhook; what is left out stays.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct WebhookChange {
    /// The new URL.
    #[garde(length(min = 1, max = 2048))]
    #[serde(default)]
    pub url: Option<String>,
    /// The new types of events.
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

/// Tells a null that was written from a field that was left out.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// One attempt to deliver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeliveryAttempt {
    /// When it began.
    pub at: Timestamp,
    /// The status of the answer; null when there was none.
    pub response_status: Option<u16>,
    /// How the answer begins. Untrusted.
    pub response_excerpt: Option<String>,
    /// Why there was no answer, or why it does not count.
    pub error: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// An event on its way to a webhook.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Delivery {
    /// Its id.
    pub id: DeliveryId,
    /// The webhook.
    pub webhook_id: WebhookId,
    /// The event, also the `webhook-id` of every attempt.
    pub event_id: EventId,
    /// What the event tells; `webhook.test` for a test.
    pub event_type: String,
    /// What became of it.
    pub status: DeliveryStatus,
    /// Every attempt, oldest first; the last 30.
    pub attempts: Vec<DeliveryAttempt>,
    /// When it is tried next.
    pub next_attempt_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last tried or asked for.
    pub updated_at: Timestamp,
}

/// A page of deliveries, newest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DeliveryPage {
    /// The deliveries.
    pub deliveries: Vec<Delivery>,
    /// Whether more follow.
    pub has_more: bool,
    /// Where the next page begins; null when there is none.
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
    /// Deliveries a page.
    #[garde(range(min = 1, max = 100))]
    #[serde(default = "crate::emails::twenty_five")]
    pub limit: i64,
    /// The `next_cursor` of the page before.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub cursor: Option<String>,
}
