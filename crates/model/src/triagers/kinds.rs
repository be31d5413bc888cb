//! What sets a triager off, what it does, and what led to a run.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::emails::named;

named! {
    /// The event that triggers a triager.
    TriggerKind {
        /// An email arrived.
        MailReceived "mail.received",
        /// An email was sent.
        MailSent "mail.sent",
        /// Sent or received.
        MailReceivedOrSent "mail.received_or_sent",
        /// A received email contains a new invitation.
        CalendarCreated "calendar.event_created",
        /// A received email updates an invitation.
        CalendarUpdated "calendar.event_updated",
        /// A received email cancels an event.
        CalendarCanceled "calendar.event_canceled",
    }
}

named! {
    /// What a task of a triager does.
    TriagerTaskKind {
        /// Saves a draft reply for review.
        DraftResponse "draft_response",
        /// Creates tasks from the email.
        ExtractTasks "extract_tasks",
        /// Labels the email.
        Label "label",
        /// Adds an event to the event log.
        Notify "notify",
    }
}

named! {
    /// What triggered a run.
    SourceKind {
        /// An email arrived.
        MailReceived "mail.received",
        /// An email was sent.
        MailSent "mail.sent",
        /// An invitation arrived.
        CalendarCreated "calendar.event_created",
        /// An invitation was changed.
        CalendarUpdated "calendar.event_updated",
        /// An invitation was cancelled.
        CalendarCanceled "calendar.event_canceled",
        /// It was started manually.
        Manual "manual",
    }
}
