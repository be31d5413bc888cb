//! What sets a triager off, what it does, and what led to a run.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::emails::named;

named! {
    /// What sets a triager off.
    TriggerKind {
        /// A mail arrived.
        MailReceived "mail.received",
        /// A mail was sent.
        MailSent "mail.sent",
        /// Either of them.
        MailReceivedOrSent "mail.received_or_sent",
        /// A mail that arrived invites to something new.
        CalendarCreated "calendar.event_created",
        /// A mail that arrived changes an invitation.
        CalendarUpdated "calendar.event_updated",
        /// A mail that arrived calls something off.
        CalendarCanceled "calendar.event_canceled",
    }
}

named! {
    /// What a triager does with a mail.
    TriagerTaskKind {
        /// Saves a draft of an answer for review.
        DraftResponse "draft_response",
        /// Notes what there is to do.
        ExtractTasks "extract_tasks",
        /// Puts labels on the mail.
        Label "label",
        /// Tells of it in the event log.
        Notify "notify",
    }
}

named! {
    /// What led to a run.
    SourceKind {
        /// A mail arrived.
        MailReceived "mail.received",
        /// A mail was sent.
        MailSent "mail.sent",
        /// An invitation came.
        CalendarCreated "calendar.event_created",
        /// An invitation was changed.
        CalendarUpdated "calendar.event_updated",
        /// An invitation was called off.
        CalendarCanceled "calendar.event_canceled",
        /// Somebody asked for it.
        Manual "manual",
    }
}
