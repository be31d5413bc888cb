//! Invitations in arriving messages: whether one is new, changed or cancelled (RFC 5546).

use mail::message::calendar::Invitation;
use model::{Timestamp, triagers::SourceKind};
use sha2::{Digest, Sha256};
use store::{
    Tx,
    triage_jobs::{self, Job},
};

use crate::core::error::Result;

/// The change that an invitation reports, which is recorded. The same job gets the same answer again.
pub(super) async fn record(
    tx: &mut Tx,
    job: &Job,
    invitation: &Invitation,
    now: Timestamp,
) -> Result<Option<SourceKind>> {
    let Some(uid) = invitation.uid.as_deref() else { return Ok(None) };
    let uid = hashed(uid);
    let sequence = i64::from(invitation.sequence.unwrap_or(0));
    let known = triage_jobs::find_event(tx, &job.mailbox, &uid).await?;
    if let Some((_, recorded_by, kind)) = &known
        && *recorded_by == job.id
    {
        return Ok(kind.parse().ok());
    }
    let Some(kind) = change_of(invitation.method.as_deref(), sequence, known.map(|(known, ..)| known)) else {
        return Ok(None);
    };
    triage_jobs::record_event(tx, job, &uid, sequence, kind, now).await?;
    Ok(Some(kind))
}

/// What a message about an event means: `known` is the version that the mailbox has.
fn change_of(method: Option<&str>, sequence: i64, known: Option<i64>) -> Option<SourceKind> {
    match (method?, known) {
        ("CANCEL", Some(known)) if sequence < known => None,
        ("CANCEL", _) => Some(SourceKind::CalendarCanceled),
        ("REQUEST", None) if sequence == 0 => Some(SourceKind::CalendarCreated),
        // It was changed before its first arrival here.
        ("REQUEST", None) => Some(SourceKind::CalendarUpdated),
        // The same or an older version changes nothing.
        ("REQUEST", Some(known)) if sequence > known => Some(SourceKind::CalendarUpdated),
        _ => None,
    }
}

fn hashed(uid: &str) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(uid.as_bytes()) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rules: TRIAGE-3
    #[test]
    fn method_and_sequence_tell_what_happened_to_an_event() {
        use SourceKind::{
            CalendarCanceled as Canceled, CalendarCreated as Created, CalendarUpdated as Updated,
        };
        for (method, sequence, known, kind) in [
            ("REQUEST", 0, None, Some(Created)),
            ("REQUEST", 2, None, Some(Updated)),
            ("REQUEST", 1, Some(0), Some(Updated)),
            ("REQUEST", 0, Some(0), None),
            ("REQUEST", 1, Some(2), None),
            ("CANCEL", 0, None, Some(Canceled)),
            ("CANCEL", 1, Some(1), Some(Canceled)),
            ("CANCEL", 0, Some(1), None),
            ("REPLY", 0, Some(0), None),
            ("PUBLISH", 0, None, None),
        ] {
            assert_eq!(change_of(Some(method), sequence, known), kind, "{method} {sequence} {known:?}");
        }
        assert_eq!(change_of(None, 0, None), None);
    }
}
