//! The event log of a workspace.

use std::{fmt, str::FromStr};

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EventId, MailboxId, Timestamp, WorkspaceId, emails::named};

named! {
    /// What an event tells.
    EventType {
        /// A mail arrived.
        MessageReceived "message.received",
        /// A mail is held while an answer is drafted.
        MessageHeld "message.held",
        /// A mail that was not scanned at its arrival is now.
        MessageScanned "message.scanned",
        /// A mail was taken by its next hop.
        MessageSent "message.sent",
        /// A mail has to wait.
        MessageDeferred "message.deferred",
        /// A positive report about a mail came back.
        MessageDelivered "message.delivered",
        /// A mail could not be delivered.
        MessageBounced "message.bounced",
        /// A recipient complained about a mail.
        MessageComplained "message.complained",
        /// A draft was saved.
        DraftCreated "draft.created",
        /// A scheduled mail left.
        ScheduleSent "schedule.sent",
        /// A triager came to its end.
        TriagerRunFinished "triager.run_finished",
        /// A domain is verified.
        DomainVerified "domain.verified",
        /// A mailbox was made.
        MailboxCreated "mailbox.created",
        /// A mailbox was deleted.
        MailboxDeleted "mailbox.deleted",
    }
}

/// Something that happened in a workspace.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Event {
    /// Its id.
    pub id: EventId,
    /// What it tells.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// Its number in the workspace; there are no gaps.
    pub sequence: i64,
    /// Where.
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
    /// Whether more are there already.
    pub has_more: bool,
    /// What `after` takes to go on from here.
    pub next_after: i64,
}

/// Which part of the event log to read.
#[derive(Clone, Debug, Deserialize, Validate, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    /// Only events with a greater sequence.
    #[garde(range(min = 0))]
    #[serde(default)]
    pub after: i64,
    /// Events in one answer.
    #[garde(range(min = 1, max = 500))]
    #[serde(default = "hundred")]
    pub limit: i64,
    /// Seconds to wait for the first one.
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
    /// Only events with a greater sequence; the `Last-Event-ID` header wins. The present end, if both are left out.
    #[garde(range(min = 0))]
    #[serde(default)]
    pub after: Option<i64>,
}
