//! The event log of a workspace.

use std::{fmt, str::FromStr};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EventId, MailboxId, Timestamp, WorkspaceId, emails::named};

named! {
    /// The type of an event.
    EventType {
        /// An email arrived.
        MessageReceived "message.received",
        /// An email is held while a reply is drafted.
        MessageHeld "message.held",
        /// An email that was not scanned on arrival was scanned.
        MessageScanned "message.scanned",
        /// The next server accepted an outgoing email.
        MessageSent "message.sent",
        /// An outgoing email was deferred and will be retried.
        MessageDeferred "message.deferred",
        /// Delivery of an outgoing email was confirmed.
        MessageDelivered "message.delivered",
        /// An outgoing email could not be delivered.
        MessageBounced "message.bounced",
        /// A recipient complained about an email.
        MessageComplained "message.complained",
        /// A draft was saved.
        DraftCreated "draft.created",
        /// A scheduled email was sent.
        ScheduleSent "schedule.sent",
        /// A scheduled email could not be sent.
        ScheduleFailed "schedule.failed",
        /// An outgoing email waits for a person to decide about it.
        ReviewRequested "review.requested",
        /// A person let an outgoing email leave.
        ReviewApproved "review.approved",
        /// A person refused an outgoing email.
        ReviewRejected "review.rejected",
        /// Nobody decided about an outgoing email in time, so it was rejected.
        ReviewExpired "review.expired",
        /// An outgoing email was withdrawn before anybody decided about it.
        ReviewWithdrawn "review.withdrawn",
        /// A recipient unsubscribed, by a managed link.
        RecipientUnsubscribed "recipient.unsubscribed",
        /// A triager finished a run.
        TriagerRunFinished "triager.run_finished",
        /// A custom domain was verified.
        DomainVerified "domain.verified",
        /// A mailbox was created.
        MailboxCreated "mailbox.created",
        /// A mailbox was deleted.
        MailboxDeleted "mailbox.deleted",
    }
}

/// An event of a workspace.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Event {
    /// Its id.
    pub id: EventId,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// Its number in the workspace; there are no gaps.
    pub sequence: i64,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// The mailbox it is about.
    pub mailbox_id: Option<MailboxId>,
    /// Ids and safe text. Text from mail is untrusted.
    pub data: serde_json::Value,
}

/// A part of the event log.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EventPage {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// Whether more events are available now.
    pub has_more: bool,
    /// The value of `after` to continue from here.
    pub next_after: i64,
}

/// Which part of the event log to read.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    /// Only events with a greater sequence number.
    #[garde(range(min = 0))]
    #[serde(default)]
    pub after: i64,
    /// Events per response.
    #[garde(range(min = 1, max = 500))]
    #[serde(default = "hundred")]
    pub limit: i64,
    /// Seconds to wait for the first event.
    #[garde(range(max = 60))]
    #[serde(default)]
    pub wait: u32,
}

const fn hundred() -> i64 {
    100
}

/// From where on to stream events.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventStreamQuery {
    /// Only events with a greater sequence number; the `Last-Event-ID` header takes precedence. If both are omitted,
    /// only new events.
    #[garde(range(min = 0))]
    #[serde(default)]
    pub after: Option<i64>,
}
