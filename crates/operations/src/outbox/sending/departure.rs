//! What the mail log tells of a mail that has just been handed in: after its transaction, since one that is undone has
//! sent nothing.

use std::sync::{Arc, OnceLock};

use store::outbound::{DeliveryRecord, OutboundRecord};

use crate::inbox::mail_log;

/// What a transaction leaves to be told of when it is through; nothing where nobody reads the log. Clones share it.
#[derive(Clone)]
pub(crate) struct Departure(Option<Arc<OnceLock<Noted>>>);

struct Noted {
    mail: OutboundRecord,
    recipients: Vec<DeliveryRecord>,
    size: i64,
}

impl Departure {
    pub(super) fn new() -> Self {
        Self(mail_log::logs_submissions().then(Arc::default))
    }

    /// Notes what was stored.
    pub(super) fn note(&self, mail: OutboundRecord, recipients: Vec<DeliveryRecord>, size: i64) {
        if let Some(noted) = &self.0 {
            // A mail leaves once, so there is nothing there yet.
            let _ = noted.set(Noted { mail, recipients, size });
        }
    }

    /// Tells of it, if the mail has left.
    pub(crate) fn tell(&self) {
        if let Some(Noted { mail, recipients, size }) = self.0.as_ref().and_then(|noted| noted.get()) {
            mail_log::submitted(mail, recipients, *size);
        }
    }
}
