//! Messages in the outbound queue: what they are, and whether their sender is told that they failed.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::emails::named;

named! {
    /// What a message in the queue is.
    OutboundKind {
        /// An email that a mailbox sends.
        Email "mail",
        /// An email that a mailbox forwards as it came.
        Forward "forward",
        /// An automatic reply.
        AutoReply "auto_reply",
        /// A message of the service itself.
        System "system",
    }
}

named! {
    /// Whether the sender of a message gets a delivery report.
    ReportState {
        /// There is nothing to report.
        None "none",
        /// A report has to be written.
        Due "due",
        /// It was written.
        Done "done",
    }
}
