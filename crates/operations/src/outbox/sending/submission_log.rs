//! The mail log's line about a submitted message, written after the commit: a transaction that was rolled back has
//! sent nothing.

use std::sync::{Arc, OnceLock};

use store::outbound::{DeliveryRecord, OutboundRecord};

use crate::inbox::mail_log;

/// What to log after the commit; empty where the log is off. Clones share it.
#[derive(Clone)]
pub(crate) struct SubmissionLog(Option<Arc<OnceLock<SubmittedMessage>>>);

struct SubmittedMessage {
    mail: OutboundRecord,
    recipients: Vec<DeliveryRecord>,
    size: i64,
}

impl SubmissionLog {
    pub(super) fn new() -> Self {
        Self(mail_log::logs_submissions().then(Arc::default))
    }

    /// Records what was stored.
    pub(super) fn record(&self, mail: OutboundRecord, recipients: Vec<DeliveryRecord>, size: i64) {
        if let Some(submitted) = &self.0 {
            // A message is submitted once, so it is still empty.
            let _ = submitted.set(SubmittedMessage { mail, recipients, size });
        }
    }

    /// Writes the line, if the message was submitted.
    pub(crate) fn write(&self) {
        if let Some(SubmittedMessage { mail, recipients, size }) =
            self.0.as_ref().and_then(|submitted| submitted.get())
        {
            mail_log::submitted(mail, recipients, *size);
        }
    }
}
